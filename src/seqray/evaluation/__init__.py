"""Figures beside a floor: what a model and trivial rules score, and whether the difference is real."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
