"""Kinds of models: each setting has one, and each refuses what only others take."""

from __future__ import annotations

from typing import get_args, get_type_hints

import numpy as np
import pytest

from seqray.cli.explain_records import EXPLAINERS
from seqray.core.alphabet import RNA
from seqray.core.errors import ConfigError
from seqray.core.model_config import ModelConfig
from seqray.core.records import Alignment, LabeledSequence
from seqray.kinds.kinds import KINDS
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
