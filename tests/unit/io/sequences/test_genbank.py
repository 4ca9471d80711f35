"""GenBank: written here by Biopython, read back; and every way to be wrong."""

import gzip
import io
import re
import warnings

import pytest
from Bio import SeqIO
from Bio.Seq import Seq
from Bio.SeqFeature import SeqFeature, SimpleLocation
from Bio.SeqRecord import SeqRecord

from seqray.core.alphabet import DNA, PROTEIN
from seqray.core.errors import InputError
from seqray.core.records import SequenceRecord
from seqray.core.results import SkippedRecord
from seqray.io.features import read_annotated, read_features
from seqray.io.genbank import read_genbank
from seqray.io.sequences import read_sequences
from tables import letters


def genbank(*entries: tuple[str, str, str], molecule: str = "DNA") -> bytes:
    """The text of a file with (id, sequence, topology) entries, each with a feature."""
    out = io.StringIO()
    for identifier, sequence, topology in entries:
        record = SeqRecord(Seq(sequence), id=identifier, name=identifier.split(".")[0], description="made up")
        record.annotations = {"molecule_type": molecule, "topology": topology}
        record.features = [SeqFeature(SimpleLocation(0, 3, strand=1), type="misc_feature")]
        SeqIO.write(record, out, "genbank")
    return out.getvalue().encode()


PLASMID = ("TEST1.2", letters(250, 1, "ACGTN"), "circular")
PIECE = ("TEST2.1", letters(61, 2, "ACGTN"), "linear")


def error_of(path, reader=read_genbank, alphabet=DNA, **keywords) -> str:
    with pytest.raises(InputError) as caught:
        list(reader(path, alphabet, **keywords))
    text = str(caught.value)
    assert "\n" not in text
    return text.replace(str(path), "x.gb")


@pytest.mark.parametrize("reader", [read_genbank, read_sequences])
@pytest.mark.parametrize("change", [bytes, gzip.compress, lambda text: text.replace(b"\n", b"\r\n")])
def test_records_are_read_with_their_topology(make, reader, change):
    path = make(change(genbank(PLASMID, PIECE)))
    assert list(reader(path, DNA)) == [
        SequenceRecord("TEST1.2", PLASMID[1], "made up", circular=True),
        SequenceRecord("TEST2.1", PIECE[1], "made up", circular=False),
    ]


def test_record_without_version_is_named_by_its_accession(make):
    text = b"\n".join(line for line in genbank(PIECE).split(b"\n") if not line.startswith(b"VERSION"))
    assert [record.id for record in read_genbank(make(text))] == ["TEST2"]


def test_protein_records(make):
    path = make(genbank(("PEP1.1", "MKVLAAGIVGLLLAQPSFE", "linear"), molecule="protein"))
    assert [record.sequence for record in read_genbank(path, PROTEIN)] == ["MKVLAAGIVGLLLAQPSFE"]
    assert error_of(path).startswith("x.gb: record 'PEP1.1': looks like protein, but DNA is expected")


def test_record_that_names_other_records_in_place_of_letters(make):
    text = genbank(PIECE).decode()
    contig = text[: text.index("ORIGIN")] + "CONTIG      join(U00096.3:1..61)\n//\n"
    path = make(contig.encode() + genbank(PLASMID))
    skipped: list[SkippedRecord] = []
    assert [record.id for record in read_genbank(path, on_skip=skipped.append)] == ["TEST1.2"]
    reason = "no sequence in the file, fetch it with its letters as 'GenBank (full)'"
    assert skipped == [SkippedRecord("TEST2.1", reason)]
    assert error_of(path).startswith("x.gb: record 'TEST2.1': the record can't be used (no sequence")


@pytest.mark.parametrize("share", [0.1, 0.3, 0.5, 0.7, 0.9, 0.995])
def test_cut_file_is_never_taken_for_a_shorter_one(make, share):
    text = genbank(PLASMID)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # nothing but the error may reach the user
        message = error_of(make(text[: int(share * len(text))]))
    assert re.match(r"x.gb: (record 'TEST1': )?the (GenBank record|LOCUS line) ", message)


