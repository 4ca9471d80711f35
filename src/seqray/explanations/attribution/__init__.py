"""Scores of positions: what each method computes, and which forward pass it uses.

- `methods`: the table of methods; `rollout_scores`, `sequence_scores`, `locator_scores`, `alignment_scores`:
  what each row of it computes
- `attention_rollout`, `gradients`, `mutagenesis`, `occlusion`: the methods; `heads`, `column_pairs`: figures
- `forward_trace`: a pass and its attention layers; `attention_layers`, `axial_attention`,
  `stored_attention`: a kind of attention each
- `targets`: the log-odds explained; `letters`: from tokens to letters; `shuffles`: shuffled copies
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
