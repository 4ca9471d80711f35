"""Labelled tables: what is written is read back."""

from __future__ import annotations

import gzip

import pytest

from seqray.core.alphabet import DNA
from seqray.core.errors import InputError
from seqray.core.records import LabelledSequence
from seqray.io.tables.examples import read_labelled_table
from seqray.io.tables.labels import read_column, write_labelled_table

EXAMPLES = [
    LabelledSequence("ACGT", "promoter", "a", "g1", "train"),
    LabelledSequence("GGCC", "back,ground", 'b "quoted"'),
]


def test_a_table_by_hand(tmp_path):
    path = tmp_path / "a.tsv"
    assert write_labelled_table(path, iter(EXAMPLES[:1]), ["seqray x", "note: y"]) == 1
    assert path.read_text() == (
        "# seqray x\n# note: y\nsequence\tlabel\tid\tgroup\tsplit\nACGT\tpromoter\ta\tg1\ttrain\n"
    )


@pytest.mark.parametrize("name", ["a.tsv", "a.csv", "a.tsv.gz", "a.csv.gz"])
def test_every_format_is_read_back(tmp_path, name):
    path = tmp_path / name
    write_labelled_table(path, EXAMPLES, ["seqray x"])
    assert read_labelled_table(path, DNA) == EXAMPLES
    text = (gzip.decompress if name.endswith("gz") else bytes)(path.read_bytes()).decode()
    assert ("sequence,label" in text) == (".csv" in name)


def test_a_context_gets_a_column(tmp_path):
    examples = [*EXAMPLES, LabelledSequence("TTTT", "promoter", "c", context="E. coli")]
    write_labelled_table(tmp_path / "a.csv", examples)
    assert (tmp_path / "a.csv").read_text().splitlines()[0] == "sequence,label,id,group,split,context"
    assert read_labelled_table(tmp_path / "a.csv", DNA) == examples


def test_no_example_leaves_a_header(tmp_path):
    assert write_labelled_table(tmp_path / "a.tsv", []) == 0
    assert (tmp_path / "a.tsv").read_text() == "sequence\tlabel\tid\tgroup\tsplit\n"


def test_folds_get_a_column_before_the_context(tmp_path):
    examples = [EXAMPLES[0], LabelledSequence("TTTT", "promoter", "c", context="E. coli")]
    write_labelled_table(tmp_path / "a.tsv", examples, folds=[2, None])
    assert (tmp_path / "a.tsv").read_text() == (
        "sequence\tlabel\tid\tgroup\tsplit\tfold\tcontext\n"
        "ACGT\tpromoter\ta\tg1\ttrain\t2\t\nTTTT\tpromoter\tc\t\t\t\tE. coli\n"
    )
    assert read_labelled_table(tmp_path / "a.tsv", DNA) == examples


def test_a_further_column_is_read_in_the_order_of_the_rows(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text('# by hand\nsequence,Gene,label\nACGT,"thr, A",x\n\nGGGG,,y\n')
    assert read_column(path, "gene") == ["thr, A", ""]
    with pytest.raises(InputError, match="needs one column 'name', found sequence, gene, label"):
        read_column(path, "name")
    with pytest.raises(InputError, match="can't be read from standard input"):
        read_column("-", "gene")
