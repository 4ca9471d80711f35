"""The command `seqray`: a file, or a folder, for each verb; `dispatch` is the table of verbs."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
