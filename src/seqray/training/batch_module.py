"""What every training run hands to Lightning: whole batches by their key, shared among the processes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

import lightning
from torch.utils.data import DataLoader, Dataset, Sampler

Key = TypeVar("Key")


class FixedBatches(Sampler[Key]):
    """The same batches each time; processes take every ``world``-th.

    A process whose share falls short takes one of the first batches again: all must take the same number
    of steps.
    """

    def __init__(self, batches: Sequence[Key], rank: int = 0, world: int = 1) -> None:
        share = -(-len(batches) // world)
        self._batches = [batches[(rank + i * world) % len(batches)] for i in range(share)]

    def __len__(self) -> int:
        return len(self._batches)

    def __iter__(self) -> Iterator[Key]:
        return iter(self._batches)


class BatchModule(lightning.LightningDataModule, ABC):
    """Training and validation batches of one member."""

    @abstractmethod
    def training_batches(self, rank: int, world: int) -> tuple[Dataset[Any], Sampler[Any]]:
        """Batches by their key, and the keys of an epoch."""

    @abstractmethod
    def validation_batches(self, rank: int, world: int) -> tuple[Dataset[Any], Sampler[Any]]:
        """The same for validation, without random changes."""

    def train_dataloader(self) -> DataLoader[Any]:
        return _loader(*self.training_batches(*self._rank_and_world()))

    def val_dataloader(self) -> DataLoader[Any]:
        return _loader(*self.validation_batches(*self._rank_and_world()))

    def _rank_and_world(self) -> tuple[int, int]:
        return (self.trainer.global_rank, self.trainer.world_size) if self.trainer else (0, 1)


def _loader(batches: Dataset[Any], order: Sampler[Any]) -> DataLoader[Any]:
    return DataLoader(batches, batch_size=None, sampler=order, collate_fn=_identity)


def _identity(batch: Any) -> Any:
    return batch
