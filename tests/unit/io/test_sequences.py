"""FASTA and GenBank: what is read, and what is refused in one line."""

import gzip
import io
import random
import tracemalloc
import warnings
from pathlib import Path

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
from seqray.io.files import BLOCK
from seqray.io.genbank import parse_genbank, read_genbank
from seqray.io.records import UniqueIds, find_soft_masks, read_fasta
from seqray.io.sequences import read_sequences
from tables import letters

STRETCH = Path(__file__).parents[3] / "data/example/stretch.gb"


def pairs(path, alphabet=DNA, **keywords) -> list[tuple[str, str]]:
    return [(record.id, record.sequence) for record in read_fasta(path, alphabet, **keywords)]


def error_of(path, alphabet=DNA, **keywords) -> str:
    with pytest.raises(InputError) as caught:
        list(read_fasta(path, alphabet, **keywords))
    text = str(caught.value)
    assert "\n" not in text
    assert caught.value.exit_code == 2
    return text.replace(str(path), "x.fa")


def test_header_gives_id_and_description(make):
    [record] = read_fasta(make(b">  lacUV5\tE. coli  promoter \r\nac gt\r\n\r\nNN\r\n"))  # DNA by default
    assert (record.id, record.description, record.sequence) == ("lacUV5", "E. coli  promoter", "ACGTNN")
    assert (record.circular, record.soft_masked) == (False, ((0, 4),))


@pytest.mark.parametrize(
    ("header", "circular"),
    [
        ("p [organism=E. coli] [topology=circular]", True),
        ("tig1 len=4641652 class=contig suggestRepeat=no suggestCircular=yes", True),
        ("2 length=4361 depth=1.91x circular=true", True),
        ("p [topology=linear]", False),
        ("p circular plasmid", False),
        ("p not-circular=true", False),
        ("topology=circular", False),  # the name
    ],
)
def test_a_header_may_state_that_a_sequence_is_circular(make, header, circular):
    [record] = read_fasta(make(f">{header}\nACGT\n".encode()), DNA)
    assert record.circular == circular


def test_comments_blank_lines_and_byte_order_mark_before_the_first_header(make):
    assert pairs(make(b"\xef\xbb\xbf\n; old style\r\n# new style\n  \n>a\nACGT\n")) == [("a", "ACGT")]


def test_comments_may_be_longer_than_a_block(make):
    comments = b"".join(b"; line %d\n" % i for i in range(200_000))
    assert len(comments) > 2 * BLOCK
    assert pairs(make(comments + b">a\nACGT\n")) == [("a", "ACGT")]


def test_names_beyond_ascii_are_kept(make):
    [record] = read_fasta(make(">gène-β σ70 promoter\nACGT\n".encode()), DNA)
    assert (record.id, record.description) == ("gène-β", "σ70 promoter")
    [record] = read_fasta(make(b">a caf\xe9\nACGT\n"), DNA)  # Latin-1
    assert record.description == "caf�"
    assert "the id of record 2 is not UTF-8; save the file" in error_of(make(b">a\nA\n>caf\xe9\nACGT\n"))


