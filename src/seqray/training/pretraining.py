"""Pretraining by masked letters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from seqray.core.alphabet import ALPHABETS
from seqray.core.errors import ConfigError, InputError
from seqray.core.records import Alignment, Example, LabeledSequence
from seqray.core.run_config import AugmentConfig, RunConfig, StoppingConfig
from seqray.core.text import round_number
from seqray.modelfile.file import build_network, count_parameters
from seqray.modelfile.initial_weights import save_pretrained
from seqray.models.alignment import AxialTransformer
from seqray.models.sequence import Network, SequenceTransformer
from seqray.models.tokenizers import FIRST_LETTER, MASK
from seqray.training.data import BatchKey, Examples, LabeledBatch, TrainingData, encode
from seqray.training.members import RunOptions, fit_member
from seqray.training.module import NetworkModule, scheduled_adamw
from seqray.training.partitions import data_sha256
from seqray.training.trainer import is_main_process, make_trainer, quiet

# --- Batches with masked letters, for pre-training

IGNORED = -100  # the index that `torch.nn.functional.cross_entropy` leaves out
_MASKED, _CHANGED = 0.8, 0.1


class MaskedBatch(NamedTuple):
    """Tokens (B, 1 + N) with masked letters, the masks of the network, and the letters to guess (B, N).

    For alignments (B, R, 1 + C) and (B, R, C). ``hidden`` holds letter codes, and `IGNORED` elsewhere.
    """

    tokens: Tensor
    masks: tuple[Tensor | None, ...]
    hidden: Tensor


def mask_letters(
    tokens: np.ndarray, share: float, letters: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Mask known letters of tokens (B, N) with probability ``share``; tokens to read, letters to guess."""
    known = (tokens >= FIRST_LETTER) & (tokens < FIRST_LETTER + letters)
    draw = np.where(known, rng.random(tokens.shape), 2.0)
    chosen = draw < share
    first = draw.argmin(axis=1)  # a sequence of which chance chose nothing gives its lowest draw
    rows = np.flatnonzero(~chosen.any(axis=1) & known.any(axis=1))
    chosen[rows, first[rows]] = True
    hidden = np.where(chosen, tokens - FIRST_LETTER, IGNORED)
    fate = rng.random(tokens.shape)
    other = FIRST_LETTER + rng.integers(letters, size=tokens.shape)
    changed = np.where(chosen & (fate < _MASKED), MASK, tokens)
    changed = np.where(chosen & (fate >= _MASKED) & (fate < _MASKED + _CHANGED), other, changed)
    return changed, hidden


def hide_letters(data: Examples, batch: LabeledBatch, rng: np.random.Generator, share: float) -> MaskedBatch:
    """A batch of ``data`` with a share of its letters hidden."""
    tokens = batch.tokens.numpy()
    body = tokens[..., 1:]
    lines = body.reshape(-1, body.shape[-1])  # of an alignment (B, R, C) -> (B·R, C)
    masked = mask_letters(lines, share, len(data.letter_counts()), rng)
    changed, hidden = (part.reshape(body.shape) for part in masked)
    tokens = np.concatenate((tokens[..., :1], changed), axis=-1)
    return MaskedBatch(torch.from_numpy(tokens), batch.masks, torch.from_numpy(hidden))


# --- Pre-training without labels: the network predicts hidden letters from their context

HELD_OUT = 0.05
MIN_EXAMPLES = 20  # windows or alignments
MIN_PIECE_SHARE = 0.25  # of a window: a shorter rest of a record is left out


class PretrainResult(NamedTuple):
    """A network of the best epoch, whose head has learned nothing, and figures on what is held out."""

    network: Network
    facts: dict[str, Any]  # ``loss`` is in nats a letter, ``floor_loss`` that of the shares of letters alone


class MaskedLetters(NetworkModule):
    """A network with a linear map from each token to the letters that it represents."""

    network: SequenceTransformer | AxialTransformer  # by the checks of `pretrain`

    def __init__(self, config: RunConfig, seed: int) -> None:
        super().__init__(config, seed, build_network(config.model))
        self.letters = len(ALPHABETS[config.model.alphabet].letters)
        self.guess = nn.Linear(config.model.d_model, self.network.embedding.stride * self.letters)

    def forward(self, tokens: Tensor, *masks: Tensor | None) -> Tensor:
        """Tokens (..., 1 + N) and their masks to scores (..., N, letters)."""
        states = self.network.states(tokens, *masks)[..., 1:, :]  # (..., T, D)
        scores = self.guess(states).unflatten(-1, (-1, self.letters))  # (..., T, s, letters)
        return scores.flatten(-3, -2)[..., : tokens.shape[-1] - 1, :]  # (..., T·s, letters)

    def training_step(self, batch: MaskedBatch, number: int) -> Tensor:
        self.seed_step(number)
        scores = self(batch.tokens, *batch.masks).float()
        loss = F.cross_entropy(scores.flatten(0, -2), batch.hidden.flatten(), ignore_index=IGNORED)
        self.add_train_loss(loss, len(batch.tokens))
        return loss

    def on_validation_epoch_start(self) -> None:
        self._sums = torch.zeros(3, dtype=torch.float64)  # loss, right guesses, guesses

    def validation_step(self, batch: MaskedBatch, _: int) -> None:
        scores, hidden = self(batch.tokens, *batch.masks).float().flatten(0, -2), batch.hidden.flatten()
        loss = F.cross_entropy(scores, hidden, ignore_index=IGNORED, reduction="sum")
        asked = hidden != IGNORED
        right = (scores.argmax(dim=1) == hidden)[asked].sum()
        self._sums += torch.tensor([float(loss), float(right), float(asked.sum())], dtype=torch.float64)

    def on_validation_epoch_end(self) -> None:
        sums = self.trainer.strategy.reduce(self._sums.to(self.device), reduce_op="sum")
        assert isinstance(sums, Tensor)
        loss, right, asked = (float(value) for value in sums)
        self.check_finite(loss, "pre-training")
        self.log_figures({"loss": loss / asked, "accuracy": right / asked})

    def configure_optimizers(self) -> Any:
        return scheduled_adamw(self, self.config, int(self.trainer.estimated_stepping_batches))


