"""Damage to files, and the places of a JSON value that a forger can change."""

import random
from collections.abc import Iterator
from typing import Any


def damages(content: bytes, rng: random.Random, count: int) -> Iterator[tuple[str, bytes]]:
    """Copies of a file with a flipped bit, or cut, longer, or with blocks that are lost or repeated.

    Parameters
    ----------
    content, rng
        The file, and what decides on the damage.
    count
        How many; half of them have a flipped bit.
    """
    kinds = {
        "cut": _cut,
        "longer": _longer,
        "a block of zeros": _zeros,
        "a block twice": _twice,
        "a block lost": _lost,
    }
    for number in range(count):
        kind = "a flipped bit" if number % 2 else rng.choice(list(kinds))
        damaged = kinds.get(kind, _flip)(content, rng)
        yield kind, damaged if damaged != content else content[:-1]


def _flip(content: bytes, rng: random.Random) -> bytes:
    damaged = bytearray(content)
    damaged[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
    return bytes(damaged)


def _cut(content: bytes, rng: random.Random) -> bytes:
    return content[: rng.randrange(len(content))]


def _longer(content: bytes, rng: random.Random) -> bytes:
    return content + rng.randbytes(rng.randrange(1, 100))


def _block(content: bytes, rng: random.Random) -> tuple[int, int]:
    start = rng.randrange(len(content))
    return start, min(len(content), start + rng.randrange(1, 512))


def _zeros(content: bytes, rng: random.Random) -> bytes:
    start, end = _block(content, rng)
    return content[:start] + bytes(end - start) + content[end:]


def _twice(content: bytes, rng: random.Random) -> bytes:
    start, end = _block(content, rng)
    return content[:end] + content[start:]


def _lost(content: bytes, rng: random.Random) -> bytes:
    start, end = _block(content, rng)
    return content[:start] + content[end:]


def leaves(value: Any) -> Iterator[tuple[Any, Any]]:
    """All places within nested lists and mappings: what holds them, and the key; of a long list the first."""
    pairs = enumerate(value[:3]) if isinstance(value, list) else ()
    for key, inner in list(value.items() if isinstance(value, dict) else pairs):
        yield value, key
        yield from leaves(inner)
