"""Changes of JSON that keep it JSON: one value becomes another, moves, or goes."""

import copy
import json
import random
from collections.abc import Iterator
from typing import Any

ODD: tuple[Any, ...] = (None, True, False, -1, 0, 1, 2, 7, 255, 1 << 31, 1 << 53, 1 << 62, 1 << 64, 10**400)
ODD += (0.5, -0.0, 1e308, 1e-308, "", "x", "0", "\u2028", "\ud800", "ACGT", "a\tb", "promoter", [], [[]], {})
ODD += ({"x": 1}, ["x"], [1, 2], [0.5], {"value": 1, "low": 0, "high": 2}, [None], [{}], "1e999")
_SHARES = (0.5, 0.65, 0.75, 0.85, 0.93)


def places_in(value: Any) -> Iterator[tuple[Any, Any]]:
    """All places within nested lists and mappings: what holds them, and the key."""
    pairs = enumerate(value) if isinstance(value, list) else value.items() if isinstance(value, dict) else ()
    for key, inner in list(pairs):
        yield value, key
        yield from places_in(inner)


def mutate(value: Any, rng: random.Random) -> None:
    """Change one value within nested lists and mappings, in place."""
    places = list(places_in(value))
    if not places:
        return
    holder, key = rng.choice(places)
    now, kind = holder[key], rng.random()
    if kind < _SHARES[0]:
        holder[key] = copy.deepcopy(rng.choice(ODD))  # which a later change may change
    elif kind < _SHARES[1]:
        other, place = rng.choice(places)
        holder[key] = json.loads(json.dumps(other[place]))
    elif kind < _SHARES[2]:
        del holder[key]
    elif kind < _SHARES[3] and isinstance(now, int | float):
        holder[key] = rng.choice([-now, now + 1, now - 1, 2 * now, now / 2])
    elif kind < _SHARES[4] and isinstance(holder, dict):
        holder[rng.choice([f"{key}x", "x", f"{key} "])] = holder.pop(key)
    elif isinstance(now, str):
        at = rng.randint(0, len(now))
        holder[key] = now[:at] + rng.choice(["", "\0", "\n", "é", "N", " "]) + now[at + rng.randint(0, 2) :]
    else:
        holder[key] = [now] if kind < 0.98 or isinstance(now, list | dict) else [now] * 1000


def mutate_json(data: bytes, seed: int, limit: int) -> bytes:
    """Change some values of the JSON up to the first line end, unless it is none or would get too long."""
    text, end, rest = data.partition(b"\n")
    rng = random.Random(seed)
    try:
        value = json.loads(text)
        for _ in range(rng.choice((1, 1, 1, 2, 3))):
            mutate(value, rng)
        made = json.dumps(value, separators=(",", ":")).encode() + end + rest
    except (ValueError, RecursionError, OverflowError):
        return data
    return made if len(made) <= limit else data
