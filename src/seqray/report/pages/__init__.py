"""The pages: what each shows is computed here; its words are in ``templates/``.

- `explained`: what pages of explanations share; `sequences`, `record`: explained sequences
- `alignments`, `alignment_grid`, `pair_map`: explained alignments
- `scan`, `call_cards`, `call_figures`, `call_table`: a scan
- `evaluation`, `evaluation_tables`; `audit`; `summary`: one page each
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
