"""What a scan says of its model, and of its calls: when not to trust them."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from seqray.calibration.expected_precision import Expectation, SpeciesRow
from seqray.genome.genes import Gene, Genome
from seqray.modelfile.model import TrainedModel
from seqray.scanning.calls import CallTable
from seqray.scanning.contigs import Contig
from seqray.scanning.options import ScanOptions
from seqray.scanning.results import FalseCalls, ScanCounts, ScanResult
from seqray.scanning.scorers import make_scorer
from seqray.scanning.words import call_cautions, genome_cautions


def scanned(*, letters=10_000, calls=0, positions=None, genes=0, parts=None, **more) -> ScanResult:
    """A scan of one sequence, on one strand, with so many calls and genes; None for unknown genes."""
    table, contig = CallTable("promoter", (0, 0)), Contig("c", letters, False, parts)
    sites = np.arange(calls)
    table.add(
        replace(contig, parts=None), [("+", sites, np.full(calls, 0.6), np.empty((calls, 0), np.uint8))]
    )
    genome = Genome({"c": tuple(Gene(i, i + 9, "+", f"g{i}") for i in range(genes or 0))}, "a file")
    rest = {"threshold": 0.5, "genes": genome if more.get("from_positions") and genes is not None else None}
    positions = letters if positions is None else positions
    counts = ScanCounts(contigs=1, letters=letters, positions=2 * positions)
    return ScanResult(calls=table, counts=counts, scanned=[contig], **rest, **more)


DEFAULT = ScanOptions()


def said(options=DEFAULT, **more) -> list[str]:
    return list(call_cautions(scanned(**more), options))


def located(options=DEFAULT, **more) -> list[str]:
    """What is said of a scan with a locator, in which ten genes of 10,000 letters are known."""
    return said(options, **{"from_positions": True, "genes": more.get("letters", 10_000) // 1000, **more})


def rows_of(*rows, left_out=True):
    spread = [row.precision for row in rows if (row.held_out == "species") == left_out]
    return Expectation(rows, left_out, min(spread), sum(spread) / len(spread), max(spread))


@pytest.mark.parametrize(("calls", "cautioned"), [(9, True), (20, True), (21, False), (0, False)])
def test_calls_as_frequent_as_chance_are_cautioned(calls, cautioned):
    chance = FalseCalls(1000, 600, 2000, 0.01, 10, 0.01)  # 10 (6 to 20) in the input
    line = (
        f"caution: shuffled sequence gives 10 calls (6 to 20) where the input has {calls}: by their number, "
    )
    assert said(calls=calls, false_calls=chance) == [line + "the calls can't be told from chance"] * cautioned


def test_a_scan_that_searched_nothing_is_cautioned():
    [line] = said(positions=0)
    assert line.startswith("caution: no position was searched")


def limits(tiny, options=DEFAULT, **card):
    return make_scorer(TrainedModel(replace(tiny.card, **card), tiny.networks), options).limits


def test_a_model_without_a_threshold_for_scans_is_cautioned(tiny_model):
    card = {"prevalence": 0.4, "threshold": 0.45, "info": {}, "site": 3}
    [line] = limits(tiny_model, **card)
    assert "the threshold 0.45 is that for single windows, of which 40% were sites" in line
    assert not limits(tiny_model, ScanOptions(threshold=0.45), **card)
    assert not limits(tiny_model, ScanOptions(fdr=0.1), **card)
    assert not limits(tiny_model, **card | {"info": {"scan_threshold": 0.9}})


def test_classes_that_are_not_searched_and_an_unknown_site_are_named(tiny_model):
    classes = ("sigma70", "sigma24", "sigma54", "background")
    known = {"classes": classes, "positive": "sigma70", "info": {"scan_threshold": 0.9}}
    model = replace(tiny_model.card.model, classes=4)
    assert limits(tiny_model, model=model, site=None, **known) == [
        "only the class 'sigma70' is searched, none of the 3 others",
        "the model does not state where a site lies in its windows: calls state the middle",
    ]


@pytest.mark.parametrize(
    ("options", "species", "caution"),
    [
        ({"precision": 0.7}, "A", "in A, which the input is like, this threshold has 0.48: give species='A'"),
        ({"precision": 0.5}, "A", None),  # .48 is near
        ({"precision": 0.7}, "B", None),  # was not measured
        ({"precision": 0.7, "species": "A"}, "A", None),
        ({"threshold": 0.7}, "A", None),
    ],
)
def test_a_precision_of_other_species_is_cautioned(options, species, caution):
    expectation = rows_of(SpeciesRow("A", "region", 0.0, 0.5, 0.48, 0.4, 0.5), left_out=False)
    found = located(ScanOptions(**options), expectation=expectation, species=species)
    assert [caution in text for text in found] == ([True] if caution else [])


@pytest.mark.parametrize(
    ("recalls", "text"),
    [
        ((0.31, 0.42), "finds 0.31 of the mapped sites on average, and with genes 0.42"),
        ((None, 0.42), "without genes a model for genomes finds fewer sites"),
    ],
)
def test_what_a_scan_without_genes_costs(recalls, text):
    [found] = said(from_positions=True, recalls=recalls, genes=None)
    assert text in found


@pytest.mark.parametrize(
    ("genes", "words"),
    [(10, "expect other figures"), (30, None), (54, "try genes='predict' with codon_table=4 or 11")],
)
def test_too_few_and_too_many_genes_are_cautioned(genes, words):
    """Of 30 kb: .33, 1 and 1.8 per kb, as M. pneumoniae has by table 11."""
    assert [words in text for text in located(letters=30_000, genes=genes)] == ([True] if words else [])


def test_codon_tables_are_no_remedy_where_genes_were_predicted():
    result = scanned(from_positions=True, genes=54, letters=30_000)
    result.genes = replace(result.genes, source="predicted by pyrodigal 3")
    [caution] = call_cautions(result, DEFAULT)
    assert "1.8 genes per kb" in caution
    assert "codon" not in caution


def test_an_empty_input_has_no_caution_about_genes():
    result = scanned(from_positions=True, genes=None, recalls=(None, 0.4))
    result.scanned = []
    assert list(call_cautions(result, DEFAULT)) == []


@pytest.mark.parametrize(
    ("model", "letters", "better"),
    [
        ("ecoli-promoter", 500_000, "bacteria-genome"),
        ("ecoli-promoter", 499_999, None),
        ("ecoli-promoter", None, None),
        ("human-promoter-300", 500_000, None),
    ],
)
def test_a_model_of_windows_on_a_whole_genome_names_one_for_genomes(model, letters, better):
    assert [better in text for text in genome_cautions(model, letters)] == ([True] if better else [])


def test_of_contigs_without_genes_the_caution_says_which_precision_is_theirs():
    result = scanned(from_positions=True, genes=9)
    result.scanned = [*result.scanned, Contig("d", 4000, False)]
    [caution] = call_cautions(result, ScanOptions())
    assert "1 of 2 sequences are not named in a file" in caution
    assert "their 'precision' is that without genes, but the threshold and the precision to expect" in caution
    assert caution.endswith("by themselves with genes='predict' or genes=None")


@pytest.mark.parametrize(
    ("letters", "calls", "cautioned"), [(9000, 38, True), (9000, 19, False), (90_000, 0, True)]
)
def test_far_more_and_far_fewer_calls_than_in_measured_genomes_are_cautioned(letters, calls, cautioned):
    """Measured genomes have .6 to .8 per kb: more than 1.6 or fewer than .3 are far; few calls are chance."""
    rows = [SimpleNamespace(calls_per_kb=0.6, species="a"), SimpleNamespace(calls_per_kb=0.8, species="b")]
    found = located(letters=letters, calls=calls, expectation=Expectation(tuple(rows), True, 0, 0, 0))
    text = "calls per kb, where genomes that were measured have 0.6 to 0.8"
    assert [text in line for line in found] == [True] * cautioned
