"""Negative examples for positive ones: one recipe for each question.

- `make`: the negatives as a whole; `options`, `recipes`: what to make; `groups`: what a split keeps together
- `derived`, `transformations`: negatives made from a positive; `windows`, `sampling`: windows of a genome
- `genome`, `annotation`, `occurrences`: the genome, its genes and starts, and the positives on it
- `regions`: where the windows of each recipe may lie
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
