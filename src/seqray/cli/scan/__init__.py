"""`seqray scan`: `arguments` -> `run` -> `outputs`; `shards` writes one share, `command` what is recorded."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
