"""Tables of labeled sequences, predictions and labels, whoever wrote them."""

import gzip
import json
import math

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, strategies as st

from seqray.core.alphabet import DNA, PROTEIN
from seqray.core.errors import InputError
from seqray.core.records import LabeledSequence
from seqray.core.results import Prediction
from seqray.core.text import format_number
from seqray.evaluation.floor import answers_from_probabilities
from seqray.evaluation.run import evaluate_scores
from seqray.io.predictions import (
    numeric_column,
    probability_column,
    read_labels,
    read_prediction_table,
    rows_by_id,
    write_predictions,
)
from seqray.io.sequences import read_labeled_fastas, read_labeled_table, write_labeled_table
from seqray.io.summaries import COLUMNS, evaluation_mapping, multiqc_mapping, write_figures, write_json
from seqray.io.tables import read_rows

EXAMPLES = [
    LabeledSequence("ACGT", "promoter", "a", "g1", "train"),
    LabeledSequence("GGCC", "back,ground", 'b "quoted"'),
]


@pytest.mark.parametrize("name", ["a.tsv", "a.csv", "a.tsv.gz", "a.csv.gz"])
def test_every_format_is_read_back(tmp_path, name):
    path = tmp_path / name
    write_labeled_table(path, EXAMPLES, ["seqray x"])
    assert read_labeled_table(path, DNA) == EXAMPLES
    text = (gzip.decompress if name.endswith("gz") else bytes)(path.read_bytes()).decode()
    assert ("sequence,label" in text) == (".csv" in name)


def test_folds_get_a_column_before_the_context(tmp_path):
    examples = [EXAMPLES[0], LabeledSequence("TTTT", "promoter", "c", context="E. coli")]
    write_labeled_table(tmp_path / "a.tsv", examples, folds=[2, None])
    assert (tmp_path / "a.tsv").read_text() == (
        "sequence\tlabel\tid\tgroup\tsplit\tfold\tcontext\n"
        "ACGT\tpromoter\ta\tg1\ttrain\t2\t\nTTTT\tpromoter\tc\t\t\t\tE. coli\n"
    )
    assert read_labeled_table(tmp_path / "a.tsv", DNA) == examples


