"""Prove the placement of every E. coli table on NC_000913.3 and write the proof down.

    python benchmarks/lift_report.py --data "$SEQRAY_DATA"

writes ``results/ecoli_lift.tsv`` (tables: genes whose two ends are where the annotation has them after the
lift, sites whose printed letters are at the lifted place, sites that are dropped).
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from coordinates import GenePair, OffsetMap
from ecoli_split import TEST
from ecoli_truth import Truth, in_region, load_truth
from machine import add_data, describe, script_parser
from seqray.io.tables import write_table

COLUMNS = (
    "table",
    "genes",
    "genes_both_ends",
    "genes_one_end",
    "genes_unknown",
    "sites",
    "sites_placed",
    "sites_with_letters",
    "letters_match",
    "sites_in_test_region",
)


def ends_kept(pair: GenePair, offsets: OffsetMap) -> int:
    """Return how many ends of a gene the lift brings to the annotated place: 0, 1 or 2."""
    return sum(offsets.lift(old) == new for old, new in zip(pair.old, pair.new, strict=True))


def table_row(name: str, truth: Truth) -> list[object]:
    """Return the proof for one table."""
    pairs = truth.pairs.get(name, ())
    kept = [ends_kept(pair, truth.offsets) for pair in pairs]
    result = truth.lifted[name]
    inside = len(in_region(result.placed, TEST))
    numbers = [len(pairs), kept.count(2), kept.count(1), truth.unknown_genes.get(name, 0)]
    numbers += [len(result.placed) + len(result.dropped), len(result.placed)]
    return [name, *numbers, result.checked, result.confirmed, inside]


def near_regulondb(truth: Truth, lifted: bool, distance: int = 2) -> int:
    """Count dRNA-seq starts within a distance of a RegulonDB promoter, before or after the lift."""
    known = {(row.position, row.strand) for row in truth.lifted["RegulonDB"].placed}
    steps = range(-distance, distance + 1)
    rows = truth.lifted["dRNA-seq"].placed
    starts = [(row.position if lifted else row.site.position - 1, row.strand) for row in rows]
    return sum(any((position + step, strand) in known for step in steps) for position, strand in starts)


def computational(truth: Truth) -> tuple[int, int]:
    """Count RegulonDB's promoters without an experiment, and those of them that are published predictions."""
    predicted = {(row.position, row.strand) for row in truth.predictions()}
    rows = [row for row in truth.lifted["RegulonDB"].placed if not row.site.experimental]
    return len(rows), sum((row.position, row.strand) in predicted for row in rows)


def main(argv: Sequence[str] | None = None) -> int:
    """Write the report."""
    parser = script_parser(__doc__, "ecoli_lift.tsv")
    add_data(parser)
    args = parser.parse_args(argv)
    truth = load_truth(args.data)
    provenance = describe(["lift_report.py"])
    notes = [
        f"NC_000913.2 {part.first}-{part.last}: offset {part.offset:+d} by {part.genes} genes"
        for part in truth.offsets.segments
    ]
    before, after = (near_regulondb(truth, lifted=lifted) for lifted in (False, True))
    counts = f"{before} before the lift, {after} after"
    notes.append(f"dRNA-seq starts within 2 nt of a RegulonDB promoter: {counts}")
    without, predicted = computational(truth)
    notes.append(f"RegulonDB without an experiment: {without}, of which published predictions: {predicted}")
    rows = [table_row(name, truth) for name in truth.lifted]
    write_table(args.out, COLUMNS, rows, [*provenance, *notes])
    print(f"wrote {args.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
