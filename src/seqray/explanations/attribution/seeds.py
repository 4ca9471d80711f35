"""Randomness that belongs to a record: the same letters get the same draws, whatever stands beside them."""

from __future__ import annotations

import hashlib

import numpy as np
import numpy.typing as npt


def generator_for(codes: npt.NDArray[np.uint8], *keys: int) -> np.random.Generator:
    """Source of randomness that depends on the letters (n,) and the keys alone."""
    digest = hashlib.blake2b(codes.tobytes(), digest_size=16).digest()
    return np.random.default_rng([int.from_bytes(digest, "little"), *keys])
