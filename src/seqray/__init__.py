"""seqray: classify biological sequences with transformers and see which positions the decision rests on.

Importing this package is cheap: torch, pandas and the rest are loaded when a name is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_HOME = {
    "load_model": "seqray.zoo",
    "SequenceClassifier": "seqray.estimator",
    "predict": "seqray.api",
    "scan": "seqray.api",
    "explain": "seqray.api",
    "origin": "seqray.api",
    "predict_records": "seqray.prediction",
    "scan_records": "seqray.scanning",
    "explain_records": "seqray.explanations.run",
    "ExplainOptions": "seqray.explanations.run",
    "ScanOptions": "seqray.scantypes",
    "evaluate_scores": "seqray.evaluation.run",
    "read_fasta": "seqray.io.fasta",
    "read_genbank": "seqray.io.genbank",
    "SequenceRecord": "seqray.records",
    "Prediction": "seqray.results",
    "Call": "seqray.results",
    "Explanation": "seqray.explanation_results",
    "Evaluation": "seqray.evaluation_results",
    "SeqrayError": "seqray.errors",
    "InputError": "seqray.errors",
    "ConfigError": "seqray.errors",
    "ModelFileError": "seqray.errors",
}

__all__ = ["__version__", *_HOME]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        value = getattr(import_module(_HOME[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'seqray' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
