"""What a scan says of the precision to expect."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from seqray.cli.scan.expected import missed_without_genes, other_precision
from seqray.scanning import ScanOptions


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