class MaskedData(TrainingData):
    """Batches with letters hidden; those that are held out always the same letters."""

    def __init__(self, train: Examples, validation: Examples, config: RunConfig, share: float) -> None:
        super().__init__(train, validation, config, config.seed)
        self.share = share

    def read_training(self, rank: int, key: BatchKey) -> MaskedBatch:
        # No letter is changed but those to guess; alignments are still read by other rows each time.
        unchanged = AugmentConfig(query=self.config.augment.query)
        return hide_letters(self.train, *self.train.draw(key, unchanged, self.seed, rank), self.share)

    def read_validation(self, key: BatchKey) -> MaskedBatch:
        return hide_letters(self.validation, *self.validation.draw(key, None, self.seed + 1), self.share)


def split_windows(sequence: str, window: int) -> list[str]:
    """Cut a sequence into windows end to end; a rest that is too short is left out.

    Windows don't overlap: some are held out, and must not be read in others.

    >>> split_windows("ACGTACGTAC", 4)
    ['ACGT', 'ACGT', 'AC']
    """
    pieces = [sequence[i : i + window] for i in range(0, len(sequence), window)]
    return pieces[:1] + [piece for piece in pieces[1:] if len(piece) >= MIN_PIECE_SHARE * window]


def pretrain(
    config: RunConfig,
    data: Sequence[str] | Sequence[Alignment],
    out: Path | None,
    run: RunOptions,
    *,
    share: float = 0.15,
) -> PretrainResult:
    """Train a network to predict a ``share`` of letters, hidden in windows, and save its weights."""
    if config.model.backbone is not None:
        raise ConfigError("pre-training is for seqray's own networks, not for 'model.kind: backbone'")
    if config.model.is_locator:
        raise ConfigError("pre-training is not for models for genomes, which learn genes and sites together")
    if config.model.tokenizer != "character":
        raise ConfigError("pre-training is for the character tokenizer ('model.tokenizer')")
    if not 0 < share < 1:
        raise ConfigError(f"the share of hidden letters is {share}", remedy="give one between 0 and 1")
    run.use_threads()
    examples = _examples(data, config.data.window, config.model.alphabet)
    if len(examples) < MIN_EXAMPLES:
        what = "windows" if config.model.reads_sequences else "alignments"
        raise InputError(
            f"too few different {what} to learn from: {len(examples)}", remedy=f"give {MIN_EXAMPLES} or more"
        )
    config = replace(config, stopping=StoppingConfig(monitor="loss", patience=config.stopping.patience))
    order = np.random.default_rng(config.seed).permutation(len(examples))
    held = max(1, round(HELD_OUT * len(examples)))
    none = np.zeros(len(examples), dtype=np.int64)  # labels, which there are none of
    train_set, held_out = (encode(examples, none, rows, config) for rows in (order[held:], order[:held]))
    folder = run.folder(config, ("pre-training", str(share)), data_sha256(examples))
    config = replace(config, optimizer=replace(config.optimizer, ema=0.0))  # weights are not averaged here

    def build(seed: int) -> tuple[MaskedLetters, MaskedData]:
        return MaskedLetters(config, seed), MaskedData(train_set, held_out, config, share)

    with quiet(config):
        make_trainer(config, folder.path)  # settings that Lightning refuses, before any work
        run.claim(folder, 1)
        network, result = fit_member(config, 1, folder, build, progress=run.progress)
    figures = next(row for row in result["history"] if row["epoch"] == result["best_epoch"])
    seen, asked = train_set.letter_counts() + 1.0, held_out.letter_counts()
    shares = asked / asked.sum()  # by which every letter is guessed
    facts = {
        **{name: round_number(figures[name]) for name in ("loss", "accuracy")},
        "floor_loss": round_number(-(shares * np.log(seen / seen.sum())).sum()),
        "floor_accuracy": round_number(shares[seen.argmax()]),
        "epochs": int(figures["epoch"]),
        "examples": len(examples),
        "letters": int(train_set.letter_counts().sum() + asked.sum()),
        "share": share,
        "parameters": count_parameters(network),
        "data_sha256": folder.identity["data"],
    }
    if out is not None and is_main_process(config):
        save_pretrained(out, network, facts)
    return PretrainResult(network, facts)


def _examples(data: Sequence[str] | Sequence[Alignment], window: int, alphabet: str) -> Sequence[Example]:
    """Different alignments in their order, or different windows in a new one; none without known letters."""
    alignments = {(one.codes.shape, one.codes.tobytes()): one for one in data if isinstance(one, Alignment)}
    if alignments:
        return [one for one in alignments.values() if (one.codes < one.alphabet.unknown).any()]
    windows = {
        piece for sequence in data if isinstance(sequence, str) for piece in split_windows(sequence, window)
    }
    known = set(ALPHABETS[alphabet].letters)
    return [LabeledSequence(letters, "", "") for letters in sorted(windows) if known & set(letters)]
