"""The command line that a scan records, and the share of a scan that it names.

The header of a result names the command. So that gathered shards give the bytes of the whole scan, a scan
names its outputs last in there, in the order given, and leaves out the options on messages.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from typing import Annotated

OUTPUT_OPTIONS = ("--out", "-o", "--html", "--track", "--format", "--skipped")
_SHARD_OPTIONS = ("--shard",)
_SHORT = re.compile("-[^-]")
_MESSAGE_OPTIONS = ("--quiet", "-q", "--verbose", "--log-json", "--debug")


def _parse_shard(text: str) -> tuple[int, int]:
    """``I/N``, from ``1/N`` to ``N/N``."""
    match = re.fullmatch(r"([0-9]{1,6})/([0-9]{1,6})", text)
    if match is None or not 1 <= int(match[1]) <= int(match[2]):
        raise argparse.ArgumentTypeError(f"'{text}' is not I/N with I from 1 to N")
    return int(match[1]), int(match[2])


Shard = Annotated[tuple[int, int], _parse_shard]


def divide_words(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Divide a command line into what decides the scan, and the options that name its outputs."""
    settings: list[str] = []
    outputs: list[str] = []
    rest = iter(words)
    for given in rest:
        word = re.sub("^-q+(?=[^q])", "-", given)  # -qo FILE is -q -o FILE
        name = word[:2] if _SHORT.match(word) else word.partition("=")[0]
        valued = name in (*OUTPUT_OPTIONS, *_SHARD_OPTIONS)
        parts = [word, next(rest, "")] if valued and word == name else [word]
        if name in OUTPUT_OPTIONS:
            outputs += parts
        elif name not in (*_SHARD_OPTIONS, *_MESSAGE_OPTIONS):
            settings += parts
    return settings, outputs


def recorded_command(words: Sequence[str]) -> tuple[str, ...]:
    """The command line as the headers of results name it."""
    settings, outputs = divide_words(words)
    return (*settings, *outputs)
