"""What a prefilter costs and saves: calls and seconds of scans with it, without it, and of every window.

    SEQRAY_DATA=... python benchmarks/prefilter.py
    SEQRAY_DATA=... python benchmarks/prefilter.py --model bacteria-promoter-fast --letters 100000

Parts of genomes are scanned three times: every window by the model, every tenth with refinement, and with the
prefilter. A call is lost if the scan of every window has it, and the other has none within ten letters on its
strand. Some genomes are among those that the prefilter learned from, others are not. Parts are scanned
twice by a model without one.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from machine import RESULTS, add_data, describe, script_parser
from seqray.core.records import SequenceRecord
from seqray.inference.origin import recognize_context
from seqray.io.sequences import read_sequences
from seqray.io.tables import write_table
from seqray.modelfile.file import load_model
from seqray.modelfile.model import TrainedModel
from seqray.scanning.options import ScanOptions
from seqray.scanning.scan import scan_records

COLUMNS = ("model", "genome", "letters", "learned_from", "way", "calls", "lost", "more", "wall_s", "cpu_s")
ECOLI = "ecoli_genome/GCF_000005845.2_ASM584v2_genomic.fna.gz"
GENOMES = {  # file: whether the shipped prefilter learned from it
    ECOLI: True,
    "genomes/12_Helicobacter_pylori_26695.gbk.gz": True,
    "genomes/Streptococcus_agalactiae_NEM316.fna.gz": False,
    "genomes/Zymomonas_mobilis_ZM4.fna.gz": False,
}
MODEL = "ecoli-promoter"
WAYS = {
    "every window": ScanOptions(stride=1, null_mb=0.0),
    "every tenth": ScanOptions(stride=10, null_mb=0.0),
    "prefilter": ScanOptions(null_mb=0.0),
}
START = 200_000
MAX_DISTANCE = 10

Site = tuple[str, int]
"""Strand and position of a call."""


def count_missing(wanted: Sequence[Site], found: Sequence[Site]) -> int:
    """Calls without one of the others within ten letters on their strand."""
    places = set(found)
    near = range(-MAX_DISTANCE, MAX_DISTANCE + 1)
    return sum(all((strand, site + step) not in places for step in near) for strand, site in wanted)


def rows_of(folder: Path, model: TrainedModel, letters: int) -> Iterator[tuple[object, ...]]:
    """A row per genome and way."""
    ways = WAYS if model.prefilter else {way: WAYS[way] for way in ("every window", "every tenth")}
    for genome, learned_from in GENOMES.items():
        whole = next(iter(read_sequences(folder / genome, model.alphabet)))
        part = SequenceRecord("part", whole.sequence[START : START + letters])
        read = recognize_context(model, [whole])[0]
        scans = {way: _scan(read, part, options) for way, options in ways.items()}
        everything = scans["every window"][0]
        for way, (sites, wall, cpu) in scans.items():
            lost, more = count_missing(everything, sites), count_missing(sites, everything)
            known = ("yes" if learned_from else "no") if model.prefilter else ""
            place = Path(genome).name.partition(".")[0]
            yield (
                model.card.name,
                place,
                len(part),
                known,
                way,
                len(sites),
                lost,
                more,
                f"{wall:.1f}",
                f"{cpu:.1f}",
            )


def _scan(model: TrainedModel, part: SequenceRecord, options: ScanOptions) -> tuple[list[Site], float, float]:
    wall, cpu = time.perf_counter(), time.process_time()
    calls = scan_records(model, [part], options).calls
    return [(c.strand, c.site) for c in calls], time.perf_counter() - wall, time.process_time() - cpu


def main(argv: Sequence[str] | None = None) -> None:
    """Write the table."""
    parser = script_parser(__doc__)
    add_data(parser)
    parser.add_argument("--model", default=MODEL)
    parser.add_argument("--letters", type=int, default=400_000, help="of each genome (default: 400000)")
    parser.add_argument("--out", type=Path, help="results/prefilter.tsv, or with the name of another model")
    options = parser.parse_args(argv)
    model = load_model(options.model)
    rows = list(rows_of(options.data, model, options.letters))
    name = "prefilter.tsv" if options.model == MODEL else f"prefilter_{model.card.name}.tsv"
    command = describe(["prefilter.py", *(sys.argv[1:] if argv is None else argv)])
    write_table(options.out or RESULTS / name, COLUMNS, rows, command)


if __name__ == "__main__":
    main()
