"""Sites and scores along sequences.

- `calls` (TSV), `bed`, `gff3`, `genbank`: one format each
- `contexts`: what is known around a call of a locator, in each of them
- `features` reads the intervals of any annotation, `annotated` features with their parts and qualifiers
- `sites` reads single letters with their class and weight
- `statement`: what the header of a file of calls states about the scan
- `lines`: a feature, and lines of text
- `scores` writes bedGraph and bigWig; `explanation_scores`: those of explanations
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
