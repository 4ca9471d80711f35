"""What a scan says of the precision to expect."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from seqray.annotation import Annotation, Gene
from seqray.cli.scan.expected import locator_cautions, missed_without_genes, other_precision
from seqray.cli.scan.facts import result_facts, summary
from seqray.core import Intervals
from seqray.scanning import CallTable, ScanOptions, ScanResult


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
            "in A, which the input is like, this threshold has 0.48: give --species 'A'",
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
    found = list(other_precision(result, ScanOptions(**options)))
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
    found = missed_without_genes(expected, None)
    assert text in found
    assert found.endswith("with genes 0.42") == (recall[False] is not None)


@pytest.mark.parametrize(
    ("genes", "said"),
    [(10, "expect other figures"), (30, None), (54, "try '--genes predict' with --codon-table 4 or 11")],
)
def test_too_few_and_too_many_genes_are_cautioned(genes, said):
    """Of 30 kb: .33, 1 and 1.8 per kb, as M. pneumoniae has by table 11."""
    found = list(locator_cautions(scanned(letters=30_000, genes=genes)))
    assert [said in text for text in found] == ([True] if said else [])


def test_of_contigs_without_genes_the_caution_says_which_precision_is_theirs():
    result = scanned(letters=10_000, genes=9, contigs_without_genes=1, letters_without_genes=4_000)
    [caution] = locator_cautions(result)
    assert "1 of 1 sequences are not named in a file" in caution
    assert "their 'precision' is that without genes, but the threshold and the precision to expect" in caution
    assert caution.endswith("by themselves with --genes predict or none")


def test_without_calls_no_precision_is_stated():
    result = scanned(letters=0, genes=0)
    assert result_facts(result, ScanOptions())["expected precision"] == "not stated without calls"
    assert "precision" not in summary(result, 0)


@pytest.mark.parametrize(
    ("letters", "searched", "text"),
    [
        (4_000_000, 4_000_000, "1 sequence, 4 Mb, "),
        (4_000_000, 4, "1 sequence, 4 letters of 4 Mb searched, "),
        (40, 40, "1 sequence, 40 letters, "),
    ],
)
def test_few_letters_are_not_stated_in_mb(letters, searched, text):
    assert summary(scanned(letters=letters, genes=0, positions=searched), 0).startswith(text)


@pytest.mark.parametrize(
    ("positions", "calls", "text"),
    [
        (2000, 2, "0.5, so that at most 1 per kb are called"),
        (100, 1, "0.5, so that at most 1 per kb are called, rounded to 1 in all"),
        (2000, 1, "0.5, the lowest that is searched; fewer than 1 per kb reach it"),
    ],
)
def test_calls_per_kb_are_whole_and_reach_the_lowest_threshold(positions, calls, text):
    table = CallTable("promoter", (0, 0))
    sites = np.arange(calls)
    table.add("c", 3000, False, [("+", sites, np.full(calls, 0.6), np.empty((calls, 0), np.uint8))])
    result = scanned(letters=3000, genes=0, positions=positions, calls=table)
    assert result_facts(result, ScanOptions(per_kb=1))["threshold"] == text


def test_the_header_names_the_parts_that_were_searched():
    parts = {"c": Intervals.merge([(10, 40), (30, 60), (90, 100)])}
    result = scanned(letters=100, genes=0, positions=60, parts=parts)
    assert result_facts(result, ScanOptions())["parts"] == "sites within c:11-60, c:91-100 only"
