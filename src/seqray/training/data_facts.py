"""What the settings of a training follow from: letters, lengths, classes, a site, contexts."""

from __future__ import annotations

import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy.stats import chi2

from seqray.core import MISSING_TEXTS, Alphabet, DataConfig, Example, LabeledSequence, counted
from seqray.core.msa import letter_counts
from seqray.training.subclasses import has_subclasses

_MAX_ODD_LENGTH_SHARE = 0.02  # of sequences: their length may be a mistake
POSITIVE = {"positive", "pos", "promoter", "site", "yes", "true", "1", "+1", "+"}
NEGATIVE = {
    "negative",
    "neg",
    "background",
    "other",
    "none",
    "random",
    "control",
    "no",
    "false",
    "0",
    "-1",
    "-",
}


@dataclass(frozen=True, kw_only=True)
class DataFacts:
    """What decides the settings; examples of split ``test`` count for the contexts only.

    Attributes
    ----------
    alphabet
        Of the examples.
    counts
        Examples of each class.
    shortest, longest
        Length in letters.
    site
        Whether windows are cut around a site, see `has_site`.
    contexts
        Names of the contexts, sorted.
    subclasses
        Whether a class has several subclasses.
    """

    alphabet: Alphabet
    counts: Mapping[str, int]
    shortest: int
    longest: int
    site: bool = False
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


def measure_data(data: Sequence[Example], alphabet: Alphabet) -> DataFacts:
    """Measure examples; ``alphabet`` is that of their letters."""
    learned = [example for example in data if example.split != "test"]
    sequences: dict[str, set[str]] = defaultdict(set)
    for example in learned:
        sequences[example.label or ""].add(example.sequence)
    lengths = {len(example.sequence) for example in learned} or {0}
    one_length = len(lengths) == 1 and lengths != {0}
    return DataFacts(
        alphabet=alphabet,
        counts=Counter(example.label or "" for example in learned),
        shortest=min(lengths),
        longest=max(lengths),
        site=one_length and has_site([sorted(one) for one in sequences.values()], alphabet),
        contexts=tuple(sorted({example.context for example in data if example.context})),
        subclasses=has_subclasses(learned),
    )


def has_site(classes: Sequence[Sequence[str]], alphabet: Alphabet) -> bool:
    """Tell windows cut around a site: letters of a class are not equally common at all positions.

    At each position, Pearson's chi-squared compares the letters of each class with those of its windows as a
    whole; the sum over the classes decides, at a level of .001 divided by the number of positions.

    The sequences of each class are different ones, all of one length.
    """
    step = 1 + sum(len(one) * len(one[0]) for one in classes) // 50_000_000  # a sample is enough
    counts = np.stack([_letter_counts(one[::step], alphabet) for one in classes])  # (K, L, letters)
    shares = counts.sum(axis=1, keepdims=True) / np.maximum(counts.sum(axis=(1, 2), keepdims=True), 1)
    expected = counts.sum(axis=2, keepdims=True) * shares
    used = expected >= 5  # with fewer the statistic does not follow the distribution
    deviations = np.divide((counts - expected) ** 2, expected, out=np.zeros_like(expected), where=used)
    freedom = np.maximum(used.sum(axis=2) - 1, 0).sum(axis=0)
    p = np.where(freedom > 0, chi2.sf(deviations.sum(axis=(0, 2)), np.maximum(freedom, 1)), 1.0)
    return bool(p.min() * len(p) < 0.001)


def _letter_counts(sequences: Sequence[str], alphabet: Alphabet) -> np.ndarray:
    """Number of sequences with each letter at each position: int64 (L, letters)."""
    codes = alphabet.encode("".join(sequences)).reshape(len(sequences), -1)
    return letter_counts(codes, alphabet).T


def choose_positive(counts: Mapping[str, int]) -> str:
    """Name the positive class.

    Of two classes the one with such a name (promoter, positive, yes, 1, ...); else the rarest of those that
    are not named as the negative one (background, other, non-..., 0, ...).
    """
    ordered = sorted(counts, key=lambda name: (counts[name], name))
    if len(ordered) == 2:
        ordered.sort(key=lambda name: _folded(name) not in POSITIVE)
    ordered.sort(key=_is_negative)
    return ordered[0] if ordered else DataConfig().positive


