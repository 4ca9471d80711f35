"""A sample of the training sequences on the card, as hashes, to recognize some of them in other data."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from seqray.core import Card, reading_card

SAMPLE = 1000  # hashes: 5 kB on the card
_ALL = 1 << 32


@dataclass(frozen=True, slots=True)
class SketchCount:
    """How many of some sequences are known to be training data.

    Attributes
    ----------
    known
        Sequences that the model was trained on.
    checked
        Sequences that the sample decides on: ``known`` of them are in it, the others were not trained on.
    """

    known: int
    checked: int


@dataclass(frozen=True, eq=False)
class TrainingSketch:
    """The lowest hashes of the training sequences.

    A hash is as good as a random number. Of the sequences of another set, those with a hash up to the highest
    one that is kept are therefore a random part of this set, and it is known which of them are training data
    (Broder 1997, On the resemblance and containment of documents).

    Attributes
    ----------
    hashes
        uint32 (M,), sorted, at most `SAMPLE`.
    limit
        Hashes below it would be among them: 2^32 if those of all training sequences are kept.
    """

    hashes: np.ndarray
    limit: int

    @classmethod
    def fit(cls, keys: Iterable[str]) -> TrainingSketch:
        """Keep the lowest hashes; ``keys`` are the training sequences, each in one form of its own."""
        hashes = np.unique(np.array([_hash(key) for key in keys], dtype=np.uint32))
        kept = hashes[:SAMPLE]
        return cls(kept, _ALL if len(kept) == len(hashes) else int(kept[-1]) + 1)

    def count(self, keys: Iterable[str]) -> SketchCount:
        """Count which of some sequences, in the form that `fit` got, are training data."""
        hashes = np.array([_hash(key) for key in keys], dtype=np.uint32)
        return SketchCount(int(np.isin(hashes, self.hashes).sum()), int((hashes < self.limit).sum()))

    def to_mapping(self) -> dict[str, Any]:
        """Return plain data for the model card."""
        packed = base64.b64encode(self.hashes.astype("<u4").tobytes()).decode()
        return {"limit": self.limit, "hashes": packed}

    @classmethod
    def of(cls, card: Card) -> TrainingSketch | None:
        """That of a model; None for models of earlier versions. A damaged one is a ModelFileError."""
        return cls._read(card, "learned")

    @classmethod
    def of_calibration(cls, card: Card) -> TrainingSketch | None:
        """That of the data of `seqray calibrate`, if any; a damaged one is a ModelFileError."""
        return cls._read(card, "calibrated")

    @classmethod
    def _read(cls, card: Card, part: str) -> TrainingSketch | None:
        with reading_card("domain"):
            facts: Mapping[str, Any] | None = card.domain.get(part)
            if facts is None:
                return None
            hashes = np.frombuffer(base64.b64decode(facts["hashes"], validate=True), dtype="<u4")
            if hashes.max(initial=0) >= facts["limit"]:
                raise ValueError("a hash above the limit")
            return cls(hashes, int(facts["limit"]))


def _hash(key: str) -> int:
    return int.from_bytes(hashlib.blake2b(key.encode(), digest_size=4).digest(), "big")
