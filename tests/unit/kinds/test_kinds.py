"""Kinds of models, their labeled data, and whatever holds sequences becomes the same records."""

import io
from typing import get_args, get_type_hints

import numpy as np
import pandas as pd
import pysam
import pytest
from Bio import Align, AlignIO, SeqIO
from Bio.Seq import MutableSeq, Seq
from Bio.SeqRecord import SeqRecord
from hypothesis import given, strategies as st

from seqray.cli.explain_records import EXPLAINERS
from seqray.core.alphabet import DNA, PROTEIN, RNA
from seqray.core.errors import ConfigError, InputError
from seqray.core.model_config import ModelConfig
from seqray.core.records import Alignment, LabeledSequence, SequenceRecord
from seqray.kinds.kinds import KINDS, LabeledFiles, read_sequence_examples
from seqray.kinds.objects import as_alignments, as_records
from seqray.modelfile.file import NETWORKS
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


LETTERS = {"one": "ACGTTGCA", "two": "GGGAACC"}


def pairs(sequences, **settings):
    return [(r.id, r.sequence) for r in as_records(sequences, DNA, **settings)]


@pytest.fixture
def fasta(tmp_path):
    path = tmp_path / "x.fa"
    path.write_text("".join(f">{name} text\n{letters.lower()}\n" for name, letters in LETTERS.items()))
    return path


def aligned(letters: str, *, reverse: bool) -> pysam.AlignedSegment:
    """A read of these letters; a reverse one is stored on the other strand, as in a BAM file."""
    read = pysam.AlignedSegment()
    read.query_name, read.is_reverse = "one", reverse
    read.query_sequence = str(Seq(letters).reverse_complement()) if reverse else letters
    return read


def written(path, head: str, delimiter: str, *, flip: bool = False):
    rows = [pair[:: -1 if flip else 1] for pair in LETTERS.items()]
    path.write_text(head + "".join(delimiter.join(row) + "\n" for row in rows))
    return path


@pytest.mark.parametrize(
    "make",
    [
        lambda path: LETTERS,
        lambda path: {name: Seq(letters) for name, letters in LETTERS.items()},
        lambda path: pd.Series(LETTERS),
        lambda path: [SeqRecord(Seq(letters), id=name) for name, letters in LETTERS.items()],
        lambda path: (SequenceRecord(name, letters) for name, letters in LETTERS.items()),
        lambda path: SeqIO.parse(path, "fasta"),
        lambda path: SeqIO.to_dict(SeqIO.parse(path, "fasta")),
        lambda path: pysam.FastxFile(str(path)),
        lambda path: pysam.FastaFile(str(path)),
        lambda path: path,
        str,
        lambda path: pd.DataFrame({"id": LETTERS.keys(), "Sequence": LETTERS.values()}),
        lambda path: written(path, "# made\nid,sequence\n", ","),
        lambda path: written(path, "sequence\tid\n", "\t", flip=True),
    ],
)
def test_every_way_to_hold_sequences_gives_the_same_records(make, fasta):
    assert pairs(make(fasta)) == list(LETTERS.items())


def test_a_table_names_its_columns_and_rows_have_numbers(tmp_path):
    path, names = tmp_path / "t.csv", {"sequence": "Seq"}
    path.write_text("seq,sequence,name\nACGT,1,a\nna,2,b\nGG,3,c\n")
    skipped = []
    records = as_records(path, DNA, columns=names | {"id": "name"}, on_skip=skipped.append)
    assert [(r.id, r.sequence) for r in records] == [("a", "ACGT"), ("c", "GG")]
    assert [(r.id, r.reason) for r in skipped] == [
        ("b", "the sequence is 'na', which is the text of a missing value")
    ]
    with pytest.raises(InputError, match="record 'row2'"):
        pairs(path, columns=names)
    path.write_text("seq\nACGT\nGG\n")  # one column has no delimiter
    assert pairs(path, columns=names) == [("row1", "ACGT"), ("row2", "GG")]
    with pytest.raises(ConfigError, match="'letters' in columns"):
        pairs(path, columns={"letters": "seq"})


def test_nameless_sequences_are_numbered():
    numbered = [("sequence_1", "ACG"), ("sequence_2", "TT")]
    assert pairs(["ACG", "TT"]) == pairs([Seq("ACG"), SeqRecord(Seq("uu"))]) == numbered
    assert pairs(pd.Series(["ACG", "TT"]).to_numpy()) == numbered


@pytest.mark.parametrize("one", ["acg", Seq("acg"), MutableSeq("acg"), SeqRecord(MutableSeq("acg"))])
def test_a_single_sequence_is_a_list_of_one(one):
    assert pairs(one) == pairs([one]) == [("sequence_1", "ACG")]


@pytest.mark.parametrize("reverse", [False, True])
def test_a_read_is_taken_as_it_was_sequenced(reverse):
    assert pairs(aligned("AACGT", reverse=reverse)) == [("one", "AACGT")]
    assert pairs([aligned("AACGT", reverse=reverse)]) == [("one", "AACGT")]


def test_a_circle_and_its_soft_masks_are_noted():
    record = SeqRecord(Seq("ACgtACg"), id="c", annotations={"topology": "circular"})
    [found] = as_records(record, DNA, soft_masks=True)
    assert (found.circular, found.soft_masked, found.sequence) == (True, ((2, 4), (6, 7)), "ACGTACG")
    [plain] = as_records(record, DNA)
    assert plain.soft_masked == ()


