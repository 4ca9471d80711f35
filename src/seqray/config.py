"""Every setting of a model and of its training: frozen dataclasses, read from YAML."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import yaml

from seqray.errors import ConfigError
from seqray.mapping import from_mapping

# What of `ModelConfig` a model on a backbone has; its directory settles the rest.
LONGEST_WORDS = {"dna": 7, "rna": 7, "protein": 3}  # of a table of all words: 16384 or 8000 rows
BACKBONE_SETTINGS = ("kind", "backbone", "alphabet", "classes", "dropout", "max_length")


def _require(condition: bool, key: str, rule: str) -> None:
    if not condition:
        raise ConfigError(f"'{key}' {rule}")


def _refuse_set(settings: Any, section: str, names: Iterable[str], rule: str) -> None:
    """Refuse the first of these settings that doesn't stand at its default."""
    defaults = {f.name: f.default for f in dataclasses.fields(settings)}
    for name in names:
        _require(getattr(settings, name) == defaults[name], f"{section}.{name}", rule)


@dataclass(frozen=True, slots=True, kw_only=True)
class StemConfig:
    """Convolutions before attention: local detectors first, attention over fewer tokens.

    Attributes
    ----------
    kernels
        Widths of the parallel first convolutions, odd; their channels are concatenated to ``d_model``.
    stride
        Letters per token after the stem.
    depth
        Residual convolutions of width 5 at full resolution before the stride is taken.
    """

    kernels: tuple[int, ...] = (7,)
    stride: int = 1
    depth: int = 0

    def __post_init__(self) -> None:
        _require(len(self.kernels) > 0, "stem.kernels", "needs at least one width")
        _require(
            all(k > 0 and k % 2 == 1 for k in self.kernels), "stem.kernels", "takes odd widths of 1 or more"
        )
        _require(1 <= self.stride <= 64, "stem.stride", "lies between 1 and 64")
        _require(0 <= self.depth <= 8, "stem.depth", "lies between 0 and 8")


