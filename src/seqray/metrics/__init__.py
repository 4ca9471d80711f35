"""Metrics of classifiers, each defined once: scores, intervals, tests of differences, baselines.

- `classification`: AUROC, AUPRC, MCC, calibration error and the like, for weighted records
- `bootstrap`: draws over groups, confidence intervals, p-values of differences
- `paired_tests`: McNemar's test of two classifiers on the same records
- `matching`: calls along a strand and the known sites that they claim
- `baselines`: classifiers that a network has to beat
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
