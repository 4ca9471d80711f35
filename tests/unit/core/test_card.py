"""The card: validated on the way in, the same text for the same content, readable by people."""

import json
from dataclasses import replace

import numpy as np
import pytest

from seqray.core.card import Card, card_from_mapping, card_to_json, card_to_mapping, describe_card, list_card
from seqray.core.card_parts import (
    Domain,
    HeldOutRanks,
    LocatorFacts,
    PrefilterFacts,
    RisingMap,
    SpeciesTable,
)
from seqray.core.errors import ModelFileError
from seqray.core.model_config import ModelConfig, StemConfig
from seqray.core.text import headline_metric

LEVELS = PrefilterFacts(levels=np.array([[0.5, -1.0, 0.1]]))
FIGURE = {"value": 0.8213, "low": 0.8, "high": 0.84}


def make_card(**changes):
    settings = {
        "name": "toy",
        "summary": "a toy",
        "classes": ("background", "promoter"),
        "positive": "promoter",
        "window": 21,
        "site": 15,
        "model": ModelConfig(d_model=8, heads=2, layers=1, max_length=32, stem=StemConfig(kernels=(3,))),
        "metrics": {"grouped": {"mcc": FIGURE}, "headline": {"metric": "mcc", "split": "grouped", **FIGURE}},
        "info": {"licence": "CC0", "limits": ["one species only", "no plasmids"]},
    }
    return Card(**(settings | changes))


def test_a_card_survives_json():
    card = make_card(temperature=1.234567890123, domain=Domain("dna", (21, 21), ()))
    assert card_from_mapping(json.loads(card_to_json(card))) == card


def test_the_text_does_not_depend_on_the_order_of_keys():
    one = make_card(info={"a": 1, "b": 2})
    two = make_card(info={"b": 2, "a": 1})
    assert card_to_json(one) == card_to_json(two)


def test_the_positive_class_has_a_column():
    assert make_card().positive_index == 1
    assert make_card(classes=("promoter", "background")).positive_index == 0


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"classes": ("promoter", "promoter")}, "'classes' repeats"),
        ({"classes": ("promoter", "")}, "'classes' has the name '', which is empty"),
        ({"classes": ("promoter", "a\tb")}, r"'a\\tb', which holds a tab, a line break"),
        ({"classes": ("a", "b", "promoter")}, "names 3 but the network has 2"),
        ({"positive": "enhancer"}, "'enhancer'"),
        ({"window": 33}, "'window' is outside"),
        ({"site": 21}, "'site' lies outside"),
        ({"members": 6}, "'members' is outside"),
        ({"temperature": 0.0}, "'temperature' is outside 1e-06 to 1e\\+06"),
        ({"temperature": 1e-300}, "'temperature' is outside"),  # float32 has no number for 1/T
        ({"threshold": 1.5}, "'threshold' is outside 0 to 1"),
        ({"isotonic": RisingMap(np.zeros(1), np.zeros(1))}, "'isotonic' needs format 2"),
        (
            {
                "isotonic": RisingMap(np.zeros(1), np.zeros(1)),
                "format": 2,
                "classes": ("a", "b", "promoter"),
                "model": ModelConfig(d_model=8, heads=2, layers=1, classes=3),
            },
            "'isotonic' is for two classes",
        ),
        ({"prefilter": LEVELS}, "'prefilter' needs format 3"),
        ({"prefilter": replace(LEVELS, second=np.array([-1.0])), "format": 3}, "second' needs format 4"),
        (
            {"prefilter": replace(LEVELS, members=np.array([[-1.0]])), "format": 3},
            "each network but the last",
        ),
        ({"conformal": {"promoter": HeldOutRanks(1, np.ones(1), np.ones(1))}}, "lacks the class background"),
    ],
)
def test_a_card_that_contradicts_itself_is_refused(changes, words):
    with pytest.raises(ModelFileError, match=words):
        make_card(**changes)


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda m: m.pop("window"), "'window' is missing"),
        (lambda m: m.pop("format"), "'format' is None"),
        (lambda m: m.update(classes="promoter"), "'classes' is 'promoter'"),
        (lambda m: m["model"].update(wings=2), "unknown setting 'model.wings'"),
        (lambda m: m["model"].update(heads=3), "multiple of 'model.heads'"),
        (lambda m: m.update(format=5, seqray_version="7.1.0"), "format 5, written by seqray 7.1.0"),
    ],
)
def test_a_damaged_mapping_is_refused(damage, words):
    mapping = json.loads(card_to_json(make_card()))
    damage(mapping)
    with pytest.raises(ModelFileError, match=words):
        card_from_mapping(mapping)


def test_a_fact_added_later_is_ignored():
    card = make_card()
    assert card_from_mapping(card_to_mapping(card) | {"colour": "red"}) == card


