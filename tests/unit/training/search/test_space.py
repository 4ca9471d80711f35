"""The table of a search, and what is drawn from it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from seqray.core.alphabet import DNA, PROTEIN
from seqray.core.run_config import RunConfig, change_settings
from seqray.core.serialization import to_mapping
from seqray.training.data_facts import DataFacts
from seqray.training.search import SPACE, draw_configurations, rows_for
from seqray.training.settings_from_data import choose_settings

ROOT = Path(__file__).parents[4]
SITE = DataFacts(alphabet=DNA, counts={"a": 3000, "b": 2000}, shortest=81, longest=81, site=True)
PEPTIDES = DataFacts(alphabet=PROTEIN, counts={"a": 3000, "b": 2000}, shortest=5, longest=200)


def names(facts: DataFacts, *fixed: str) -> set[str]:
    return {row.name for row in rows_for(facts, set(fixed))}


def test_rows_fit_the_data_and_leave_what_the_user_has_set():
    assert "letters by position" in names(SITE)
    assert "letters by position" not in names(replace(SITE, contexts=("x", "y")))
    assert not {"letters by end", "other strand"} & names(SITE)
    assert "other strand" in names(replace(SITE, site=False))
    assert {"letters by end", "what the head reads"} <= names(PEPTIDES)
    assert "margin of rare classes" not in names(PEPTIDES)
    assert "margin of rare classes" in names(replace(PEPTIDES, counts={"a": 3000, "b": 100}))
    assert "other strand" not in names(PEPTIDES)
    assert names(SITE) - names(SITE, "model.heads", "optimizer.mixup") == {"width", "mixup"}


def drawn(facts: DataFacts, count: int = 9, *, seed: int = 1, two: bool = False, best=None, tried=()):
    begin = choose_settings(facts)
    rows, rng = rows_for(facts, set()), np.random.default_rng(seed)
    return begin, draw_configurations(begin, best or {}, rows, count, rng, tried=[begin, *tried], two=two)


def tokens(config: RunConfig) -> int:
    assert config.model.stem is not None
    return -(-config.data.window // config.model.stem.stride)


@pytest.mark.parametrize("facts", [SITE, PEPTIDES, replace(SITE, site=False, shortest=81, longest=3000)])
@pytest.mark.parametrize("two", [False, True])
def test_configurations_are_new_valid_and_made_of_their_changes(facts, two):
    begin, found = drawn(facts, two=two)
    assert len(found) == 9
    seen = [begin]
    for changes, config in found:
        assert changes
        assert config == change_settings(begin, changes)
        assert config not in seen
        seen.append(config)
        assert tokens(config) <= max(512, tokens(begin))


def test_one_change_is_one_row_and_the_best_is_kept():
    rows = {path: row.name for row in SPACE for one in row.alternatives for path in one}
    _, found = drawn(SITE)
    assert all(len({rows[path] for path in changes}) == 1 for changes, _ in found)
    best = {"optimizer.mixup": 0.3}
    begin, found = drawn(SITE, best=best)
    mixed = [changes.get("optimizer.mixup") for changes, _ in found]
    assert mixed.count(0.3) >= 8  # one may take it back
    assert begin.optimizer.mixup == 0


def test_the_seed_decides_and_a_space_that_is_used_up_ends():
    assert drawn(SITE) == drawn(SITE)
    assert drawn(SITE) != drawn(SITE, seed=2)
    begin = RunConfig()
    row = next(row for row in SPACE if row.name == "mixup")
    found = draw_configurations(begin, {}, [row], 5, np.random.default_rng(0), tried=[begin], two=True)
    assert [changes for changes, _ in found] == [{"optimizer.mixup": 0.3}]
    assert draw_configurations(begin, {}, [], 5, np.random.default_rng(0), tried=[], two=False) == []


def shown(value: Any) -> str:
    if isinstance(value, tuple):
        return " ".join(map(str, value))
    return f"{value:g}" if isinstance(value, float) else str(value)


def test_settings_are_changed_by_their_path():
    config = change_settings(RunConfig(), {"model.stem.kernels": (3, 5), "trainer.max_epochs": 4})
    assert config.model.stem is not None
    assert config.model.stem.kernels == (3, 5)
    assert to_mapping(config)["trainer"] == {"max_epochs": 4}
