"""``seqray summary``: what it makes of tables, and the tables and names that it refuses."""

from __future__ import annotations

import pytest

from seqray.cli.main import main

CALLS = """\
# model: tiny 123
# scanned: 2 sequences, 2000000 letters, both strands
# threshold: 0.5, chosen
# calls: 3, 1.5 per Mb
id\tcontig\tsite\tscore
a\tone\t5\t0.9
b\tone\t50\t0.8
c\ttwo\t7\t0.7
"""
EVALUATION = """\
# model: tiny 123
source\tsplit\tsubset\tmetric\tvalue\tlow\thigh\tn\tpositives
model\ttest\tall\tmcc\t0.5\t0.4\t0.6\t100\t20
floor\ttest\tall\tmcc\t0.1\t0\t0.2\t100\t20
model\ttest\tcontext=x\tmcc\t0.7\t0.6\t0.8\t10\t2
"""


@pytest.fixture
def summary(tmp_path, capfd):
    """Sum up one table or more: the exit code, the rows of the summary or None, and standard error."""

    def run(*tables, names="abc"):
        words = []
        for name, text in zip(names, tables, strict=False):
            path = tmp_path / f"{len(words)}.tsv"
            path.write_text(text)
            words.append(f"{name}={path}")
        capfd.readouterr()
        status = main(["summary", *words, "--out", str(tmp_path / "summary.tsv"), "--quiet"])
        out = tmp_path / "summary.tsv"
        rows = [line.split("\t") for line in out.read_text().splitlines()] if out.exists() else None
        return status, rows, capfd.readouterr().err

    return run


def test_tables_of_calls_give_a_row_each(summary):
    status, rows, _ = summary(CALLS, CALLS.replace("0.5, chosen", "none"))
    assert status == 0
    assert rows[0][:7] == ["sample", "model", "sequences", "letters", "calls", "calls_per_mb", "threshold"]
    assert rows[1][:7] == ["a", "tiny", "2", "2000000", "3", "1.5", "0.5"]
    assert rows[2][6] == "."


def test_an_evaluation_gives_the_figures_of_all(summary):
    status, rows, _ = summary(EVALUATION)
    row = dict(zip(*rows, strict=True))
    assert status == 0
    assert [row[key] for key in ("mcc", "mcc_low", "mcc_high", "floor_mcc", "n")] == [
        "0.5",
        "0.4",
        "0.6",
        "0.1",
        "100",
    ]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (CALLS.replace(", 1.5 per Mb", ""), "has no header that says what was scanned"),
        (CALLS.replace("3, 1.5 per Mb", "three per Mb"), "has no header that says what was scanned"),
        (CALLS.replace("0.5, chosen", ""), "has no header that says what was scanned"),
        (CALLS.replace("# threshold: 0.5, chosen\n", ""), "has no header that says what was scanned"),
        (EVALUATION[: EVALUATION.index("model\ttest")], "has no rows of the subset 'all' for the model"),
        (EVALUATION.replace("\tall\t", "\tcontext=y\t"), "has no rows of the subset 'all' for the model"),
        (
            EVALUATION.replace("model\ttest\tall", "other\ttest\tall"),
            "has no rows of the subset 'all' for the model",
        ),
        (EVALUATION.replace("\t0.4\t0.6\t100\t20", ""), "is cut short: rows lack cells"),
        (
            EVALUATION.replace("\tsubset", "\tpart"),
            "has no rows of the subset 'all' for the model",
        ),
        ("", "is neither a table of calls nor of an evaluation"),
    ],
)
def test_a_table_that_was_cut_is_refused(summary, text, complaint):
    status, rows, err = summary(text)
    assert (status, rows, err.count("\n")) == (2, None, 1)
    assert f"0.tsv: {complaint}; " in err


@pytest.mark.parametrize(
    ("names", "complaint"),
    [
        (["a\tb"], r"'a\tb' has a tab or another control character"),
        (["a\nb"], r"'a\nb' has a tab or another control character"),
        (["\x7f"], r"'\x7f' has a tab or another control character"),
        (["a\x85b"], r"'a\x85b' has a tab or another control character"),
        (["a\u2028b"], r"'a\u2028b' has a tab or another control character"),
        (["x", "y", "x"], "two tables have the name 'x'"),
    ],
)
def test_names_that_would_shift_or_merge_rows_are_refused(summary, names, complaint):
    status, rows, err = summary(CALLS, CALLS, CALLS, names=names)
    assert (status, rows, err.count("\n")) == (2, None, 1)
    assert complaint in err