def test_lost_letters_are_noticed_by_the_length_of_the_first_line(make):
    text = genbank(PLASMID)
    line = text.index(b"       61 ")
    cut = text[:line] + text[text.index(b"\n", line) + 1 :]
    assert error_of(make(cut)) == (
        "x.gb: record 'TEST1': the LOCUS line states 250 letters, and the record has 190; correct the LOCUS "
        "line, or fetch the record again if it is cut off"
    )
    more = text.replace(b" 250 bp", b" 249 bp")
    assert error_of(make(more)).endswith("249 letters, and the record has 250; correct the LOCUS line")


def test_record_whose_first_line_is_damaged_is_not_lost_in_silence(make):
    damaged = genbank(PIECE).replace(b"LOCUS       ", b"LOCUS ")
    message = error_of(make(genbank(PLASMID) + damaged))
    assert message.startswith("x.gb: 1 of 2 LOCUS lines can't be parsed; write the LOCUS line")


def test_a_record_without_a_first_line_is_not_lost_in_silence(make):
    text = genbank(PLASMID) + b"\n" + genbank(PIECE).replace(b"LOCUS", b"LOCSU")
    assert error_of(make(text)).startswith("x.gb: text after the end of GenBank record 1, where a line LOCUS")
    assert [one.id for one in read_genbank(make(b"GBBCT1.SEQ\n\n" + genbank(PLASMID) + b"\n\n"))] == [
        "TEST1.2"
    ]


@pytest.mark.parametrize("read", [read_features, lambda path: read_annotated(path, bool)])
@pytest.mark.parametrize("first", [b"LOCSU       ", b"LOCUS "])
def test_features_of_a_damaged_record_are_not_lost_in_silence(make, read, first):
    path = make(genbank(PLASMID) + genbank(PIECE).replace(b"LOCUS       ", first))
    with pytest.raises(InputError, match="LOCUS"):
        read(path)


def test_either_format_is_known_by_content(make):
    path = make(b">a x\nacGT\n", "named.gb")
    assert list(read_sequences(path, DNA, soft_masks=True)) == [SequenceRecord("a", "ACGT", "x", ((0, 2),))]
    assert error_of(make(b">a\n>b\nA\n"), read_sequences).startswith(
        "x.gb: record 'a': the record can't be used"
    )
    skipped: list[SkippedRecord] = []
    assert len(list(read_sequences(make(b">a\n>b\nA\n"), DNA, on_skip=skipped.append))) == len(skipped) == 1
    path = make(b">a\nA\n>a\nC\n")
    assert [r.id for r in read_sequences(path, DNA, duplicates="rename")] == ["a", "a_2"]


@pytest.mark.parametrize("name", ["GBTST1.SEQ", "nc1015.flat", "wgs.AAAA.1.gbff"])
def test_the_head_of_a_release_file_is_passed_over(make, name):
    head = f"{name}          Genetic Sequence Data Bank\n        October 15 2023\n\n  1 loci, 61 bases\n\n"
    files = head.encode() + genbank(PIECE) + head.encode() + genbank(PLASMID)
    assert [record.sequence for record in read_sequences(make(files), DNA)] == [PIECE[1], PLASMID[1]]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ((b"LOCUS       TEST2", b"LOCUS\tTEST2"), "1 of 1 LOCUS lines can't be parsed; write the LOCUS line"),
        ((b"ORIGIN\n", b"Origin\n"), "correct it or export it again"),
        ((b"//\n", b"//\nmore\n"), "text after the end of GenBank record 1, where a line LOCUS must follow"),
    ],
)
def test_a_record_that_another_program_would_not_write_is_refused_with_a_remedy(make, change, message):
    assert message in error_of(make(genbank(PIECE).replace(*change)), read_sequences)
