"""The words of the page of a scan about the precision to expect."""

from types import SimpleNamespace

import pytest

from seqray.calibration.expected_precision import Expectation, SpeciesRow
from seqray.cli.scan_page import _expected, expected_spread
from seqray.scanning.results import FalseCalls

COLI = SpeciesRow("Escherichia coli", "region", 1.0, 0.6, 0.5, 0.45, 0.55)
OTHERS = [SpeciesRow(name, "species", 1.0, 0.6, p, p - 0.1, p + 0.1) for name, p in (("a", 0.3), ("b", 0.4))]


def expectation(*rows, left_out=True):
    spread = [row.precision for row in rows if (row.held_out == "species") == left_out]
    return Expectation(rows, left_out, min(spread), sum(spread) / len(spread), max(spread))


@pytest.mark.parametrize(
    ("found", "species", "text"),
    [
        (
            expectation(COLI, *OTHERS),
            "Escherichia coli",
            "0.45 to 0.55 (95 % interval) in Escherichia coli, on a region that training left out",
        ),
        (
            expectation(COLI, *OTHERS),
            None,
            "median of 2 species that training left out; they vary from 0.30 to 0.40",
        ),
        (
            expectation(COLI, OTHERS[0]),
            "unknown",
            "0.20 to 0.40 (95 % interval) in a, which training left out",
        ),
    ],
)
def test_the_page_says_where_the_precision_was_measured(found, species, text):
    assert expected_spread(found, species) == text


@pytest.mark.parametrize(
    ("calls", "text"), [([0.2], "not measured below a score of 0.4"), ([], "not stated without calls")]
)
def test_the_page_says_why_no_precision_is_stated(calls, text):
    known = None if calls else expectation(OTHERS[0])
    result = SimpleNamespace(
        calls=calls, expectation=known, lowest_measured=0.4, false_calls=None, from_positions=True
    )
    assert _expected(result) == ("", text, [])


@pytest.mark.parametrize("calls", [[0.7] * 5, []])
def test_the_page_compares_calls_with_those_of_shuffled_sequence(calls):
    result = SimpleNamespace(
        calls=calls,
        expectation=None,
        lowest_measured=None,
        false_calls=FalseCalls(2.4, 1.0, 4.0, scanned_mb=2.0, null_calls=24, null_mb=10.0),
        from_positions=False,
    )
    text = f"shuffled sequence of this length gives 4.8 calls; this sequence gave {len(calls)}"  # 2.4 * 2
    assert _expected(result) == ("", text, [])
