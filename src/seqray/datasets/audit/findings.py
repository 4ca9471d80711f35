"""What the figures of an audit mean: leaks, shortcuts, cautions and notes, the worst first."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from seqray.core.errors import setting, verb
from seqray.core.labels import LabelFault
from seqray.core.results import SEVERITIES, AuditFigure, Finding
from seqray.core.text import format_interval
from seqray.datasets.audit.dataset import EVERY_CLASS, WHOLE
from seqray.homology.options import LEAK, MIN_SIMILAR_LENGTH, MIN_SIMILAR_RESIDUES, SIMILAR


def draw_findings(
    figures: Sequence[AuditFigure],
    settings: Mapping[str, str],
    skipped: int = 0,
    faults: Iterable[LabelFault] = (),
) -> list[Finding]:
    """Draw findings from figures and faults of labels, in the order of `SEVERITIES`, most certain first."""
    table = _FigureTable(figures, settings, skipped)
    kinds = (_copies, _groups, _related, _gap, _overlap, _shortcuts, _repeats, _notes, _floor)
    drawn = [finding for kind in kinds for finding in kind(table)]
    drawn += (Finding("caution", "labels", fault.what, _OF_LABELS, fault.remedy) for fault in faults)
    return sorted(drawn, key=lambda finding: SEVERITIES.index(finding.severity))


_OF_LABELS = "a model learns each label as a class, so a wrong one costs examples and figures"


class _FigureTable:
    """Figures by section, split, class and quantity, and the settings that they depend on."""

    def __init__(self, figures: Sequence[AuditFigure], settings: Mapping[str, str], skipped: int) -> None:
        self.figures, self.skipped = figures, skipped
        self._by_key = {(f.section, f.split, f.label, f.quantity): f for f in self.figures}
        self.word, self.held_out = settings["word"], settings["held_out"]
        self.protein = settings["alphabet"] == "protein"
        how = {"identity": SIMILAR, "word": int(self.word)}
        self.split_again = f"split the data again with {verb('split', **how)}"
        self.fold = f"cross-validate on folds of {verb('split', folds=5, **how)}"
        self.given_place = "on the given split" if self.held_out else "on random folds"
        lengths = [f.value for f in self.named("length", "q25") if f.label == EVERY_CLASS]
        self.matches_by_chance = min(lengths, default=0.0) < float(settings["chance_word"])

    def get(self, section: str, split: str, quantity: str, label: str = EVERY_CLASS) -> AuditFigure | None:
        """One figure, None if it is missing; by default that of all classes."""
        return self._by_key.get((section, split, label, quantity))

    def value(self, section: str, split: str, quantity: str, label: str = EVERY_CLASS) -> float:
        """Value of a figure, by default that of all classes; NaN if it is missing."""
        figure = self.get(section, split, quantity, label)
        return figure.value if figure else math.nan

    def named(self, section: str, quantity: str) -> list[AuditFigure]:
        """Figures of one name in a section."""
        return [f for f in self.figures if f.section == section and f.quantity == quantity]

    def ending(self, section: str, end: str) -> list[AuditFigure]:
        """Figures of a section whose name ends so."""
        return [f for f in self.figures if f.section == section and f.quantity.endswith(end)]

    def counts_across(self, section: str, quantity: str) -> list[tuple[str, str, float, float]]:
        """Counts above 0 that compare two splits: their names, the count, the size of the first."""
        counts = []
        for f in self.named(section, quantity):
            one, to, other = f.split.partition(" to ")
            if to and f.label == EVERY_CLASS and f.value > 0:
                counts.append((one, other, f.value, self.value("counts", one, "sequences")))
        return counts


def _percent(share: float) -> str:
    """Write ``0.73 %`` or ``55 %``."""
    return f"{100 * share:.2g} %" if 0 < share < 0.1 else f"{100 * share:.0f} %"


def _part(count: float, of: float) -> str:
    """Write ``43 of 5920`` with the share."""
    return f"{count:.0f} of {of:.0f} ({_percent(count / of)})"


def _with_interval(f: AuditFigure) -> str:
    return f"{f.value:.3f}{format_interval(f.low, f.high)}"


def _of_class(label: str) -> str:
    """Name the class a figure is about; nothing where it is about all of them."""
    return "" if label == EVERY_CLASS else f" '{label}'"


def _baseline(f: AuditFigure) -> str:
    """Name of a baseline in words."""
    is_matrix = f.quantity.startswith("position_weights")
    return "a position weight matrix" if is_matrix else "logistic regression on k-mers"


# --- Findings about relatives: test sequences with relatives in training, now or after a random split

OVERLAP_LEAK = 0.10  # share of the sequences of a class with a relative in it, if no split is given
OVERLAP_CAUTION = 0.01
GAP = 0.02  # MCC
STANDARD_ERRORS = 3.0  # of a difference between other sequences: one of 700 by chance
_WIDTH = 3.92  # of a 95 % interval, in standard errors
_RELATIVES = (
    ("copies", "duplicates"),
    ("copies", "strand_duplicates"),
    ("groups", "on_both_sides"),
    ("relatives", "sharing"),
)


def _severity(shares: Iterable[float], by_chance: bool = False) -> str:
    """Severity by the largest share of held-out sequences in training; those alike by chance are no leak."""
    return "leak" if not by_chance and max(shares) >= LEAK else "caution"


def _copies(table: _FigureTable) -> Iterator[Finding]:
    kinds = {
        "duplicates": ("copies_across", ""),
        "strand_duplicates": ("strand_copies_across", " on the other strand"),
    }
    for quantity, (kind, how) in kinds.items():
        if counts := table.counts_across("copies", quantity):
            pairs = "; ".join(
                f"{_part(n, size)} of {one} also{how} in {other}" for one, other, n, size in counts
            )
            yield Finding(
                _severity((n / size for *_, n, size in counts), table.matches_by_chance),
                kind,
                f"exact copies across the split: {pairs}",
                "a model that has memorized the training data gets them right, so the score is too high",
                f"drop the copies from training, or {table.split_again}",
            )


def _groups(table: _FigureTable) -> Iterator[Finding]:
    counts = [
        (one, other, n, table.value("groups", f"{one} to {other}", "sequences"), size)
        for one, other, n, size in table.counts_across("groups", "on_both_sides")
    ]
    if counts:
        pairs = "; ".join(
            f"{n:.0f} of {other} with {sequences:.0f} sequences of {one}"
            for one, other, n, sequences, _ in counts
        )
        yield Finding(
            _severity(sequences / size for *_, sequences, size in counts),
            "groups_across",
            f"named groups on both sides of the split: {pairs}",
            "the same group is trained on and tested on, so the score is too high",
            f"split the data again by whole groups with {verb('split', group_by='group')}",
        )
    between = table.value("groups", "all", "sharing_between")
    if between > 0:
        yield Finding(
            "caution",
            "groups_related",
            f"{between:.0f} {'sequence shares' if between == 1 else 'sequences share'} a k-mer with a "
            "sequence of another named group",
            "folds that keep the named groups whole still leak",
            f"{table.split_again} and {setting('group_by', 'group')}",
        )


def _related(table: _FigureTable) -> Iterator[Finding]:
    """Relatives by shared k-mers, and by alignment; either may miss the other's pairs."""
    if counts := table.counts_across("relatives", "sharing"):
        pairs = "; ".join(f"{_part(n, size)} of {one} with {other}" for one, other, n, size in counts)
        yield Finding(
            _severity((n / size for *_, n, size in counts), table.matches_by_chance),
            "relatives_across",
            f"sequences that share a {table.word}-mer across the split: {pairs}",
            "these test sequences were seen in training, at least in part, so the score is too high",
            f"{table.split_again}, or also report the score without them",
        )
    share = table.value("identity", f"{table.held_out} to train", f"at_least_{SIMILAR:g}")
    least = MIN_SIMILAR_RESIDUES if table.protein else MIN_SIMILAR_LENGTH
    if table.held_out and share >= LEAK and table.value("length", "train", "q25") >= least:
        yield Finding(
            "leak",
            "similar_across",
            f"{_percent(share)} of {table.held_out} sequences are {100 * SIMILAR:.0f} % identical or "
            "more to a training sequence",
            "the score on them says little about sequences that differ from training",
            table.split_again,
        )


