"""Settings of a network."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

from seqray.core.errors import field_name, require, require_all, require_ranges

# --- Parts of a network that have settings of their own: stem, backbone, and what a locator adds


def refuse_set(settings: Any, section: str, names: Iterable[str], rule: str) -> None:
    """Raise an error for the first of these settings that doesn't have its default."""
    defaults = {f.name: f.default for f in dataclasses.fields(settings)}
    for name in names:
        require(getattr(settings, name) == defaults[name], f"{section}.{name}", rule)


@dataclass(frozen=True, slots=True, kw_only=True)
class StemConfig:
    """Convolutions before attention: local detectors first, attention over fewer tokens."""

    # widths of the parallel first convolutions, odd; their channels are concatenated to ``d_model``
    kernels: tuple[int, ...] = (7,)
    stride: int = 1  # letters per token after the stem
    depth: int = 0  # residual convolutions of width 5 at full resolution before the stride is taken

    def __post_init__(self) -> None:
        odd = all(0 < k < 1024 and k % 2 == 1 for k in self.kernels)
        require(len(self.kernels) > 0, "stem.kernels", "needs at least one width")
        require(len(self.kernels) <= 64, "stem.kernels", "must have at most 64 widths")
        require(odd, "stem.kernels", "takes odd widths below 1024")
        require_ranges(self, "stem", stride="between 1 and 64", depth="between 0 and 8")


@dataclass(frozen=True, slots=True, kw_only=True)
class BackboneConfig:
    """A pretrained encoder, in a directory as Hugging Face's transformers writes it."""

    path: str = ""  # the directory; relative to where the command runs
    # what is trained besides the head: nothing (``frozen``), low-rank additions to some matrices (``lora``)
    # or the whole encoder (``full``)
    tuning: Literal["frozen", "lora", "full"] = "frozen"
    rank: int = 8  # of ``lora``: the additions are alpha / rank times a product of two matrices of that rank
    alpha: float = 16.0
    # of ``lora``: names of the linear maps that are added to; those of query and value by default
    targets: tuple[str, ...] = ()
    # what the head reads: the final state of CLS (``cls``) or the mean over the letters' tokens (``mean``);
    # ``auto`` is CLS where the tokenizer adds one
    pooling: Literal["auto", "cls", "mean"] = "auto"
    # filled in by training: the directory's name, the sha256 of each file that decides what it computes, and
    # the size of its states. Another directory is refused; where ``files`` are given, by training too
    name: str = ""
    files: dict[str, str] = field(default_factory=dict)
    width: int = 0

    def __post_init__(self) -> None:
        require(self.path.isprintable(), "model.backbone.path", "is no name of a directory")
        require_ranges(self, "model.backbone", rank="between 1 and 1024")
        require(0 < self.alpha < math.inf, "model.backbone.alpha", "must be above 0")
        require(all(self.targets), "model.backbone.targets", "must be names, none of them empty")
        if self.tuning != "lora":
            refuse_set(self, "model.backbone", ("rank", "alpha", "targets"), "requires 'tuning: lora'")


@dataclass(frozen=True, slots=True, kw_only=True)
class LocatorConfig:
    """What a locator has besides blocks of attention."""

    # names of the gene tracks that it reads beside the letters, see `seqray.genome.genes.TRACKS`; without
    # any it reads letters alone
    tracks: tuple[str, ...] = ()
    window: int = 32  # tokens on either side that a token attends to [W]
    stem: int = 32  # channels of the first convolution
    # for each class of site, what is added to its logit, outside of training, at a letter where genes are
    # known and none of its strand begins within 510 letters ahead; nothing by default, and near the end of a
    # contig. It corrects for starts inside genes, of which species have more or fewer mapped than those of
    # training
    no_gene_ahead: tuple[float, ...] = ()
    # letters on either side whose probabilities count for the score of a letter, outside of training, see
    # `seqray.models.locator.Smoothing`; 0 for none
    smoothing: int = 0
    # letters on either side: outside of training, the score is multiplied by the probability that any site
    # lies among them; 0 for not
    region: int = 0

    def __post_init__(self) -> None:
        known, ahead = {"known", "to-start"} <= set(self.tracks), self.no_gene_ahead
        within = all(-100 <= value <= 100 for value in ahead)
        require_all(
            "model.locator",
            (known or not ahead, "no_gene_ahead", "requires the tracks 'known' and 'to-start'"),
            (within, "no_gene_ahead", "must lie between -100 and 100"),
            (len(set(self.tracks)) == len(self.tracks), "tracks", "repeats a name"),
        )
        require_ranges(self, "model.locator", smoothing="between 0 and 100", region="between 0 and 1000")
        require_ranges(self, "model.locator", window="between 1 and 1024", stem="between 1 and 1024")


