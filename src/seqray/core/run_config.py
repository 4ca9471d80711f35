"""Settings of a training, and how they are read from YAML."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal

from seqray.core.card import MAX_MEMBERS
from seqray.core.card_parts import Kingdom
from seqray.core.errors import ConfigError, field_name, require, require_ranges
from seqray.core.model_config import ModelConfig
from seqray.core.serialization import check_plain, from_mapping, parse_yaml, to_mapping
from seqray.core.text import Truncation, class_name_fault

# --- Every setting of a run; the shape of the network is in `seqray.core.model_config`

CalibrationMethod = Literal["temperature", "platt", "isotonic", "auto"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DataConfig:
    """What the sequences are."""

    window: int = 81  # length in letters that the model is trained on and scans with
    positive: str = "promoter"  # the class that ``scan`` looks for and whose probability metrics rank by
    site: int | None = None  # index of the transcription start within the window (0-based), for ``scan``
    # share of the training groups that all members hold out for early stopping and calibration, where the
    # data name no validation split
    validation: float = 0.15
    # letters on each side of the window that training sequences may carry, used by random shifts
    flank: int = 0
    # what is read of sequences longer than the window: the first and the last half of it (``ends``), its
    # first letters (``start``), or nothing (``none``), and they are refused. The model keeps this rule
    truncate: Truncation = "none"
    # whether the network learns the subclasses that the column ``subclass`` of the table names, such as
    # negatives made in different ways. Predictions name classes
    subclasses: bool = False

    def __post_init__(self) -> None:
        require_ranges(self, "data", window="1 or more")
        _require_class("data.positive", self.positive)
        if self.site is not None:
            require(0 <= self.site < self.window, "data.site", "must lie within the window")
        require_ranges(self, "data", validation="(0, 0.9)", flank="0 or more")
        fixed, rule = (
            self.flank > 0 or self.site is not None,
            "must be none where 'data.site' or 'flank' is set",
        )
        require(self.truncate == "none" or not fixed, "data.truncate", rule)


@dataclass(frozen=True, slots=True, kw_only=True)
class AugmentConfig:
    """Random changes to training sequences only."""

    # largest shift in letters, uniform on both sides; letters from the flank where there is one, else the end
    # that is uncovered becomes unknown
    shift: int = 0
    # probability that a sequence is shifted at all; below 1 the stated place counts more than its neighbors
    shift_share: float = 1.0
    mask: float = 0.0  # probability that a letter is replaced by the mask token
    # probability of reading the other strand; only where the class does not depend on the strand
    reverse_complement: float = 0.0
    # probability that the context of a sequence is withheld, so that the model also learns to do without
    hide_context: float = 0.0
    # of alignments: probability that another row takes the place of the query, for any member of a family is
    # of its class
    query: float = 0.0

    def __post_init__(self) -> None:
        require_ranges(self, "augment", shift="0 or more")
        require(0 < self.shift_share <= 1, "augment.shift_share", "must lie above 0 and up to 1")
        chances = dict.fromkeys(("reverse_complement", "hide_context", "query"), "[0, 1]")
        require_ranges(self, "augment", mask="[0, 1)", **chances)


@dataclass(frozen=True, slots=True, kw_only=True)
class OptimizerConfig:
    """AdamW with linear warm-up and cosine decay to a tenth of a percent of the peak rate."""

    learning_rate: float = 1e-3  # peak rate and decoupled decay (matrices only, not biases or norms)
    weight_decay: float = 0.01
    warmup: float = 0.1  # share of all steps over which the rate rises
    batch_size: int = 64  # sequences a step and device
    # ``balanced`` weighs each class by the inverse of its share, ``root`` by the square root of that, which
    # calls rare classes less often; ``none`` leaves the prior as it is
    class_weights: Literal["balanced", "root", "none"] = "none"
    # while training, this many times the log of each class's share is added to its logits, so that rare
    # classes must be told from common ones by a margin: 1 aims at the mean sensitivity over the classes,
    # about 0.5 at their mean MCC; 0 is off (Menon et al. 2021, arXiv:2007.07314, equation 10)
    logit_adjustment: float = 0.0
    label_smoothing: float = 0.0  # mass spread over the other classes
    # share of the target that comes from the probabilities of the teacher, where one is given
    teacher: float = 0.7
    # decay of an exponential moving average of the weights, which is then validated and saved; 0 is off
    ema: float = 0.0
    beta2: float = 0.999  # decay of AdamW's average of squared gradients

    def __post_init__(self) -> None:
        require(0 < self.learning_rate <= 10, "optimizer.learning_rate", "must be above 0 and at most 10")
        ranges = {"weight_decay": "between 0 and 1000", "warmup": "[0, 1)", "batch_size": "1 or more"}
        ranges |= {"logit_adjustment": "between 0 and 10", "label_smoothing": "[0, 1)", "teacher": "[0, 1]"}
        require_ranges(self, "optimizer", **ranges, ema="[0, 1)", beta2="(0, 1)")


@dataclass(frozen=True, slots=True, kw_only=True)
class GenomesConfig:
    """How a locator learns from genomes with mapped sites."""

    # names of the kinds of site, in the order of the outputs; ``data.positive`` alone by default
    classes: tuple[str, ...] = ()
    # names of sites in the files that count as another class, as in ``{internal: promoter}``
    rename: dict[str, str] = field(default_factory=dict)
    # letters that are read at once, a multiple of 4. ``optimizer.batch_size`` chunks make a step
    chunk: int = 2048
    steps_per_epoch: int = 200  # steps between two validations
    # chunks of the development regions that are scored after each epoch, as many of each species
    validation_chunks: int = 400
    # width of the target around a site, in letters: it is 1 at the site, and falls as a Gaussian
    sigma: float = 2.5
    # weight of stretches that may hold sites that nobody mapped: without a coding gene, at most 300 letters
    # before the start of one ahead, and no site near
    gap: float = 0.3
    # share of the chunks whose genes are hidden, so that the model also learns to do without
    hide: float = 0.3
    auxiliary: float = 0.2  # weight of predicting the hidden genes from the letters
    mutate: float = 0.02  # probability that a letter is replaced by a random one
    # that the model is for: scans look for its boxes, and genes of eukaryotes, with introns, aren't predicted
    kingdom: Kingdom = "bacteria"
    cut: float = 0.1  # probability that a chunk is cut at a random place, as by the end of a contig

    def __post_init__(self) -> None:
        require(len(set(self.classes)) == len(self.classes), "genomes.classes", "repeats a name")
        for name in self.classes:
            _require_class("genomes.classes", name)
        fits = self.chunk >= 64 and self.chunk % 4 == 0
        require(fits, "genomes.chunk", "must be a multiple of 4, and 64 or more")
        ranges = dict.fromkeys(("steps_per_epoch", "validation_chunks"), "1 or more")
        ranges |= {"sigma": "(0, 10]", "auxiliary": "0 or more"}
        ranges |= dict.fromkeys(("gap", "hide", "mutate", "cut"), "[0, 1]")
        require_ranges(self, "genomes", **ranges)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoppingConfig:
    """Which epoch is kept: the best by ``monitor`` on validation; ``patience`` epochs without gain end it."""

    monitor: Literal["mcc", "auprc", "loss"] = "mcc"
    patience: int = 10

    def __post_init__(self) -> None:
        require_ranges(self, "stopping", patience="1 or more")


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationConfig:
    """What turns scores into probabilities after training."""

    # ``temperature`` divides the logits by one number. For two classes ``platt`` also shifts them by one, and
    # ``isotonic`` maps them by an increasing function, given some hundred held-out examples or more. ``auto``
    # is ``platt`` where the held-out examples show that a shift is needed, else ``temperature``
    method: CalibrationMethod = "temperature"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunConfig:
    """One training run: everything that decides the model file, but the data."""

    name: str = "model"  # as the model card shows them
    summary: str = ""
    model: ModelConfig = field(default_factory=ModelConfig)
    data: DataConfig = field(default_factory=DataConfig)
    augment: AugmentConfig = field(default_factory=AugmentConfig)
    # of ``model.kind: locator``: how it learns from genomes
    genomes: GenomesConfig = field(default_factory=GenomesConfig)
    optimizer: OptimizerConfig = field(default_factory=OptimizerConfig)
    stopping: StoppingConfig = field(default_factory=StoppingConfig)
    calibration: CalibrationConfig = field(default_factory=CalibrationConfig)
    # goes to ``lightning.Trainer`` as it is: ``max_epochs``, ``precision``, ``accelerator``, ``devices``,
    # ``num_nodes``, ``strategy``, ...
    trainer: dict[str, Any] = field(default_factory=dict)
    # free text for the card: ``licence``, ``data``, ``use``, ``limits`` (a list), ``citation``. A number,
    # ``scan_threshold``, is the default threshold of ``scan``: sites are far more frequent in training data
    # than in a genome
    card: dict[str, Any] = field(default_factory=dict)
    # networks trained from different seeds into one file, 1 to 5; their log-probabilities are averaged
    members: int = 1
    # whether a linear model of k-mers and places is fitted, too, and added to the networks where held-out
    # examples are predicted better so, see `seqray.training.linear_part`
    floor: bool = False
    seed: int = 1  # of the first member; the others count up from it

    @property
    def max_epochs(self) -> Any:
        """Epochs of the training, as they were given."""
        return self.trainer.get("max_epochs", 30)

    def __post_init__(self) -> None:
        for one in fields(self):  # all of it is written to the model file
            check_plain(getattr(self, one.name), one.name)
        model, data, shift = self.model, self.data, self.augment.shift
        any_classes = self.calibration.method in ("temperature", "auto")
        is_word = self.name.isprintable() and bool(self.name) and not set(self.name) & set("/\\ ")
        own = "requires seqray's own tokenizers, not 'model.kind: backbone'"
        single = f"requires a model of single sequences, but 'model.kind' is {model.kind}"
        beyond = f"({data.window}) exceeds 'model.max_length' ({model.max_length}); set both"
        out = f"({shift}) moves all letters out of {field_name('data.window')} ({data.window})"
        rules = {
            "members": (1 <= self.members <= MAX_MEMBERS, f"must lie between 1 and {MAX_MEMBERS}"),
            "seed": (0 <= self.seed < 2**31, "must lie between 0 and 2^31 - 1"),
            "calibration.method": (
                any_classes or model.classes == 2,
                f"must be temperature or auto for {model.classes} classes",
            ),
            "floor": (
                not self.floor or model.can_be_linear,
                "requires 'model.kind: sequence' and the character tokenizer, or 'model.kind: alignment'",
            ),
            "augment.mask": (self.augment.mask == 0 or not model.has_backbone, own),
            "name": (is_word, "must be one word without slashes"),
            "data.truncate": (data.truncate == "none" or model.reads_sequences, single),
            "data.subclasses": (not data.subclasses or model.reads_sequences, single),
            "data.window": (data.window <= model.max_length, beyond),
            "augment.shift": (shift < data.window, out),
        }
        for name, (condition, rule) in rules.items():
            require(condition, name, rule)


def _require_class(key: str, name: str) -> None:
    fault = class_name_fault(name)
    require(not fault, key, f"is {name!r}, which {fault}")


# --- Settings of a run, read from YAML, and changed by the names of their keys

FROM_DATA = ("model.classes", "data.positive", "data.window")  # settings that labeled data state, too
MAX_TEXT = 1_000_000  # bytes of settings, or of figures for a card


def change_settings(config: RunConfig, changes: Mapping[str, Any]) -> RunConfig:
    """Return other settings: ``changes`` names them as in ``section.key``."""
    mapping = to_mapping(config)
    for path, value in changes.items():
        *sections, key = path.split(".")
        place: dict[str, Any] = mapping
        for section in sections:
            if not isinstance(place.get(section), dict):
                place[section] = {}
            place = place[section]
        place[key] = value
    return from_mapping(RunConfig, mapping)


def read_small_text(path: str | Path) -> str:
    """Text of a file that people write, of 1 MB at most, so that a pipe without an end ends here."""
    try:
        with open(path, "rb") as handle:
            data = handle.read(MAX_TEXT + 1)
    except OSError as error:
        raise ConfigError(f"can't be read ({error.strerror})", where=str(path)) from None
    if len(data) > MAX_TEXT:
        raise ConfigError(f"is larger than {MAX_TEXT} bytes", where=str(path), remedy="give a shorter file")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ConfigError("is not text in UTF-8", where=str(path), remedy="save it as UTF-8") from None


def load_run_config(path: str | Path) -> RunConfig:
    """Read a `RunConfig` from a YAML file."""
    return load_named_config(path)[0]


def load_named_config(path: str | Path) -> tuple[RunConfig, frozenset[str]]:
    """Read a `RunConfig` and the names of its settings in the file; those of `FROM_DATA` may be null."""
    text = read_small_text(path)
    try:
        mapping = parse_yaml(text)
        if mapping is None:
            raise ConfigError("holds no settings", remedy="write some as 'section: {key: value}'")
        named = _named_settings(mapping)
        return from_mapping(RunConfig, mapping), named
    except ConfigError as error:
        raise ConfigError(error.what, where=str(path), remedy=error.remedy) from None


def _named_settings(mapping: Any) -> frozenset[str]:
    """Settings of a mapping, from which those that the data may state are removed where they are null."""
    sections = (
        {name: part for name, part in mapping.items() if isinstance(part, dict)}
        if isinstance(mapping, dict)
        else {}
    )
    for path in FROM_DATA:
        section, key = path.split(".")
        if sections.get(section, {}).get(key, "") is None:
            del sections[section][key]
    return frozenset(f"{name}.{key}" for name, part in sections.items() for key in part)
