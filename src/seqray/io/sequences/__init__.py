"""Sequences: one file a format, `sniff` tells the format, `read` opens any of them."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