def data_cautions(data: Sequence[Example]) -> Iterator[str]:
    """Yield what speaks against the data.

    These are a few sequences of another length than all others, sequences with several labels, rows given
    twice, test sequences that are learned from, and labels that differ only in case, by ``.0`` or in how
    their letters are encoded, that look like missing values, or that only the test part has.
    """
    yield from _odd_lengths([one for one in data if isinstance(one, LabeledSequence)])
    yield from _foreign_labels(data)
    yield from _learned_test_rows([one for one in data if isinstance(one, LabeledSequence)])
    labels: dict[tuple[str, str | None], set[str]] = defaultdict(set)
    for example in data:
        if isinstance(example, LabeledSequence):
            labels[example.sequence, example.context].add(example.label)
    if torn := [letters for (letters, _), found in labels.items() if len(found) > 1]:
        first = next(e.id for e in data if isinstance(e, LabeledSequence) and e.sequence == torn[0])
        yield (
            f"{counted(len(torn), 'sequence')} with several labels, such as that of '{first}': no model can "
            "be right about all its rows; 'seqray audit' counts them"
        )
    rows = Counter((e.id, e.sequence, e.label) for e in data if isinstance(e, LabeledSequence))
    if repeated := rows.total() - len(rows):
        yield f"{counted(repeated, 'row')} with the id, letters and label of an earlier one; give each once"
    names = sorted({name for found in labels.values() for name in found})
    for name in names:
        if name.lower() in MISSING_TEXTS - {"none"}:
            what = "is a class like the others; if it stands for a missing value, drop its rows"
            yield f"the label '{name}' {what}"
    for one, other in combinations(names, 2):
        if how := _small_difference(one, other):
            yield f"the labels '{one}' and '{other}' differ only {how}, and are two classes"


def _odd_lengths(data: Sequence[LabeledSequence]) -> Iterator[str]:
    """A few among windows of one length are a mistake more often than not."""
    lengths = Counter(len(one.sequence) for one in data)
    [(usual, count)] = lengths.most_common(1) or [(0, 0)]
    if odd := [
        one
        for one in data
        if len(one.sequence) != usual and len(data) - count <= _MAX_ODD_LENGTH_SHARE * len(data)
    ]:
        yield (
            f"{counted(len(odd), 'sequence')} of another length than the {usual} letters of all others, such "
            f"as '{odd[0].id}' ({len(odd[0].sequence)}): settings that follow from the data are those for "
            "sequences of different lengths"
        )


def _foreign_labels(data: Sequence[Example]) -> Iterator[str]:
    """Labels of test examples that no other example has: misspelt, more often than not."""
    learned = {one.label for one in data if one.split != "test"}
    foreign = Counter(one.label for one in data if one.label not in learned)
    for label, count in foreign.items():
        yield (
            f"only the test part has the label '{label}' ({counted(count, 'example')}); the model can't "
            "predict it"
        )


def _learned_test_rows(data: Sequence[LabeledSequence]) -> Iterator[str]:
    """Test sequences that are also learned from, or choose the epoch."""
    learned = {(one.sequence, one.context) for one in data if one.split != "test"}
    tested = [one for one in data if one.split == "test"]
    if copies := [one for one in tested if (one.sequence, one.context) in learned]:
        yield (
            f"{counted(len(copies), 'test sequence')} of {len(tested)}, such as '{copies[0].id}', with the "
            "letters of one that is learned from: figures of the test part are too good; 'seqray split' "
            "keeps copies together"
        )


def _small_difference(one: str, other: str) -> str:
    """In what two labels differ, if it is hard to see."""
    if unicodedata.normalize("NFKC", one) == unicodedata.normalize("NFKC", other):
        return "in how their letters are encoded"
    if one.casefold() == other.casefold():
        return "in case"
    return "by '.0'" if _folded(one) == _folded(other) else ""


def _folded(name: str) -> str:
    """Without case; labels that a spreadsheet or pandas wrote as 1.0 and 0.0 are 1 and 0."""
    return name.casefold().removesuffix(".0")


def _is_negative(name: str) -> bool:
    folded = _folded(name)
    return folded in NEGATIVE or folded.startswith(("non", "not-", "not_", "not ", "no-", "no_"))


def has_rare_class(counts: Mapping[str, int]) -> bool:
    """Whether a class needs help: below 5 % of two classes, a tenth of the largest of several."""
    rarest, largest = min(counts.values(), default=1), max(counts.values(), default=1)
    if len(counts) <= 2:
        return rarest < 0.05 * sum(counts.values())
    return 10 * rarest <= largest
