"""Leaks and shortcuts."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

from seqray.core.results import SEVERITIES, AuditFigure, Finding
from seqray.datasets.audit.dataset import (
    EVERY_CLASS,
    FigureTable,
    baseline_name,
    of_class,
    part,
    percent,
    place_of_given,
    plural,
    with_interval,
)

# --- Findings about relatives: test sequences with relatives in training, now or after a random split

LEAK = 0.01  # share of held-out sequences with a copy, a relative or a group in training
SIMILAR = 0.8  # identity to the most similar training sequence
SIMILAR_LENGTH = {True: 40, False: 25}  # nucleotides, residues: shorter ones are similar by chance
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


def _split_command(settings: Mapping[str, str]) -> str:
    """The command that splits again, with the relations of this audit."""
    return f"split the data again with 'seqray split --identity {SIMILAR:g} --word {settings['word']}'"


def leaks(table: FigureTable, settings: Mapping[str, str]) -> Iterator[Finding]:
    """Findings about relatives, the most certain first."""
    yield from _copies(table, settings)
    yield from _groups(table, settings)
    yield from _related(table, settings)
    yield from _similar(table, settings)
    yield from _gap(table, settings)
    yield from _overlap(table, settings)


def _severity(shares: Iterable[float]) -> str:
    """Severity by the largest share of held-out sequences with something in training: one limit for all."""
    return "leak" if max(shares) >= LEAK else "caution"


def _severity_of_match(table: FigureTable, settings: Mapping[str, str], shares: Iterable[float]) -> str:
    """The same for equal letters; sequences so short that they match by chance are no leak."""
    lengths = [f.value for f in table.named("length", "q25") if f.label == EVERY_CLASS]
    by_chance = min(lengths, default=0.0) < float(settings["chance_word"])
    return "caution" if by_chance else _severity(shares)


def _copies(table: FigureTable, settings: Mapping[str, str]) -> Iterator[Finding]:
    kinds = {
        "duplicates": ("copies_across", ""),
        "strand_duplicates": ("strand_copies_across", " on the other strand"),
    }
    for quantity, (kind, how) in kinds.items():
        found = table.counts_across("copies", quantity)
        if found:
            pairs = "; ".join(
                f"{part(count, size)} of {one} also{how} in {other}" for one, other, count, size in found
            )
            yield Finding(
                _severity_of_match(table, settings, (count / size for *_, count, size in found)),
                kind,
                f"exact copies across the split: {pairs}",
                "a model that has memorized the training data gets them right, so the score is too high",
                f"drop the copies from training, or {_split_command(settings)}",
            )


def _groups(table: FigureTable, settings: Mapping[str, str]) -> Iterator[Finding]:
    found = [
        (one, other, count, table.value("groups", f"{one} to {other}", "sequences"), size)
        for one, other, count, size in table.counts_across("groups", "on_both_sides")
    ]
    if found:
        pairs = "; ".join(
            f"{count:.0f} of {other} with {sequences:.0f} sequences of {one}"
            for one, other, count, sequences, _ in found
        )
        yield Finding(
            _severity(sequences / size for *_, sequences, size in found),
            "groups_across",
            f"named groups on both sides of the split: {pairs}",
            "the same group is trained on and tested on, so the score is too high",
            "split the data again by whole groups with 'seqray split --group-by group'",
        )
    between = table.value("groups", "all", "sharing_between")
    if between > 0:
        yield Finding(
            "caution",
            "groups_related",
            f"{between:.0f} {plural(between, 'sequence shares', 'sequences share')} a k-mer with a sequence "
            "of another named group",
            "folds that keep the named groups whole still leak",
            f"{_split_command(settings)} and '--group-by group'",
        )


def _related(table: FigureTable, settings: Mapping[str, str]) -> Iterator[Finding]:
    found = table.counts_across("relatives", "sharing")
    if not found:
        return
    pairs = "; ".join(f"{part(count, size)} of {one} with {other}" for one, other, count, size in found)
    yield Finding(
        _severity_of_match(table, settings, (count / size for *_, count, size in found)),
        "relatives_across",
        f"sequences that share a {settings['word']}-mer across the split: {pairs}",
        "these test sequences were seen in training, at least in part, so the score is too high",
        f"{_split_command(settings)}, or also report the score without them",
    )


def _similar(table: FigureTable, settings: Mapping[str, str]) -> Iterator[Finding]:
    """Similar by alignment; reported besides shared k-mers, because either may miss the other's pairs."""
    pair = f"{settings['held_out']} to train"
    share = table.value("identity", pair, f"at_least_{SIMILAR:g}")
    least = SIMILAR_LENGTH[settings["alphabet"] != "protein"]
    if settings["held_out"] and share >= LEAK and table.value("length", "train", "q25") >= least:
        yield Finding(
            "leak",
            "similar_across",
            f"{percent(share)} of {settings['held_out']} sequences are {100 * SIMILAR:.0f} % identical or "
            "more to a training sequence",
            "the score on them says little about sequences that differ from training",
            _split_command(settings),
        )