def _gap(table: _FigureTable) -> Iterator[Finding]:
    """The same baseline on the given split and on sequences without relatives in training."""
    if table.held_out:
        similar = table.value("identity", f"{table.held_out} to train", f"at_least_{SIMILAR:g}")
        has_relatives = similar > 0 or any(table.counts_across(*kind) for kind in _RELATIVES)
    else:
        has_relatives = table.value("counts", "all", "groups") < table.value("counts", "all", "sequences")
    if not has_relatives:  # without them a gap is chance
        return
    places = {"unrelated": "the held-out sequences without relatives in training"}
    for given in table.ending("baselines", "_mcc"):
        if given.split != "given":
            continue
        others = (table.get("baselines", s, given.quantity, given.label) for s in ("unrelated", "grouped"))
        clear = [f for f in others if f is not None and is_lower(given, f)]
        if clear:
            lowest = min(clear, key=lambda f: f.value)
            yield Finding(
                "leak",
                "score_gap",
                f"{_baseline(given)}{_of_class(given.label)} scores MCC {_with_interval(given)} "
                f"{table.given_place}, {_with_interval(lowest)} on "
                f"{places.get(lowest.split, 'folds that keep relatives together')}",
                f"about {given.value - lowest.value:.2f} of the MCC may come from relatives in training",
                f"{table.split_again}, and compare models on that split",
            )


