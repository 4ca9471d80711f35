"""What a scan says of the precision to expect."""

from __future__ import annotations

import numpy as np
import pytest

from seqray.cli.scan_facts import result_facts, summary
from seqray.core.records import Intervals
from seqray.genome.genes import Annotation, Gene
from seqray.scanning.calls import CallTable
from seqray.scanning.options import ScanOptions
from seqray.scanning.results import ScanResult


def scanned(*, letters: int, genes: int, **more) -> ScanResult:
    """A scan of one sequence without calls."""
    known = Annotation({"c": tuple(Gene(i, i + 9, "+", f"g{i}") for i in range(genes))}, "a file")
    rest = {"calls": CallTable("promoter", (0, 0)), "false_calls": None, "windows": 0, "unlike": None}
    rest |= {"threshold": 0.5, "positions": letters, "from_positions": True} | more
    return ScanResult(contigs=1, letters=letters, genes=known, **rest)


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