def test_a_further_column_is_read_in_the_order_of_the_rows(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text('# by hand\nsequence,Gene,label\nACGT,"thr, A",x\n\nGGGG,,y\n')
    columns = {"gene": ["before"]}
    read_labeled_table(path, DNA, keep=columns)
    assert columns == {"gene": ["before", "thr, A", ""]}
    with pytest.raises(InputError, match="needs one column 'name', found sequence, gene, label"):
        read_labeled_table(path, DNA, keep={"name": []})


@pytest.mark.parametrize("delimiter", ["\t", ","])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_all_columns_in_any_order(tmp_path, delimiter, end):
    rows = ["id label SEQUENCE group split extra", "x promoter acgu g1 train 1", "y other ACGN g2 test 2"]
    path = tmp_path / "t.txt"
    path.write_bytes(end.join(row.replace(" ", delimiter) for row in rows).encode())
    assert read_labeled_table(path, DNA) == [
        LabeledSequence("ACGT", "promoter", "x", "g1", "train"),
        LabeledSequence("ACGN", "other", "y", "g2", "test"),
    ]


def test_columns_of_other_names(tmp_path):
    path, unread = tmp_path / "a.csv", []
    path.write_text("Seq,sequence,class,more\nACGT,1,promoter,x\n")
    columns = {"sequence": "seq", "label": "class", "group": "class"}
    [example] = read_labeled_table(
        path, DNA, on_unread=lambda *about: unread.append(about[1]), columns=columns
    )
    assert example == LabeledSequence("ACGT", "promoter", "row1", "promoter")
    assert unread == [["more"]]
    [label] = read_labels(path, DNA, columns=columns | {"id": "more"})
    assert label == LabeledSequence("ACGT", "promoter", "x", "promoter")
    with pytest.raises(InputError, match="line 1: needs one column 'clas', found seq, sequence, class, more"):
        read_labeled_table(path, DNA, columns={"sequence": "seq", "label": "clas"})


def test_two_columns_are_enough_and_rows_get_numbers(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(
        '\ufeff# a comment\n\nsequence,label\nMKV*,"a, b"\n# another\nMKW, c \n', encoding="utf-8"
    )
    assert read_labeled_table(path, PROTEIN) == [
        LabeledSequence("MKV", "a, b", "row1"),
        LabeledSequence("MKW", "c", "row2"),
    ]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "t.csv: contains no table"),
        (b"sequence,label\n", "t.csv: contains a header but no examples"),
        (b"sequence,class\nA,x\n", "t.csv: line 1: needs one column 'label', found sequence, class"),
        (b"sequence,label,Group,group\nA,x,1,\n", "t.csv: line 1: names the column 'group' twice"),
        (b"# STOCKHOLM 1.0\nq ACGU\n//\n", "t.csv: is a Stockholm alignment, not a table; give a table"),
        (b">a\nACGU\n", "t.csv: is FASTA, not a table; give a table, a FASTA file for each class"),
        (b"file,label\nx.sto,x\n", "found file, label; a table of alignments needs a model that reads them"),
        (b"sequence,label\nA,x\nA\n", "t.csv: line 3: has 1 cell, the header has 2; write as many cells"),
        (b"sequence,label\nA,\n", "t.csv: line 2: has no label; give one, or leave the row out"),
        (b"# c\nsequence,label\n,x\n", "t.csv: line 3: has no sequence"),
        (
            b"sequence,label\nNA,x\n",
            "t.csv: line 2: the sequence is 'NA', which is the text of a missing value",
        ),
        (b"sequence,label\nACGTACGJ,x\n", "t.csv: line 2: unknown letter 'J' at position 8"),
        (b"sequence,label\nA,x\nC,#x\n", "line 3: has the label '#x', which begins with #"),
        (b"sequence\tlabel\nA\t\x1b[31mx\n", r"line 2: has the label '\x1b[31mx', which holds"),
        (b"sequence,label,split\nA,x,dev\n", "line 2: has the split 'dev'; use train, validation, test"),
    ],
)
def test_a_bad_table_names_the_place(tmp_path, content, message):
    path = tmp_path / "t.csv"
    path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        read_labeled_table(path, DNA)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_one_fasta_per_class_keeps_order_and_repeated_ids(tmp_path):
    (tmp_path / "p.fa").write_text(">x\nACG\n>x\nTT\n")
    (tmp_path / "n.fa").write_text(">x\nGG\n")
    examples = read_labeled_fastas({"promoter": tmp_path / "p.fa", "other": tmp_path / "n.fa"}, DNA)
    assert [(e.sequence, e.label, e.id) for e in examples] == [
        ("ACG", "promoter", "x"),
        ("TT", "promoter", "x"),
        ("GG", "other", "x"),
    ]


def test_letters_are_passed_on_as_they_are_in_the_file(tmp_path):
    table = tmp_path / "t.csv"
    table.write_text("label,sequence\na,acGU\nb, TTgg \n")
    seen = []
    examples = read_labeled_table(table, DNA, seen.append)
    assert [e.sequence for e in examples] == ["ACGT", "TTGG"]
    assert seen == ["acGU", "TTgg"]
    fasta = tmp_path / "a.fa"
    fasta.write_text(">x\nac\nGT\n>none\n>y\nTTgg\n")
    seen, skipped = [], []
    examples = read_labeled_fastas({"a": fasta}, DNA, seen.append, skipped.append)
    assert [e.sequence for e in examples] == ["ACGT", "TTGG"]
    assert seen == ["acGT", "TTgg"]
    assert [record.id for record in skipped] == ["none"]


REMEDY = "none"


def ids(path) -> list[list[str]]:
    """As both readers find them."""
    rows = [row["id"] for _, row in read_rows(path, ("id",), REMEDY)]
    return [rows, read_prediction_table(path).columns["id"]]


@pytest.mark.parametrize("above", ["", "# a comment\n", "#a,b\n\n# c\n"])
def test_comments_above_the_header_and_between_rows(tmp_path, above):
    path = tmp_path / "t.csv"
    path.write_text(f"{above}id,p\nx,1\n# a comment\n\n#\ny,0\n")
    assert ids(path) == [["x", "y"]] * 2


@given(st.lists(st.text('#"a,\x1c\x85\xa0\u2028', min_size=1), min_size=1))
def test_predictions_are_read_back_whatever_their_ids(tmp_path_factory, names):
    path = tmp_path_factory.mktemp("t") / "t.tsv"
    write_predictions(path, (Prediction(name, 4, "x", (0.5, 0.5)) for name in names), ("x", "y"), ["a note"])
    assert ids(path) == [names] * 2
    assert read_prediction_table(path).comments == ("a note",)


