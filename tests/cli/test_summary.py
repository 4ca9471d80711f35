"""``seqray summary``: what it makes of tables, and the tables and names that it refuses."""

import json
import os

import pytest

from seqray.report.pages.evaluation import render_summary
from tables import table, write

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
def of_tables(run, tmp_path):
    """The verb, and a function that writes tables and gives their words."""

    def words(tables, names):
        paths = [write(tmp_path / f"{i}.tsv", text) for i, text in enumerate(tables)]
        return [f"{name}={path.name}" for name, path in zip(names, paths, strict=False)]

    return run.to("summary --quiet"), words


@pytest.fixture
def summary(of_tables):
    """Rows of the summary of tables."""
    run, words = of_tables
    return lambda *tables, names="abc": table(run(words(tables, names)).out)


@pytest.fixture
def refused(of_tables):
    run, words = of_tables
    return lambda *tables, names="abc": run.refused(words(tables, names), "--out s.tsv")


def test_tables_of_calls_give_a_row_each(summary):
    first, second = summary(CALLS, CALLS.replace("0.5, chosen", "none"))
    assert list(first)[:7] == ["sample", "model", "status", "sequences", "letters", "positions", "parts"]
    assert list(first.values())[:7] == ["a", "tiny", "ok", "2", "2000000", "1999960", "all"]
    assert first["cautions"] == "."
    assert (first["calls"], first["calls_per_mb"], first["threshold"]) == ("3", "1.5", "0.5")
    assert second["threshold"] == "."
    [row] = summary(
        CALLS.replace("0.5, chosen", "0.123456789, chosen\n# caution 1: few\n# caution 2: unlike")
    )
    assert (row["threshold"], row["cautions"]) == ("0.123457", "few; unlike")


def test_a_failed_command_has_a_row_of_its_model(of_tables, tmp_path):
    run, words = of_tables
    rows = table(run(words([CALLS], "a"), "--failed 'b=tiny=b.fa: a=b' --html s.html").out)
    assert [[*row.values()][:3] for row in rows] == [
        ["a", "tiny", "ok"],
        ["b", "tiny", "failed"],
    ]
    assert [(row["calls"], [*row.values()][-1]) for row in rows] == [("3", "."), (".", "b.fa: a=b")]
    assert "failed" in (tmp_path / "s.html").read_text()
    assert run("--failed b=tiny").out == "sample\tmodel\tstatus\tcautions\nb\ttiny\tfailed\t.\n"
    for wrong in ("", "--failed b"):
        run.refused(words([CALLS], "a") if wrong else [], wrong, "--out s.tsv")


PREDICTIONS = """\
# model: tiny 123
# label: 'yes' where its probability is at least 0.25 (the model's)
id\tlength\tlabel\tp_no\tp_yes\tflags
a\t9\tyes\t0.2\t0.8\t.
b\t9\tno\t0.9\t0.1\tshort
c\t9\tyes\t0.7\t0.3\t.
"""
SPECIES = PREDICTIONS.replace("# label: 'yes' where its", "# label: its").replace("yes", "maybe")


def test_predictions_are_counted_by_class_in_every_form(run, of_tables, tmp_path):
    _, words = of_tables
    outputs = "--out s.tsv --json s.json --multiqc s_mqc.json --html s.html"
    run("summary --quiet", words([PREDICTIONS, SPECIES], "ab"), outputs)
    first, second = table((tmp_path / "s.tsv").read_text())
    counts = {"records": "3", "flagged": "1", "threshold": "0.25", "called_no": "1", "called_yes": "2"}
    about = {"sample": "a", "model": "tiny", "status": "ok"}
    assert first == {**about, **counts, "called_maybe": ".", "cautions": "."}
    assert (second["called_yes"], second["called_maybe"]) == (".", "2")
    plain = json.loads((tmp_path / "s.json").read_text())
    version, command = plain["provenance"]
    assert version.startswith("seqray ")
    assert command == f"command: seqray summary a=0.tsv b=1.tsv {outputs}"
    rows = plain["rows"]
    assert rows[0] == {
        **{**about, "records": 3, "flagged": 1, "threshold": 0.25},
        **{"called_no": 1, "called_yes": 2, "called_maybe": None, "cautions": None},
    }
    multiqc = json.loads((tmp_path / "s_mqc.json").read_text())
    assert multiqc["data"]["b"] == {**counts_of(rows[1]), "model": "tiny", "status": "ok"}
    assert set(multiqc["headers"]) == set(first) - {"sample"}
    assert "called maybe" in (tmp_path / "s.html").read_text()


