"""``seqray explain`` with a model of alignments from file to file, and what it refuses."""

from __future__ import annotations

import gzip

import numpy as np
import pytest
import torch

from seqray.cli.main import main
from seqray.core.alphabet import RNA
from seqray.explanations.alignments import explain_alignments
from seqray.explanations.options import AlignmentOptions, MethodSettings
from seqray.io.alignments import read_alignments
from seqray.io.explanations import CHECK_COLUMNS, COLUMN_COLUMNS, ROW_COLUMNS
from tables import table

FIRST = """# STOCKHOLM 1.0
#=GF AC RF1
#=GF DE a & <b>
query   GG-GAAAACUC.AC~A
second  GGAGAAAACUC.ACUA
third   CC-GAAAACGG.ACUA
fourth  CC-GA.AACGG.ACUA
fifth   UU-GAAAACAA.ACUA
sixth   AUUGAAAACAU.ACUA
#=GC SS_cons <<.<....>>>.....
//
"""
SECOND = "# STOCKHOLM 1.0\n#=GF AC RF2\nx1 ACGUA\nx2 ACCUA\n//\n"


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "in.sto"
    path.write_text(FIRST + SECOND)
    return path


@pytest.fixture
def explain(alignment_model_file, capfd):
    """Run the verb; gives exit status, standard output and standard error."""
    threads = torch.get_num_threads()

    def run(*words, model=alignment_model_file):
        status = main(["explain", *map(str, words), "--model", str(model)])
        return status, *capfd.readouterr()

    yield run
    torch.set_num_threads(threads)


def unpacked(path) -> str:
    return gzip.decompress(path.read_bytes()).decode()


def lines(text: str, start: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith(start)]


def test_the_table_is_what_the_library_says(explain, source, alignment_model):
    words = [source, "--method", "rollout", "--method", "occlusion", "--class", "tRNA", "--block", 2]
    status, out, err = explain(*words, "--residual", 0.4)
    assert status == 0
    rows = table(out)
    assert list(rows[0]) == list(COLUMN_COLUMNS)
    assert [(r["record"], r["method"]) for r in rows] == [
        *[("RF1", "rollout")] * 16,
        *[("RF1", "occlusion")] * 16,
        *[("RF2", "rollout")] * 5,
        *[("RF2", "occlusion")] * 5,
    ]
    options = AlignmentOptions(
        methods=("rollout", "occlusion"), target="tRNA", settings=MethodSettings(residual=0.4, block=2)
    )
    found = explain_alignments(alignment_model, read_alignments(source, RNA), options)
    scores = np.concatenate([e.by_column(s) for e in found for s in e.scores])
    given = [float(row["score"]) if row["score"] != "." else np.nan for row in rows]
    np.testing.assert_allclose(given, scores, rtol=1e-4, atol=1e-6)
    assert [row["query_position"] for row in rows[:16]] == [
        *("1", "2", ".", "3", "4", "5", "6", "7", "8", "9", "10", ".", "11", "12", ".", "13")
    ]
    assert rows[11]["score"] == "."  # a column without letters
    assert {row["class"] for row in rows} == {"tRNA"}
    assert err.count("is not judged on 2 records") == 2
    assert "2 records, 0 skipped" in err
    assert "2 columns at a time are masked" in out


def test_every_output_appears(explain, source, tmp_path):
    names = {"--out": "o.tsv.gz", "--row-profile": "rows.tsv", "--html": "o.html"}
    words = [word for option, name in names.items() for word in (option, tmp_path / name)]
    status, out, _ = explain(source, *words, "--plot", tmp_path / "o.svg", "--top", 2, "--class", "called")
    assert (status, out) == (0, "")
    made = {path.name for path in tmp_path.iterdir()} - {"in.sto"}
    assert made == {*names.values(), "o.svg", "o.faithfulness.tsv"}
    assert len(table(unpacked(tmp_path / "o.tsv.gz"))) == 4
    rows = table((tmp_path / "rows.tsv").read_text())
    assert list(rows[0]) == list(ROW_COLUMNS)
    assert [row["name"] for row in rows] == [
        *("query", "second", "third", "fourth", "fifth", "sixth"),
        "x1",
        "x2",
    ]
    assert [row["read"] for row in rows[:6]].count("no") == 1  # the model reads 5 rows
    assert sum(float(row["score"]) for row in rows[:6] if row["read"] == "yes") == pytest.approx(1, abs=1e-4)
    checks = (tmp_path / "o.faithfulness.tsv").read_text()
    assert list(table(checks)[0]) == list(CHECK_COLUMNS)
    assert len(lines(checks, "# verdict: rollout")) == 1
    assert b"<svg" in (tmp_path / "o.svg").read_bytes()
    page = (tmp_path / "o.html").read_text()
    assert "a &amp; &lt;b&gt;" in page
    assert page.count("<article>") == 2


@pytest.mark.parametrize(("ending", "magic"), [("png", b"\x89PNG"), ("pdf", b"%PDF")])
def test_plots_in_every_format(explain, source, tmp_path, ending, magic):
    assert explain(source, "--plot", tmp_path / f"p.{ending}", "--no-check", "-o", tmp_path / "o.tsv")[0] == 0
    assert (tmp_path / f"p.{ending}").read_bytes().startswith(magic)


