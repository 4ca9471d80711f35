"""``seqray audit``: what it reads, writes and tells, its options, errors and exit codes."""

from __future__ import annotations

import gzip
import io
import random
import sys
from pathlib import Path

import pytest

from seqray.cli.main import main

LENGTH = 50


def rows(count: int = 120, seed: int = 0) -> list[tuple[str, str]]:
    rng = random.Random(seed)
    return [("".join(rng.choices("ACGT", k=LENGTH)), rng.choice(("neg", "pos"))) for _ in range(count)]


def table(examples: list[tuple[str, ...]], header: str = "sequence\tlabel") -> str:
    return "\n".join([header, *("\t".join(row) for row in examples)]) + "\n"


@pytest.fixture
def files(tmp_path) -> Path:
    """A table with nothing to find, the same as FASTA, and a table whose positives are lower case."""
    examples = rows()
    (tmp_path / "clean.tsv").write_text(table(examples))
    cased = [(s.lower() if label == "pos" else s, label) for s, label in examples]
    (tmp_path / "cased.tsv").write_text(table(cased))
    for name, chosen in (("clean", examples), ("cased", cased)):
        for label in ("neg", "pos"):
            fasta = "".join(f">r{i}\n{s}\n" for i, (s, own) in enumerate(chosen) if own == label)
            (tmp_path / f"{name}.{label}.fa").write_text(fasta)
    return tmp_path


def audit(folder: Path, *words: str) -> int:
    quick = () if "--with-baselines" in words else ("--no-baselines",)
    return main(["audit", *(w for w in words if w != "--with-baselines"), *quick])


def body(path: Path) -> list[list[str]]:
    lines = [line for line in path.read_text().splitlines() if not line.startswith("#")]
    return [line.split("\t") for line in lines]


def test_help_names_every_option(capsys):
    assert main(["audit", "--help"]) == 0
    shown = capsys.readouterr().out
    options = (
        "--train",
        "--validation",
        "--test",
        "--class",
        "--test-class",
        "--alphabet",
        "--out",
        "--html",
    )
    assert all(
        option in shown for option in (*options, "--strict", "--no-baselines", "--seed", "--quiet", "TABLE")
    )


def test_a_clean_table_is_told_to_be_clean(files, capsys):
    assert audit(files, str(files / "clean.tsv"), "--strict") == 0
    printed = capsys.readouterr()
    assert [line.split(":")[1] for line in printed.err.splitlines()] == [" resources"]
    lines = printed.out.splitlines()
    assert lines[0].startswith("120 sequences of DNA: neg ")
    assert lines[0].endswith("; 5 random folds")
    assert lines[-1] == "no leak and no shortcut was found"


def test_what_was_not_measured_is_not_clean(files, capsys):
    (files / "two.tsv").write_text("sequence\tlabel\nACGTACGTAC\ta\nTTGCATGCAA\tb\n")
    assert audit(files, str(files / "two.tsv")) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "2 sequences of DNA: a 1, b 1; a class has too few examples"
    assert lines[-1] == "rules and baselines were not measured"


def test_a_shortcut_is_told_with_its_remedy(files, capsys):
    assert audit(files, str(files / "cased.tsv")) == 0
    lines = capsys.readouterr().out.splitlines()
    [at] = [
        i
        for i, line in enumerate(lines)
        if line.startswith("SHORTCUT: the share of lower-case letters alone")
    ]
    assert "AUROC 1.000 (1.000 to 1.000), MCC 1.000" in lines[at]
    assert lines[at + 2].startswith("    -> write all letters in upper case")


def test_strict_is_an_exit_code(files, capsys):
    assert audit(files, str(files / "cased.tsv"), "--strict", "--quiet") == 3
    assert capsys.readouterr() == ("", "")


def test_baselines_are_fitted_unless_they_are_not_wanted(files, capsys):
    assert audit(files, str(files / "clean.tsv"), "--with-baselines", "--out", str(files / "a.tsv")) == 0
    assert "NOTE: " in capsys.readouterr().out
    scored = {(row[1], row[3]) for row in body(files / "a.tsv") if row[0] == "baselines"}
    assert {
        ("given", "kmer_logistic_mcc"),
        ("grouped", "kmer_logistic_mcc"),
        ("given", "position_weights_auroc"),
    } <= scored
    assert audit(files, str(files / "clean.tsv"), "--out", str(files / "b.tsv"), "-q") == 0
    assert not [row for row in body(files / "b.tsv") if row[0] == "baselines"]


