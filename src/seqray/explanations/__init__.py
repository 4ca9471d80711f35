"""Which positions drive a prediction, and whether the ranking is reliable.

- `attribution`: rollout, gradients, mutagenesis; `checks`: faithfulness, significance; `motifs`
- `sequences`, `alignments`, `calls`: from records to explanations; `options`: what is explained, and how
- `groups`, `random_control`, `ranks`: shared by these
- `call_windows`, `stretches`: what a model of windows, or a locator, reads around the calls of a scan
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
