"""What `import seqray` gives: the verbs as functions, the estimator, DataFrames."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