def test_what_json_cannot_hold_is_refused():
    for value in (float("nan"), object()):
        with pytest.raises(ModelFileError, match="can't be written as JSON"):
            card_to_json(make_card(info={"x": value}))


def test_people_read_what_a_model_reads_finds_and_lacks():
    lines = describe_card(make_card(info={"scan_threshold": 0.75, "limits": ["one species only"]}))
    assert "reads: sequences of 21 bases" in lines
    assert "calls: promoter, from a score of 0.5; in scans from 0.75" in lines
    assert "measured: MCC 0.82 (0.80 to 0.84), grouped" in lines
    assert lines[lines.index("limits:") + 1] == "  - one species only"
    assert not any("temperature" in line for line in lines)


def test_all_facts_are_one_a_line():
    lines = list_card(replace(make_card(), self_test={"sequences": ["ACGT"], "logits": [[0.0, 0.0]]}))
    assert "name: toy" in lines
    assert "classes: background, promoter" in lines
    assert "    mcc: 0.8213 (0.8 to 0.84)" in lines
    assert lines[lines.index("  limits:") + 1 : lines.index("  limits:") + 3] == [
        "    - one species only",
        "    - no plasmids",
    ]
    assert "  sequences: 1" in lines
    assert not any("None" in line or "ACGT" in line for line in lines)


def test_number_tables_are_told_by_their_size():
    card = make_card(
        format=2,
        isotonic=RisingMap(np.array([-2.0, 2.0]), np.array([-1.0, 2.0])),
        conformal=dict.fromkeys(("background", "promoter"), HeldOutRanks(40, np.ones(1), np.ones(1))),
    )
    lines = list_card(card)
    assert lines[lines.index("isotonic:") + 1] == "  knots: 2"
    assert lines[lines.index("conformal:") + 1] == "  background: 40 held-out examples"


def test_a_card_without_a_map_stays_readable_for_older_versions():
    assert card_to_mapping(make_card())["format"] == 1


def test_the_headline_is_one_figure():
    assert headline_metric(make_card().metrics) == "MCC 0.82 (0.80 to 0.84), grouped"
    assert (
        headline_metric(make_card(metrics={"headline": {"metric": "auroc", "value": 0.9}}).metrics)
        == "AUROC 0.90"
    )
    assert headline_metric(make_card(metrics={}).metrics) == "-"
    facts = {"validation": {"auroc": 0.875, "mcc": 0.5}}
    assert headline_metric({}, facts) == "AUROC 0.88, validation part of its training"
    facts |= {"floor": {"linear": {"auroc": 0.9}}}
    assert "AUROC 0.88 (its linear baseline alone: 0.90), valid" in headline_metric({}, facts)


def test_a_locator_is_described_without_its_tables():
    rows = np.array([[0.5, 1.25, 0.4, 0.3, 0.2, 0.4]])
    one = SpeciesTable(species="Toy bacterium", held_out="region", genes=True, rows=rows)
    tables = (one, replace(one, species="Another"), one)
    card = make_card(locator=LocatorFacts(tables, (0, 0), tolerance=25))
    assert card_from_mapping(json.loads(card_to_json(card))) == card
    lines = "\n".join(list_card(card))
    assert "tolerance: 25" in lines
    assert lines.count("Toy bacterium") == 1
    assert "0.25" not in lines
    assert "1.25" not in lines
    assert "locator" not in "\n".join(list_card(make_card()))


@pytest.mark.parametrize(
    "facts",
    [
        {"extent": 5},
        {"extent": [-1, 0]},
        {"threshold_without_genes": 2},
        {"expected": [{}]},
    ],
)
def test_a_damaged_locator_is_named(facts):
    with pytest.raises(ModelFileError, match=r"^model description: 'locator"):
        card_from_mapping(card_to_mapping(make_card()) | {"locator": facts})


@pytest.mark.parametrize(
    "facts",
    [
        *({"levels": rows} for rows in (None, [], [[0.5, 0]], [[0.5, 0, 1.1]], [[0.5, float("nan"), 0.1]])),
        *({"levels": rows} for rows in ([[0.5, "0", 0.1]], [[0.5, 0.1, 0.1]], [[0.5, 10**400, 0.1]])),
        {"levels": [[0.8, -1, 0.1], [0.5, -1, 0.1]]},
        {"lost": 2},
        *({"second": cutoffs} for cutoffs in ([], [-1, -1], ["0"], [0.1], [float("nan")], 3)),
        *({"members": rows} for rows in ([], [[-1], [-1]], [["0"]], [[1.4]], [[float("nan")]], 3)),
    ],
)
def test_a_damaged_prefilter_is_named(facts):
    part = {"levels": [[0.5, -1.0, 0.1]]} | facts
    with pytest.raises(ModelFileError, match=r"^model description: 'prefilter"):
        card_from_mapping(card_to_mapping(make_card(format=4, members=2)) | {"prefilter": part})
