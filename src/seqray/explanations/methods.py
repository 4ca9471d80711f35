"""The ways to score letters, and the columns and rows of an alignment: one function each, and their table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from seqray.core.alphabet import Alphabet
from seqray.core.arrays import Codes, Floats, Ints
from seqray.core.errors import setting
from seqray.core.explanation import AlignmentScores
from seqray.explanations import rollout as roll
from seqray.explanations.checks import AT_ONCE, shuffled_copies
from seqray.explanations.options import COLUMN_BLOCK, LETTER_BLOCK, MethodSettings
from seqray.explanations.targets import AlignmentTarget, LetterTarget
from seqray.explanations.trace import Trace, trace
from seqray.modelfile.model import TrainedModel

REFERENCES = 4  # shuffled copies that occlusion takes letters from

# --- Scores of letters: (target, codes (N, n) of one length, settings) to (N, n)


def _rollout(target: LetterTarget, codes: Codes, s: MethodSettings) -> Floats:
    return target.shares(codes, s.spread, lambda t: roll.rollout(t, residual=s.residual, heads=s.heads))


def _grad_rollout(target: LetterTarget, codes: Codes, s: MethodSettings) -> Floats:
    return target.shares(codes, s.spread, _gradient_relevance(target, s), gradients=True)


def _gradient_relevance(
    target: LetterTarget | AlignmentTarget, s: MethodSettings
) -> Callable[[Trace], Tensor]:
    return lambda t: roll.grad_rollout(t, target.of_logits(t.logits), residual=s.residual)


def _value_rollout(target: LetterTarget, codes: Codes, s: MethodSettings) -> Floats:
    return target.shares(codes, s.spread, lambda t: roll.value_rollout(t, residual=s.residual))


def substitution_effects(codes: Codes, alphabet: Alphabet, score: Callable[[Codes], Floats]) -> Floats:
    """Effect of each substitution, codes (N, n) to (N, n, A): 0 for the same, nan for ambiguous ones."""
    letters = len(alphabet.letters)
    before = score(codes)
    effects = np.full((*codes.shape, letters), np.nan)
    is_letter = codes < letters
    effects[is_letter] = 0.0
    places = np.argwhere(is_letter)  # (S, 2): row, place
    at_once = max(1, AT_ONCE // codes.shape[1])
    for shift in range(1, letters):  # to each of the other letters in turn
        for start in range(0, len(places), at_once):
            row, place = places[start : start + at_once].T
            letter = (codes[row, place] + shift) % letters
            mutants = codes[row]
            mutants[np.arange(len(row)), place] = letter
            effects[row, place, letter] = score(mutants) - before[row]
    return effects


def loss_of_letters(effects: Floats) -> Floats:
    """Minus the mean effect of the other letters: (..., n, A) to (..., n); 0 for an ambiguous letter."""
    return np.nan_to_num(-effects.sum(axis=-1) / (effects.shape[-1] - 1))


def occlusion(
    codes: Codes, alphabet: Alphabet, score: Callable[[Codes], Floats], *, block: int = LETTER_BLOCK
) -> Floats:
    """Fall of the score (N, n) when shuffled letters replace a stretch, the mean over those of a letter."""
    rows = [_occlude(row, score, min(block, len(row)), alphabet.is_nucleotide) for row in codes]
    return np.where(codes < len(alphabet.letters), np.array(rows).reshape(codes.shape), 0.0)


def _occlude(codes: Codes, score: Callable[[Codes], Floats], block: int, paired: bool) -> Floats:
    starts, places = _stretches(len(codes), block), np.arange(block)
    falls, before = np.zeros(len(starts)), float(score(codes[None])[0])
    at_once = max(1, AT_ONCE // len(codes))
    for shuffled in shuffled_copies(codes, REFERENCES, paired=paired):
        for first in range(0, len(starts), at_once):
            some = slice(first, first + at_once)
            changed = starts[some, None] + places  # (S, block)
            hidden = np.tile(codes, (len(changed), 1))
            np.put_along_axis(hidden, changed, shuffled[changed], axis=1)
            falls[some] += (before - score(hidden)) / REFERENCES
    return _mean_over_stretches(falls, starts, block)


def _stretches(length: int, block: int) -> Ints:
    """Starts of stretches, half a block apart, that cover every place."""
    last = length - block
    return np.unique(np.append(np.arange(0, last + 1, max(1, block // 2)), last))


def _mean_over_stretches(falls: Floats, starts: Ints, block: int) -> Floats:
    """Falls (S,) of the stretches to the mean at each place (n,)."""
    places = (starts[:, None] + np.arange(block)).ravel()
    return np.bincount(places, np.repeat(falls, block)) / np.bincount(places)


# --- Scores of alignments: (target, settings) to those of columns (C,), rows (R,) and cells (R, C), if any

Profiles = tuple[Floats, Floats, Floats | None]


def _profiles(grid: Floats) -> Profiles:
    return grid.sum(axis=0), grid.sum(axis=1), grid


def occlude_columns(target: AlignmentTarget, block: int = 1) -> Floats:
    """Fall of the log-odds when the mask token hides a column in all rows: (C,), mean over the stretches."""
    columns = target.tokens.shape[1] - 1
    block = min(block, columns)
    starts, place = _stretches(columns, block), np.arange(columns)
    hidden = (place >= starts[:, None]) & (place < starts[:, None] + block)  # (S, C)
    before = target.of_hidden(np.zeros((1, columns), dtype=bool))
    return _mean_over_stretches(before - target.of_hidden(hidden), starts, block)


def leave_rows_out(target: AlignmentTarget) -> Floats:
    """Fall of the log-odds when a row is left out: (R,); nan for the query, and where no letter remains."""
    rows, letters = len(target.tokens), target.letters().sum(axis=1)
    falls = np.full(rows, np.nan)
    out = np.flatnonzero((letters.sum() > letters) & (np.arange(rows) > 0))
    if len(out):
        every = np.ones((1, rows), dtype=bool)
        falls[out] = target.of_rows(every) - target.of_rows(~np.eye(rows, dtype=bool)[out])
    return falls


# --- The table of methods


@dataclass(frozen=True, slots=True)
class Method:
    """One way to explain."""

    # (target, codes (N, n) of one length, settings) to scores of the letters (N, n)
    score: Callable[[LetterTarget, Codes, MethodSettings], Floats]
    # whether a score below 0 is evidence against the class; if not, scores are shares that sum to 1
    signed: bool = True
    # whether it changes letters and predicts again, so that it sees all that a model reads
    predicts: bool = False


METHODS = {
    "rollout": Method(_rollout, signed=False),
    "grad-rollout": Method(_grad_rollout, signed=False),
    "value-rollout": Method(_value_rollout, signed=False),
    "input-x-gradient": Method(lambda target, codes, s: target.effects(codes)),
    "integrated-gradients": Method(lambda target, codes, s: target.effects(codes, s.steps)),
    "linear": Method(lambda target, codes, s: target.linear_terms(codes)),
    "ism": Method(
        lambda target, codes, s: loss_of_letters(member_effects([target], codes)[0]), predicts=True
    ),
    "occlusion": Method(
        lambda t, codes, s: occlusion(codes, t.model.alphabet, t.of_codes, block=s.block or LETTER_BLOCK),
        predicts=True,
    ),
}
GENERAL_METHODS = tuple(name for name in METHODS if name != "linear")  # for every network of sequences
OF_ALIGNMENTS: dict[str, Callable[[AlignmentTarget, MethodSettings], Profiles]] = {
    "rollout": lambda target, s: _profiles(target.shares(lambda t: roll.rollout(t, residual=s.residual))),
    "grad-rollout": lambda t, s: _profiles(t.shares(_gradient_relevance(t, s), gradients=True)),
    "occlusion": lambda target, s: (
        occlude_columns(target, s.block or COLUMN_BLOCK),
        leave_rows_out(target),
        None,
    ),
}


@torch.inference_mode(False)
@torch.enable_grad()
def method_cautions(model: TrainedModel, methods: Sequence[str]) -> list[str]:
    """What of a model some methods can't show."""
    settings, name, cautions = model.card.model, f"model '{model.card.name}'", []
    blind = [method for method in methods if not METHODS[method].predicts and method != "linear"]
    known = OF_ALIGNMENTS if settings.reads_alignments else METHODS
    seeing = " and ".join(method for method in known if METHODS[method].predicts)
    of_linear = f"k-mers and their places by a linear part ({setting('method', 'linear')})"
    of_linear = "k-mers, ends and helices by a linear part" if settings.reads_alignments else of_linear
    of_all = "the composition of the sequence beside its attention"
    for part in filter(None, (settings.composition and of_all, settings.linear and of_linear)):
        if blind:
            cautions.append(f"{name} reads {part}, and {', '.join(blind)} can't show that part; use {seeing}")
    of_start = [method for method in methods if method in ("rollout", "value-rollout")]
    if of_start and settings.kind == "own":
        codes = np.arange(min(model.card.window, 50), dtype=np.uint8) % len(model.alphabet.letters)
        tokens = torch.from_numpy(model.tokenizer.encode_codes(codes[None])).to(model.device)
        if trace(model.networks[0], tokens, gradients=True).complete is False:
            cautions.append(
                f"{name} reads other tokens than the first, explained by {' and '.join(of_start)}; "
                "give its module a method 'tokens_read', or use grad-rollout"
            )
    return cautions


