"""What is said of a file that is unlike the training data: causes, their order and their number."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

from seqray.core.card_parts import CalibrationDomain
from seqray.core.results import Prediction
from seqray.inference import origin as file_check
from seqray.inference.origin import FileCheck


@pytest.mark.parametrize(("odd", "count", "told"), [(5, 99, True), (5, 100, False), (4, 10, False)])
def test_many_odd_records_are_told(tiny_model, odd, count, told):
    assert len(FileCheck(tiny_model)._out_of_domain(odd, count)) == told


def test_flags_as_common_as_in_a_later_calibration_are_no_caution(tiny_model):
    flags = {"out-of-domain": 0.1}
    domain = replace(tiny_model.card.domain, calibration=CalibrationDomain(flags))
    card = replace(tiny_model.card, domain=domain)
    check = FileCheck(replace(tiny_model, card=card))
    assert not check._out_of_domain(20, 100)
    [line] = check._out_of_domain(21, 100)
    assert "of which about 1 % are, and 10% of the data of its calibration;" in line


def test_few_lines_and_the_coverage_in_the_first(tiny_model, monkeypatch):
    known = replace(tiny_model.card, model=replace(tiny_model.card.model, contexts=("A", "B")))
    check = FileCheck(replace(tiny_model, card=known), coverage=0.9)
    rows = [Prediction(str(i), 3, "promoter", (0.5, 0.5), ("short", "out-of-domain")) for i in range(20)]
    check.see(predictions=rows)
    assert check.labels == {"promoter": 20}
    first, second = check.cautions()
    assert "out-of-domain" in first
    assert first.endswith("; coverage=0.9 can't be promised for this file")
    assert "whose context was known" in second
    monkeypatch.setattr(file_check, "MAX_CAUTIONS", 1)
    assert len(check.cautions()) == 1


def test_sets_without_the_context_are_cautioned(tiny_model):
    known = replace(tiny_model.card, model=replace(tiny_model.card.model, contexts=("A", "B")))
    model = replace(tiny_model, card=known)
    [line] = FileCheck(model, coverage=0.9).cautions()
    assert "were calibrated on records whose context was known" in line
    assert line.endswith("give context=...; coverage=0.9 can't be promised for this file")
    assert not FileCheck(model).cautions()
    assert not FileCheck(replace(model, context="A"), coverage=0.9).cautions()


def test_sites_that_lie_elsewhere_are_told(monkeypatch, tiny_model):
    found = SimpleNamespace(site=7, windows=128, before=3, after=60)
    monkeypatch.setattr(file_check, "find_shifted_site", lambda model, windows: found)
    held_out = SimpleNamespace(
        empty_sets=lambda *_: None,
        unclear_scores=lambda *_: None,
        has_few_calls=lambda *_: True,
    )
    [line] = FileCheck(tiny_model)._score_cautions(held_out)  # pyright: ignore[reportArgumentType]
    assert line == (
        "the sites seem to lie at index 7 of the windows, not 12: shifted, 60 of 128 windows are called "
        "promoter, and 3 as they are; cut windows that begin 5 letters earlier"
    )


def test_alignments_have_no_windows_around_a_site(alignment_model):
    model = replace(alignment_model, card=replace(alignment_model.card, site=3))
    FileCheck(model).see([SimpleNamespace(id="a")])
