"""What a scan by a model of windows says of its threshold, its classes and its number of calls."""

from __future__ import annotations

from dataclasses import replace

import pytest

from seqray.calibration import ExpectedPrecision
from seqray.cli.scan.facts import cautions, model_limits
from seqray.scanning import ScanOptions, ScanResult
from seqray.scanning.false_calls import FalseCalls

UNKNOWN = ExpectedPrecision.from_mapping({}, foreign=False)


def said(calls: int, **more) -> list[str]:
    """Of a scan of 10,000 letters with so many calls."""
    rest = {"positions": 10_000, "false_calls": None, "threshold": 0.5, "windows": 0, "unlike": None} | more
    result = ScanResult(calls=[None] * calls, contigs=1, letters=10_000, **rest)
    return list(cautions(result, ScanOptions(), UNKNOWN))


@pytest.mark.parametrize(("calls", "cautioned"), [(9, True), (20, True), (21, False), (0, False)])
def test_calls_as_frequent_as_chance_are_cautioned(calls, cautioned):
    chance = FalseCalls(1000, 600, 2000, 0.01, 10, 0.01)  # 10 (6 to 20) in the input
    line = f"shuffled sequence gives 10 calls (6 to 20) where the input has {calls}: by their number, the "
    assert said(calls, false_calls=chance) == [line + "calls can't be told from chance"] * cautioned


def test_a_scan_that_searched_nothing_is_cautioned():
    [line] = said(0, positions=0)
    assert line.startswith("no position was searched")


def test_a_model_without_a_threshold_for_scans_is_cautioned(tiny_model):
    card = replace(tiny_model.card, prevalence=0.4, threshold=0.45, info={}, site=3)
    [line] = model_limits(card, ScanOptions())
    assert "the threshold 0.45 is that for single windows, of which 40% were sites" in line
    assert not list(model_limits(card, ScanOptions(threshold=0.45)))
    assert not list(model_limits(card, ScanOptions(fdr=0.1)))
    assert not list(model_limits(replace(card, info={"scan_threshold": 0.9}), ScanOptions()))


def test_classes_that_are_not_searched_and_an_unknown_site_are_named(tiny_model):
    card, classes = tiny_model.card, ("sigma70", "sigma24", "sigma54", "background")
    known = {"classes": classes, "positive": "sigma70", "info": {"scan_threshold": 0.9}}
    card = replace(card, model=replace(card.model, classes=4), site=None, **known)
    assert list(model_limits(card, ScanOptions())) == [
        "only the class 'sigma70' is searched, none of the 3 others",
        "the model does not state where a site lies in its windows: calls state the middle",
    ]
