"""Metrics of a model beside those of a floor, and whether the difference is significant.

- `run`: from labels and answers to an `Evaluation`; `measure`: metrics, intervals and differences
- `floor`: baselines to compare with; `subsets`: records of one context or range of similarity
- `curves`: points of ROC and other curves; `summary_text`: the summary on the terminal
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
