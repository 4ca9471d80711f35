"""Figures of a locator on regions held out: its calls, and what a card says to expect of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import binomtest

from seqray.core.arrays import (
    MIN_CALL_SCORE,
    MIN_DISTANCE_OF_LOCATORS,
    Bools,
    Floats,
    Ints,
    local_maxima,
    suppress_neighbors,
)
from seqray.core.card_parts import LocatorFacts, SpeciesTable
from seqray.core.text import INTERVAL_DRAWS, round_number
from seqray.genome.genes import track_rows
from seqray.inference.locators import CHUNK, Strand, StrandScorer
from seqray.metrics.classification import UNCLAIMED, average_precision, claim_sites, percentile_interval
from seqray.modelfile.model import TrainedModel
from seqray.training.genomes.chunks import LabeledStrand
from seqray.training.genomes.sheet import REGION, LabeledContig, LabeledGenome

TOLERANCE = 25  # letters between a call and a site within which the call is right
BLOCK = 10_000  # letters that the bootstrap draws together
DRAWS, _SEED = INTERVAL_DRAWS, 20_240_229
DEPTH, PER_SITE = 4.0, 3
"""Most calls per kb that are looked at, or for each mapped site, whichever are more."""
PER_KB = (0.5, 1.0, 2.0)
_ROWS = 40  # of a table of expected precision
_MIN_CALLS = 20  # calls of its first row: of fewer the share that is right says little


@dataclass(frozen=True, eq=False)
class Measured:
    """Ranked calls of one species, of which a region or all was held out, and its mapped sites.

    ``score`` (N,) falls, ``right`` (N,): the call claims a site; blocks (N,), (M,) are for the bootstrap.
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

    def block_weights(self) -> Floats:
        """How often each block occurs in each draw: (DRAWS, blocks)."""
        blocks = int(max(self.call_block.max(initial=0), self.site_block.max(initial=0))) + 1
        drawn = np.random.default_rng(_SEED).multinomial(blocks, np.full(blocks, 1 / blocks), DRAWS)
        return drawn.astype(np.float64)

    def drawn_curve(self, counts: Ints, weights: Floats) -> tuple[Floats, Floats]:
        """Recall and precision of the first ``counts`` calls in each draw: (DRAWS, len(counts))."""
        width = weights.shape[1]
        recall, precision = np.empty((2, len(weights), len(counts)))
        sites = weights @ np.bincount(self.site_block, minlength=width)
        for column, count in enumerate(counts.tolist()):
            first = self.call_block[:count]
            calls = weights @ np.bincount(first, minlength=width)
            right = weights @ np.bincount(first[self.right[:count]], minlength=width)
            recall[:, column] = right / np.maximum(sites, 1)
            precision[:, column] = right / np.maximum(calls, 1)
        return recall, precision


def profile_peaks(scores: Floats) -> Ints:
    """Positions of the calls of a profile (n,), rising."""
    candidates = np.flatnonzero(local_maxima(scores) & (scores >= MIN_CALL_SCORE))
    return candidates[suppress_neighbors(candidates, scores[candidates], MIN_DISTANCE_OF_LOCATORS)]


def measure(
    model: TrainedModel, genomes: Sequence[tuple[LabeledGenome, str]], *, genes: bool
) -> list[Measured]:
    """Call the development regions, and match calls with mapped sites; species without such are left out."""
    contigs: dict[tuple[str, str], list[tuple[LabeledGenome, LabeledContig]]] = defaultdict(list)
    for genome, held_out in genomes:
        for contig in genome.contigs:
            if not genes or genome.genes_of(contig) is not None:
                contigs[genome.row.species, held_out].append((genome, contig))
    measured = [_measure(model, species, out, genes, own) for (species, out), own in contigs.items()]
    return [one for one in measured if len(one.site_block) and len(one.score)]


