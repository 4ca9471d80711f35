"""What can not be evaluated is an error of one line."""

from __future__ import annotations

import pytest

PREDICTED = ("--predictions", "p.tsv", "--labels", "labels.tsv")


@pytest.mark.parametrize(
    ("words", "model", "message"),
    [
        ((), False, "nothing to evaluate; give --model with --test, or --predictions with --labels"),
        (PREDICTED, True, "both --model and --predictions are given"),
        (("--test", "test.tsv", "--labels", "labels.tsv"), True, "--predictions and --labels go together"),
        (("--predictions", "p.tsv"), False, "--predictions and --labels go together"),
        (("--test", "test.tsv", "--positive", "promoter"), True, "--positive is for --predictions"),
        ((*PREDICTED, "--prior", "0.5"), False, "--prior needs --model"),
        ((*PREDICTED, "--truncate", "ends"), False, "--truncate needs --model; give it to 'seqray predict'"),
        ((*PREDICTED, "--sample", "x"), False, "--sample names a row of a MultiQC table; add --multiqc"),
        ((*PREDICTED, "--query-only"), False, "--query-only needs --model"),
        ((*PREDICTED, "--alignment-labels", "labels.tsv"), False, "--alignment-labels needs --model"),
        ((*PREDICTED, "--backbone", "."), False, "--backbone needs --model"),
        ((*PREDICTED, "--dtype", "bf16"), False, "--dtype needs --model"),
        ((*PREDICTED, "--context", "none"), False, "--context needs --model"),
        ((*PREDICTED, "--dtype", "bf16", "--against", "m.tsv"), False, "--dtype needs --model"),
        ((*PREDICTED, "--backbone", ".", "--against", "ecoli-promoter"), False, "--backbone needs --model"),
        (("--test", "test.tsv", "--id-column", "x"), True, "--id-column is for tables of predictions"),
        ((*PREDICTED, "--test", "test.tsv"), False, "takes its test data from --labels"),
        ((*PREDICTED, "--groups", "column"), False, "no example has a group"),
        ((*PREDICTED, "--groups", "words"), False, "--groups words needs sequences"),
        ((*PREDICTED, "--score-column", "x"), False, "p.tsv: has no column 'x'"),
        (
            (*PREDICTED, "--positive", "x"),
            False,
            "'x' is not a class; give --positive promoter or background",
        ),
        ((*PREDICTED, "--map", "x=promoter"), False, "no example has the label 'x' that --map renames"),
        (
            (*PREDICTED, "--map", "promoter=a", "--map", "promoter=b"),
            False,
            "--map renames the label 'promoter' twice, to a and to b; give one --map for each label",
        ),
        ((*PREDICTED, "--map", "promoter"), False, "'--map promoter' renames nothing"),
        ((*PREDICTED, "--map", "promoter=x"), False, "'x', which is none of promoter, background"),
        ((), True, "no labeled data; give --test TABLE, or --test-class LABEL=FASTA for each class"),
        (("--test", "none.tsv"), True, "none.tsv"),
        (("--test", "long.tsv"), True, "long.tsv: record 'x': has 21 letters, model 'tiny' reads at most 20"),
        (("--test", "test.tsv", "--split", "train"), True, "no example of split 'train'; splits: test"),
        (
            ("--test", "test.tsv", "--alphabet", "protein"),
            True,
            "--alphabet is protein, but the model reads dna",
        ),
        (
            ("--test", "test.tsv", "--threshold", "2"),
            True,
            "--threshold is 2; a model's threshold is between 0 and 1",
        ),
        (("--test", "test.tsv", "--threshold", "x"), True, "'x' is not a number"),
        (("--test", "test.tsv", "--multiqc", "m.json"), True, "m.json: is not a name that MultiQC looks for"),
        (
            ("--test", "test.tsv", "--out", "m.parquet"),
            True,
            "m.parquet: does not end in the suffix of a TSV",
        ),
        (
            ("--test", "test.tsv", "--html", "a", "--json", "a"),
            True,
            "a: is named twice as an output",
        ),
        (
            ("--test", "test.tsv", "--out", "test.tsv"),
            True,
            "test.tsv: is an input and would be overwritten",
        ),
        (
            ("--test", "test.tsv", "--against", "m.tsv", "--out", "m.tsv"),
            True,
            "m.tsv: is an input",
        ),
        (
            ("--test", "test.tsv", "--html", "m.tsv"),
            True,
            "m.tsv: ends in the suffix of another format",
        ),
        (
            ("--test", "test.tsv", "--train", "other.tsv"),
            True,
            "has the label 'odd', which is none of promoter, background; rename it by --map odd=CLASS",
        ),
        (("--test", "test.tsv", "--html", "none/m.html"), True, "none/m.html: can't be written"),
        (("--test", "-", "--train", "-"), True, "standard input: is named twice as an input"),
        (("--test", "test.tsv", "--against", "nowhere"), True, "no shipped model is called 'nowhere'"),
        (("--test", "test.tsv", "--against", "ecoli-promotor"), True, "did you mean 'ecoli-promoter'?"),
    ],
)
def test_what_cannot_be_done_is_one_line_and_leaves_nothing(
    evaluate, folder, predictions, words, model, message
):
    before = sorted(folder.iterdir())
    status, out, err = evaluate(*words, model=model)
    assert (status, out) == (2, "")
    assert len(err.splitlines()) == 1
    assert err.startswith("seqray: error: ")
    assert message in err
    assert sorted(folder.iterdir()) == before


