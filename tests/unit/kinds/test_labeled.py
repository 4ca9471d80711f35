"""Labeled sequences whose alphabet nobody named."""

from __future__ import annotations

import pytest

from seqray.core import PROTEIN, RNA, InputError
from seqray.kinds import LabeledFiles, read_inferred_examples


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
    with pytest.raises(InputError, match=r"t\.tsv: record 'y': looks like protein, but DNA is expected"):
        read_inferred_examples(LabeledFiles(tables=[(None, str(table))]))
