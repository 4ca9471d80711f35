"""Random DNA with planted words: three tasks in which the letters that decide are known.

===========  =======================================  ====================================================
task         positive                                 negative
===========  =======================================  ====================================================
single       the word                                 the word's letters in another order
pair         two words, a fixed number of letters     one of them beside the other's letters in another
             apart                                    order; or both at a wrong distance
suppressor   the activator and the suppressor's       neither; or both the activator and the suppressor
             letters in another order
===========  =======================================  ====================================================

Every record of a task has as many planted stretches of the same composition as any other, so that neither
composition nor the seam of a planted stretch gives the class away. Where no word was planted, none stands.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from seqray.core.alphabet import DNA
from seqray.core.records import LabeledSequence

Codes = npt.NDArray[np.uint8]
Mask = npt.NDArray[np.bool_]

LENGTH = 80
POSITIVE, NEGATIVE = "motif", "background"
WORD = "TGACTCAG"
FIRST, SECOND = "TTGACATC", "TACGATAC"
ACTIVATOR, SUPPRESSOR = "TGACTCAG", "CCATTGTA"
GAP = 17
"""Letters between the two words of a pair, as between the boxes of a bacterial promoter."""
OTHER_GAPS = (5, 9, 13, 21, 25, 29)


@dataclass(frozen=True, slots=True, eq=False)
class Planted:
    """One record and what was planted in it.

    Attributes
    ----------
    codes
        (LENGTH,) letter codes.
    positive
        Its class.
    truth
        (LENGTH,) True at letters that speak for the class ``POSITIVE``.
    against
        (LENGTH,) True at letters that speak against it.
    """

    codes: Codes
    positive: bool
    truth: Mask
    against: Mask


@dataclass(frozen=True, slots=True)
class Part:
    """A stretch to plant: its letters, where it starts, and what it says of the class (1, 0 or -1)."""

    word: str
    start: int
    says: int


def scrambled(rng: np.random.Generator, word: str) -> str:
    """Give the letters of a word in an order that agrees with it at no more than half of its places."""
    while True:
        letters = rng.permutation(list(word))
        if sum(a == b for a, b in zip(letters, word, strict=True)) <= len(word) // 2:
            return "".join(letters)


def _place(rng: np.random.Generator, length: int) -> int:
    return int(rng.integers(0, LENGTH - length + 1))


def _apart(rng: np.random.Generator, first: str, second: str) -> tuple[int, int]:
    """Starts of two stretches in either order that don't overlap."""
    while True:
        one, two = _place(rng, len(first)), _place(rng, len(second))
        if one + len(first) <= two or two + len(second) <= one:
            return one, two


def _with_gap(rng: np.random.Generator, first: str, second: str, gap: int) -> tuple[int, int]:
    start = _place(rng, len(first) + gap + len(second))
    return start, start + len(first) + gap


def single(rng: np.random.Generator, positive: bool) -> list[Part]:
    """One word, or its letters in another order."""
    return [Part(WORD if positive else scrambled(rng, WORD), _place(rng, len(WORD)), int(positive))]


def pair(rng: np.random.Generator, positive: bool) -> list[Part]:
    """Two words at the right distance; or at another, or one of them alone."""
    kind = 0 if positive else int(rng.integers(1, 5))  # 1, 2: wrong distance; 3: first alone; 4: second alone
    gap = GAP if kind in (0, 3, 4) else int(rng.choice(OTHER_GAPS))
    first = scrambled(rng, FIRST) if kind == 4 else FIRST
    second = scrambled(rng, SECOND) if kind == 3 else SECOND
    one, two = _with_gap(rng, FIRST, SECOND, gap)
    return [Part(first, one, int(positive)), Part(second, two, int(positive))]


def suppressor(rng: np.random.Generator, positive: bool) -> list[Part]:
    """The activator alone; or neither, or with the suppressor."""
    both = not positive and bool(rng.integers(0, 2))
    active = positive or both
    one, two = _apart(rng, ACTIVATOR, SUPPRESSOR)
    first = ACTIVATOR if active else scrambled(rng, ACTIVATOR)
    second = SUPPRESSOR if both else scrambled(rng, SUPPRESSOR)
    return [Part(first, one, int(active)), Part(second, two, -int(both))]


TASKS: dict[str, Callable[[np.random.Generator, bool], list[Part]]] = {
    "single": single,
    "pair": pair,
    "suppressor": suppressor,
}
WORDS = {"single": (WORD,), "pair": (FIRST, SECOND), "suppressor": (ACTIVATOR, SUPPRESSOR)}


def plant(rng: np.random.Generator, parts: list[Part]) -> tuple[Codes, Mask, Mask]:
    """Put the parts into random letters; with the masks of what speaks for and against the class."""
    codes = rng.integers(0, 4, LENGTH).astype(np.uint8)
    truth, against = np.zeros(LENGTH, dtype=bool), np.zeros(LENGTH, dtype=bool)
    for part in parts:
        where = slice(part.start, part.start + len(part.word))
        codes[where] = DNA.encode(part.word)
        truth[where], against[where] = part.says > 0, part.says < 0
    return codes, truth, against


def _only_planted(codes: Codes, parts: list[Part], words: tuple[str, ...]) -> bool:
    """Say whether no word stands where none was planted: by chance, or across the ends of stretches."""
    return all(_count(codes, word) == sum(part.word == word for part in parts) for word in words)


def _count(codes: Codes, word: str) -> int:
    windows = np.lib.stride_tricks.sliding_window_view(codes, len(word))
    return int((windows == DNA.encode(word)).all(axis=1).sum())


def generate(task: str, count: int, seed: int) -> list[Planted]:
    """Make ``count`` records of a task, every other one positive."""
    rng = np.random.default_rng([seed, list(TASKS).index(task)])
    records: list[Planted] = []
    while len(records) < count:
        positive = len(records) % 2 == 0
        parts = TASKS[task](rng, positive)
        codes, truth, against = plant(rng, parts)
        if _only_planted(codes, parts, WORDS[task]):
            records.append(Planted(codes, positive, truth, against))
    return records


def labeled(records: list[Planted], split: str) -> list[LabeledSequence]:
    """Turn records into what training reads."""
    return [
        LabeledSequence(
            DNA.decode(r.codes), POSITIVE if r.positive else NEGATIVE, f"{split}-{i}", split=split
        )
        for i, r in enumerate(records)
    ]
