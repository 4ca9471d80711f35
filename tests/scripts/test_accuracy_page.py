"""The page of accuracy says what the table says."""

from __future__ import annotations

from accuracy_page import PAGE, page, read
from accuracy_sets import FOLDS, TEST_SETS
from automatic import COLUMNS, SETS
from seqray.core.run_config import load_run_config
from seqray.modelfile.header import FOLDER


def test_the_page_is_that_of_the_table():
    assert PAGE.read_text(encoding="utf-8") == page(*read())


def test_every_row_is_of_a_known_set_and_every_set_has_a_configuration():
    known = {task.shown: task for task in (*TEST_SETS, *FOLDS)}
    _, rows = read()
    assert {row["set"] for row in rows} <= set(known)
    for task in TEST_SETS:
        assert load_run_config(PAGE.parents[1] / "configs" / f"{task.model}.yaml").name == task.model
    for task in FOLDS:
        load_run_config(PAGE.parents[1] / "configs" / f"{task.config}.yaml")


def test_figures_of_a_test_part_are_those_of_a_shipped_model():
    _, rows = read()
    tests = {task.shown for task in TEST_SETS}
    for row in rows:
        if row["set"] in tests:
            assert (FOLDER / f"{row['model']}.safetensors").exists()
            assert 0 <= float(row["seqray"]) <= 1
            assert not row["low"] or float(row["low"]) <= float(row["seqray"]) <= float(row["high"])


def test_the_trainings_without_settings_are_of_known_sets():
    _, rows = read(PAGE.parents[1] / "benchmarks" / "results" / "automatic.tsv")
    assert set(rows[0]) == set(COLUMNS)
    assert {row["set"] for row in rows} <= set(SETS)
    for row in rows:
        if row["difference"]:
            gap = float(row["automatic"]) - float(row["tuned"])
            assert abs(gap - float(row["difference"])) < 2e-4