def test_a_record_of_seqray_notes_its_soft_masks_as_others_do():
    mixed, noted = SequenceRecord("m", "ACgtACg"), SequenceRecord("n", "ACGTACG", soft_masked=((1, 3),))
    found = [(r.sequence, r.soft_masked) for r in as_records([mixed, noted], DNA, soft_masks=True)]
    assert found == [("ACGTACG", ((2, 4), (6, 7))), ("ACGTACG", ((1, 3),))]


LETTERS_OF_TEXTS = st.text("acgtACGTnN", min_size=1).filter(lambda text: text.lower() not in ("na", "nan"))


@given(st.dictionaries(st.text(min_size=1), LETTERS_OF_TEXTS, max_size=5))
def test_case_carries_no_meaning_and_order_is_kept(sequences):
    assert pairs(sequences) == [(name, letters.upper()) for name, letters in sequences.items()]


@pytest.mark.parametrize(
    ("sequences", "words"),
    [
        ({"a": "ACGX!"}, "record 'a': unknown letter"),
        (["ACGT", 1.5], "record 'sequence_2': got float, not a sequence"),
        ([aligned("", reverse=False)], "read 'one': has no sequence"),
        ({"a": Seq(None, 5)}, "record 'a': has a length but no letters"),
        (b"ACGT", "got bytes"),
        (5, "got int"),
        (pd.DataFrame({"s": ["ACGT"]}), "needs one column .sequence., found s"),
        ("no-such-file.fa", "no such file"),
        (np.array("ACGT"), "got ndarray, not sequences"),
        (np.array([["ACGT"], ["ACGT"]]), "got ndarray, not sequences"),
        (io.StringIO(">one\nACGT\n"), "record 'sequence_1': looks like FASTA text or a path"),
        ([__file__], "record 'sequence_1': looks like FASTA text or a path"),
    ],
)
def test_what_holds_no_sequences_is_refused(sequences, words):
    with pytest.raises(InputError, match=words):
        pairs(sequences)


@pytest.mark.parametrize("missing", [None, float("nan"), np.float32("nan"), pd.NA, pd.NaT])
def test_a_missing_value_is_refused_with_its_row(missing):
    for column in (["ACGT", missing], pd.Series(["ACGT", missing], index=["sequence_1", "sequence_2"])):
        with pytest.raises(InputError, match=r"record 'sequence_2': is .* a missing value.*; drop missing"):
            pairs(column)


@pytest.mark.parametrize("missing", [None, float("nan"), pd.NA])
def test_a_missing_value_that_became_text_is_refused(missing):
    column = pd.Series(["ACGT", missing], index=["x", "y"], dtype=object).map(str)
    for text in (column, column.str.lower(), column.str.upper().to_dict()):
        with pytest.raises(InputError, match=r"record 'y': is '.*', which is the text of a missing value"):
            pairs(text)
    assert pairs([SequenceRecord("y", "NAN"), Seq("na")]) == [("y", "NAN"), ("sequence_2", "NA")]


# --- alignments -------------------------------------------------------------------------------------------

ROWS = ">q\nAC-GU\n>r\nACAGU\n"


def test_both_classes_of_biopython_are_the_same_alignment(tmp_path):
    path = tmp_path / "fam.fa"
    path.write_text(ROWS)
    [old] = as_alignments(AlignIO.read(path, "fasta"), RNA)
    for held in (Align.read(path, "fasta"), list(Align.parse(path, "fasta"))):
        [new] = as_alignments(held, RNA)
        assert (new.id, new.names, new.codes.tolist()) == ("alignment_1", old.names, old.codes.tolist())
    assert new.names == ("q", "r")


def test_an_alignment_of_biopython_is_named_by_its_key_or_else_its_accession():
    text = "# STOCKHOLM 1.0\n#=GF ID fam\n#=GF AC RF00001\nq ACGU\n//\n"
    held = Align.read(io.StringIO(text), "stockholm")
    names = [[one.id for one in as_alignments(given, RNA)] for given in (held, {"mine": held})]
    assert names == [["RF00001"], ["mine"]]


def test_rows_of_bare_letters_are_numbered():
    pair = next(iter(Align.PairwiseAligner().align("ACGU", "ACU")))
    [alignment] = as_alignments(pair, RNA)
    assert (alignment.names, alignment.text(0), alignment.text(1)) == (("row_1", "row_2"), "ACGU", "AC-U")


def test_paths_in_a_list_give_all_alignments_of_the_files(tmp_path, monkeypatch):
    (tmp_path / "fam").write_text(ROWS)
    blocks = "".join(f"# STOCKHOLM 1.0\n#=GF AC {name}\nq ACGU\n//\n" for name in ("A1", "A2"))
    (tmp_path / "two.sto").write_text(blocks)
    monkeypatch.chdir(tmp_path)
    assert [one.id for one in as_alignments(["fam", "two.sto"], RNA)] == ["fam", "A1", "A2"]
    assert [one.id for one in as_alignments([tmp_path / "two.sto"], RNA)] == ["A1", "A2"]
    with pytest.raises(InputError, match="alignment_1: got str, not an alignment; give a path"):
        list(as_alignments(["ACGU"], RNA))
