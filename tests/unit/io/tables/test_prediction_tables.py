"""Tables of predictions and labels: what is read, how they join, and what is refused."""

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

LINES = ["seqray 0", "classes: my promoter (positive), background"]
PREDICTIONS = [Prediction("a", 4, "my promoter", (0.75, 0.25)), Prediction("b", 4, "background", (0.1, 0.9))]


@pytest.fixture(params=["p.tsv", "p.tsv.gz", "p.parquet"])
def written(request, tmp_path):
    path = tmp_path / request.param
    write_predictions(path, PREDICTIONS, ("my promoter", "background"), LINES)
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
    with pytest.raises(InputError, match=r"has no column 'name', found id, p; .*--id-column"):
        rows_by_id(table, "name", ["a"], "l.tsv")
    with pytest.raises(InputError, match="column 'p' contains 'x', which is not a finite number"):
        numeric_column(table, "p", [2])
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
        ("id\tclass\tx\na\tb\tc\n", "needs a column 'label', found id, class, x"),
        ("id\tlabel\na\tx\na\ty\n", "contains the id 'a' twice"),
        ("id\tlabel\na\t\n", "record 'a': has no label"),
        (
            "id\tlabel\tsplit\na\tx\tdev\n",
            "record 'a': has the split 'dev'; use train, ",
        ),
        ("id\tlabel\tsequence\na\tx\tAC!T\n", "record 'a'"),
    ],
)
def test_labels_that_cannot_be_used(tmp_path, text, message):
    with pytest.raises(InputError, match=message):
        read_labels(write(tmp_path, text), DNA)


@pytest.mark.parametrize("place", range(4, 330, 5))
def test_damage_of_parquet_is_one_error(tmp_path, place):
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"id": ["\u00e4b", "c"], "p": [0.5, 1.0]}), path, compression="none")
    data = bytearray(path.read_bytes())
    data[place % len(data)] ^= 0xFF
    path.write_bytes(data)
    try:
        table = read_prediction_table(path)
    except InputError as error:
        assert str(path) in str(error)  # noqa: PT017
    else:
        assert len(table) > 0
