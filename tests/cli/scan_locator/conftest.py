"""``seqray scan`` with the random locator."""

from __future__ import annotations

import pytest

from cli.scan_locator.records import GENES
from seqray.cli.main import main
from tables import letters


@pytest.fixture
def genome(tmp_path):
    path = tmp_path / "genome.fa"
    path.write_text(f">one first\n{letters(3000)}\n>two\n{letters(700, 1)}\n>tiny\n{letters(40, 2)}\n")
    return path


@pytest.fixture
def annotation(tmp_path):
    path = tmp_path / "genes.gff3"
    lines = [f"{c}\ttest\tCDS\t{a}\t{b}\t.\t{s}\t0\tID=cds-{a}" for c, a, b, s in GENES]
    path.write_text("\n".join(["##gff-version 3", *lines, ""]))
    return path


@pytest.fixture
def scan(locator_file, capfd):
    def run(*words, verb="scan", status=0):
        found = main([verb, *map(str, words), "--model", str(locator_file), "--threads", "1"])
        out, err = capfd.readouterr()
        assert found == status, err
        return out, err

    return run
