"""Subclasses: parts of a class that the network learns to tell apart.

Negatives are often made in several ways, and a network that learns them as one class confuses what each of
them lacks. The head has a logit for each subclass, and the probability of a class is the sum over its
subclasses.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from seqray.core import ConfigError, Example, RunConfig

MIN_SUBCLASS_EXAMPLES = 10
"""Examples of a subclass for settings chosen from the data: a column of unique names is no subclass."""


def count_subclasses(config: RunConfig, data: Sequence[Example], classes: Sequence[str]) -> RunConfig:
    """Add the number of subclasses of each class to the settings, if the network learns subclasses.

    Examples of split ``test`` don't count. ConfigError is raised where no example names its subclass.
    """
    if not config.data.subclasses:
        return replace(config, model=replace(config.model, subclasses=()))
    subclasses = subclass_names(data, classes)
    if not any(name for names in subclasses for name in names):
        raise ConfigError(
            "'data.subclasses' is set, but no example names its subclass",
            remedy="add a column 'subclass' to the table",
        )
    return replace(config, model=replace(config.model, subclasses=tuple(map(len, subclasses))))


def subclass_indices(data: Sequence[Example], classes: Sequence[str]) -> np.ndarray:
    """Index of the subclass of each example among those of all classes: int64 (N,); -1 if never learned."""
    pairs = [
        (label, subclass)
        for label, subclasses in zip(classes, subclass_names(data, classes), strict=True)
        for subclass in subclasses
    ]
    index = {pair: number for number, pair in enumerate(pairs)}
    return np.array([index.get((one.label or "", one.subclass or ""), -1) for one in data], dtype=np.int64)


def has_subclasses(data: Sequence[Example]) -> bool:
    """Whether some classes have several subclasses, and each of these at least `MIN_SUBCLASS_EXAMPLES`."""
    counts = Counter((one.label, one.subclass or "") for one in data)
    subclasses = Counter(label for label, _ in counts)
    divided = [count for (label, _), count in counts.items() if subclasses[label] > 1]
    return min(divided, default=0) >= MIN_SUBCLASS_EXAMPLES


def subclass_names(data: Sequence[Example], classes: Sequence[str]) -> list[list[str]]:
    """Names of the subclasses of each class, sorted; empty where none is named."""
    found: dict[str, set[str]] = {name: set() for name in classes}
    for one in data:
        if one.split != "test":
            found[one.label or ""].add(one.subclass or "")
    return [sorted(found[name]) for name in classes]
