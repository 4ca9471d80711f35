"""Random changes against the same changes made letter by letter on text."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from seqray.core.alphabet import DNA, PROTEIN, reverse_complement
from seqray.core.letters import stack_sequences
from seqray.core.run_config import AugmentConfig
from seqray.models.tokenizers import CLS, MASK, CharacterTokenizer, KmerTokenizer
from seqray.training.data import Changes, cut_windows, mask_tokens

dna = st.text("ACGTN", min_size=1, max_size=25)


def by_hand(sequence: str, flank: int, shift: int, flip: bool) -> str:
    """The window of one sequence, as a person would cut it; N is what lies beyond the ends."""
    begin, end = flank + shift, len(sequence) - flank + shift
    window = "".join(sequence[i] if 0 <= i < len(sequence) else "N" for i in range(begin, end))
    return reverse_complement(window) if flip else window


def cut(sequences: list[str], rows: list[int], flank: int, shift: list[int], flip: list[bool]) -> list[str]:
    stack = stack_sequences(sequences, DNA)
    begin = np.cumsum(stack.lengths) - stack.lengths
    changes = Changes(np.array(shift), np.array(flip))
    codes, lengths = cut_windows(stack, begin, np.array(rows), flank, changes, DNA.unknown)
    assert codes.shape == (len(rows), lengths.max())
    for row, n in zip(codes, lengths, strict=True):
        assert (row[n:] == DNA.unknown).all()
    return [DNA.decode(row[:n]) for row, n in zip(codes, lengths, strict=True)]


@given(st.data())
def test_windows_of_any_lengths_are_those_cut_by_hand(data):
    sequences = data.draw(st.lists(dna, min_size=1, max_size=6))
    flank = data.draw(st.integers(0, (min(map(len, sequences)) - 1) // 2))
    rows = data.draw(st.lists(st.integers(0, len(sequences) - 1), min_size=1, max_size=8))
    shift = [data.draw(st.integers(-30, 30)) for _ in rows]
    flip = [data.draw(st.booleans()) for _ in rows]
    expected = [by_hand(sequences[r], flank, s, f) for r, s, f in zip(rows, shift, flip, strict=True)]
    assert cut(sequences, rows, flank, shift, flip) == expected


def test_protein_windows_have_their_own_unknown_code():
    stack = stack_sequences(["MKV"], PROTEIN)
    codes, _ = cut_windows(
        stack, np.array([0]), np.array([0]), 0, Changes(np.array([1]), np.array([False])), PROTEIN.unknown
    )
    assert PROTEIN.decode(codes[0]) == "KVX"


def test_drawn_changes_are_uniform_shifts_and_flips_at_their_rate():
    changes = Changes.draw(np.random.default_rng(0), 70_000, AugmentConfig(shift=3, reverse_complement=0.25))
    values, counts = np.unique(changes.shift, return_counts=True)
    assert values.tolist() == [-3, -2, -1, 0, 1, 2, 3]
    assert counts == pytest.approx(10_000, abs=500)  # five standard deviations are 460
    assert changes.flip.mean() == pytest.approx(0.25, abs=0.01)


def test_a_share_of_the_windows_is_shifted():
    changes = Changes.draw(np.random.default_rng(0), 80_000, AugmentConfig(shift=2, shift_share=0.5))
    values, counts = np.unique(changes.shift, return_counts=True)
    assert values.tolist() == [-2, -1, 0, 1, 2]
    assert counts == pytest.approx([8_000, 8_000, 48_000, 8_000, 8_000], abs=600)  # over four deviations


@pytest.mark.parametrize("tokenizer", [CharacterTokenizer(DNA), KmerTokenizer(DNA, 3)])
def test_a_token_is_masked_when_any_of_its_letters_is(tokenizer):
    rng = np.random.default_rng(1)
    codes = rng.integers(0, 4, (20, 12)).astype(np.uint8)
    letters = rng.random(codes.shape) < 0.15
    tokens, spans = tokenizer.encode_codes(codes), tokenizer.spans(12)
    masked = mask_tokens(tokens, letters, spans)
    for b in range(len(codes)):
        for t, (start, end) in enumerate(spans):
            hit = any(letters[b, i] for i in range(start, end))
            assert masked[b, t] == (MASK if hit else tokens[b, t])
    assert (masked[:, 0] == CLS).all()
    assert (masked == MASK).any()
