"""From ranked calls and truth to the rows of the scan benchmark's tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from ecoli_split import TOLERANCE
from matching import (
    Calls,
    Curve,
    Starts,
    at_depth,
    block_weights,
    make_curve,
)
from seqray.metrics.classification import percentile_interval

PER_KB = (0.1, 0.2, 0.5, 1.0, 2.0)
COMPARED_PER_KB = (0.5, 1.0)
"""Calls per kb at which two methods are compared."""
TOLERANCES = (TOLERANCE, 5)
BLOCK = 10_000
"""Letters in a block of the bootstrap: longer than an operon, so that blocks are nearly independent."""


@dataclass(frozen=True, slots=True)
class Masks:
    """Where a section lies: True at the positions of a region that belong to it, per strand, (length,)."""

    plus: np.ndarray
    minus: np.ndarray
    origin: int

    def holds(self, position: np.ndarray, plus: np.ndarray) -> np.ndarray:
        """Say for each position and strand whether it belongs to the section."""
        at = position - self.origin
        return np.where(plus, self.plus[at], self.minus[at])


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the genome with its truth.

    ``pairs`` names each pair of (starts that recall counts, starts that precision accepts).
    """

    name: str
    region: tuple[int, int]
    masks: Masks | None
    pairs: Mapping[str, tuple[Starts, Starts]]

    def calls(self, calls: Calls) -> Calls:
        """Return the calls inside the section."""
        return calls if self.masks is None else calls.take(self.masks.holds(calls.position, calls.plus))

    @property
    def kilobases(self) -> float:
        """Length of the region in kb; both strands of a position count as one."""
        return (self.region[1] - self.region[0]) / 1000

    def weights(self, replicates: int, seed: int) -> np.ndarray:
        """Return block weights (1 + replicates, blocks); the first row is the data as they are."""
        blocks = -(-(self.region[1] - self.region[0]) // BLOCK)
        return block_weights(blocks, replicates, seed)

    def curves(self, calls: Calls, tolerance: int = TOLERANCE) -> dict[str, Curve]:
        """Match calls with each pair of starts."""
        inside = self.calls(calls)
        return {
            name: make_curve(inside, recall, precision, self.region[0], BLOCK, tolerance)
            for name, (recall, precision) in self.pairs.items()
        }


def upstream_masks(anchors: Mapping[str, Sequence[int]], region: tuple[int, int], reach: int) -> Masks:
    """Mark the ``reach`` positions upstream of each gene start, the start itself included.

    ``anchors`` are 0-based first letters of genes, per strand.
    """
    plus, minus = (np.zeros(region[1] - region[0], dtype=bool) for _ in range(2))
    for anchor in anchors["+"]:
        plus[max(anchor - reach - region[0], 0) : max(anchor + 1 - region[0], 0)] = True
    for anchor in anchors["-"]:
        minus[max(anchor - region[0], 0) : max(anchor + reach + 1 - region[0], 0)] = True
    return Masks(plus, minus, region[0])


def restrict(section: Section, name: str, masks: Masks) -> Section:
    """Return the section cut down to the positions that ``masks`` mark."""

    def cut(starts: Starts) -> Starts:
        return starts.take(masks.holds(starts.position, starts.plus))

    pairs = {pair: (cut(recall), cut(precision)) for pair, (recall, precision) in section.pairs.items()}
    return Section(name, section.region, masks, pairs)


def with_interval(values: np.ndarray) -> dict[str, float]:
    """Return the value of all blocks, and the interval of the resamples, by the ends of their columns."""
    low, high = percentile_interval(values[1:])
    return {"": float(values[0]), "_low": low, "_high": high}


def depth_rows(
    section: Section, method: str, calls: Calls, weights: np.ndarray, tolerance: int = TOLERANCE
) -> list[dict[str, str | float | int]]:
    """Return a row per number of calls per kb, and one for all calls: recall, precision, area, intervals."""
    inside = section.calls(calls)
    depths = [round(per_kb * section.kilobases) for per_kb in PER_KB]
    labels = [f"{per_kb:g}" for per_kb in PER_KB] + ["all"]
    measured = {
        name: _replicates(curve, weights, depths[-1])
        for name, curve in section.curves(calls, tolerance).items()
    }
    rows = []
    for label, depth in zip(labels, [*depths, len(inside)], strict=True):
        if depth > len(inside) or (label == "all" and depth > depths[-1]):
            continue
        row: dict[str, str | float | int] = {"section": section.name, "method": method}
        row |= {
            "tolerance": tolerance,
            "calls_per_kb": label,
            "calls": depth,
            "lowest_score": at_depth(inside.score, depth),
        }
        for pair, (recall, precision, area) in measured.items():
            for measure, values in (("recall", recall), ("precision", precision)):
                found = np.array([at_depth(replicate, depth) for replicate in values])
                row |= {f"{measure}_{pair}{end}": value for end, value in with_interval(found).items()}
            row |= {f"auprc_{pair}{end}": value for end, value in with_interval(area).items()}
        rows.append(row)
    return rows


def _replicates(
    curve: Curve, weights: np.ndarray, depth: int
) -> tuple[list[np.ndarray], list[np.ndarray], np.ndarray]:
    """Return recall and precision of every replicate, and the area up to ``depth`` calls."""
    both = [curve.at(weight) for weight in weights]
    area = np.array([curve.area(weight, depth) for weight in weights])
    return [recall for recall, _ in both], [precision for _, precision in both], area


def difference_rows(
    section: Section, methods: Mapping[str, Calls], weights: np.ndarray, tolerance: int = TOLERANCE
) -> list[dict[str, str | float | int]]:
    """Return the differences of each two methods, the first less the second, on the same resampled blocks.

    A method that has fewer calls than a depth is taken with all of them.
    """
    measured = {
        name: measure_depths(section, calls, weights, COMPARED_PER_KB, tolerance)
        for name, calls in methods.items()
    }
    rows = []
    for first, second in combinations(methods, 2):
        for per_kb in COMPARED_PER_KB:
            ours, theirs = measured[first][per_kb], measured[second][per_kb]
            row: dict[str, str | float | int] = {"section": section.name, "first": first, "second": second}
            row |= {"tolerance": tolerance, "calls_per_kb": f"{per_kb:g}"}
            row |= {"calls_first": ours.calls, "calls_second": theirs.calls}
            for measure, values in ours.values.items():
                difference = with_interval(values - theirs.values[measure])
                row |= {f"{measure}{end}": value for end, value in difference.items()}
            rows.append(row)
    return rows


@dataclass(frozen=True, slots=True)
class Measured:
    """What the first ``calls`` calls reach.

    ``values`` names recall, precision and area of each pair of starts (``recall_strong``): all blocks, then
    every resample of them, (1 + replicates,).
    """

    calls: int
    values: Mapping[str, np.ndarray]


def measure_depths(
    section: Section,
    calls: Calls,
    weights: np.ndarray,
    per_kbs: Sequence[float],
    tolerance: int = TOLERANCE,
) -> dict[float, Measured]:
    """Measure a method at some numbers of calls per kb, or with all its calls where there are fewer.

    Parameters
    ----------
    section
        Where, and against which starts.
    calls
        Of the method.
    weights
        (1 + replicates, blocks), see `Section.weights`.
    per_kbs
        The numbers; the area is that of the first 2 per kb.
    tolerance
        Most letters between a call and a start.
    """
    inside = section.calls(calls)
    depths = {per_kb: min(round(per_kb * section.kilobases), len(inside)) for per_kb in per_kbs}
    values: dict[float, dict[str, np.ndarray]] = {per_kb: {} for per_kb in per_kbs}
    for pair, curve in section.curves(calls, tolerance).items():
        recall, precision, area = _replicates(curve, weights, round(PER_KB[-1] * section.kilobases))
        for per_kb, found in values.items():
            found[f"recall_{pair}"] = np.array([_at_most(one, depths[per_kb], 0.0) for one in recall])
            found[f"precision_{pair}"] = np.array(
                [_at_most(one, depths[per_kb], np.nan) for one in precision]
            )
            found[f"auprc_{pair}"] = area
    return {per_kb: Measured(depths[per_kb], found) for per_kb, found in values.items()}


def _at_most(values: np.ndarray, depth: int, without: float) -> float:
    return at_depth(values, depth) if depth else without