@pytest.mark.parametrize(
    ("table", "labels", "message"),
    [
        ("id\tp_promoter\na\t.5\n", "a\tpromoter\nb\tbackground\n", "has no prediction for 'b'"),
        ("id\tp_promoter\na\t.5\na\t.5\n", "a\tpromoter\n", "p.tsv: contains the id 'a' twice"),
        ("id\tp_promoter\na\t.5\n", "a\tpromoter\na\tpromoter\n", "l.tsv: contains the id 'a' twice"),
        ("id\tscore\na\t.5\n", "a\tpromoter\n", "name the score: --score-column NAME"),
        (
            "id\tp_x\na\t.5\nb\t.1\n",
            "a\tx\nb\ty\n",
            "the positive class is not known; give --positive x or y",
        ),
        ("id\tp_x\na\t.5\nb\t.1\nc\t0\n", "a\tx\nb\ty\nc\tz\n", "one score a record, but 3 labels: x, y, z"),
        (
            "id\tp_1\na\t3\nb\t.1\n",
            "a\t1\nb\t0\n",
            "has scores outside 0 to 1; give the lowest score that is called",
        ),
        (
            "id\tp_a\tp_b\tp_c\nr\t.5\t.4\t.3\n",
            "r\ta\n",
            "of record 'r': 0.5, 0.4, 0.3; divide each row by its sum",
        ),
        (
            "id\tp_a\tp_b\nq\t.5\t.5\nr\t.9\t.3\n",
            "q\ta\nr\tb\n",
            "p.tsv: probabilities are outside 0 to 1 or don't sum to 1, first those of record 'r': 0.9, 0.3; "
            "divide each row by its sum, or name the score of the positive class: --score-column NAME",
        ),
        (
            "id\tp_x\na\t.5\n",
            "a\tx\n",
            "l.tsv: all labels are 'x'; name the positive class, --positive CLASS",
        ),
        (
            "id\tp_a\tp_b\tp_c\nr\t.5\t.4\t.1\n",
            "r\tz\n",
            "record 'r': has the label 'z', which is none of a, b, c",
        ),
    ],
)
def test_tables_that_do_not_join(evaluate, folder, table, labels, message):
    (folder / "p.tsv").write_text(table)
    (folder / "l.tsv").write_text(labels)
    more = ("--positive", "a") if "p_a\tp_b\n" in table else ()
    status, _, err = evaluate("--predictions", "p.tsv", "--labels", "l.tsv", *more, model=False)
    assert status == 2
    assert message in err
    assert len(err.splitlines()) == 1
