"""Labeled alignments from a table of files, and from one file with a table of labels."""

import pytest

from seqray.core.alphabet import ALPHABETS
from seqray.core.errors import InputError
from seqray.io.alignments import read_labeled_alignments, read_labeled_stockholm

RNA = ALPHABETS["rna"]
STOCKHOLM = """\
# STOCKHOLM 1.0
#=GF AC A1
x ACGU-
y ACGUU
//
# STOCKHOLM 1.0
#=GF AC A2
x GGGG
//
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "many.sto").write_text(STOCKHOLM)
    (tmp_path / "one.fa").write_text(">q\nAC-GU\n>r\nACCGU\n")
    return tmp_path


def test_a_table_names_files_relative_to_itself(folder):
    (folder / "t.tsv").write_text(
        "file\tlabel\tid\tgroup\tsplit\none.fa\ttRNA\tmine\tg1\ttrain\nmany.sto\trRNA\tA2\t\ttest\n"
    )
    first, second = read_labeled_alignments(folder / "t.tsv", RNA)
    assert (first.id, first.label, first.group, first.split) == ("mine", "tRNA", "g1", "train")
    assert first.sequence == "ACGU"  # the query without its gaps
    assert (second.id, second.label, second.group, second.split) == ("A2", "rRNA", None, "test")


def test_one_file_is_labeled_by_the_ids_of_a_table(folder):
    (folder / "labels.csv").write_text("id,label,group\nA1,tRNA,c\n")
    [examples], unlabeled = read_labeled_stockholm([folder / "many.sto"], folder / "labels.csv", RNA)
    assert [(e.id, e.label, e.group, e.rows) for e in examples] == [("A1", "tRNA", "c", 2)]
    assert unlabeled == 1


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("file\tlabel\nmany.sto\tx\n", r"line 2: many.sto contains 2 alignments"),
        ("file\tlabel\tid\nmany.sto\tx\tA9\n", "none with the id 'A9'"),
        ("file\tlabel\none.fa\t\n", "line 2: has no label"),
        ("file\tlabel\n\tx\n", "line 2: names no file"),
        ("file\tlabel\tsplit\none.fa\tx\tdev\n", "has the split 'dev'"),
        ("file\tlabel\n", "contains a header but no alignments"),
        ("path\tlabel\n", "needs one column 'file'"),
        ("file\tlabel\nnone.fa\tx\n", "none.fa"),
    ],
)
def test_a_table_that_cannot_be_read_says_where(folder, table, message):
    (folder / "t.tsv").write_text(table)
    with pytest.raises(InputError) as caught:
        read_labeled_alignments(folder / "t.tsv", RNA)
    assert message in str(caught.value)


def test_one_table_labels_the_alignments_of_several_files(folder):
    (folder / "more.sto").write_text(STOCKHOLM.replace("AC A1", "AC Z9"))
    files = [folder / "many.sto", folder / "more.sto"]
    (folder / "both.csv").write_text("id,label\nA1,x\nZ9,y\n")
    examples, unlabeled = read_labeled_stockholm(files, folder / "both.csv", RNA)
    assert [[(e.id, e.label) for e in part] for part in examples] == [[("A1", "x")], [("Z9", "y")]]
    assert unlabeled == 2
    (folder / "both.csv").write_text("id,label\nA2,x\n")
    with pytest.raises(InputError, match=r"contains 'A2', and so does .*many\.sto"):
        read_labeled_stockholm(files, folder / "both.csv", RNA)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ("id,label\nA1,x\nA1,y\n", "line 3: names 'A1' a second time"),
        ("id,label\nA1,x\nA7,y\n", "line 3: names 'A7', which"),
    ],
)
def test_labels_that_do_not_fit_the_file_say_where(folder, labels, message):
    (folder / "labels.csv").write_text(labels)
    with pytest.raises(InputError) as caught:
        read_labeled_stockholm([folder / "many.sto"], folder / "labels.csv", RNA)
    assert message in str(caught.value)