def _gap(table: FigureTable, settings: Mapping[str, str]) -> Iterator[Finding]:
    """The same baseline on the given split and on sequences without relatives in training."""
    if not _has_relatives(table, settings):
        return
    lower = {"unrelated": _is_lower_in_part, "grouped": _is_lower_elsewhere}
    for given in table.ending("baselines", "_mcc"):
        if given.split != "given":
            continue
        others = [table.get("baselines", split, given.quantity, given.label) for split in lower]
        clear = [f for f in others if f is not None and lower[f.split](given, f)]
        if clear:
            lowest = min(clear, key=lambda f: f.value)
            where = {"unrelated": "the held-out sequences without relatives in training"}
            yield Finding(
                "leak",
                "score_gap",
                f"{baseline_name(given.quantity)}{of_class(given.label)} scores MCC {with_interval(given)} "
                f"{place_of_given(settings)}, {with_interval(lowest)} on "
                f"{where.get(lowest.split, 'folds that keep relatives together')}",
                f"about {given.value - lowest.value:.2f} of the MCC may come from relatives in training",
                f"{_split_command(settings)}, and compare models on that split",
            )


def _has_relatives(table: FigureTable, settings: Mapping[str, str]) -> bool:
    """Whether relatives can be on both sides, without which a gap is chance."""
    if not settings["held_out"]:
        return table.value("counts", "all", "groups") < table.value("counts", "all", "sequences")
    similar = table.value("identity", f"{settings['held_out']} to train", f"at_least_{SIMILAR:g}")
    return similar > 0 or any(table.counts_across(*kind) for kind in _RELATIVES)


def _is_lower_in_part(given: AuditFigure, other: AuditFigure) -> bool:
    """Whether a figure is lower on a part of the same sequences."""
    return given.value - other.value > GAP and given.low > other.value and given.value > other.high


def _is_lower_elsewhere(given: AuditFigure, other: AuditFigure) -> bool:
    """Whether a figure is lower on other folds; errors of the two are taken as independent."""
    error = math.hypot(given.high - given.low, other.high - other.low) / _WIDTH
    return given.value - other.value > max(GAP, STANDARD_ERRORS * error)


def _overlap(table: FigureTable, settings: Mapping[str, str]) -> Iterator[Finding]:
    """Relatives within a class: they leak in a random split."""
    split = "train" if settings["held_out"] else "all"
    found = [
        f
        for f in table.named("relatives", "sharing_share")
        if f.split == split and f.label != EVERY_CLASS and f.value >= OVERLAP_CAUTION
    ]
    if not found:
        return
    shares = "; ".join(
        part(
            table.value("relatives", split, "sharing", f.label),
            table.value("counts", split, "sequences", f.label),
        )
        + f" of '{f.label}'"
        for f in sorted(found, key=lambda f: -f.value)[:8]
    )
    of_train = " of train" if settings["held_out"] else ""
    undivided = not settings["held_out"] and max(f.value for f in found) >= OVERLAP_LEAK
    yield Finding(
        "leak" if undivided else "caution",
        "overlap_within_class",
        f"sequences{of_train} that share a {settings['word']}-mer with another of their class: {shares}",
        f"random folds{of_train} put relatives on both sides, so cross-validation may be too optimistic; "
        "there are fewer independent examples than rows",
        _split_command(settings),
    )


