"""Figures of a locator on regions held out."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import binomtest
from sklearn.isotonic import IsotonicRegression

from seqray.core.arrays import (
    MIN_CALL_SCORE,
    MIN_DISTANCE_OF_LOCATORS,
    Bools,
    Floats,
    Ints,
    local_maxima,
    suppress_neighbors,
)
from seqray.core.text import round_number
from seqray.genome.tracks import track_rows
from seqray.inference.locators import CHUNK, Strand, StrandScorer
from seqray.metrics.bootstrap import percentile_interval
from seqray.metrics.classification import UNCLAIMED, average_precision, claim_sites
from seqray.modelfile.model import TrainedModel
from seqray.training.genomes.sheet import DEV, LabeledContig, LabeledGenome
from seqray.training.genomes.sources import make_strand
from seqray.training.genomes.strands import LabeledStrand

# --- Calls of a model in regions of a genome: scores of both strands, and their peaks

TOLERANCE = 25
"""Letters between a call and a site within which the call is right."""


class StrandCalls(NamedTuple):
    """Calls of a stretch of one strand, in coordinates of the strand."""

    position: Ints
    score: Floats


def profile_peaks(scores: Floats) -> Ints:
    """Positions of the calls of a profile (n,), rising."""
    candidates = np.flatnonzero(local_maxima(scores) & (scores >= MIN_CALL_SCORE))
    return candidates[suppress_neighbors(candidates, scores[candidates], MIN_DISTANCE_OF_LOCATORS)]


def call_stretch(
    model: TrainedModel, strand: LabeledStrand, start: int, end: int, *, genes: bool
) -> StrandCalls:
    """Calls of the positive class in ``[start, end)`` of a strand, scored as a scan does.

    The model is a locator, and also sees what lies around the stretch; with ``genes`` it gets the genes of
    the strand.
    """
    rows, tracks = track_rows(model.card.model.tracks), None
    if genes and rows and strand.genes is not None:
        tracks = strand.tracks(0, len(strand))[rows]
    read = Strand(strand.codes, tracks, strand.circular)
    first, scorer = start // CHUNK, StrandScorer(model)
    with scorer.running():
        chunks = scorer.chunks(read, range(first, -(-end // CHUNK)))
    scores = np.concatenate([*chunks, np.empty(0)])[start - first * CHUNK :][: end - start]
    scores[strand.codes[start:end] == model.alphabet.unknown] = 0.0  # no call at an unknown letter
    found = profile_peaks(scores)
    return StrandCalls(found + start, scores[found])


# --- What to expect of the calls of a locator, measured on development regions: the tables of its card

BLOCK = 10_000
"""Letters that the bootstrap draws together."""
DRAWS, _SEED = 1000, 20_240_229
DEPTH, PER_SITE = 4.0, 3
"""Most calls per kb that are looked at, or for each mapped site, whichever are more."""
_ROWS = 40  # of a table of expected precision
_MIN_CALLS = 20  # calls of its first row: of fewer the share that is right says little
_KNOTS = 60  # of the map from scores to probabilities
PER_KB = (0.5, 1.0, 2.0)
REGION, SPECIES = "region", "species"
"""What of a species was held out."""


@dataclass(frozen=True, eq=False)
class Measured:
    """Ranked calls of one species and its mapped sites.

    Attributes
    ----------
    species, held_out, genes
        Whose calls, what of it was held out, and whether the model was given genes.
    score
        (N,) falling.
    right
        (N,) whether the call claims a site.
    call_block, site_block
        (N,) and (M,) block of the genome, for the bootstrap.
    """

    species: str
    held_out: str
    genes: bool
    score: Floats
    right: Bools
    call_block: Ints
    site_block: Ints
    kilobases: float

    def curve(self) -> tuple[Floats, Floats]:
        """Recall and precision after each call."""
        right = np.cumsum(self.right)
        return right / max(len(self.site_block), 1), right / np.arange(1, len(right) + 1)

    def at_depth(self, per_kb: float) -> int:
        """Number of calls at so many per kb, at most all."""
        return min(round(per_kb * self.kilobases), len(self.score))


def measure(
    model: TrainedModel, genomes: Sequence[tuple[LabeledGenome, str]], *, genes: bool
) -> list[Measured]:
    """Call the development regions of all genomes, and match the calls with the mapped sites.

    Species without a mapped site there are left out, with genes also contigs whose genes are not known.

    The model has all members. Each genome comes with what of its species was held out; with ``genes`` the
    model is given the genes.
    """
    found: dict[tuple[str, str], list[_MeasuredRegion]] = defaultdict(list)
    for genome, held_out in genomes:
        for contig in genome.contigs:
            if genes and genome.genes_of(contig) is None:
                continue
            parts = _measure_contig(model, genome, contig, genes)
            found[genome.row.species, held_out].extend(parts)
    pooled = [_pool(*key, genes, parts) for key, parts in found.items()]
    return [one for one in pooled if len(one.site_block) and len(one.score)]


@dataclass(frozen=True, eq=False)
class _MeasuredRegion:
    """A region of one strand."""

    score: Floats
    right: Bools
    call_block: Ints
    site_block: Ints
    blocks: int
    letters: int


def _measure_contig(
    model: TrainedModel, genome: LabeledGenome, contig: LabeledContig, genes: bool
) -> Iterator[_MeasuredRegion]:
    regions = [(start, end) for start, end, name in contig.regions if name == DEV]
    if not regions:
        return
    nowhere = np.zeros(len(contig.codes), dtype=bool)
    strands = {strand: make_strand(genome, contig, strand, nowhere) for strand in "+-"}
    length = len(contig.codes)
    for start, end in regions:
        for name, strand in strands.items():
            span = (start, end) if name == "+" else (length - end, length - start)
            yield _measure_region(model, strand, *span, genes=genes, forward=name == "+")


def _measure_region(
    model: TrainedModel, strand: LabeledStrand, start: int, end: int, *, genes: bool, forward: bool
) -> _MeasuredRegion:
    calls = call_stretch(model, strand, start, end, genes=genes)
    known = strand.sites.between(start, end)
    known = known.take(known.kind == model.card.positive_index)
    truth = known.position[known.weight > 0]
    right = claim_sites(calls.position, calls.score, truth, TOLERANCE) != UNCLAIMED
    kept = right | ~_near(calls.position, known.position[known.weight == 0])

    def blocks(position: Ints) -> Ints:
        return (position - start if forward else end - 1 - position) // BLOCK

    count = -(-(end - start) // BLOCK)
    return _MeasuredRegion(
        calls.score[kept],
        right[kept],
        blocks(calls.position[kept]),
        blocks(truth),
        count,
        (end - start) if forward else 0,
    )


def _near(positions: Ints, sites: Ints) -> Bools:
    """Whether a site of unknown truth is within the tolerance."""
    low = np.searchsorted(sites, positions - TOLERANCE, "left")
    return low < np.searchsorted(sites, positions + TOLERANCE, "right")


def _pool(species: str, held_out: str, genes: bool, parts: Sequence[_MeasuredRegion]) -> Measured:
    """All regions of a species, its calls by falling score. Both strands of a region share blocks."""
    offsets, offset = [], 0
    for i in range(0, len(parts), 2):  # forward and reverse
        offsets += [offset, offset]
        offset += parts[i].blocks
    score = np.concatenate([part.score for part in parts] or [np.empty(0)])
    order = np.argsort(-score, kind="stable")
    calls, sites = (
        np.concatenate(
            [getattr(part, name) + at for part, at in zip(parts, offsets, strict=True)]
            or [np.empty(0, dtype=np.int64)]
        )
        for name in ("call_block", "site_block")
    )
    right = np.concatenate([part.right for part in parts] or [np.empty(0, dtype=bool)])
    kilobases = sum(part.letters for part in parts) / 1000
    kept = order[: max(int(DEPTH * kilobases), PER_SITE * len(sites))]
    return Measured(species, held_out, genes, score[kept], right[kept], calls[kept], sites, kilobases)


# ----------------------------------------------------------------------------------------- the tables


def _weights(one: Measured) -> Floats:
    """How often each block occurs in each draw: (DRAWS, blocks)."""
    blocks = int(max(one.call_block.max(initial=0), one.site_block.max(initial=0))) + 1
    drawn = np.random.default_rng(_SEED).multinomial(blocks, np.full(blocks, 1 / blocks), DRAWS)
    return drawn.astype(np.float64)


def _drawn(one: Measured, counts: Ints, weights: Floats) -> tuple[Floats, Floats]:
    """Recall and precision of the first ``counts`` calls in each draw: (DRAWS, len(counts))."""
    width = weights.shape[1]
    recall, precision = np.empty((2, len(weights), len(counts)))
    sites = weights @ np.bincount(one.site_block, minlength=width)
    for column, count in enumerate(counts.tolist()):
        calls = weights @ np.bincount(one.call_block[:count], minlength=width)
        right = weights @ np.bincount(one.call_block[:count][one.right[:count]], minlength=width)
        recall[:, column] = right / np.maximum(sites, 1)
        precision[:, column] = right / np.maximum(calls, 1)
    return recall, precision


def expected_row(one: Measured) -> dict[str, Any]:
    """Entry of a species in ``Card.locator['expected']``."""
    counts = _table_counts(one)
    recall, precision = one.curve()
    _, drawn = _drawn(one, counts, _weights(one))
    rows = []
    for column, count in enumerate(counts.tolist()):
        low, high = percentile_interval(drawn[:, column])  # of no width where all are right
        exact = binomtest(int(one.right[:count].sum()), count).proportion_ci(method="exact")
        low, high = min(low, exact.low), max(high, exact.high)
        figures = (recall[count - 1], precision[count - 1], low, high)
        per_kb = count / one.kilobases
        rows.append([round(float(value), 6) for value in (one.score[count - 1], per_kb, *figures)])
    return {
        "species": one.species,
        "held_out": one.held_out,
        "genes": one.genes,
        "kilobases": round_number(one.kilobases),
        "sites": len(one.site_block),
        "rows": _falling(rows),
    }


def _table_counts(one: Measured) -> Ints:
    """Numbers of calls of the rows, denser where there are few calls."""
    most = len(one.score)
    return np.unique(np.geomspace(min(_MIN_CALLS, most), most, _ROWS).round().astype(np.int64))


def _falling(rows: list[list[float]]) -> list[list[float]]:
    """Of rows of one threshold the last."""
    return [row for row, after in zip(rows, [*rows[1:], None], strict=True) if not after or row[0] > after[0]]


def best_threshold(measured: Sequence[Measured]) -> float:
    """The score at which the mean of F1 over species is largest."""
    candidates = np.unique(np.concatenate([one.score for one in measured]))
    candidates = candidates[np.linspace(0, len(candidates) - 1, min(len(candidates), 2000)).astype(int)]
    total = np.zeros(len(candidates))
    for one in measured:
        recall, precision = one.curve()
        count = np.searchsorted(-one.score, -candidates, "right")  # calls at or above each candidate
        f1 = 2 * recall * precision / np.maximum(recall + precision, 1e-12)
        total += np.where(count > 0, f1[np.maximum(count - 1, 0)], 0)
    return float(np.clip(candidates[int(total.argmax())], 0, 1))


def probability_map(measured: Sequence[Measured]) -> dict[str, list[float]]:
    """Rising map from the score of a call to the share of calls that are right, species weighed alike."""
    score = np.concatenate([one.score for one in measured])
    right = np.concatenate([one.right for one in measured]).astype(np.float64)
    weight = np.concatenate([np.full(len(one.score), 1 / len(one.score)) for one in measured])
    order = np.argsort(score, kind="stable")
    fitted = IsotonicRegression(y_min=0, y_max=1).fit(score, right, sample_weight=weight)
    values = fitted.predict(score[order])
    knots = np.unique(np.linspace(0, len(score) - 1, _KNOTS).round().astype(int))
    scores, values = np.round(score[order][knots], 6), np.round(values[knots], 6)
    kept = np.concatenate((np.diff(scores) > 0, [True]))
    return {"scores": scores[kept].tolist(), "values": values[kept].tolist()}


def species_metrics(one: Measured) -> dict[str, dict[str, float]]:
    """AUPRC, and recall and precision at some calls per kb, each with its interval."""
    counts = np.array([max(one.at_depth(per_kb), 1) for per_kb in PER_KB])
    weights = _weights(one)
    drawn = np.array([_auprc(one, row) for row in weights])
    figures = {"auprc": _figure(_auprc(one, np.ones(weights.shape[1])), drawn)}
    both = zip(("recall", "precision"), one.curve(), _drawn(one, counts, weights), strict=True)
    for name, values, draws in both:
        for column, per_kb in enumerate(PER_KB):
            value = float(values[counts[column] - 1])
            figures[f"{name}_at_{per_kb:g}_per_kb"] = _figure(value, draws[:, column])
    return figures


def _auprc(one: Measured, weights: Floats) -> float:
    """Average precision with the weights of the blocks."""
    calls, sites = weights[one.call_block], float(weights[one.site_block].sum())
    return average_precision(calls * one.right, one.right, max(sites, 1), calls)


def _figure(value: float, drawn: Floats) -> dict[str, float]:
    low, high = percentile_interval(drawn)
    return {"value": round_number(value), "low": round_number(low), "high": round_number(high)}


def learned_species(measured: Iterable[Measured]) -> list[Measured]:
    """Those of species that were learned from; all if none of them could be measured."""
    found = list(measured)
    return [one for one in found if one.held_out == REGION] or found


def locator_facts(by_mode: Mapping[str, Sequence[Measured]]) -> dict[str, Any]:
    """``Card.locator``, of what was measured with ``genes`` (may be empty) and with ``letters`` alone."""
    learned = {mode: learned_species(measured) for mode, measured in by_mode.items() if measured}
    return {
        "extent": [0, 0],
        "tolerance": TOLERANCE,
        "threshold_without_genes": best_threshold(learned["letters"]),
        "probability": {mode: probability_map(measured) for mode, measured in learned.items()},
        "expected": [expected_row(one) for measured in by_mode.values() for one in measured],
    }