def _measure(
    model: TrainedModel,
    species: str,
    held_out: str,
    genes: bool,
    contigs: Sequence[tuple[LabeledGenome, LabeledContig]],
) -> Measured:
    """All regions of a species, its calls by falling score. Both strands of a region share blocks."""
    score, right = [np.empty(0)], [np.empty(0, dtype=bool)]
    call_block, site_block = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.int64)]
    blocks = letters = 0
    for genome, contig in contigs:
        length, nowhere = len(contig.codes), np.zeros(len(contig.codes), dtype=bool)
        names = "+-" if contig.development else ""
        strands = {name: LabeledStrand.of(genome, contig, name, nowhere) for name in names}
        for start, end in contig.development:
            for name, strand in strands.items():
                low, high = (start, end) if name == "+" else (length - end, length - start)
                called, scores = _call_stretch(model, strand, low, high, genes)
                sites = strand.sites_between(low, high)
                sites = sites[sites["kind"] == model.card.positive_index]
                truth, unclear = (
                    sites["position"][chosen] for chosen in (sites["weight"] > 0, sites["weight"] == 0)
                )
                claims = claim_sites(called, scores, truth, TOLERANCE) != UNCLAIMED
                near = np.searchsorted(unclear, called - TOLERANCE, "left") < np.searchsorted(
                    unclear, called + TOLERANCE, "right"
                )
                counted = claims | ~near
                for positions, into in ((called[counted], call_block), (truth, site_block)):
                    ahead = positions - low if name == "+" else high - 1 - positions
                    into.append(blocks + ahead // BLOCK)
                score.append(scores[counted])
                right.append(claims[counted])
            blocks += -(-(end - start) // BLOCK)
            letters += end - start
    ranked, placed, kilobases = np.concatenate(score), np.concatenate(site_block), letters / 1000
    order = np.argsort(-ranked, kind="stable")[: max(int(DEPTH * kilobases), PER_SITE * len(placed))]
    claimed, block = np.concatenate(right)[order], np.concatenate(call_block)[order]
    return Measured(species, held_out, genes, ranked[order], claimed, block, placed, kilobases)


def _call_stretch(
    model: TrainedModel, strand: LabeledStrand, start: int, end: int, genes: bool
) -> tuple[Ints, Floats]:
    """Positions and scores of calls in ``[start, end)`` of a strand, scored as a scan does."""
    rows, tracks = track_rows(model.card.model.tracks), None
    if genes and rows and strand.genes is not None:
        tracks = strand.tracks(0, len(strand))[rows]
    first, scorer = start // CHUNK, StrandScorer(model)
    with scorer.running():
        chunks = scorer.chunks(Strand(strand.codes, tracks, strand.circular), range(first, -(-end // CHUNK)))
    scores = np.concatenate([*chunks, np.empty(0)])[start - first * CHUNK :][: end - start]
    scores[strand.codes[start:end] == model.alphabet.unknown] = 0.0  # no call at an unknown letter
    peaks = profile_peaks(scores)
    return peaks + start, scores[peaks]


# --- The tables of a card


def species_table(one: Measured) -> SpeciesTable:
    """Figures of a species by threshold; rows are denser where there are few calls."""
    most = len(one.score)
    counts = np.unique(np.geomspace(min(_MIN_CALLS, most), most, _ROWS).round().astype(np.int64))
    recall, precision = one.curve()
    _, drawn = one.drawn_curve(counts, one.block_weights())
    rows: list[list[float]] = []
    for column, count in enumerate(counts.tolist()):
        low, high = percentile_interval(drawn[:, column])  # of no width where all are right
        exact = binomtest(int(one.right[:count].sum()), count).proportion_ci(method="exact")
        low, high = min(low, exact.low), max(high, exact.high)
        figures = (
            one.score[count - 1],
            count / one.kilobases,
            recall[count - 1],
            precision[count - 1],
            low,
            high,
        )
        row = [round(float(value), 6) for value in figures]
        if rows and rows[-1][0] <= row[0]:  # of rows of one threshold the last
            rows.pop()
        rows.append(row)
    return SpeciesTable(
        species=one.species,
        held_out="region" if one.held_out == REGION else "species",
        genes=one.genes,
        kilobases=round_number(one.kilobases),
        sites=len(one.site_block),
        rows=np.array(rows),
    )


def threshold_of_best_f1(measured: Sequence[Measured]) -> float:
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


def species_metrics(one: Measured) -> dict[str, dict[str, float]]:
    """AUPRC, and recall and precision at some calls per kb, each with its interval."""

    def auprc(weights: Floats) -> float:
        calls, sites = weights[one.call_block], float(weights[one.site_block].sum())
        return average_precision(calls * one.right, one.right, max(sites, 1), calls)

    def figure(value: float, drawn: Floats) -> dict[str, float]:
        low, high = percentile_interval(drawn)
        return {"value": round_number(value), "low": round_number(low), "high": round_number(high)}

    counts = np.array([max(min(round(per_kb * one.kilobases), len(one.score)), 1) for per_kb in PER_KB])
    weights = one.block_weights()
    drawn = np.array([auprc(row) for row in weights])
    figures = {"auprc": figure(auprc(np.ones(weights.shape[1])), drawn)}
    for name, values, draws in zip(
        ("recall", "precision"), one.curve(), one.drawn_curve(counts, weights), strict=True
    ):
        for column, per_kb in enumerate(PER_KB):
            value = float(values[counts[column] - 1])
            figures[f"{name}_at_{per_kb:g}_per_kb"] = figure(value, draws[:, column])
    return figures


def learned_species(measured: Iterable[Measured]) -> list[Measured]:
    """Those of species that were learned from; all if none of them could be measured."""
    rows = list(measured)
    return [one for one in rows if one.held_out == REGION] or rows


def locator_facts(measured: Sequence[Measured]) -> LocatorFacts:
    """``Card.locator``, of what was measured without genes, and maybe with them."""
    by_letters = learned_species(one for one in measured if not one.genes)
    return LocatorFacts(
        extent=(0, 0),
        tolerance=TOLERANCE,
        threshold_without_genes=threshold_of_best_f1(by_letters),
        expected=tuple(map(species_table, measured)),
    )