def test_the_table_holds_findings_and_figures(files):
    assert audit(files, str(files / "cased.tsv"), "--out", str(files / "a.tsv"), "-q") == 0
    text = (files / "a.tsv").read_text()
    assert text.startswith("# seqray ")
    assert "# command: seqray audit cased.tsv --out a.tsv" in text
    assert "# finding: shortcut (letter_case): the share of lower-case letters alone" in text
    assert str(files) not in text
    head, *figures = body(files / "a.tsv")
    assert head == ["section", "split", "class", "quantity", "value", "low", "high"]
    assert all(len(row) == 7 for row in figures)
    sizes = {row[2]: int(row[4]) for row in figures if row[0] == "counts" and row[3] == "sequences"}
    assert sizes["*"] == 120 == sizes["neg"] + sizes["pos"]
    bins = [row for row in figures if row[0] == "histogram" and row[3] == "gc"]
    assert sum(int(row[4]) for row in bins) == 120
    assert all(float(row[5]) < float(row[6]) for row in bins)


def test_the_same_command_gives_the_same_bytes_and_gz_holds_the_same(files):
    command = (str(files / "cased.tsv"), "--with-baselines", "--seed", "3", "-q")
    outputs = ("--out", str(files / "a.tsv"), "--html", str(files / "a.html"))
    contents = []
    for _ in range(2):
        assert audit(files, *command, *outputs) == 0
        contents.append(((files / "a.tsv").read_bytes(), (files / "a.html").read_bytes()))
    assert contents[0] == contents[1]
    command = (str(files / "cased.tsv"), "-q")
    assert audit(files, *command, "--out", str(files / "a.tsv")) == 0
    contents = [((files / "a.tsv").read_bytes(), b"")]
    assert audit(files, *command, "--out", str(files / "a.tsv.gz")) == 0
    packed = gzip.decompress((files / "a.tsv.gz").read_bytes()).splitlines()
    plain = contents[0][0].splitlines()
    assert [line for line in packed if line[:1] != b"#"] == [line for line in plain if line[:1] != b"#"]
    assert audit(files, *command, "--seed", "4", "--out", str(files / "b.tsv")) == 0
    assert body(files / "b.tsv") != body(files / "a.tsv")


def test_the_page_says_the_same(files):
    assert audit(files, str(files / "cased.tsv"), "--html", str(files / "a.html"), "-q") == 0
    page = (files / "a.html").read_text()
    assert page.startswith("<!DOCTYPE html>")
    assert "The share of lower-case letters alone predicts the class" in page
    assert "audit cased.tsv" in page


def test_standard_output_and_input(files, capsys, monkeypatch):
    packed = gzip.compress((files / "cased.tsv").read_bytes())
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(packed)))
    assert audit(files, "-", "--out", "-") == 0
    printed = capsys.readouterr()
    assert printed.out.startswith("# seqray ")
    assert "letter_case" in printed.out
    assert "SHORTCUT: " in printed.err
    assert "SHORTCUT: " not in printed.out


def test_fasta_files_keep_their_case_and_have_no_order(files, capsys):
    pairs = [f"--class={label}={files}/cased.{label}.fa" for label in ("neg", "pos")]
    assert audit(files, *pairs) == 0
    shown = capsys.readouterr().out
    assert "SHORTCUT: the share of lower-case letters alone" in shown
    assert "blocks of one class" not in shown
    tests = [f"--test-class={label}={files}/cased.{label}.fa" for label in ("neg", "pos")]
    clean = [f"--class={label}={files}/clean.{label}.fa" for label in ("neg", "pos")]
    assert audit(files, *clean, *tests) == 0
    assert (
        "LEAK: exact copies across the split: 120 of 120 (100 %) of test also in train"
        in capsys.readouterr().out
    )


