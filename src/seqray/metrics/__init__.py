"""Figures of merit, each once: scores, intervals, tests of differences, baselines.

- `classification`: AUROC, AUPRC, MCC, calibration error; `weighted`: the same with weights
- `intervals`, `resampling`: confidence intervals; `paired_tests`: two models on the same records
- `baselines`: classifiers that a network has to beat
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
