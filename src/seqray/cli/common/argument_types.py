"""Types of arguments: each turns a word into a value, or raises the error that argparse shows."""

from __future__ import annotations

import argparse
import math


def positive_int(text: str) -> int:
    """1 or more."""
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is not a whole number of 1 or more")
    return int(text)


def whole_number(text: str) -> int:
    """0 or more."""
    if not text.isascii() or not text.isdigit():
        raise argparse.ArgumentTypeError(f"'{text}' is not a whole number of 0 or more")
    return int(text)


def auto_or_positive_int(text: str) -> int | str:
    """``auto``, or 1 or more."""
    return text if text == "auto" else positive_int(text)


def number(text: str) -> float:
    """A finite number."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise argparse.ArgumentTypeError(f"'{text}' is not a number")
    return value


def probability(text: str) -> float:
    """0 to 1."""
    try:
        value = number(text)
    except argparse.ArgumentTypeError:
        value = -1.0
    if not 0 <= value <= 1:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number between 0 and 1")
    return value
