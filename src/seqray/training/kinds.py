"""Kinds of a class, which the network learns to tell apart beside the classes.

Negatives are often made in several ways, and a network that learns them as one class confuses what each of
them lacks. The head has a logit for each kind, and the answer for a class is the sum over its kinds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from seqray.core import ConfigError, Example, LabeledSequence, RunConfig

FEWEST = 10


def count_kinds(config: RunConfig, data: Sequence[Example], classes: Sequence[str]) -> RunConfig:
    """The settings with the number of kinds of each class, where they are to be told apart.

    Parameters
    ----------
    config
        With `DataConfig.kinds`.
    data
        Labeled examples; those of split ``test`` don't count.
    classes
        Names in the order of the logits.

    Raises
    ------
    ConfigError
        Where no example names its kind.
    """
    if not config.data.kinds:
        return replace(config, model=replace(config.model, kinds=()))
    kinds = kind_names(data, classes)
    if not any(name for names in kinds for name in names):
        raise ConfigError(
            "'data.kinds' is set, but no example names its kind", remedy="add a column 'kind' to the table"
        )
    return replace(config, model=replace(config.model, kinds=tuple(map(len, kinds))))


def kind_indices(data: Sequence[Example], classes: Sequence[str]) -> np.ndarray:
    """Index of the kind of each example among those of all classes: int64 (N,); -1 for one never learned.

    Parameters
    ----------
    data, classes
        See `count_kinds`.
    """
    pairs = [
        (label, kind)
        for label, kinds in zip(classes, kind_names(data, classes), strict=True)
        for kind in kinds
    ]
    index = {pair: number for number, pair in enumerate(pairs)}
    return np.array([index.get((one.label or "", kind_of(one)), -1) for one in data], dtype=np.int64)


def has_kinds(data: Sequence[Example]) -> bool:
    """Whether a class has examples of several kinds, and `FEWEST` or more of each kind.

    Parameters
    ----------
    data
        Examples to learn from.
    """
    counts = Counter((one.label, kind_of(one)) for one in data)
    classes = Counter(label for label, _ in counts)
    return max(classes.values(), default=1) > 1 and min(counts.values()) >= FEWEST


def kind_of(example: Example) -> str:
    """Name of the kind; empty where none is named."""
    return (example.kind or "") if isinstance(example, LabeledSequence) else ""


def kind_names(data: Sequence[Example], classes: Sequence[str]) -> list[list[str]]:
    """Names of the kinds of each class, sorted; empty where none is named.

    Parameters
    ----------
    data, classes
        See `count_kinds`.
    """
    found: dict[str, set[str]] = {name: set() for name in classes}
    for one in data:
        if one.split != "test":
            found[one.label or ""].add(kind_of(one))
    return [sorted(found[name]) for name in classes]
