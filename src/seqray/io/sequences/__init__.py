"""Sequences: one file per format, `sniff` recognizes the format, `read` opens any, `records` validates."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
