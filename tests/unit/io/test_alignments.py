"""Readers of alignments: small files made by hand or by Biopython, and what is wrong with bad ones."""

import gzip
import lzma
from pathlib import Path

import numpy as np
import pytest
from Bio import AlignIO
from Bio.Align import MultipleSeqAlignment
from Bio.Seq import Seq
from Bio.SeqRecord import SeqRecord
from hypothesis import given, strategies as st

from seqray.core.alphabet import PROTEIN, RNA
from seqray.core.errors import InputError, NoRecordsError
from seqray.core.records import Alignment
from seqray.io.alignments import read_alignments
from tables import write

STOCKHOLM = """# STOCKHOLM 1.0
#=GF AC   RF90001
#=GF ID   one
#=GF TP   Gene; rRNA;
#=GF CC   first line
#=GF CC   second line
#=GS a/1-4 OS  nowhere

a/1-4         AC-G
#=GR a/1-4 SS ....
b             .C~g
#=GC SS_cons  <-->
#=GC RF       xx.x

a/1-4         UU
b             U?
#=GC SS_cons  ()
//
# STOCKHOLM 1.0
#=GF ID   two

q  NNRY
//
"""


def read_one(path: Path, alphabet=RNA, **options) -> Alignment:
    [alignment] = read_alignments(path, alphabet, **options)
    return alignment


def texts(alignment: Alignment) -> list[str]:
    return [alignment.text(row) for row in range(alignment.rows)]


def test_stockholm(tmp_path):
    one, two = read_alignments(write(tmp_path / "x.sto", STOCKHOLM), RNA)
    assert (one.id, two.id) == ("RF90001", "two")
    assert one.names == ("a/1-4", "b")
    assert texts(one) == ["AC-GUU", "-C~GU~"]
    assert one.ss_cons == "<-->()"
    assert one.metadata["TP"] == "Gene; rRNA;"
    assert one.metadata["CC"] == "first line\nsecond line"
    assert (one.label, one.group) == (None, None)
    assert one.query() == "ACGUU"
    assert one.query_positions().tolist() == [0, 1, -1, 2, 3, 4]
    assert texts(two) == ["NNNN"]
    assert two.ss_cons is None


def test_codes_keep_gaps_and_missing_data_apart(tmp_path):
    path = write(tmp_path / "x.fa", ">a\nACGUTN-._~?\n>b\nacgutRYSWKM\n")
    assert read_one(path).codes.tolist() == [
        [0, 1, 2, 3, 3, 4, 5, 5, 5, 6, 6],
        [0, 1, 2, 3, 3, 4, 4, 4, 4, 4, 4],
    ]


@pytest.mark.parametrize("ending", ["\r\n", "\r"])
def test_other_line_ends_and_a_byte_order_mark(tmp_path, ending):
    text = STOCKHOLM.split("//")[0] + "//\n"
    plain = read_one(write(tmp_path / "a.sto", text))
    other = read_one(write(tmp_path / "b.sto", b"\xef\xbb\xbf" + text.replace("\n", ending).encode()))
    assert texts(other) == texts(plain)
    assert other.metadata == plain.metadata


def test_notes_in_latin_1(tmp_path):
    text = STOCKHOLM.replace("first line", "Universität Zürich").encode("latin-1")
    one, _ = read_alignments(write(tmp_path / "x.sto", text), RNA)
    assert one.metadata["CC"].startswith("Universität Zürich")


def test_alignments_come_one_at_a_time(tmp_path):
    """The second alignment is broken; the first is there before anybody notices."""
    path = write(tmp_path / "x.sto", STOCKHOLM.replace("NNRY", "NN RY"))
    reader = read_alignments(path, RNA)
    assert next(reader).id == "RF90001"
    with pytest.raises(InputError, match="line 22 is no row"):
        next(reader)


A3M = ">q\nMKV-LA\n>b some words\nM-VacdKLA\n>\nMK.g.V-L-\n>ss_pred\nCCCCCC\n"


