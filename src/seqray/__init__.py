"""Classify biological sequences with transformers and see which positions the decision rests on.

Importing this package is cheap: torch, pandas and the rest are loaded when a name is first used.
docs/architecture.md says what each package holds.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
