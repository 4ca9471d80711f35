"""Means over species, and in how many a model is better."""

from types import SimpleNamespace

from locator_cards import FIGURES, rows_of


def card(**values):
    """Figures by species, with genes; half of that with letters alone."""
    tables = {
        f"{species}, region, {mode}": {figure: {"value": factor * value} for figure in FIGURES}
        for species, value in values.items()
        for mode, factor in (("with genes", 1), ("letters alone", 0.5))
    }
    return SimpleNamespace(
        metrics=tables | {"headline": {}, "x, species left out, with genes": {"auprc": {"value": 9}}}
    )


def test_a_row_has_the_mean_over_shared_species_and_in_how_many_a_model_is_better():
    rows = list(rows_of([("a", card(x=0.2, y=0.4, z=7)), ("b", card(x=0.3, y=0.4))]))
    assert len(rows) == 2 * 2 * len(FIGURES)
    assert rows[:2] == [
        ("a", "with genes", "auprc", 2, "0.3000", 0),
        ("b", "with genes", "auprc", 2, "0.3500", 1),
    ]
    assert rows[-1] == ("b", "letters alone", FIGURES[-1], 2, "0.1750", 1)
