"""Windows that are cut around another place than the site of a model."""

from types import SimpleNamespace

import numpy as np
import pytest

from seqray.inference import origin as site_place
from seqray.inference.origin import find_shifted_site

WIDTH, SITE, WORD = 60, 30, np.array([3, 0, 3, 0, 0, 3, 2, 1])


@pytest.fixture
def model(monkeypatch):
    """A model that calls windows with a word at its site, and some others."""

    def score(model, rows, batch_size, precision):
        found = [(row[SITE : SITE + len(WORD)] == WORD).all() for row in rows]
        p = np.where(found, 0.9, 0.1 + 0.1 * np.array([row[0] for row in rows]) / 3)
        return np.stack((1 - p, p), axis=1)

    monkeypatch.setattr(site_place, "score_ragged", score)
    card = SimpleNamespace(window=WIDTH, site=SITE, positive_index=1, threshold=0.5)
    return SimpleNamespace(card=card, is_locator=False)


def windows(site, count=200, share=0.4, seed=0):
    rng = np.random.default_rng(seed)
    rows = rng.integers(0, 4, (count, WIDTH)).astype(np.uint8)
    rows[: round(share * count), site : site + len(WORD)] = WORD
    return list(rows)


@pytest.mark.parametrize("site", [18, 29, 37, 45])
def test_the_place_is_found(model, site, monkeypatch):
    monkeypatch.setattr(site_place, "STEP", 1)  # the word has no neighbors
    found = find_shifted_site(model, windows(site))
    assert found is not None
    assert (found.site, found.windows, found.before) == (site, 128, 0)
    assert found.after == pytest.approx(0.4 * 128, abs=15)


@pytest.mark.parametrize("rows", [windows(SITE), windows(0, share=0), windows(37, count=49)])
def test_nothing_is_found_where_nothing_is(model, rows):
    assert find_shifted_site(model, rows) is None


def test_records_of_other_lengths_and_models_without_a_site_are_left_alone(model):
    assert find_shifted_site(model, [row[:-1] for row in windows(35)]) is None
    model.card.site = None
    assert find_shifted_site(model, windows(35)) is None
