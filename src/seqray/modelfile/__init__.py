"""A model as a product: weights with their card in one file, the shipped models, encoders of others.

- `file`: load and save; `header`: the card in the file; `trained`: a model in memory; `self_test`
- `stored`: a model whose weights stay arrays, for engines that need no torch
- `networks`, `tokenization`: the network and the tokenizer that a card names; `size_limit`: how large
- `prefilter`: the small networks that skip windows, in the same file
- `zoo`: the shipped models; `output_path`: where a new file may lie
- `initial_weights`: where training starts; `backbones`: Hugging Face encoders
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
