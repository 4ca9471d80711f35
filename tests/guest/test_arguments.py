"""Python arguments take the words of the command line, numbers of NumPy, and end in one clear line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import seqray

EXAMPLE = Path(__file__).parents[2] / "data" / "example"
RECORDS, REGIONS, STRETCH = EXAMPLE / "promoters.fa", EXAMPLE / "regions.fa", EXAMPLE / "stretch.gb"


@pytest.mark.parametrize("kind", [np.int8, np.int32, np.uint8, np.int64])
def test_numbers_of_numpy_are_those_of_python(kind):
    given = {"min_distance": kind(50), "null_mb": kind(0), "stride": kind(10)}
    calls = seqray.scan("ecoli-promoter", REGIONS, **given)
    pd.testing.assert_frame_equal(
        calls, seqray.scan("ecoli-promoter", REGIONS, min_distance=50, null_mb=0, stride=10)
    )


def test_settings_of_numpy_in_every_verb():
    records = list(seqray.read_fasta(RECORDS))[:2]
    plain = seqray.predict("ecoli-promoter", records, threshold=0.5, batch_size=4)
    given = seqray.predict("ecoli-promoter", records, threshold=np.float32(0.5), batch_size=np.int8(4))
    pd.testing.assert_frame_equal(plain, given)
    letters = seqray.explain("ecoli-promoter", records, shuffles=np.int8(2), seed=np.uint16(3))
    pd.testing.assert_frame_equal(letters, seqray.explain("ecoli-promoter", records, shuffles=2, seed=3))


def test_none_is_a_word_for_the_context_as_on_the_command_line():
    by_word = seqray.predict("bacteria-promoter-fast", RECORDS, context="none")
    pd.testing.assert_frame_equal(by_word, seqray.predict("bacteria-promoter-fast", RECORDS, context=None))


def test_genes_in_a_frame_are_refused_with_what_to_give():
    frame = pd.DataFrame({"start": [1], "end": [300]})
    with pytest.raises(seqray.SeqrayError, match="'genes' is a DataFrame; give a GenBank or GFF3 file"):
        seqray.scan("bacteria-genome", STRETCH, genes=frame)


def test_classes_that_are_numbers():
    by_number = seqray.evaluate_scores([0, 1, 1, 0], [0.1, 0.9, 0.8, 0.3], [0, 1], 1, draws=0)
    by_name = seqray.evaluate_scores(["0", "1", "1", "0"], [0.1, 0.9, 0.8, 0.3], ["0", "1"], "1", draws=0)
    assert [f.value for f in by_number.figures] == [f.value for f in by_name.figures]