def test_a3m_without_insertions(tmp_path):
    alignment = read_one(write(tmp_path / "fam.a3m", A3M), PROTEIN)
    assert alignment.id == "fam"
    assert alignment.names == ("q", "b", "row_3")
    assert texts(alignment) == ["MKV-LA", "M-VKLA", "MKV-L-"]


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        ("1abc.A.fa", "1abc.A"),
        ("my.fam.v1.a3m", "my.fam.v1"),
        ("1abc.A.fa.gz", "1abc.A"),
        ("fam.fa.xz", "fam"),
        ("fam", "fam"),
        ("fam.gz", "fam"),
    ],
)
def test_an_alignment_is_named_after_its_file_without_one_ending(tmp_path, file, expected):
    text = b">q\nACGU\n>r\nACGU\n"
    packed = {".gz": gzip.compress, ".xz": lzma.compress}.get(file[-3:], bytes)(text)
    (tmp_path / file).write_bytes(packed)
    [alignment] = read_alignments(tmp_path / file, RNA)
    assert alignment.id == expected


def test_small_letters_in_fasta_are_columns_and_in_a3m_insertions(tmp_path):
    text = ">a\nACgu\n>b\nACGU\n"
    assert texts(read_one(write(tmp_path / "x.fasta", text))) == ["ACGU", "ACGU"]
    with pytest.raises(InputError, match="row 'b' has 4 columns, the first row has 2"):
        read_one(write(tmp_path / "x.a3m", text))


def test_wrapped_fasta_with_comments(tmp_path):
    path = write(tmp_path / "x.afa", "; made by hand\n\n>a one\nAC -\nGU\n\n>b\nACA\nGU\n")
    assert texts(read_one(path)) == ["AC-GU", "ACAGU"]


def test_several_clustal_alignments_of_a_file(tmp_path):
    text = (
        "CLUSTAL O(1.2.4)\n\na AC-U\nb ACGU\n\t** *\n\n"
        "CLUSTAL O(1.2.4)\n\n\na AC 2\nc A- 1\n\na GG 4\nc GG 3\n"
    )
    first, second = read_alignments(write(tmp_path / "x.aln", text), RNA)
    assert (first.id, second.id) == ("x", "x_2")
    assert (texts(first), texts(second)) == (["AC-U", "ACGU"], ["ACGG", "A-GG"])
    assert second.names == ("a", "c")


@pytest.mark.parametrize("before", ["\n\n", "\ufeff", "\ufeff\n", " \n"])
@pytest.mark.parametrize(
    "text",
    ["CLUSTAL\n\na AC\nb A-\n", "# STOCKHOLM 1.0\na AC\nb A-\n//\n", "2 2\na AC\nb A-\n", ">a\nAC\n>b\nA-\n"],
)
def test_blank_lines_and_a_byte_order_mark_come_before_any_format(tmp_path, before, text):
    assert texts(read_one(write(tmp_path / "x", before + text))) == ["AC", "A-"]


@pytest.mark.parametrize("text", ["CLUSTAL W (1.83)\n", "CLUSTAL\n\n\n", "MUSCLE (3.8)\n"])
def test_clustal_cut_behind_its_header_has_no_rows(tmp_path, text):
    skipped = []
    path = write(tmp_path / "x.aln", text)
    assert list(read_alignments(path, RNA, on_skip=skipped.append)) == []
    assert [record.reason for record in skipped] == ["no rows"]


PHYLIP = {
    "relaxed": " 2 12\na_long_name_here ACGUACGUACGU\nb ACGUAC--ACGU\n",
    "in turns": "2 12\na  ACGUAC\nb  ACGUAC\n\nGUACGU\n--AC GU\n",
    "one by one": "2 12\na  ACGUAC\nGUACGU\nb  ACGUAC\n--ACGU\n",
    "strict": "2 12\nname one  ACGUACGUACGU\nname two  ACGUAC--ACGU\n",
    "of PAML": "2 12 I\na  ACGUAC\nb  ACGUAC\n\nGUACGU\n--AC GU\n",
    "strict in turns": "2 12\nname one  ACGUAC\nname two  ACGUAC\nGUACGU\n--ACGU\n",
}


@pytest.mark.parametrize("layout", PHYLIP)
def test_phylip(tmp_path, layout):
    assert texts(read_one(write(tmp_path / "x.phy", PHYLIP[layout]))) == ["ACGUACGUACGU", "ACGUAC--ACGU"]


# Names of ten letters, so that a line with a name looks like one of letters alone.
NAMES = ("GGGGGAAAAA", "GGGGGCCCCC")
BOTH = {  # layout of lines -> the rows, or None where there are two readings
    "{0} AC\n{1} GU\n{2} CC\n{3} GG\n": None,
    "{0} AC\n{1} GU\n\n{2} CC\n{3} GG\n": None,  # two rows of two lines, or two blocks of two rows
    "{0} AC\n           {1} GU\n{2} CC\n           {3} GG\n": ("AC{1}GU", "CC{3}GG"),
    "{0} AC\n{1} GU\n           {2} CC\n           {3} GG\n": ("AC{2}CC", "GU{3}GG"),
    "{0} AC\n{1} GU\n\n{2} C\n{3} G\n\nC\nG\n": ("AC{2}CC", "GU{3}GG"),
    "{0} AC\n{1} G\nU\n\n{2} CC\n{3} G\nG\n": ("AC{1}GU", "CC{3}GG"),
}