# --- Findings about trivial rules: one feature that predicts the class by itself

# Lowest AUROC of a shortcut, and of a caution. Letter case has no biological meaning, so the limits are low;
# composition may have, so they are high.
LIMITS = {"letter_case": (0.55, 0.55), "first_capital": (0.55, 0.55), "gc": (0.8, 0.65)}
DEFAULT_LIMITS = (0.65, 0.58)
SIGMAS = 3.5  # standard errors above 0.5, so that a dozen rules on a small data set raise no false alarm

_FEATURE_NAMES = {
    "length": "the length",
    "gc": "the GC content",
    "ambiguous": "the number of ambiguous letters",
    "first_letter": "the first letter",
    "last_letter": "the last letter",
    "initial_m": "an initial M",
    "letter_case": "the share of lower-case letters",
    "first_capital": "the position of the first capital letter",
    "context": "the context",
}
_CASE_RULES = ("letter_case", "first_capital")
_UPPER = "write all letters in upper case; seqray ignores case, but other tools can read the label from it"
_REMEDIES = {
    "length": "cut all classes to one length, or draw negatives with the lengths of the positives",
    "gc": "draw negatives of matching composition, and report the score of this rule beside your model's",
    "ambiguous": "remove sequences with ambiguous letters, or mask them in all classes",
    "first_letter": "cut off the first letter or match it between classes, unless it is part of the signal",
    "last_letter": "cut off the last letter or match it between classes, unless it is part of the signal",
    "initial_m": "cut off the initial M, or use negatives that start alike (fragments with fragments)",
    "letter_case": _UPPER,
    "first_capital": _UPPER,
    "context": "balance the classes within each context, or evaluate each context separately",
}


def shortcuts(table: FigureTable, settings: Mapping[str, str]) -> Iterator[Finding]:
    """Rules with too high an AUROC."""
    measured = settings["held_out"] or "all"

    def grade_of(name: str, f: AuditFigure) -> str:
        counted = "sequences" if name in _CASE_RULES else "groups"
        return severity(name, f, chance_error(table, measured, f.label, counted))

    reported = {f.label for f in table.ending("rules", "letter_case_auroc") if grade_of("letter_case", f)}
    for f in sorted(table.ending("rules", "_auroc"), key=lambda f: (f.label, -f.value)):
        name = f.quantity.removesuffix("_auroc")
        grade = grade_of(name, f)
        if grade and not (name == "first_capital" and f.label in reported):
            mcc = table.value("rules", f.split, f"{name}_mcc", f.label)
            yield Finding(
                grade,
                name,
                f"{_FEATURE_NAMES[name]} alone predicts the class{of_class(f.label)}: "
                f"AUROC {with_interval(f)}, MCC {mcc:.3f}{_differing_letter(table, name)}",
                "a model can reach this score from this feature alone",
                _REMEDIES[name],
            )


def chance_error(table: FigureTable, split: str, label: str, counted: str) -> float:
    """Standard deviation of the AUROC of a random rule: sqrt((n + m + 1) / (12 n m)).

    ``counted`` is what n and m count: ``groups`` for a rule about the letters, which relatives share, or
    ``sequences`` for one about letter case, which doesn't depend on relatives.

    References
    ----------
    Mann and Whitney 1947, On a test of whether one of two random variables is stochastically larger than the
    other, eq. 5.
    """
    sizes = {f.label: f.value for f in table.named("counts", counted) if f.split == split}
    total = sizes.pop(EVERY_CLASS)
    n = sizes[label] if label in sizes else min(sizes.values())
    m = min(total, sum(sizes.values()) - n)  # a group may hold several classes, and counts for each
    return math.sqrt((n + m + 1) / (12 * n * m)) if n and m else math.inf


