"""Classify biological sequences with transformers; torch, pandas and others load when they are used."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
