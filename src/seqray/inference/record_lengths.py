"""What is said of a file whose records are shorter or longer than all training sequences of a model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from seqray.core import Card

MIN_FLAGGED_SHARE = 0.05  # of the records; fewer are left to their flags


def usual_share(card: Card, flag: str) -> float:
    """Share of records that may have a flag: twice that of a later calibration, or `MIN_FLAGGED_SHARE`."""
    flags = card.domain.get("calibration", {}).get("flags", {})
    return max(MIN_FLAGGED_SHARE, 2 * flags.get(flag, 0.0))


def _learned_lengths(card: Card) -> tuple[int, int]:
    """Shortest and longest training sequence; the window for a card without them."""
    shortest, longest = card.domain.get("length", (card.window, card.window))
    return shortest, longest


def length_cautions(card: Card, flags: Mapping[str, int], count: int) -> Iterator[str]:
    """Yield cautions for a file that has many records of lengths that the model has never seen.

    Of the flags, ``short`` and ``long`` are read.
    """
    shortest, longest = _learned_lengths(card)
    sides = {
        "short": ("shorter", f"{shortest} letters or more"),
        "long": ("longer", f"at most {longest} letters"),
    }
    for flag, (how, learned) in sides.items():
        odd = flags.get(flag, 0)
        if odd > usual_share(card, flag) * count:
            yield (
                f"{odd} of {count} records ({odd / count:.0%}) are {how} than any sequence that the model "
                f"was trained on ({learned}); its probabilities may not hold for them"
            )
