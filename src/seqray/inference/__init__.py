"""A model and records give probabilities.

- `sequences`, `alignments`: records to predictions; `labeled`: probabilities of labeled examples
- `cascade`, `prefilters`: windows that a first member or a small network gives up
- `contexts`: the species that the records are like
- `predictions`: settings, and probabilities to results
- `locators`: scores of every position along strands
- `file_check`: whether many records are like the training data together: `origin` by their k-mers,
  `record_lengths`, and `site_place`, whether windows are cut around another place than the model's site
- `parallel`: batches at the same time, each in one thread
- `engines`, `onnx`: the same computed by ONNX Runtime or OpenVINO
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
