"""Inputs that tests write, and what they read of outputs.

- letters, record, fasta, genbank, gff3, tsv, write, bgzip: sequences and files of them
- changed_model: a model file with another card
- table, facts, body: rows and header of a TSV
"""

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any

from Bio.bgzf import BgzfWriter

from seqray.core.records import SequenceRecord


def letters(length: int, seed: int = 0, alphabet: str = "ACGT") -> str:
    """Random letters, the same for a seed."""
    return "".join(random.Random(seed).choices(alphabet, k=length))


def record(sequence: str, name: str = "r", **more: Any) -> SequenceRecord:
    """A record of these letters."""
    return SequenceRecord(name, sequence, **more)


def fasta(records: Mapping[str, str] | Iterable[SequenceRecord]) -> str:
    """FASTA of records, or of letters by their names; a name may have a text behind it."""
    pairs = records.items() if isinstance(records, Mapping) else ((r.id, r.sequence) for r in records)
    return "".join(f">{name}\n{sequence}\n" for name, sequence in pairs)


def tsv(header: str, rows: Iterable[Sequence[object]]) -> str:
    """A table of tabs; the names of its columns are parted by spaces, and "" leaves out their line."""
    lines = [header.split()] if header else []
    return "".join("\t".join(map(str, row)) + "\n" for row in (*lines, *rows))


def gff3(features: Iterable[tuple[str, int, int, str]], kind: str = "CDS") -> str:
    """GFF3 of features: contig, first and last letter (from 1), strand; ids tell the first letter."""
    rows = (f"{c}\ttest\t{kind}\t{a}\t{b}\t.\t{s}\t0\tID=cds-{a}\n" for c, a, b, s in features)
    return "##gff-version 3\n" + "".join(rows)


def genbank(name: str, sequence: str, genes: Sequence[str] = (), topology: str = "circular") -> str:
    """A GenBank record; genes are places such as ``complement(1..90)``, and are called g0, g1, ..."""
    lines = [f"LOCUS       {name} {len(sequence)} bp    DNA     {topology:8} BCT 01-JAN-2024"]
    lines += [f"VERSION     {name}", "FEATURES             Location/Qualifiers"]
    for number, place in enumerate(genes):
        lines += [f"     CDS             {place}", f'                     /gene="g{number}"']
    lines.append("ORIGIN")
    for i in range(0, len(sequence), 60):
        parts = [sequence[i : i + 60][j : j + 10] for j in range(0, 60, 10)]
        lines.append(f"{i + 1:>9} {' '.join(filter(None, parts)).lower()}")
    return "\n".join([*lines, "//", ""])


def write(path: Path, content: str | bytes) -> Path:
    """Write a file; returns its path."""
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def bgzip(data: bytes) -> bytes:
    """Blocks of gzip, as bgzip writes them."""
    target = BytesIO()
    target.close = lambda: None  # its writer closes it
    with BgzfWriter(fileobj=target, mode="wb") as writer:
        writer.write(data)
    return target.getvalue()


def changed_model(path: Path, model: Any, **card: Any) -> Path:
    """Write a model with other fields of its card; returns the path."""
    from seqray.modelfile.file import save_model

    save_model(path, model.networks, replace(model.card, **card))
    return path


def body(text: str) -> list[str]:
    """Lines of a text without those of its header, which begin with ``#``."""
    return [line for line in text.splitlines() if not line.startswith("#")]


def table(text: str) -> list[dict[str, str]]:
    """Rows of a TSV by the names of its columns."""
    header, *rows = (line.split("\t") for line in body(text))
    return [dict(zip(header, row, strict=True)) for row in rows]


def facts(text: str) -> dict[str, str]:
    """Facts of the header of a TSV by their names."""
    return dict(
        line[2:].split(": ", 1) for line in text.splitlines() if line.startswith("# ") and ": " in line
    )
