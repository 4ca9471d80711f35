"""``seqray prefilter``, and scans with the model that it makes."""

from __future__ import annotations

import random

import pytest

from seqray.cli.main import main
from seqray.modelfile.file import load_model_file


def write_genome(path, letters, seed):
    path.write_text(f">c\n{''.join(random.Random(seed).choices('ACGT', k=letters))}\n")
    return path


@pytest.fixture(scope="module")
def folder(tiny_model_file, tmp_path_factory):
    """A model with a prefilter, made by the verb, and a genome that it did not see."""
    path = tmp_path_factory.mktemp("prefilter")
    write_genome(path / "seen.fa", 30_000, 1)
    write_genome(path / "new.fa", 6_000, 2)
    letters = (path / "new.fa").read_text().split()[1]
    (path / "windows.fa").write_text("".join(f">{i}\n{letters[i : i + 20]}\n" for i in range(50)))
    words = ["prefilter", tiny_model_file, path / "seen.fa", "--windows", "6000"]
    assert main([*map(str, words), "--out", str(path / "m.safetensors"), "--quiet"]) == 0
    return path


@pytest.fixture
def scan(folder, tmp_path, capfd):
    """Scan the new genome; gives the lines of the header, the rows, and what was said."""

    def run(*words, model=None):
        out = tmp_path / "calls.tsv"
        chosen = ["--model", model or folder / "m.safetensors", "--null-mb", "0", "--out", out]
        assert main([str(word) for word in ["scan", folder / "new.fa", *chosen, *words]]) == 0
        lines = out.read_text().splitlines()
        header = [line for line in lines if line.startswith("#")]
        return "\n".join(header), lines[len(header) :], capfd.readouterr().err

    return run


def test_it_says_what_passes(tiny_model_file, folder, tmp_path, capfd):
    words = ["prefilter", tiny_model_file, folder / "seen.fa", "--windows", "6000"]
    words += ["--out", tmp_path / "m.safetensors"]
    assert main([*map(str, words)]) == 0
    said = capfd.readouterr().err
    assert "the prefilter learned from 4738 windows of 30000 letters" in said
    assert "of the windows would pass: scans leave the prefilter out" in said  # half of them are called
    assert (tmp_path / "m.safetensors").read_bytes() == (folder / "m.safetensors").read_bytes()


@pytest.mark.parametrize(
    ("words", "told"), [((), True), (("--stride", "10"), False), (("--stride", "1"), False)]
)
def test_a_scan_of_every_tenth_window_says_so_unless_it_was_asked_for(scan, tiny_model_file, words, told):
    _, _, said = scan(*words, model=tiny_model_file)
    assert ("every 10th window is scored, and narrow peaks may be missed: give --stride 1" in said) == told


def test_a_prefilter_that_does_not_pay_is_not_advised(scan, prefiltered_file):
    _, _, said = scan("--threshold", "0", model=prefiltered_file)
    assert "the prefilter is not used, because too many windows would pass at such a threshold" in said
    _, _, said = scan("--prefilter", "none", model=prefiltered_file)
    assert "narrow peaks may be missed: give --stride 1\n" in said


def test_predictions_and_the_model_stay(tiny_model_file, folder, tmp_path):
    tables = []
    for name, model in (("a", tiny_model_file), ("b", folder / "m.safetensors")):
        out = tmp_path / f"{name}.tsv"
        words = ["predict", folder / "windows.fa", "--model", model, "--out", out, "-q"]
        assert main([*map(str, words)]) == 0
        tables.append([line for line in out.read_text().splitlines() if line[0] != "#"])
    assert tables[0] == tables[1]


def test_a_scan_scores_what_may_reach_the_threshold(scan, prefiltered_file, tmp_path):
    words = ("--threshold", "0.6", "--min-distance", "1")
    header, rows, _ = scan(*words, model=prefiltered_file)
    assert "20 letters, stride 1; the prefilter skips those that can hardly reach the threshold" in header
    assert "misses about 0.001 of those that do" in header  # as the card says
    track = tmp_path / "all.bedgraph"
    everything, expected, _ = scan(*words, "--stride", "1", "--track", track, model=prefiltered_file)
    assert "20 letters, stride 1\n" in everything
    assert 100 < len(rows) < len(expected)  # its weights are random: it skips half of them
    exact = {}
    for strand, name in (("+", "plus"), ("-", "minus")):
        lines = (tmp_path / f"all.{name}.bedgraph").read_text().splitlines()
        values = (line.split("\t") for line in lines if line.startswith("c\t"))
        exact |= {(start, strand): score for _, start, _, score in values}
    for row in rows[1:]:
        _, _, _, _, strand, site, score, _ = row.split("\t")
        assert float(exact[site, strand]) == pytest.approx(float(score), abs=2e-6)


