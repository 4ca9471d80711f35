"""What a scan says of its model, and of its calls: when not to trust them."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

from seqray.calibration.expected_precision import ExpectedPrecision
from seqray.genome.genes import Annotation, Gene
from seqray.scanning import describe as cautions
from seqray.scanning.calls import CallTable
from seqray.scanning.describe import call_cautions, model_limits
from seqray.scanning.options import ScanOptions
from seqray.scanning.results import FalseCalls, ScanResult

UNKNOWN = ExpectedPrecision.from_mapping({}, foreign=False)


def said(calls: int, **more) -> list[str]:
    """Of a scan of 10,000 letters with so many calls."""
    rest = {"positions": 10_000, "false_calls": None, "threshold": 0.5, "windows": 0, "unlike": None} | more
    result = ScanResult(calls=[None] * calls, contigs=1, letters=10_000, **rest)
    return call_cautions(result, ScanOptions(), UNKNOWN)


@pytest.mark.parametrize(("calls", "cautioned"), [(9, True), (20, True), (21, False), (0, False)])
def test_calls_as_frequent_as_chance_are_cautioned(calls, cautioned):
    chance = FalseCalls(1000, 600, 2000, 0.01, 10, 0.01)  # 10 (6 to 20) in the input
    line = (
        f"caution: shuffled sequence gives 10 calls (6 to 20) where the input has {calls}: by their number, "
    )
    assert said(calls, false_calls=chance) == [line + "the calls can't be told from chance"] * cautioned


def test_a_scan_that_searched_nothing_is_cautioned():
    [line] = said(0, positions=0)
    assert line.startswith("caution: no position was searched")


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


def scanned(*, letters: int, genes: int, **more) -> ScanResult:
    """A scan of one sequence without calls."""
    known = Annotation({"c": tuple(Gene(i, i + 9, "+", f"g{i}") for i in range(genes))}, "a file")
    rest = {"calls": CallTable("promoter", (0, 0)), "false_calls": None, "windows": 0, "unlike": None}
    rest |= {"threshold": 0.5, "positions": letters, "from_positions": True} | more
    return ScanResult(contigs=1, letters=letters, genes=known, **rest)


@pytest.mark.parametrize(
    ("options", "species", "caution"),
    [
        (
            {"precision": 0.7},
            "A",
            "in A, which the input is like, this threshold has 0.48: give species='A'",
        ),
        ({"precision": 0.5}, "A", None),  # .48 is near
        ({"precision": 0.7}, "B", None),  # was not measured
        ({"precision": 0.7, "species": "A"}, "A", None),
        ({"threshold": 0.7}, "A", None),
    ],
)
def test_a_precision_of_other_species_is_cautioned(options, species, caution):
    row = SimpleNamespace(species="A", precision=0.48)
    result = SimpleNamespace(expectation=SimpleNamespace(of={"A": row}.get), species=species)
    found = list(cautions._other_precision(result, ScanOptions(**options)))
    assert [caution in text for text in found] == ([True] if caution else [])


@pytest.mark.parametrize(
    ("recall", "text"),
    [
        ({False: 0.31, True: 0.42}, "at 1 call per kb, the model finds 0.31 of the mapped sites on average"),
        ({False: None, True: 0.42}, "without genes a locator finds fewer sites"),
    ],
)
def test_what_a_scan_without_genes_costs(recall, text):
    expected = SimpleNamespace(recall_at=lambda per_kb, genes, species: recall[genes])
    found = cautions._missed_without_genes(expected, None)
    assert text in found
    assert found.endswith("with genes 0.42") == (recall[False] is not None)


@pytest.mark.parametrize(
    ("genes", "said"),
    [(10, "expect other figures"), (30, None), (54, "try genes='predict' with codon_table=4 or 11")],
)
def test_too_few_and_too_many_genes_are_cautioned(genes, said):
    """Of 30 kb: .33, 1 and 1.8 per kb, as M. pneumoniae has by table 11."""
    found = list(cautions._locator_cautions(scanned(letters=30_000, genes=genes)))
    assert [said in text for text in found] == ([True] if said else [])


def test_of_contigs_without_genes_the_caution_says_which_precision_is_theirs():
    result = scanned(letters=10_000, genes=9, contigs_without_genes=1, letters_without_genes=4_000)
    [caution] = cautions._locator_cautions(result)
    assert "1 of 1 sequences are not named in a file" in caution
    assert "their 'precision' is that without genes, but the threshold and the precision to expect" in caution
    assert caution.endswith("by themselves with genes='predict' or genes=None")


@pytest.mark.parametrize(
    ("letters", "calls", "cautioned"), [(9000, 38, True), (9000, 19, False), (90_000, 0, True)]
)
def test_far_more_and_far_fewer_calls_than_in_measured_genomes_are_cautioned(letters, calls, cautioned):
    """Measured genomes have .6 to .8 per kb: more than 1.6 or fewer than .3 are far; few calls are chance."""
    rows = [SimpleNamespace(calls_per_kb=0.6), SimpleNamespace(calls_per_kb=0.8)]
    result = scanned(letters=letters, genes=letters // 1000, calls=[None] * calls)
    result = replace(result, expectation=SimpleNamespace(rows=rows))
    found = list(cautions._locator_cautions(result))
    assert ["calls per kb, where genomes that were measured have 0.6 to 0.8" in text for text in found] == [
        True
    ] * cautioned
