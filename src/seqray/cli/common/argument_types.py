"""Types of arguments: each turns a word into a value, or raises the error that argparse shows."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from typing import Annotated, Literal

from seqray.core import class_name_fault, parse_float


def whole_number(least: int, most: int = 2**31 - 1) -> Callable[[str], int]:
    """Make the type of whole numbers from ``least`` to ``most``."""

    def parse(text: str) -> int:
        digits = text.lstrip("0") if text.isascii() and text.isdigit() else "-1"
        if len(digits) > len(str(most)):  # int() takes long for thousands of digits
            raise argparse.ArgumentTypeError(f"a number of {len(text)} digits is above {most}")
        number = int(digits or "0")
        if number < least:
            raise argparse.ArgumentTypeError(f"'{text}' is not a whole number of {least} or more")
        if number > most:
            raise argparse.ArgumentTypeError(f"{number} is above {most}")
        return number

    return parse


_positive_int = whole_number(1)


def _auto_or_positive_int(text: str) -> int | str:
    return text if text == "auto" else _positive_int(text)


def _number(text: str) -> float:
    value = parse_float(text)
    if not math.isfinite(value):
        raise argparse.ArgumentTypeError(f"'{text}' is not a number")
    return value


def _probability(text: str) -> float:
    value = parse_float(text)
    if not 0 <= value <= 1:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number between 0 and 1")
    return value


def _call_precision(text: str) -> float:
    """A share of calls; names of number formats belong to another option of a scan."""
    if text in ("fp32", "bf16"):
        problem = f"'{text}' is not a number between 0 and 1 (did you mean --dtype {text}?)"
        raise argparse.ArgumentTypeError(problem)
    return _probability(text)


def _class_name(text: str) -> str:
    if fault := class_name_fault(text):
        raise argparse.ArgumentTypeError(f"{text!r} {fault}")
    return text


def _printable(text: str) -> str:
    if not text.isprintable():
        raise argparse.ArgumentTypeError(f"{text!r} holds characters that can't be printed")
    return text


PositiveInt = Annotated[int, _positive_int]
WholeNumber = Annotated[int, whole_number(0)]
Draws = Annotated[int, whole_number(0, 1_000_000)]
Steps = Annotated[int, whole_number(1, 1_000_000)]
Threads = Annotated[int, whole_number(1, 1024)]
AutoOrPositiveInt = Annotated[int | Literal["auto"], _auto_or_positive_int]
Number = Annotated[float, _number]
Probability = Annotated[float, _probability]
CallPrecision = Annotated[float, _call_precision]
ClassName = Annotated[str, _class_name]
Printable = Annotated[str, _printable]
