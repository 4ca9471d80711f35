"""The command `seqray`: a file, or a folder, for each verb; `verbs` is their table, `dispatch` runs one."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
