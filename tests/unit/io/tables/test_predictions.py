"""Tables of predictions and of skipped records: `seqray.io.predictions`."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from seqray.core.alphabet import DNA
from seqray.core.errors import InputError
from seqray.core.results import Prediction
from seqray.io.predictions import (
    numeric_column,
    probability_column,
    read_labels,
    read_prediction_table,
    rows_by_id,
    write_predictions,
)

PREDICTIONS = [
    Prediction("a", 81, "promoter", (0.9876543219, 0.0123456781)),
    Prediction("b", 80, "background", (1.5e-9, 1.0), ("ambiguous=3", "short")),
]
CLASSES = ("promoter", "not a promoter")
TSV = (
    "# seqray x\n"
    "id\tlength\tlabel\tp_promoter\tp_not_a_promoter\tflags\n"
    "a\t81\tpromoter\t0.987654\t0.0123457\t.\n"
    "b\t80\tbackground\t1.5e-09\t1\tambiguous=3,short\n"
)


def test_tsv_on_file_and_standard_output(tmp_path, capfdbinary):
    assert write_predictions(tmp_path / "p.tsv", iter(PREDICTIONS), CLASSES, ["seqray\nx"]) == 2
    assert (tmp_path / "p.tsv").read_text() == TSV
    assert write_predictions("-", PREDICTIONS, CLASSES, ["seqray x"]) == 2
    assert capfdbinary.readouterr().out.decode() == TSV


def test_parquet_says_the_same_as_the_tsv(tmp_path):
    for name in ("a.parquet", "b.parquet"):
        assert write_predictions(tmp_path / name, iter(PREDICTIONS), CLASSES, ["seqray x", "model: y"]) == 2
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
    assert write_predictions(tmp_path / "none.parquet", [], CLASSES, []) == 0
    assert pq.read_table(tmp_path / "none.parquet").num_rows == 0
    write_predictions(tmp_path / "p.parquet", [PREDICTIONS[0]] * 5, CLASSES, [])
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
