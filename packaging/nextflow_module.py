"""A Nextflow module as far as it can be had without Nextflow: its channels, its scripts filled in."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping


def outputs(source: str) -> dict[str, tuple[str, bool]]:
    """Pattern of each output channel, and whether it may be empty."""
    block = source.split("output:")[1].split("when:")[0]
    lines = re.findall(r'path\(? ?"([^"]+)"\)? *, emit: (\w+)(, optional: true)?', block)
    return {name: (pattern, bool(optional)) for pattern, name, optional in lines}


def script(source: str, section: str, variables: Mapping[str, str]) -> str:
    """The shell script of ``script:`` or ``stub:``, with every ``${variable}`` filled in.

    Raises
    ------
    KeyError
        For a variable that isn't given.
    """
    text = source.partition(f"{section}:")[2].split('"""\n')[1]
    text = re.sub(r"(?<!\\)\$\{([\w.]+)\}", lambda found: variables[found[1]], text)
    return textwrap.dedent(text).replace("\\\\\n", "\\\n").replace("\\$", "$")