def test_what_may_be_either_is_refused(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("# by somebody\nid,p\nx,1\n#y,0\n")
    for read in (read_prediction_table, lambda path: list(read_rows(path, ("id",), REMEDY))):
        with pytest.raises(InputError, match="line 4: begins with '#' and has the cells of a row"):
            read(path)


def test_a_table_without_an_end_is_refused_at_once():
    with pytest.raises(InputError, match="/dev/zero: NUL byte at byte 1, so binary"):
        list(read_rows("/dev/zero", ["sequence"], ""))


def test_semicolons_are_named(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("sequence;label\nACGT;x\n")
    with pytest.raises(InputError, match=r"t\.csv: line 1: cells are separated by ';'; use tabs or commas"):
        list(read_rows(path, ("sequence",), "give one"))
    path.write_text("sequence,a;b\nACGT,x\n")
    assert [row for _, row in read_rows(path, ("sequence",), "")] == [{"sequence": "ACGT", "a;b": "x"}]


CLASSES = ("background", "promoter")


@pytest.fixture(scope="module")
def evaluation():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 40)
    p, q = (np.clip(0.4 * truth + 0.6 * rng.random(40), 0, 1) for _ in range(2))
    floor = answers_from_probabilities(
        "floor", "of a test", np.stack((1 - q, q), axis=1), CLASSES, "promoter", 0.5
    )
    return evaluate_scores(
        [CLASSES[k] for k in truth],
        p,
        CLASSES,
        "promoter",
        beside=[floor],
        subsets={"context:one\ttab": np.array([0])},
        draws=30,
        split="test",
    )


def read(path):
    lines = path.read_text().splitlines()
    head = [line for line in lines if line.startswith("#")]
    columns, *rows = [line.split("\t") for line in lines if not line.startswith("#")]
    return head, columns, [dict(zip(columns, row, strict=True)) for row in rows]


def test_a_row_for_each_figure(evaluation, tmp_path):
    write_figures(tmp_path / "m.tsv", evaluation, ["seqray 0"])
    head, columns, rows = read(tmp_path / "m.tsv")
    assert tuple(columns) == COLUMNS
    assert len(rows) == len(evaluation.figures)
    for row, figure in zip(rows, evaluation.figures, strict=True):
        assert row["value"] == ("." if math.isnan(figure.value) else format_number(figure.value))
        assert (row["split"], row["source"], row["metric"]) == ("test", figure.source, figure.metric)
        assert row["n"] == str(figure.n)
    assert rows[-1]["subset"] == "context:one tab"
    assert head[0] == "# seqray 0"
    assert "# source floor: of a test; calls from 0.5 on" in head
    model_only, floor_only, p = evaluation.mcnemar["floor"]
    assert (
        f"# McNemar, model against floor: {model_only} right by the model alone, {floor_only} by the floor "
        f"alone, exact p {format_number(p)}, records taken as independent" in head
    )
    assert any("percentiles of 30 bootstrap draws, seed 0; records drawn one by one" in line for line in head)


def test_json_holds_the_figures_of_the_table(evaluation, tmp_path):
    write_figures(tmp_path / "m.tsv", evaluation, [])
    write_json(tmp_path / "m.json", evaluation_mapping(evaluation, ["line"], {"name": "m"}))
    rows, found = read(tmp_path / "m.tsv")[2], json.loads((tmp_path / "m.json").read_text())
    assert len(found["figures"]) == len(rows)
    for row, figure in zip(rows, found["figures"], strict=True):
        for column in ("value", "low", "high", "p"):
            written = None if row[column] == "." else float(row[column])
            assert figure[column] == written
        assert (row["class"], row["metric"], int(row["n"])) == (
            figure["class"],
            figure["metric"],
            figure["n"],
        )
    assert found["model"] == {"name": "m"}
    assert found["confusion"]["model"] == evaluation.confusion().tolist()
    assert found["sources"][1] == {
        "source": "floor",
        "what": "of a test",
        "threshold": 0.5,
        "probabilities": True,
    }
    assert found["provenance"] == ["line"]


def test_multiqc_gets_a_table_of_one_sample(evaluation, tmp_path):
    """The keys are those of MultiQC's custom content; each column of the data has a header."""
    found = multiqc_mapping(evaluation, "sample 1", "tiny")
    assert {"id", "section_name", "description", "plot_type", "pconfig", "headers", "data"} == set(found)
    assert found["plot_type"] == "table"
    assert found["pconfig"]["id"] != found["id"]
    [(sample, row)] = found["data"].items()
    assert sample == "sample 1"
    assert set(row) <= set(found["headers"])
    assert row["mcc"] == float(format_number(evaluation.figure("mcc").value))
    assert row["floor_auroc"] == float(format_number(evaluation.figure("auroc", "floor").value))
    assert (row["n"], row["model"]) == (40, "tiny")
    assert all("title" in column for column in found["headers"].values())
    write_json(tmp_path / "a_mqc.json", found)
    assert json.loads((tmp_path / "a_mqc.json").read_text()) == found


PREDICTIONS = [
    Prediction("a", 81, "promoter", (0.9876543219, 0.0123456781)),
    Prediction("b", 80, "background", (1.5e-9, 1.0), ("ambiguous=3", "short")),
]
TWO_CLASSES = ("promoter", "not a promoter")
TSV = (
    "# seqray x\n"
    "id\tlength\tlabel\tp_promoter\tp_not_a_promoter\tflags\n"
    "a\t81\tpromoter\t0.987654\t0.0123457\t.\n"
    "b\t80\tbackground\t1.5e-09\t1\tambiguous=3,short\n"
)


def test_tsv_on_file_and_standard_output(tmp_path, capfdbinary):
    assert write_predictions(tmp_path / "p.tsv", iter(PREDICTIONS), TWO_CLASSES, ["seqray\nx"]) == 2
    assert (tmp_path / "p.tsv").read_text() == TSV
    assert write_predictions("-", PREDICTIONS, TWO_CLASSES, ["seqray x"]) == 2
    assert capfdbinary.readouterr().out.decode() == TSV


def test_parquet_says_the_same_as_the_tsv(tmp_path):
    for name in ("a.parquet", "b.parquet"):
        count = write_predictions(tmp_path / name, iter(PREDICTIONS), TWO_CLASSES, ["seqray x", "model: y"])
        assert count == 2
    table = pq.read_table(tmp_path / "a.parquet")
    assert table.schema.metadata[b"seqray"] == b"seqray x\nmodel: y"
    header, *rows = [line.split("\t") for line in TSV.splitlines() if not line.startswith("#")]
    assert table.column_names == header
    for row, cells in zip(table.to_pylist(), rows, strict=True):
        kinds = (str, int, str, float, float, str)
        assert list(row.values()) == [kind(cell) for kind, cell in zip(kinds, cells, strict=True)]
    assert (tmp_path / "a.parquet").read_bytes() == (tmp_path / "b.parquet").read_bytes()


def test_parquet_is_written_in_row_groups(tmp_path, monkeypatch):
    monkeypatch.setattr("seqray.io.predictions.PARQUET_ROWS", 2)
    assert write_predictions(tmp_path / "none.parquet", [], TWO_CLASSES, []) == 0
    assert pq.read_table(tmp_path / "none.parquet").num_rows == 0
    write_predictions(tmp_path / "p.parquet", [PREDICTIONS[0]] * 5, TWO_CLASSES, [])
    assert [pq.ParquetFile(tmp_path / "p.parquet").metadata.row_group(i).num_rows for i in range(3)] == [
        2,
        2,
        1,
    ]


LINES = ["seqray 0", "classes: my promoter (positive), background"]
TWO = [Prediction("a", 4, "my promoter", (0.75, 0.25)), Prediction("b", 4, "background", (0.1, 0.9))]


@pytest.fixture(params=["p.tsv", "p.tsv.gz", "p.parquet"])
def written(request, tmp_path):
    path = tmp_path / request.param
    write_predictions(path, TWO, ("my promoter", "background"), LINES)
    return path


def write(folder, text, name="t.tsv"):
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_what_predict_writes_is_read(written):
    table = read_prediction_table(written)
    assert table.positive() == "my promoter"
    assert table.columns["id"] == ["a", "b"]
    assert numeric_column(table, probability_column("my promoter"), [1, 0]).tolist() == [0.1, 0.75]
    assert len(table.sha256) == 64


def test_a_table_of_another_tool_and_a_comma(tmp_path):
    table = read_prediction_table(write(tmp_path, "Name,Score\r\nx,-3.5\r\n\r\n# note\ny,2e1\r\n"))
    assert table.columns == {"Name": ["x", "y"], "Score": ["-3.5", "2e1"]}
    assert table.positive() is None
    assert rows_by_id(table, "Name", ["y"], "labels.tsv") == [1]
    assert numeric_column(table, "Score", [1, 0]).tolist() == [20, -3.5]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "contains no table"),
        ("id\tp\n", "contains no predictions"),
        ("id\tp\na\n", "line 2: has 1 cell, the header has 2"),
        ("id\tid\na\tb\n", "names a column twice"),
        (b"id\tp\n\xff\t1\n", "is not text in UTF-8"),
        ('id\tp\n"a\tb\n', "is not a row of a table"),
    ],
)
def test_a_broken_table_is_refused(tmp_path, text, message):
    with pytest.raises(InputError, match=message):
        read_prediction_table(write(tmp_path, text))


