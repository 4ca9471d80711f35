"""What ``seqray scan`` says of the precision of shipped locators, which depends on the species."""

from __future__ import annotations

import random

import pytest

from tables import fasta, table, write


@pytest.fixture
def distant(run, tmp_path):
    """Scan a genome that is like none of the species."""
    sequence = "".join(random.Random(0).choices("ACGT", (4, 1, 1, 4), k=40_000))
    write(tmp_path / "x.fa", fasta({"a": sequence}))
    return run.to("scan x.fa --model ecoli-genome --genes none --threads 1")


def test_input_unlike_the_only_species_that_was_measured_has_no_precision(distant, run, tmp_path):
    ended = distant("--threshold 0.01 --out calls.tsv")
    assert "no genome of the training data is like this one (Escherichia coli K-12 MG1655" in ended.err
    assert "precision to expect" not in ended.err
    whole = (tmp_path / "calls.tsv").read_text()
    assert "# expected precision: not known" in whole.splitlines()
    assert {row[name] for row in table(whole) for name in ("trust", "precision")} == {"."}
    for number in (1, 2):
        distant(f"--threshold 0.01 --shard {number}/2 --out {number}.shard")
    run("gather 1.shard 2.shard --out calls.tsv")
    assert (tmp_path / "calls.tsv").read_text() == whole


def test_a_species_that_is_named_gives_its_precision_and_must_be_measured(distant):
    named = distant('--species "Escherichia coli K-12 MG1655"')
    assert "Escherichia coli K-12 MG1655)" in named.facts["expected precision"]
    distant.refused("--species Bacillus", names=("'Bacillus'",))


@pytest.mark.parametrize(
    ("model", "basis"),
    [
        ("ecoli-genome", "measured on Escherichia coli K-12 MG1655"),
        ("bacteria-genome", "the median of species left out"),
    ],
)
def test_the_threshold_says_whose_precision_chose_it(run, distant, tmp_path, model, basis):
    assert distant("--precision 0.3").facts["threshold"].endswith("measured on genomes unlike this one")
    write(tmp_path / "x.fa", fasta({"a": "ACGTTGCA" * 100}))
    stated = run("scan x.fa --genes none --precision 0.3 --threads 1 --model", model).facts["threshold"]
    assert "0.3" in stated
    assert stated.endswith(basis)
