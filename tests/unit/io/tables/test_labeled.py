"""Labeled sequences as tables and FASTA files: `seqray.io.sequences`."""

import gzip

import pytest
from hypothesis import given, strategies as st

from seqray.core.alphabet import DNA, PROTEIN
from seqray.core.errors import InputError
from seqray.core.records import LabeledSequence
from seqray.core.results import Prediction
from seqray.io.predictions import read_labels, read_prediction_table, write_predictions
from seqray.io.sequences import read_labeled_fastas, read_labeled_table, write_labeled_table
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
