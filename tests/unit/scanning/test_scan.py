"""Scanning against a plain-Python reference, and coordinates of planted sites on paper."""

import math
import random
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from seqray.core.alphabet import DNA
from seqray.core.errors import ConfigError, InputError
from seqray.core.records import SequenceRecord, parse_region
from seqray.modelfile.model import TrainedModel
from seqray.scanning.options import ScanCallbacks, ScanOptions
from seqray.scanning.scan import scan_sequences
from seqray.scanning.scorers import WindowScorer, make_scorer

PAIRS = str.maketrans("ACGTN", "TGCAN")


def reverse_complement(text):
    return text.translate(PAIRS)[::-1]


def detector(score, window, site, threshold=0.5, **more):
    settings = {"threshold": threshold, "label": "promoter", "alphabet": DNA, **more}
    return partial(WindowScorer, score=score, window=window, site=site, **settings)


def scan(found, sequences, *, callbacks=None, **options):
    if isinstance(sequences, str):
        sequences = [SequenceRecord("c", sequences)]
    settings = ScanOptions(**{"null_mb": 0.0, **options})
    return scan_sequences(found(settings), sequences, callbacks or ScanCallbacks())


def rows(result):
    return [(c.contig, c.start, c.end, c.strand, c.site, c.score) for c in result.calls]


# --- a scorer without structure, and the procedure written out for one strand as text -----------------------

WINDOW, SITE = 9, 3
WEIGHTS = np.random.default_rng(7).normal(size=(WINDOW, 5))


def hashed(codes):
    """A number in (0, 1) that looks random but depends on the window alone."""
    mixed = sum(WEIGHTS[i][codes[:, i]] for i in range(WINDOW))
    return (np.sin(1000 * mixed) + 1) / 2


def strand_scores(text, strand, circular):
    """Score of the window at every start, or -1 where it holds more than a tenth of N."""
    around = text + text[: WINDOW - 1] if circular else text
    windows = [around[s : s + WINDOW] for s in range(len(around) - WINDOW + 1)]
    if strand == "-":
        windows = [reverse_complement(window) for window in windows]
    values = hashed(np.array([list(DNA.encode(window)) for window in windows], dtype=np.uint8))
    return [v if w.count("N") <= 0.1 * WINDOW else -1.0 for v, w in zip(values, windows, strict=True)]


def log_odds(p):
    return math.log(p / (1 - p)) if p > 0 else -math.inf


def reference(text, strand, circular, stride, threshold, margin, min_distance):
    """The documented procedure, step by step: {start: score} of the calls."""
    scores, length = strand_scores(text, strand, circular), len(text)
    last = length - WINDOW
    grid = list(range(0, length if circular else last + 1, stride))
    if not circular and grid[-1] != last:
        grid.append(last)
    value = [scores[s] for s in grid]
    best = []
    for i, start in enumerate(grid):
        left = value[i - 1] if i or circular else -1
        right = value[(i + 1) % len(grid)] if i + 1 < len(grid) or circular else -1
        if left > value[i] or right > value[i]:
            continue
        seen, spacing = {0: value[i]}, stride
        while spacing and log_odds(max(seen.values())) >= log_odds(threshold) - margin * spacing:
            spacing //= 2
            for d in range(1 - stride, stride) if spacing else ():
                s = (start + d) % length if circular else start + d
                if d % spacing == 0 and (circular or 0 <= s <= last):
                    seen[d] = scores[s]
        score, low = max((p, -d) for d, p in seen.items())
        if score >= threshold and spacing == 0:
            best.append(((start - low) % length, score))
    offset = SITE if strand == "+" else WINDOW - 1 - SITE
    kept = {}
    for start, score in sorted(set(best), key=lambda b: (-b[1], (b[0] + offset) % length)):
        gaps = [abs((start + offset) % length - (other + offset) % length) for other in kept]
        gaps = [min(gap, length - gap) if circular else gap for gap in gaps]
        if all(gap >= min_distance for gap in gaps):
            kept[start] = score
    return kept


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("circular", [False, True])
@pytest.mark.parametrize("stride", [1, 4, 10])
def test_scan_equals_the_reference(stride, circular, seed):
    rng = random.Random(seed)
    text = "".join(rng.choices("ACGTN", weights=[10, 10, 10, 10, 1], k=rng.randint(60, 400)))
    settings = {"stride": stride, "threshold": 0.9, "margin": 0.2, "min_distance": 15}
    result = scan(detector(hashed, WINDOW, SITE), text, circular=circular, piece=60, **settings)
    for strand in "+-":
        expected = reference(text, strand, circular, **settings)
        assert {c.start: c.score for c in result.calls if c.strand == strand} == expected
    assert len(result.calls) > 0


# --- planted motifs: coordinates and completeness -----------------------------------------------------------

MOTIF = "TATAAT"
BACKGROUND = "ACG"  # neither the motif nor its reverse complement can arise without a T
BUMP_WINDOW, BUMP_SITE = 41, 12


