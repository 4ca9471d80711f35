"""Cut the stretch of the example out of the genome of E. coli, with its genes.

    python data/stretch.py --data "$SEQRAY_DATA" --out data/example/stretch.gb

The stretch lies in the test region of the benchmarks, which no shipped model was trained on.
"""

from __future__ import annotations

import argparse
import gzip
import os
from pathlib import Path

from Bio import SeqIO
from Bio.SeqRecord import SeqRecord

GENOME = "ecoli_genome/GCF_000005845.2_ASM584v2_genomic.gbff.gz"
START, END = 2_310_000, 2_350_000
"""0-based and half-open, in NC_000913.3."""
SHOWN_TYPES = ("gene", "CDS", "tRNA", "rRNA", "ncRNA")
KEPT = ("gene", "locus_tag", "product", "codon_start", "transl_table")


def cut(genome: SeqRecord) -> SeqRecord:
    """Return the stretch: its letters, and names and products of the genes that lie within it."""
    stretch = genome[START:END]
    stretch.id = stretch.name = "ecoli_stretch"
    stretch.description = f"Escherichia coli K-12 MG1655, {genome.id}:{START + 1}-{END}"
    stretch.annotations = {"molecule_type": "DNA", "topology": "linear", "organism": "Escherichia coli K-12"}
    stretch.features = [one for one in stretch.features if one.type in SHOWN_TYPES]
    for feature in stretch.features:
        feature.qualifiers = {name: feature.qualifiers[name] for name in KEPT if name in feature.qualifiers}
    return stretch


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    data = os.environ.get("SEQRAY_DATA")
    about = "folder of the public files (default: $SEQRAY_DATA)"
    parser.add_argument("--data", type=Path, default=data, required=data is None, help=about)
    parser.add_argument("--out", type=Path, required=True, help="GenBank file to write")
    args = parser.parse_args()
    with gzip.open(args.data / GENOME, "rt") as handle:
        genome = next(SeqIO.parse(handle, "genbank"))
    SeqIO.write(cut(genome), args.out, "genbank")


if __name__ == "__main__":
    main()
