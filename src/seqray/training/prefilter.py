"""Training of prefilters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from scipy.special import expit, logit
from torch import Tensor, nn

from seqray.core.alphabet import reverse_complement_codes
from seqray.core.arrays import Codes, Floats, Ints
from seqray.core.card_parts import PrefilterFacts
from seqray.core.errors import ConfigError, InputError, OnProgress
from seqray.core.records import SequenceRecord
from seqray.core.serialization import from_mapping, to_mapping
from seqray.core.text import round_number
from seqray.core.version import __version__
from seqray.inference.origin import recognize_context
from seqray.inference.sequences import BatchSize, cascade_log_odds
from seqray.modelfile.model import TrainedModel
from seqray.models.prefilter import KERNEL, NARROW, STRIDE, WIDE, Prefilter, PrefilterSize, prefilter_shapes

# --- Windows drawn from genomes, with what a model says of each: what a prefilter learns from

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
    """N windows with what the model says: log-odds (N, M) after each member; and how many each stands for."""

    codes: Codes
    contexts: Ints
    by_member: Floats
    importance_weight: Floats

    @property
    def log_odds(self) -> Floats:
        """Of the positive class by all members, (N,)."""
        return self.by_member[:, -1]


# Where windows lie: their sequence, start and strand, and the context in which they are read.
_PLACES = np.dtype([(name, np.int64) for name in ("sequence", "start", "reverse", "context")])


class WindowSource:
    """Draws windows of both strands and scores them; ``letters`` counts the unambiguous ones to draw from."""

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
                f"{self.letters} unambiguous bases in sequences of {shortest} bases or more",
                remedy=f"a prefilter learns from {_MIN_LETTERS} or more: give genomes",
            )
        self._ambiguous_before = np.concatenate([[0], np.cumsum(ambiguous, dtype=np.int32)])
        self._lengths = np.array([len(record) for record in kept])
        self._offsets = np.cumsum(self._lengths) - self._lengths
        self._view = np.lib.stride_tricks.sliding_window_view(codes, self._window)
        homes = [recognize_context(model, [record])[0] for record in kept]
        self._homes = np.array([home.context_number for home in homes])

    def draw(self, count: int, *, held_out: bool, guess: Guess | None = None) -> DrawnWindows:
        """Draw windows from the last fifths of the sequences, or from before; by a guess, high ones."""
        places = self._evenly(count * (_POOL if guess else 1), held_out=held_out)
        importance_weight = np.ones(len(places))
        if guess is not None:
            guesses = np.concatenate(
                [guess(self._letters_at(part), part["context"]) for part in _parts(places)]
            )
            least = _MIN_HELD_OUT_CHANCE if held_out else _MIN_CHANCE
            chances = np.maximum(expit(guesses + _DOUBT), least)
            low, high = 0.0, count / chances.min()  # a factor with which their sum is the count
            for _ in range(60):
                middle = (low + high) / 2
                low, high = (middle, high) if np.minimum(1, middle * chances).sum() < count else (low, middle)
            chances = np.minimum(1, high * chances)
            chosen = np.flatnonzero(self._rng.random(len(guesses)) < chances)
            places, importance_weight = places[chosen], 1 / chances[chosen]
        by_member = np.concatenate([self._score(part) for part in _parts(places)]).clip(
            -_MAX_LOG_ODDS, _MAX_LOG_ODDS
        )
        return DrawnWindows(self._letters_at(places), places["context"], by_member, importance_weight)

    def _evenly(self, count: int, *, held_out: bool) -> np.ndarray:
        rng, contexts = self._rng, len(self._model.card.model.contexts)
        lengths = self._lengths
        cuts = np.rint(lengths * (1 - _HELD_OUT)).astype(np.int64)
        firsts, ends = (cuts, lengths) if held_out else (np.zeros_like(cuts), cuts)
        sizes = ends - firsts - self._window + 1
        sequence = rng.choice(len(sizes), count, p=sizes / sizes.sum())
        start = firsts[sequence] + rng.integers(0, sizes[sequence])
        kinds = (self._homes[sequence], np.zeros(count, np.int64), rng.integers(0, contexts + 1, count))
        context = np.choose(rng.choice(3, count, p=_READ_IN if held_out else _LEARNED_IN), kinds)
        places = np.empty(count, dtype=_PLACES)
        places["sequence"], places["start"], places["context"] = sequence, start, context
        places["reverse"] = rng.random(count) < 0.5
        first, before = self._offsets[sequence] + start, self._ambiguous_before
        ambiguous = before[first + self._window] - before[first]
        read = ambiguous <= _MAX_AMBIGUOUS_SHARE * self._window
        if not read.any():
            part = "last fifths" if held_out else "first four fifths"
            raise InputError(
                f"the {part} of the sequences contain only ambiguous bases", remedy="give genomes"
            )
        return places[read]

    def _letters_at(self, places: np.ndarray) -> Codes:
        codes = self._view[self._offsets[places["sequence"]] + places["start"]]
        reverse = places["reverse"].astype(bool)
        codes[reverse] = reverse_complement_codes(codes[reverse])
        return codes

    def _score(self, places: np.ndarray) -> Floats:
        """Log-odds of the positive class after each member."""
        codes, scores = self._letters_at(places), np.empty((len(places), self._model.card.members))
        names = (None, *self._model.card.model.contexts)
        for context in np.unique(places["context"]):
            model, rows = self._model.with_context(names[context]), places["context"] == context
            scores[rows] = cascade_log_odds(model, codes[rows], batch_size=self._batch_size)
        self._on_scored(len(places))
        return scores


def _parts(places: np.ndarray) -> list[np.ndarray]:
    return [places[start : start + _AT_ONCE] for start in range(0, len(places), _AT_ONCE)]


# --- Teach a prefilter: two small networks learn from a model which windows of genomes can reach a thresh

PREFILTER_FORMAT = 4  # a seqray that reads older cards only would find unknown tensors
_LEVELS = [round_number(x) for x in expit(np.arange(-3, 9, 0.5))]  # thresholds
_MIN_WINDOWS, _MAX_WINDOWS = 2000, 10_000_000
_MAX_LOST = 0.1
_MARGIN = 0.01  # log-odds: what the prefilter skips stays below the threshold by its own answer, too
_MIN_WINDOWS_ABOVE = 300  # that show what a level needs
_EVEN, _LIKELY, _MEASURED = 0.3, 0.5, 0.2  # shares of the windows
# Share of what may be lost, for each member but the last; of the rest, the share for the first network.
_LOST_BY_MEMBER, _LOST_BY_FIRST = 0.1, 0.3
_EPOCHS, _BATCH, _DECAY = (4, 10), 1024, 1e-2  # epochs of the guess, and of the prefilter
_RATES = {NARROW: 8e-3, WIDE: 4e-3}
_UNDERESTIMATE = 10.0  # weight of the squared errors that set the cutoffs


def teach_prefilter(
    model: TrainedModel,
    records: Sequence[SequenceRecord],
    *,
    windows: int = 400_000,
    lost: float = 0.001,
    batch_size: BatchSize = "auto",
    seed: int = 0,
    measure_only: bool = False,
    on_progress: OnProgress | None = None,
) -> TrainedModel:
    """The same model of windows with a prefilter, with which scans score far fewer windows.

    ``lost`` is the share of windows at or above a level that it may skip; ``measure_only`` keeps the old one.
    """
    _check(model, windows, lost, measure_only)
    done = 0

    def on_scored(count: int) -> None:
        nonlocal done
        done = min(done + count, windows)
        if on_progress is not None:
            on_progress(done, windows, "score windows")

    source = WindowSource(model, records, seed, batch_size, on_scored)
    if model.prefilter and measure_only:
        networks = [_Network.of(one) for one in model.prefilter.networks]
        held_out = source.draw(windows, held_out=True, guess=networks[-1].answers)
        facts = to_mapping(model.card.prefilter)
    else:
        even = source.draw(round(windows * _EVEN), held_out=False)
        guess = _fit(model, [even], WIDE, _EPOCHS[0], seed, on_progress)
        likely = source.draw(round(windows * _LIKELY), held_out=False, guess=guess.answers)
        narrow, wide = networks = [
            _fit(model, [even, likely], size, _EPOCHS[1], seed, on_progress) for size in (NARROW, WIDE)
        ]
        held_out = source.draw(round(windows * _MEASURED), held_out=True, guess=wide.answers)
        facts = {"learned_from": len(even.codes) + len(likely.codes), "letters": source.letters, "seed": seed}
        second = Prefilter(wide.arrays(), model.card.window)
        model = replace(model, prefilter=Prefilter(narrow.arrays(), model.card.window, second))
    answers = np.column_stack([one.answers(held_out.codes, held_out.contexts) for one in networks])
    measured = _measure(answers, held_out, lost, sorted({*_LEVELS, model.card.scan_threshold}))
    card = replace(
        model.card,
        format=PREFILTER_FORMAT,
        seqray_version=__version__,
        prefilter=from_mapping(PrefilterFacts, facts | measured, "prefilter"),
    )
    return replace(model, card=card)


def _check(model: TrainedModel, windows: int, lost: float, measure_only: bool) -> None:
    """Refuse a model that can have no prefilter, or has none to measure, and amounts that are too small."""
    if measure_only and model.prefilter is None:
        raise ConfigError(
            f"the model '{model.card.name}' has no prefilter",
            remedy="'seqray prefilter' without --measure-only makes one",
        )
    if not _MIN_WINDOWS <= windows <= _MAX_WINDOWS:
        raise ConfigError(f"a prefilter learns from {_MIN_WINDOWS} to {_MAX_WINDOWS} windows, not {windows}")
    if not 0 <= lost <= _MAX_LOST:
        raise ConfigError(f"a prefilter loses at most {_MAX_LOST:g} of the windows, not {lost:g}")
    model.check_reads_sequences()
    if not model.alphabet.is_nucleotide:
        raise ConfigError(f"the model '{model.card.name}' reads {model.alphabet.name}, which is not scanned")
    if model.card.window < KERNEL:
        what = f"the windows of '{model.card.name}' are too short"
        raise ConfigError(f"{what}: a prefilter reads {KERNEL} bases or more")


class _Network(nn.Module):
    """The network of `seqray.models.prefilter.Prefilter`, window by window, as torch trains it."""

    def __init__(self, shapes: dict[str, tuple[int, ...]]) -> None:
        super().__init__()
        self.weights = nn.ParameterDict()
        for name, shape in shapes.items():
            value = torch.zeros(shape)
            if name in ("convolution", "first", "second", "out"):
                bound = float(np.prod(shape[:-1] or shape)) ** -0.5
                nn.init.uniform_(value, -bound, bound)
            self.weights[name] = nn.Parameter(value + 1 if name == "gain" else value)

    @classmethod
    def of(cls, prefilter: Prefilter) -> _Network:
        """With the weights of a prefilter."""
        network = cls({name: value.shape for name, value in prefilter.weights.items()})
        with torch.no_grad():
            for name, value in prefilter.weights.items():
                network.weights[name].copy_(torch.from_numpy(value))
        return network

    def answers(self, codes: Codes, contexts: Ints) -> Floats:
        """Codes (N, W) and numbers of contexts (N,) to log-odds (N,)."""
        pairs = zip(
            torch.from_numpy(codes).split(_BATCH), torch.from_numpy(contexts).split(_BATCH), strict=True
        )
        with torch.inference_mode():
            return torch.cat([self(*pair) for pair in pairs]).double().numpy()

    def arrays(self) -> dict[str, npt.NDArray[np.float32]]:
        """The weights."""
        return {name: value.detach().numpy() for name, value in self.weights.items()}

    def forward(self, codes: Tensor, contexts: Tensor) -> Tensor:
        """Codes (B, W) and numbers of contexts (B,) to log-odds (B,)."""
        weights = self.weights
        known = weights["convolution"].shape[1]
        letters = F.one_hot(codes.long().clamp(max=known), known + 1)[..., :known].float()
        windows = letters.unfold(1, KERNEL, STRIDE).transpose(2, 3).flatten(2)  # (B, J, K·A)
        found = F.relu(windows @ weights["convolution"].flatten(0, 1) + weights["convolution_bias"])
        found = found.flatten(1) * F.embedding(contexts, weights["gain"].flatten(1))  # (B, J·C)
        bias = F.embedding(contexts, weights["first_bias"])
        hidden = F.relu(found @ weights["first"].flatten(0, 1) + bias)
        hidden = F.relu(hidden @ weights["second"] + weights["second_bias"])
        return hidden @ weights["out"] + weights["out_bias"][contexts]


def _fit(
    model: TrainedModel,
    drawn: Sequence[DrawnWindows],
    size: PrefilterSize,
    epochs: int,
    seed: int,
    on_progress: OnProgress | None,
) -> _Network:
    card, letters = model.card, len(model.alphabet.letters)
    codes = torch.from_numpy(np.concatenate([one.codes for one in drawn]))
    contexts = torch.from_numpy(np.concatenate([one.contexts for one in drawn]))
    targets = torch.from_numpy(np.concatenate([one.log_odds for one in drawn]).astype(np.float32))
    with torch.random.fork_rng(devices=[]), torch.enable_grad():
        torch.manual_seed(seed)
        network = _Network(prefilter_shapes(card.window, letters, len(card.model.contexts), size))
        optimizer = torch.optim.AdamW(network.parameters(), lr=_RATES[size], weight_decay=_DECAY)
        steps = epochs * -(-len(codes) // _BATCH)
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, _RATES[size], total_steps=steps)
        for step in range(steps):
            rows = torch.randint(len(codes), (_BATCH,))
            loss = _loss(
                network(codes[rows], contexts[rows]), targets[rows], float(logit(card.scan_threshold))
            )
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            if on_progress is not None:
                on_progress((step + 1) * _BATCH, steps * _BATCH, "train the prefilter")
    return network


def _loss(answers: Tensor, wanted: Tensor, level: float) -> Tensor:
    """Of log-odds (B,): windows that may be called matter most, and what is given too little there."""
    weights = 1 + 4 * torch.sigmoid(wanted + 1)
    errors = weights * F.huber_loss(answers, wanted, reduction="none")
    too_low = (wanted - answers).clamp(min=0) * torch.sigmoid(2 * (wanted - level + 1))
    return (errors + _UNDERESTIMATE * too_low.square()).mean()


def _measure(
    answers: Floats, held_out: DrawnWindows, most_lost: float, levels: Sequence[float]
) -> dict[str, Any]:
    """For each level: the cutoffs for answers (N, P), and the share of windows that pass the prefilter."""
    weights, networks = held_out.importance_weight, answers.shape[1]
    values = np.column_stack((answers, held_out.by_member[:, :-1]))
    members = values.shape[1] - networks
    rest = 1 - _LOST_BY_MEMBER * members
    shares = [rest] if networks == 1 else [_LOST_BY_FIRST * rest, (1 - _LOST_BY_FIRST) * rest]
    shares += [_LOST_BY_MEMBER] * members
    rows, others, above = [], [], np.arange(len(answers))
    for level in levels:
        above = above[held_out.log_odds[above] >= logit(level)]
        if len(above) < _MIN_WINDOWS_ABOVE:
            break
        highest = float(logit(level)) - _MARGIN
        cutoffs = []
        for column, share in zip(values[above].T, shares, strict=True):
            order = np.argsort(column, kind="stable")
            below = np.cumsum(weights[above][order])
            place = np.searchsorted(below, most_lost * share * below[-1], side="right")
            cutoffs.append(round_number(min(float(column[order[place]]), highest)))
        passed = (answers >= cutoffs[:networks]).all(axis=1)
        rows.append([level, cutoffs[0], round_number(float(weights[passed].sum() / weights.sum()))])
        others.append(cutoffs[1:])
    if not rows:
        raise InputError(
            f"of {len(answers)} windows {len(above)} reach {levels[0]:g}, too few to measure a prefilter",
            remedy="give genomes with more sites, or more windows",
        )
    facts: dict[str, Any] = {"levels": rows}
    if networks > 1:
        facts["second"] = [row[0] for row in others]
    if values.shape[1] > networks:
        facts["members"] = [row[networks - 1 :] for row in others]
    return facts | {"lost": most_lost, "measured_on": len(answers)}