@pytest.mark.parametrize("layout", BOTH)
def test_phylip_that_has_two_readings_is_refused_unless_its_drawing_tells(tmp_path, layout):
    words = (NAMES[0], NAMES[1], "GGGGGUUUUU", "GGGGGGGGGG")
    path = write(tmp_path / "x.phy", "2 14\n" + layout.format(*words))
    if BOTH[layout] is not None:
        assert texts(read_one(path)) == [row.format(*words) for row in BOTH[layout]]
        return
    with pytest.raises(InputError) as error:
        read_one(path)
    readings = "interleaved ('GGGGGAAAAA' ACGGGGGU..GUUUUUCC)", "sequential ('GGGGGAAAAA' ACGGGGGC..GCCCCCGU)"
    assert f"row 1 is {readings[0]} or {readings[1]}" in str(error.value)


def test_letters_outside_the_alphabet_tell_names_of_phylip(tmp_path):
    text = "2 14\nGGGGG00001 AC\nGGGGGUUUUU GU\nGGGGG00002 CC\nGGGGGGGGGG GG\n"
    alignment = read_one(write(tmp_path / "x.phy", text))
    assert alignment.names == ("GGGGG00001", "GGGGG00002")
    assert texts(alignment) == ["ACGGGGGUUUUUGU", "CCGGGGGGGGGGGG"]