def severity(name: str, f: AuditFigure, least_error: float) -> str:
    """Severity of a rule by its AUROC: ``shortcut``, ``caution`` or nothing.

    The AUROC has a bootstrap interval, which accounts for relatives; ``least_error`` is a lower bound of its
    standard error.
    """
    error = least_error if math.isnan(f.low) else max(least_error, (f.high - f.low) / (2 * 1.96))
    if not f.value - 0.5 > SIGMAS * error:
        return ""
    shortcut, caution = LIMITS.get(name, DEFAULT_LIMITS)
    return "shortcut" if f.value >= shortcut else "caution" if f.value >= caution else ""


def _differing_letter(table: FigureTable, name: str) -> str:
    """The letter whose share differs most between classes."""
    end = {"first_letter": "first_", "last_letter": "last_", "initial_m": "first_M"}.get(name)
    if end is None:
        return ""
    shares: dict[str, list[AuditFigure]] = {}
    for f in table.figures:
        if f.section == "ends" and f.quantity.startswith(end) and f.split in ("train", "all"):
            shares.setdefault(f.quantity, []).append(f)
    classes = {q: [f for f in found if f.label != EVERY_CLASS] for q, found in shares.items()}
    widest = max(classes.values(), key=lambda found: _spread(found)[0], default=[])
    if len(widest) < 2:
        return ""
    _, low, high = _spread(widest)
    letter = widest[0].quantity[-1]
    return f"; {letter} in {percent(low.value)} of '{low.label}', {percent(high.value)} of '{high.label}'"


def _spread(figures: list[AuditFigure]) -> tuple[float, AuditFigure, AuditFigure]:
    low, high = min(figures, key=lambda f: f.value), max(figures, key=lambda f: f.value)
    return high.value - low.value, low, high


# --- From figures to findings, the worst first

ORDER_Z = -6.0
SHIFT = 0.1  # difference of the share of a class between training and held-out
AMBIGUOUS = 0.01
PLACES = {
    "grouped": "on folds that keep relatives together",
    "unrelated": "on held-out sequences without relatives in training",
}


def draw_findings(
    figures: Sequence[AuditFigure], settings: Mapping[str, str], skipped: int = 0
) -> list[Finding]:
    """Draw findings from figures.

    Parameters
    ----------
    settings
        ``word`` (length of the k-mers that relatives share), ``held_out`` (name of the test split, empty if
        there is none), ``alphabet`` and ``chance_word``, the shortest k-mer that is not shared by chance.
    skipped
        Records without letters that were left out.

    Returns
    -------
    list of Finding
        In the order of `SEVERITIES`, the most certain of one severity first.
    """
    table = FigureTable(figures)
    found = [
        *leaks(table, settings),
        *shortcuts(table, settings),
        *_contradictions(table, settings),
        *_repeats(table),
        *_empty(skipped),
        *_class_shares(table),
        *_ambiguous(table),
        *_order(table),
        *_floor(table, settings),
    ]
    return sorted(found, key=lambda finding: SEVERITIES.index(finding.severity))


def _contradictions(table: FigureTable, settings: Mapping[str, str]) -> Iterator[Finding]:
    count = table.value("copies", "all", "contradicted")
    if count > 0:
        rows = table.value("copies", "all", "contradicted_rows")
        strands = "" if settings["alphabet"] == "protein" else " (on either strand)"
        yield Finding(
            "caution",
            "contradicting_labels",
            f"{count:.0f} {plural(count, 'sequence', 'sequences')}{strands} in {rows:.0f} rows "
            f"{plural(count, 'carries', 'carry')} more than one label",
            "no model can classify all of them correctly, and they disturb training",
            "remove them, or decide on one label",
        )


def _repeats(table: FigureTable) -> Iterator[Finding]:
    same, reverse = (
        {
            f.split: f.value
            for f in table.named("copies", q)
            if f.label == EVERY_CLASS and " to " not in f.split
        }
        for q in ("duplicates", "strand_duplicates")
    )
    parts = [split for split in same if same[split] + reverse[split] > 0]
    if parts:
        shown = "; ".join(
            f"{same[split]:.0f}{'' if split == 'all' else f' in {split}'}"
            + (f" and {reverse[split]:.0f} on the other strand" if reverse[split] else "")
            for split in parts
        )
        yield Finding(
            "caution",
            "copies_within",
            f"rows that repeat another of their split: {shown}",
            "random folds put copies on both sides; there are fewer examples than rows",
            "remove repeats, or keep them together with 'seqray split'",
        )


