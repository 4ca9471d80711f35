"""Random changes to training sequences, drawn and applied to a whole batch at once.

Everything here works on letter codes laid end to end (`seqray.core.CodeStack`), so that a batch of equal
and one of unequal lengths take the same path and no letter is touched in Python.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from seqray.core import AugmentConfig, CodeStack, reverse_complement_codes
from seqray.models.tokenizers import MASK


@dataclass(frozen=True, slots=True)
class Changes:
    """What happens to each of B sequences.

    ``shift`` (B,) int64 counts the letters by which the window moves to the right; ``flip`` (B,) bool says
    whether it is read from the other strand.
    """

    shift: np.ndarray
    flip: np.ndarray

    @classmethod
    def none(cls, size: int) -> Changes:
        """No change to ``size`` sequences."""
        return cls(np.zeros(size, dtype=np.int64), np.zeros(size, dtype=bool))

    @classmethod
    def draw(cls, rng: np.random.Generator, size: int, config: AugmentConfig) -> Changes:
        """Draw random changes of ``size`` windows.

        Shifts are uniform on [-shift, shift], in letters, for a share ``shift_share`` of the windows; a flip
        has probability ``reverse_complement``.
        """
        shift = rng.integers(-config.shift, config.shift, size=size, endpoint=True)
        flip = rng.random(size) < config.reverse_complement
        if config.shift_share < 1:
            shift[rng.random(size) >= config.shift_share] = 0
        return cls(shift, flip)


def cut_windows(
    stack: CodeStack, begin: np.ndarray, indices: np.ndarray, flank: int, changes: Changes, unknown: int
) -> tuple[np.ndarray, np.ndarray]:
    """Cut the window of each sequence, moved and flipped.

    Parameters
    ----------
    stack, begin
        All sequences, and the offset of each in the stack.
    indices
        (B,) the sequences to take.
    flank
        Letters on each side of a sequence that belong to its flank and not to the unmoved window.
    unknown
        Code for letters beyond the ends of a sequence, and for padding.

    Returns
    -------
    codes : uint8 (B, W)
        W is the longest window of the batch; shorter ones are padded at the end.
    lengths : int64 (B,)
        Letters of each window.
    """
    n = stack.lengths[indices][:, None]  # (B, 1)
    lengths = n - 2 * flank
    column = np.arange(int(lengths.max()))  # (W,)
    place = np.where(changes.flip[:, None], lengths - 1 - column, column)  # (B, W) within the window
    source = place + (flank + changes.shift)[:, None]
    known = (source >= 0) & (source < n) & (column < lengths)
    codes = stack.codes[begin[indices][:, None] + np.clip(source, 0, n - 1)]
    codes[~known] = unknown
    if changes.flip.any():
        # The letters are in flipped order already, so the reversal is taken back: complement alone.
        codes[changes.flip] = reverse_complement_codes(codes[changes.flip])[:, ::-1]
    return codes, lengths[:, 0]


def mask_tokens(tokens: np.ndarray, letters: np.ndarray, spans: np.ndarray) -> np.ndarray:
    """Replace every token that covers a masked letter by MASK.

    Overlapping words share letters: a word left in place would reveal its masked neighbor.

    Parameters
    ----------
    tokens
        (B, 1 + T) int64, CLS first.
    letters
        (B, W) bool, True at masked letters.
    spans
        (1 + T, 2) half-open letter interval of each token; empty for CLS.
    """
    before = np.zeros((letters.shape[0], letters.shape[1] + 1), dtype=np.int64)
    np.cumsum(letters, axis=1, out=before[:, 1:])
    hit = before[:, spans[:, 1]] > before[:, spans[:, 0]]  # (B, 1 + T)
    return np.where(hit, MASK, tokens)
