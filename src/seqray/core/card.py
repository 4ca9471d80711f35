"""The card of a model: all that a user must know before trusting a probability."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from seqray.core.arrays import Floats
from seqray.core.card_parts import Domain, HeldOutRanks, LocatorFacts, PrefilterFacts, RisingMap
from seqray.core.errors import ConfigError, ModelFileError, reading_card, setting
from seqray.core.model_config import BACKBONE_SETTINGS, LOCATOR_SETTINGS, ModelConfig
from seqray.core.serialization import from_mapping, to_mapping
from seqray.core.text import Truncation, class_name_fault, format_interval, format_number, headline_metric
from seqray.core.version import __version__

# The newest that is read; 2 for cards with an isotonic map, 3 with a prefilter, 4 with one of two networks.
CARD_FORMAT = 4
MAX_MEMBERS = 5
_TEMPERATURES = (1e-6, 1e6)


@dataclass(frozen=True, kw_only=True)
class Card:
    """Settings, calibration, provenance and self-test of one model file.

    An unknown key is ignored, but within ``model`` it is refused: there it would change what is computed.
    """

    format: int = 1  # version of this layout; raised only when an older seqray would misread the file
    name: str  # short name and one line about what the model classifies
    summary: str = ""
    seqray_version: str = __version__  # the version that wrote the file, and so one that can read it
    classes: tuple[str, ...]  # class names [K] in the order of the logits
    positive: str  # the class that ``scan`` looks for and whose probability the metrics rank by
    window: int  # length in letters of the training sequences
    # index of the transcription start within the window (0-based); None if there is none
    site: int | None = None
    truncate: Truncation = "none"  # what is read of longer sequences, see `seqray.core.run_config.DataConfig`
    model: ModelConfig  # shape of each network
    members: int = 1  # number of networks in the file, 1 to 5
    temperature: float = 1.0  # divides the mean log-probabilities of the members; fitted on held-out data
    # then maps the log-odds of the positive class; None for no map. A card with one has format 2
    isotonic: RisingMap | None = None
    threshold: float = 0.5  # probability of the positive class at and above which it is called
    prevalence: float = 0.5  # share of the positive class in the calibration data
    ece: float = 0.0  # expected calibration error on held-out data
    # what `predict --coverage` needs, by class; empty if not recorded
    conformal: dict[str, HeldOutRanks] = field(default_factory=dict)
    domain: Domain | None = None  # what the training sequences looked like; None if not recorded
    # of a locator: how calls are drawn, and what to expect of them. Empty for other kinds
    locator: LocatorFacts = field(default_factory=LocatorFacts)
    # of a model with a prefilter. A card with one has format 3, and 4 with a second network
    prefilter: PrefilterFacts | None = None
    # measured performance: for each split (and its floor) a mapping of metric to {value, low, high}.
    # ``headline``, if there, is the one figure that lists show: {metric, split, value, low, high}
    metrics: dict[str, Any] = field(default_factory=dict)
    # settings, seeds, versions, counts, and sha256 of the training data
    training: dict[str, Any] = field(default_factory=dict)
    # for people: licence, data, use, limits (a list), citation
    info: dict[str, Any] = field(default_factory=dict)
    # ``sequences`` and the ``logits`` that the file must give for them; written by `save_model`
    self_test: dict[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        facts = f"{self.model.kind}, {self.model.alphabet}, window {self.window}, networks {self.members}"
        return f"Card({self.name!r}: {facts}; classes {', '.join(self.classes[:12])};\n  {self.summary})"

    def __post_init__(self) -> None:
        _require(bool(self.name), "name", "is empty")
        _require(len(set(self.classes)) == len(self.classes), "classes", "repeats a name")
        for name in self.classes:
            fault = class_name_fault(name)
            _require(not fault, "classes", f"has the name {name!r}, which {fault}")
        _require(
            len(self.classes) == self.model.classes,
            "classes",
            f"names {len(self.classes)} but the network has {self.model.classes}",
        )
        _require(self.positive in self.classes, "positive", f"({self.positive!r}) is not one of the classes")
        _require(1 <= self.window <= self.model.max_length, "window", "is outside 1 to model.max_length")
        _require(self.site is None or 0 <= self.site < self.window, "site", "lies outside the window")
        _require(self.truncate == "none" or self.site is None, "truncate", "is not none beside a site")
        _require(1 <= self.members <= MAX_MEMBERS, "members", f"is outside 1 to {MAX_MEMBERS}")
        low, high = _TEMPERATURES
        _require(low <= self.temperature <= high, "temperature", f"is outside {low:g} to {high:g}")
        if self.isotonic is not None:
            _require(len(self.classes) == 2, "isotonic", "is for two classes")
            _require(self.format >= 2, "isotonic", "needs format 2")
        for name in ("threshold", "prevalence", "ece"):
            _require(0 <= getattr(self, name) <= 1, name, "is outside 0 to 1")
        _require(isinstance(self.training.get("config", {}), Mapping), "training.config", "is no mapping")
        missing = [name for name in self.classes if self.conformal and name not in self.conformal]
        _require(not missing, "conformal", f"lacks the class {', '.join(missing)}")
        if self.prefilter is not None:
            _require(self.format >= 3, "prefilter", "needs format 3")
            _require(self.prefilter.second is None or self.format >= 4, "prefilter.second", "needs format 4")
            by_member = self.prefilter.members
            fits = by_member is None or by_member.shape == (len(self.prefilter.levels), self.members - 1)
            _require(fits, "prefilter.members", "has no cutoff for each level and each network but the last")

    @property
    def positive_index(self) -> int:
        """Column of the positive class in the logits."""
        return self.classes.index(self.positive)

    def calibrate(self, probabilities: Floats) -> Floats:
        """Apply the isotonic map or shift, if any, to probabilities (N, K) after the temperature."""
        if self.isotonic is None:
            return probabilities
        return self.isotonic.of_probabilities(probabilities, self.positive_index)

    def trim_flanks(self, letters: str) -> str:
        """Cut to the window what carries the flanks of the training sequences (`DataConfig.flank`)."""
        with reading_card("training"):
            flank = int(self.training.get("config", {}).get("data", {}).get("flank", 0))
        carries = flank > 0 and len(letters) == self.window + 2 * flank
        return letters[flank : flank + self.window] if carries else letters

    @property
    def scan_threshold(self) -> float:
        """Threshold of scans: ``scan_threshold`` of `info`, or the one for single windows if it has none.

        Sites are far more frequent in training windows than in a genome: their best threshold calls too many.
        """
        threshold = self.info.get("scan_threshold", self.threshold)
        if not isinstance(threshold, int | float) or not 0 < threshold < 1:
            raise ConfigError(
                f"the model description's 'scan_threshold' is {threshold!r}",
                remedy=f"give {setting('threshold')}",
            )
        return float(threshold)


def _require(condition: bool, key: str, rule: str) -> None:
    if not condition:
        raise ModelFileError(f"model description: '{key}' {rule}")


def card_to_mapping(card: Card) -> dict[str, Any]:
    """Turn a card into plain data; a part that it lacks is empty."""
    mapping = to_mapping(card)
    return mapping | {name: {} for name in ("isotonic", "domain", "prefilter") if mapping[name] is None}


def card_from_mapping(mapping: Mapping[str, Any]) -> Card:
    """Build a card from plain data."""
    layout = mapping.get("format")
    if not isinstance(layout, int) or isinstance(layout, bool) or layout < 1:
        raise ModelFileError(f"model description: 'format' is {layout!r}, not a version number")
    if layout > CARD_FORMAT:
        writer = mapping.get("seqray_version", "a newer version")
        raise ModelFileError(
            f"model description of format {layout}, written by seqray {writer}; "
            f"this is seqray {__version__}, which reads up to format {CARD_FORMAT}",
            remedy=f"install seqray {writer} or later",
        )
    known = {f.name for f in fields(Card)}
    with reading_card("tables"):
        try:
            return from_mapping(Card, {key: value for key, value in mapping.items() if key in known})
        except ConfigError as error:
            raise ModelFileError(f"model description: {error.what}") from None


def card_to_json(card: Card) -> str:
    """Write a card as JSON with sorted keys: the same card gives the same text."""
    try:
        return json.dumps(card_to_mapping(card), sort_keys=True, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ModelFileError(f"model description: can't be written as JSON ({error})") from None


def describe_card(card: Card) -> list[str]:
    """Lines about a model for people, one fact each: what it reads, how well it does, its limits."""
    with reading_card("facts"):
        kind, info, training = card.model.kind, card.info, card.training
        unit = "residues" if card.model.alphabet == "protein" else "bases"
        reads = {
            "locator": f"genomes; {card.window} {unit} around each position, and genes where they are known",
            "alignment": f"alignments of up to {card.model.max_length} columns",
        }.get(kind, f"sequences of {'up to ' * (card.site is None)}{card.window} {unit}")
        calls = f"{card.positive}, from a score of {format_number(card.threshold, 3)}"
        if card.scan_threshold != card.threshold:
            calls += f"; in scans from {format_number(card.scan_threshold, 3)}"
        if card.locator.threshold_without_genes is not None:
            calls += f"; without genes from {format_number(card.locator.threshold_without_genes, 3)}"
        counts = training.get("counts", {}).get("train", {})
        facts = {
            "name": card.name,
            "summary": card.summary,
            "reads": reads,
            "classes": list(card.classes),
            "calls": calls if len(card.classes) <= 2 else "the most probable class",
            "networks": card.members,
            "measured": headline_metric(card.metrics, card.training).strip("-"),
            "trained on": ", ".join(
                f"{number} {unit if name == 'letters' else name}" for name, number in counts.items()
            ),
            **{
                key: info[key]
                for key in ("use", "data", "split", "limits", "licence", "citation")
                if key in info
            },
            "made with": f"seqray {card.seqray_version}",
        }
        return list(_lines(facts, 0))


def list_card(card: Card) -> list[str]:
    """All facts of a card that its kind of model uses, one a line; sizes replace tables of numbers."""
    with reading_card("facts"):
        mapping = card_to_mapping(card)
        if card.model.backbone is not None:
            mapping["model"] = {name: mapping["model"][name] for name in BACKBONE_SETTINGS}
        if card.model.is_locator:
            mapping["model"] = {name: mapping["model"][name] for name in LOCATOR_SETTINGS}
            for name in ("truncate", "temperature", "prevalence", "ece"):
                del mapping[name]
        if card.isotonic:
            mapping["isotonic"] = {"knots": len(card.isotonic.before)}
        mapping["conformal"] = {name: f"{part.n} held-out examples" for name, part in card.conformal.items()}
        mapping["self_test"] = {"sequences": len(card.self_test.get("sequences", ()))}
        mapping["domain"] = {"length": list(card.domain.length)} if card.domain else {}
        if card.locator.expected:
            species = sorted({table.species for table in card.locator.expected})
            mapping["locator"] |= {"probability": {}, "expected": {}, "species": species}
        return list(_lines(mapping, 0))


def _lines(mapping: Mapping[str, Any], indent: int) -> Iterator[str]:
    pad = "  " * indent
    for key, item in mapping.items():
        if item is None or item in ({}, [], ""):
            continue
        if isinstance(item, Mapping) and set(item) == {"value", "low", "high"}:
            interval = format_interval(item["low"], item["high"], ".4g")
            yield f"{pad}{key}: {format_number(item['value'], 4)}{interval}"
        elif isinstance(item, Mapping):
            yield f"{pad}{key}:"
            yield from _lines(item, indent + 1)
        elif isinstance(item, list) and any(isinstance(entry, str) and " " in entry for entry in item):
            yield f"{pad}{key}:"
            yield from (f"{pad}  - {entry}" for entry in item)
        elif isinstance(item, list):
            yield f"{pad}{key}: {', '.join(map(str, item))}"
        else:
            yield f"{pad}{key}: {format_number(item)}" if isinstance(item, float) else f"{pad}{key}: {item}"
