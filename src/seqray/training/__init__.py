"""Labeled data give a model file. Only this package knows Lightning."""

import os
from importlib import import_module

# Lightning reads these as numbers when it is imported; in the shell of a user, RANK may be a word (genus).
_RANKS = ("RANK", "LOCAL_RANK", "SLURM_PROCID", "JSM_NAMESPACE_RANK")
if _words := {n: os.environ.pop(n) for n in _RANKS if not os.environ.get(n, "0").isdecimal()}:
    import_module("lightning")
    os.environ.update(_words)