def test_a_false_parquet_and_an_empty_cell(tmp_path):
    with pytest.raises(InputError, match="is not Parquet"):
        read_prediction_table(write(tmp_path, "id\n", "x.parquet"))
    pq.write_table(pa.table({"id": ["a", None]}), tmp_path / "y.parquet")
    table = read_prediction_table(tmp_path / "y.parquet")
    with pytest.raises(InputError, match="contains a row without an id"):
        rows_by_id(table, "id", ["a"], "labels.tsv")


def test_ids_that_do_not_join(tmp_path):
    table = read_prediction_table(write(tmp_path, "id\tp\na\t1\nb\t2\nextra\tx\n"))
    assert rows_by_id(table, "id", ["b", "a"], "l.tsv") == [1, 0]
    with pytest.raises(InputError) as missing:
        rows_by_id(table, "id", ["b", "v", "w", "x", "y"], "l.tsv")
    assert str(missing.value).endswith(
        "t.tsv: has no prediction for 'v', 'w', 'x' and 1 more; "
        "predict all records of l.tsv, or remove these from it"
    )
    with pytest.raises(InputError, match="has no column 'q', found id, p"):
        numeric_column(table, "q", [0])
    twice = read_prediction_table(write(tmp_path, "id\tp\na\t1\na\t1\n"))
    with pytest.raises(InputError, match="contains the id 'a' twice"):
        rows_by_id(twice, "id", ["a"], "l.tsv")


