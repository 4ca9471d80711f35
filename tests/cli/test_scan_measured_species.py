"""What ``seqray scan`` says of the species that a shipped locator was measured on."""

import random
import re

import pytest

from seqray.cli.dispatch import main


def test_input_unlike_the_only_species_that_was_measured(tmp_path, capfd):
    path = tmp_path / "x.fa"
    path.write_text(">a\n" + "".join(random.Random(0).choices("ACGT", (1, 4, 4, 1), k=40_000)))
    assert main(["scan", str(path), "--model", "ecoli-genome", "--genes", "none", "--threads", "1"]) == 0
    error = capfd.readouterr().err
    assert "no genome of the training data is like this one (Escherichia coli K-12 MG1655 at a" in error
    assert "the precision was not measured in such a genome: compare calls with known sites" in error
    assert re.search(r"calls per kb, where Escherichia coli K-12 MG1655 has [\d.]+ at this threshold", error)


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
