"""Alignments: one file a format, `read` opens any of them, `labeled` those with labels."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
