"""Figures of locators from their cards, beside each other: on development regions, or on species left out.

    python benchmarks/locator_cards.py --model bacteria-genome longer.safetensors
    python benchmarks/locator_cards.py --split "species left out" --model bacteria-genome fold.safetensors

The mean of each figure over the species that all models state, with genes and with letters alone, and in how
many of them a model is better than the first. `seqray train` measured the figures when it made the models; of
species left out, the card of a shipped model states what its folds reach.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path

from machine import describe, script_parser, write_and_show
from seqray.core.card import Card
from seqray.modelfile.header import locate_model, read_card

COLUMNS = ("model", "genes", "figure", "species", "mean", "better_than_first")
FIGURES = ("auprc", "recall_at_0.5_per_kb", "recall_at_1_per_kb", "precision_at_1_per_kb")
SPLITS = ("region", "species left out")
MODES = ("with genes", "letters alone")


def figures_of(card: Card, split: str, mode: str, figure: str) -> dict[str, float]:
    """By species."""
    ending = f", {split}, {mode}"
    return {
        name.removesuffix(ending): table[figure]["value"]
        for name, table in card.metrics.items()
        if name.endswith(ending)
    }


def rows_of(cards: Sequence[tuple[str, Card]], split: str = SPLITS[0]) -> Iterator[tuple[object, ...]]:
    """A row for each mode, figure and model."""
    for mode, figure in product(MODES, FIGURES):
        tables = [figures_of(card, split, mode, figure) for _, card in cards]
        species = set.intersection(*map(set, tables))
        for (name, _), table in zip(cards, tables, strict=True):
            better = sum(table[one] > tables[0][one] for one in species)
            mean = sum(table[one] for one in species) / len(species)
            yield name, mode, figure, len(species), f"{mean:.4f}", better


def main(argv: Sequence[str] | None = None) -> None:
    """Write the table."""
    parser = script_parser(__doc__, "locator_cards.tsv")
    parser.add_argument("--model", nargs="+", required=True, help="shipped locators, or files")
    parser.add_argument("--split", choices=SPLITS, default=SPLITS[0])
    options = parser.parse_args(argv)
    cards = [(Path(name).name, read_card(locate_model(name))) for name in options.model]
    arguments = sys.argv[1:] if argv is None else argv
    write_and_show(
        options.out, COLUMNS, rows_of(cards, options.split), describe(["locator_cards.py", *arguments])
    )


if __name__ == "__main__":
    main()