def test_the_query_alone_is_read_where_asked(explain, source):
    status, out, _ = explain(source, "--query-only", "--no-check", "--quiet")
    assert status == 0
    read = [row["column"] for row in table(out) if row["record"] == "RF1" and row["score"] != "."]
    assert read == [str(c) for c in range(1, 17) if c not in (3, 12, 15)]
    assert "1 rows and 24 columns at most" in out


def test_records_for_the_checks_are_as_many_as_asked(explain, source, tmp_path):
    status, _, err = explain(source, "--check-records", 1, "-o", tmp_path / "o.tsv", "--seed", 3)
    assert status == 0
    assert "on 1 record:" in err
    status, _, err = explain(source, "--no-check", "-o", tmp_path / "n.tsv")
    assert "random rankings" not in err
    assert not (tmp_path / "n.faithfulness.tsv").exists()


def test_the_same_run_gives_the_same_bytes(explain, source, tmp_path):
    names = ("o.tsv", "o.faithfulness.tsv", "o.html", "o.svg")
    words = [source, "--out", tmp_path / "o.tsv", "--html", tmp_path / "o.html", "--plot", tmp_path / "o.svg"]
    for _ in range(2):
        assert explain(*words)[0] == 0
        (tmp_path / "first").mkdir(exist_ok=True)
        for name in names:
            kept = tmp_path / "first" / name
            if kept.exists():
                assert kept.read_bytes() == (tmp_path / name).read_bytes(), name
            else:
                (tmp_path / name).rename(kept)


def test_aligned_fasta_and_a3m_are_read(explain, tmp_path):
    (tmp_path / "al.fa").write_text(">a\nAC-GU\n>b\nACGGU\n")
    (tmp_path / "x.a3m").write_text(">a\nACGU\n>b\nACgggGU\n")
    for name, columns in (("al.fa", 5), ("x.a3m", 4)):
        status, out, _ = explain(tmp_path / name, "--no-check")
        assert status == 0
        assert len(table(out)) == columns


def test_sequences_that_are_not_aligned_are_one_line(explain, tmp_path):
    (tmp_path / "s.fa").write_text(">a\nACGUACGU\n>b\nACG\n")
    status, out, err = explain(tmp_path / "s.fa")
    assert (status, out) == (2, "")
    assert err.count("\n") == 1
    assert "row 'b' has 3 columns, the first row has 8; align the sequences first" in err


def test_an_empty_file_is_an_error_or_an_empty_table(explain, tmp_path):
    (tmp_path / "e.sto").write_text("\n")
    assert explain(tmp_path / "e.sto")[0] == 2
    page = tmp_path / "e.html"
    status, out, err = explain(
        tmp_path / "e.sto",
        "--allow-empty",
        "--html",
        page,
        "--plot",
        tmp_path / "e.png",
    )
    assert (status, table(out)) == (0, [])
    assert "0 records" in err
    assert "0 alignments on this page" in page.read_text()


def test_skipped_alignments_are_counted(explain, source, tmp_path):
    source.write_text(source.read_text() + "# STOCKHOLM 1.0\n#=GF AC none\na --\n//\n")
    status, _, err = explain(source, "--no-check", "-o", tmp_path / "o.tsv", "--skipped", tmp_path / "s.tsv")
    assert status == 0
    assert "2 records, 1 skipped" in err
    assert "no letters" in (tmp_path / "s.tsv").read_text()
    assert explain(source, "--strict")[0] == 2


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--calls", "c.gff3"], "--calls is for models that read sequences"),
        (["--best-calls", "2"], "--best-calls is for models that read sequences"),
        (["--track", "t.bw"], "--track is for models that read sequences"),
        (["--motifs=m.meme"], "--motifs is for models that read sequences"),
        (["--heads", "h.tsv"], "--heads is for models that read sequences"),
        (["--shuffles", "20"], "--shuffles is for models that read sequences"),
        (["--members", "each"], "--members is for models that read sequences"),
        (["--fuse", "mean"], "--fuse is for models that read sequences"),
        (["--spread=read"], "--spread is for models that read sequences"),
        (["--steps", "32"], "--steps is for models that read sequences"),
        (["--method", "ism"], "method 'ism' doesn't explain alignments"),
        (["--method", "value-rollout"], "use rollout, grad-rollout, occlusion"),
        (["--method", "input-x-gradient"], "doesn't explain alignments"),
        (["--class", "rRNA"], "no class 'rRNA'"),
        (["--residual", "1"], "the residual share is 1"),
        (["--rows", "3", "--query-only"], "disagree"),
        (["--context", "E. coli"], "context"),
        (["--row-profile", "p.csv"], "does not end in the suffix of a known format"),
        (["--faithfulness", "same.tsv", "--row-profile", "same.tsv"], "is named twice"),
    ],
)
def test_what_means_nothing_is_one_line(explain, source, tmp_path, monkeypatch, words, message):
    monkeypatch.chdir(tmp_path)
    status, out, err = explain(source, *words)
    assert (status, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1
    assert {path.name for path in tmp_path.iterdir()} == {"in.sto"}


@pytest.mark.parametrize(
    "words",
    [
        ["--rows", "2"],
        ["--query-only"],
        ["--row-profile", "r.tsv"],
    ],
)
def test_options_for_alignments_are_refused_by_a_model_of_sequences(
    explain, tiny_model_file, tmp_path, monkeypatch, words
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.fa").write_text(">a\nACGTACGTACGTACGTACGT\n")
    status, _, err = explain("s.fa", *words, model=tiny_model_file)
    assert status == 2
    assert f"{words[0]} is for models that read alignments" in err
