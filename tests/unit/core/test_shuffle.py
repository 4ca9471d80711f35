"""The dinucleotide shuffle is exact and uniform."""

from __future__ import annotations

from collections import Counter
from itertools import permutations

import numpy as np
import pytest
from scipy.stats import chisquare

from seqray.core.alphabet import DNA
from seqray.core.letters import dinucleotide_shuffle


def dinucleotides(sequence: str) -> Counter[str]:
    return Counter(sequence[i : i + 2] for i in range(len(sequence) - 1))


def all_shuffles(sequence: str) -> set[str]:
    """Every sequence with the same first letter and dinucleotides, by trying all orders of the letters."""
    wanted = dinucleotides(sequence)
    tries = {sequence[0] + "".join(rest) for rest in permutations(sequence[1:])}
    return {t for t in tries if dinucleotides(t) == wanted}


@pytest.mark.parametrize("sequence", ["ACAGACGA", "AACAGTAGC", "ACGTNACNT", "AAACAAGA", "CATCGATC"])
def test_every_possible_sequence_is_drawn_equally_often(sequence):
    possible = sorted(all_shuffles(sequence))
    rng, codes = np.random.default_rng(7), DNA.encode(sequence)
    draws = Counter(DNA.decode(dinucleotide_shuffle(codes, rng)) for _ in range(400 * len(possible)))
    assert sorted(draws) == possible
    assert chisquare([draws[s] for s in possible]).pvalue > 1e-3


def test_same_state_same_shuffle_and_the_input_is_left_alone():
    codes = DNA.encode("ACGTTGCAACGGTTACGATCGATTACA" * 20)
    before = codes.copy()
    first, second = (dinucleotide_shuffle(codes, np.random.default_rng(9)) for _ in range(2))
    other = dinucleotide_shuffle(codes, np.random.default_rng(10))
    assert first.tolist() == second.tolist() != other.tolist()
    assert codes.tolist() == before.tolist()


@pytest.mark.parametrize("sequence", ["", "A", "AC", "ACG", "AAAA", "NNNNNNNN"])
def test_what_has_one_order_only_is_returned_as_a_copy(sequence):
    codes = DNA.encode(sequence)
    shuffled = dinucleotide_shuffle(codes, np.random.default_rng(0))
    assert DNA.decode(shuffled) == sequence
    assert not np.shares_memory(shuffled, codes)