def is_lower(given: AuditFigure, other: AuditFigure) -> bool:
    """Whether a figure is clearly lower on the ``unrelated`` part of the same data, or on other folds."""
    if other.split == "unrelated":
        return given.value - other.value > GAP and given.low > other.value and given.value > other.high
    error = math.hypot(given.high - given.low, other.high - other.low) / _WIDTH
    return given.value - other.value > max(GAP, STANDARD_ERRORS * error)


def _overlap(table: _FigureTable) -> Iterator[Finding]:
    """Relatives within a class: they leak in a random split."""
    split = "train" if table.held_out else WHOLE
    related = [
        f
        for f in table.named("relatives", "sharing_share")
        if f.split == split and f.label != EVERY_CLASS and f.value >= OVERLAP_CAUTION
    ]
    if not related:
        return
    shares = []
    for f in sorted(related, key=lambda f: -f.value)[:8]:
        count = table.value("relatives", split, "sharing", f.label)
        shares.append(f"{_part(count, table.value('counts', split, 'sequences', f.label))} of '{f.label}'")
    of_train = " of train" if table.held_out else ""
    undivided = not table.held_out and max(f.value for f in related) >= OVERLAP_LEAK
    yield Finding(
        "leak" if undivided else "caution",
        "overlap_within_class",
        f"sequences{of_train} that share a {table.word}-mer with another of their class: {'; '.join(shares)}",
        f"random folds{of_train} put relatives on both sides, so cross-validation may be too optimistic; "
        "there are fewer independent examples than rows",
        table.fold if table.held_out else table.split_again,
    )


# --- Findings about trivial rules: one feature that predicts the class by itself


class _Feature(NamedTuple):
    """What to call a feature, what to do about it, and the lowest AUROC of a shortcut and of a caution.

    Letter case has no biological meaning, so its limits are low; composition may have, so they are high.
    """

    words: str
    remedy: str
    shortcut: float = 0.65
    caution: float = 0.58


_UPPER = "write all letters in upper case; seqray ignores case, but other tools can read the label from it"
_END = "cut off the {} letter or match it between classes, unless it is part of the signal"
_FEATURES = {
    "length": _Feature(
        "the length", "cut all classes to one length, or draw negatives with the lengths of the positives"
    ),
    "gc": _Feature(
        "the GC content",
        "draw negatives of matching composition, and report the score of this rule beside your model's",
        0.8,
        0.65,
    ),
    "ambiguous": _Feature(
        "the number of ambiguous letters",
        "remove sequences with ambiguous letters, or mask them in all classes",
    ),
    "first_letter": _Feature("the first letter", _END.format("first")),
    "last_letter": _Feature("the last letter", _END.format("last")),
    "initial_m": _Feature(
        "an initial M", "cut off the initial M, or use negatives that start alike (fragments with fragments)"
    ),
    "letter_case": _Feature("the share of lower-case letters", _UPPER, 0.55, 0.55),
    "first_capital": _Feature("the position of the first capital letter", _UPPER, 0.55, 0.55),
    "context": _Feature(
        "the context", "balance the classes within each context, or evaluate each context separately"
    ),
}
SIGMAS = 3.5  # standard errors above 0.5, so that a dozen rules on a small data set raise no false alarm


