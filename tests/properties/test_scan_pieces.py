"""What a scan finds does not depend on how the sequence is cut, turned or flipped."""

import random
from functools import partial

import numpy as np
from hypothesis import assume, given, settings, strategies as st

from seqray.core.alphabet import DNA, reverse_complement
from seqray.core.card_parts import PrefilterFacts
from seqray.core.records import SequenceRecord
from seqray.scanning.options import ScanCallbacks, ScanOptions
from seqray.scanning.scan import scan_sequences
from seqray.scanning.scorers import Cutoffs, WindowScorer

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
    return scan_sequences(scorer, [SequenceRecord("c", sequence)], chosen, heard)


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


@given(unique, st.integers(1, 20), st.integers(1, 10))
def test_a_circle_may_be_cut_anywhere(sequence, stride, steps):
    # Grids agree where the stride divides the length and the turn.
    length = max(len(sequence) // stride * stride, WINDOW // stride * stride + stride)
    ring = (sequence * 2)[:length]
    turn = stride * steps % length
    profiles = []
    run(ring, profiles, stride=1, circular=True)
    assume(len(set(scores_of(profiles))) == len(scores_of(profiles)))
    there = run(ring, stride=stride, circular=True)
    back = run(ring[turn:] + ring[:turn], stride=stride, circular=True)
    expected = sorted(((c.site - turn) % length, c.strand, c.score) for c in there.calls)
    assert sorted((c.site, c.strand, c.score) for c in back.calls) == expected


@given(unique, st.integers(1, 300))
def test_with_a_prefilter_a_circle_may_be_cut_anywhere(sequence, steps):
    length, profiles = len(sequence), []
    there = run(sequence, profiles, circular=True)
    assume(len(set(scores_of(profiles))) == len(scores_of(profiles)))
    turn = steps % length
    back = run(sequence[turn:] + sequence[:turn], circular=True)
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
