"""What each verb returns: predictions, explanations, evaluations, findings of an audit."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
