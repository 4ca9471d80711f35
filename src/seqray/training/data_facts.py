"""Facts and faults of labeled data."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.stats import chi2

from seqray.core.alphabet import ALPHABETS, Alphabet
from seqray.core.arrays import Ints
from seqray.core.errors import ConfigError, InputError, advise, field_name, setting
from seqray.core.labels import label_faults, refuse_joined_labels
from seqray.core.records import Example, LabeledSequence, letter_counts
from seqray.core.run_config import RunConfig
from seqray.core.text import (
    class_name_fault,
    counted,
    first_and_more,
    nearest,
    parse_float,
    truncate,
)
from seqray.io.predictions import probability_column
from seqray.modelfile.model import build_tokenizer

# --- Subclasses: parts of a class that the network learns to tell apart

MIN_SUBCLASS_EXAMPLES = 10  # for settings chosen from the data: a column of unique names is no subclass


def count_subclasses(config: RunConfig, data: Sequence[Example], classes: Sequence[str]) -> RunConfig:
    """Add the number of subclasses of each class to the settings, if the network learns subclasses."""
    if not config.data.subclasses:
        return replace(config, model=replace(config.model, subclasses=()))
    subclasses = subclass_names(data, classes)
    if not any(name for names in subclasses for name in names):
        raise ConfigError(
            "'data.subclasses' is set, but no example names its subclass",
            remedy="add a column 'subclass' to the table",
        )
    return replace(config, model=replace(config.model, subclasses=tuple(map(len, subclasses))))


def subclass_indices(data: Sequence[Example], classes: Sequence[str]) -> np.ndarray:
    """Index of the subclass of each example among those of all classes: int64 (N,); -1 if never learned."""
    pairs = [
        (label, subclass)
        for label, subclasses in zip(classes, subclass_names(data, classes), strict=True)
        for subclass in subclasses
    ]
    index = {pair: number for number, pair in enumerate(pairs)}
    return np.array([index.get((one.label or "", one.subclass or ""), -1) for one in data], dtype=np.int64)


def subclass_names(data: Sequence[Example], classes: Sequence[str]) -> list[list[str]]:
    """Names of the subclasses of each class, sorted; empty where none is named."""
    found: dict[str, set[str]] = {name: set() for name in classes}
    for one in data:
        if one.split != "test":
            found[one.label or ""].add(one.subclass or "")
    return [sorted(found[name]) for name in classes]


# --- What the settings of a training follow from: letters, lengths, classes, a site, contexts

_MAX_ODD_LENGTH_SHARE = 0.02  # of sequences: their length may be a mistake


NEAR = 8  # letters by which nine in ten sequences of nearly one length differ at most


def is_near_one_length(lengths: Ints) -> bool:
    """Whether nine in ten of the sequences differ by a few letters, so that places mean something."""
    low, high = np.quantile(lengths, [0.05, 0.95])
    return bool(high - low <= min(NEAR, high / 4))


@dataclass(frozen=True, kw_only=True)
class DataFacts:
    """What decides the settings; examples of split ``test`` count for the contexts only."""

    alphabet: Alphabet
    counts: Mapping[str, int]
    shortest: int
    longest: int
    letters: int  # of all examples together
    site: bool = False
    placed: bool = False
    contexts: tuple[str, ...] = ()
    subclasses: bool = False

    @property
    def total(self) -> int:
        """Number of examples."""
        return sum(self.counts.values())

    @property
    def site_or_not(self) -> bool:
        """Whether the classes are windows with a site and without; more classes are kinds of sites."""
        return self.site and len(self.counts) <= 2

    @property
    def one_length(self) -> bool:
        """Whether all examples have the same length."""
        return self.shortest == self.longest


def count_labels(data: Sequence[Example]) -> Counter[str]:
    """Examples of each class that are learned from or held out."""
    return Counter(example.label or "" for example in data if example.split != "test")


def measure_data(data: Sequence[Example], alphabet: Alphabet) -> DataFacts:
    """Measure examples; ``alphabet`` is that of their letters."""
    learned = [example for example in data if example.split != "test"]
    sequences: dict[str, set[str]] = defaultdict(set)
    for example in learned:
        sequences[example.label or ""].add(example.sequence)
    lengths = np.array([len(example.sequence) for example in learned] or [0])
    shortest, longest = int(lengths.min()), int(lengths.max())
    usual = int(np.quantile(lengths, 0.05))  # of nearly one length, nineteen in twenty are cut to it
    cut = [sorted({one[:usual] for one in of if len(one) >= usual}) for of in sequences.values()]
    alike = usual > 0 and is_near_one_length(lengths) and longest <= 2 * usual and all(cut)
    placed = alike and has_site(cut, alphabet)
    counts = Counter((one.label, one.subclass or "") for one in learned)
    subclasses = Counter(label for label, _ in counts)
    divided = [count for (label, _), count in counts.items() if subclasses[label] > 1]
    return DataFacts(
        alphabet=alphabet,
        counts=count_labels(data),
        shortest=shortest,
        longest=longest,
        letters=int(lengths.sum()),
        site=placed and shortest == longest,
        placed=placed,
        contexts=tuple(sorted({example.context for example in data if example.context})),
        subclasses=min(divided, default=0) >= MIN_SUBCLASS_EXAMPLES,
    )


def has_site(classes: Sequence[Sequence[str]], alphabet: Alphabet) -> bool:
    """Tell windows cut around a site: letters of a class are not equally common at all positions.

    Pearson's chi-squared at each position, at a level of .001 over the number of positions.
    """
    step = 1 + sum(len(one) * len(one[0]) for one in classes) // 50_000_000  # a sample is enough
    samples = [one[::step] for one in classes]
    codes = [alphabet.encode("".join(one)).reshape(len(one), -1) for one in samples]
    counts = np.stack([letter_counts(one, alphabet).T for one in codes])  # (K, L, letters)
    shares = counts.sum(axis=1, keepdims=True) / np.maximum(counts.sum(axis=(1, 2), keepdims=True), 1)
    expected = counts.sum(axis=2, keepdims=True) * shares
    used = expected >= 5  # with fewer the statistic does not follow the distribution
    deviations = np.divide((counts - expected) ** 2, expected, out=np.zeros_like(expected), where=used)
    freedom = np.maximum(used.sum(axis=2) - 1, 0).sum(axis=0)
    p = np.where(freedom > 0, chi2.sf(deviations.sum(axis=(0, 2)), np.maximum(freedom, 1)), 1.0)
    return bool(p.min() * len(p) < 0.001)


def data_cautions(data: Sequence[Example]) -> Iterator[str]:
    """Yield what speaks against the data: rows that look like a mistake, or make figures too good."""
    sequences = [one for one in data if isinstance(one, LabeledSequence)]
    lengths = Counter(len(one.sequence) for one in sequences)
    [(usual, count)] = lengths.most_common(1) or [(0, 0)]
    odd = [one for one in sequences if len(one.sequence) != usual]
    if odd and len(sequences) - count <= _MAX_ODD_LENGTH_SHARE * len(sequences):
        yield (
            f"{counted(len(odd), 'sequence')} of another length than the {usual} letters of all others, such "
            f"as '{odd[0].id}' ({len(odd[0].sequence)}): settings that follow from the data are those for "
            "sequences of different lengths"
        )
    yield from map(str, label_faults(data))
    learned = {(one.sequence, one.context) for one in sequences if one.split != "test"}
    tested = [one for one in sequences if one.split == "test"]
    if copies := [one for one in tested if (one.sequence, one.context) in learned]:
        yield (
            f"{counted(len(copies), 'test sequence')} of {len(tested)}, such as '{copies[0].id}', with the "
            "letters of one that is learned from: figures of the test part are too good; 'seqray split' "
            "keeps copies together"
        )
    labels: dict[tuple[str, str | None], set[str]] = defaultdict(set)
    for one in sequences:
        labels[one.sequence, one.context].add(one.label)
    if torn := [letters for (letters, _), names in labels.items() if len(names) > 1]:
        first = next(one.id for one in sequences if one.sequence == torn[0])
        yield (
            f"{counted(len(torn), 'sequence')} with several labels, such as that of '{first}': no model can "
            "be right about all its rows; 'seqray audit' counts them"
        )
    rows = Counter((one.id, one.sequence, one.label) for one in sequences)
    if repeated := rows.total() - len(rows):
        yield f"{counted(repeated, 'row')} with the id, letters and label of an earlier one; give each once"


def has_rare_class(counts: Mapping[str, int]) -> bool:
    """Whether a class needs help: below 5 % of two classes, a tenth of the largest of several."""
    rarest, largest = min(counts.values(), default=1), max(counts.values(), default=1)
    if len(counts) <= 2:
        return rarest < 0.05 * sum(counts.values())
    return 10 * rarest <= largest


# --- Checks of classes and lengths before a training

MAX_SHOWN_LABELS = 5


def check_classes(counts: Counter[str], config: RunConfig, classes: Sequence[str] | None) -> tuple[str, ...]:
    """Order the class names, as given or with the positive one last; refuse what can't be trained on."""
    for name in counts:
        if fault := class_name_fault(name):
            raise InputError(f"the label {name!r} {fault}", remedy="rename it")
    refuse_joined_labels(counts)
    positive = config.data.positive
    if positive not in counts:
        near = nearest(positive, counts) or min(counts)
        raise InputError(
            f"no example has the positive class '{positive}'",
            remedy=f"set {field_name('data.positive')} to a label of the data, such as '{near}'",
        )
    names = tuple(classes) if classes is not None else (*sorted(set(counts) - {positive}), positive)
    if set(names) != set(counts) or len(set(names)) != len(names):
        raise InputError(f"the classes {', '.join(names)} are not the labels {', '.join(sorted(counts))}")
    if len(names) < 2:
        raise InputError(f"all examples have the label '{positive}'", remedy="a classifier needs two classes")
    if len(names) != config.model.classes:
        labels = f"{len(names)} labels: {', '.join(names)}"
        raise ConfigError(
            f"'model.classes' is {config.model.classes}, but the data have {labels}",
            remedy=f"give --set model.classes={len(names)}, or leave 'model.classes' out of the settings",
        )
    if rare := [name for name in names if counts[name] < 2]:
        shown = first_and_more((f"'{name}'" for name in rare), MAX_SHOWN_LABELS)
        what = f"label {shown} has one example" if len(rare) == 1 else f"labels {shown} have one example each"
        remedy = "give two or more of each label"
        if all(math.isfinite(parse_float(name)) for name in rare):
            remedy = f"numbers are read as names of classes: divide them into classes, or {remedy}"
        raise InputError(what, remedy=remedy)
    columns: dict[str, str] = {}  # of predictions and figures, where names must not be ambiguous
    for name in names:
        column = probability_column(name)
        if column in columns:
            raise InputError(
                f"labels '{columns[column]}' and '{name}' would share the column {column} of predictions",
                remedy="rename one of them",
            )
        columns[column] = name
        if "|" in name:
            raise InputError(f"label '{name}' can't be named in a set (--coverage)", remedy="rename it")
        if len(names) > 2 and name in ("all", "macro"):
            raise InputError(
                f"label '{name}' is what 'seqray evaluate' calls the figures over all classes",
                remedy="rename it",
            )
    return names