def _shortcuts(table: _FigureTable) -> Iterator[Finding]:
    """Rules with too high an AUROC."""
    rules = [(f, f.quantity.removesuffix("_auroc")) for f in table.ending("rules", "_auroc")]
    grades = {(f.label, name): _grade(table, name, f) for f, name in rules}
    for f, name in sorted(rules, key=lambda rule: (rule[0].label, -rule[0].value)):
        grade = grades[f.label, name]
        if grade and not (name == "first_capital" and grades.get((f.label, "letter_case"))):
            mcc = table.value("rules", f.split, f"{name}_mcc", f.label)
            yield Finding(
                grade,
                name,
                f"{_FEATURES[name].words} alone predicts the class{_of_class(f.label)}: "
                f"AUROC {_with_interval(f)}, MCC {mcc:.3f}{_differing_letter(table, name)}",
                "a model can reach this score from this feature alone",
                _FEATURES[name].remedy,
            )


def _grade(table: _FigureTable, name: str, f: AuditFigure) -> str:
    """Severity of a rule by its AUROC: ``shortcut``, ``caution`` or nothing.

    Its standard error is at least that of a random rule (Mann and Whitney 1947, eq. 5) of n and m groups.
    """
    counted = "sequences" if name in ("letter_case", "first_capital") else "groups"
    split = table.held_out or WHOLE
    sizes = {figure.label: figure.value for figure in table.named("counts", counted) if figure.split == split}
    total = sizes.pop(EVERY_CLASS)
    n = sizes[f.label] if f.label in sizes else min(sizes.values())
    m = min(total, sum(sizes.values()) - n)  # a group may hold several classes, and counts for each
    error = math.sqrt((n + m + 1) / (12 * n * m)) if n and m else math.inf
    if not math.isnan(f.low):
        error = max(error, (f.high - f.low) / (2 * 1.96))
    if not f.value - 0.5 > SIGMAS * error:
        return ""
    limits = _FEATURES[name]
    return "shortcut" if f.value >= limits.shortcut else "caution" if f.value >= limits.caution else ""


def _differing_letter(table: _FigureTable, name: str) -> str:
    """The letter whose share differs most between classes."""
    end = {"first_letter": "first_", "last_letter": "last_", "initial_m": "first_M"}.get(name)
    if end is None:
        return ""
    shares: defaultdict[str, list[AuditFigure]] = defaultdict(list)
    for f in table.figures:
        if f.section == "ends" and f.quantity.startswith(end) and f.split in ("train", WHOLE):
            shares[f.quantity] += [f] if f.label != EVERY_CLASS else []
    ranges = [
        (min(letter, key=lambda f: f.value), max(letter, key=lambda f: f.value))
        for letter in shares.values()
        if len(letter) > 1
    ]
    if not ranges:
        return ""
    low, high = max(ranges, key=lambda ends: ends[1].value - ends[0].value)
    letter = low.quantity[-1]
    return f"; {letter} in {_percent(low.value)} of '{low.label}', {_percent(high.value)} of '{high.label}'"


# --- Cautions and notes about rows, and the floor that a model has to exceed

ORDER_Z = -6.0
SHIFT = 0.1  # difference of the share of a class between training and held-out
AMBIGUOUS = 0.01


