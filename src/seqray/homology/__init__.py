"""Which sequences are related, how a data set is split without dividing relatives, and the proof of it.

- `seeds`, `kmers`, `sketch`: candidates; `alignment`, `similarity`, `relations`: which of them are related
- `mmseqs`: the same by MMseqs2; `splits`, `split`: parts and folds; `proof`: what remains between parts
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