@st.composite
def written_phylip(draw) -> tuple[list[str], list[str], str]:
    """Names, rows, and a file of them: any layout, names that may be letters, and lines of any length."""
    count, columns = draw(st.integers(2, 5)), draw(st.integers(1, 60))
    width = draw(st.sampled_from((5, 10, 20)))
    named = st.text("ACGU", min_size=width // 2, max_size=min(width, 10))
    rows = draw(
        st.lists(st.text("ACGU-", min_size=columns, max_size=columns), min_size=count, max_size=count)
    )
    ids = draw(st.lists(named, min_size=count, max_size=count, unique=True))
    strict = draw(st.booleans())
    between, indent = draw(st.sampled_from(("\n", "\n\n"))), " " * draw(st.sampled_from((0, 11)))
    first = draw(st.integers(1, 40))

    def head(name: str) -> str:
        return name.ljust(10) if strict else f"{name} "

    def lines(row: str) -> list[str]:
        cut = [row[:first], *(row[i : i + width] for i in range(first, columns, width))]
        return [" ".join(piece[i : i + 10] for i in range(0, len(piece), 10)) for piece in cut]

    pieces = [lines(row) for row in rows]
    if draw(st.booleans()):
        blocks = [[head(name) + own[0] for name, own in zip(ids, pieces, strict=True)]]
        blocks += [[indent + own[i] for own in pieces] for i in range(1, len(pieces[0]))]
    else:
        blocks = [
            [head(name) + own[0], *(indent + line for line in own[1:])]
            for name, own in zip(ids, pieces, strict=True)
        ]
    return ids, rows, f"{count} {columns}\n" + between.join("\n".join(block) for block in blocks) + "\n"


@given(written_phylip())
def test_phylip_of_another_writer_is_read_right_or_refused(tmp_path_factory, made):
    ids, rows, text = made
    path = write(tmp_path_factory.mktemp("made") / "x.phy", text)
    alignment, refused = None, ""
    try:
        alignment = read_one(path)
    except InputError as error:
        refused = str(error)
    if alignment is None:
        assert "in two ways" in refused or not any(row.strip("-") for row in rows)
        return
    assert (list(alignment.names), texts(alignment)) == (ids, rows)


@pytest.mark.parametrize(
    "header",
    [
        "Biopython 1.88 multiple sequence alignment",
        "T-COFFEE, Version_5.31(Wed Jul 12 2006)",
        "CLUSTAL FORMAT for T-COFFEE Version_9.03",
        "CLUSTAL format alignment by MAFFT (v7.475)",
        "PROBCONS version 1.12 multiple sequence alignment",
        "Kalign (2.0) alignment in ClustalW format",
        "MSA multiple sequence alignment",
    ],
)
def test_headers_of_clustal_name_any_program(tmp_path, header):
    text = f"{header}\n\n\nMUSCLE   ACGU\nb        A--U\n         *  *\n"
    alignment = read_one(write(tmp_path / "x.aln", text))
    assert (alignment.names, texts(alignment)) == (("MUSCLE", "b"), ["ACGU", "A--U"])


# --- round trips through the writers of Biopython ---------------------------------------------------------

names = st.lists(
    st.from_regex(r"[A-Za-z][A-Za-z0-9_]{0,8}", fullmatch=True), min_size=1, max_size=6, unique=True
)


@st.composite
def alignments(draw) -> tuple[list[str], list[str]]:
    found = draw(names.filter(lambda n: "CLUSTAL" not in n))
    columns = draw(st.integers(1, 130))
    row = st.text("ACGU-", min_size=columns, max_size=columns)
    rows = ["A" + draw(row) for _ in found]  # no row of gaps alone, which Biopython's writers refuse
    return found, rows


@pytest.mark.parametrize(
    ("form", "suffix"),
    [
        ("stockholm", ".sto"),
        ("fasta", ".fa"),
        ("clustal", ".aln"),
        ("phylip", ".phy"),
        ("phylip-relaxed", ".phy"),
        ("phylip-sequential", ".phy"),
    ],
)
@given(alignments())
def test_what_biopython_writes_is_read(tmp_path_factory, form, suffix, made):
    found, rows = made
    path = tmp_path_factory.mktemp("made") / f"x{suffix}"
    records = [SeqRecord(Seq(row), id=name, description="") for name, row in zip(found, rows, strict=True)]
    AlignIO.write(MultipleSeqAlignment(records), path, form)
    alignment = read_one(path)
    assert list(alignment.names) == found
    assert texts(alignment) == rows


match_states = st.sampled_from("ACDEFGHIKLMNPQRSTVWY-")


@given(
    st.integers(1, 30).flatmap(
        lambda n: st.lists(
            st.lists(st.tuples(st.text("acdefg", max_size=3), match_states), min_size=n, max_size=n),
            min_size=1,
            max_size=5,
        )
    )
)
def test_insertions_are_removed_and_columns_stay_in_line(tmp_path_factory, made):
    """Each row is a list of (insertion, column)."""
    made[0][0] = ("", "M")
    path = tmp_path_factory.mktemp("made") / "x.a3m"
    rows = ["".join(inserted + column for inserted, column in row) for row in made]
    path.write_text("".join(f">{i}\n{row}\n" for i, row in enumerate(rows)))
    assert texts(read_one(path, PROTEIN)) == ["".join(column for _, column in row) for row in made]


# --- what is unusual or wrong ----------------------------------------------------------------------------


def test_one_row_copies_and_shared_names_are_fine(tmp_path):
    assert texts(read_one(write(tmp_path / "x.fa", ">a\nACGU\n"))) == ["ACGU"]
    twice = read_one(write(tmp_path / "y.fa", ">a\nACGU\n>a\nACGU\n"))
    assert twice.names == ("a", "a")
    assert texts(twice) == ["ACGU", "ACGU"]


def test_a_stop_behind_the_last_letter_of_a_protein_is_a_gap(tmp_path):
    text = ">q\nMKVLA*\n>r\nMK-L*-\n>s\nMKVLAA\n"
    assert texts(read_one(write(tmp_path / "x.fa", text), PROTEIN)) == ["MKVLA-", "MK-L--", "MKVLAA"]
    inside = write(tmp_path / "y.fa", ">q\nMK*LA-\n>r\nMKVLAA\n")
    error = "row 'q': unknown letter '\\*' at column 3; split or trim the sequence at the stop"
    with pytest.raises(InputError, match=error):
        read_one(inside, PROTEIN)


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("ragged.fa", ">a\nACGU\n>b\nAC\n", ["row 'b' has 2 columns, the first row has 4", "align"]),
        ("letter.fa", ">a\nACGU\n>b\nAC!U\n", ["row 'b'", "unknown letter '!' at column 3"]),
        ("gaps.fa", ">a\n----\n>b\n~~..\n", ["no letters", "remove"]),
        ("rows.sto", "# STOCKHOLM 1.0\n#=GF ID x\n//\n", ["record 'x'", "no rows"]),
        ("empty.fa", ">a\n>b\nAC\n", ["row 'a' is empty"]),
        ("twice.sto", "# STOCKHOLM 1.0\na AC\na AC\n//\n", ["line 3", "'a' occurs twice in one block"]),
        ("cut.sto", "# STOCKHOLM 1.0\na AC\n", ["ends in line 2 without '//'"]),
        ("head.sto", "# STOCKHOLM 1.0\na AC\n//\na AC\n//\n", ["line 4 begins no alignment"]),
        ("same.sto", 2 * "# STOCKHOLM 1.0\n#=GF ID x\na AC\n//\n", ["'x'", "occurs more than once"]),
        ("names.sto", 2 * "# STOCKHOLM 1.0\n#=GF ID my family\na AC\n//\n", ["'my'", "give each its own id"]),
        ("ss.sto", "# STOCKHOLM 1.0\na AC\n#=GC SS_cons ...\n//\n", ["SS_cons has 3 char", "2 columns"]),
        ("short.phy", "3 4\na ACGU\n", ["3 rows are announced, 1 lines follow"]),
        ("bad.phy", "2 4\na ACGU\nb ACG\n", ["row 'b' has 3 columns, 4 are announced"]),
        ("turns.phy", "2 4\na AC\nb AC\nGU\nG\n", ["no layout of PHYLIP gives 2 rows of 4 columns"]),
        ("zero.phy", "0 5\na ACGUA\n", ["announces 0 rows of 5 columns"]),
        ("dots.phy", "2 4\na ACGU\nb ..A.\n", ["row 'b' contains '.'", "letter of the first row"]),
        ("bad.aln", "CLUSTAL\n\na AC x\nb AC\n", ["line 3", "not a name, letters"]),
        ("ragged.aln", "CLUSTAL\n\na ACG\nb AC\n", ["row 'b' has 2 columns, the first row has 3"]),
        ("short.aln", "CLUSTAL\n\na AC\nb AC\n\na AC\n\n", ["line 7", "a block ends before row 'b'"]),
        ("long.aln", "CLUSTAL\n\na AC\n\na AC\nb AC\n", ["line 6", "more than the 1 rows"]),
        ("other.aln", "CLUSTAL\n\na AC\nb AC\n\na AC\nc A\n", ["line 7", "'c', where 'b' comes next"]),
        ("small.a3m", ">a\nacgu\n>b\nac\n", ["all letters are small", "insertions"]),
        ("masked.fa", ">a\nACGUac\n>b\nACGUa\n", ["row 'b' has 5 columns, the first row has 6"]),
        ("x.gff", "##gff-version 3\n", ["is GFF, not an alignment", "Stockholm"]),
        ("x.txt", "hello\n", ["of unknown format"]),
    ],
)
def test_what_is_wrong_is_said_in_one_line(tmp_path, name, text, words):
    path = write(tmp_path / name, text)
    with pytest.raises(InputError) as caught:
        list(read_alignments(path, RNA))
    message = str(caught.value)
    assert "\n" not in message
    assert all(word in message for word in [str(path), *words]), message


