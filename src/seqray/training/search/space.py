"""The settings that a search tries; docs/how-to/train.md shows the same table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from seqray.core import ConfigError, RunConfig, change_settings, to_mapping
from seqray.training.data_facts import DataFacts, has_rare_class

MAX_TOKENS = 512
"""Of a sequence, unless the search begins with more: the time of attention grows with their square."""
TWO_CHANGES = 0.5
"""Probability that a configuration after the first round differs in two rows of the table."""
_MAX_ATTEMPTS = 40  # draws for each configuration that is wanted

Changes = Mapping[str, Any]
"""Settings by ``section.key``, as in ``--set``."""


def _each(setting: str, *values: Any) -> tuple[Changes, ...]:
    return tuple({setting: value} for value in values)


def _always(facts: DataFacts) -> bool:
    return True


@dataclass(frozen=True)
class Row:
    """A row of the table.

    The name and the condition are in words, the condition empty for all data. Each of the alternatives is a
    set of settings that go together, for data that ``applies`` accepts.
    """

    name: str
    alternatives: tuple[Changes, ...]
    applies: Callable[[DataFacts], bool] = field(default=_always, repr=False)
    condition: str = ""


def _one_length(facts: DataFacts) -> bool:
    return facts.one_length and not facts.contexts


def _any_length(facts: DataFacts) -> bool:
    return not facts.one_length


def _rare_class(facts: DataFacts) -> bool:
    return has_rare_class(facts.counts)


def _either_strand(facts: DataFacts) -> bool:
    return facts.alphabet.is_nucleotide and not facts.site


SPACE: tuple[Row, ...] = (
    Row("learning rate", _each("optimizer.learning_rate", 5e-4, 1e-3, 2e-3, 4e-3)),
    Row("dropout", _each("model.dropout", 0.1, 0.2, 0.3, 0.4, 0.5)),
    Row(
        "width",
        tuple(
            {"model.d_model": width, "model.heads": width // 32, "model.d_ff": 2 * width}
            for width in (32, 64, 128, 192)
        ),
    ),
    Row("layers", _each("model.layers", 1, 2, 3, 4)),
    Row("kernels of the stem", _each("model.stem.kernels", (3, 7), (7, 15), (5, 9, 15, 21))),
    Row("letters to a token", _each("model.stem.stride", 1, 2, 3, 4, 6, 8)),
    Row("k-mers", _each("model.words", 0, 2, 3, 4)),
    Row(
        "letters by position",
        tuple(
            {"model.position_gain": gain, "model.position_matrix": matrix}
            for gain, matrix in (("none", "none"), ("shared", "none"), ("shared", "shared"))
        ),
        _one_length,
        "windows of one length, without contexts",
    ),
    Row("letters by end", _each("model.ends", 0, 12, 24, 48), _any_length, "sequences of different lengths"),
    Row(
        "what the head reads",
        _each("model.pooling", ("cls",), ("cls", "mean", "max"), ("mean", "max"), ("mean", "max", "ends")),
        _any_length,
        "sequences of different lengths",
    ),
    Row(
        "composition",
        _each("model.composition", (), ("whole",), ("whole", "pairs"), ("whole", "ends", "pairs")),
        _any_length,
        "sequences of different lengths",
    ),
    Row(
        "margin of rare classes",
        _each("optimizer.logit_adjustment", 0.0, 0.5, 1.0),
        _rare_class,
        "data with a rare class",
    ),
    Row("masked letters", _each("augment.mask", 0.0, 0.1, 0.2)),
    Row("label smoothing", _each("optimizer.label_smoothing", 0.0, 0.05, 0.1)),
    Row("mixup", _each("optimizer.mixup", 0.0, 0.3)),
    Row("weight decay", _each("optimizer.weight_decay", 0.01, 0.05, 0.2)),
    Row(
        "other strand",
        _each("augment.reverse_complement", 0.0, 0.5),
        _either_strand,
        "DNA and RNA, not cut around a site",
    ),
)


def rows_for(facts: DataFacts, fixed: Set[str]) -> list[Row]:
    """Rows that apply to the data and change none of the ``fixed`` settings."""
    return [
        row
        for row in SPACE
        if row.applies(facts) and not any(setting in fixed for one in row.alternatives for setting in one)
    ]


def draw_configurations(
    begin: RunConfig,
    best: Changes,
    rows: Sequence[Row],
    count: int,
    rng: np.random.Generator,
    *,
    tried: Sequence[RunConfig],
    two: bool,
) -> list[tuple[Changes, RunConfig]]:
    """Draw configurations beside the best one: each differs from it in one row of the table, or in two.

    Parameters
    ----------
    best
        What the best one changes in it.
    count
        Number of configurations; fewer come back where there are no more.
    tried
        Configurations that are not drawn again.
    two
        Whether some differ in two rows.
    """
    drawn: list[tuple[Changes, RunConfig]] = []
    seen = list(tried)
    order: list[Row] = []
    for _ in range(count * _MAX_ATTEMPTS if rows else 0):
        if len(drawn) == count:
            break
        order = order or [rows[i] for i in rng.permutation(len(rows))]
        chosen = [order.pop()]
        if two and rng.random() < TWO_CHANGES:
            chosen.append(rows[int(rng.integers(len(rows)))])
        changes = dict(best)
        for row in chosen:
            changes |= row.alternatives[int(rng.integers(len(row.alternatives)))]
        config = _changed(begin, changes)
        if config is not None and config not in seen:
            seen.append(config)
            drawn.append((_effective(begin, changes), config))
    return drawn


def _changed(begin: RunConfig, changes: Changes) -> RunConfig | None:
    """The configuration; None where the settings don't go together, or make too many tokens."""
    try:
        config = change_settings(begin, changes)
    except ConfigError:
        return None
    stem = config.model.stem
    tokens = -(-config.data.window // (stem.stride if stem else 1))
    before = -(-begin.data.window // (begin.model.stem.stride if begin.model.stem else 1))
    return config if tokens <= max(MAX_TOKENS, before) else None


def _effective(begin: RunConfig, changes: Changes) -> Changes:
    """Those that are none in the configuration that the search began with are left out."""
    before = to_mapping(begin)
    return {path: value for path, value in changes.items() if _value(before, path) != _plain(value)}


def _value(mapping: Any, path: str) -> Any:
    for key in path.split("."):
        mapping = mapping.get(key) if isinstance(mapping, dict) else None
    return mapping


def _plain(value: Any) -> Any:
    """A value as `to_mapping` has it: lists, no tuples."""
    return list(value) if isinstance(value, tuple) else value
