"""Genomes with mapped sites give a locator.

- `sheet`, `genome`: the rows of a sheet, and genomes in memory with sites, genes and held-out regions
- `strands`, `levels`, `labels`: a strand in reading direction, soft labels, and what each position weighs
- `sources`, `chunks`, `data`: what chunks are drawn from, in which order, and as batches
- `module`, `prepare`, `fit`: the training
- `calls`, `evaluation`, `composition`: calls in development regions, and what the card says of them and of
  the genomes
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