@pytest.mark.parametrize(
    ("words", "windows"),
    [
        (["--threshold", "0.6", "--prefilter", "none"], "stride 10, refined at stride 1"),
        (["--threshold", "0.6", "--stride", "7"], "stride 7, refined at stride 1"),
        (["--threshold", "0.1"], "stride 10, refined at stride 1"),  # nearly all would pass
    ],
)
def test_it_is_left_out_on_request_and_where_too_many_would_pass(scan, prefiltered_file, words, windows):
    assert windows in scan(*words, model=prefiltered_file)[0]


def test_measuring_again_keeps_the_weights(folder, tmp_path, capfd):
    words = ["prefilter", folder / "m.safetensors", folder / "seen.fa", "--measure-only", "--lost", "0.1"]
    assert main([*map(str, words), "--windows", "3000", "--out", str(tmp_path / "again.safetensors")]) == 0
    assert "the prefilter learned from 4738 windows of 30000 letters" in capfd.readouterr().err  # as before
    old, new = (load_model_file(path) for path in (folder / "m.safetensors", tmp_path / "again.safetensors"))
    assert all((new.prefilter.weights[name] == value).all() for name, value in old.prefilter.weights.items())
    assert new.card.prefilter["lost"] == 0.1


def test_calls_and_tracks_are_the_same_by_every_way(folder, prefiltered_file, tmp_path):
    common = f"{folder / 'new.fa'} --model {prefiltered_file} --threshold 0.6 --null-mb 0 -q".split()
    ways = {"a": "--threads 1", "b": "--threads 2", "c": "--batch-size 7"}
    for name, words in ways.items():
        assert main(["scan", *common, *words.split(), *outputs(tmp_path, name)]) == 0
    shards = [str(tmp_path / f"{number}.shard") for number in (1, 2)]
    for number, shard in enumerate(shards, 1):
        assert main(["scan", *common, "--shard", f"{number}/2", "--out", shard]) == 0
    assert main(["gather", *shards, *outputs(tmp_path, "d"), "-q"]) == 0
    one, *others = (rows_of(tmp_path, name) for name in "abcd")
    assert [len(rows) > 99 for rows in one] == [True] * 3
    assert others == [one] * 3


def outputs(folder, name):
    return ["--out", str(folder / f"{name}.bed"), "--track", str(folder / f"{name}.bedgraph")]


def rows_of(folder, name):
    """Rows of the calls, and of the tracks of both strands, without their headers."""
    texts = [path.read_text() for path in sorted(folder.glob(f"{name}*.bed*"))]
    return [[line for line in text.splitlines() if line.startswith("c\t")] for text in texts]


def test_calibrate_leaves_it_out_and_says_so(folder, tmp_path, capfd):
    rows = (
        f"{''.join(random.Random(i).choices('ACGT', k=20))}\t{('promoter', 'background')[i % 2]}\n"
        for i in range(60)
    )
    (tmp_path / "table.tsv").write_text("sequence\tlabel\n" + "".join(rows))
    out = tmp_path / "c.safetensors"
    words = ["calibrate", folder / "m.safetensors", "--test", tmp_path / "table.tsv", "--out", out]
    assert main([*map(str, words)]) == 0
    assert "the prefilter fits the old probabilities and is left out" in capfd.readouterr().err
    model = load_model_file(out)
    assert model.prefilter is None
    assert not model.card.prefilter


def test_a_locator_has_no_use_for_one(locator_file, folder, tmp_path, capfd):
    words = ["prefilter", locator_file, folder / "seen.fa", "--out", tmp_path / "m.safetensors"]
    assert main([*map(str, words)]) == 2
    assert "is a locator" in capfd.readouterr().err


def test_files_of_few_letters_are_named(tiny_model_file, tmp_path, capfd):
    short = write_genome(tmp_path / "short.fa", 5000, 1)
    assert (
        main(["prefilter", str(tiny_model_file), str(short), "--out", str(tmp_path / "m.safetensors")]) == 2
    )
    assert f"{short}: 5000 unambiguous letters in sequences of 400 letters or more" in capfd.readouterr().err
    assert not (tmp_path / "m.safetensors").exists()
