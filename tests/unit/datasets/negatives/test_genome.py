"""The arithmetic of intervals against sets of letters."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from seqray.core.alphabet import DNA
from seqray.core.errors import InputError
from seqray.core.records import Intervals, SequenceRecord
from seqray.datasets.negatives.genome import Genome, subtract, window_starts

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
    result = window_starts(parts, length, Intervals.merge(forbidden))
    no = letters(forbidden)
    expected = {
        i
        for i in range(60)
        if any(start <= i and i + length <= end for start, end in parts)
        and not no & set(range(i, i + length))
    }
    assert letters(result.pairs()) == expected


@pytest.fixture
def genome() -> Genome:
    return Genome.of([SequenceRecord("a", "ACGTT"), SequenceRecord("b", "GGN", circular=True)], DNA)


def test_contigs_are_parted_by_a_letter_of_nothing(genome):
    assert DNA.decode(genome.codes) == "ACGTTNGGNN"
    assert genome.contigs() == [(0, 5), (6, 9)]
    assert [genome.locate(i) for i in (0, 4, 6, 8)] == [("a", 0), ("a", 4), ("b", 0), ("b", 2)]
    assert genome.circular == (False, True)


def test_letters_of_both_strands(genome):
    assert genome.letters(0, 5, "+") == "ACGTT"
    assert genome.letters(0, 5, "-") == "AACGT"  # written backwards and complemented by hand
    assert genome.letters(6, 8, "-") == "CC"


def test_an_unknown_contig_is_named(genome):
    assert genome.index("b") == 1
    with pytest.raises(InputError) as error:
        genome.index("chr1", "x.gff")
    assert str(error.value) == (
        "x.gff: names the contig 'chr1', which is not in the genome; the genome begins with 'a'"
    )
