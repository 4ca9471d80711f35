"""Sites along sequences of any length.

- `options`, `results`: settings, and what is returned
- `detector`: what scores: `window_detector`, `position_detector`; `detectors`: that of a model
- `windows`, `positions`: the windows or positions of a contig; `cutoffs`: which windows are skipped;
  `genes`: where its genes are from
- `peak_finder`: where their scores peak exactly
- `scanner`: the work in independent units; `finalize`, `calls`, `false_calls`: calls, and those by chance
- `describe`, `boxes`: the genes and letters around a call of a locator; `cautions`: when not to trust calls
- `scan`: a whole scan; `shards`, `shard_file`: a part of one
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
