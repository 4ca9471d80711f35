"""Genes on a genome, read or predicted.

- `genes`: a gene, and the genes of a genome; `index`: the nearest gene of a site
- `read`: genes of GenBank and GFF3 files
- `families`: which features belong to a gene; `pieces`: its intervals
- `check`: whether genes and sequences belong together
- `features`: genes as features of a file
- `coordinates`: genes on the other strand, and cut; `tracks`: genes as numbers along a strand
- `predict`: genes predicted by Pyrodigal; `circular`: genes across the origin
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
