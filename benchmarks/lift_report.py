"""Prove the placement of every E. coli table on NC_000913.3 and write the proof down.

    python benchmarks/lift_report.py --data "$SEQRAY_DATA"

writes ``results/ecoli_lift.tsv`` (tables: genes whose two ends are where the annotation has them after the
lift, sites whose printed letters stand at the lifted place, sites dropped) and
``results/ecoli_lift_exceptions.tsv`` (every gene with an end elsewhere).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from coordinates import GenePair, OffsetMap
from ecoli_split import TEST
from ecoli_truth import Truth, in_region, load_truth
from machine import add_data, describe
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
EXCEPTION_COLUMNS = ("gene", "old_start", "old_end", "lifted_start", "lifted_end", "start", "end")


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


def exception_rows(truth: Truth) -> list[list[object]]:
    """Return every gene with an end that the lift brings elsewhere than the annotation has it."""
    rows = []
    for pair in sorted({pair for pairs in truth.pairs.values() for pair in pairs}):
        lifted = [truth.offsets.lift(old) for old in pair.old]
        if ends_kept(pair, truth.offsets) < 2:
            shown = ["between segments" if end is None else end for end in lifted]
            rows.append([pair.name, *pair.old, *shown, *pair.new])
    return rows


def main(argv: Sequence[str] | None = None) -> int:
    """Write the report."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    add_data(parser)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "ecoli_lift.tsv")
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
    exceptions = args.out.with_name(args.out.stem + "_exceptions.tsv")
    about = "genes with an end that moved otherwise; 1-based"
    write_table(exceptions, EXCEPTION_COLUMNS, exception_rows(truth), [*provenance, about])
    print(f"wrote {args.out}\nwrote {exceptions}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
