"""Kinds of models: what each reads, and how its input is opened, classified and explained.

- `kind`: what a kind brings; `sequences`, `alignments`, `locators`: the kinds; `table`: `kind_of`, the only
  table of them
- `labeled`: labeled examples in files; `python_objects`: sequences and alignments as Python holds them
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
