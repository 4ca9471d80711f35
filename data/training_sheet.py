"""The sheet that `seqray train` reads: genomes worth training on, and species with contexts alone."""

from __future__ import annotations

import csv
import gzip
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

from genome_sources import EUKARYOTES

Row = dict[str, object]
Cells = dict[str, str]

SHARES = {"ecoli": 6.0}
"""How often a genome is drawn, beside its quality and its length; 1 for the others."""
CONTEXT_SHARE = 5.0
ENTERICS = ("Escherichia", "Klebsiella", "Salmonella")
"""Genera of the sheet by which a locator is specialized on *E. coli*."""
INSIDE_MAPPED, INSIDE_UNKNOWN = 0.1, 0.1
"""Above this share of starts inside genes they were mapped there. If not, unlabeled positions inside genes
weigh this little."""


def write_table(path: Path, rows: Iterable[Row]) -> None:
    """Write rows of the same columns as TSV; no rows make an empty file."""
    rows = list(rows)
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "wt", newline="") as handle:
        if rows:
            table = csv.DictWriter(handle, list(rows[0]), delimiter="\t", lineterminator="\n")
            table.writeheader()
            table.writerows(rows)


def read_table(path: Path) -> list[Cells]:
    """Read a TSV, compressed or not."""
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", newline="") as handle:
        return list(csv.DictReader(handle, delimiter="\t"))


def training_rows(folder: Path) -> Iterator[Row]:
    """Yield the rows of the sheet, from the tables in a folder; write the contexts as genomes beside it."""
    yield from genome_rows(folder, "bacteria")
    found: dict[tuple[str, str], dict[str, Cells]] = defaultdict(dict)
    for row in read_table(folder / "contexts.tsv.gz"):
        if float(row["weight"]) > 0 and not row["shares"]:
            found[row["species"], row["genus"]].setdefault(row["sequence"], row)  # copies count once
    for (species, genus), rows in found.items():
        yield context_row(folder, species, genus, list(rows.values()))


def genome_rows(folder: Path, domain: str) -> Iterator[Row]:
    """Yield the rows of all genomes of a domain that have starts of use."""
    for row in read_table(folder / "genomes.tsv"):
        if row["domain"] == domain and float(row["weight"]) > 0:
            yield genome_row(row, read_table(folder / row["sites"]))


def genome_row(row: Cells, sites: list[Cells]) -> Row:
    """Return the row of a genome; its genes are predicted, as those of most genomes to be scanned are.

    Those of fungi are given, because the prediction knows no introns, and those of protozoa are not known.
    """
    inside = sum(site["site"] != "promoter" for site in sites) / max(len(sites), 1)
    eukaryote = row["domain"] in EUKARYOTES
    return {
        "species": row["species"],
        "group": row["genus"],
        "genome": row["genome"],
        "genes": (row["genes"] or "none") if eukaryote else "predict",
        "sites": row["sites"],
        "held_out": f"{row['name']}.split.bed",
        "weight": float(row["weight"]) * SHARES.get(row["name"], 1.0),
        "inside": 1.0 if eukaryote or inside > INSIDE_MAPPED else INSIDE_UNKNOWN,
    }


def context_row(folder: Path, species: str, genus: str, rows: list[Cells]) -> Row:
    """Write the contexts of a species as a genome of short contigs; return its row."""
    name = "contexts-" + "-".join(re.findall(r"[a-z0-9]+", species.lower()))
    ids = [f"{name}-{number}" for number in range(1, len(rows) + 1)]
    with gzip.open(folder / f"{name}.fa.gz", "wt") as handle:
        handle.writelines(f">{id_}\n{row['sequence']}\n" for id_, row in zip(ids, rows, strict=True))
    genes = "".join(gene_lines(id_, row) for id_, row in zip(ids, rows, strict=True))
    (folder / f"{name}.gff3").write_text("##gff-version 3\n" + genes)
    starts = [int(row["index"]) + 1 for row in rows]
    write_table(
        folder / f"{name}.sites.tsv",
        [
            {"contig": id_, "position": start, "strand": "+", "site": "promoter", "weight": 1.0}
            for id_, start in zip(ids, starts, strict=True)
        ],
    )
    return {
        "species": f"{species} (contexts)",
        "group": genus,
        "genome": f"{name}.fa.gz",
        "genes": f"{name}.gff3",
        "sites": f"{name}.sites.tsv",
        "held_out": "",
        "weight": round(float(rows[0]["weight"]) * CONTEXT_SHARE, 2),
        "inside": 1.0,
    }


def gene_lines(contig: str, row: Cells) -> str:
    """Return lines of GFF3: the length of a context, and the gene that begins within it, if one does.

    The genes of a contig that the file does not name would count as not known.
    """
    length = len(row["sequence"])
    named = f"##sequence-region {contig} 1 {length}\n"
    if not row["distance"]:
        return named
    start = int(row["index"]) + int(row["distance"]) + 1  # 1-based
    kind = "CDS" if row["type"] == "CDS" else "tRNA"
    if not 1 <= start <= length - len("ATG"):
        return named
    return f"{named}{contig}\t.\t{kind}\t{start}\t{length}\t.\t+\t0\tID={contig};end_range={length},.\n"
