"""One member of a model: its training from start to the weights of the best epoch."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lightning
import torch

from seqray.core import Card, OnProgress, RunConfig, SeqrayError
from seqray.modelfile import Network, build_network
from seqray.training.module import NetworkModule, best_epoch
from seqray.training.trainer import BEST, LAST, make_trainer, run_fit
from seqray.training.workdir import WorkDir, check_whole


@dataclass(frozen=True)
class TrainResult:
    """Result of a training run.

    Attributes
    ----------
    card, networks
        Card of the model, as saved, and the members, in evaluation mode on the CPU.
    validation
        Figures of merit of the calibrated model on the validation part, at the card's threshold.
    history
        For each member one mapping an epoch, see `Classifier.history`.
    """

    card: Card
    networks: tuple[Network, ...]
    validation: dict[str, float]
    history: tuple[list[dict[str, float]], ...]


def fit_member(
    config: RunConfig,
    number: int,
    folder: WorkDir,
    build: Callable[[int], tuple[NetworkModule, lightning.LightningDataModule]],
    *,
    progress: bool | OnProgress = False,
) -> tuple[Network, dict[str, Any]]:
    """Train one member, or load it from ``folder`` if it is finished.

    Parameters
    ----------
    number
        Number of the member, from 1; it also sets the seed.
    build
        Makes the module and its data from the seed of the member; torch is seeded before.

    Returns
    -------
    network
        Weights of the best epoch, in evaluation mode on the CPU.
    result
        ``seed``, ``best_epoch``, ``history``, and the ``seconds`` since the member was last resumed.
    """
    seed = config.seed + number - 1
    result = folder.result(number)
    if result is None:
        lightning.seed_everything(seed, workers=True, verbose=False)
        module, batches = build(seed)
        trainer = make_trainer(config, folder.member(number), progress=progress)
        began = time.monotonic()
        run_fit(trainer, module, batches, folder.checkpoint(number, LAST))
        result = {
            "seed": seed,
            "best_epoch": best_epoch(module.history, config.stopping.monitor),
            "history": module.history,
        }
        result["seconds"] = round(time.monotonic() - began, 1)  # since it was last resumed
    network = _load_network(config, folder.member(number) / f"{BEST}.ckpt")
    folder.finish(number, result)
    return network, result


def _load_network(config: RunConfig, path: Path) -> Network:
    if not path.is_file():
        raise SeqrayError("training left no checkpoint", where=str(path))
    check_whole(path)
    state = torch.load(path, map_location="cpu", weights_only=True)["state_dict"]
    prefix = "average." if config.optimizer.ema > 0 else "network."
    network = build_network(config.model)
    network.load_state_dict({k.removeprefix(prefix): v for k, v in state.items() if k.startswith(prefix)})
    return network.eval()
