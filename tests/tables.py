"""What tests of several verbs share: random letters, and the rows and the header of a table."""

import random


def letters(length: int, seed: int = 0, alphabet: str = "ACGT") -> str:
    """Random letters, the same for a seed."""
    return "".join(random.Random(seed).choices(alphabet, k=length))


def table(text: str) -> list[dict[str, str]]:
    """Rows of a TSV by the names of its columns."""
    header, *rows = (line.split("\t") for line in text.splitlines() if not line.startswith("#"))
    return [dict(zip(header, row, strict=True)) for row in rows]


def facts(text: str) -> dict[str, str]:
    """Facts of the header of a TSV by their names."""
    return dict(
        line[2:].split(": ", 1) for line in text.splitlines() if line.startswith("# ") and ": " in line
    )
