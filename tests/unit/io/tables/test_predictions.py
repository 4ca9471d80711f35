"""Tables of predictions and of skipped records: `seqray.io.predictions`."""

from __future__ import annotations

import gzip
import os

import pyarrow.parquet as pq
import pytest

from seqray.core.errors import InputError
from seqray.core.results import Prediction, SkippedRecord
from seqray.io.predictions import open_skipped, write_predictions

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
    write_predictions(tmp_path / "p.parquet", [PREDICTIONS[0]] * 5, CLASSES, [])
    assert [pq.ParquetFile(tmp_path / "p.parquet").metadata.row_group(i).num_rows for i in range(3)] == [
        2,
        2,
        1,
    ]


@pytest.mark.parametrize("name", ["p.tsv", "p.parquet"])
def test_a_file_name_in_another_encoding_is_noted_as_far_as_it_goes(tmp_path, name):
    source = os.fsdecode(b"Erg\xe4nzung.fa")
    write_predictions(tmp_path / name, PREDICTIONS, CLASSES, [f"command: {source}"])
    assert b"command: Erg?nzung.fa" in (tmp_path / name).read_bytes()


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


@pytest.mark.parametrize("name", ["x.csv", "x", "x.parquet.gz", "tsv"])
def test_another_name_is_refused_before_anything_is_written(tmp_path, name):
    with pytest.raises(InputError, match=r"use \.tsv, \.tsv\.gz, \.parquet or '-'"):
        write_predictions(tmp_path / name, [], CLASSES, [])
    assert list(tmp_path.iterdir()) == []


def test_skipped_records_are_written_as_they_come(tmp_path):
    with open_skipped(tmp_path / "s.tsv", ["seqray x"]) as write:
        write(SkippedRecord("d", "empty sequence"))
        write(SkippedRecord("e", "other"))
    assert (tmp_path / "s.tsv").read_text() == "# seqray x\nid\treason\nd\tempty sequence\ne\tother\n"