def _repeats(table: _FigureTable) -> Iterator[Finding]:
    """Rows that carry two labels, that repeat others, or that are empty."""
    count = table.value("copies", "all", "contradicted")
    if count > 0:
        rows = table.value("copies", "all", "contradicted_rows")
        strands = "" if table.protein else " (on either strand)"
        words, carry = ("sequence", "carries") if count == 1 else ("sequences", "carry")
        yield Finding(
            "caution",
            "contradicting_labels",
            f"{count:.0f} {words}{strands} in {rows:.0f} rows {carry} more than one label",
            "no model can classify all of them correctly, and they disturb training",
            "remove them, or decide on one label",
        )
    repeats = []
    for f in table.named("copies", "duplicates"):
        if f.label == EVERY_CLASS and " to " not in f.split:
            reverse = table.value("copies", f.split, "strand_duplicates")
            turned = f" and {reverse:.0f} on the other strand" if reverse else ""
            if f.value + reverse > 0:
                repeats.append(f"{f.value:.0f}{'' if f.split == WHOLE else f' in {f.split}'}{turned}")
    if repeats:
        yield Finding(
            "caution",
            "copies_within",
            f"rows that repeat another of their split: {'; '.join(repeats)}",
            "random folds put copies on both sides; there are fewer examples than rows",
            f"remove repeats, or keep them together with {verb('split')}",
        )
    if skipped := table.skipped:
        have = "record has no letters and was" if skipped == 1 else "records have no letters and were"
        yield Finding(
            "caution",
            "empty_records",
            f"{skipped} {have} left out",
            "counts differ from those of studies that kept them",
            "remove them from the files",
        )


def _notes(table: _FigureTable) -> Iterator[Finding]:
    """Shares of classes that differ between splits, ambiguous letters, and rows sorted by class."""
    for f in table.named("counts", "share"):
        trained = table.value("counts", "train", "share", f.label)
        measured = f.split in ("test", "validation") and f.label != EVERY_CLASS
        if measured and abs(f.value - trained) >= SHIFT:
            yield Finding(
                "note",
                "class_shares",
                f"class '{f.label}' is {_percent(trained)} of training and {_percent(f.value)} of {f.split}",
                "thresholds, precision and MCC depend on the share of a class",
                f"adjust probabilities to the share expected in use ({verb('predict', prior=...)})",
            )
    for f in table.named("ambiguity", "with_ambiguous"):
        if f.label == EVERY_CLASS and f.value >= AMBIGUOUS:
            of_split = "" if f.split == WHOLE else f" of {f.split}"
            yield Finding(
                "note",
                "ambiguous_letters",
                f"{_percent(f.value)} of the sequences{of_split} contain ambiguous letters",
                "they are read as unknown letters, so these sequences carry less information",
                "compare the classes in section 'ambiguity' of the table",
            )
    for f in table.named("order", "z"):
        if f.value <= ORDER_Z:
            runs, expected = (table.value("order", f.split, q) for q in ("runs", "expected_runs"))
            rows = "rows" if f.split == WHOLE else f"rows of {f.split}"
            yield Finding(
                "note",
                "row_order",
                f"{rows} are sorted by class: {runs:.0f} blocks, {expected:.0f} expected in random order",
                "folds taken from the file without shuffling contain too few classes",
                "shuffle before splitting; seqray does",
            )


def _floor(table: _FigureTable) -> Iterator[Finding]:
    """The best baseline on the strictest test available, and on the given split or on random folds."""
    places = {
        "grouped": "on folds that keep relatives together",
        "unrelated": "on held-out sequences without relatives in training",
        "given": table.given_place,
    }
    scores = [f for f in table.ending("baselines", "_mcc") if not math.isnan(f.value)]
    split = next((split for split in places if any(f.split == split for f in scores)), None)
    if split is None:
        return
    best = max((f for f in scores if f.split == split), key=lambda f: f.value)
    auroc = table.value("baselines", split, best.quantity.removesuffix("mcc") + "auroc", best.label)
    given = table.get("baselines", "given", best.quantity, best.label)
    beside = class_named = ""
    if given and split != "given" and not math.isnan(given.value):
        beside = f"; MCC {_with_interval(given)} {table.given_place}"
    each = [f for f in scores if (f.split, f.quantity) == (split, best.quantity)]
    if len(each) > 1:
        class_named = f" for{_of_class(best.label)} against the rest"
        lowest = min(each, key=lambda f: f.value)
        beside += (
            f"; over {len(each)} classes the mean MCC is {sum(f.value for f in each) / len(each):.3f} "
            f"and the lowest {lowest.value:.3f} ('{lowest.label}')"
        )
    yield Finding(
        "note",
        "floor",
        f"{_baseline(best)}{class_named} scores MCC {_with_interval(best)} and "
        f"AUROC {auroc:.3f} {places[split]}{beside}",
        "this is the score of simple k-mer counts and positions",
        "report it beside the score of your model; a model that does not exceed it adds nothing",
    )
