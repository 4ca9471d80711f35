"""Inputs that once failed, or that the code showed to fail, by target.

What a campaign found is a file in the folder ``cases``, named after its target. The others are made here.
"""

import io
import json
from collections.abc import Iterator
from pathlib import Path

FOLDER = Path(__file__).parent / "cases"
DIGITS = b"9" * 5000
"""More than Python turns into a number."""


def _gff3(*lines: str) -> bytes:
    return "".join(f"{line}\n" for line in ("##gff-version 3", *lines)).encode()


def _row(kind: str, attributes: str) -> str:
    return f"one\tx\t{kind}\t1\t9\t.\t+\t.\t{attributes}"


def _late_date() -> bytes:
    """Parquet with a time that Python has no date for."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    sink = io.BytesIO()
    pq.write_table(pa.table({"id": ["a"], "when": pa.array([2**62], pa.timestamp("us"))}), sink)
    return sink.getvalue()


def _locus(length: bytes) -> bytes:
    from fuzz.sequences import CONTIG

    return CONTIG.replace(b"TEST                      40 bp", b"TEST " + length + b" bp")


def _calibrated_beyond_float32() -> Iterator[bytes]:
    """Model files with a map of log-odds, and a temperature, that float32 can't hold."""
    from fuzz.models import TARGETS

    (target,) = (one for one in TARGETS if one.name == "engine-signed")
    line, _, numbers = target.seeds()[0].partition(b"\n")
    for key, value in (("isotonic", {"before": [0, 1], "after": [0, 1e300]}), ("temperature", 1e-300)):
        parts = json.loads(line)
        parts["card"][key] = value
        yield json.dumps(parts).encode() + b"\n" + numbers


def made() -> Iterator[tuple[str, str, bytes]]:
    """Target, a word, and the input."""
    numbers = ("3²", DIGITS.decode(), "٣")
    for number in numbers:
        yield "gff3", "length of a sequence", _gff3(f"##sequence-region one 1 {number}", _row("CDS", "ID=a"))
        yield "gff3", "number of a part", _gff3(*[_row("CDS", f"ID=a;part={number}")] * 2)
    yield "gff3", "a parent of itself", _gff3(_row("tRNA", "ID=a;Parent=a"))
    yield "sites", "a column within quotes", b'contig\t"a\tsite\tb"\none\t5\n'
    yield (
        "summaries",
        "a long number",
        b"".join(
            [
                b"# scanned: 1 sequence, 300 letters, 5 positions\n# calls: ",
                DIGITS,
                b", 5 per Mb\n# threshold: 0.5\n",
            ]
        )
        + b"contig\tsite\tscore\n",
    )
    yield "parquet", "a late date", _late_date()
    for name in (b"name", b"seed"):
        yield "yaml", "a long number in hexadecimal", name + b": 0x" + b"f" * 5000
        yield "yaml", "a long number in sixties", name + b": 1" + b":59" * 3000
    yield "yaml", "a long number as a name", b"0x" + b"f" * 5000 + b": 1"
    yield "genbank", "a long sequence that is not there", _locus(b"9" * 30)
    yield "fasta", "a protein of a stop alone", b">a\n*\n"
    for content in _calibrated_beyond_float32():
        yield "engine-signed", "a calibration beyond float32", content


def all_cases() -> list[tuple[str, str, bytes]]:
    """Target, a word, and the input of each case."""
    found = [
        (path.stem.partition("-")[0], path.stem, path.read_bytes()) for path in sorted(FOLDER.glob("*.bin"))
    ]
    return [*made(), *found]
