"""Tables of examples in, tables of predictions out: `seqray.io.tables.examples`."""

from __future__ import annotations

import gzip

import pyarrow.parquet as pq
import pytest

from seqray import __version__
from seqray.core.alphabet import DNA, PROTEIN
from seqray.core.errors import InputError
from seqray.core.records import LabelledSequence
from seqray.core.results.prediction import Prediction, SkippedRecord
from seqray.io.tables.examples import (
    describe_alphabet,
    open_skipped,
    provenance_lines,
    read_labelled_fastas,
    read_labelled_table,
    table_format,
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


# --- labelled sequences ---------------------------------------------------------------------------


@pytest.mark.parametrize("delimiter", ["\t", ","])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_all_columns_in_any_order(tmp_path, delimiter, end):
    rows = ["id label SEQUENCE group split extra", "x promoter acgu g1 train 1", "y other ACGN g2 test 2"]
    path = tmp_path / "t.txt"
    path.write_bytes(end.join(row.replace(" ", delimiter) for row in rows).encode())
    assert read_labelled_table(path, DNA) == [
        LabelledSequence("ACGT", "promoter", "x", "g1", "train"),
        LabelledSequence("ACGN", "other", "y", "g2", "test"),
    ]


def test_two_columns_are_enough_and_rows_get_numbers(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(
        '\ufeff# a comment\n\nsequence,label\nMKV*,"a, b"\n# another\nMKW, c \n', encoding="utf-8"
    )
    assert read_labelled_table(path, PROTEIN) == [
        LabelledSequence("MKV", "a, b", "row1"),
        LabelledSequence("MKW", "c", "row2"),
    ]


def test_empty_cells_of_optional_columns_are_none(tmp_path):
    path = tmp_path / "t.csv.gz"
    path.write_bytes(gzip.compress(b"sequence,label,id,group,split\nA,x,,,\n"))
    assert read_labelled_table(path, DNA) == [LabelledSequence("A", "x", "row1", None, None)]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "t.csv: holds no table"),
        (b"# only\n\n", "t.csv: holds no table"),
        (b"sequence,label\n", "t.csv: holds a header but no examples"),
        (b"sequence,class\nA,x\n", "t.csv: line 1: needs one column 'label', found sequence, class"),
        (b"sequence,label,Group,group\nA,x,1,\n", "t.csv: line 1: names the column 'group' twice"),
        (b"sequence,label,label\nA,x,x\n", "line 1: needs one column 'label'"),
        (b"sequence,label\nA,x\nA\n", "t.csv: line 3: has 1 cells, the header has 2"),
        (b"sequence,label\nA,\n", "t.csv: line 2: has no label"),
        (b"# c\nsequence,label\n,x\n", "t.csv: line 3: has no sequence"),
        (b"sequence,label\nACGTACGJ,x\n", "t.csv: line 2: unknown letter 'J' at position 8"),
        (b"sequence,label,split\nA,x,dev\n", "line 2: has the split 'dev'; use train, validation, test"),
        (b"sequence,label\nA,\0\n", "t.csv: line 2: holds NUL bytes"),
        (b"sequence,label\nA,\xff\xfe\n", "t.csv: is not text in UTF-8"),
        (b'sequence,label\nA,"x\n', "t.csv: line 2: is not a row of a table"),
    ],
)
def test_a_bad_table_names_the_place(tmp_path, content, message):
    path = tmp_path / "t.csv"
    path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        read_labelled_table(path, DNA)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_one_fasta_per_class_keeps_order_and_repeated_ids(tmp_path):
    (tmp_path / "p.fa").write_text(">x\nACG\n>x\nTT\n")
    (tmp_path / "n.fa").write_text(">x\nGG\n")
    examples = read_labelled_fastas({"promoter": tmp_path / "p.fa", "other": tmp_path / "n.fa"}, DNA)
    assert [(e.sequence, e.label, e.id) for e in examples] == [
        ("ACG", "promoter", "x"),
        ("TT", "promoter", "x"),
        ("GG", "other", "x"),
    ]


# --- provenance -----------------------------------------------------------------------------------


def test_provenance_names_no_folder():
    command = [
        "seqray",
        "scan",
        "/data/my genome.fa",
        "--out=../x/y.tsv",
        "--class",
        "promoter=/a/b/p.fa",
        "-",
    ]
    lines = provenance_lines(command, "tiny", "abc", "dna", {"threshold": 0.5})
    assert lines == [
        f"seqray {__version__}",
        "command: seqray scan 'my genome.fa' --out=y.tsv --class promoter=p.fa -",
        "model: tiny sha256:abc",
        "alphabet: dna",
        "threshold: 0.5",
    ]


@pytest.mark.parametrize(
    ("word", "kept"), [("a/b/", "b"), ("/", ""), ("chr1:5-10", "chr1:5-10"), ("/x/a,/y/b", "a,b")]
)
def test_only_the_last_part_of_a_path_is_kept(word, kept):
    assert provenance_lines([word], "", "", "")[1].removeprefix("command:").strip().strip("'") == kept


