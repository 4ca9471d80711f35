"""Coordinates survive every format, on both strands, at the ends of a contig and across a circle's origin.

The reference is the letters themselves: a window is cut from a contig and read on its strand; whoever follows
the coordinates of a file, by that format's own rule, must find the same letters and the same site.
"""

import tempfile
from pathlib import Path

import numpy as np
import pyBigWig
from hypothesis import given, strategies as st

from seqray.core.alphabet import reverse_complement
from seqray.core.results import Call
from seqray.io.calls import write_bed, write_calls_tsv
from seqray.io.gff3 import read_called, write_gff3
from seqray.io.lines import read_regions
from seqray.io.scores import TrackWriter


@st.composite
def contigs_and_calls(draw):
    """A contig, whether it is a circle, and calls on it with the letters of their windows."""
    contig = draw(st.text("ACGT", min_size=5, max_size=40))
    circular = draw(st.booleans())
    length = len(contig)
    window = draw(st.integers(1, length))
    last = length - 1 if circular else length - window
    # Both ends, and on a circle a window across the origin, are always among the starts.
    starts = [0, last, *draw(st.lists(st.integers(0, last), max_size=3))]
    offset = draw(st.integers(0, window - 1))
    found = []
    for start in starts:
        strand = draw(st.sampled_from("+-"))
        plus = (contig + contig)[start : start + window]
        letters = plus if strand == "+" else reverse_complement(plus)
        site = start + (offset if strand == "+" else window - 1 - offset)
        call = Call("c", start, start + window, strand, site % length, draw(scores()), "promoter")
        found.append((call, letters, letters[offset]))
    return contig, circular, found


def scores():
    """Probabilities that six significant digits hold exactly."""
    return st.integers(0, 10**6).map(lambda n: n / 10**6)


def on_strand(letters: str, strand: str) -> str:
    return letters if strand == "+" else reverse_complement(letters)


def write_and_read(write, path_end, *arguments, **keywords) -> list[list[str]]:
    """Cells of each line of data that a writer writes."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"c{path_end}"
        write(path, *arguments, **keywords)
        lines = path.read_text().splitlines()
    return [line.split("\t") for line in lines if not line.startswith("#")]


@given(contigs_and_calls())
def test_gff3_coordinates_lead_to_the_letters(example):
    contig, circular, found = example
    found = sorted(found, key=lambda made: made[0].start)  # as they are written
    lines = write_and_read(
        write_gff3,
        ".gff3",
        [call for call, _, _ in found],
        contigs={"c": len(contig)},
        circular={"c"} if circular else (),
    )
    features = [cells for cells in lines if cells[2] == "promoter"]
    assert len(features) == len(found)
    for cells, (call, letters, at_site) in zip(features, found, strict=True):
        start, end = int(cells[3]), int(cells[4])  # 1-based, closed; end > length runs across the origin
        assert 1 <= start <= len(contig)
        assert end <= len(contig) or circular
        assert on_strand((contig * 2)[start - 1 : end], cells[6]) == letters
        tss = int(dict(pair.split("=") for pair in cells[8].split(";"))["tss"])
        assert on_strand(contig[tss - 1], call.strand) == at_site


@given(contigs_and_calls())
def test_gff3_round_trip(example):
    contig, circular, found = example
    calls = sorted((call for call, _, _ in found), key=lambda call: call.start)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "c.gff3"
        write_gff3(path, calls, contigs={"c": len(contig)}, circular={"c"} if circular else ())
        assert read_called(path).calls == calls


@given(contigs_and_calls())
def test_bed_coordinates_lead_to_the_letters(example):
    contig, _, found = example
    lines = write_and_read(write_bed, ".bed", [call for call, _, _ in found], contigs={"c": len(contig)})
    parts: dict[str, list[list[str]]] = {}
    for cells in lines:
        parts.setdefault(cells[3], []).append(cells)
    assert len(parts) == len(found)
    for number, (call, letters, at_site) in enumerate(found, start=1):
        # Across the origin the line that ends the contig holds the first letters.
        cells_of_call = sorted(parts[f"promoter_{number}"], key=lambda cells: -int(cells[1]))
        pieces = [contig[int(cells[1]) : int(cells[2])] for cells in cells_of_call]  # 0-based, half-open
        assert all(0 <= int(cells[1]) < int(cells[2]) <= len(contig) for cells in cells_of_call)
        assert on_strand("".join(pieces), cells_of_call[0][5]) == letters
        assert on_strand(contig[int(cells_of_call[0][7])], call.strand) == at_site


@given(contigs_and_calls())
def test_bed_read_back_covers_the_same_positions(example):
    contig, _, found = example
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "c.bed"
        write_bed(path, [call for call, _, _ in found], contigs={"c": len(contig)})
        intervals = read_regions(path)
    for number, (call, _, _) in enumerate(found, start=1):
        own = [i for i in intervals if i.name == f"promoter_{number}"]
        covered = sorted(position for i in own for position in range(i.start, i.end))
        assert covered == sorted(position % len(contig) for position in range(call.start, call.end))


@given(contigs_and_calls())
def test_table_coordinates_lead_to_the_letters(example):
    contig, _, found = example
    header, *lines = write_and_read(write_calls_tsv, ".tsv", [call for call, _, _ in found])
    for cells, (call, letters, at_site) in zip(lines, found, strict=True):
        row = dict(zip(header, cells, strict=True))
        assert on_strand((contig * 2)[int(row["start"]) : int(row["end"])], row["strand"]) == letters
        assert on_strand(contig[int(row["site"])], row["strand"]) == at_site
        assert float(row["score"]) == call.score


@given(
    length=st.integers(1, 60),
    start=st.integers(-10, 60),
    span=st.integers(1, 7),
    values=st.lists(st.one_of(st.just(np.nan), st.floats(0, 1, width=32)), max_size=12),
    strand=st.sampled_from("+-"),
)
def test_a_track_gives_each_position_its_value(length, start, span, values, strand):
    expected = np.full(length, np.nan)
    for position in range(length):
        step = (position - start) // span
        if 0 <= step < len(values):
            expected[position] = values[step]
    with tempfile.TemporaryDirectory() as folder:
        for end in (".bw", ".bg"):
            with TrackWriter(Path(folder) / f"x{end}") as track:
                track.begin("c", length)
                track.add("c", strand, start, values, span)
        word = {"+": "plus", "-": "minus"}[strand]
        drawn = np.full(length, np.nan)
        with pyBigWig.open(f"{folder}/x.{word}.bw") as track:
            for first, last, value in track.intervals("c") or ():
                drawn[first:last] = value
        assert np.array_equal(drawn, expected, equal_nan=True)
        drawn = np.full(length, np.nan)
        for line in Path(f"{folder}/x.{word}.bg").read_text().splitlines()[1:]:
            _, first, last, value = line.split("\t")
            drawn[int(first) : int(last)] = float(value)
        np.testing.assert_allclose(drawn, expected, rtol=1e-5)
