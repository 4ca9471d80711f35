"""The cards of the shipped models as pages, from the model files themselves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from seqray.core.card import Card
from seqray.core.text import headline_metric
from seqray.io.files import sha256
from seqray.modelfile import header
from seqray.modelfile.header import read_card

HEAD = """# Shipped models

They lie in the package; using them takes no network. Every page below is made from the description inside the
model file, which `seqray models show NAME` prints whole. How figures were measured, and what other tools
reach, is told under [accuracy](../accuracy.md).

| model | finds | window | measured |
|---|---|---|---|
"""


def pages() -> dict[str, str]:
    """Address and Markdown of each page."""
    cards = {name: read_card(header.locate_model(name)) for name in header.available_models()}
    rows = [
        f"| [{name}]({name}.md) | {escape(card.summary)} | {card.window} "
        f"| {escape(headline_metric(card.metrics))} |"
        for name, card in cards.items()
    ]
    made = {"models/index.md": HEAD + "\n".join(rows) + "\n"}
    return made | {f"models/{name}.md": page(name, card) for name, card in cards.items()}


def page(name: str, card: Card) -> str:
    """One card, laid out for people."""
    return "\n".join(
        [f"# {name}\n", f"{escape(card.summary)}.\n", *_use(name, card), *_figures(card), *_rest(name, card)]
    )


def _use(name: str, card: Card) -> Iterator[str]:
    verb = "scan genome.fa" if card.site is not None else "predict records.fa"
    out = "calls.gff3" if card.site is not None else "predictions.tsv"
    yield f"```console\n$ seqray {verb} --model {name} --out {out}\n```\n"
    yield "| fact | value |\n|---|---|"
    site = "none" if card.site is None else f"position {card.site} of the window, counted from 0"
    facts = {
        "classes": f"{', '.join(card.classes)}; looked for: {card.positive}",
        "window": f"{card.window} {'residues' if card.model.alphabet == 'protein' else 'bases'}",
        "site": site,
        "networks": card.members,
        "threshold for single windows": f"{card.threshold:.4g}",
        "prevalence in the calibration data": f"{card.prevalence:.4g}",
        "expected calibration error": f"{card.ece:.4g}",
        "contexts": ", ".join(card.model.contexts) or "none",
    }
    yield "\n".join(f"| {key} | {escape(value)} |" for key, value in facts.items()) + "\n"


def _figures(card: Card) -> Iterator[str]:
    yield "## Measured\n"
    yield f"{escape(headline_metric(card.metrics))}\n"
    yield "| data | figure | value | 95 % interval |\n|---|---|---|---|"
    for split, figures in sorted(card.metrics.items()):
        for metric, figure in sorted(_numbers(figures)):
            low, high = figure.get("low"), figure.get("high")
            interval = "" if low is None or high is None else f"{low:.4g} to {high:.4g}"
            yield f"| {escape(split)} | {escape(metric)} | {figure['value']:.4g} | {interval} |"
    yield ""


def _numbers(figures: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Metrics with a value; one level of nesting is written as ``a: b``."""
    if not isinstance(figures, Mapping) or "value" in figures:
        return
    for name, figure in figures.items():
        if isinstance(figure, int | float):
            yield name, {"value": figure}
        elif isinstance(figure, Mapping) and isinstance(figure.get("value"), int | float):
            yield name, figure
        elif isinstance(figure, Mapping):
            yield from ((f"{name}: {inner}", part) for inner, part in _numbers(figure))


def _rest(name: str, card: Card) -> Iterator[str]:
    for key, value in card.info.items():
        yield f"## {key.replace('_', ' ').capitalize()}\n"
        lines = [f"- {escape(line)}" for line in value] if isinstance(value, list) else [escape(value)]
        yield "\n".join(lines) + "\n"
    digest = sha256(header.locate_model(name))
    yield f"## File\n\nsha256 `{digest}`, written by seqray {card.seqray_version}.\n"


def escape(text: object) -> str:
    """Plain text as Markdown, in a table too."""
    plain = " ".join(str(text).split())
    for mark in "\\|*_<[":
        plain = plain.replace(mark, f"\\{mark}")
    return plain
