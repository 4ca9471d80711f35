"""What ``seqray scan`` says of the species that a shipped locator was measured on."""

import csv
import random
import re

import pytest

from seqray.cli.main import main


def distant_genome(folder):
    path = folder / "x.fa"
    path.write_text(">a\n" + "".join(random.Random(0).choices("ACGT", (4, 1, 1, 4), k=40_000)))
    return str(path)


def test_input_unlike_the_only_species_that_was_measured(tmp_path, capfd):
    words = ["scan", distant_genome(tmp_path), "--model", "ecoli-genome", "--genes", "none", "--threads", "1"]
    assert main([*words, "--threshold", "0.01"]) == 0
    table, error = capfd.readouterr()
    assert "no genome of the training data is like this one (Escherichia coli K-12 MG1655 at a" in error
    assert "the precision was not measured in such a genome: compare calls with known sites" in error
    assert "precision to expect" not in error
    assert "# expected precision: not known" in table.splitlines()
    lines = [line for line in table.splitlines() if not line.startswith("#")]
    rows = list(csv.DictReader(lines, delimiter="\t"))
    assert rows
    assert {row[name] for row in rows for name in ("probability", "precision")} == {"."}


def test_shards_of_such_an_input_give_the_same_table(tmp_path):
    words = ["scan", distant_genome(tmp_path), "--model", "ecoli-genome", "--genes", "none", "--threads", "1"]
    words += ["--threshold", "0.01"]
    whole, gathered = tmp_path / "whole.tsv", tmp_path / "gathered.tsv"
    assert main([*words, "--out", str(whole)]) == 0
    shards = [str(tmp_path / f"{number}.shard") for number in (1, 2)]
    for number, shard in enumerate(shards, 1):
        assert main([*words, "--shard", f"{number}/2", "--out", shard]) == 0
    assert main(["gather", *shards, "--out", str(gathered)]) == 0
    assert gathered.read_text().replace("gathered.tsv", "whole.tsv") == whole.read_text()


def test_a_precision_of_other_genomes_chose_the_threshold(tmp_path, capfd):
    words = ["scan", distant_genome(tmp_path), "--model", "ecoli-genome", "--genes", "none", "--threads", "1"]
    assert main([*words, "--precision", "0.3"]) == 0
    assert "of 0.3, measured on genomes unlike this one\n" in capfd.readouterr().out


def test_a_species_that_is_named_gives_its_precision_and_must_be_measured(tmp_path, capfd):
    words = ["scan", distant_genome(tmp_path), "--model", "ecoli-genome", "--genes", "none", "--threads", "1"]
    assert main([*words, "--species", "Escherichia coli K-12 MG1655"]) == 0
    assert ", Escherichia coli K-12 MG1655): share of calls near" in capfd.readouterr().out
    assert main([*words, "--species", "Bacillus"]) == 2
    assert "the precision of 'Bacillus' was not measured without genes" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("model", "basis"),
    [
        ("ecoli-genome", "measured on Escherichia coli K-12 MG1655"),
        ("bacteria-genome", "the median of species left out"),
    ],
)
def test_the_threshold_says_whose_precision_chose_it(tmp_path, capfd, model, basis):
    path = tmp_path / "x.fa"
    path.write_text(">a\n" + "ACGTTGCA" * 100)
    words = ["scan", str(path), "--model", model, "--genes", "none", "--precision", "0.3", "--threads", "1"]
    assert main(words) == 0
    (stated,) = re.findall(r"^# threshold: (.*)$", capfd.readouterr().out, flags=re.MULTILINE)
    assert stated.endswith(f", for an expected precision of 0.3, {basis}")
