"""``seqray prefilter``, and scans with the model that it makes."""

import pytest

from commands import Run
from seqray.modelfile.file import load_model
from tables import body, fasta, letters, table, tsv, write

NEW = letters(6_000, 2)


@pytest.fixture(scope="module")
def made(tiny_model_file, tmp_path_factory):
    """A model with a prefilter, made by the verb, and what it said."""
    from seqray.cli.main import main

    folder = tmp_path_factory.mktemp("prefilter")
    write(folder / "seen.fa", fasta({"c": letters(12_000, 1)}))
    words = ["prefilter", tiny_model_file, folder / "seen.fa", "--windows", "2400", "--quiet"]
    assert main([*map(str, words), "--out", str(folder / "m.safetensors")]) == 0
    return folder


@pytest.fixture
def scan(run, made, prefiltered_file, tmp_path) -> Run:
    """Scan a genome that the prefilter did not see, with one of random weights."""
    write(tmp_path / "new.fa", fasta({"c": NEW}))
    return run.to("scan new.fa --null-mb 0 --model", prefiltered_file)


def test_it_says_what_passes_and_gives_the_same_bytes(run, tiny_model_file, made, tmp_path):
    words = ("prefilter", tiny_model_file, made / "seen.fa", "--windows 2400 --out m.safetensors")
    said = run(*words).err
    assert "learned from 1925 windows of 12000 bases" in said
    assert "scans leave the prefilter out" in said  # half of the windows are called
    assert (tmp_path / "m.safetensors").read_bytes() == (made / "m.safetensors").read_bytes()


@pytest.mark.parametrize(("words", "told"), [("", True), ("--stride 10", False), ("--stride 1", False)])
def test_a_scan_of_every_tenth_window_says_so_unless_it_was_asked_for(
    scan, run, tiny_model_file, words, told
):
    said = run("scan new.fa --null-mb 0 --model", tiny_model_file, words).err
    assert ("give --stride 1" in said) == told


def test_predictions_stay(run, tiny_model_file, made, tmp_path):
    write(tmp_path / "in.fa", fasta({str(i): NEW[i : i + 20] for i in range(50)}))
    plain, filtered = (
        run("predict in.fa --model", m).rows for m in (tiny_model_file, made / "m.safetensors")
    )
    assert plain == filtered


def test_a_scan_scores_what_may_reach_the_threshold(scan, tmp_path):
    words = "--threshold 0.6 --min-distance 1"
    some = scan(words)
    assert "stride 1; the prefilter skips" in some.facts["windows"]
    assert "misses about 0.001" in some.facts["windows"]  # as the card says
    every = scan(words, "--stride 1 --track all.bedgraph --out all.tsv")
    expected = table((tmp_path / "all.tsv").read_text())
    assert every.out == ""
    assert 100 < len(some.rows) < len(expected)  # its weights are random: it skips half of them
    exact = {}
    for strand, name in (("+", "plus"), ("-", "minus")):
        lines = (tmp_path / f"all.{name}.bedgraph").read_text().splitlines()
        values = (line.split("\t") for line in lines if line.startswith("c\t"))
        exact |= {(start, strand): float(score) for _, start, _, score in values}
    for row in some.rows:
        assert exact[row["site"], row["strand"]] == pytest.approx(float(row["score"]), abs=2e-6)


@pytest.mark.parametrize(
    ("words", "windows", "advised"),
    [
        ("--threshold 0.6 --prefilter none", "stride 10, refined at stride 1", True),
        ("--threshold 0.6 --stride 7", "stride 7, refined at stride 1", False),
        ("--threshold 0.1", "stride 10, refined at stride 1", True),  # nearly all would pass
    ],
)
def test_it_is_left_out_on_request_and_where_too_many_would_pass(scan, words, windows, advised):
    ended = scan(words)
    assert windows in ended.facts["windows"]
    assert ("--stride 1" in ended.err) == advised


def test_measuring_again_keeps_the_weights(run, made, tmp_path):
    words = (
        "prefilter",
        made / "m.safetensors",
        made / "seen.fa",
        "--measure-only --lost 0.1 --windows 3000",
    )
    run(*words, "--out again.safetensors")
    old, new = (load_model(folder) for folder in (made / "m.safetensors", tmp_path / "again.safetensors"))
    assert all((new.prefilter.weights[name] == value).all() for name, value in old.prefilter.weights.items())
    assert new.card.prefilter.lost == 0.1


def test_calls_and_tracks_are_the_same_by_every_way(scan, run, tmp_path):
    outputs = "--out x.bed --track x.bedgraph -q"

    def rows():
        """Rows of the calls, and of the tracks of both strands, without their headers."""
        texts = [path.read_text() for path in sorted(tmp_path.glob("x*.bed*"))]
        return [[line for line in body(text) if line.startswith("c\t")] for text in texts]

    found = []
    for way in ("--threads 1", "--threads 2 --batch-size 7"):
        scan("--threshold 0.6", outputs, way)
        found.append(rows())
    for number in (1, 2):
        scan(f"--threshold 0.6 -q --shard {number}/2 --out {number}.shard")
    run("gather 1.shard 2.shard", outputs)
    found.append(rows())
    assert [len(lines) > 99 for lines in found[0]] == [True] * 3
    assert found[1:] == found[:1] * 2


def test_calibrate_leaves_it_out_and_says_so(run, made, tmp_path):
    rows = [(letters(20, i), ("promoter", "background")[i % 2]) for i in range(60)]
    write(tmp_path / "table.tsv", tsv("sequence label", rows))
    said = run("calibrate", made / "m.safetensors", "--test table.tsv --out c.safetensors").err
    assert "the prefilter" in said
    model = load_model(tmp_path / "c.safetensors")
    assert model.prefilter is None
    assert not model.card.prefilter
