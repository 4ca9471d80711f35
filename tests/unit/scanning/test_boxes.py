"""Boxes of promoters: the literature's, planted ones, and how often chance shows one."""

import numpy as np
import pytest

from seqray.core.alphabet import DNA
from seqray.io.records import read_fasta
from seqray.scanning.calls import BOX_REACH, NO_BOX, find_boxes

SITE = 60

# Boxes and spacers as in Hawley and McClure 1983, or the papers that the headers of the file name.
LITERATURE = {
    "lacP1": ("TTTACA", 18, "TATGTT"),
    "lacUV5": ("TTTACA", 18, "TATAAT"),
    "trp": ("TTGACA", 17, "TTAACT"),
    "recA": ("TTGATA", 16, "TATAAT"),
    "rrnB_P1": ("TTGTCA", 16, "TATAAT"),
    "tyrT": ("TTTACA", 16, "TATGAT"),
    "lambda_PR": ("TTGACT", 17, "GATAAT"),
    "lambda_PL": ("TTGACA", 17, "GATACT"),
    "lambda_PRM": ("TAGATA", 17, "TAGATT"),
    "T7_A1": ("TTGACT", 17, "GATACT"),
    "bla_P3": ("TTCAAA", 17, "GACAAT"),
}


def one(sequence, site=SITE):
    """Offsets and letters of the boxes of one sequence."""
    found = find_boxes(DNA.encode(sequence)[None], site)
    ten, thirty_five = int(found.minus10[0]), int(found.minus35[0])
    letters = [sequence[site + first : site + first + 6] if first else None for first in (thirty_five, ten)]
    return thirty_five, ten, *letters, bool(found.extended[0])


@pytest.fixture(scope="module")
def known(request):
    path = request.config.rootpath / "data" / "example" / "promoters.fa"
    return {record.id: record.sequence for record in read_fasta(path, DNA)}


@pytest.mark.parametrize("name", LITERATURE)
def test_boxes_of_known_promoters(known, name):
    thirty_five, ten, first, last, _ = one(known[name])
    assert (first, ten - thirty_five - 6, last) == LITERATURE[name]
    assert known[name].count(first) == 1 or first == "TTTACA"  # the place is as certain as the letters


def test_an_extended_box_without_a_partner(known):
    # galP1 works without a -35 box, by TG one letter before TATGGT (Keilty and Rosenberg 1987).
    assert one(known["galP1"])[2:] == (None, "TATGGT", True)


def test_promoters_that_need_activators_show_no_boxes(known):
    assert one(known["araBAD"]) == (NO_BOX, NO_BOX, None, None, False)


def planted(distance, spacer, minus35="TTGACA", minus10="TATAAT", gap="C"):
    """A site at index 60 whose -10 box ends so many letters before; the rest is C."""
    before = minus35 + gap * spacer + minus10 + gap * (distance - 1)
    return (gap * SITE + before)[-SITE:] + gap * 21


@pytest.mark.parametrize("distance", range(2, 13))
@pytest.mark.parametrize("spacer", range(13, 22))
def test_boxes_are_found_at_the_distances_stated(distance, spacer):
    thirty_five, ten, *_ = one(planted(distance, spacer))
    inside = 4 <= distance <= 10
    assert ten == (-distance - 5 if inside else NO_BOX)
    paired = inside and 15 <= spacer <= 19
    assert thirty_five == (ten - spacer - 6 if paired else NO_BOX)


def test_a_usual_arrangement_beats_an_unusual_one():
    # Two equal -10 boxes, ending 7 and 13 letters before the site: the usual one is taken.
    sequence = ("C" * SITE + "TATAATTATAAT" + "C" * 6)[-SITE:] + "C" * 21
    assert one(sequence)[1] == -12


def test_unknown_letters_make_no_box():
    assert one(planted(7, 17, minus10="TATANT"))[1] == NO_BOX
    assert one(planted(7, 17, minus35="TTNACA"))[:2] == (NO_BOX, -12)
    assert one("N" * 81) == (NO_BOX, NO_BOX, None, None, False)


def test_the_reach_is_all_that_is_read():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 4, (500, 81), dtype=np.uint8)
    other = codes.copy()
    other[:, : SITE - BOX_REACH] = rng.integers(0, 4, (500, SITE - BOX_REACH), dtype=np.uint8)
    other[:, SITE:] = 4
    for one_way, other_way in zip(find_boxes(codes, SITE), find_boxes(other, SITE), strict=True):
        assert np.array_equal(one_way, other_way)


@pytest.mark.parametrize(("gc", "pair", "alone"), [(0.3, 0.16, 0.09), (0.5, 0.04, 0.03), (0.7, 0.005, 0.005)])
def test_chance_shows_boxes_as_often_as_stated(gc, pair, alone):
    rng = np.random.default_rng(1)
    shares = [(1 - gc) / 2, gc / 2, gc / 2, (1 - gc) / 2]
    found = find_boxes(rng.choice(4, (20_000, 81), p=shares).astype(np.uint8), SITE)
    two, ten = found.minus35 != NO_BOX, found.minus10 != NO_BOX
    assert two.mean() == pytest.approx(pair, abs=0.01)
    assert (ten & ~two).mean() == pytest.approx(alone, abs=0.01)
    assert not (two & ~ten).any()
