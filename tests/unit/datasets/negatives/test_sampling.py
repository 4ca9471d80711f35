"""Windows drawn from a genome and changes of letters, checked one by one against a search by brute force."""

import random
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, strategies as st

from seqray.core.alphabet import DNA
from seqray.core.records import Intervals, SequenceRecord
from seqray.datasets.negatives import make as sampling
from seqray.datasets.negatives.genome import AllowedRegions, JoinedGenome
from seqray.datasets.negatives.make import OccupiedIntervals, candidates, sample_windows, substitute_segments

NOTHING = Intervals.merge(())
EVERYWHERE = {"+": NOTHING, "-": NOTHING}


def random_letters(n: int, seed: int, weights=(1, 1, 1, 1)) -> str:
    return "".join(random.Random(seed).choices("ACGT", weights, k=n))


def genome_of(*texts: str) -> JoinedGenome:
    return JoinedGenome.of([SequenceRecord(f"c{i}", text) for i, text in enumerate(texts)], DNA)


def draw_from(genome, positives, *, bins=20, taken=None, forbidden=EVERYWHERE, seed=0):
    sources = {s: AllowedRegions(genome.contigs(), forbidden[s]) for s in "+-"}
    codes = [DNA.encode(p) for p in positives]
    rng = np.random.default_rng(seed)
    return sample_windows(genome, sources, codes, bins, taken or OccupiedIntervals(), rng)


def gc_bin(text: str, bins: int) -> int:
    known = [c for c in text if c in "ACGT"]
    return min(sum(c in "GC" for c in known) * bins // len(known), bins - 1)


@pytest.mark.parametrize("bins", [20, 4])
def test_windows_match_in_length_and_gc_bin_and_keep_apart(bins):
    genome = genome_of(random_letters(9000, 1), random_letters(300, 2), random_letters(9000, 3, (3, 1, 1, 3)))
    positives = [random_letters(n, n, (2, 1, 1, 2)) for n in (30, 31, 50) for _ in range(20)]
    windows = draw_from(genome, positives, bins=bins)
    assert all(windows)
    assert {w.strand for w in windows} == {"+", "-"}
    for positive, w in zip(positives, windows, strict=True):
        letters = genome.letters(w.start, w.end, w.strand)
        assert len(letters) == len(positive)
        assert gc_bin(letters, bins) == gc_bin(positive, bins)
        assert any(start <= w.start and w.end <= end for start, end in genome.contigs())
    spans = sorted((w.start, w.end) for w in windows)
    assert all(a[1] <= b[0] for a, b in pairwise(spans))


def test_letters_that_are_forbidden_or_unknown_are_never_touched():
    text = random_letters(3000, 5)
    text = text[:1000] + "N" + text[1001:2000] + "RY" + text[2002:]
    forbidden = {"+": Intervals.merge([(100, 200), (2500, 2600)]), "-": Intervals.merge([(500, 900)])}
    windows = draw_from(genome_of(text), ["ACGT" * 10] * 60, bins=0, forbidden=forbidden)
    kept = [w for w in windows if w]
    assert len(kept) > 30
    for w in kept:
        assert "N" not in text[w.start : w.end]
        assert not {1000, 2000, 2001} & set(range(w.start, w.end))
        assert all(w.end <= a or b <= w.start for a, b in forbidden[w.strand].pairs())


def test_where_there_are_too_few_all_are_found():
    # One window of 20 letters fits between the forbidden ones, on either strand, and it can be used once.
    genome = genome_of(random_letters(100, 7))
    forbidden = {s: Intervals.merge([(0, 40), (60, 100)]) for s in "+-"}
    windows = draw_from(genome, ["A" * 20] * 3, bins=0, forbidden=forbidden)
    assert Counter((w.start, w.end) if w else None for w in windows) == {(40, 60): 1, None: 2}


def test_rare_gc_is_found_by_looking_everywhere(monkeypatch):
    text = random_letters(50_000, 8)
    genome = genome_of(text[:30_000] + "A" * 10 + "G" * 40 + "A" * 10 + text[30_000:])
    [window] = draw_from(genome, ["C" * 40])
    assert 30_008 <= window.start <= 30_012  # 38 of 40 letters are in the last bin of 20
    monkeypatch.setattr(sampling, "MAX_CANDIDATES", 1000)  # of 100,000 places ten will do
    assert draw_from(genome, ["C" * 40]) == [None]


def test_overlap_as_far_as_allowed():
    genome = genome_of(random_letters(100, 9))
    for most in (0, 5, 19):
        windows = [w for w in draw_from(genome, ["A" * 20] * 50, bins=0, taken=OccupiedIntervals(most)) if w]
        spans = sorted((w.start, w.end) for w in windows)
        shared = [a[1] - b[0] for i, a in enumerate(spans) for b in spans[i + 1 :]]
        assert max(shared) <= most
        assert most == 0 or max(shared) > 0


def test_a_sequence_in_use_is_passed_over_on_either_strand():
    unit = random_letters(30, 10)
    genome = genome_of(unit)
    assert draw_from(genome, [unit], bins=0, taken=OccupiedIntervals(0, {unit})) == [None]
    backwards = genome.letters(0, 30, "-")
    assert draw_from(genome, [unit], bins=0, taken=OccupiedIntervals(0, {backwards})) == [None]
    assert draw_from(genome, [unit], bins=0)[0].start == 0


def test_taken_looks_left_as_far_as_the_longest():
    taken = OccupiedIntervals(2)
    taken.add(0, 100)
    taken.add(50, 55)
    assert not taken.is_free(90, 95)
    assert taken.is_free(98, 120)
    assert not taken.is_free(97, 120)


def test_candidates_are_drawn_evenly_and_all_of_them():
    room = {"+": Intervals.merge([(0, 3), (10, 12)]), "-": Intervals.merge([(5, 8)])}
    rng = np.random.default_rng(0)
    chunks = list(candidates(room, 1, rng))
    every = [(int(s), bool(m)) for starts, minus in chunks[1:] for s, m in zip(starts, minus, strict=True)]
    places = [(s, False) for s in (0, 1, 2, 10, 11)] + [(s, True) for s in (5, 6, 7)]
    assert sorted(every) == sorted(places)
    assert list(candidates({"+": NOTHING, "-": NOTHING}, 5, rng)) == []
    first = Counter()
    for seed in range(800):
        starts, minus = next(iter(candidates(room, 1, np.random.default_rng(seed))))
        first[int(starts[0]), bool(minus[0])] += 1
    # 100 expected at each of 8 places; sqrt(800 x 7/64) = 9.4, five of these.
    assert set(first) == set(places)
    assert max(abs(n - 100) for n in first.values()) < 47


@given(st.integers(20, 200), st.integers(1, 20), st.data())
def test_exactly_the_kept_segments_stay(length, segments, data):
    keep = data.draw(st.integers(0, segments - 1))
    seed = data.draw(st.integers(0, 1000))
    # Letters that are never drawn: what stays shows itself.
    codes = np.full(length, 9, dtype=np.uint8)
    result, kept = substitute_segments(codes, np.random.default_rng(seed), 4, segments, keep)
    assert len(set(kept.tolist())) == keep
    edges = [i * length // segments for i in range(segments + 1)]
    for number in range(segments):
        piece = result[edges[number] : edges[number + 1]]
        assert (piece == 9).all() if number in kept else (piece < 4).all()