@dataclass(frozen=True, slots=True, kw_only=True)
class LinearConfig:
    """What a linear part counts; training fills it in, see `RunConfig.floor`."""

    words: int = 1  # longest k-mers that count
    placed: tuple[int, ...] = (1,)  # lengths of k-mers that count by their place
    reach: int = 1  # letters from an end up to which places count
    sides: int = 1  # 1 for places from the beginning, 2 for those from the end, too
    steps: int = 0  # how many letters, of each kind and in all, count by a weight for each further one

    def __post_init__(self) -> None:
        require_ranges(
            self,
            "model.linear",
            words="between 1 and 8",
            reach="1 or more",
            sides="between 1 and 2",
            steps="0 or more",
        )
        require(
            0 < len(set(self.placed)) == len(self.placed) and all(1 <= k <= 8 for k in self.placed),
            "model.linear.placed",
            "names one or more lengths of 1 to 8, each once",
        )


# --- The shape of a network

# What of `ModelConfig` a model on a backbone has; its directory settles the rest.
BACKBONE_SETTINGS = ("kind", "backbone", "alphabet", "classes", "subclasses", "dropout", "max_length")
LOCATOR_SETTINGS = (
    *("kind", "locator", "alphabet", "classes", "d_model", "layers", "heads", "d_ff"),
    *("activation", "dropout", "positions", "max_length"),
)
# Far above any use: settings come from files of others, too, and must not decide how much memory is taken.
_MAX_SIZES = {
    **dict.fromkeys(("classes", "d_model", "d_ff", "max_rows"), 1 << 16),
    **{"layers": 256, "max_length": 1 << 24},
}
MATRIX_RANK = 8
RESIDUAL_KERNEL = 5  # of the convolutions that follow the detectors of a stem
# Of a locator: letters per token, the widths of the two convolutions of its stem, and letters of a site.
LETTERS_PER_TOKEN, DETECTOR_WIDTH, MERGER_WIDTH = 4, 11, 8
SITE_WIDTH = 2.5  # the default of `genomes.sigma`
"""Dimensions of the vectors of a position matrix."""
MAX_KMER_LENGTH = {"dna": 7, "rna": 7, "protein": 3}  # tables of all k-mers have 16384 rows then, or 8000


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelConfig:
    """The shape of a network; letters in brackets are those of the docs."""

    alphabet: Literal["dna", "rna", "protein"] = "dna"  # letters that the model reads
    # ``character`` (one token a letter) or ``kmer`` (overlapping words of ``k`` letters)
    tokenizer: Literal["character", "kmer"] = "character"
    k: int = 1
    classes: int = 2  # number of classes [K]
    # number of subclasses of each class, in the order of the classes. The probability of a class is the sum
    # over its subclasses. Empty: classes only. Training counts them in the data, see `DataConfig.subclasses`
    subclasses: tuple[int, ...] = ()
    d_model: int = 64  # model width [D]
    layers: int = 3  # number of blocks
    # query heads [H], and key/value heads: equal to ``heads`` (the default, multi-head), fewer
    # (grouped-query) or 1 (multi-query)
    heads: int = 4
    kv_heads: int | None = None
    d_ff: int | None = None  # width of the feed-forward layer; 4D by default
    activation: Literal["relu", "gelu"] = "gelu"  # of the feed-forward layer and the stem
    dropout: float = 0.1  # applied to embeddings, attention output and feed-forward output while training
    # ``sinusoidal``, ``learned`` or ``rotary``
    positions: Literal["sinusoidal", "learned", "rotary"] = "sinusoidal"
    # A trained factor for each letter position and channel, for data whose sites are at a fixed index:
    # ``none``, ``shared``, or ``context``, which adds one for each context
    position_gain: Literal["none", "shared", "context"] = "none"
    # A trained vector for each letter at each position, for the same data, as in a position weight matrix:
    # ``none``, ``shared`` or ``context``. The vectors lie in `MATRIX_RANK` dimensions
    position_matrix: Literal["none", "shared", "context"] = "none"
    # longest input in letters or columns (learned tables have that many rows, others take it as a limit)
    max_length: int = 1024
    stem: StemConfig | None = None  # optional convolutional stem; of ``alignment`` along each row
    # names of what else may be known of a sequence, such as its species. The vector of the one that is given
    # is added to every token; without one nothing is added
    contexts: tuple[str, ...] = ()
    # ``sequence`` reads single sequences, ``alignment`` alignments by axial attention. The latter has the
    # character tokenizer, multi-head attention, no stem that merges letters, no contexts, gain or matrix.
    # ``backbone`` reads single sequences with a pretrained encoder: it determines tokens and shape, so that
    # only ``backbone``, ``alphabet``, ``classes``, ``subclasses``, ``dropout`` (before the head) and
    # ``max_length`` remain to be set. ``locator`` scores every position of a strand for each class of site,
    # by attention within windows; it takes dna, rotary positions and none of the options of single sequences.
    # ``own`` reads single sequences by a ``network`` of the user's, which may use any of these settings
    kind: Literal["sequence", "alignment", "backbone", "locator", "own"] = "sequence"
    network: str = ""  # of ``own``: its name in `seqray.register_network`
    tied: bool = True  # of ``alignment``: whether all rows share the weights of row attention
    # of ``alignment``: most rows that the model reads, the query counted, see
    # `seqray.core.records.choose_rows`
    max_rows: int = 64
    # this many letters at either end of a sequence, or of each row, count by their distance to it: a trained
    # vector for each letter at each of these places. For sequences of different lengths; 0 is none. Not with
    # k-mers. A stem that merges letters adds up the vectors of the letters of a token
    ends: int = 0
    # longest words that count as such, 2 letters or more: a trained vector for each word of 2 to so many
    # letters, added where it begins; in rows of an alignment past gaps. 0 is none. For small data sets. Not
    # with k-mers
    words: int = 0
    # what the head reads, side by side: the final state of CLS (``cls``), the mean (``mean``) and the largest
    # value of each channel (``max``) over all letters' tokens, and the means over the tokens of the first and
    # of the last ``ends`` letters (``ends``). More than CLS suits long sequences
    pooling: tuple[Literal["cls", "mean", "max", "ends"], ...] = ("cls",)
    # of ``alignment``, RNA or DNA: whether the network gets the pairing of columns as input, see
    # `seqray.models.alignment.HelixEmbedding`
    helices: bool = False
    # shares of letters that a linear map adds to the vector of CLS before the blocks: of the ``whole``
    # sequence, of its first and last 15, 30 and 60 letters (``ends``), and of pairs of letters 1, 2 and 3
    # apart (``pairs``). For small sets of long sequences. The head must read CLS. Not with k-mers
    composition: tuple[Literal["whole", "ends", "pairs"], ...] = ()
    # of ``sequence``: logits of letters and k-mers, added to those of the network; training fills it in
    linear: LinearConfig | None = None
    backbone: BackboneConfig | None = None  # of ``backbone``: which encoder, and what of it is trained
    locator: LocatorConfig | None = None  # of ``locator``: gene tracks, window of attention, stem

    @property
    def tracks(self) -> tuple[str, ...]:
        """Names of the gene tracks that a locator reads; none for other kinds."""
        return self.locator.tracks if self.locator else ()

    @property
    def reads_sequences(self) -> bool:
        """Whether it reads single sequences, with tokens of its own or of a pretrained encoder."""
        return self.kind in ("sequence", "backbone", "own")

    @property
    def letters_read(self) -> int:
        """Letters on either side of a letter that a locator reads for it."""
        stem = DETECTOR_WIDTH // 2 + (MERGER_WIDTH - LETTERS_PER_TOKEN) // 2 + LETTERS_PER_TOKEN - 1
        return LETTERS_PER_TOKEN * (self.locator or LocatorConfig()).window * self.layers + stem

    @property
    def radius(self) -> int:
        """Letters on either side of a letter that may change its score, of a locator."""
        locator = self.locator or LocatorConfig()
        return self.letters_read + max(locator.smoothing, locator.region)

    @property
    def is_plain(self) -> bool:
        """Whether it reads single sequences by a network of seqray alone."""
        return self.kind == "sequence"

    @property
    def can_be_linear(self) -> bool:
        """Whether it may have a linear part."""
        return self.reads_alignments or (self.is_plain and self.tokenizer == "character")

    @property
    def has_backbone(self) -> bool:
        """Whether it reads single sequences by a pretrained encoder."""
        return self.kind == "backbone"

    @property
    def reads_alignments(self) -> bool:
        """Whether its inputs are alignments."""
        return self.kind == "alignment"

    @property
    def is_locator(self) -> bool:
        """Whether it scores every position of a strand."""
        return self.kind == "locator"

    @property
    def outputs(self) -> int:
        """Rows of the head: subclasses of all classes."""
        return sum(self.subclasses) or self.classes

    def __post_init__(self) -> None:
        for name, most in _MAX_SIZES.items():
            require((getattr(self, name) or 0) <= most, f"model.{name}", f"must be at most {most}")
        self._check_kind()
        self._check_reading()
        self._check_contexts()
        self._check_network()

    def _check_kind(self) -> None:
        if self.kind == "backbone":
            settled = [f.name for f in dataclasses.fields(self) if f.name not in BACKBONE_SETTINGS]
            refuse_set(self, "model", settled, "is settled by the backbone; leave it out")
            if self.backbone is None:  # its directory may be named on the command line alone
                object.__setattr__(self, "backbone", BackboneConfig())
        else:
            require(self.backbone is None, "model.backbone", "requires 'model.kind: backbone'")
        if self.kind == "locator":
            self._check_locator()
        else:
            require(self.locator is None, "model.locator", "requires 'model.kind: locator'")
        rule = "requires 'model.kind: own'" if self.network else "names the network of 'model.kind: own'"
        require((self.kind == "own") == bool(self.network), "model.network", rule)
        require(self.max_rows >= 1, "model.max_rows", "must be 1 or more")
        if self.kind == "alignment":
            self._check_alignment()
        pairs = not self.helices or (self.kind == "alignment" and self.alphabet != "protein")
        rule = "requires alignments ('model.kind') of rna or dna ('model.alphabet')"
        require(pairs, "model.helices", rule)

    def _check_reading(self) -> None:
        """What the head and the first layer read beside tokens: ends, pooled parts, k-mers."""
        longest, parts = MAX_KMER_LENGTH[self.alphabet], self.composition
        character, by_letter = self.tokenizer == "character", "requires the character tokenizer"
        require_all(
            "model",
            (0 <= self.ends <= self.max_length, "ends", "must lie between 0 and 'model.max_length'"),
            (self.ends == 0 or character, "ends", by_letter),
            (
                0 < len(set(self.pooling)) == len(self.pooling),
                "pooling",
                "names one or more parts, each once",
            ),
            ("ends" not in self.pooling or self.ends > 0, "pooling", "takes ends only with 'model.ends'"),
            (
                self.words in (0, *range(2, longest + 1)),
                "words",
                f"must be 0, or 2 to {longest} for {self.alphabet}",
            ),
            (self.words == 0 or character, "words", by_letter),
            (len(set(parts)) == len(parts), "composition", "names each part once"),
            (not parts or character, "composition", by_letter),
            (not parts or "cls" in self.pooling, "composition", "requires 'cls' in 'model.pooling'"),
        )
        if (linear := self.linear) is not None:
            most, reach = max(linear.words, *linear.placed), max(linear.reach, linear.steps)
            require_all(
                "model",
                (self.can_be_linear, "linear", "is for sequences by character, and for alignments"),
                (reach <= self.max_length, "linear", "reaches beyond 'model.max_length'"),
                (most <= longest, "linear", f"counts k-mers of at most {longest} letters"),
            )

    def _check_contexts(self) -> None:
        fewest, most, subclasses = 1 if self.kind == "locator" else 2, _MAX_SIZES["classes"], self.subclasses
        require_all(
            "model",
            (all(self.contexts), "contexts", "must be names, none of them empty"),
            (len(set(self.contexts)) == len(self.contexts), "contexts", "repeats a name"),
            (self.classes >= fewest, "classes", f"must be {fewest} or more"),
            (len(subclasses) in (0, self.classes), "subclasses", "has one number for each class"),
            (all(count >= 1 for count in subclasses), "subclasses", "must be numbers of 1 and more"),
            (sum(subclasses) <= most, "subclasses", f"must be at most {most} together"),
        )
        for name in ("position_gain", "position_matrix"):
            known = getattr(self, name) != "context" or bool(self.contexts)
            require(known, f"model.{name}", "takes context only with 'model.contexts'")

    def _check_network(self) -> None:
        require_ranges(self, "model", layers="1 or more", heads="1 or more")
        divides = self.d_model >= self.heads and self.d_model % self.heads == 0
        heads = f"{field_name('model.heads')} ({self.heads})"
        even = self.positions != "rotary" or (self.d_model // self.heads) % 2 == 0
        require_all(
            "model",
            (divides, "d_model", f"({self.d_model}) must be a multiple of {heads}"),
            (self.d_model % 2 == 0, "d_model", "must be even"),
            (even, "heads", "must give heads of even width for rotary"),
        )
        if self.kv_heads is not None:
            fits = 1 <= self.kv_heads <= self.heads and self.heads % self.kv_heads == 0
            require(fits, "model.kv_heads", f"({self.kv_heads}) must divide {heads}")
        require(self.d_ff is None or self.d_ff >= 1, "model.d_ff", "must be 1 or more")
        require_ranges(self, "model", dropout="[0, 1)", max_length="1 or more")
        if self.tokenizer == "character":
            require(self.k == 1, "model.k", "must be 1 for the character tokenizer")
        else:
            require(2 <= self.k <= 8, "model.k", "must lie between 2 and 8 for the k-mer tokenizer")
        if self.stem is not None:
            require(self.tokenizer == "character", "model.stem", "requires the character tokenizer")
            rule = f"must divide {field_name('model.d_model')} by their number"
            require(self.d_model % len(self.stem.kernels) == 0, "model.stem.kernels", rule)

    def _check_locator(self) -> None:
        settled = [f.name for f in dataclasses.fields(self) if f.name not in LOCATOR_SETTINGS]
        refuse_set(self, "model", settled, "is not for 'model.kind: locator'; leave it out")
        if self.locator is None:
            object.__setattr__(self, "locator", LocatorConfig())
        elif self.locator.no_gene_ahead:
            one_each = len(self.locator.no_gene_ahead) == self.classes
            require(one_each, "model.locator.no_gene_ahead", "has one number for each class")

    def _check_alignment(self) -> None:
        why = "requires 'model.kind: sequence'"
        require_all(
            "model",
            (self.tokenizer == "character", "tokenizer", f"'kmer' {why}"),
            (self.kv_heads in (None, self.heads), "kv_heads", f"below {field_name('model.heads')} {why}"),
            (self.stem is None or self.stem.stride == 1, "stem.stride", f"above 1 {why}"),
            (not self.contexts, "contexts", why),
            (self.pooling == ("cls",), "pooling", f"of more than CLS {why}"),
            (not self.composition, "composition", why),
            (self.position_gain == "none", "position_gain", why),
            (self.position_matrix == "none", "position_matrix", why),
        )
