"""The only readers and writers of files. Behind them coordinates are 0-based and half-open.

- `files`: open plain or compressed files, write whole or not at all; `staging`: several outputs together
- `hidden`: folders beside outputs; `pipes`: nothing is read from a pipe twice, unless it is kept
- `sequences`: FASTA and GenBank; `alignments`: Stockholm, A3M, PHYLIP, Clustal, aligned FASTA
- `tables`: TSV, CSV, Parquet, JSON, MEME; `tracks`: GFF3, BED, bedGraph, bigWig
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
