"""Hashes of training data, which tell whether sequences were learned from."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence

from seqray.core import ALPHABETS, Alignment, Card, Example, LabeledSequence, canonical_strand


def content_sha256(data: Sequence[Example]) -> str:
    """Hash only sequences and labels, to recognize the same data in another order or split."""
    rows = sorted({f"{_letters(example)}\t{example.label or ''}\n" for example in data})
    return hashlib.sha256("".join(rows).encode()).hexdigest()


def learned_keys(card: Card, data: Sequence[Example]) -> Iterator[str]:
    """What `seqray.calibration.TrainingSketch` hashes: windows without flanks, or alignments."""
    alphabet = ALPHABETS[card.model.alphabet]
    for example in data:
        letters = _letters(example)
        is_sequence = isinstance(example, LabeledSequence)
        yield canonical_strand(card.trim_flanks(letters), alphabet) if is_sequence else letters


def data_sha256(data: Sequence[Example]) -> str:
    """Hash sequence, label, group, split, context and subclass of all examples in their order.

    The order counts because training depends on it. Identifiers do not.
    """
    digest = hashlib.sha256()
    for example in data:
        row = [_letters(example), example.label or "", example.group or "", example.split or ""]
        row += [example.context] if example.context else []
        row += [f"subclass={example.subclass}"] if example.subclass else []
        digest.update(("\t".join(row) + "\n").encode())
    return digest.hexdigest()


def _letters(example: Example) -> str:
    """Letters of a sequence, checksum of an alignment."""
    if isinstance(example, Alignment):
        return hashlib.sha256(repr(example.codes.shape).encode() + example.codes.tobytes()).hexdigest()
    return example.sequence
