"""Networks: tokens in, logits out. They know neither files nor records.

- `tokenizers`: letters to tokens; `padding`, `batches`: tokens and masks of many records; `devices`
- `attention`, `windowed_attention`, `axial`, `positions`, `layers`, `dropout`, `kernels`: the parts
- `prefilter`: the small networks that skip windows; `helices`: columns of an alignment that pair
- `kmers`, `composition`: k-mers and shares of letters; `pooling`: what the head reads
- `smoothing`: scores of a locator that count what lies nearby
- `sequence`, `alignment`, `backbone`, `locator`: the networks; `build`: the one that settings name
- `output`: logits and attention
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
