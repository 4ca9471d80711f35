"""The audit as a whole: labeled sequences in, figures and findings out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial

import numpy as np

from seqray.core.alphabet import Alphabet
from seqray.core.errors import OnProgress, track
from seqray.core.labels import label_faults
from seqray.core.records import LabeledSequence
from seqray.core.results import Audit, AuditFigure, Histogram
from seqray.datasets.audit.dataset import (
    AuditSet,
    composition_figures,
    composition_histograms,
    copy_figures,
    identity_figures,
    order_figures,
    relative_figures,
    relative_groups,
)
from seqray.datasets.audit.findings import draw_findings
from seqray.datasets.audit.rules import (
    Bootstrap,
    baseline_figures,
    cross_validation,
    given_validation,
    rule_figures,
    sample_rows,
)
from seqray.homology.kmers import chance_length, kmer_table, word_length

MAX_KMERS = 1 << 25  # of more letters an even sample of their k-mers is compared: bounds memory
SAMPLE = 16_000  # rows of each split that the baselines use
RESAMPLES = 300


def audit(
    examples: Sequence[LabeledSequence],
    alphabet: Alphabet,
    letters: Sequence[str] | None = None,
    *,
    in_file_order: bool = True,
    baselines: bool = True,
    seed: int = 0,
    sample: int = SAMPLE,
    resamples: int = RESAMPLES,
    skipped: int = 0,
    on_progress: OnProgress | None = None,
) -> Audit:
    """Find what would mislead a model trained on these sequences: leaks, copies, shortcuts.

    Parameters
    ----------
    examples
        Labeled sequences; their splits and groups are used, and checked.
    alphabet
        Of the sequences.
    letters
        Letters of each example as written in the file, before case was folded.
    in_file_order
        Whether the examples are in the order of one table, so that the order can be tested.
    baselines
        Whether to fit the linear baselines, the slowest part.
    seed
        Of folds, samples and resamples.
    sample
        Rows of each split that the baselines are trained and tested on, at most; drawn at random.
    resamples
        Of the bootstrap.
    skipped
        Records without letters that were left out by the reader, for the findings.
    on_progress
        Called after each check.

    Raises an InputError for fewer than two classes.

    Examples
    --------
    >>> from seqray.core.alphabet import DNA
    >>> examples = [LabeledSequence("ACGTTGCAAC", "a", "1", split="train")]
    >>> examples += [LabeledSequence("TTGGCCATGC", "b", "2", split="train")]
    >>> examples += [LabeledSequence("ACGTTGCAAC", "a", "3", split="test")]
    >>> found = audit(examples, DNA, baselines=False)
    >>> [finding.what for finding in found.findings if finding.kind == "copies_across"]
    ['exact copies across the split: 1 of 1 (100 %) of test also in train']
    """
    data = AuditSet(examples, alphabet, letters, in_file_order)
    k = word_length(data.sequences, alphabet)
    table = kmer_table(data.sequences, k, alphabet, most=MAX_KMERS)
    given, (groups, relatives) = given_validation(data, seed), relative_groups(data, table, k)
    bootstrap = Bootstrap(groups, resamples, seed)
    identities: list[AuditFigure] = []
    histograms: list[Histogram] = composition_histograms(data)
    if given is not None:
        identities, drawn = identity_figures(data, *given.pairs[0], seed)
        histograms += drawn
    checks: list[Callable[[], Iterable[AuditFigure]]] = [
        partial(composition_figures, data, groups),
        partial(copy_figures, data),
        partial(relative_figures, data, table),
        lambda: identities,
        partial(order_figures, data),
    ]
    if given is not None:
        checks.append(partial(rule_figures, data, given, bootstrap))
    grouped = cross_validation(data, groups, seed) if baselines else None
    if baselines:
        related = None  # (N,) held-out rows that share a k-mer with training
        if data.held_out:
            rows = data.rows(data.held_out)
            related = np.zeros(len(data), dtype=bool)
            related[rows] = table.sharing_across(rows, data.rows("train"))
        chosen = sample_rows(data, sample, seed)
        for validation, left_out in ((given, related), (grouped, None)):
            if validation is not None:
                checks.append(partial(baseline_figures, data, validation, chosen, left_out, bootstrap))
    figures = [figure for check in track(checks, len(checks), "audit", on_progress) for figure in check()]
    settings = {
        "alphabet": alphabet.name,
        "word": str(k),
        "chance_word": str(chance_length(data.sequences, alphabet)),
        "held_out": data.held_out or "",
        "given": given.description if given else "none: a class has too few examples",
        "relatives": relatives,
        "grouped": grouped.description if grouped else "none",
        "seed": str(seed),
        "resamples": str(resamples),
        "sample": str(sample),
    }
    return Audit(
        figures, histograms, draw_findings(figures, settings, skipped, label_faults(examples)), settings
    )
