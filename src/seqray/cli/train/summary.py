"""What ``seqray train`` tells its user at the end."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from seqray.cli.common import calibration_cautions
from seqray.core import ALPHABETS

if TYPE_CHECKING:
    from seqray.training import TrainResult


FEW_HELD_OUT = 50
"""Fewer examples give figures that can be off by .2 and more: the standard error of an MCC of 0 is 1/√n."""


def summary(result: TrainResult, out: str) -> list[str]:
    """Summarize what was trained and its metrics on validation data."""
    card, facts = result.card, result.card.training
    counts = {part: sum(by_class.values()) for part, by_class in facts["counts"].items()}
    epochs = ", ".join(str(epoch) for epoch in facts["best_epochs"])
    kind = "alignments" if card.model.kind == "alignment" else "sequences"
    own, held_out = facts["held_out"] != counts["validation"], f"{facts['held_out']} {kind}"
    if own:  # each network has its own part
        held_out += f" (about {facts['held_out'] / card.members:.0f} that each network held out)"
    lines = [
        f"{'each network trained on about' if own else 'trained on'} {counts['train']} {kind} of "
        f"{len(card.classes)} classes; members: {card.members}; parameters of each: {facts['parameters']}; "
        f"best epochs: {epochs}",
        f"validation on {held_out}: {figures_line(result)}",
    ]
    if facts["held_out"] < FEW_HELD_OUT:
        lines.append(
            f"caution: {facts['held_out']} held-out {kind} are few: these figures may be far off; "
            "'seqray evaluate' gives intervals"
        )
    if facts["related_validation"]:
        from seqray.homology import kmer_length  # here, for it loads SciPy

        alphabet = ALPHABETS[card.model.alphabet]
        strands = ", on either strand" if alphabet.is_nucleotide else ""
        lines.append(
            f"caution: {facts['related_validation']} validation sequences have a relative in training (same "
            f"group, the same letters, or {kmer_length(alphabet)} letters in common{strands}), so these "
            "figures are too good; 'seqray split' keeps relatives together"
        )
    return [*lines, *calibration_cautions(facts["calibration"]), f"wrote {out}"]


def genome_summary(result: TrainResult, out: str) -> list[str]:
    """Summarize what a locator was trained on and its figures on the development regions."""
    from seqray.training import left_out_figures  # here, for it loads torch

    card, facts = result.card, result.card.training
    counts = dict(facts["counts"]["train"])
    letters = counts.pop("letters")
    sites = ", ".join(f"{count} {name}" for name, count in counts.items())
    epochs = ", ".join(str(epoch) for epoch in facts["best_epochs"])
    figures = _as_text(result.validation)
    repeated = facts["repeated_sites"]
    merged = f" ({repeated} rows that name a site again are merged)" if repeated else ""
    return [
        f"learned from {letters / 1e6:.2f} Mb (all strands together) of {len(facts['species'])} species, "
        f"with {sites} sites{merged}; members: {card.members}; parameters of each: {facts['parameters']}; "
        f"best epochs: {epochs}",
        f"development regions, mean over species: {figures} (threshold {card.threshold:.3f})",
        *(f"species left out, {name}: {_as_text(means)}" for name, means in left_out_figures(card).items()),
        f"wrote {out}",
    ]


def _as_text(figures: Mapping[str, float]) -> str:
    return " ".join(f"{name} {value:.3f}" for name, value in figures.items())


def figures_line(result: TrainResult) -> str:
    """Write the figures of merit of the calibrated model as one line.

    Of more than two classes they are means over the classes, and no threshold divides them.
    """
    names = ("mcc", "auroc", "auprc", "sensitivity", "specificity", "ece")
    figures = [f"{name} {result.validation[name]:.3f}" for name in names if name in result.validation]
    card = result.card
    several = len(card.classes) > 2
    settings = "" if several else f"threshold {card.threshold:.3f}, "
    return (
        f"{'mean of classes: ' if several else ''}{' '.join(figures)} "
        f"({settings}temperature {card.temperature:.3f})"
    )
