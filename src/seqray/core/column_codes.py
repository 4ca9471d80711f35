"""Codes of the columns of an alignment: letters of the alphabet, gaps and missing data.

A gap (``-``, ``.`` or ``_``) means that the sequence has no letter here; missing data (``~`` or ``?``) that
it is unknown. Their codes are above those of the alphabet: letters 0 to n - 1, ambiguity letters n, gap
n + 1, missing n + 2.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from seqray.core.alphabet import Alphabet
from seqray.core.arrays import Codes
from seqray.core.errors import InputError, OtherLettersError

GAPS, MISSING = b"-._", b"~?"
_NO_LETTERS = GAPS + MISSING
_INVALID = 255
_LAST_STOP = re.compile(rb"(?<=.)\*(?=[-._~?]*\Z)", re.DOTALL)


def gap_code(alphabet: Alphabet) -> int:
    """Code of a gap: the code of an ambiguity letter plus one."""
    return alphabet.unknown + 1


def missing_code(alphabet: Alphabet) -> int:
    """Code of missing data: the code of a gap plus one, the highest code."""
    return alphabet.unknown + 2


def encode_columns(rows: Sequence[bytes], names: Sequence[str], alphabet: Alphabet, where: str) -> Codes:
    """Turn aligned rows into codes.

    A stop (``*``) behind the last letter of a protein becomes a gap, as `Alphabet.normalize` drops it. Raises
    `InputError` if a row has a letter outside the alphabet, with its 1-based column; for a protein
    given as nucleotides, or nucleotides given as a protein, judged by the letters of all rows together.

    Parameters
    ----------
    rows
        R rows of C letters each; case doesn't matter, and T and U are one letter to DNA and RNA.
    names
        Of the rows, for errors.
    alphabet
        Gives the letters.
    where
        File and alignment, for errors.

    Returns
    -------
    array of uint8, shape (R, C)
    """
    if alphabet.name == "protein":
        rows = [_LAST_STOP.sub(b"-", row) for row in rows]
    joined = b"".join(rows)
    codes = np.frombuffer(bytearray(joined).translate(_code_table(alphabet)), dtype=np.uint8)
    codes = codes.reshape(len(rows), -1)
    letters = joined.translate(None, _NO_LETTERS)
    bad = np.argwhere(codes == _INVALID)
    if bad.size:
        row, column = bad[0].tolist()
        own = rows[row].translate(None, _NO_LETTERS)
        _refuse_kind(alphabet, own, f"{where}: row {names[row]!r}")
        letter = rows[row][column : column + 1].decode("latin-1")
        remedy = (
            f"{alphabet.name} has the letters {alphabet.letters} and the ambiguity codes "
            f"{alphabet.ambiguous}; gaps are - . _ and missing data ~ ?"
        )
        raise InputError(
            f"unknown letter {letter!r} at column {column + 1}",
            where=f"{where}: row {names[row]!r}",
            remedy="split or trim the sequence at the stop" if letter == "*" else remedy,
        )
    if letters:
        alphabet.normalize_bytes(letters, where)  # refuses what is of another kind
    return codes


def decode_columns(codes: npt.NDArray[np.uint8], alphabet: Alphabet) -> str:
    """Letters of one row (C,): ambiguity letters become ``N`` or ``X``, gaps ``-``, missing data ``~``."""
    table = (alphabet.letters + alphabet.unknown_letter + "-~").encode().ljust(256, b"?")
    return np.ascontiguousarray(codes, dtype=np.uint8).tobytes().translate(table).decode("ascii")


@functools.cache
def _code_table(alphabet: Alphabet) -> bytes:
    table = bytearray([_INVALID]) * 256
    for letter in range(ord("A"), ord("z") + 1):
        text = chr(letter)
        upper = text.upper() if text.isalpha() else ""
        upper = {"dna": {"U": "T"}, "rna": {"T": "U"}}.get(alphabet.name, {}).get(upper, upper)
        if upper and upper in alphabet.letters:
            table[letter] = alphabet.letters.index(upper)
        elif upper and upper in alphabet.ambiguous:
            table[letter] = alphabet.unknown
    for letter in GAPS:
        table[letter] = gap_code(alphabet)
    for letter in MISSING:
        table[letter] = missing_code(alphabet)
    return bytes(table)


def _refuse_kind(alphabet: Alphabet, letters: bytes, where: str) -> None:
    """Raise an error if the whole row is of another alphabet; the caller reports single unknown letters."""
    try:
        alphabet.normalize_bytes(letters, where)
    except InputError as error:
        if isinstance(error, OtherLettersError):
            raise
