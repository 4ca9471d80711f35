"""One row per sample from the tables of calls: what their headers say, and how many calls they hold."""

import csv
import re
from collections.abc import Iterable
from pathlib import Path

COLUMNS = (
    "sample",
    "sequences",
    "letters",
    "calls",
    "calls_per_mb",
    "threshold",
    "false_calls_per_mb",
    "false_calls_per_mb_low",
    "false_calls_per_mb_high",
)
UNKNOWN = "."
SCANNED = re.compile(r"(\d+) sequences?, (\d+) letters,")
FALSE_CALLS = re.compile(r"(\S+) per Mb \(95 % interval (\S+) to (\S+?)\)")


def read_table(path: Path) -> tuple[dict[str, str], int]:
    """Read the facts in the ``# key: value`` lines of a table, and count its rows."""
    lines = path.read_text(encoding="utf-8").splitlines()
    comments = [line[2:].partition(": ") for line in lines if line.startswith("# ")]
    rows = sum(not line.startswith("#") for line in lines) - 1  # less the header
    return {key: value for key, _, value in comments}, rows


def summarize(sample: str, path: Path) -> list[str]:
    """Make the row of one sample, in the order of `COLUMNS`; ``.`` where something is not known."""
    facts, calls = read_table(path)
    scanned = SCANNED.match(facts["scanned"])
    if scanned is None:
        raise ValueError(f"{path}: the header does not say what was scanned")
    per_mb = facts["calls"].split()[1]
    threshold = facts["threshold"].split(",")[0]
    false_calls = FALSE_CALLS.match(facts["expected false calls"])
    return [
        sample,
        *scanned.groups(),
        str(calls),
        per_mb,
        threshold if threshold[0].isdigit() else UNKNOWN,
        *(false_calls.groups() if false_calls else [UNKNOWN] * 3),
    ]


def write(path: Path, rows: Iterable[list[str]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as handle:
        table = csv.writer(handle, delimiter="\t", lineterminator="\n")
        table.writerow(COLUMNS)
        table.writerows(rows)


if "snakemake" in globals():
    job = globals()["snakemake"]
    tables = zip(job.params.samples, job.input.tables, strict=True)
    write(Path(job.output.summary), (summarize(sample, Path(table)) for sample, table in tables))
