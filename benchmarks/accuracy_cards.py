"""Write what model cards show of benchmarks/results/accuracy.tsv: benchmarks/results/<model>.card.json.

    python benchmarks/accuracy_cards.py bacteria-promoter antimicrobial-peptide
    seqray train ... --metrics benchmarks/results/bacteria-promoter.card.json

The first row of a model is the one figure that ``seqray models`` lists.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from accuracy_page import TABLE, read
from machine import script_parser

FOLDER = TABLE.parent


def figures(rows: Sequence[Mapping[str, str]], model: str) -> dict[str, Any]:
    """Figures of one model: a mapping for the card, of its headline and of each set and protocol."""
    mine = [row for row in rows if row["model"] == model and row["low"]]
    if not mine:
        raise SystemExit(f"accuracy_cards: {TABLE.name} has no row with an interval for '{model}'")
    first = mine[0]
    what, _, over = first["measure"].removeprefix("mean ").partition(" of ")
    place = f"mean of {over}, {_place(first)}" if over else _place(first)
    found: dict[str, Any] = {"headline": {"metric": what, "split": place, **_figure(first)}}
    for row in mine:
        found.setdefault(f"{_place(row)}, model", {})[row["measure"]] = _figure(row)
        found.setdefault(f"{_place(row)}, floor", {})[row["measure"]] = float(row["floor"])
    return found


def _place(row: Mapping[str, str]) -> str:
    return ", ".join(filter(None, (row["set"], row["protocol"], row["condition"])))


def _figure(row: Mapping[str, str]) -> dict[str, float]:
    return {"value": float(row["seqray"]), "low": float(row["low"]), "high": float(row["high"])}


def main() -> None:
    parser = script_parser(__doc__)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--table", type=Path, default=TABLE)
    args = parser.parse_args()
    _, rows = read(args.table)
    for model in args.models:
        path = FOLDER / f"{model}.card.json"
        path.write_text(json.dumps(figures(rows, model), indent=1) + "\n", encoding="utf-8")
        print(f"wrote {path.name}")


if __name__ == "__main__":
    main()