@pytest.mark.parametrize("name", ["x.fa", "x.sto", "x.a3m"])
def test_an_empty_file_holds_no_alignments(tmp_path, name):
    with pytest.raises(NoRecordsError):
        list(read_alignments(write(tmp_path / name, "\n\n"), RNA))


# --- the record ------------------------------------------------------------------------------------------


def alignment(**changes) -> Alignment:
    given = {"id": "a", "names": ("q", "b"), "codes": np.array([[0, 5, 1], [6, 2, 3]], dtype=np.uint8)}
    return Alignment(**{**given, "alphabet": RNA, "ss_cons": "(.)", "metadata": {"TP": "x"}, **changes})


def test_an_alignment_can_not_be_changed():
    codes = np.zeros((2, 3), dtype=np.uint8)
    made = alignment(codes=codes)
    codes[:] = 3
    assert made.codes.max() == 0
    with pytest.raises(ValueError, match="read-only"):
        made.codes[0, 0] = 1
    with pytest.raises(TypeError):
        made.metadata["TP"] = "y"
    with pytest.raises(AttributeError):
        made.id = "b"


def test_rows_and_columns_are_taken():
    made = alignment()
    rows = made.take_rows([1])
    assert (rows.names, texts(rows), rows.ss_cons) == (("b",), ["~GU"], "(.)")
    columns = made.take_columns([0, 2])
    assert (texts(columns), columns.ss_cons, columns.metadata) == (["AC", "~U"], "()", {"TP": "x"})
    assert made.query() == "AC"