def member_effects(targets: Sequence[LetterTarget], codes: Codes) -> Floats:
    """Changes of the log-odds by all substitutions, of each member: (M, N, n, A)."""
    return np.stack([substitution_effects(codes, t.model.alphabet, t.of_codes) for t in targets])


@torch.inference_mode(False)
@torch.enable_grad()  # also where the caller computes without gradients
def member_scores(
    targets: Sequence[LetterTarget],
    codes: Codes,
    method: str,
    settings: MethodSettings,
    effects: Floats | None = None,
) -> Floats:
    """Scores of all letters by each member: (M, N, n); ism takes the `member_effects` if given."""
    if method == "ism" and effects is not None:
        return loss_of_letters(effects)
    return np.stack([METHODS[method].score(target, codes, settings) for target in targets])


@torch.inference_mode(False)
@torch.enable_grad()
def score_alignment(targets: list[AlignmentTarget], name: str, settings: MethodSettings) -> AlignmentScores:
    """Score an alignment by a method that explains alignments: the mean over the members of a model."""
    profiles = (OF_ALIGNMENTS[name](target, settings) for target in targets)
    columns, rows, grids = zip(*profiles, strict=True)
    grid = None if grids[0] is None else np.mean(grids, axis=0)
    return AlignmentScores(name, METHODS[name].signed, np.mean(columns, axis=0), np.mean(rows, axis=0), grid)
