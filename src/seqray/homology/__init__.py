"""Which sequences are related, how data are split without separating relatives, and the proof of a split.

- `shared_kmers`: sequences that share a k-mer; `shared_loci`: letters in a shared k-mer
- `alignment`: identity of two sequences
- `seeds`, `candidates`: pairs that are worth an alignment; `similarity`: best matches and groups by alignment
- `mmseqs`: groups by MMseqs2; `groups`: groups by name or position; `relatives`: all kinds together
- `folds`: folds and parts of whole groups; `split`: the whole split; `proof`: similarity between its parts
- `options`: settings and their defaults
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