def counts_of(row):
    return {column: cell for column, cell in row.items() if isinstance(cell, int | float)}


PARTS = CALLS.replace("1999960 positions per strand", "700 positions per strand in 12 parts")


@pytest.mark.parametrize(
    ("text", "cells"),
    [
        (
            PARTS.replace("# threshold", "# parts: sites within one:1-700 and 11 more only\n# threshold"),
            {"letters": "2000000", "positions": "700", "parts": "12"},
        ),
        (CALLS.replace("1.5 per Mb", "0.4 per kb, 0.593 per gene"), {"calls": "3", "calls_per_mb": "400"}),
        (CALLS.replace(" 1999960 positions per strand", " both strands"), {"positions": "."}),
    ],
)
def test_what_was_scanned_is_read_from_the_header(summary, text, cells):
    [row] = summary(text)
    assert cells.items() <= row.items()


@pytest.mark.parametrize(
    ("said", "cells"),
    [
        ("0.76 (0.68 to 0.85, E. coli): share of calls", ["0.76", "0.68", "0.85"]),
        ("0.55 (0.03 to 0.81, median, lowest and highest of 19 species): share", ["0.55", "0.03", "0.81"]),
        ("0.5 (0.4 to 0.6) as in E. coli: share", ["0.5", "0.4", "0.6"]),
    ],
)
def test_calls_of_a_locator_have_a_precision_to_expect(summary, said, cells):
    rows = summary(CALLS.replace("id\t", f"# expected precision: {said}\nid\t"), CALLS)
    names = [f"expected_precision{end}" for end in ("", "_low", "_high")]
    assert [[row[name] for name in names] for row in rows] == [cells, ["."] * 3]


@pytest.mark.parametrize("sign", ["\x0b", "\x1c", "\x85", "\u2028"])
def test_ids_may_hold_what_ends_a_line_elsewhere(of_tables, tmp_path, sign):
    run, words = of_tables
    text = CALLS.replace("\none\t", f"\n{sign}one\t").replace("a\tone", f"a\to{sign}e")
    assert run(words([text], "a")).out.split("\n")[1].split("\t")[7] == "3"


def test_names_in_another_encoding_are_written_as_far_as_they_go(summary):
    [row] = summary(CALLS, names=[os.fsdecode(b"Erg\xe4nzung")])
    assert row["sample"] == "Erg?nzung"


def test_an_evaluation_gives_the_figures_of_all(summary):
    [row] = summary(EVALUATION)
    expected = {"mcc": "0.5", "mcc_low": "0.4", "mcc_high": "0.6", "floor_mcc": "0.1", "n": "100"}
    assert expected.items() <= row.items()


def test_figures_over_all_classes_have_no_positives(summary):
    """Of more than two classes the first row of a metric is about all of them, and counts no positives."""
    _, header, row, *_ = EVALUATION.splitlines()
    header, row = (
        header.replace("metric", "class\tmetric"),
        row.replace("mcc", "all\tmcc").replace("\t20", "\t0"),
    )
    [found] = summary(f"# model: tiny 123\n{header}\n{row}\n")
    assert (found["n"], found["positives"], found["mcc"]) == ("100", ".", "0.5")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (CALLS.replace(", 1.5 per Mb", ""), "header"),
        (CALLS.replace("3, 1.5 per Mb", "three per Mb"), "header"),
        (CALLS.replace("0.5, chosen", ""), "header"),
        (CALLS.replace("# threshold: 0.5, chosen\n", ""), "header"),
        (CALLS.rstrip("\n").rpartition("\n")[0] + "\n", "3 calls, and it has 2"),
        (EVALUATION[: EVALUATION.index("model\ttest")], "'all'"),
        (EVALUATION.replace("\tall\t", "\tcontext=y\t"), "'all'"),
        (EVALUATION.replace("model\ttest\tall", "other\ttest\tall"), "'all'"),
        (EVALUATION.replace("\tsubset", "\tpart"), "'all'"),
        (EVALUATION.replace("\t0.4\t0.6\t100\t20", ""), "cut short"),
        (CALLS.rstrip("\n").rpartition("\t")[0] + "\n", "cut short"),
        ("", "no table of"),
        (EVALUATION + EVALUATION.replace("0.5", "0.9"), "two tables"),
    ],
)
def test_a_table_that_was_cut_is_refused(refused, text, complaint):
    line = refused(text)
    assert line.startswith("0.tsv: ")
    assert complaint in line


