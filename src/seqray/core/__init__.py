"""What everything else speaks of: letters, records, settings, errors, results. No files, no networks.

- `alphabet`, `column_codes`, `arrays`, `kmers`, `shuffle`: letters and what is computed from letters alone
- `composition`: what a network counts in a sequence as its composition
- `truncation`: which letters are read of a sequence that is too long
- `peaks`: local maxima of a profile, and which of two neighbors is kept; `call_rules`: which are calls
- `records`, `intervals`: sequences, alignments, and regions on them; `reservoir`: a random sample of a stream
- `results`: what each verb returns; `msa`: rows and columns of alignments
- `run_config`, `model_config`, `model_parts`: settings
- `config_files`, `serialization`: how settings are read from YAML and JSON
- `card`: what a model file says of its model
- `numbers`, `class_names`: numbers and names of classes as text
- `errors`, `interrupt`, `progress`, `version`
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
