"""Pre-training on sequences without labels: hidden letters are guessed from what stands around them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import lightning
import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.data import DataLoader

from seqray.alphabet import ALPHABETS
from seqray.config import RunConfig, StoppingConfig
from seqray.errors import ConfigError, InputError, SeqrayError
from seqray.models.build import build_model, count_parameters
from seqray.models.sequence import SequenceTransformer
from seqray.pretrained import save_pretrained
from seqray.records import LabelledSequence
from seqray.tokens import make_tokenizer
from seqray.training.data import EncodedSet, TrainingOrder, ValidationOrder
from seqray.training.masking import IGNORED, MaskedBatch, MaskedSource
from seqray.training.module import parameter_groups, rate_factor
from seqray.training.partition import data_sha256
from seqray.training.trainer import BEST, LAST, make_trainer, quiet, run_fit
from seqray.training.workdir import WorkDir, fingerprint, is_main_process

HELD_OUT = 0.05
SHORTEST = 0.25  # of a window: what is left at the end of a record is taken from there on


@dataclass(frozen=True)
class PretrainResult:
    """What pre-training gives.

    Attributes
    ----------
    network
        Weights of the best epoch; its head has learned nothing.
    facts
        ``loss`` (nats a letter) and ``accuracy`` on held-out windows, ``floor_loss`` and ``floor_accuracy``
        of guessing by the shares of the letters alone, counts, epochs.
    """

    network: SequenceTransformer
    facts: dict[str, Any]


class MaskedLetters(lightning.LightningModule):
    """A `SequenceTransformer` with a linear map from each token to the letters that it stands for.

    Parameters
    ----------
    config
        Of the run.
    seed
        Of dropout.
    """

    def __init__(self, config: RunConfig, seed: int) -> None:
        super().__init__()
        self.config, self.seed = config, seed
        self.network = build_model(config.model)
        self.letters = len(ALPHABETS[config.model.alphabet].letters)
        self.guess = nn.Linear(config.model.d_model, self.network.embedding.stride * self.letters)
        self.history: list[dict[str, float]] = []

    def forward(self, tokens: Tensor, mask: Tensor | None) -> Tensor:
        """Tokens (B, 1 + N) and their mask to scores (B, N, letters)."""
        states = self.network.states(tokens, mask)[:, 1:]  # (B, T, D)
        scores = self.guess(states).unflatten(2, (-1, self.letters))  # (B, T, s, letters)
        return scores.flatten(1, 2)[:, : tokens.shape[1] - 1]  # (B, T·s, letters) -> (B, N, letters)

    def training_step(self, batch: MaskedBatch, number: int) -> Tensor:
        key = (self.seed, self.current_epoch, number, self.global_rank)
        torch.manual_seed(int(np.random.SeedSequence(key).generate_state(1)[0]))
        scores = self(batch.tokens, batch.mask).float()
        loss = F.cross_entropy(scores.flatten(0, 1), batch.hidden.flatten(), ignore_index=IGNORED)
        self.log("train_loss", loss, on_step=False, on_epoch=True, sync_dist=True, batch_size=len(batch.rows))
        return loss

    def on_validation_epoch_start(self) -> None:
        self._sums = torch.zeros(3, dtype=torch.float64)  # loss, right guesses, guesses

    def validation_step(self, batch: MaskedBatch, _: int) -> None:
        scores, hidden = self(batch.tokens, batch.mask).float().flatten(0, 1), batch.hidden.flatten()
        loss = F.cross_entropy(scores, hidden, ignore_index=IGNORED, reduction="sum")
        asked = hidden != IGNORED
        right = (scores.argmax(dim=1) == hidden)[asked].sum()
        self._sums += torch.tensor([float(loss), float(right), float(asked.sum())], dtype=torch.float64)

    def on_validation_epoch_end(self) -> None:
        sums = self.trainer.strategy.reduce(self._sums.to(self.device), reduce_op="sum")
        assert isinstance(sums, Tensor)
        loss, right, asked = (float(value) for value in sums)
        if not math.isfinite(loss):
            raise SeqrayError(
                f"pre-training diverged in epoch {self.current_epoch + 1}",
                remedy="lower 'optimizer.learning_rate'",
            )
        self._figures = {"loss": loss / asked, "accuracy": right / asked}
        for name, value in self._figures.items():
            self.log(f"validation_{name}", value, prog_bar=name == "loss")

    def on_train_epoch_end(self) -> None:
        self.history.append({"epoch": self.current_epoch + 1, **self._figures})

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        checkpoint["history"] = self.history

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        self.history = list(checkpoint["history"])

    def configure_optimizers(self) -> Any:
        settings = self.config.optimizer
        groups = parameter_groups(self, settings.weight_decay)
        optimizer = torch.optim.AdamW(groups, lr=settings.learning_rate, foreach=True)
        steps = int(self.trainer.estimated_stepping_batches)
        schedule = torch.optim.lr_scheduler.LambdaLR(
            optimizer, lambda step: rate_factor(step, steps, settings.warmup)
        )
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}


class MaskedData(lightning.LightningDataModule):
    """Training and held-out windows with letters hidden; the held-out ones always the same letters."""

    def __init__(self, train: EncodedSet, validation: EncodedSet, config: RunConfig, share: float) -> None:
        super().__init__()
        self.train, self.validation, self.config, self.share = train, validation, config, share

    def _place(self) -> tuple[int, int]:
        return (self.trainer.global_rank, self.trainer.world_size) if self.trainer else (0, 1)

    def train_dataloader(self) -> DataLoader[MaskedBatch]:
        rank, world = self._place()
        order = TrainingOrder(
            self.train.lengths, self.config.optimizer.batch_size, self.config.seed, rank, world
        )
        source = MaskedSource(self.train, self.share, self.config.seed, rank)
        return DataLoader(source, batch_size=None, sampler=order, collate_fn=_as_it_is)

    def val_dataloader(self) -> DataLoader[MaskedBatch]:
        order = ValidationOrder(self.validation.lengths, *self._place())
        source = MaskedSource(self.validation, self.share, self.config.seed + 1)
        return DataLoader(source, batch_size=None, sampler=order, collate_fn=_as_it_is)


def _as_it_is(batch: Any) -> Any:
    return batch


def cut(sequence: str, window: int) -> list[str]:
    """Cut a sequence into windows end to end; a short rest is taken together with letters before it.

    >>> cut("ACGTACGTAC", 4)
    ['ACGT', 'ACGT', 'GTAC']
    """
    pieces = [sequence[i : i + window] for i in range(0, len(sequence), window)]
    if len(pieces) > 1 and len(pieces[-1]) < window:
        long_enough = len(pieces[-1]) >= SHORTEST * window
        pieces[-1:] = [sequence[-window:]] if long_enough else []
    return pieces


def pretrain(
    config: RunConfig,
    sequences: Sequence[str],
    out: Path | None,
    *,
    work_dir: Path,
    share: float = 0.15,
    resume: bool = True,
    progress: bool = False,
    threads: int | None = None,
) -> PretrainResult:
    """Teach a network to guess hidden letters, and save its weights for `seqray.training.fit.train`.

    Parameters
    ----------
    config
        Settings of the run; ``model``, ``data.window``, ``optimizer``, ``trainer`` and ``seed`` count.
    sequences
        Validated letters, cut into windows of ``data.window``. A twentieth of the windows is held out.
    out
        The file; None saves nothing.
    work_dir
        Folder for checkpoints and logs, from which an interrupted run goes on.
    share
        Share of the letters that are hidden.
    resume, progress, threads
        As in `seqray.training.fit.train`.

    Raises
    ------
    ConfigError
        For a k-mer model: overlapping words tell each other's letters; and for one on a backbone.
    InputError
        For fewer than 20 windows, or a ``work_dir`` of another run.
    """
    if config.model.backbone is not None:
        raise ConfigError("pre-training is for seqray's own networks, not for 'model.kind: backbone'")
    if config.model.tokenizer != "character":
        raise ConfigError("pre-training is for the character tokenizer ('model.tokenizer')")
    if not 0 < share < 1:
        raise ConfigError(f"the share of hidden letters is {share}", remedy="give one between 0 and 1")
    if threads is not None:
        torch.set_num_threads(threads)
    windows = sorted({piece for sequence in sequences for piece in cut(sequence, config.data.window)})
    if len(windows) < 20:
        raise InputError(
            f"{len(windows)} different windows are too few to learn from", remedy="give 20 or more"
        )
    config = replace(config, stopping=StoppingConfig(monitor="loss", patience=config.stopping.patience))
    order = np.random.default_rng(config.seed).permutation(len(windows))
    held = max(1, round(HELD_OUT * len(windows)))
    train_set, held_out = (
        _encode([windows[i] for i in rows], config) for rows in (order[held:], order[:held])
    )
    identity = {
        "settings": fingerprint(config, ("pre-training", str(share))),
        "data": data_sha256([LabelledSequence(sequence, "", "") for sequence in windows]),
    }
    folder = WorkDir(Path(work_dir), identity, ("",), resume)
    with quiet():
        folder.claim()
        lightning.seed_everything(config.seed, workers=True, verbose=False)
        module = MaskedLetters(config, config.seed)
        trainer = make_trainer(config, folder.member(1), progress=progress)
        data = MaskedData(train_set, held_out, config, share)
        run_fit(trainer, module, data, folder.checkpoint(1, LAST))
    best = torch.load(folder.member(1) / f"{BEST}.ckpt", map_location="cpu", weights_only=True)
    module.load_state_dict(best["state_dict"])
    figures = min(module.history, key=lambda row: row["loss"])
    facts = {
        **{name: float(f"{figures[name]:.6g}") for name in ("loss", "accuracy")},
        **_floor(train_set, held_out),
        "epochs": int(figures["epoch"]),
        "windows": len(windows),
        "letters": int(train_set.lengths.sum() + held_out.lengths.sum()),
        "share": share,
        "parameters": count_parameters(module.network),
        "data_sha256": identity["data"],
    }
    if out is not None and is_main_process():
        save_pretrained(out, module.network, facts)
    return PretrainResult(module.network.eval(), facts)


def _encode(windows: Sequence[str], config: RunConfig) -> EncodedSet:
    return EncodedSet(windows, np.zeros(len(windows), dtype=np.int64), make_tokenizer(config.model))


def _floor(train: EncodedSet, held_out: EncodedSet) -> dict[str, float]:
    """Loss and accuracy of guessing every letter by its share in training."""
    size = train.tokenizer.alphabet.unknown
    seen = np.bincount(train.stack.codes, minlength=size + 1)[:size] + 1.0
    asked = np.bincount(held_out.stack.codes, minlength=size + 1)[:size]
    shares = asked / asked.sum()
    return {
        "floor_loss": float(f"{-(shares * np.log(seen / seen.sum())).sum():.6g}"),
        "floor_accuracy": float(f"{shares[seen.argmax()]:.6g}"),
    }
