"""Kinds of models, and the labeled data of each."""

from typing import get_args, get_type_hints

import numpy as np
import pytest

from seqray.cli.explain_records import EXPLAINERS
from seqray.core.alphabet import PROTEIN, RNA
from seqray.core.errors import ConfigError, InputError
from seqray.core.model_config import ModelConfig
from seqray.core.records import Alignment, LabeledSequence
from seqray.kinds.kinds import KINDS, LabeledFiles, read_sequence_examples
from seqray.modelfile.networks import NETWORKS
from seqray.training.data import ENCODERS

SEQUENCES, ALIGNMENTS = KINDS["sequence"], KINDS["alignment"]
SEQUENCE = LabeledSequence("ACGU", "a", "s")
ALIGNMENT = Alignment("x", ("q", "r"), np.array([[0, 5, 1, 2], [0, 1, 2, 3]]), RNA, label="b", group="g")


def test_every_kind_of_model_is_in_the_tables():
    kinds = set(get_args(get_type_hints(ModelConfig)["kind"]))
    assert set(KINDS) == kinds
    assert set(ENCODERS) == kinds - {"locator"}  # it learns from genomes, not from examples
    assert set(NETWORKS) == kinds
    assert set(EXPLAINERS) == kinds


@pytest.mark.parametrize("name", ENCODERS)
def test_examples_of_a_kind_are_those_that_training_encodes(name):
    assert KINDS[name].example is ENCODERS[name][0]


def test_a_model_of_sequences_learns_the_queries_of_alignments():
    assert SEQUENCES.adapt([SEQUENCE], 2) == [SEQUENCE]
    [query] = SEQUENCES.adapt([ALIGNMENT], 2)
    assert query == LabeledSequence("AC", "b", "x", "g")


def test_a_model_of_alignments_takes_no_sequences():
    assert ALIGNMENTS.adapt([ALIGNMENT], 2) == [ALIGNMENT]
    with pytest.raises(ConfigError, match="the data are sequences"):
        ALIGNMENTS.adapt([ALIGNMENT, SEQUENCE], 2)


def test_letters_are_read_in_the_alphabet_that_they_tell(tmp_path):
    table = tmp_path / "t.tsv"
    table.write_text("sequence\tlabel\nacgu\ta\nGGUT\tb\n")
    examples, alphabet = read_sequence_examples(LabeledFiles(tables=[(None, str(table))]))
    assert alphabet is RNA
    assert [example.sequence for example in examples] == ["ACGU", "GGUU"]
    table.write_text("sequence\tlabel\tsplit\nMKVLAAGW*\ta\ttest\n")
    [example], alphabet = read_sequence_examples(LabeledFiles(tables=[(None, str(table))]))
    assert alphabet is PROTEIN
    assert (example.sequence, example.split) == ("MKVLAAGW", "test")


def test_a_record_of_another_alphabet_is_named(tmp_path):
    table = tmp_path / "t.tsv"
    table.write_text("sequence\tlabel\tid\n" + f"{'ACGT' * 50}\ta\tx\n" + "MKVLAAGW\ta\ty\n")
    with pytest.raises(
        InputError, match=r"t\.tsv: record 'y': looks like protein, but DNA is expected"
    ) as error:
        read_sequence_examples(LabeledFiles(tables=[(None, str(table))]))
    assert error.value.remedy == "most letters of the data are DNA: give sequences of one kind"


def test_a_row_of_another_split_than_that_of_its_file_is_an_error(tmp_path):
    table = tmp_path / "t.tsv"
    table.write_text("sequence\tlabel\tid\tsplit\nACGT\ta\tx\ttest\nACGG\ta\ty\ttrain\nACGC\ta\tz\ttrain\n")
    with pytest.raises(InputError) as error:
        read_sequence_examples(LabeledFiles(tables=[("test", str(table))]))
    assert str(error.value) == (
        f"{table}: record 'y': is of the split 'train', but --test takes its whole file as 'test' (2 "
        "records are not of 'test'); give the file with --train, which keeps its splits, or leave out the "
        "column 'split'"
    )
    table.write_text("sequence\tlabel\tsplit\nACGT\ta\ttest\nACGG\ta\t\n")
    examples, _ = read_sequence_examples(LabeledFiles(tables=[("test", str(table))]))
    assert [example.split for example in examples] == ["test", "test"]
