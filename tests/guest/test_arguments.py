"""Python arguments take the words of the command line, numbers of NumPy, and end in one clear line."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import seqray

EXAMPLE = Path(__file__).parents[2] / "data" / "example"
RECORDS, REGIONS, STRETCH = EXAMPLE / "promoters.fa", EXAMPLE / "regions.fa", EXAMPLE / "stretch.gb"


@pytest.mark.parametrize("kind", [np.int8, np.int64])
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


SEQUENCES = ["ACGTTGCA" * 10 + letter for letter in "ACGTAC"]
TABLE = pd.DataFrame({"sequence": SEQUENCES, "label": [0, 1] * 3})


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: seqray.predict("ecoli-promoter", RECORDS, context=np.nan), "'context' must be a name"),
        (lambda: seqray.predict("ecoli-promoter", RECORDS, context=pd.NA), "'context' must be a name"),
        (lambda: seqray.explain("ecoli-promoter", RECORDS, settings={"steps": 3}), "'settings' must be"),
        (lambda: seqray.scan("ecoli-promoter", REGIONS, regions=[3]), "'regions' must be texts such as"),
        (lambda: seqray.split(TABLE, "DNA"), "unknown alphabet 'DNA'; give dna, rna, protein"),
        (lambda: seqray.split(TABLE, folds=3.0), "'folds' is 3.0; give a whole number"),
        (lambda: seqray.split(TABLE, shares=(0.5, 0.6)), "'shares' is 0.5,0,0.6, which sums to 1.1"),
        (lambda: seqray.split(TABLE, columns="label=label"), "'columns' must be as {'sequence': 'NAME'}"),
        (lambda: seqray.negatives(SEQUENCES, ratio="x"), "'ratio' is 'x'; give a number"),
        (lambda: seqray.evaluate_scores([0, 1], [0.1, 0.9], [0, 1], 2), "'2' is not one of the classes 0, 1"),
        (lambda: seqray.evaluate_scores([0, 1], [0.1, 0.9], [0, 1], 1, "x"), "'threshold' is 'x'"),
        (lambda: seqray.evaluate("ecoli-promoter", SEQUENCES, ["promoter"]), "labels: 1 for 6 records"),
        (
            lambda: seqray.evaluate("ecoli-promoter", SEQUENCES, ["promoter"] * 6, groups=range(7)),
            "groups: 7 for 6 records; give one each",
        ),
    ],
)
def test_an_argument_of_another_kind_is_refused_in_a_line(call, message):
    with pytest.raises(seqray.SeqrayError) as error:
        call()
    assert message in str(error.value)


def test_arguments_that_hold_names_take_one_several_or_those_of_numpy():
    regions = seqray.scan("ecoli-promoter", REGIONS, null_mb=0, regions="lac_region:1-900")
    parts = seqray.scan("ecoli-promoter", REGIONS, null_mb=0, regions=np.array(["lac_region:1-900"]))
    pd.testing.assert_frame_equal(regions, parts)
    by_name = seqray.split(TABLE, identity=0, word=0, group_by="label", shares=(1, 1))
    several = {"group_by": np.array(["label"]), "shares": (0.5, 0, 0.5), "word": np.int8(0)}
    pd.testing.assert_frame_equal(by_name, seqray.split(TABLE, identity=0, **several))
    assert by_name.groupby("label").split.nunique().tolist() == [1, 1]


def test_groups_of_a_series_are_taken_in_order_whatever_its_index():
    given = ([0, 1, 1, 0], [0.1, 0.9, 0.8, 0.3], [0, 1], 1)
    keys = pd.Series([1, 1, 2, 2], index=[3, 2, 1, 0])
    by_series = seqray.evaluate_scores(*given, groups=keys, draws=9)
    by_list = seqray.evaluate_scores(*given, groups=keys.tolist(), draws=9)
    assert repr(by_series.figures) == repr(by_list.figures)


def test_words_of_numpy_do_not_overflow_in_the_search_for_relatives():
    data = TABLE.assign(sequence=[seqray.negatives(SEQUENCES, seed=i).sequence.iloc[-1] for i in range(6)])
    given = seqray.split(data, identity=0, word=np.int8(20))
    pd.testing.assert_frame_equal(given, seqray.split(data, identity=0, word=20))


def test_classes_that_are_numbers():
    by_number = seqray.evaluate_scores([0, 1, 1, 0], [0.1, 0.9, 0.8, 0.3], [0, 1], 1, draws=0)
    by_name = seqray.evaluate_scores(["0", "1", "1", "0"], [0.1, 0.9, 0.8, 0.3], ["0", "1"], "1", draws=0)
    assert [f.value for f in by_number.figures] == [f.value for f in by_name.figures]