@pytest.mark.parametrize("text", ["inf", "0_9", "\u0661"])
def test_scores_that_are_no_finite_numbers(tmp_path, text):
    """Python reads the last two: an underscore between digits, and a digit of another script."""
    table = read_prediction_table(write(tmp_path, f"id\tp\na\t{text}\n"))
    with pytest.raises(InputError, match=f"'{text}', which is not a finite number"):
        numeric_column(table, "p", [0])


def test_labels_with_and_without_a_header(tmp_path):
    bare = read_labels(write(tmp_path, "a\tpromoter\nb\tbackground\n"), DNA)
    assert [(e.id, e.label, e.sequence, e.split) for e in bare] == [
        ("a", "promoter", "", None),
        ("b", "background", "", None),
    ]
    full = "Context,ID,Label,Sequence,Split,Group\nyeast,a,1,acgu,test,g1\n,b,0,,,\n"
    found = read_labels(write(tmp_path, full, "full.csv"), DNA)
    assert (found[0].sequence, found[0].context, found[0].group, found[0].split) == (
        "ACGT",
        "yeast",
        "g1",
        "test",
    )
    assert (found[1].sequence, found[1].context, found[1].group) == ("", None, None)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("id\tlabel\n", "contains a header but no labels"),
        ("id\tclass\tx\na\tb\tc\n", "needs one column 'label', found id, class, x"),
        ("id\tlabel\na\tx\na\ty\n", "contains the id 'a' twice"),
        ("id\tlabel\na\t\n", "record 'a': has no label"),
        ("id\tlabel\tsplit\na\tx\tdev\n", "record 'a': has the split 'dev'; use train, "),
        ("id\tlabel\tsequence\na\tx\tAC!T\n", "record 'a'"),
    ],
)
def test_labels_that_cannot_be_used(tmp_path, text, message):
    with pytest.raises(InputError, match=message):
        read_labels(write(tmp_path, text), DNA)
