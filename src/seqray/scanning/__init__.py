"""Sites along sequences of any length.

- `types`: settings and results; `windows`: which windows are scored
- `sweep`, `work`: scores along a contig; `peaks`, `calls`: sites; `false_calls`: calls expected by chance
- `scan`: all of it; `shards`, `shard_file`: a part of it
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
