"""The generator of synthetic genomes: same bytes for a seed, and truth that is true."""

from collections import Counter
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, strategies as st

import synthetic
from invented import opposite

STOPS = ("TAA", "TAG", "TGA")
EXAMPLE = Path(__file__).parents[2] / "data" / "example"


def make(folder: Path, *options: str) -> tuple[str, list[list[str]]]:
    """Run the script and return the letters and the rows of the truth."""
    paths = folder / "genome.fa", folder / "truth.bed"
    assert synthetic.main(["--out", str(paths[0]), "--truth", str(paths[1]), *options]) == 0
    letters = "".join(paths[0].read_text().splitlines()[1:])
    return letters, [line.split("\t") for line in paths[1].read_text().splitlines()]


def test_the_committed_construct_can_be_made_again(tmp_path):
    options = ["--promoters", str(EXAMPLE / "promoters.fa"), "--background", "random", "--length", "20000"]
    make(tmp_path, *options, "--seed", "1", "--name", "construct")
    assert (tmp_path / "genome.fa").read_bytes() == (EXAMPLE / "construct.fa").read_bytes()
    assert (tmp_path / "truth.bed").read_bytes() == (EXAMPLE / "construct.truth.bed").read_bytes()


def test_planted_windows_stand_where_the_truth_says(tmp_path):
    promoters = {
        record.split()[0]: "".join(record.splitlines()[1:])
        for record in (EXAMPLE / "promoters.fa").read_text().split(">")[1:]
    }
    letters, truth = make(tmp_path, "--promoters", str(EXAMPLE / "promoters.fa"), "--length", "9000")
    assert [row[3] for row in truth] == list(promoters)
    for _, start, end, name, _, strand in truth:
        window = letters[int(start) : int(end)]
        assert (window if strand == "+" else opposite(window)) == promoters[name]
    assert {row[5] for row in truth} == {"+", "-"}


@given(st.integers(0, 10_000), st.integers(1, 6), st.integers(0, 400))
def test_planted_windows_never_touch_and_keep_the_length(seed, count, extra):
    rng = Random(seed)
    promoters = [(str(number), synthetic.random_promoter(rng)) for number in range(count)]
    length = 3 * 81 * count + extra
    genome, planted = synthetic.plant(rng, promoters, synthetic.random_letters(rng, length, 0.5))
    assert len(genome) == length
    assert set(genome) <= set("ACGT")
    ends = [0, *(item.end for item in planted)]
    assert all(item.start - end >= 81 for item, end in zip(planted, ends, strict=False))


def test_a_reading_frame_runs_from_a_start_to_its_only_stop():
    rng = Random(2)
    codons: Counter[str] = Counter()
    for _ in range(60):
        frame = synthetic.reading_frame(rng)
        found = [frame[place : place + 3] for place in range(0, len(frame), 3)]
        assert (found[0], len(frame) % 3) == ("ATG", 0)
        assert [i for i, codon in enumerate(found) if codon in STOPS] == [len(found) - 1]
        codons.update(found[1:-1])
    share = {codon: count / codons.total() for codon, count in codons.items()}
    assert share["CTG"] == pytest.approx(0.053, abs=0.006)  # 18,000 codons: 4 standard errors
    assert share["AGG"] == pytest.approx(0.0012, abs=0.001)
