"""Letters to tokens and back: `sequence` for sequences, `alignment` for the columns of alignments."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
