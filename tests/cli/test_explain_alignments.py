"""``seqray explain`` with a model of alignments from file to file."""

import gzip

import numpy as np
import pytest

from seqray.core.alphabet import RNA
from seqray.explanations.alignments import explain_alignments
from seqray.explanations.options import AlignmentOptions, MethodSettings
from seqray.io.alignments import read_alignments
from seqray.io.explanations import CHECK_COLUMNS, COLUMN_COLUMNS, ROW_COLUMNS
from tables import table, write

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
def explain(run, alignment_model_file, tmp_path):
    """Run the verb where in.sto is."""
    write(tmp_path / "in.sto", FIRST + SECOND)
    return run.to("explain --model", alignment_model_file)


def test_the_table_is_what_the_library_says(explain, alignment_model, tmp_path):
    words = "in.sto --method rollout --method occlusion --class tRNA --block 2 --residual 0.4"
    ended = explain(words)
    rows = ended.rows
    assert list(rows[0]) == list(COLUMN_COLUMNS)
    assert [(r["record"], r["method"]) for r in rows] == [
        (name, method) for name, size in (("RF1", 16), ("RF2", 5)) for method in ("rollout", "occlusion")
        for _ in range(size)
    ]  # fmt: skip
    settings = MethodSettings(residual=0.4, block=2)
    options = AlignmentOptions(methods=("rollout", "occlusion"), target="tRNA", settings=settings)
    found = explain_alignments(alignment_model, read_alignments(tmp_path / "in.sto", RNA), options)
    scores = np.concatenate([e.by_column(s) for e in found for s in e.scores])
    given = [float(row["score"]) if row["score"] != "." else np.nan for row in rows]
    np.testing.assert_allclose(given, scores, rtol=1e-4, atol=1e-6)
    assert "".join(row["query_position"][-1] for row in rows[:16]) == "12.34567890.12.3"
    assert rows[11]["score"] == "."  # a column without letters
    assert {row["class"] for row in rows} == {"tRNA"}
    assert ended.err.count("is not judged on 2 records") == 2
    assert "2 records, 0 skipped" in ended.err


def test_every_output_appears_with_the_same_bytes_again(explain, tmp_path):
    words = "in.sto --out o.tsv.gz --row-profile rows.tsv --html o.html --plot o.svg --top 2 --class called "
    words += "--method rollout"
    assert explain(words).out == ""
    first = {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.name != "in.sto"}
    assert first.keys() == {"o.tsv.gz", "rows.tsv", "o.html", "o.svg", "o.faithfulness.tsv"}
    assert len(table(gzip.decompress(first["o.tsv.gz"]).decode())) == 4
    rows = table(first["rows.tsv"].decode())
    assert list(rows[0]) == list(ROW_COLUMNS)
    names = ["query", "second", "third", "fourth", "fifth", "sixth", "x1", "x2"]
    assert [row["name"] for row in rows] == names
    assert [row["read"] for row in rows[:6]].count("no") == 1  # the model reads 5 rows
    assert sum(float(row["score"]) for row in rows[:6] if row["read"] == "yes") == pytest.approx(1, abs=1e-4)
    checks = first["o.faithfulness.tsv"].decode()
    assert list(table(checks)[0]) == list(CHECK_COLUMNS)
    assert checks.count("# verdict: rollout") == 1
    assert b"<svg" in first["o.svg"]
    assert b"a &amp; &lt;b&gt;" in first["o.html"]
    assert first["o.html"].count(b"<article>") == 2
    explain(words)
    assert {name: (tmp_path / name).read_bytes() for name in first} == first


def test_the_query_alone_is_read_where_asked(explain):
    rows = explain("in.sto --query-only --no-check --quiet").rows
    assert {row["method"] for row in rows} == {"occlusion"}  # which sees all that the model reads
    read = [row["column"] for row in rows if row["record"] == "RF1" and row["score"] != "."]
    assert read == [str(c) for c in range(1, 17) if c not in (3, 12, 15)]


def test_records_for_the_checks_are_as_many_as_asked(explain, tmp_path):
    assert "on 1 record:" in explain("in.sto --check-records 1 -o o.tsv --seed 3").err
    assert "random rankings" not in explain("in.sto --no-check -o n.tsv").err
    assert not (tmp_path / "n.faithfulness.tsv").exists()


def test_an_empty_file_is_an_empty_table_where_asked(explain, tmp_path):
    write(tmp_path / "e.sto", "\n")
    ended = explain("e.sto --allow-empty --html e.html --plot e.png")
    assert ended.rows == []
    assert "0 records" in ended.err
    assert "0 alignments on this page" in (tmp_path / "e.html").read_text()


def test_skipped_alignments_are_counted_or_an_error(explain, tmp_path):
    write(tmp_path / "in.sto", FIRST + SECOND + "# STOCKHOLM 1.0\n#=GF AC none\na --\n//\n")
    assert "2 records, 1 skipped" in explain("in.sto --no-check -o o.tsv --skipped s.tsv").err
    assert "no letters" in (tmp_path / "s.tsv").read_text()
    explain.refused("in.sto --strict -o x.tsv", names="none")