def _empty(skipped: int) -> Iterator[Finding]:
    if skipped:
        yield Finding(
            "caution",
            "empty_records",
            f"{skipped} {plural(skipped, 'record has', 'records have')} no letters and "
            f"{plural(skipped, 'was', 'were')} left out",
            "counts differ from those of studies that kept them",
            "remove them from the files",
        )


def _class_shares(table: FigureTable) -> Iterator[Finding]:
    for f in table.named("counts", "share"):
        trained = table.value("counts", "train", "share", f.label)
        measured = f.split in ("test", "validation") and f.label != EVERY_CLASS
        if measured and abs(f.value - trained) >= SHIFT:
            yield Finding(
                "note",
                "class_shares",
                f"class '{f.label}' is {percent(trained)} of training and {percent(f.value)} of {f.split}",
                "thresholds, precision and MCC depend on the share of a class",
                "adjust probabilities to the share expected in use ('seqray predict --prior')",
            )


def _ambiguous(table: FigureTable) -> Iterator[Finding]:
    for f in table.named("ambiguity", "with_ambiguous"):
        if f.label == EVERY_CLASS and f.value >= AMBIGUOUS:
            where = "" if f.split == "all" else f" of {f.split}"
            yield Finding(
                "note",
                "ambiguous_letters",
                f"{percent(f.value)} of the sequences{where} contain ambiguous letters",
                "they are read as unknown letters, so these sequences carry less information",
                "compare the classes in section 'ambiguity' of the table",
            )


def _order(table: FigureTable) -> Iterator[Finding]:
    for f in table.named("order", "z"):
        if f.value <= ORDER_Z:
            runs, expected = (table.value("order", f.split, q) for q in ("runs", "expected_runs"))
            where = "rows" if f.split == "all" else f"rows of {f.split}"
            yield Finding(
                "note",
                "row_order",
                f"{where} are sorted by class: {runs:.0f} blocks, {expected:.0f} expected in random order",
                "folds taken from the file without shuffling contain too few classes",
                "shuffle before splitting; seqray does",
            )


def _floor(table: FigureTable, settings: Mapping[str, str]) -> Iterator[Finding]:
    """The best baseline on the strictest test available, and on the given split or on random folds."""
    given_place = place_of_given(settings)
    found = [f for f in table.ending("baselines", "_mcc") if not math.isnan(f.value)]
    for split, place in (PLACES | {"given": given_place}).items():
        best = max((f for f in found if f.split == split), key=lambda f: f.value, default=None)
        if best is None:
            continue
        auroc = table.value("baselines", split, best.quantity.removesuffix("mcc") + "auroc", best.label)
        given = table.get("baselines", "given", best.quantity, best.label)
        beside = ""
        if given and split != "given" and not math.isnan(given.value):
            beside = f"; MCC {with_interval(given)} {given_place}"
        each = [f for f in found if (f.split, f.quantity) == (split, best.quantity)]
        class_named = ""
        if len(each) > 1:
            class_named = f" for{of_class(best.label)} against the rest"
            lowest = min(each, key=lambda f: f.value)
            mean = sum(f.value for f in each) / len(each)
            beside += (
                f"; over {len(each)} classes the mean MCC is {mean:.3f} and the lowest {lowest.value:.3f}"
                f" ('{lowest.label}')"
            )
        yield Finding(
            "note",
            "floor",
            f"{baseline_name(best.quantity)}{class_named} scores MCC {with_interval(best)} and "
            f"AUROC {auroc:.3f} {place}{beside}",
            "this is the score of simple k-mer counts and positions",
            "report it beside the score of your model; a model that does not exceed it adds nothing",
        )
        return
