"""Windows drawn from genomes, with what a model says of each: what a prefilter learns from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from seqray.core import Bools, Codes, Floats, InputError, Ints, SequenceRecord, reverse_complement_codes
from seqray.inference import BatchSize, cascade_log_odds, recognize_context
from seqray.modelfile import TrainedModel

Guess = Callable[[Codes, Ints], Floats]
"""Codes (N, W) and numbers of contexts (N,) to log-odds (N,), as a first prefilter guesses them."""
_POOL = 12  # windows of which one is chosen
_DOUBT = 1.0  # log-odds by which a guess may be too low
# Chance of a window with a low guess, beside one with a high one. It is larger where the prefilter is
# measured, for there no window may stand for many.
_MIN_CHANCE, _MIN_HELD_OUT_CHANCE = 0.01, 0.1
_HELD_OUT = 0.2  # the last part of each sequence
_MIN_LETTERS = 10_000
_MIN_LENGTH_IN_WINDOWS = 20
_MAX_AMBIGUOUS_SHARE = 0.1  # of a window; a scan leaves those with more out, too
_MAX_LOG_ODDS = 13.8  # those further from 0 teach no more
_AT_ONCE = 1 << 14
# Shares of windows read in their own context, in none, in any: where losses are measured, and to learn from.
_READ_IN, _LEARNED_IN = (0.5, 0.5, 0.0), (0.4, 0.4, 0.2)


@dataclass(frozen=True)
class DrawnWindows:
    """Windows with what the model says of them.

    Attributes
    ----------
    contexts
        (N,) number of the context in which each is read, from 1; 0 for none.
    by_member
        (N, M) log-odds of the positive class after each member, as the model calibrates them.
    importance_weight
        (N,) how many of the pool each stands for.
    """

    codes: Codes
    contexts: Ints
    by_member: Floats
    importance_weight: Floats

    @property
    def log_odds(self) -> Floats:
        """Of the positive class by all members, (N,)."""
        return self.by_member[:, -1]


@dataclass(frozen=True)
class _Places:
    """Where windows lie (N,): their sequence, start and strand, and the context in which they are read."""

    sequence: Ints
    start: Ints
    reverse: Bools
    context: Ints

    def __len__(self) -> int:
        return len(self.start)

    def __getitem__(self, rows: slice | Ints | Bools) -> _Places:
        return _Places(self.sequence[rows], self.start[rows], self.reverse[rows], self.context[rows])


class WindowSource:
    """Draws windows of both strands, and lets a model score them.

    The model is one of windows of nucleotides. Sequences shorter than 20 windows are left out; InputError is
    raised for too few letters. ``on_scored`` is called with the number of windows that have been scored, and
    ``letters`` counts the unambiguous ones that windows are drawn from.
    """

    def __init__(
        self,
        model: TrainedModel,
        records: Sequence[SequenceRecord],
        seed: int,
        batch_size: BatchSize,
        on_scored: Callable[[int], None],
    ) -> None:
        self._model, self._rng, self._window = model, np.random.default_rng(seed), model.card.window
        self._batch_size: BatchSize = batch_size
        self._on_scored = on_scored
        shortest = _MIN_LENGTH_IN_WINDOWS * self._window
        kept = [record for record in records if len(record) >= shortest]
        encoded = [model.alphabet.encode(record.sequence) for record in kept]
        codes = np.concatenate([np.empty(0, np.uint8), *encoded])
        ambiguous = codes == model.alphabet.unknown
        self.letters = len(codes) - int(ambiguous.sum())
        if self.letters < _MIN_LETTERS:
            raise InputError(
                f"{self.letters} unambiguous letters in sequences of {shortest} letters or more",
                remedy=f"a prefilter learns from {_MIN_LETTERS} or more: give genomes",
            )
        self._ambiguous_before = np.concatenate([[0], np.cumsum(ambiguous, dtype=np.int32)])
        self._lengths = np.array([len(record) for record in kept])
        self._offsets = np.cumsum(self._lengths) - self._lengths
        self._view = np.lib.stride_tricks.sliding_window_view(codes, self._window)
        homes = [recognize_context(model, [record])[0] for record in kept]
        self._homes = np.array([home.context_number for home in homes])

    def draw(self, count: int, *, held_out: bool, guess: Guess | None = None) -> DrawnWindows:
        """Draw windows from the last fifths of the sequences, or from what is before those.

        Windows of ambiguous letters are left out, so that there may be fewer.
        With a guess, windows that may score high are likelier to be drawn, from a pool 12 times as large, and
        about ``count`` are drawn.
        """
        places = self._evenly(count * (_POOL if guess else 1), held_out=held_out)
        importance_weight = np.ones(len(places))
        if guess is not None:
            guesses = np.concatenate([guess(self._letters_at(part), part.context) for part in _parts(places)])
            least = _MIN_HELD_OUT_CHANCE if held_out else _MIN_CHANCE
            chances = _scaled(np.maximum(expit(guesses + _DOUBT), least), count)
            chosen = np.flatnonzero(self._rng.random(len(guesses)) < chances)
            places, importance_weight = places[chosen], 1 / chances[chosen]
        by_member = np.concatenate([self._score(part) for part in _parts(places)]).clip(
            -_MAX_LOG_ODDS, _MAX_LOG_ODDS
        )
        return DrawnWindows(self._letters_at(places), places.context, by_member, importance_weight)

    def _evenly(self, count: int, *, held_out: bool) -> _Places:
        rng, contexts = self._rng, len(self._model.card.model.contexts)
        lengths = self._lengths
        cuts = np.rint(lengths * (1 - _HELD_OUT)).astype(np.int64)
        firsts, ends = (cuts, lengths) if held_out else (np.zeros_like(cuts), cuts)
        sizes = ends - firsts - self._window + 1
        sequence = rng.choice(len(sizes), count, p=sizes / sizes.sum())
        start = firsts[sequence] + rng.integers(0, sizes[sequence])
        kinds = (self._homes[sequence], np.zeros(count, np.int64), rng.integers(0, contexts + 1, count))
        context = np.choose(rng.choice(3, count, p=_READ_IN if held_out else _LEARNED_IN), kinds)
        places = _Places(sequence, start, rng.random(count) < 0.5, context)
        first, before = self._offsets[sequence] + start, self._ambiguous_before
        ambiguous = before[first + self._window] - before[first]
        read = ambiguous <= _MAX_AMBIGUOUS_SHARE * self._window
        if not read.any():
            part = "last fifths" if held_out else "first four fifths"
            raise InputError(
                f"the {part} of the sequences contain only ambiguous letters", remedy="give genomes"
            )
        return places[read]

    def _letters_at(self, places: _Places) -> Codes:
        codes = self._view[self._offsets[places.sequence] + places.start]
        codes[places.reverse] = reverse_complement_codes(codes[places.reverse])
        return codes

    def _score(self, places: _Places) -> Floats:
        """Log-odds of the positive class after each member."""
        codes, scores = self._letters_at(places), np.empty((len(places), self._model.card.members))
        names = (None, *self._model.card.model.contexts)
        for context in np.unique(places.context):
            model, rows = self._model.with_context(names[context]), places.context == context
            scores[rows] = cascade_log_odds(model, codes[rows], batch_size=self._batch_size)
        self._on_scored(len(places))
        return scores


def _parts(places: _Places) -> list[_Places]:
    return [places[start : start + _AT_ONCE] for start in range(0, len(places), _AT_ONCE)]


def _scaled(chances: Floats, count: int) -> Floats:
    """Multiply chances by a number, at most to 1 each, so that their sum is a count."""
    low, high = 0.0, count / chances.min()
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if np.minimum(1, middle * chances).sum() < count else (low, middle)
    return np.minimum(1, high * chances)
