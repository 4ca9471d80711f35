"""Contexts of calls, worked out by hand from genes and letters placed on purpose."""

import numpy as np
import pytest

from seqray.calibration.expected_precision import ExpectedPrecision
from seqray.core.alphabet import DNA, reverse_complement_codes
from seqray.core.card_parts import LocatorFacts
from seqray.core.records import Intervals
from seqray.core.results import Box
from seqray.core.serialization import from_mapping
from seqray.genome.genes import Gene, Genome
from seqray.scanning.calls import CallTable
from seqray.scanning.contigs import Contig
from seqray.scanning.scorers import LETTERS_AFTER as AFTER, LETTERS_BEFORE as BEFORE

LENGTH = 1000
# On plus abc 200-500 and xyz 400-800; on minus rev 600-900, which begins at 899.
GENES = (Gene(200, 500, "+", "abc", "b1"), Gene(400, 800, "+", "xyz"), Gene(600, 900, "-", "rev", "b3"))


def describe(*calls, letters=None, circular=False, label="promoter", genes=GENES, expected=None):
    """Contexts of calls: site, and strand, score and contig."""
    table = CallTable(label, (0, 0))
    for i, call in enumerate(calls):
        site, strand, score, contig = (*call, *("+", 0.5, "c")[len(call) - 1 :])
        codes = np.full((1, BEFORE + 1 + AFTER), 4, dtype=np.uint8) if letters is None else letters[i : i + 1]
        found = strand, np.array([site]), np.array([score]), codes
        table.add(Contig(contig, LENGTH, circular), [found])
    genome = genes if genes is None or isinstance(genes, Genome) else Genome({"c": genes}, "test")
    table.describe(genome, expected)
    return [call.context for call in table]


def test_calls_outside_the_parts_of_a_contig_are_left_out():
    table, parts = CallTable("promoter", (2, 1)), Intervals.merge([(10, 20)])
    found = np.array([9, 10, 19, 20]), np.array([0.5, 0.6, 0.7, 0.8]), np.empty((4, 0), np.uint8)
    table.add(Contig("c", LENGTH, False, parts), [("-", *found)])
    assert [(call.start, call.site, call.end, call.strand) for call in table] == [
        (9, 10, 13, "-"),
        (18, 19, 22, "-"),
    ]
    assert [call.site for call in table.reaching(0.65)] == [19]


@pytest.mark.parametrize(
    ("site", "strand", "gene", "locus", "distance", "within", "within_strand"),
    [
        (150, "+", "abc", "b1", 50, "", ""),
        (200, "+", "abc", "b1", 0, "abc", "same"),  # a transcript without a leader
        (201, "+", "xyz", "", 199, "abc", "same"),
        (700, "+", "", "", None, "xyz", "same"),  # in rev as well, on the other strand
        (850, "+", "", "", None, "rev", "opposite"),
        (950, "-", "rev", "b3", 51, "", ""),
        (899, "-", "rev", "b3", 0, "rev", "same"),
        (300, "-", "", "", None, "abc", "opposite"),
        (999, "+", "", "", None, "", ""),
    ],
)
def test_genes_around_a_site(site, strand, gene, locus, distance, within, within_strand):
    [found] = describe((site, strand))
    assert (found.gene, found.locus, found.distance) == (gene, locus, distance)
    assert (found.within, found.within_strand) == (within, within_strand)


def test_without_genes_nothing_is_said_of_them():
    for genes in (None, Genome({"other": GENES}, "test")):
        [found] = describe((150,), genes=genes)
        assert (found.gene, found.distance, found.within) == ("", None, "")


def entry(genes, precision):
    return {
        "species": "a",
        "held_out": "region",
        "genes": genes,
        "rows": [[0.8, 1, 0.5, precision, 0, 1], [0.4, 2, 0.5, precision / 2, 0, 1]],
    }


def test_the_worth_of_a_score_depends_on_whether_the_genes_of_its_contig_are_known():
    expected = ExpectedPrecision(
        from_mapping(
            LocatorFacts,
            {
                "tolerance": 25,
                "expected": [entry(True, 0.9), entry(False, 0.2)],
            },
        )
    )
    calls = [(1, "+", 0.9), (1, "+", 0.7), (1, "+", 0.3), (1, "+", 0.9, "d")]
    high, lower, unmeasured, other = describe(*calls, expected=expected)
    assert (high.precision, high.trust) == (pytest.approx(0.9), "high")
    assert (lower.precision, lower.trust) == (pytest.approx(0.45), "medium")  # halfway from .9 to 0
    assert (unmeasured.precision, unmeasured.trust) == (None, "doubtful")  # for it is below those measured
    assert (other.precision, other.trust) == (pytest.approx(0.2), "doubtful")
    assert (describe((1,))[0].precision, describe((1,))[0].trust) == (None, "")


def promoter(before=7, spacer=17):
    """Letters around a site, with boxes; the -10 box ends so many letters before it."""
    upstream = "TTGACA" + "C" * spacer + "TATAAT" + "C" * (before - 1)
    return DNA.encode("C" * (BEFORE - len(upstream)) + upstream + "C" * (1 + AFTER))


def test_places_of_boxes_on_either_strand():
    genome = np.full(LENGTH, 1, dtype=np.uint8)
    window = promoter()
    genome[500 - BEFORE : 500 + AFTER + 1] = window
    [found] = describe((500,), letters=window[None])
    # Of the -10 box the last letter is 7 before the site, and the first 5 before that.
    assert (found.minus10, found.minus35) == (Box(488, "TATAAT"), Box(465, "TTGACA"))
    assert (found.spacer, found.extended) == (17, False)
    assert DNA.decode(genome[488:494]) == "TATAAT"
    for kingdom, has in (("bacteria", True), ("archaea", False)):
        expected = ExpectedPrecision(LocatorFacts(kingdom=kingdom))
        [found] = describe((500,), letters=window[None], expected=expected)
        assert bool(found.minus10) == bool(found.minus35) == has

    [turned] = describe((499, "-"), letters=window[None])
    other = reverse_complement_codes(genome)
    for box in (turned.minus10, turned.minus35):
        piece = other[box.start : box.start + 6]
        assert DNA.decode(reverse_complement_codes(piece)) == box.letters
    assert (turned.minus10.start, turned.minus35.start) == (506, 529)


def test_boxes_across_the_origin_of_a_circle():
    letters = np.stack([promoter()] * 2)
    forward, backward = describe((10,), (LENGTH - 11, "-"), letters=letters, circular=True)
    assert (forward.minus10.start, forward.minus35.start) == (LENGTH - 2, LENGTH - 25)
    assert (backward.minus10.start, backward.minus35.start) == (LENGTH - 4, 19)


def test_sites_of_other_classes_have_no_boxes():
    [found] = describe((500,), letters=promoter()[None], label="terminator")
    assert found.minus10 is found.minus35 is found.spacer is None