@pytest.mark.parametrize("shift", range(-8, 4))
@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"], ids=["LF", "CRLF", "CR"])
def test_records_may_be_cut_anywhere_by_the_border_of_a_block(make, shift, end):
    header, letters = b">first" + end, b"ACGT" * (BLOCK // 4)
    letters = letters[: BLOCK + shift - len(header)]
    path = make(header + letters + end + b">second rest" + end + b"GATT" + end)
    assert pairs(path) == [("first", letters.decode()), ("second", "GATT")]


def test_memory_is_bounded_by_a_record_not_by_the_file(make):
    path = make(b"".join(b">r%d\n%s\n" % (i, b"ACGT" * 2500) for i in range(4000)))  # 40 MB
    tracemalloc.start()
    try:
        assert sum(len(record) for record in read_fasta(path, DNA)) == 40_000_000
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 8 * BLOCK


def test_a_chromosome_lies_in_memory_twice_while_it_is_read_and_once_after(make):
    size = 16 * BLOCK
    path = make(b">chr1\n" + (b"ACGTACGT" * 8 + b"\n") * (size // 64))
    tracemalloc.start()
    try:
        record = next(records := read_fasta(path, DNA))
        held, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(record) == size
    assert next(records, None) is None
    assert held < 1.4 * size  # the sequence and the open file's buffers
    assert peak < 2.4 * size


def test_soft_masks_are_lower_case_intervals(make):
    path = make(b">a\nACgtNN\nnnAC\n>b\nacgt\n>c\nACGT\n>d\nAcGt\n")
    masks = [record.soft_masked for record in read_fasta(path, DNA)]
    assert masks == [((2, 4), (6, 8)), ((0, 4),), (), ((1, 2), (3, 4))]
    assert [record.soft_masked for record in read_fasta(path, DNA, soft_masks=False)] == [()] * 4


def test_soft_masks_reach_across_blocks():
    letters = b"a" + b"A" * (BLOCK - 3) + b"acg" + b"T" * (BLOCK - 1) + b"ac"
    assert find_soft_masks(letters) == ((0, 1), (BLOCK - 2, BLOCK + 1), (2 * BLOCK, 2 * BLOCK + 2))
    assert find_soft_masks(b"") == ()


def test_empty_record_is_reported_or_refused(make):
    path = make(b">a\nACGT\n>b\n\n>c\nGGGG\n>d")
    skipped: list[SkippedRecord] = []
    assert pairs(path, on_skip=skipped.append) == [("a", "ACGT"), ("c", "GGGG")]
    assert skipped == [SkippedRecord("b", "empty sequence"), SkippedRecord("d", "empty sequence")]
    assert error_of(path).startswith("x.fa: record 'b': the record can't be used (empty sequence)")


@pytest.mark.parametrize(
    "header", [b"a ACGTTGCAacgttgcaNNNN", b"ACGTTGCAACGTTGCAACGT", b"a|P1 T ACGUACGUACGUACGUACGU"]
)
def test_letters_on_the_header_line_are_no_empty_record(make, header):
    path = make(b">first\nACGT\n>" + header + b"\n>last\nACGT\n")
    with pytest.raises(InputError, match=r"below its header, which ends in ACG.*; begin a new line"):
        pairs(path, on_skip=lambda record: None)


@pytest.mark.parametrize(("empty", "refused"), [(10, False), (11, True), (9, False)])
def test_a_file_of_empty_records_is_read_wrongly(make, empty, refused):
    """More than half of them, and ten or more: beside 10 others 11, and 9 beside one are too few."""
    others = 1 if empty == 9 else 10
    text = "".join(f">e{i}\n" for i in range(empty)) + "".join(f">r{i}\nACGT\n" for i in range(others))
    skipped: list[SkippedRecord] = []
    if refused:
        with pytest.raises(InputError, match=r"11 of 21 records can't be used \(empty sequence\); "):
            pairs(make(text.encode()), on_skip=skipped.append)
    else:
        assert len(pairs(make(text.encode()), on_skip=skipped.append)) == others
    assert len(skipped) == empty


@pytest.mark.parametrize(
    ("data", "name"),
    [
        (b"@read1\nACGT\n+\nIIII\n", "FASTQ"),
        (b"LOCUS       X1   8 bp  DNA  linear\n", "GenBank"),
        (b"ID   X1; SV 1; linear; DNA; STD; PRO; 8 BP.\n", "EMBL"),
        (b"# STOCKHOLM 1.0\nseq1 ACGT\n//\n", "a Stockholm alignment"),
        (b"##gff-version 3\nchr1\t.\tgene\t1\t9\t.\t+\t.\tID=x\n", "GFF"),
        (b"CLUSTAL W (1.82)\n\na ACGT\n", "a Clustal alignment"),
        (b"\n>P1;CRAB_ANAPL\nA TAG\n ACGT*\n", "PIR/NBRF"),
        (b">DL;X\nA TAG\nACGT*\n", "PIR/NBRF"),
        (b"<!DOCTYPE html>\n<html>", "HTML or XML (a failed download?)"),
    ],
)
def test_other_formats_are_named(make, data, name):
    error = error_of(make(data))
    assert error.startswith(f"x.fa: is {name}, not FASTA; ")
    assert ("convert it to FASTA" in error) == (name[:4] not in ("GFF", "HTML"))


def test_duplicate_ids_are_renamed_past_names_that_are_taken(make):
    path = make(b">a\nA\n>a_2\nC\n>a\nG\n>a\nT\n>a_3\nA\n>b\nC\n")
    assert [i for i, _ in pairs(path, duplicates="rename")] == ["a", "a_2", "a_3", "a_4", "a_3_2", "b"]


def test_every_repeat_and_nothing_else_is_found_while_the_table_grows():
    draw = random.Random(6)
    names = [f"read_{draw.randrange(60_000)}" for _ in range(100_000)]
    ids, seen, renamed = UniqueIds("rename", "x"), set(), 0
    for name in names:
        result = ids.resolve(name)
        renamed += result != name
        assert result not in seen
        seen.add(result)
    assert renamed == len(names) - len(set(names))


def test_most_ids_take_eight_bytes_each():
    tracemalloc.start()
    try:
        ids = UniqueIds("error", "x.fa")
        for i in range(60_000):
            ids.resolve(str(i))
        assert tracemalloc.get_traced_memory()[0] < 60_000 * 8 + (1 << 15) * 120
    finally:
        tracemalloc.stop()


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


def genbank_error(path, reader=read_genbank, alphabet=DNA, **keywords) -> str:
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
    assert genbank_error(path).startswith("x.gb: record 'PEP1.1': looks like protein, but DNA is expected")


def test_record_that_names_other_records_in_place_of_letters(make):
    text = genbank(PIECE).decode()
    contig = text[: text.index("ORIGIN")] + "CONTIG      join(U00096.3:1..61)\n//\n"
    path = make(contig.encode() + genbank(PLASMID))
    skipped: list[SkippedRecord] = []
    assert [record.id for record in read_genbank(path, on_skip=skipped.append)] == ["TEST1.2"]
    reason = "no sequence in the file, fetch it with its letters as 'GenBank (full)'"
    assert skipped == [SkippedRecord("TEST2.1", reason)]
    assert genbank_error(path).startswith("x.gb: record 'TEST2.1': the record can't be used (no sequence")


@pytest.mark.parametrize("share", [0.1, 0.3, 0.5, 0.7, 0.9, 0.995])
def test_cut_file_is_never_taken_for_a_shorter_one(make, share):
    text = genbank(PLASMID)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # nothing but the error may reach the user
        message = genbank_error(make(text[: int(share * len(text))]))
    assert message == "x.gb: record 'TEST1': the GenBank record is cut off; fetch it again"


@pytest.mark.parametrize("features", [True, False])
def test_a_file_cut_at_any_byte_is_said_to_be_cut_off(features):
    """Within LOCUS, a location, a quoted value, between lines and features, and in the letters."""
    text = STRETCH.read_bytes()
    assert len([*parse_genbank(io.BytesIO(text.rstrip(b"\n")), "x.gb", features=features)]) == 1
    for end in (*range(13, 3000, 7), *range(3000, len(text) - 3, 401), len(text) - 3):
        with pytest.raises(InputError, match=r"the GenBank record is cut off; fetch it again$"):
            list(parse_genbank(io.BytesIO(text[:end]), "x.gb", features=features))


def test_a_damaged_feature_of_a_whole_file_is_not_said_to_be_cut_off():
    damaged = STRETCH.read_bytes().replace(b'FMN transferase"', b"FMN transferase", 1)
    with pytest.raises(InputError, match=r"can't be parsed .*'CDS'.*; correct it"):
        list(parse_genbank(io.BytesIO(damaged), "x.gb", features=True))


def test_lost_letters_are_noticed_by_the_length_of_the_first_line(make):
    text = genbank(PLASMID)
    line = text.index(b"       61 ")
    cut = text[:line] + text[text.index(b"\n", line) + 1 :]
    assert genbank_error(make(cut)) == (
        "x.gb: record 'TEST1': the LOCUS line states 250 letters, and the record has 190; correct the LOCUS "
        "line, or fetch the record again if it is cut off"
    )
    more = text.replace(b" 250 bp", b" 249 bp")
    assert genbank_error(make(more)).endswith("249 letters, and the record has 250; correct the LOCUS line")


def test_record_whose_first_line_is_damaged_is_not_lost_in_silence(make):
    damaged = genbank(PIECE).replace(b"LOCUS       ", b"LOCUS ")
    message = genbank_error(make(genbank(PLASMID) + damaged))
    assert message.startswith("x.gb: 1 of 2 LOCUS lines can't be parsed; write the LOCUS line")


def test_a_record_without_a_first_line_is_not_lost_in_silence(make):
    text = genbank(PLASMID) + b"\n" + genbank(PIECE).replace(b"LOCUS", b"LOCSU")
    assert genbank_error(make(text)).startswith(
        "x.gb: text after the end of GenBank record 1, where a line LOCUS"
    )
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
    assert genbank_error(make(b">a\n>b\nA\n"), read_sequences).startswith(
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
    assert message in genbank_error(make(genbank(PIECE).replace(*change)), read_sequences)