def bump(codes):
    """1 where the motif begins at the site, and 0.03 less for every letter that it lies to either side."""
    motif = DNA.encode(MOTIF)
    starts = np.lib.stride_tricks.sliding_window_view(codes, len(motif), axis=1)
    there = (starts == motif).all(axis=2)
    distance = np.abs(np.arange(there.shape[1]) - BUMP_SITE)
    return np.maximum(np.where(there, 1 - 0.03 * distance, 0).max(axis=1), 0.001)


def plant(length, plus=(), minus=(), seed=0):
    """A sequence with the first letter of a motif, read on its strand, at each site given."""
    letters = random.Random(seed).choices(BACKGROUND, k=length)
    for site, motif, first in [(s, MOTIF, s) for s in plus] + [
        (s, reverse_complement(MOTIF), s - len(MOTIF) + 1) for s in minus
    ]:
        assert 0 <= site < length
        for i, letter in enumerate(motif):
            letters[(first + i) % length] = letter
    return "".join(letters)


BUMP = detector(bump, BUMP_WINDOW, BUMP_SITE, threshold=0.98)


def test_planted_sites_are_found_at_their_place_on_both_strands():
    text = plant(500, plus=[137, 303], minus=[220, 411])
    result = scan(BUMP, text)
    assert rows(result) == [
        ("c", 137 - 12, 137 + 29, "+", 137, 1.0),
        ("c", 220 - 28, 220 + 13, "-", 220, 1.0),
        ("c", 303 - 12, 303 + 29, "+", 303, 1.0),
        ("c", 411 - 28, 411 + 13, "-", 411, 1.0),
    ]
    for call in result.calls:
        window = text[call.start : call.end]
        read = window if call.strand == "+" else reverse_complement(window)
        assert read[BUMP_SITE : BUMP_SITE + len(MOTIF)] == MOTIF


def test_a_circle_is_known_by_name_by_file_or_by_option():
    text = plant(207, plus=[3])
    record, circle = SequenceRecord("c", text), SequenceRecord("c", text, circular=True)
    assert len(scan(BUMP, [record]).calls) == 0
    for found in (
        scan(BUMP, [circle]),
        scan(BUMP, [record], circular_ids=("c",)),
        scan(BUMP, [record], circular=True),
    ):
        assert [c.site for c in found.calls] == [3]
        assert found.calls.circular == {"c"}
    with pytest.raises(InputError, match=r"'circular_ids': .*'chr'; did you mean 'c'"):
        scan(BUMP, [record], circular_ids=("chr",))
    with pytest.raises(ConfigError, match="'circular_ids' must be a tuple of names"):
        scan(BUMP, [record], circular_ids="c")


@pytest.mark.parametrize("seed", range(5))
def test_the_coarse_grid_loses_nothing_when_scores_rise_smoothly(seed):
    rng = random.Random(seed)
    sites = [s + rng.randrange(40) for s in range(60, 1900, 100)]
    text = plant(2000, plus=sites[::2], minus=sites[1::2], seed=seed)
    coarse, fine = scan(BUMP, text), scan(BUMP, text, stride=1)
    assert rows(coarse) == rows(fine)
    assert [c.site for c in sorted(coarse.calls, key=lambda c: c.site)] == sites


# --- what is left out ---------------------------------------------------------------------------------------


def test_windows_with_too_many_ambiguous_letters_are_not_scored():
    text = plant(300, plus=[100])
    four, five = text[:110] + "NRYK" + text[114:], text[:110] + "NRYKM" + text[115:]
    assert [c.site for c in scan(BUMP, four).calls] == [100]  # 4 of 41 letters
    assert scan(BUMP, five, stride=1).calls[:] == []
    assert [c.site for c in scan(BUMP, five, max_ambiguous=5 / 41).calls] == [100]


# --- parts --------------------------------------------------------------------------------------------------


def test_windows_reach_beyond_a_region_and_across_the_origin():
    text = plant(300, plus=[3, 100])
    assert [c.site for c in scan(BUMP, text, regions=(parse_region("c:101-101"),)).calls] == [100]
    assert scan(BUMP, text, regions=(parse_region("c:102-120"),)).calls[:] == []
    ring = scan(BUMP, text, regions=(parse_region("c:1-10"),), circular=True)
    assert [(c.start, c.site) for c in ring.calls] == [(291, 3)]


def test_contigs_outside_the_regions_are_passed_over():
    records = [SequenceRecord(name, plant(200, plus=[100])) for name in ("a", "b", "b:1-5", "c")]
    result = scan(BUMP, records, regions=(parse_region("b:1-5"), parse_region("c")))
    assert [(c.contig, c.site) for c in result.calls] == [("b:1-5", 100), ("c", 100)]
    with pytest.raises(InputError, match=r"--region chrb: .*no sequence named 'chrb'; did you mean 'b'"):
        scan(BUMP, records, regions=(parse_region("chrb"),))
    with pytest.raises(InputError, match="beyond the end of 'a', which has 200 bases"):
        scan(BUMP, records, regions=(parse_region("a:100-201"),))


# --- tracks, false calls, settings --------------------------------------------------------------------------


