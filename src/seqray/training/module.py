"""The Lightning module, and figures of validation."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping, Sequence
from typing import Any

import lightning
import numpy as np
import torch
import torch.nn.functional as F
from scipy.special import log_softmax
from torch import Tensor, nn

from seqray.core.arrays import Floats
from seqray.core.errors import SeqrayError, field_name
from seqray.core.run_config import RunConfig
from seqray.metrics.classification import calibration_error, class_metrics, macro_metrics
from seqray.modelfile.file import build_network
from seqray.modelfile.initial_weights import InitialWeights, apply_initial_weights
from seqray.modelfile.model import TrainedModel
from seqray.models.sequence import Network
from seqray.training.data import Examples, LabeledBatch, validation_order

# --- Logits of a model for a validation set, and their metrics

FIGURES = (
    "mcc", "f1", "sensitivity", "specificity", "precision", "accuracy", "auroc", "auprc", "brier", "ece",
)  # fmt: skip


def classification_figures(
    logits: np.ndarray, labels: np.ndarray, positive: int, threshold: float = 0.5
) -> dict[str, float]:
    """Measure logits (N, K) against classes (N,): `FIGURES` of the positive class, or means over several."""
    log_p = log_softmax(np.asarray(logits, dtype=np.float64), axis=1)
    p = np.exp(log_p)
    loss = {"loss": float(-np.mean(log_p[np.arange(len(labels)), labels]))}
    ones = np.ones((1, len(labels)))

    def one_vs_rest(k: int, calls: np.ndarray) -> dict[str, Floats]:
        return class_metrics(labels == k, p[:, k], calls, ones, probabilities=True)

    if p.shape[1] == 2:
        found = one_vs_rest(positive, p[:, positive] >= threshold)
    else:
        called = p.argmax(axis=1)
        found = macro_metrics(labels, [one_vs_rest(k, called == k) for k in range(p.shape[1])], ones)
    figures = {name: float(found[name][0]) for name in FIGURES}
    return loss | figures | {"ece": calibration_error(p, labels, positive)}


def model_logits(model: TrainedModel, data: Examples) -> np.ndarray:
    """Logits of the unchanged windows, in float32 as `predict` computes them: float64 (N, K)."""
    result = np.empty((len(data), len(model.card.classes)))
    for _, _, indices in validation_order(data.lengths):
        batch = data.batch(indices)
        masks = (None if mask is None else mask.numpy() for mask in batch.masks)
        result[indices] = model.logits(batch.tokens.numpy(), *masks)
    return result


# --- The Lightning module: loss, optimizer, schedule, averaged weights, and validation over the whole set

FINAL_RATE = 1e-3  # of the peak learning rate


def parameter_groups(network: nn.Module, weight_decay: float) -> list[dict[str, Any]]:
    """Split into matrices, which decay, and biases, norms and other vectors, which don't."""
    parameters = list(network.parameters())
    return [
        {"params": [p for p in parameters if p.ndim >= 2], "weight_decay": weight_decay},
        {"params": [p for p in parameters if p.ndim < 2], "weight_decay": 0.0},
    ]


def rate_factor(step: int, steps: int, warmup: float) -> float:
    """Learning rate as a share of its peak: a linear rise in the share ``warmup``, then half a cosine."""
    rise = round(warmup * steps)
    if step < rise:
        return (step + 1) / (rise + 1)
    progress = min(1.0, (step - rise) / max(1, steps - rise))
    return FINAL_RATE + (1 - FINAL_RATE) * 0.5 * (1 + math.cos(math.pi * progress))


def scheduled_adamw(network: nn.Module, config: RunConfig, steps: int) -> dict[str, Any]:
    """AdamW with the schedule of `rate_factor`, in the form that Lightning expects."""
    settings = config.optimizer
    groups = parameter_groups(network, settings.weight_decay)
    optimizer = torch.optim.AdamW(
        groups, lr=settings.learning_rate, betas=(0.9, settings.beta2), foreach=True
    )
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: rate_factor(step, steps, settings.warmup)
    )
    return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}


def best_epoch(history: Sequence[Mapping[str, float]], monitor: str) -> int:
    """The epoch with the best figure; of equal ones, as on an easy task, the first of the lowest loss."""
    sign = -1 if monitor == "loss" else 1
    return int(max(history, key=lambda row: (sign * row[monitor], -row.get("loss", math.inf)))["epoch"])


