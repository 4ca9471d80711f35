"""Coordinates survive every format, strand and origin, and scans do not depend on how contigs are cut."""

import random
import tempfile
from functools import partial
from pathlib import Path

import numpy as np
import pyBigWig
from hypothesis import assume, given, settings, strategies as st

from seqray.core.alphabet import DNA, reverse_complement
from seqray.core.card_parts import PrefilterFacts
from seqray.core.records import SequenceRecord
from seqray.core.results import Call
from seqray.io.calls import write_bed, write_calls_tsv
from seqray.io.gff3 import read_called, write_gff3
from seqray.io.lines import read_regions
from seqray.io.scores import TrackWriter
from seqray.scanning.options import ScanCallbacks, ScanOptions
from seqray.scanning.scan import scan_sequences
from seqray.scanning.scorers import Cutoffs, WindowScorer
from tables import body


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


def write_and_read(write, read, *arguments, **keywords):
    """Cells of each line of data that a writer writes, and what a reader makes of the file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "c"
        write(path, *arguments, **keywords)
        return [line.split("\t") for line in body(path.read_text())], read(path)


@given(contigs_and_calls())
def test_gff3_coordinates_lead_to_the_letters(example):
    contig, circular, found = example
    found = sorted(found, key=lambda made: made[0].start)  # as they are written
    calls = [call for call, _, _ in found]
    about = {"contigs": {"c": len(contig)}, "circular": {"c"} if circular else ()}
    lines, read = write_and_read(write_gff3, read_called, calls, **about)
    assert read.calls == calls
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
def test_bed_coordinates_lead_to_the_letters(example):
    contig, _, found = example
    calls = [call for call, _, _ in found]
    lines, intervals = write_and_read(write_bed, read_regions, calls, contigs={"c": len(contig)})
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
        own = [i for i in intervals if i.name == f"promoter_{number}"]
        covered = sorted(position for i in own for position in range(i.start, i.end))
        assert covered == sorted(position % len(contig) for position in range(call.start, call.end))


@given(contigs_and_calls())
def test_table_coordinates_lead_to_the_letters(example):
    contig, _, found = example
    (header, *lines), _ = write_and_read(write_calls_tsv, str, [call for call, _, _ in found])
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


WINDOW, SITE = 15, 4
WEIGHTS = np.random.default_rng(1).normal(size=(WINDOW, 5))


def hashed(codes):
    """A number in (0, 1) that looks random but depends on the window alone."""
    mixed = sum(WEIGHTS[i][codes[:, i]] for i in range(WINDOW))
    return (np.sin(1000 * mixed) + 1) / 2


def log_odds(strand):
    """What a prefilter that knows the answer says of each window."""
    scores = hashed(np.lib.stride_tricks.sliding_window_view(strand, WINDOW))
    return np.log(scores / (1 - scores))


def doubtful(strand):
    """What a prefilter says that is often wrong."""
    windows = np.lib.stride_tricks.sliding_window_view(strand, WINDOW)
    return log_odds(strand) + np.sin(777 * hashed(windows))


def cutoffs_at(threshold, cutoff):
    return Cutoffs.at(PrefilterFacts(levels=np.array([(0.8, cutoff, 0.05)])), threshold)


CUTOFF = np.log(0.8 / 0.2)
MODEL = {
    "score": hashed,
    "window": WINDOW,
    "site": SITE,
    "prefilter": doubtful,
    "cutoffs": lambda threshold: cutoffs_at(threshold, CUTOFF - 1),
    "threshold": 0.8,
    "label": "x",
    "alphabet": DNA,
}

sequences = st.text("ACGTN", min_size=WINDOW, max_size=200)
unique = st.builds(
    lambda seed, length: "".join(random.Random(seed).choices("ACGT", k=length)),
    st.integers(0, 1 << 30),
    st.integers(WINDOW, 300),
)
strides = st.integers(1, 15) | st.none()  # none: the prefilter chooses what is scored


def run(sequence, profiles=None, model=MODEL, **options):
    heard = ScanCallbacks(on_profile=profiles.append if profiles is not None else None)
    chosen = ScanOptions(**{"null_mb": 0.0, "min_distance": 9, "max_ambiguous": 0.3, **options})
    scorer = WindowScorer(chosen, **model)
    return scan_sequences(scorer, [SequenceRecord("c", sequence)], heard)


def track(profiles):
    return [
        (p.strand, site, gap, score)
        for p in profiles
        for site, gap, score in zip(p.sites.tolist(), p.gaps.tolist(), p.scores.tolist(), strict=True)
        if score == score
    ]


@given(sequences, strides, st.booleans(), st.integers(1, 300))
def test_any_piece_size_gives_the_same(sequence, stride, circular, piece):
    whole_track, cut_track = [], []
    whole = run(sequence, whole_track, stride=stride, circular=circular)
    cut = run(sequence, cut_track, stride=stride, circular=circular, piece=piece)
    assert list(cut.calls) == list(whole.calls)
    assert (cut.positions, sorted(track(cut_track))) == (whole.positions, sorted(track(whole_track)))


@settings(max_examples=25)
@given(sequences, strides, st.integers(1, 300))
def test_any_piece_size_gives_the_same_false_calls(sequence, stride, piece):
    whole = run(sequence, stride=stride, null_mb=0.001)
    assert run(sequence, stride=stride, null_mb=0.001, piece=piece).false_calls == whole.false_calls


def scores_of(profiles):
    return [score for _, _, _, score in track(profiles)]


@given(unique, st.sampled_from([1, None]))
def test_the_other_strand_read_from_the_other_side(sequence, stride):
    profiles, length = [], len(sequence)
    there = run(sequence, profiles, stride=stride)
    # Of equal scores the lower coordinate wins, which is another one seen from the other side.
    assume(len(set(scores_of(profiles))) == len(scores_of(profiles)))
    back = run(reverse_complement(sequence), stride=stride)
    flipped = [(length - 1 - c.site, {"+": "-", "-": "+"}[c.strand], c.score) for c in back.calls]
    assert sorted(flipped) == sorted((c.site, c.strand, c.score) for c in there.calls)


@given(unique, st.integers(1, 20) | st.none(), st.integers(1, 300))
def test_a_circle_may_be_cut_anywhere(sequence, stride, steps):
    # Grids agree where the stride divides the length and the turn.
    grid = stride or 1
    length = max(len(sequence) // grid * grid, WINDOW // grid * grid + grid)
    ring = (sequence * 2)[:length]
    turn = grid * steps % length
    profiles = []
    run(ring, profiles, stride=stride and 1, circular=True)
    assume(len(set(scores_of(profiles))) == len(scores_of(profiles)))
    there = run(ring, stride=stride, circular=True)
    back = run(ring[turn:] + ring[:turn], stride=stride, circular=True)
    expected = sorted(((c.site - turn) % length, c.strand, c.score) for c in there.calls)
    assert sorted((c.site, c.strand, c.score) for c in back.calls) == expected


mixed_case = st.text("ACGTNacgt", min_size=WINDOW, max_size=200)


@given(
    mixed_case, st.booleans(), st.booleans(), st.integers(1, 300), st.sampled_from(["both", "plus", "minus"])
)
def test_a_prefilter_that_knows_the_answer_loses_no_call(sequence, circular, masked, piece, strand):
    rows = []

    def counted(codes):
        rows.append(hashed(codes))
        return rows[-1]

    exact = partial(cutoffs_at, cutoff=CUTOFF - 1e-6)
    knowing = MODEL | {"score": counted, "prefilter": log_odds, "cutoffs": exact}
    where = {"circular": circular, "skip_soft_masked": masked, "strand": strand}
    everything = run(sequence, stride=1, **where)
    found = run(sequence, model=knowing, piece=piece, **where)
    assert list(found.calls) == list(everything.calls)
    assert found.positions == everything.positions
    assert all(score > 0.79 for part in rows for score in part)  # nothing else was scored


@given(sequences, st.booleans())
def test_what_a_prefilter_skips_keeps_its_answer_in_tracks(sequence, circular):
    mine, full = [], []
    run(sequence, mine, circular=circular)
    run(sequence, full, stride=1, circular=circular)
    exact = {row[:2]: row[3] for row in track(full)}
    assert {row[:2] for row in track(mine)} == exact.keys()
    for strand, site, _, score in track(mine):
        assert score == exact[strand, site] or score < 0.6  # below the cutoff
