"""Damage to files, and the places of a JSON value that a forger can change."""

import random
from collections.abc import Callable, Iterator
from typing import Any


def damages(content: bytes, rng: random.Random, count: int) -> Iterator[tuple[str, bytes]]:
    """Copies of a file: half have a flipped bit; others are cut, longer, or lose or repeat blocks."""
    for number in range(count):
        kind = "a flipped bit" if number % 2 else rng.choice(list(KINDS))
        start = rng.randrange(len(content))
        end = min(len(content), start + rng.randrange(1, 512))
        damaged = KINDS.get(kind, _flip)(content, start, end, rng)
        yield kind, damaged if damaged != content else content[:-1]


def _flip(content: bytes, start: int, end: int, rng: random.Random) -> bytes:
    return content[:start] + bytes([content[start] ^ 1 << rng.randrange(8)]) + content[start + 1 :]


KINDS: dict[str, Callable[[bytes, int, int, random.Random], bytes]] = {
    "cut": lambda content, start, end, rng: content[:start],
    "longer": lambda content, start, end, rng: content + rng.randbytes(rng.randrange(1, 100)),
    "a block of zeros": lambda content, start, end, rng: content[:start] + bytes(end - start) + content[end:],
    "a block twice": lambda content, start, end, rng: content[:end] + content[start:],
    "a block lost": lambda content, start, end, rng: content[:start] + content[end:],
}


def leaves(value: Any) -> Iterator[tuple[Any, Any]]:
    """All places within nested lists and mappings: what holds them, and the key; of a long list the first."""
    pairs = enumerate(value[:3]) if isinstance(value, list) else ()
    for key, inner in list(value.items() if isinstance(value, dict) else pairs):
        yield value, key
        yield from leaves(inner)
