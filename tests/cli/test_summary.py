"""``seqray summary``: what it makes of tables, and the tables and names that it refuses."""

from __future__ import annotations

import os

import pytest

from seqray.cli.main import main
from seqray.report.pages.evaluation import render_summary

CALLS = """\
# model: tiny 123
# scanned: 2 sequences, 2000000 letters, 1999960 positions per strand
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
    assert rows[0][:6] == ["sample", "model", "sequences", "letters", "positions", "parts"]
    assert rows[1][:6] == ["a", "tiny", "2", "2000000", "1999960", "all"]
    assert rows[0][6:9] == ["calls", "calls_per_mb", "threshold"]
    assert rows[1][6:9] == ["3", "1.5", "0.5"]
    assert rows[2][8] == "."


def test_a_scan_of_parts_is_told_from_one_of_whole_sequences(summary):
    parts = CALLS.replace("1999960 positions per strand", "700 positions per strand in 12 parts")
    parts = parts.replace("# threshold", "# parts: sites within one:1-700 and 11 more only\n# threshold")
    assert summary(parts)[1][1][3:6] == ["2000000", "700", "12"]


def test_calls_of_a_locator_are_given_per_mb(summary):
    status, rows, _ = summary(CALLS.replace("1.5 per Mb", "0.4 per kb, 0.593 per gene"))
    assert status == 0
    assert rows[1][6:8] == ["3", "400"]


@pytest.mark.parametrize(
    ("said", "cells"),
    [
        ("0.76 (0.68 to 0.85, E. coli): share of calls", ["0.76", "0.68", "0.85"]),
        ("0.55 (0.03 to 0.81, median, lowest and highest of 19 species): share", ["0.55", "0.03", "0.81"]),
        ("0.5 (0.4 to 0.6) as in E. coli: share", ["0.5", "0.4", "0.6"]),
    ],
)
def test_calls_of_a_locator_have_a_precision_to_expect(summary, said, cells):
    expected = ["expected_precision", "expected_precision_low", "expected_precision_high"]
    _, rows, _ = summary(CALLS.replace("id\t", f"# expected precision: {said}\nid\t"), CALLS)
    assert [row[-3:] for row in rows] == [expected, cells, ["."] * 3]


def test_a_table_without_its_positions_leaves_them_unknown(summary):
    assert summary(CALLS.replace(" 1999960 positions per strand", " both strands"))[1][1][4] == "."


@pytest.mark.parametrize("sign", ["\x0b", "\x1c", "\x85", "\u2028"])
def test_ids_may_hold_what_ends_a_line_elsewhere(summary, sign):
    status, rows, err = summary(CALLS.replace("\none\t", f"\n{sign}one\t").replace("a\tone", f"a\to{sign}e"))
    assert status == 0, err
    assert rows[1][6] == "3"


def test_names_in_another_encoding_are_written_as_far_as_they_go(summary, tmp_path):
    status, *_ = summary(CALLS, names=[os.fsdecode(b"Erg\xe4nzung")])
    assert status == 0
    assert (tmp_path / "summary.tsv").read_text().splitlines()[1].startswith("Erg?nzung\t")


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


def test_figures_over_all_classes_have_no_positives(summary):
    """Of more than two classes the first row of a metric is about all of them, and counts no positives."""
    header, row, *_ = EVALUATION.split("\n", 1)[1].splitlines()
    header, row = (
        header.replace("metric", "class\tmetric"),
        row.replace("mcc", "all\tmcc").replace("\t20", "\t0"),
    )
    _, rows, _ = summary(f"# model: tiny 123\n{header}\n{row}\n")
    found = dict(zip(*rows, strict=True))
    assert (found["n"], found["positives"], found["mcc"]) == ("100", ".", "0.5")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (CALLS.replace(", 1.5 per Mb", ""), "has no header with what was scanned"),
        (CALLS.replace("3, 1.5 per Mb", "three per Mb"), "has no header with what was scanned"),
        (CALLS.replace("0.5, chosen", ""), "has no header with what was scanned"),
        (CALLS.replace("# threshold: 0.5, chosen\n", ""), "has no header with what was scanned"),
        (
            CALLS.rstrip("\n").rpartition("\n")[0] + "\n",
            "is cut short or was edited: its header states 3 calls, and it has 2",
        ),
        (EVALUATION[: EVALUATION.index("model\ttest")], "has no rows of the subset 'all' for the model"),
        (EVALUATION.replace("\tall\t", "\tcontext=y\t"), "has no rows of the subset 'all' for the model"),
        (
            EVALUATION.replace("model\ttest\tall", "other\ttest\tall"),
            "has no rows of the subset 'all' for the model",
        ),
        (EVALUATION.replace("\t0.4\t0.6\t100\t20", ""), "is cut short: rows lack cells"),
        (CALLS.rstrip("\n").rpartition("\t")[0] + "\n", "is cut short: rows lack cells"),
        (
            EVALUATION.replace("\tsubset", "\tpart"),
            "has no rows of the subset 'all' for the model",
        ),
        ("", "is neither a table of calls nor of an evaluation"),
        (EVALUATION + EVALUATION.replace("0.5", "0.9"), "holds two tables"),
    ],
)
def test_a_table_that_was_cut_is_refused(summary, text, complaint):
    status, rows, err = summary(text)
    assert (status, rows, err.count("\n")) == (2, None, 1)
    assert f"0.tsv: {complaint}; " in err


def test_nothing_is_printed_if_the_page_cannot_be_written(tmp_path, capfd):
    (tmp_path / "a.tsv").write_text(CALLS)
    assert main(["summary", f"a={tmp_path / 'a.tsv'}", "--html", str(tmp_path / "none" / "a.html")]) == 2
    printed, said = capfd.readouterr()
    assert printed == ""
    assert "a.html: can't be written" in said


@pytest.mark.parametrize(
    ("names", "complaint"),
    [
        (["a\tb"], r"'a\tb' has a tab or another control character"),
        (["a\nb"], r"'a\nb' has a tab or another control character"),
        (["\x7f"], r"'\x7f' has a tab or another control character"),
        (["a\x85b"], r"'a\x85b' has a tab or another control character"),
        (["a\u2028b"], r"'a\u2028b' has a tab or another control character"),
        (["x", "y", "x"], "two tables of the model 'tiny' have the name 'x'"),
    ],
)
def test_names_that_would_shift_or_merge_rows_are_refused(summary, names, complaint):
    status, rows, err = summary(CALLS, CALLS, CALLS, names=names)
    assert (status, rows, err.count("\n")) == (2, None, 1)
    assert complaint in err


def test_one_name_may_have_a_row_per_model(summary):
    status, rows, err = summary(CALLS, CALLS.replace("model: tiny", "model: other"), names="xx")
    assert status == 0, err
    assert [row[:2] for row in rows[1:]] == [["x", "tiny"], ["x", "other"]]


def test_models_of_one_name_are_told_apart_by_their_checksums(summary):
    tables = [CALLS.replace("tiny 123", f"tiny sha256:{digit * 64}") for digit in "ab"]
    status, rows, err = summary(*tables, CALLS, names="xxy")
    assert status == 0, err
    assert [row[1] for row in rows[1:]] == ["tiny sha256:aaaaaaaa", "tiny sha256:bbbbbbbb", "tiny"]


def test_the_page_draws_each_row_to_one_scale():
    """190 px with edges of 6: calls from 0 to the largest of all, MCC from 0 to 1."""
    interval = {"false_calls_per_mb_low": "20", "false_calls_per_mb_high": "60"}
    rows = [
        {"sample": "<a>", "calls_per_mb": "89", "threshold": ".", "false_calls_per_mb": "40"} | interval,
        {"sample": "b", "calls_per_mb": "44.5678", "threshold": "0.5", "false_calls_per_mb": "."}
        | dict.fromkeys(interval, "."),
    ]
    page = render_summary("Calls", rows)
    assert "<circle class=dot cx=184 cy=9" in page  # 89 of 89
    assert 'class=span d="M46 9H126"' in page  # 6 + 178 * 20 / 89 and 6 + 178 * 60 / 89
    assert 'class=mark d="M86 2V16"' in page  # 6 + 178 * 40 / 89
    assert page.count("class=span d=") == page.count("class=mark d=") == 1  # of b nothing is known
    assert "<td class=n>40 (20 to 60)" in page
    assert "<td class=n>44.6" in page
    assert "&lt;a&gt;" in page
    assert "<a>" not in page
    assert "precision" not in page
    rows[1] = rows[1] | {
        "expected_precision": "0.5",
        "expected_precision_low": "0.4",
        "expected_precision_high": "0.6",
    }
    rows[0] = rows[0] | dict.fromkeys(
        ("expected_precision", "expected_precision_low", "expected_precision_high"), "."
    )
    page = render_summary("Calls", rows)
    assert "<td class=n>0.5 (0.4 to 0.6)" in page
    assert "Expected precision: share of the calls" in page
    figures = {"sample": "m", "mcc": "0.5", "mcc_low": "0.25", "mcc_high": "0.75", "floor_mcc": "1"}
    page = render_summary("Figures", [figures])
    assert "<circle class=dot cx=95 cy=9" in page
    assert 'class=span d="M50.5 9H139.5"' in page
    assert 'class=mark d="M184 2V16"' in page
