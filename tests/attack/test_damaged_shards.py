"""Shards that were damaged: refused with exit status 2, or the calls and scores of the whole scan."""

import random
from pathlib import Path

import pytest

from attack.damage import damages
from seqray.cli.main import main
from tables import body, fasta, gff3, letters, write


@pytest.fixture(scope="module")
def shards(locator_file, tmp_path_factory) -> list[Path]:
    """Two shards of a scan with a locator and genes."""
    folder = tmp_path_factory.mktemp("shards")
    write(folder / "genome.fa", fasta({"one": letters(300), "two": letters(300, 1)}))
    write(folder / "genes.gff3", gff3([("one", 40, 120, "+")]))
    scan = f"scan {folder}/genome.fa --genes {folder}/genes.gff3 --threshold 0.3 --quiet".split()
    files = [folder / f"{number}.shard" for number in (1, 2)]
    for number, file in enumerate(files, 1):
        assert main([*scan, "--model", str(locator_file), "--shard", f"{number}/2", "--out", str(file)]) == 0
    return files


@pytest.mark.parametrize("count", [150, pytest.param(5000, marks=pytest.mark.long)])
def test_a_damaged_shard_is_refused_or_means_the_same(shards, tmp_path, capfd, count, tally):
    first, second = shards
    damaged, outputs = tmp_path / "damaged.shard", [tmp_path / "x.tsv", tmp_path / "x.plus.bedgraph"]

    def gather(shard: Path) -> int:
        words = [shard, second, "--out", outputs[0], "--track", tmp_path / "x.bedgraph", "--quiet"]
        return main(["gather", *map(str, words)])

    def made() -> list[list[str]]:
        return [body(path.read_text()) for path in outputs]

    assert gather(first) == 0
    expected, rng, refused = made(), random.Random(1), 0
    for kind, content in damages(first.read_bytes(), rng, count):
        write(damaged, content)
        status, said = gather(damaged), capfd.readouterr().err
        if status == 0:
            assert made() == expected
        assert (status, said.count("\n")) in ((0, 0), (2, 1)), said
        refused += status == 2
        tally(f"damaged shards: {kind}", status == 0)
    assert refused > 0.96 * count  # what changes nothing is white space and the order of keys
