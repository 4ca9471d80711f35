"""A search for better settings than the rules choose.

- `space`: the table of settings that are tried
- `budget`: how long the search may take
- `alternatives`: a few settings that the data decide on, also without a search
- `successive_halving`: successive halving, from the configuration that the search begins with
- `trials`: one training of the search, and its folder
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
