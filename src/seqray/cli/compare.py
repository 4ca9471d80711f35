"""``seqray compare``: the starts that two strains share, and those that moved, were lost or gained."""

from __future__ import annotations

from collections import Counter

from seqray.cli.inputs import check_files, check_suffix
from seqray.cli.options import Outcome, Request, WholeNumber, option
from seqray.core.errors import InputError


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
    from seqray.core.text import counted
    from seqray.io.tables import provenance_lines, write_table
    from seqray.scanning.strains import COLUMNS, compare_starts, is_fasta, read_starts

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
