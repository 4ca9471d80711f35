"""Labeled data give a model file. Only this package knows Lightning."""

import os
from importlib import import_module

# Lightning reads these as numbers when it is imported; in the shell of a user, RANK may be a word (genus).
_words = {
    name: os.environ.pop(name)
    for name in ("RANK", "LOCAL_RANK", "SLURM_PROCID", "JSM_NAMESPACE_RANK")
    if not os.environ.get(name, "0").isdecimal()
}
if _words:
    import_module("lightning")
    os.environ.update(_words)
