"""Shuffled copies that belong to a record: the same letters give the same copies, in any batch."""

from __future__ import annotations

import hashlib

import numpy as np

from seqray.core import Codes, dinucleotide_shuffle


def generator_for(codes: Codes, *keys: int) -> np.random.Generator:
    """Generator of random numbers that depends on the letters (n,) and the keys alone."""
    digest = hashlib.blake2b(codes.tobytes(), digest_size=16).digest()
    return np.random.default_rng([int.from_bytes(digest, "little"), *keys])


def shuffled_copies(codes: Codes, copies: int, *keys: int) -> Codes:
    """Shuffle a record (n,), its dinucleotides kept: (copies, n)."""
    rng = generator_for(codes, *keys)
    return np.stack([dinucleotide_shuffle(codes, rng) for _ in range(copies)])
