"""The length of the k-mers that relatives share against arithmetic."""

import math

import pytest

from seqray.core.alphabet import DNA, PROTEIN
from seqray.datasets.audit.dataset import chance_length, word_length


def test_word_length_by_arithmetic():
    # 1000 sequences of 81 letters, each letter as often as any other: letters meet with 1/4, so with both
    # strands 2 * 81 * 81000 * 4**-k < 0.001 first holds at k = ceil(log4(1.3122e10)).
    sequences = ["ACGT" * 20 + "ACGT"[i % 4] for i in range(1000)]
    by_hand = math.ceil(math.log(2 * 81 * 81_000 / 0.001) / math.log(4))
    assert by_hand == 17
    assert chance_length(sequences, DNA) == by_hand
    assert word_length(sequences, DNA) == 40
    assert word_length([s[:60] for s in sequences], DNA) == 30
    assert word_length([s[:20] for s in sequences], DNA) == 15  # by chance, not half of 20
    assert word_length(["ACGT" * 100] * 10, DNA) == 40


def test_word_length_of_protein():
    sequences = [PROTEIN.letters * 5] * 10
    assert chance_length(sequences, PROTEIN) == math.ceil(math.log(100 * 1000 / 0.001) / math.log(20))
    assert word_length(sequences, PROTEIN) == 10


@pytest.mark.parametrize("sequences", [["AAAA", "AAAA"], ["NNNN", "NN"]])
def test_word_length_without_information(sequences):
    assert word_length(sequences, DNA) >= 1
