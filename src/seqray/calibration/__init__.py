"""Honest probabilities, and whether the input is like the training data.

- `fit`, `isotonic`: logits to probabilities; `conformal`: sets of classes with a promised coverage
- `expected_precision`: what to expect of a locator's calls, by species
- `domain`, `markov`, `signature`: how unlike the training data a window, or a whole file, is
- `training_sketch`: which sequences are training data
- `label_shift`: whether the scores of a file are like those of held-out examples
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