class NetworkModule(lightning.LightningModule):
    """What training and pre-training share: a network of random weights, and their moving average."""

    def __init__(self, config: RunConfig, seed: int, network: Network) -> None:
        super().__init__()
        self.config, self.seed, self.network = config, seed, network
        self.average: Network | None = None
        if config.optimizer.ema > 0:
            self.average = copy.deepcopy(network).requires_grad_(False)
        self.history: list[dict[str, float]] = []
        self.figures: dict[str, float] = {}
        self._loss_sum = torch.zeros(2)  # of the losses of an epoch, and of the examples

    @property
    def evaluated_network(self) -> Network:
        """The network that is validated and saved: the average if there is one."""
        return self.network if self.average is None else self.average

    def apply_initial_weights(self, start: InitialWeights) -> None:
        """Take over weights of before, in the network and its average."""
        for network in filter(None, (self.network, self.average)):
            apply_initial_weights(network, start)

    def configure_optimizers(self) -> Any:
        return scheduled_adamw(self.network, self.config, int(self.trainer.estimated_stepping_batches))

    def optimizer_step(self, *args: Any, **kwargs: Any) -> None:
        super().optimizer_step(*args, **kwargs)
        if self.average is not None:
            self._update_average(self.average)

    @torch.no_grad()
    def _update_average(self, average: Network) -> None:
        # The early steps are forgotten sooner: otherwise the random start would weigh on short runs.
        steps = self.global_step
        decay = min(self.config.optimizer.ema, (1 + steps) / (10 + steps))
        for old, new in zip(average.parameters(), self.network.parameters(), strict=True):
            old.lerp_(new, 1 - decay)

    def seed_step(self, number: int) -> None:
        """Seed dropout by the step alone, so that a resumed run repeats it exactly."""
        key = (self.seed, self.current_epoch, number, self.global_rank)
        seed = int(np.random.SeedSequence(key).generate_state(1)[0])
        torch.default_generator.manual_seed(seed)  # `torch.manual_seed` looks for every kind of device first
        if self.device.type == "cuda":
            torch.cuda.manual_seed(seed)

    def on_train_epoch_start(self) -> None:
        self._loss_sum = torch.zeros_like(self._loss_sum, device=self.device)

    def add_train_loss(self, loss: Tensor, batch_size: int) -> None:
        """Count the loss of a step, which takes less time than to log it."""
        self._loss_sum += torch.stack((loss.detach().float(), loss.new_ones(()).float())) * batch_size

    def on_train_epoch_end(self) -> None:
        total = self.trainer.strategy.reduce(self._loss_sum, reduce_op="sum")
        assert isinstance(total, Tensor)
        loss, count = total.tolist()
        self.history.append({"epoch": self.current_epoch + 1, "train_loss": loss / count, **self.figures})
        self.log("train_loss", loss / count, sync_dist=True)

    def check_finite(self, values: Any, what: str) -> None:
        """Stop the training at numbers that are not finite."""
        if not np.isfinite(values).all():
            raise SeqrayError(
                f"{what} diverged in epoch {self.current_epoch + 1}",
                remedy=f"lower {field_name('optimizer.learning_rate')}",
            )

    def log_figures(self, figures: Mapping[str, float]) -> None:
        """Log those that are finite."""
        self.figures = {name: value for name, value in figures.items() if math.isfinite(value)}
        for name, value in self.figures.items():
            self.log(f"validation_{name}", value, sync_dist=True)

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        checkpoint["history"] = self.history

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        self.history = list(checkpoint["history"])


class Classifier(NetworkModule):
    """A classifier in training, measured against the class indices (N,) of validation.

    ``class_weights`` (K,) weigh the loss, ``margins`` (K,) are added to logits; labels may be of subclasses.
    """

    def __init__(
        self,
        config: RunConfig,
        seed: int,
        validation_labels: np.ndarray,
        positive: int,
        class_weights: np.ndarray | None = None,
        margins: np.ndarray | None = None,
    ) -> None:
        super().__init__(config, seed, build_network(config.model))
        self.positive = positive
        self._labels = validation_labels
        for name, values in (("class_weights", class_weights), ("margins", margins)):
            if values is not None and config.model.subclasses:
                values = np.repeat(values, config.model.subclasses)
            held = None if values is None else torch.tensor(values, dtype=torch.float32)
            self.register_buffer(name, held, persistent=False)

    def training_step(self, batch: LabeledBatch, number: int) -> Tensor:
        self.seed_step(number)
        output = self.network(batch.tokens, *batch.masks)
        logits = output.logits if output.subclasses is None else output.subclasses  # (B, K), or (B, M)
        logits = logits.float()
        if isinstance(self.margins, Tensor):
            logits = logits + self.margins
        targets = batch.labels if batch.targets is None else batch.targets
        loss = F.cross_entropy(
            logits,
            targets,
            weight=self.class_weights,  # type: ignore[arg-type]
            label_smoothing=self.config.optimizer.label_smoothing,
        )
        self.add_train_loss(loss, len(batch.labels))
        return loss

    def on_validation_epoch_start(self) -> None:
        shape = (len(self._labels), self.config.model.classes)
        self._logits = torch.full(shape, -torch.inf, device=self.device)

    def validation_step(self, batch: LabeledBatch, _: int) -> None:
        self._logits[batch.rows] = self.evaluated_network(batch.tokens, *batch.masks).logits.float()

    def on_validation_epoch_end(self) -> None:
        # Each process holds the rows that it computed; the others are -inf.
        logits = self.trainer.strategy.reduce(self._logits, reduce_op="max")
        assert isinstance(logits, Tensor)
        values = logits.double().cpu().numpy()
        self.check_finite(values, "training")
        self.log_figures(classification_figures(values, self._labels, self.positive))
