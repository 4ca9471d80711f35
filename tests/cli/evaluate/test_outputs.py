"""Outputs: the same again, of one content in all formats, and what is printed."""

from __future__ import annotations

import json

from cli.evaluate.tables import TEST, figures, value, write_table


def test_all_outputs_are_the_same_bytes_again_and_say_the_same(evaluate, folder):
    words = ("--train", "train.tsv", "--test", "test.tsv", "--seed", "3", "--sample", "one")
    names = ("m.tsv", "m.json", "m.html", "m_mqc.json")
    options = [
        w for pair in zip(("--out", "--json", "--html", "--multiqc"), names, strict=True) for w in pair
    ]
    runs = []
    for _ in range(2):
        assert evaluate(*words, *options, "--threads", "1", "--device", "cpu", "--batch-size", "16")[0] == 0
        runs.append([(folder / name).read_bytes() for name in names])
    assert runs[0] == runs[1]
    facts, table = json.loads(runs[0][1]), figures(folder / "m.tsv")
    for figure in facts["figures"]:
        row = table[figure["subset"], figure["source"], figure["class"], figure["metric"]]
        assert figure["value"] == (None if row["value"] == "." else float(row["value"]))
    assert facts["model"]["name"] == "tiny"
    assert json.loads(runs[0][3])["data"]["one"]["mcc"] == value(table, "mcc")
    assert str(folder) not in runs[0][0].decode()
    assert b"<script" not in runs[0][2]


def test_the_order_of_rows_decides_nothing(evaluate, folder):
    write_table(folder / "turned.tsv", TEST[::-1])
    for name in ("test", "turned"):
        assert evaluate("--test", f"{name}.tsv", "--out", f"{name}.out.tsv", "--seed", "1")[0] == 0
    one, two = (figures(folder / f"{name}.out.tsv") for name in ("test", "turned"))
    assert one == two


def test_figures_on_standard_output_leave_the_summary_to_standard_error(evaluate):
    status, out, err = evaluate("--test", "test.tsv", "--out", "-", "--no-floor")
    assert status == 0
    assert out.startswith("# seqray ")
    assert err.startswith("tiny on 60 records")
    status, out, err = evaluate("--test", "test.tsv", "--out", "-", "--no-floor", "--quiet")
    assert err == ""


def test_without_draws_there_are_no_intervals(evaluate, folder):
    assert evaluate("--test", "test.tsv", "--bootstrap", "0", "--no-floor", "--out", "m.tsv")[0] == 0
    assert {row["low"] for row in figures(folder / "m.tsv").values()} == {"."}


def test_without_draws_nothing_is_said_of_groups(evaluate):
    _, out, _ = evaluate("--test", "test.tsv", "--train", "train.tsv", "--bootstrap", "0")
    assert "model minus floor: mcc" in out
    assert "no interval" not in out
