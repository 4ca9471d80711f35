"""The best calls of a scan of E. coli beside the nearest transcription start that was mapped, to read by eye.

    seqray scan GCF_000005845.2_ASM584v2_genomic.gbff.gz --model bacteria-genome --out calls.gff3
    python benchmarks/best_calls.py --data "$SEQRAY_DATA" --calls calls.gff3

Calls are those in the test region of ``scan_ecoli.py``, which no model saw. The nearest start is that of
RegulonDB 13, EcoCyc or the dRNA-seq table on the strand of the call; ``offset`` is how many letters the call
lies behind it in reading direction. ``evidence`` are the experiments that RegulonDB names, and its grade:
C confirmed, S strong, W weak. Sequences are not written beyond the boxes.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Sequence

from ecoli_split import TEST
from ecoli_truth import Placed, Truth, load_truth
from machine import add_data, describe, script_parser
from seqray.core.results import Call
from seqray.io.gff3 import read_called
from seqray.io.tables import write_table

SOURCES = ("RegulonDB", "EcoCyc", "dRNA-seq")
COLUMNS = ("rank", "site", "strand", "score", "gene", "to_start_codon", "minus35", "spacer", "minus10")
COLUMNS += ("mapped", "offset", "name", "sources", "sigma", "grade", "evidence")
MAX_START_DISTANCE = 1  # letters between starts that are one start in two tables


def best(calls: Iterable[Call], region: tuple[int, int], count: int) -> list[Call]:
    """The calls of highest score in a region, 0-based and half-open; ties go by position."""
    inside = [call for call in calls if region[0] <= call.site < region[1]]
    return sorted(inside, key=lambda call: (-call.score, call.site))[:count]


def offset(call: Call, row: Placed) -> int:
    """Letters from a mapped start to a call in reading direction."""
    return (call.site - row.position) * (1 if call.strand == "+" else -1)


def nearest(call: Call, truth: Truth) -> dict[str, Placed]:
    """The start nearest to a call on its strand, by source: all tables that have it."""
    rows = [(name, row) for name in SOURCES for row in truth.lifted[name].placed if row.strand == call.strand]
    _, first = min(rows, key=lambda pair: abs(offset(call, pair[1])))
    same = [(name, row) for name, row in rows if abs(row.position - first.position) <= MAX_START_DISTANCE]
    return dict(sorted(same, key=lambda pair: -abs(pair[1].position - first.position)))


def table_row(rank: int, call: Call, truth: Truth) -> Iterator[object]:
    """Cells of `COLUMNS`; positions count from 1."""
    context, found = call.context, nearest(call, truth)
    yield from (rank, call.site + 1, call.strand, call.score)
    if context is None:
        yield from [None] * 5
    else:
        boxes = {box.name: box.letters for box in context.boxes}
        near = context.gene or None, context.distance
        yield from (*near, boxes.get("-35"), context.spacer, boxes.get("-10"))
    row = next(found[name] for name in SOURCES if name in found)
    known = found["RegulonDB"].site if "RegulonDB" in found else row.site
    yield from (row.position + 1, offset(call, row), known.name, ", ".join(s for s in SOURCES if s in found))
    yield from (known.sigma or None, known.confidence or None, known.evidence or None)


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = script_parser(__doc__, "best_calls.tsv")
    add_data(parser)
    parser.add_argument("--calls", required=True, help="GFF3 of seqray scan")
    parser.add_argument("--count", type=int, default=10)
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> None:
    args = parse(arguments)
    truth = load_truth(args.data)
    chosen = best(read_called(args.calls).calls, TEST, args.count)
    rows = (tuple(table_row(rank, call, truth)) for rank, call in enumerate(chosen, start=1))
    write_table(args.out, COLUMNS, rows, describe(["best_calls.py", "--calls", args.calls]))


if __name__ == "__main__":
    main()
