"""Records that begin with '#', and comments, in tables: none is taken for the other."""

import pytest
from hypothesis import given, strategies as st

from seqray.core.alphabet import DNA
from seqray.core.errors import InputError
from seqray.core.results import Prediction
from seqray.io.predictions import read_labels, read_prediction_table, write_predictions
from seqray.io.tables import read_rows

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


def test_labels_without_a_header(tmp_path):
    path = tmp_path / "t.tsv"
    path.write_text("# above\nx\tpromoter\n# between\ny\tother\n")
    assert [one.id for one in read_labels(path, DNA)] == ["x", "y"]
    path.write_text("x\tpromoter\n#y\tother\n")
    with pytest.raises(InputError, match="line 2: begins with '#'"):
        read_labels(path, DNA)


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
