"""Where windows may lie on a genome, and where positives stand, against sets of letters and by hand."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, strategies as st

from seqray.core.alphabet import DNA, reverse_complement
from seqray.core.records import Intervals, SequenceRecord
from seqray.datasets.negatives import genome as occurrences
from seqray.datasets.negatives.genome import (
    AllowedRegions,
    GeneIntervals,
    JoinedGenome,
    allowed_regions,
    assign_blocks,
    convergent_gaps,
    find_occurrences,
    near_starts,
    subtract,
    to_genome_coordinates,
)
from seqray.io.lines import Feature, Part
from tables import letters as random_letters

PAIRS = st.lists(
    st.tuples(st.integers(0, 60), st.integers(0, 60)).map(lambda p: (min(p), max(p))), max_size=6
)


def letters(pairs) -> set[int]:
    return {i for start, end in pairs for i in range(start, end)}


@given(PAIRS, PAIRS)
def test_minus_is_the_difference_of_sets(one, two):
    result = subtract(Intervals.merge(one), Intervals.merge(two))
    assert letters(result.pairs()) == letters(one) - letters(two)


@given(PAIRS, PAIRS, st.integers(1, 12))
def test_windows_lie_in_one_part_and_touch_nothing_forbidden(parts, forbidden, length):
    result = AllowedRegions(parts, Intervals.merge(forbidden)).window_starts(length)
    no = letters(forbidden)
    expected = {
        i
        for i in range(60)
        if any(start <= i and i + length <= end for start, end in parts)
        and not no & set(range(i, i + length))
    }
    assert letters(result.pairs()) == expected


NOTHING = Intervals.merge(())
# Two contigs of 100 and 50 letters: the second begins at 101.
GENOME = JoinedGenome.of([SequenceRecord("a", "A" * 100), SequenceRecord("b", "C" * 50, circular=True)], DNA)


def gene(contig, start, end, strand, kind="gene"):
    return Feature(contig, kind, (Part(start, end, strand),))


def test_of_genes_the_5_prime_end_counts_and_of_others_every_letter():
    features = [gene("a", 20, 40, "+"), gene("a", 50, 71, "-"), gene("a", 80, 83, "+", "promoter")]
    near = near_starts(features, GENOME, 3)
    # Letter 20, letter 70 (the first of a gene on the minus strand), letters 80 to 82; 3 more on each side.
    assert near.pairs() == [(17, 24), (67, 74), (77, 86)]


def test_a_line_of_bed_and_a_feature_without_strand_count_whole():
    features = [gene("a", 10, 20, ".", ""), gene("a", 40, 50, ".")]
    assert near_starts(features, GENOME, 0).pairs() == [(10, 20), (40, 50)]


def test_letters_near_a_start_end_with_the_contig_or_go_round_a_circle():
    near = near_starts([gene("a", 98, 100, "+"), gene("a", 0, 5, "+"), gene("b", 1, 9, "+")], GENOME, 4)
    # On b, a circle of 50: letters 47 .. 49 and 0 .. 5; 101 is its letter 0.
    assert near.pairs() == [(0, 5), (94, 100), (101, 107), (148, 151)]


def test_a_gene_on_the_minus_strand_across_the_origin_begins_behind_it():
    # On b, a circle of 50, letters 45 .. 49 and 0 .. 4: the first one on its strand is letter 4, at 105.
    assert near_starts([gene("b", 45, 55, "-")], GENOME, 1).pairs() == [(104, 107)]


def test_a_feature_across_the_origin_is_cut_in_two():
    placed = to_genome_coordinates([gene("b", 45, 55, "-")], GENOME)
    assert placed["-"] == [(146, 151), (101, 106)]


def test_convergent_gaps_by_hand():
    genes = {"+": [(0, 10), (40, 50)], "-": [(20, 30), (60, 70)], ".": []}
    # 10-20: towards each other. 30-40: away from each other. 50-60: towards each other.
    assert convergent_gaps(genes) == [(10, 20), (50, 60)]
    # Within a longer gene nothing counts; the one that ends last decides.
    assert convergent_gaps({"+": [(0, 30)], "-": [(5, 10), (40, 50)], ".": []}) == [(30, 40)]
    # Overlapping and touching ends leave no gap; a gene without a strand says nothing.
    assert convergent_gaps({"+": [(0, 30)], "-": [(29, 50)], ".": []}) == []
    assert convergent_gaps({"+": [(0, 30)], "-": [(30, 50)], ".": []}) == []
    assert convergent_gaps({"+": [(0, 10)], "-": [(40, 50)], ".": [(20, 30)]}) == []
    assert convergent_gaps({"+": [], "-": [], ".": []}) == []


def test_no_gap_reaches_into_the_next_contig():
    annotation = GeneIntervals.of([gene("a", 0, 90, "+"), gene("b", 10, 20, "-")], GENOME)
    assert allowed_regions("convergent", GENOME, NOTHING, annotation)["+"].parts == []


def test_coding_and_antisense_are_opposite_strands_and_leave_out_where_both_code():
    features = [gene("a", 0, 30, "+", "CDS"), gene("a", 25, 60, "-", "CDS"), gene("a", 0, 61, "+")]
    annotation = GeneIntervals.of(features, GENOME)
    coding = allowed_regions("coding", GENOME, NOTHING, annotation)
    antisense = allowed_regions("antisense", GENOME, NOTHING, annotation)
    assert coding["+"].parts == antisense["-"].parts == [(0, 30)]
    assert coding["-"].parts == antisense["+"].parts == [(25, 60)]
    assert coding["+"].forbidden.pairs() == antisense["-"].forbidden.pairs() == [(25, 60)]
    assert coding["-"].forbidden.pairs() == [(0, 30)]
    # Genes are those annotated as such; without any, coding sequences are taken for genes.
    assert annotation.genes["+"] == [(0, 61)]
    assert GeneIntervals.of(features[:2], GENOME).genes["-"] == [(25, 60)]


@given(PAIRS, PAIRS)
def test_clip_keeps_the_letters_in_both(parts, allowed):
    kept = AllowedRegions(parts, NOTHING).clipped(Intervals.merge(allowed)).parts
    inside = {i for start, end in allowed for i in range(start, end)}
    expected = {i for start, end in parts for i in range(start, end)} & inside
    assert {i for start, end in kept for i in range(start, end)} == expected


def test_blocks_are_dealt_in_proportion():
    shares = {"test": Fraction(1, 5), "train": Fraction(4, 5)}
    dealt = assign_blocks(GENOME, 10, shares, np.random.default_rng(0))  # 10 and 5 blocks
    sizes = {split: int((i.ends - i.starts).sum()) for split, i in dealt.items()}
    assert sizes == {"test": 30, "train": 120}
    both = Intervals.merge(dealt["test"].pairs() + dealt["train"].pairs())
    assert both.pairs() == [(0, 100), (101, 151)]


def test_a_pseudogene_does_not_code_but_is_a_gene():
    broken = Feature("a", "CDS", (Part(40, 60, "+"),), {"pseudo": ""})
    annotation = GeneIntervals.of([gene("a", 0, 30, "+", "CDS"), broken], GENOME)
    assert annotation.coding["+"] == [(0, 30)]
    assert annotation.genes["+"] == [(0, 30), (40, 60)]


def brute_force(positives, text, k=24) -> set[int]:
    """Letters of the text that belong to a word of a positive, plain or reverse complement."""
    covered = set()
    for positive in positives:
        size = min(k, len(positive))
        for letters in (positive, reverse_complement(positive)):
            for i in range(len(letters) - size + 1):
                word = letters[i : i + size]
                at = -1 if "N" in word else text.find(word)
                while at >= 0:
                    covered |= set(range(at, at + size))
                    at = text.find(word, at + 1)
    return covered


@pytest.mark.parametrize("block", [64, 1 << 20])
def test_every_letter_of_a_positive_is_found_on_both_strands(monkeypatch, block):
    monkeypatch.setattr(occurrences, "BLOCK", block)
    text = random_letters(2000, 1)
    changed = text[1300:1330] + ("A" if text[1330] != "A" else "C") + text[1331:1381]
    positives = [
        text[100:181],
        reverse_complement(text[400:481]),
        text[150:231],  # overlaps the first
        text[900:909],  # shorter than a word
        changed,  # one letter differs
        random_letters(81, 2),  # from elsewhere
        text[1500:1540] + "N" + text[1541:1581],
        text[1950:2000],  # the very end
        text[:30],  # the very beginning
    ]
    covered, places = find_occurrences(positives, JoinedGenome.of([SequenceRecord("c", text)], DNA))
    letters_covered = {i for start, end in covered.pairs() for i in range(start, end)}
    assert letters_covered == brute_force(positives, text)
    assert set(range(100, 231)) | set(range(400, 481)) <= letters_covered
    places = places.tolist()
    assert places[5] == -1
    for place, (start, end) in zip(
        places, [(100, 181), (400, 481), (150, 231), (900, 909), (1300, 1381)], strict=False
    ):
        assert start <= place < end


def test_a_positive_that_stands_twice_covers_both_places():
    unit = random_letters(50, 3)
    text = random_letters(100, 4) + unit + random_letters(100, 5) + reverse_complement(unit)
    covered, _ = find_occurrences([unit], JoinedGenome.of([SequenceRecord("c", text)], DNA))
    assert covered.pairs() == [(100, 150), (250, 300)]
