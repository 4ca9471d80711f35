"""The Lightning module of a locator: weighted binary cross-entropy, and genes as an auxiliary task."""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from seqray.core import RunConfig
from seqray.metrics import UNCLAIMED, average_precision, claim_sites
from seqray.models import LocatorTransformer, build_network
from seqray.training.genomes.calls import TOLERANCE, profile_peaks
from seqray.training.genomes.data import LocatorBatch
from seqray.training.genomes.sources import Chunk
from seqray.training.genomes.strands import MASKED
from seqray.training.module import AveragedModule

SCALE = 100.0
"""Of the loss: sites are rare, and the mean over positions is small."""
_TRACKS = 0.05  # of the loss of predicted genes


class LocatorModule(AveragedModule):
    """A locator in training.

    ``seed`` sets the dropout; ``positive`` is the index of the class whose calls are measured on the chunks
    of ``validation``.
    """

    network: LocatorTransformer

    def __init__(self, config: RunConfig, seed: int, validation: list[Chunk], positive: int) -> None:
        super().__init__(config, seed, build_network(config.model))
        self._validation, self._positive = validation, positive

    def training_step(self, batch: LocatorBatch, number: int) -> Tensor:
        self.seed_step(number)
        shown = batch.tracks * (~batch.hidden)[:, None, None]
        out = self.network(batch.letters, shown)
        loss, weight = self._site_loss(out.logits.float(), batch)
        loss = SCALE * loss / (weight + 1) + self._gene_loss(out.tracks.float(), batch)
        self.add_train_loss(loss, len(batch.letters))
        return loss

    def _site_loss(self, logits: Tensor, batch: LocatorBatch) -> tuple[Tensor, Tensor]:
        """Weighted sum over positions and classes, and the sum of the weights."""
        each = F.binary_cross_entropy_with_logits(logits, batch.labels, reduction="none")
        return (each * batch.weights).sum(), batch.weights.sum()

    def _gene_loss(self, logits: Tensor, batch: LocatorBatch) -> Tensor | float:
        """Of the genes that were hidden, all tracks but the first, which says whether they are known."""
        asked = batch.known & batch.hidden
        if not self.config.genomes.auxiliary or logits.shape[2] < 2 or not bool(asked.any()):
            return 0.0
        truth = batch.tracks[asked, 1:].transpose(1, 2).to(logits.dtype) / 255
        each = F.binary_cross_entropy_with_logits(logits[asked, :, 1:], truth)
        return SCALE * _TRACKS * self.config.genomes.auxiliary * each * asked.float().mean()

    def on_validation_epoch_start(self) -> None:
        shape = (len(self._validation), self.config.genomes.chunk)
        self._scores = torch.full(shape, -torch.inf, device=self.device)
        self._sums = torch.zeros(shape[0], 2, device=self.device)  # loss and weight of each chunk

    def validation_step(self, batch: LocatorBatch, _: int) -> None:
        out = self.evaluated_network(batch.letters, batch.tracks)
        logits = out.logits.float()
        self._scores[batch.rows] = self.network.scores(out)[..., self._positive]
        each = F.binary_cross_entropy_with_logits(logits, batch.labels, reduction="none") * batch.weights
        self._sums[batch.rows] = torch.stack((each.sum((1, 2)), batch.weights.sum((1, 2))), dim=1)

    def on_validation_epoch_end(self) -> None:
        reduce = self.trainer.strategy.reduce  # each process holds the rows that it computed
        scores, sums = (reduce(values, reduce_op="max") for values in (self._scores, self._sums))
        assert isinstance(scores, Tensor)
        assert isinstance(sums, Tensor)
        loss, weight = sums.double().sum(dim=0).tolist()
        self.check_finite(loss, "training")
        values = torch.sigmoid(scores.double()).cpu().numpy()
        figure = validation_auprc(values, self._validation, self._positive)
        self.log_figures({"loss": SCALE * loss / (weight + 1), "auprc": figure})


def validation_auprc(scores: np.ndarray, chunks: list[Chunk], positive: int) -> float:
    """Average precision of the calls of all N chunks together, by the scores (N, C) of the positive class.

    Masked positions, such as those of a chunk that reaches beyond its region, don't count.
    """
    ranks, claimed, total = [], [], 0
    for row, (strand, start) in zip(scores, chunks, strict=True):
        row = row[: len(strand) - start]
        sites = strand.sites.between(start, start + len(row))
        free = strand.level[start : start + len(row)] != MASKED
        sites = sites.take((sites.kind == positive) & (sites.weight > 0) & free[sites.position - start])
        found = profile_peaks(row)
        found = found[free[found]]
        ranks.append(row[found])
        claimed.append(claim_sites(found + start, row[found], sites.position, TOLERANCE) != UNCLAIMED)
        total += len(sites)
    score, right = np.concatenate(ranks), np.concatenate(claimed)
    right = right[np.argsort(-score, kind="stable")]
    return average_precision(right, right, total)