def test_alphabet_policy_says_what_is_folded():
    assert describe_alphabet(DNA) == "dna ACGT, case folded, U read as T; RYSWKMBDHVN read as unknown"
    assert describe_alphabet(PROTEIN) == "protein ACDEFGHIKLMNPQRSTVWY, case folded; XBZJUO read as unknown"


# --- predictions ----------------------------------------------------------------------------------


def test_tsv_on_file_and_standard_output(tmp_path, capfdbinary):
    assert write_predictions(tmp_path / "p.tsv", iter(PREDICTIONS), CLASSES, ["seqray\nx"]) == 2
    assert (tmp_path / "p.tsv").read_text() == TSV
    assert write_predictions("-", PREDICTIONS, CLASSES, ["seqray x"]) == 2
    assert capfdbinary.readouterr().out.decode() == TSV


def test_compressed_tsv_is_the_same_text_and_the_same_bytes_each_time(tmp_path):
    for name in ("a.tsv.gz", "b.tsv.gz"):
        write_predictions(tmp_path / name, PREDICTIONS, CLASSES, ["seqray x"])
    assert gzip.decompress((tmp_path / "a.tsv.gz").read_bytes()).decode() == TSV
    assert (tmp_path / "a.tsv.gz").read_bytes() == (tmp_path / "b.tsv.gz").read_bytes()


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
    monkeypatch.setattr("seqray.io.tables.examples.PARQUET_ROWS", 2)
    write_predictions(tmp_path / "p.parquet", [PREDICTIONS[0]] * 5, CLASSES, [])
    assert [pq.ParquetFile(tmp_path / "p.parquet").metadata.row_group(i).num_rows for i in range(3)] == [
        2,
        2,
        1,
    ]


@pytest.mark.parametrize("name", ["p.tsv", "p.tsv.gz", "p.parquet"])
def test_no_predictions_give_a_valid_empty_table(tmp_path, name):
    path = tmp_path / name
    assert write_predictions(path, [], CLASSES, ["seqray x"]) == 0
    if name.endswith("parquet"):
        table = pq.read_table(path)
        assert (table.num_rows, table.column_names[-1]) == (0, "flags")
    else:
        data = path.read_bytes()
        text = (gzip.decompress(data) if name.endswith("gz") else data).decode()
        assert text == "".join(TSV.splitlines(keepends=True)[:2])


@pytest.mark.parametrize("name", ["p.tsv", "p.parquet"])
def test_a_failure_in_the_middle_leaves_no_file(tmp_path, name):
    def broken():
        yield PREDICTIONS[0]
        raise InputError("bad record")

    with pytest.raises(InputError, match="bad record"):
        write_predictions(tmp_path / name, broken(), CLASSES, [])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "kind"), [("-", "tsv"), ("A.TSV", "tsv"), ("x.tsv.gz", "tsv"), ("x.parquet", "parquet")]
)
def test_formats_by_name(name, kind):
    assert table_format(name) == kind


@pytest.mark.parametrize("name", ["x.csv", "x", "x.parquet.gz", "tsv"])
def test_another_name_is_refused_before_anything_is_written(tmp_path, name):
    with pytest.raises(InputError, match=r"use \.tsv, \.tsv\.gz, \.parquet or '-'"):
        write_predictions(tmp_path / name, [], CLASSES, [])
    assert list(tmp_path.iterdir()) == []


def test_a_skipped_id_that_could_be_a_comment_is_quoted(tmp_path):
    with open_skipped(tmp_path / "s.tsv") as write:
        write(SkippedRecord("#h", "empty sequence"))
    assert (tmp_path / "s.tsv").read_text() == 'id\treason\n"#h"\tempty sequence\n'


def test_skipped_records_are_written_as_they_come(tmp_path):
    with open_skipped(tmp_path / "s.tsv", ["seqray x"]) as write:
        write(SkippedRecord("d", "empty sequence"))
        write(SkippedRecord("e", "other"))
    assert (tmp_path / "s.tsv").read_text() == "# seqray x\nid\treason\nd\tempty sequence\ne\tother\n"


def test_letters_are_told_as_they_stand_in_the_file(tmp_path):
    table = tmp_path / "t.csv"
    table.write_text("label,sequence\na,acGU\nb, TTgg \n")
    seen = []
    examples = read_labelled_table(table, DNA, seen.append)
    assert [e.sequence for e in examples] == ["ACGT", "TTGG"]
    assert seen == ["acGU", "TTgg"]
    fasta = tmp_path / "a.fa"
    fasta.write_text(">x\nac\nGT\n>none\n>y\nTTgg\n")
    seen, skipped = [], []
    examples = read_labelled_fastas({"a": fasta}, DNA, seen.append, skipped.append)
    assert [e.sequence for e in examples] == ["ACGT", "TTGG"]
    assert seen == ["acGT", "TTgg"]
    assert [record.id for record in skipped] == ["none"]
