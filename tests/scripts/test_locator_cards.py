"""Means over species, and in how many a model is better."""

from types import SimpleNamespace

from locator_cards import FIGURES, rows_of


def card(epochs, **values):
    """Figures by species, with genes; half of that with letters alone."""
    tables = {
        f"{species}, region, {mode}": {figure: {"value": factor * value} for figure in FIGURES}
        for species, value in values.items()
        for mode, factor in (("with genes", 1), ("letters alone", 0.5))
    }
    config = {"genomes": {"steps_per_epoch": 500}, "trainer": {"max_epochs": epochs}}
    other = {"headline": {}, "x, species left out, with genes": {"auprc": {"value": 9}}}
    return SimpleNamespace(metrics=tables | other, members=3, training={"config": config})


def test_a_row_has_the_mean_and_the_species_that_are_better():
    rows = list(rows_of([("a", card(22, x=0.2, y=0.4)), ("b", card(36, x=0.3, y=0.4))]))
    assert len(rows) == 2 * 2 * len(FIGURES)
    assert rows[0] == ("a", 11_000, 3, "with genes", "auprc", 2, "0.3000", 0)
    assert rows[-1] == ("b", 18_000, 3, "letters alone", FIGURES[-1], 2, "0.1750", 1)
