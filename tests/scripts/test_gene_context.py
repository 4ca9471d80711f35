"""What genes alone tell: the rule without letters, places among genes, and the prior."""

from __future__ import annotations

import numpy as np
import pytest

import gene_context
from gene_context import DISTANCES, GAPS, ContextPrior, GeneContext, gap_lengths, no_letters, upstream_gaps
from matching import make_starts, rank_calls
from seqray.genome.genes import Gene

LENGTH = 2000
GENES = (
    Gene(100, 400, "+", "a"),
    Gene(390, 700, "+", "b"),  # overlaps a by ten letters
    Gene(760, 1000, "-", "c"),
    Gene(1250, 1500, "+", "d"),  # 250 after c, which reads away from it
    Gene(1900, 2000, "-", "e", partial_start=True),
)


LONG = (Gene(0, 900, "-", "long"), Gene(100, 200, "+", "inside"), Gene(950, 990, "+", "after"))


@pytest.mark.parametrize(
    ("genes", "length", "gaps"),
    [
        (GENES, LENGTH, {"a": 100, "b": -10, "c": 250, "d": 250}),
        (
            LONG,
            1000,
            {"long": 50, "inside": -800, "after": 50},
        ),  # the long gene ends the gap
    ],
)
def test_the_gap_is_counted_to_the_nearest_gene_upstream_on_either_strand(genes, length, gaps):
    assert {gene.name: gap for gene, gap in upstream_gaps(genes, length)} == gaps


def test_the_rule_without_letters_calls_45_letters_before_each_start_codon():
    calls = no_letters(GENES, LENGTH)
    # c is read from 999 backwards: 999 + 45. Equal gaps go by position.
    assert calls.position.tolist() == [1044, 1205, 55, 345]
    assert calls.plus.tolist() == [False, True, True, True]
    assert calls.score.tolist() == [250, 250, 100, -10]
    # No call lies beyond the contig.
    assert len(no_letters([Gene(44, 200, "+", "a"), Gene(300, 500, "-", "b")], 540)) == 0
    assert no_letters([Gene(45, 200, "+", "a")], 540).position.tolist() == [0]
    assert len(no_letters([], 540)) == 0


def test_gaps_between_genes_have_one_length():
    covered = np.array([0, 0, 1, 0, 1, 1, 0, 0, 0], dtype=bool)
    assert gap_lengths(covered).tolist() == [2, 2, 0, 1, 0, 0, 3, 3, 3]
    assert gap_lengths(np.ones(3, dtype=bool)).tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    ("position", "strand", "place", "distance", "gap"),
    [
        (60, "+", 0, 40, 100),  # before a
        (50, "-", 0, None, 100),  # no start codon ahead on minus
        (380, "+", 1, 10, None),  # in a, ten letters before b
        (800, "+", 2, 450, None),  # in c, which is read backwards; d is 450 on
        (1044, "-", 0, 45, 250),  # before c
        (999, "-", 1, 0, None),  # the first letter of c
    ],
)
def test_places_among_genes(position, strand, place, distance, gap):
    row = GeneContext(GENES, LENGTH).classes(np.array([position]), np.array([strand == "+"]))[0]
    step = len(DISTANCES) + 1
    number = step - 1 if distance is None else sum(distance >= limit for limit in DISTANCES)
    length = 0 if gap is None else 1 + sum(gap >= limit for limit in GAPS)
    assert np.flatnonzero(row).tolist() == [place * step + number, 3 * step + length]


def test_the_prior_favors_places_where_starts_were_seen():
    context = GeneContext(GENES, LENGTH)
    starts = make_starts({"+": [55, 60, 1205, 1210], "-": [1040, 1044]})
    prior = ContextPrior(context, starts, [(0, LENGTH)], drawn=5000)
    before, inside, far = prior.log_odds(np.array([58, 1300, 1500]), np.array([True, True, True]))
    assert before > 0 > max(inside, far) or before - max(inside, far) > 1
    assert prior.log_odds(np.array([1043]), np.array([False]))[0] > inside


def test_calls_are_ranked_by_weighted_log_odds_and_prior(monkeypatch):
    class Prior:
        def log_odds(self, position, plus):
            return np.where(position == 10, 3.0, 0.0) + np.where(plus, 0.0, 0.25)

    monkeypatch.setattr(gene_context, "WINDOW_WEIGHT", 0.5)
    calls = rank_calls([10, 20, 30], ["+", "+", "-"], [0.5, 0.9, 0.9])
    ranked = gene_context.with_prior(calls, Prior())
    assert ranked.position.tolist() == [10, 30, 20]
    # Half of log(.9 / .1) = log 9 is log 3.
    assert ranked.score == pytest.approx([3.0, np.log(3) + 0.25, np.log(3)])
