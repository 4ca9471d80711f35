"""What would mislead a model in labeled data: leaks, copies, shortcuts.

- `run`: the audit as a whole; `dataset`: the data as columns; `validation`: training and test rows, intervals
- `composition`, `copies`, `relatives`, `order`, `rules`, `baselines`: figures by section
- `findings`, `leaks`, `shortcuts`: what the figures mean; `figure_table`: figures by name
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
