"""Labeled sequences whose alphabet nobody named."""

from __future__ import annotations

import pytest

from seqray.core.alphabet import PROTEIN, RNA
from seqray.core.errors import InputError
from seqray.kinds.kinds import LabeledFiles, read_inferred_examples


def test_letters_are_read_in_the_alphabet_that_they_tell(tmp_path):
    table = tmp_path / "t.tsv"
    table.write_text("sequence\tlabel\nacgu\ta\nGGUT\tb\n")
    examples, alphabet = read_inferred_examples(LabeledFiles(tables=[(None, str(table))]))
    assert alphabet is RNA
    assert [example.sequence for example in examples] == ["ACGU", "GGUU"]
    table.write_text("sequence\tlabel\tsplit\nMKVLAAGW*\ta\ttest\n")
    [example], alphabet = read_inferred_examples(LabeledFiles(tables=[(None, str(table))]))
    assert alphabet is PROTEIN
    assert (example.sequence, example.split) == ("MKVLAAGW", "test")


def test_a_record_of_another_alphabet_is_named(tmp_path):
    table = tmp_path / "t.tsv"
    table.write_text("sequence\tlabel\tid\n" + f"{'ACGT' * 50}\ta\tx\n" + "MKVLAAGW\ta\ty\n")
    with pytest.raises(
        InputError, match=r"t\.tsv: record 'y': looks like protein, but DNA is expected"
    ) as error:
        read_inferred_examples(LabeledFiles(tables=[(None, str(table))]))
    assert error.value.remedy == "most letters of the data are DNA: give sequences of one kind"


def test_a_row_of_another_split_than_that_of_its_file_is_an_error(tmp_path):
    table = tmp_path / "t.tsv"
    table.write_text("sequence\tlabel\tid\tsplit\nACGT\ta\tx\ttest\nACGG\ta\ty\ttrain\nACGC\ta\tz\ttrain\n")
    with pytest.raises(InputError) as error:
        read_inferred_examples(LabeledFiles(tables=[("test", str(table))]))
    assert str(error.value) == (
        f"{table}: record 'y': is of the split 'train', but --test takes its whole file as 'test' (2 "
        "records are not of 'test'); give the file with --train, which keeps its splits, or leave out the "
        "column 'split'"
    )
    table.write_text("sequence\tlabel\tsplit\nACGT\ta\ttest\nACGG\ta\t\n")
    examples, _ = read_inferred_examples(LabeledFiles(tables=[("test", str(table))]))
    assert [example.split for example in examples] == ["test", "test"]
