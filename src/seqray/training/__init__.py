"""Labeled data give a model file. Only this package knows Lightning.

- `data`, `batch_module`, `alignments`, `encode`, `augment`, `subclasses`: examples to batches
- `partitions`, `hold_out`: training and validation parts; `data_checks`, `data_hashes`: what they are made of
- `module`, `trainer`, `member`, `members`, `fit`: the training; `teacher`: learning from other models
- `data_facts`, `settings_from_data`: settings chosen from the data; `search`: better ones looked for
- `run_options`, `side_by_side`: folder, threads, and several networks at once
- `prefilter`, `drawn_windows`: the small networks that skip windows, and what they learn from
- `genomes`: genomes with mapped sites give a locator
- `masking`, `pretraining`: learning without labels
- `validation`, `final_card`, `workdir`: metrics, calibration and card, folder of a run
- `recalibration`: calibrate an existing model on new data
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
