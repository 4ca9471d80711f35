"""``seqray audit``: what it reads, writes and tells, its options and exit codes."""

import random

import pytest

from commands import Run
from tables import body, facts, fasta, letters, tsv, write


def rows(count: int = 120, seed: int = 0) -> list[tuple[str, str]]:
    rng = random.Random(seed)
    return [("".join(rng.choices("ACGT", k=50)), rng.choice(("neg", "pos"))) for _ in range(count)]


@pytest.fixture
def audit(run, tmp_path) -> Run:
    """Run the verb where a table has nothing to find and one has positives in lower case; also as FASTA."""
    clean = rows()
    cased = [(s.lower() if label == "pos" else s, label) for s, label in clean]
    for name, chosen in (("clean", clean), ("cased", cased)):
        write(tmp_path / f"{name}.tsv", tsv("sequence label", chosen))
        for label in ("neg", "pos"):
            records = {f"r{i}": s for i, (s, own) in enumerate(chosen) if own == label}
            write(tmp_path / f"{name}.{label}.fa", fasta(records))
    return run.to("audit")


def cells(path) -> list[list[str]]:
    return [line.split("\t") for line in body(path.read_text())]


def test_a_clean_table_is_told_to_be_clean(audit):
    ended = audit("clean.tsv --strict --no-baselines")
    assert ended.err.count("\n") == 1
    first, *_, last = ended.out.splitlines()
    assert first.startswith("120 sequences of DNA: 62 neg, 58 pos; ")
    assert "no leak and no shortcut" in last


def test_what_was_not_measured_is_not_clean(audit, tmp_path):
    write(tmp_path / "two.tsv", tsv("sequence label", [("ACGTACGTAC", "a"), ("TTGCATGCAA", "b")]))
    first, *_, last = audit("two.tsv --no-baselines").out.splitlines()
    assert first.startswith("2 sequences of DNA: 1 a, 1 b; ")
    assert "not measured" in last


def test_a_shortcut_is_told_with_its_remedy_and_strict_is_an_exit_code(audit):
    lines = audit("cased.tsv --no-baselines").out.splitlines()
    [at] = [i for i, line in enumerate(lines) if line.startswith("SHORTCUT: the share of lower-case letters")]
    assert "AUROC 1.000 (1.000 to 1.000), MCC 1.000" in lines[at]
    assert "upper case" in lines[at + 2]
    assert audit("cased.tsv --no-baselines --strict --quiet", status=3) == (3, "", "")


def test_baselines_are_fitted_unless_they_are_not_wanted(audit, tmp_path):
    assert "NOTE: " in audit("clean.tsv --out a.tsv").out
    scored = {(row[1], row[3]) for row in cells(tmp_path / "a.tsv") if row[0] == "baselines"}
    expected = {(split, "kmer_logistic_mcc") for split in ("given", "grouped")}
    assert expected | {("given", "position_weights_auroc")} <= scored
    audit("clean.tsv --out b.tsv -q --no-baselines")
    assert "baselines" not in {row[0] for row in cells(tmp_path / "b.tsv")}


def test_the_table_holds_findings_and_figures(audit, tmp_path):
    audit("cased.tsv --out a.tsv -q --no-baselines")
    text = (tmp_path / "a.tsv").read_text()
    assert facts(text)["command"] == "seqray audit cased.tsv --out a.tsv --no-baselines"
    assert facts(text)["finding"].startswith("shortcut (letter_case): ")
    head, *figures = cells(tmp_path / "a.tsv")
    assert head == ["section", "split", "class", "quantity", "value", "low", "high"]
    assert all(len(row) == 7 for row in figures)
    sizes = {row[2]: int(row[4]) for row in figures if row[0] == "counts" and row[3] == "sequences"}
    assert sizes["*"] == 120 == sizes["neg"] + sizes["pos"]
    bins = [row for row in figures if row[0] == "histogram" and row[3] == "gc"]
    assert sum(int(row[4]) for row in bins) == 120
    assert all(float(row[5]) < float(row[6]) for row in bins)


def test_another_seed_gives_other_figures_and_the_page_tells_the_findings(audit, tmp_path):
    audit("cased.tsv -q --out a.tsv --html a.html")
    audit("cased.tsv -q --out b.tsv --seed 4")
    assert cells(tmp_path / "b.tsv") != cells(tmp_path / "a.tsv")
    page = (tmp_path / "a.html").read_text()
    assert page.startswith("<!DOCTYPE html>")
    assert "share of lower-case letters alone predicts the class" in page


def test_fasta_files_keep_their_case_and_have_no_order(audit):
    shown = audit("--no-baselines --class=neg=cased.neg.fa --class=pos=cased.pos.fa").out
    assert "SHORTCUT: the share of lower-case letters alone" in shown
    assert "blocks of one class" not in shown


def test_a_record_without_letters_is_left_out_and_told(audit, tmp_path):
    with (tmp_path / "clean.neg.fa").open("a") as handle:
        handle.write(">empty\n")
    shown = audit("--class=neg=clean.neg.fa --class=pos=clean.pos.fa --no-baselines").out
    assert shown.startswith("120 sequences")
    assert "CAUTION: 1 record has no letters" in shown


def test_splits_given_as_tables(audit, tmp_path):
    test = "".join(f"{label},{s}\n" for s, label in rows(40, 1))
    write(tmp_path / "test.csv", "label,sequence\n" + test)
    shown = audit("--train clean.tsv --test test.csv --out a.tsv --no-baselines").out
    assert "measured on 'test'" in shown
    splits = {row[1] for row in cells(tmp_path / "a.tsv") if row[0] == "relatives"}
    assert splits == {"train", "test", "test to train"}


@pytest.mark.parametrize(
    ("alphabet", "option", "told"),
    [("ACDEFGHIKLMNPQRSTVWY", "protein", "protein"), ("ACGU", "rna", "RNA"), ("ACGT", "dna", "DNA")],
)
def test_the_alphabet_is_told_by_the_letters_or_given(audit, tmp_path, alphabet, option, told):
    examples = [
        ("M" * (i % 2) * (told == "protein") + letters(60, i, alphabet), "ab"[i % 2]) for i in range(60)
    ]
    write(tmp_path / "x.tsv", tsv("sequence label", examples))
    for words in ("", f"--alphabet {option}"):
        shown = audit("x.tsv --no-baselines", words).out
        assert shown.startswith(f"60 sequences of {told}: 30 a, 30 b; ")
        assert ("SHORTCUT: an initial M alone" in shown) == (told == "protein")
    if told == "protein":
        audit.refused("x.tsv --no-baselines --alphabet dna", names=("protein", "--alphabet protein"))


@pytest.mark.parametrize(("odd", "told"), [("Pos", "differ only in case"), ("NA", "'NA' is a class like")])
def test_labels_that_look_like_a_mistake_are_a_caution(audit, tmp_path, odd, told):
    write(
        tmp_path / "odd.tsv", tsv("sequence label", [*rows(), (letters(50, 1), odd), (letters(50, 2), odd)])
    )
    [line] = [line for line in audit("odd.tsv --no-baselines").out.splitlines() if told in line]
    assert line.startswith("CAUTION: the label")