def check_lengths(data: Sequence[Example], config: RunConfig) -> None:
    """Refuse sequences that don't fit the window, its flanks or the tokenizer, and those without a letter."""
    sequences = [example for example in data if isinstance(example, LabeledSequence)]
    if not sequences:
        return
    window, flank, rule = config.data.window, config.data.flank, config.data.truncate
    plain = set(ALPHABETS[config.model.alphabet].letters)
    if all(plain.isdisjoint(example.sequence) for example in sequences):
        raise InputError("no training sequence holds an unambiguous letter")
    tokenizer = build_tokenizer(config.model)
    longer = [example for example in sequences if len(example.sequence) > window]
    if longer and not flank and rule == "none":
        remedy = "cut them around the site"
        if config.data.site is None:
            rules = f"give {setting('truncate', 'ends')} or {setting('truncate', 'start')}"
            remedy = advise("truncate", rules, "shorten it")
        others = f", and so do {len(longer) - 1} others" if len(longer) > 1 else ""
        name = field_name("data.window")
        raise InputError(
            f"holds {len(longer[0].sequence)} letters, more than {name} ({window}){others}",
            where=longer[0].where,
            remedy=f"{remedy}, or raise {name}",
        )
    for example in sequences:
        length, where = len(example.sequence), example.where
        if flank and length != window + 2 * flank:
            both = f"{field_name('data.window')} and 'data.flank'"
            expected = f"{both} make {window} + 2 x {flank} = {window + 2 * flank}"
            raise InputError(f"holds {length} letters, but {expected}", where=where)
        try:
            tokenizer.check(truncate(example.sequence[flank : length - flank], window, rule))
        except InputError as error:
            raise InputError(error.what, where=where) from None
        if length == 0:
            raise InputError("holds no letters", where=where)
