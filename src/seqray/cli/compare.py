"""``seqray compare``: the starts that two strains share, and those that moved, were lost or gained."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from seqray.cli.inputs import check_files, check_suffix
from seqray.cli.options import Outcome, Request, WholeNumber, option
from seqray.core.errors import InputError
from seqray.core.text import counted
from seqray.io.lines import parse_position
from seqray.io.records import read_fasta
from seqray.io.tables import MISSING, provenance_lines, read_rows, write_table

_REMEDY = "give two calls.tsv of 'seqray scan' with a model for genomes, or two of its --out FILE.fa"
_TABLE = ("id", "contig", "strand", "site", "score", "trust", "gene", "distance")
_STATED = ("site", "gene", "score", "trust")  # in the headers of FASTA
_WORD = 12  # letters that two starts share in a row before their letters are compared
_MIN_IDENTITY, _MIN_OVERLAP = 0.8, 30  # of these letters


class Start(NamedTuple):
    """A call as its file states it, with its distance to its gene; ``letters`` are empty but of FASTA."""

    call: str
    place: str
    gene: str
    distance: int | None
    score: str
    trust: str
    letters: str = ""


_CELLS = ("call", "place", "distance", "score", "trust")
COLUMNS = ("change", "gene", "shift", *(f"{cell}_{strain}" for strain in "ab" for cell in _CELLS))


def is_fasta(path: str) -> bool:
    """Whether a file holds letters, by its name."""
    return path.lower().removesuffix(".gz").endswith((".fa", ".fasta", ".fna"))


def read_starts(path: str | Path) -> list[Start]:
    """Read calls of a locator, TSV or CSV, or the letters around them as FASTA; their places count from 1."""
    starts = list[Start]()
    if is_fasta(str(path)):
        for record in read_fasta(path, soft_masks=False):
            about = dict(word.split("=", 1) for word in record.description.split() if "=" in word)
            place, gene, score, trust = (about.get(key, MISSING) for key in _STATED)
            distance = int(about["distance"]) if about.get("distance", "").isdecimal() else None
            starts.append(Start(record.id, place, gene, distance, score, trust, record.sequence))
        return starts
    for where, row in read_rows(path, _TABLE, _REMEDY):
        if re.fullmatch(re.escape(row["contig"]) + "_[0-9]+", row["gene"]):
            what = f"the gene '{row['gene']}' is named after its contig, so it has no name in another strain"
            remedy = "compare two --out FILE.fa, or give --genes to both scans"
            raise InputError(what, where=where, remedy=remedy)
        place = f"{row['contig']}:{parse_position(row['site'], where) + 1}({row['strand']})"
        distance = None if row["gene"] == MISSING else parse_position(row["distance"], where)
        starts.append(Start(row["id"], place, row["gene"], distance, row["score"], row["trust"]))
    return starts


def compare_starts(a: Sequence[Start], b: Sequence[Start], tolerance: int) -> Iterator[tuple[object, ...]]:
    """Rows of `COLUMNS`; a start that lies more than ``tolerance`` letters elsewhere has moved."""
    pairs = list(_by_letters(a, b) if any(start.letters for start in (*a, *b)) else _by_gene(a, b))
    # the nearest first; each start has one partner
    chosen, taken = dict[int, tuple[int, int]](), set[int]()
    for _, i, j, shift in sorted(pairs, key=lambda pair: (pair[0], abs(pair[3]), *pair[1:3])):
        if i not in chosen and j not in taken:
            chosen[i] = j, shift
            taken.add(j)
    for i, start in enumerate(a):
        if i in chosen:
            j, shift = chosen[i]
            yield _row("moved" if abs(shift) > tolerance else "same", start, b[j], shift)
        elif start.gene != MISSING or start.letters:
            yield _row("lost", start, None)
    for j, start in enumerate(b):
        if j not in taken and (start.gene != MISSING or start.letters):
            yield _row("gained", None, start)


def _row(change: str, a: Start | None, b: Start | None, shift: int | None = None) -> tuple[object, ...]:
    cells = [getattr(start, name) if start else None for start in (a, b) for name in _CELLS]
    return change, next(start.gene for start in (a, b) if start), shift, *cells


def _by_gene(a: Sequence[Start], b: Sequence[Start]) -> Iterator[tuple[float, int, int, int]]:
    """Pairs of one gene; the shift counts how much farther from the gene the second lies."""
    genes: dict[str, list[int]] = {}
    for j, start in enumerate(b):
        genes.setdefault(start.gene, []).append(j)
    for i, start in enumerate(a):
        for j in genes.get(start.gene, ()) if start.gene != MISSING else ():
            yield 0, i, j, (b[j].distance or 0) - (start.distance or 0)


def _by_letters(a: Sequence[Start], b: Sequence[Start]) -> Iterator[tuple[float, int, int, int]]:
    """Pairs whose letters agree; the shift counts how much farther upstream the second lies."""
    words: dict[str, list[tuple[int, int]]] = {}
    for j, start in enumerate(b):
        for at in range(len(start.letters) - _WORD + 1):
            words.setdefault(start.letters[at : at + _WORD], []).append((j, at))
    for i, start in enumerate(a):
        shifts: Counter[tuple[int, int]] = Counter()
        for at in range(len(start.letters) - _WORD + 1):
            shifts.update((j, other - at) for j, other in words.get(start.letters[at : at + _WORD], ()))
        for j, shift in shifts:
            own = start.letters[max(0, -shift) :]
            other = b[j].letters[max(0, shift) :]
            same = sum(map(str.__eq__, own, other))
            overlap = min(len(own), len(other))
            if overlap >= _MIN_OVERLAP and same >= _MIN_IDENTITY * overlap:
                yield 1 - same / overlap, i, j, shift


class CompareRequest(Request):
    """Options of ``seqray compare``."""

    a: str = option(
        "A", "calls of one strain: .tsv or .csv of 'seqray scan' with a model for genomes, or .fa"
    )
    b: str = option("B", "calls of the other strain, in the same format")
    out: str = option("--out -o FILE", "TSV or CSV (default: standard output)", "-")
    tolerance: WholeNumber = option(
        "--tolerance N", "bases that a start may lie elsewhere and is the same", 5
    )


def run(request: CompareRequest) -> Outcome:
    """Read both, match their starts, write."""
    check_suffix(request.out, ".tsv", ".csv")
    check_files([request.a, request.b], [request.out])
    if is_fasta(request.a) != is_fasta(request.b):
        raise InputError("is of another format than the first", where=request.b, remedy="give two of a kind")
    a, b = read_starts(request.a), read_starts(request.b)
    rows = list(compare_starts(a, b, request.tolerance))
    by = "the letters around them" if is_fasta(request.a) else "their genes"
    facts = {"matched by": f"{by}; more than {counted(request.tolerance, 'base')} elsewhere is moved"}
    write_table(request.out, COLUMNS, rows, provenance_lines(request.command, "", "", "", facts))
    changes = Counter(str(row[0]) for row in rows)
    told = ", ".join(f"{changes[change]} {change}" for change in ("same", "moved", "lost", "gained"))
    left = len(a) + len(b) - len(rows) - changes["same"] - changes["moved"]
    without = f"; {counted(left, 'call')} without a gene left out" if left else ""
    return Outcome(records=len(rows), last=f"{counted(len(a), 'start')} and {len(b)}: {told}{without}")