def test_a_record_without_letters_is_left_out_and_told(files, capsys):
    with (files / "clean.neg.fa").open("a") as handle:
        handle.write(">empty\n")
    pairs = [f"--class={label}={files}/clean.{label}.fa" for label in ("neg", "pos")]
    assert audit(files, *pairs) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("120 sequences")
    assert "CAUTION: 1 record has no letters and was left out" in shown


def test_splits_given_as_tables(files, capsys):
    (files / "test.csv").write_text(
        "label,sequence\n" + "".join(f"{label},{s}\n" for s, label in rows(40, 1))
    )
    words = ("--train", str(files / "clean.tsv"), "--test", str(files / "test.csv"))
    assert audit(files, *words, "--out", str(files / "a.tsv")) == 0
    assert "the given split, measured on 'test'" in capsys.readouterr().out
    assert {row[1] for row in body(files / "a.tsv") if row[0] == "relatives"} == {
        "train",
        "test",
        "test to train",
    }


def test_protein_and_rna(files, capsys):
    rng = random.Random(2)
    protein = [
        ("M" * (i % 2) + "".join(rng.choices("ACDEFGHIKLMNPQRSTVWY", k=30)), "ab"[i % 2]) for i in range(80)
    ]
    (files / "p.tsv").write_text(table(protein))
    assert audit(files, str(files / "p.tsv"), "--alphabet", "protein") == 0
    assert "SHORTCUT: an initial M alone predicts the class" in capsys.readouterr().out
    (files / "r.tsv").write_text(table([(s.replace("T", "U"), label) for s, label in rows(40)]))
    assert audit(files, str(files / "r.tsv"), "--alphabet", "rna", "--out", str(files / "r.out.tsv")) == 0
    assert "letter_U" in (files / "r.out.tsv").read_text()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "no training data; give --train TABLE, or --class LABEL=FASTA for each class"),
        (["none.tsv"], "none.tsv: no such file"),
        (["clean.tsv", "--class", "a=clean.neg.fa"], "both tables and --class are given"),
        (
            ["--class", "a=clean.neg.fa"],
            "clean.neg.fa: all examples have the label 'a'; an audit compares two classes or more",
        ),
        (["clean.tsv", "--alphabet", "protein"], "looks like nucleotides"),
        (["clean.tsv", "--alphabet", "dan"], "invalid choice: 'dan'"),
        (["clean.tsv", "--seed", "-1"], "'-1' is not a whole number"),
        (["clean.tsv", "--out", "clean.tsv"], "clean.tsv: is an input and would be overwritten"),
        (["clean.tsv", "--out", "a", "--html", "a"], "a: is named twice as an output"),
        (
            ["clean.tsv", "--html", "none/a.html"],
            "none/a.html: can't be written (its directory doesn't exist)",
        ),
    ],
)
def test_what_cannot_be_done_is_one_line_and_leaves_nothing(files, capsys, monkeypatch, words, message):
    monkeypatch.chdir(files)
    before = sorted(files.iterdir())
    assert audit(files, *words) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert len(printed.err.splitlines()) == 1
    assert printed.err.startswith("seqray: error: ")
    assert message in printed.err
    assert sorted(files.iterdir()) == before


@pytest.mark.parametrize(
    ("letters", "told"), [("ACDEFGHIKLMNPQRSTVWY", "protein"), ("ACGU", "RNA"), ("ACGT", "DNA")]
)
def test_the_alphabet_is_told_by_the_letters(tmp_path, capsys, letters, told):
    rng = random.Random(4)
    examples = [("".join(rng.choices(letters, k=60)), "ab"[i % 2]) for i in range(60)]
    (tmp_path / "x.tsv").write_text(table(examples))
    assert main(["audit", str(tmp_path / "x.tsv"), "--no-baselines"]) == 0
    assert capsys.readouterr().out.startswith(f"60 sequences of {told}: a 30, b 30; ")


def test_proteins_named_dna_name_the_option(tmp_path, capsys):
    (tmp_path / "x.tsv").write_text(table([("MKTLLVAGAVLLLSAWPAFA", "a"), ("MKTLIVAGAVLLFSAWPAFA", "b")]))
    assert main(["audit", str(tmp_path / "x.tsv"), "--no-baselines", "--alphabet", "dna"]) == 2
    assert "looks like protein" in (err := capsys.readouterr().err)
    assert "give --alphabet protein" in err
