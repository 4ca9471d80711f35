"""Types of arguments: each turns a word into a value, or raises the error that argparse shows."""

from __future__ import annotations

import argparse
import math
from typing import Annotated, Literal

from seqray.core import class_name_fault


def _positive_int(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is not a whole number of 1 or more")
    return int(text)


def _whole_number(text: str) -> int:
    if not text.isascii() or not text.isdigit():
        raise argparse.ArgumentTypeError(f"'{text}' is not a whole number of 0 or more")
    return int(text)


def _auto_or_positive_int(text: str) -> int | str:
    return text if text == "auto" else _positive_int(text)


def _number(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise argparse.ArgumentTypeError(f"'{text}' is not a number")
    return value


def _probability(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number between 0 and 1")
    return value


def _class_name(text: str) -> str:
    if fault := class_name_fault(text):
        raise argparse.ArgumentTypeError(f"{text!r} {fault}")
    return text


PositiveInt = Annotated[int, _positive_int]
WholeNumber = Annotated[int, _whole_number]
AutoOrPositiveInt = Annotated[int | Literal["auto"], _auto_or_positive_int]
Number = Annotated[float, _number]
Probability = Annotated[float, _probability]
ClassName = Annotated[str, _class_name]