def test_a_table_of_another_verb_is_refused_with_both_and_a_remedy(refused):
    line = refused(CALLS, PREDICTIONS)
    assert line.startswith("1.tsv: is a table of 'predict', and the first is one of 'scan'; ")


def test_nothing_is_printed_if_the_page_cannot_be_written(of_tables):
    run, words = of_tables
    run.refused(words([CALLS], "a"), "--html none/a.html", names="none/a.html")


@pytest.mark.parametrize("name", ["a\tb", "a\nb", "\x7f", "a\x85b", "a\u2028b"])
def test_names_that_would_shift_rows_are_refused(refused, name):
    line = refused(CALLS, names=[name])
    assert "control character" in line
    assert name not in line


def test_one_name_may_have_a_row_per_model_and_no_more(summary, refused):
    rows = summary(CALLS, CALLS.replace("model: tiny", "model: other"), names="xx")
    assert [(row["sample"], row["model"]) for row in rows] == [("x", "tiny"), ("x", "other")]
    tables = [CALLS.replace("tiny 123", f"tiny sha256:{digit * 64}") for digit in "ab"]
    models = [row["model"] for row in summary(*tables, CALLS, names="xxy")]
    assert models == ["tiny sha256:aaaaaaaa", "tiny sha256:bbbbbbbb", "tiny"]
    assert "'x'" in refused(CALLS, CALLS, CALLS, names="xyx")


def test_the_page_draws_each_row_to_one_scale():
    """130 px with edges of 6: calls from 0 to the largest of all, shares and MCC from 0 to 1."""
    ends = ("false_calls_per_mb_low", "false_calls_per_mb_high")
    unknown = {"threshold": "0.5", "false_calls_per_mb": "."} | dict.fromkeys(ends, ".")
    rows = [
        {"sample": "<a>", "calls_per_mb": "118", "threshold": ".", "false_calls_per_mb": "40"}
        | dict(zip(ends, ("20", "60"), strict=True)),
        {"sample": "b", "calls_per_mb": "44.5678"} | unknown,
    ]
    page = render_summary("Calls", rows)
    assert "<circle class=dot cx=124 cy=9" in page  # 118 of 118
    assert 'class=span d="M26 9H66"' in page  # 6 + 118 * 20 / 118 and 6 + 118 * 60 / 118
    assert 'class=mark d="M46 2V16"' in page  # 6 + 118 * 40 / 118
    assert page.count("class=span d=") == page.count("class=mark d=") == 1  # of b nothing is known
    assert "<br>118<div>against 40 <small>20 to 60</small></div>" in page
    assert "<br>44.6" in page
    assert "&lt;a&gt;" in page
    assert "<a>" not in page
    figures = {"sample": "m", "mcc": "0.5", "mcc_low": "0.25", "mcc_high": "0.75", "floor_mcc": "1"}
    chances = {
        "sample": "c",
        "expected_precision": "0.5",
        "parts": "all",
        "positions": "9",
        "calls_per_mb": "7",
    }
    ends = {"expected_precision_low": ".25", "expected_precision_high": ".75", "false_calls_per_mb": "."}
    page = render_summary("Genomes", [chances | ends])
    assert 'class=span d="M35.5 9H94.5"' in page
    assert (
        "<th scope=col>calls per mb<th scope=col>expected precision<tbody>" in page
    )  # without chance or parts
    page = render_summary("Figures", [figures])
    assert "<circle class=dot cx=65 cy=9" in page
    assert 'class=span d="M35.5 9H94.5"' in page
    assert 'class=mark d="M124 2V16"' in page