@dataclass(frozen=True, slots=True, kw_only=True)
class BackboneConfig:
    """An encoder that others trained, in a directory as Hugging Face's transformers writes it.

    Attributes
    ----------
    path
        The directory; relative to where the command runs.
    tuning
        What is trained beside the head: nothing (``frozen``), low-rank additions to some matrices (``lora``)
        or the whole encoder (``full``).
    rank, alpha
        Of ``lora``: the additions are alpha / rank times a product of two matrices of that rank.
    targets
        Of ``lora``: names of the linear maps that are added to; those of query and value by default.
    pooling
        What the head reads: the final state of CLS (``cls``) or the mean over the letters' tokens (``mean``);
        ``auto`` is CLS where the tokenizer adds one.
    name, files, width
        Filled in by training: the directory's name, the sha256 of each file that decides what it computes,
        and the size of its states. Another directory is refused; where ``files`` are given, by training too.
    """

    path: str = ""
    tuning: Literal["frozen", "lora", "full"] = "frozen"
    rank: int = 8
    alpha: float = 16.0
    targets: tuple[str, ...] = ()
    pooling: Literal["auto", "cls", "mean"] = "auto"
    name: str = ""
    files: dict[str, str] = field(default_factory=dict)
    width: int = 0

    def __post_init__(self) -> None:
        _require(self.rank >= 1, "model.backbone.rank", "is 1 or more")
        _require(self.alpha > 0, "model.backbone.alpha", "is above 0")
        _require(all(self.targets), "model.backbone.targets", "are names, none of them empty")
        if self.tuning != "lora":
            _refuse_set(self, "model.backbone", ("rank", "alpha", "targets"), "goes with 'tuning: lora' only")


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelConfig:
    """The shape of a `SequenceTransformer` or `AxialTransformer`; letters in brackets are those of the docs.

    Attributes
    ----------
    kind
        ``sequence`` reads single sequences, ``alignment`` alignments by axial attention. The latter has the
        character tokenizer, multi-head attention, no stem that merges letters, no contexts, gain or matrix.
        ``backbone`` reads single sequences with an encoder that others trained: it settles tokens and shape,
        so that only ``backbone``, ``alphabet``, ``classes``, ``dropout`` (before the head) and ``max_length``
        remain to be set.
    backbone
        Of ``backbone``: which encoder, and what of it is trained.
    tied
        Of ``alignment``: whether all rows share the weights of row attention.
    max_rows, row_choice
        Of ``alignment``: most rows that the model reads, the query counted, and which ones, see
        `seqray.alignment_rows.choose_rows`.
    alphabet
        Letters that the model reads.
    tokenizer, k
        ``character`` (one token a letter) or ``kmer`` (overlapping words of ``k`` letters).
    classes
        Number of classes [K].
    d_model
        Model width [D].
    layers
        Number of blocks.
    heads, kv_heads
        Query heads [H], and key/value heads: equal to ``heads`` (the default, multi-head), fewer
        (grouped-query) or 1 (multi-query).
    d_ff
        Width of the feed-forward layer; 4D by default.
    activation
        Of the feed-forward layer and the stem.
    dropout
        Applied to embeddings, attention output and feed-forward output while training.
    positions
        ``sinusoidal``, ``learned`` or ``rotary``.
    position_gain
        A trained factor for each letter position and channel, for data whose sites stand at a fixed index:
        ``none``, ``shared``, or ``context``, which adds one for each context.
    position_matrix, matrix_rank
        A trained vector for each letter at each position, for the same data, as in a position weight matrix:
        ``none``, ``shared`` or ``context``; and in how many dimensions they lie.
    ends
        This many letters at either end of a sequence, or of each row, count by their distance to it: a
        trained vector for each letter at each of these places. For sequences of different lengths; 0 is none.
        Not with k-mers or a stem that merges letters.
    words
        Longest words that count as such, 2 letters or more: a trained vector for each word of 2 to so many
        letters, added where it begins; in rows of an alignment past gaps. 0 is none. For small data sets.
        Not with k-mers.
    helices
        Of ``alignment``, RNA or DNA: whether the network is told which columns pair, see
        `seqray.models.helices`.
    max_length
        Longest input in letters or columns (learned tables have that many rows, others take it as a limit).
    stem
        Optional convolutional stem; of ``alignment`` along each row.
    contexts
        Names of what else may be known of a sequence, such as its species. The vector of the one that is
        given is added to every token; without one nothing is added.
    """

    alphabet: Literal["dna", "rna", "protein"] = "dna"
    tokenizer: Literal["character", "kmer"] = "character"
    k: int = 1
    classes: int = 2
    d_model: int = 64
    layers: int = 3
    heads: int = 4
    kv_heads: int | None = None
    d_ff: int | None = None
    activation: Literal["relu", "gelu"] = "gelu"
    dropout: float = 0.1
    positions: Literal["sinusoidal", "learned", "rotary"] = "sinusoidal"
    position_gain: Literal["none", "shared", "context"] = "none"
    position_matrix: Literal["none", "shared", "context"] = "none"
    matrix_rank: int = 8
    max_length: int = 1024
    stem: StemConfig | None = None
    contexts: tuple[str, ...] = ()
    kind: Literal["sequence", "alignment", "backbone"] = "sequence"
    tied: bool = True
    max_rows: int = 64
    row_choice: Literal["diverse", "random"] = "diverse"
    ends: int = 0
    words: int = 0
    helices: bool = False
    backbone: BackboneConfig | None = None

    def __post_init__(self) -> None:
        if self.kind == "backbone":
            self._check_backbone()
        else:
            _require(self.backbone is None, "model.backbone", "goes with 'model.kind: backbone' only")
        _require(self.max_rows >= 1, "model.max_rows", "is 1 or more")
        if self.kind == "alignment":
            self._check_alignment()
        _require(
            not self.helices or (self.kind == "alignment" and self.alphabet != "protein"),
            "model.helices",
            "goes with alignments ('model.kind') of rna or dna ('model.alphabet') only",
        )
        _require(0 <= self.ends <= self.max_length, "model.ends", "lies between 0 and 'model.max_length'")
        _require(
            self.ends == 0
            or (self.tokenizer == "character" and (self.stem is None or self.stem.stride == 1)),
            "model.ends",
            "goes with the character tokenizer and a stem of stride 1 only",
        )
        longest = LONGEST_WORDS[self.alphabet]
        _require(
            self.words == 0 or 2 <= self.words <= longest,
            "model.words",
            f"is 0, or 2 to {longest} for {self.alphabet}",
        )
        _require(
            self.words == 0 or self.tokenizer == "character",
            "model.words",
            "goes with the character tokenizer only",
        )
        _require(all(self.contexts), "model.contexts", "are names, none of them empty")
        _require(len(set(self.contexts)) == len(self.contexts), "model.contexts", "repeats a name")
        _require(self.classes >= 2, "model.classes", "is 2 or more")
        _require(self.layers >= 1, "model.layers", "is 1 or more")
        for name in ("position_gain", "position_matrix"):
            _require(
                getattr(self, name) != "context" or bool(self.contexts),
                f"model.{name}",
                "is context only with 'model.contexts'",
            )
        _require(self.matrix_rank >= 1, "model.matrix_rank", "is 1 or more")
        _require(self.heads >= 1, "model.heads", "is 1 or more")
        _require(
            self.d_model >= self.heads and self.d_model % self.heads == 0,
            "model.d_model",
            f"({self.d_model}) must be a multiple of 'model.heads' ({self.heads})",
        )
        _require(self.d_model % 2 == 0, "model.d_model", "is even")
        if self.positions == "rotary":
            _require(
                (self.d_model // self.heads) % 2 == 0,
                "model.heads",
                "must give heads of even width for rotary",
            )
        if self.kv_heads is not None:
            _require(
                1 <= self.kv_heads <= self.heads and self.heads % self.kv_heads == 0,
                "model.kv_heads",
                f"({self.kv_heads}) must divide 'model.heads' ({self.heads})",
            )
        _require(self.d_ff is None or self.d_ff >= 1, "model.d_ff", "is 1 or more")
        _require(0 <= self.dropout < 1, "model.dropout", "lies in [0, 1)")
        _require(self.max_length >= 1, "model.max_length", "is 1 or more")
        if self.tokenizer == "character":
            _require(self.k == 1, "model.k", "is 1 for the character tokenizer")
        else:
            _require(2 <= self.k <= 8, "model.k", "lies between 2 and 8 for the k-mer tokenizer")
        if self.stem is not None:
            _require(self.tokenizer == "character", "model.stem", "goes with the character tokenizer only")
            _require(
                self.d_model % len(self.stem.kernels) == 0,
                "model.stem.kernels",
                "must divide 'model.d_model' by their number",
            )

    def _check_backbone(self) -> None:
        settled = [f.name for f in dataclasses.fields(self) if f.name not in BACKBONE_SETTINGS]
        _refuse_set(self, "model", settled, "is settled by the backbone; leave it out")
        if self.backbone is None:  # its directory may be named on the command line alone
            object.__setattr__(self, "backbone", BackboneConfig())

    def _check_alignment(self) -> None:
        why = "goes with 'model.kind: sequence' only"
        _require(self.tokenizer == "character", "model.tokenizer", f"'kmer' {why}")
        _require(self.kv_heads in (None, self.heads), "model.kv_heads", f"below 'model.heads' {why}")
        _require(self.stem is None or self.stem.stride == 1, "model.stem.stride", f"above 1 {why}")
        _require(not self.contexts, "model.contexts", why)
        _require(self.position_gain == "none", "model.position_gain", why)
        _require(self.position_matrix == "none", "model.position_matrix", why)


@dataclass(frozen=True, slots=True, kw_only=True)
class DataConfig:
    """What the sequences are.

    Attributes
    ----------
    window
        Length in letters that the model is trained on and scans with.
    positive
        The class that ``scan`` looks for and whose probability metrics rank by.
    site
        Index of the transcription start within the window (0-based), for ``scan``.
    validation
        Share of the training groups that each member holds out for early stopping and calibration, another
        one for each, where the data name no validation split.
    flank
        Letters on each side of the window that training sequences may carry, used by random shifts.
    """

    window: int = 81
    positive: str = "promoter"
    site: int | None = None
    validation: float = 0.15
    flank: int = 0

    def __post_init__(self) -> None:
        _require(self.window >= 1, "data.window", "is 1 or more")
        _require(bool(self.positive), "data.positive", "names a class")
        if self.site is not None:
            _require(0 <= self.site < self.window, "data.site", "lies within the window")
        _require(0 < self.validation < 0.9, "data.validation", "lies in (0, 0.9)")
        _require(self.flank >= 0, "data.flank", "is 0 or more")


@dataclass(frozen=True, slots=True, kw_only=True)
class AugmentConfig:
    """Random changes to training sequences only.

    Attributes
    ----------
    shift
        Largest shift in letters, uniform on both sides; letters from the flank where there is one, else
        the end that is uncovered becomes unknown.
    mask
        Probability that a letter is replaced by the mask token.
    reverse_complement
        Probability of reading the other strand; only where the class does not depend on the strand.
    hide_context
        Probability that the context of a sequence is withheld, so that the model also learns to do without.
    rows
        Of alignments: most rows to read while training; None for all that the model reads. Fewer are faster.
    query
        Of alignments: probability that another row takes the place of the query, for any member of a family
        is of its class.
    """

    shift: int = 0
    mask: float = 0.0
    reverse_complement: float = 0.0
    hide_context: float = 0.0
    rows: int | None = None
    query: float = 0.0

    def __post_init__(self) -> None:
        _require(self.shift >= 0, "augment.shift", "is 0 or more")
        _require(0 <= self.mask < 1, "augment.mask", "lies in [0, 1)")
        _require(0 <= self.reverse_complement <= 1, "augment.reverse_complement", "lies in [0, 1]")
        _require(0 <= self.hide_context <= 1, "augment.hide_context", "lies in [0, 1]")
        _require(self.rows is None or self.rows >= 1, "augment.rows", "is 1 or more")
        _require(0 <= self.query <= 1, "augment.query", "lies in [0, 1]")


@dataclass(frozen=True, slots=True, kw_only=True)
class OptimizerConfig:
    """AdamW with linear warm-up and cosine decay to a tenth of a percent of the peak rate.

    Attributes
    ----------
    learning_rate, weight_decay
        Peak rate and decoupled decay (matrices only, not biases or norms).
    warmup
        Share of all steps over which the rate rises.
    batch_size
        Sequences a step and device.
    class_weights
        ``balanced`` weighs each class by the inverse of its share, ``root`` by the square root of that, which
        calls rare classes less often; ``none`` leaves the prior as it is.
    label_smoothing
        Mass spread over the other classes.
    teacher
        Share of the target that comes from the probabilities of the teacher, where one is given.
    ema
        Decay of an exponential moving average of the weights, which is then validated and saved; 0 is off.
    """

    learning_rate: float = 1e-3
    weight_decay: float = 0.01
    warmup: float = 0.1
    batch_size: int = 64
    class_weights: Literal["balanced", "root", "none"] = "none"
    label_smoothing: float = 0.0
    teacher: float = 0.7
    ema: float = 0.0

    def __post_init__(self) -> None:
        _require(self.learning_rate > 0, "optimizer.learning_rate", "is above 0")
        _require(self.weight_decay >= 0, "optimizer.weight_decay", "is 0 or more")
        _require(0 <= self.warmup < 1, "optimizer.warmup", "lies in [0, 1)")
        _require(self.batch_size >= 1, "optimizer.batch_size", "is 1 or more")
        _require(0 <= self.label_smoothing < 1, "optimizer.label_smoothing", "lies in [0, 1)")
        _require(0 <= self.teacher <= 1, "optimizer.teacher", "lies in [0, 1]")
        _require(0 <= self.ema < 1, "optimizer.ema", "lies in [0, 1)")


@dataclass(frozen=True, slots=True, kw_only=True)
class StoppingConfig:
    """Which epoch is kept: the best by ``monitor`` on validation; ``patience`` epochs without gain end it."""

    monitor: Literal["mcc", "auprc", "loss"] = "mcc"
    patience: int = 10

    def __post_init__(self) -> None:
        _require(self.patience >= 1, "stopping.patience", "is 1 or more")


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationConfig:
    """What turns scores into probabilities after training.

    Attributes
    ----------
    method
        ``temperature`` divides the logits by one number. For two classes ``platt`` also shifts them by one,
        and ``isotonic`` bends them by a rising map, given some hundred held-out examples or more.
    """

    method: Literal["temperature", "platt", "isotonic"] = "temperature"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunConfig:
    """One training run: everything that decides the model file, but the data.

    Attributes
    ----------
    name, summary
        As the model card shows them.
    card
        Free text for the card: ``licence``, ``data``, ``use``, ``limits`` (a list), ``citation``. A number,
        ``scan_threshold``, is where ``scan`` calls unless told otherwise: training data hold far more sites
        than a genome does.
    trainer
        Goes to ``lightning.Trainer`` as it is: ``max_epochs``, ``precision``, ``accelerator``, ``devices``,
        ``num_nodes``, ``strategy``, ...
    members
        Networks trained from different seeds into one file, 1 to 5; their log-probabilities are averaged.
    seed
        Of the first member; the others count up from it.
    """

    name: str = "model"
    summary: str = ""
    model: ModelConfig = field(default_factory=ModelConfig)
    data: DataConfig = field(default_factory=DataConfig)
    augment: AugmentConfig = field(default_factory=AugmentConfig)
    optimizer: OptimizerConfig = field(default_factory=OptimizerConfig)
    stopping: StoppingConfig = field(default_factory=StoppingConfig)
    calibration: CalibrationConfig = field(default_factory=CalibrationConfig)
    trainer: dict[str, Any] = field(default_factory=dict)
    card: dict[str, Any] = field(default_factory=dict)
    members: int = 1
    seed: int = 1

    def __post_init__(self) -> None:
        _require(1 <= self.members <= 5, "members", "lies between 1 and 5")
        _require(0 <= self.seed < 2**31, "seed", "lies between 0 and 2^31 - 1")
        _require(
            self.calibration.method == "temperature" or self.model.classes == 2,
            "calibration.method",
            f"is temperature for more than two classes ('model.classes' is {self.model.classes})",
        )
        _require(
            self.augment.mask == 0 or self.model.kind != "backbone",
            "augment.mask",
            "goes with seqray's own tokenizers only, not with 'model.kind: backbone'",
        )
        _require(
            bool(self.name) and not set(self.name) & set("/\\ \t\n"), "name", "is one word without slashes"
        )
        _require(
            self.data.window <= self.model.max_length,
            "data.window",
            f"({self.data.window}) exceeds 'model.max_length' ({self.model.max_length})",
        )


def load_run_config(path: str | Path) -> RunConfig:
    """Read a `RunConfig` from a YAML file.

    Raises
    ------
    ConfigError
        With the file's name in front, where the file can't be read, is no YAML or holds a wrong setting.
    """
    try:
        with open(path, encoding="utf-8") as handle:
            mapping = yaml.safe_load(handle) or {}
    except OSError as error:
        raise ConfigError(f"can't be read ({error.strerror})", where=str(path)) from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        reason = str(error).splitlines()[0]
        raise ConfigError(f"is not valid YAML ({reason})", where=str(path)) from None
    try:
        return from_mapping(RunConfig, mapping)
    except ConfigError as error:
        raise ConfigError(error.what, where=str(path), remedy=error.remedy) from None
