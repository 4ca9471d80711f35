"""Put the figures on other sources first on model cards: from transfer.tsv to results/<model>.card.json.

    python benchmarks/transfer_cards.py human-promoter-300 mouse-tata-promoter
    python benchmarks/restate_cards.py human-promoter-300 mouse-tata-promoter

Other figures of the file stay, so run `accuracy_cards.py` and `cross_validation.py --card` before. The
headline, which ``seqray models list`` shows, is the lowest AUROC on a set of another source. Sets whose
source is in training count with networks that were trained without it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from accuracy_page import read
from machine import RESULTS, script_parser
from transfer import LEFT_OUT, MEASURES, QUESTIONS, SHIFTS

INTERVAL = (("value", "auroc"), ("low", "low"), ("high", "high"))
OTHER, KNOWN = "another source", "source in training"


def card_figures(rows: Sequence[Mapping[str, str]], model: str) -> dict[str, Any]:
    """Figures of a model on what shares no 40-mer with training, cut in place and 5 letters off.

    Parameters
    ----------
    rows
        Of transfer.tsv.
    model
        Name of a shipped model.
    """
    notes = {question.model: question.without for question in QUESTIONS if question.beside == model}
    shown = [row for row in rows if row["protocol"] == "unrelated" and int(row["shift"]) in (0, min(SHIFTS))]
    found: dict[str, Any] = {}
    for name, note in (*notes.items(), (model, "")):
        source = KNOWN if notes and not note else OTHER
        for row in (row for row in shown if row["model"] == name):
            cut = f", cut {-int(row['shift'])} letters off" if row["shift"] != "0" else ""
            context = "" if row["context"] == "-" else f", {row['context']}"
            found[f"{source}, {row['set']}{context}{note and f', {note}'}{cut}"] = _figures(row)
    unseen = [row for row in shown if row["shift"] == "0" and _is_unseen(row["model"], model, notes)]
    lowest = min(unseen, key=lambda row: float(row["auroc"]))
    place = f"{lowest['set']}, {LEFT_OUT if notes else OTHER}"
    place += f"; the lowest of {len(unseen)} sets" if len(unseen) > 1 else ""
    return {"headline": {"metric": "auroc", "split": place, **_auroc(lowest)}, **found}


def _is_unseen(scored: str, model: str, notes: Mapping[str, str]) -> bool:
    """Whether the sets of a row are of a source that its model has not seen."""
    return notes.get(scored) == LEFT_OUT if notes else scored == model


def _figures(row: Mapping[str, str]) -> dict[str, Any]:
    measured = {name: float(row[name]) for name in (*MEASURES, "coverage", "floor_auroc", "floor_mcc")}
    return {"auroc": _auroc(row), **measured}


def _auroc(row: Mapping[str, str]) -> dict[str, float]:
    return {name: float(row[column]) for name, column in INTERVAL}


def put_first(path: Path, figures: Mapping[str, Any]) -> None:
    """Write the figures to a file of figures for a card, in place of earlier ones of the same kind."""
    before = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    kept = {name: value for name, value in before.items() if not name.startswith((OTHER, KNOWN, "headline"))}
    path.write_text(json.dumps({**figures, **kept}, indent=1) + "\n", encoding="utf-8")


def main() -> None:
    parser = script_parser(__doc__)
    parser.add_argument("models", nargs="+")
    _, rows = read(RESULTS / "transfer.tsv")
    for model in parser.parse_args().models:
        path = RESULTS / f"{model}.card.json"
        put_first(path, card_figures(rows, model))
        print(f"wrote {path.name}")


if __name__ == "__main__":
    main()