@pytest.mark.parametrize("circular", [False, True])
@pytest.mark.parametrize("piece", [25, 100_000])
def test_the_profile_ascends_and_tiles_the_contig(circular, piece):
    profiles, contigs = [], []
    heard = ScanCallbacks(on_profile=profiles.append, on_contig=lambda *c: contigs.append(c))
    scan(BUMP, plant(207), circular=circular, piece=piece, callbacks=heard)
    assert contigs == [("c", 207)]
    for strand, offset in (("+", 12), ("-", 28)):
        sites = np.concatenate([p.sites for p in profiles if p.strand == strand])
        gaps = np.concatenate([p.gaps for p in profiles if p.strand == strand])
        assert (np.diff(sites) == gaps[:-1]).all()
        starts = range(0, 207, 10) if circular else [*range(0, 167, 10), 166]
        assert sorted(sites.tolist()) == sorted((s + offset) % 207 for s in starts)
        assert gaps.sum() == (207 if circular else 167)


def graded(codes):
    """Share of letters that are those of a 12-letter site: random sequence reaches 9 of 12 now and then."""
    return (codes == DNA.encode("TTGACATATAAT")).mean(axis=1)


def test_an_fdr_finds_the_planted_sites():
    rng = random.Random(8)
    letters = rng.choices("ACGT", k=40_000)
    sites = list(range(500, 40_000, 400))
    for site in sites:
        letters[site : site + 12] = "TTGACATATAAT"
    result = scan(detector(graded, 12, 0), "".join(letters), stride=1, fdr=0.1, null_mb=0.2)
    # By chance 80,000 windows hold 80,000 (1 + 12 * 3 + 66 * 9) / 4^12 = 3 with 10 or more letters of 12, and
    # 80,000 * 220 * 27 / 4^12 = 28 more with 9: too many for 99 planted sites, where 3 are few enough.
    assert result.threshold is not None
    assert 9 / 12 < result.threshold <= 10 / 12
    assert {c.site for c in result.calls if c.score == 1} >= set(sites)
    assert result.false_calls is not None
    assert result.false_calls.expected <= 0.1 * len(result.calls)
    assert scan(detector(graded, 12, 0), "".join(letters), stride=1, threshold=result.threshold).calls[
        :
    ] == list(result.calls)


def test_the_share_of_windows_unlike_the_training_data():
    def no_g(codes):
        return (codes != 2).all(axis=1)

    found = detector(bump, BUMP_WINDOW, BUMP_SITE, out_of_domain=no_g)
    half = SequenceRecord("a", "A" * 1000 + "G" * 1000)
    unlike = scan(found, [half]).unlike
    assert unlike == pytest.approx(0.49, abs=0.02)  # (1000 - 40) of 1960 windows hold no G
    assert scan(found, [half], regions=(parse_region("a:1-500"),)).unlike == 1
    assert scan(BUMP, [half]).unlike is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"stride": 0}, "stride"),
        ({"threshold": 1.1}, "threshold"),
        ({"threshold": 0.5, "fdr": 0.1}, "both"),
        ({"fdr": 1.0}, "fdr"),
        ({"fdr": 0.1, "null_mb": 0.0}, "null_mb"),
        ({"null_mb": math.inf}, "null_mb"),
        ({"min_distance": 0}, "min_distance"),
        ({"max_ambiguous": 1.5}, "max_ambiguous"),
        ({"strand": "up"}, "strand"),
    ],
)
def test_settings_out_of_range(options, message):
    with pytest.raises(ConfigError, match=message):
        ScanOptions(**options)


def test_a_card_may_name_the_threshold_of_scans(tiny_model: TrainedModel) -> None:
    def threshold_with(info: dict[str, object]) -> float:
        card = replace(tiny_model.card, info=info)
        return make_scorer(TrainedModel(card, tiny_model.networks), ScanOptions()).threshold

    assert threshold_with({}) == tiny_model.card.threshold
    assert threshold_with({"scan_threshold": 0.9}) == 0.9
    for wrong in (0, 1, 2.5, "high", None):
        with pytest.raises(ConfigError, match="scan_threshold"):
            threshold_with({"scan_threshold": wrong})


# --- progress ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("strand", ["both", "plus"])
def test_progress_counts_letters_up_to_all_and_then_shuffled_ones(strand):
    text = "".join(np.random.default_rng(3).choice(list("ACGT"), 400))
    records = [SequenceRecord("a", text[:300]), SequenceRecord("b", text[300:])]
    reports = []
    callbacks = ScanCallbacks(on_progress=lambda *report: reports.append(report))
    options = {"piece": 50, "strand": strand, "null_mb": 0.0002}
    scan(detector(hashed, WINDOW, SITE), records, callbacks=callbacks, **options)
    own = [done for done, total, phase in reports if phase == "scan" and total is None]
    shuffled = [(done, total) for done, total, phase in reports if phase == "scan shuffled sequence"]
    assert len(own) > 4
    assert own == sorted(own)
    assert own[-1] == 400
    assert shuffled[-1][0] == shuffled[-1][1] > 0
