"""The generator of synthetic genomes: same bytes for a seed, and truth that is true."""

from __future__ import annotations

from collections import Counter
from itertools import groupby
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


def test_a_coding_background_has_genes_on_both_strands(tmp_path):
    letters, _ = make(tmp_path, "--length", "60000", "--count", "0")
    longest = [max(map(len, open_frames(strand))) for strand in (letters, opposite(letters))]
    assert len(letters) == 60000
    assert min(longest) >= 400  # by chance, in so many random letters, about 160


def open_frames(letters: str) -> list[list[str]]:
    """Runs of codons without a stop, in the three frames of one strand."""
    frames = ([letters[place : place + 3] for place in range(f, len(letters) - 2, 3)] for f in range(3))
    return [list(run) for codons in frames for stop, run in groupby(codons, STOPS.__contains__) if not stop]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (">a\n" + "ACGT" * 30 + "\n", "need more than 300 letters"),
        (">a\nACGTN\n", "other than A, C, G and T"),
    ],
)
def test_what_cannot_be_planted_is_an_error_of_one_line(tmp_path, capsys, text, words):
    (tmp_path / "promoters.fa").write_text(text)
    outputs = ["--out", str(tmp_path / "g.fa"), "--truth", str(tmp_path / "t.bed")]
    assert synthetic.main([*outputs, "--promoters", str(tmp_path / "promoters.fa"), "--length", "300"]) == 2
    told = capsys.readouterr().err
    assert words in told
    assert told.count("\n") == 1
    assert not (tmp_path / "g.fa").exists()
