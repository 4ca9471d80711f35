"""What ``seqray negatives`` reads: positives, a genome, its genes and its starts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from seqray.cli.common import noting_unread
from seqray.core import ConfigError, InputError, NoRecordsError
from seqray.datasets.negatives import RECIPES

if TYPE_CHECKING:
    from seqray.cli.negatives.arguments import GenomeOptions, NegativesRequest
    from seqray.core import Alphabet, LabeledSequence
    from seqray.datasets.negatives import Genome, GenomeContext
    from seqray.io.sequences import OnSkip
    from seqray.io.tracks import Feature


def read_positives(
    request: NegativesRequest, alphabet: Alphabet, on_skip: OnSkip, others: Counter[str]
) -> Iterator[LabeledSequence]:
    """Read the positives from sequences or a table, with unique ids.

    ``others`` receives the labels of rows that are left out, because they are not that of the positives.
    """
    from seqray.core import LabeledSequence
    from seqray.io.sequences import read_sequences

    path, label, options = request.positives, request.output.label_positive, request.records
    skip = None if options.strict else on_skip
    try:
        if is_table(path):
            yield from _positive_rows(request, alphabet, others)
            return
        for record in read_sequences(path, alphabet, duplicates=options.duplicates, on_skip=skip):
            yield LabeledSequence(record.sequence, label, record.id, file=path)
    except NoRecordsError as error:
        if not options.allow_empty:
            remedy = "--allow-empty gives an empty table instead"
            raise NoRecordsError(error.what, where=error.where, remedy=remedy) from None


def _positive_rows(
    request: NegativesRequest, alphabet: Alphabet, others: Counter[str]
) -> Iterator[LabeledSequence]:
    """The rows of a table that have the label of the positives."""
    from seqray.io.sequences import UniqueIds
    from seqray.io.tables import read_labeled_table

    path, label = request.positives, request.output.label_positive
    rows = read_labeled_table(path, alphabet, on_unread=noting_unread(request))
    chosen = [row for row in rows if row.label == label]
    if not chosen:
        labels = ", ".join(sorted({row.label for row in rows}))
        remedy = f"name one of its labels with --label-positive: {labels}"
        raise InputError(f"has no row labeled '{label}'", where=path, remedy=remedy)
    others.update(row.label for row in rows if row.label != label)
    ids = UniqueIds(request.records.duplicates, path)
    yield from (replace(row, id=ids.resolve(row.id)) for row in chosen)


def is_table(path: str) -> bool:
    """Whether a file is a table rather than sequences, by its first bytes."""
    from seqray.io import open_input
    from seqray.io.sequences import detect_format

    with open_input(path) as handle:
        head = handle.peek(1)
    return bool(head.strip()) and not detect_format(head)


def read_genome_context(
    options: GenomeOptions, alphabet: Alphabet, mix: Mapping[str, Fraction]
) -> tuple[GenomeContext | None, dict[str, object]]:
    """Read the genome, its genes and its starts, as far as the recipes need them.

    The context is None if no recipe needs a genome; the second value holds lines for the header.
    """
    needed = [name for name in mix if RECIPES[name].genome]
    if not needed or options.genome is None or not alphabet.is_nucleotide:
        return None, {}
    from seqray.datasets.negatives import GeneIntervals, Genome, GenomeContext
    from seqray.io.sequences import is_genbank, read_sequences
    from seqray.io.tracks import read_features

    genome = Genome.of(read_sequences(options.genome, alphabet), alphabet)
    source = options.annotation or (options.genome if is_genbank(options.genome) else None)
    features = read_features(source) if source else []
    annotation = None
    if source and any(RECIPES[name].annotation for name in needed):
        annotation = GeneIntervals.of(features, genome, source)
        if not any(annotation.coding.values()):
            raise InputError("has no coding sequence (CDS)", where=source, remedy="give another --annotation")
    if options.starts == "none":
        return GenomeContext(genome, annotation), {"starts": "none known"}
    avoiding = frozenset(needed if options.starts else {"genome"} & set(needed))
    near: dict[str, Any] = {}
    notes: dict[str, object] = {}
    if avoiding:
        starts = _read_starts(options, features, source)
        windows = (
            "windows" if avoiding == set(needed) else f"windows of recipe {' and '.join(sorted(avoiding))}"
        )
        near, notes = _near_starts_of(options, starts, genome, source, windows)
    return GenomeContext(genome, annotation, near, avoiding), notes


def _read_starts(options: GenomeOptions, features: Sequence[Feature], source: str | None) -> list[Feature]:
    """Features that count as starts, of ``--starts`` or of the annotation."""
    from seqray.io.tracks import read_features, select_features

    if not options.starts and not source:
        raise ConfigError(
            "recipe 'genome' requires the starts",
            remedy="give --starts FILE or --annotation FILE, or --starts none",
        )
    kinds = tuple(kind for kind in options.feature.split(",") if kind)
    found = read_features(options.starts) if options.starts else features
    return select_features(found, kinds, options.starts or source or "")


def _near_starts_of(
    options: GenomeOptions, starts: Sequence[Feature], genome: Genome, source: str | None, windows: str
) -> tuple[dict[str, Any], dict[str, object]]:
    """Letters near starts, and a line that says which ``windows`` keep away from them."""
    from seqray.datasets.negatives import near_starts

    near = near_starts(starts, genome, options.distance, options.strands, options.starts or source or "")
    strands = "of both strands" if options.strands == "both" else "of the window's strand"
    kinds = ", ".join(sorted({start.kind or "BED" for start in starts}))
    text = f"{len(starts)} ({kinds}); {windows} keep {options.distance} letters away from those {strands}"
    return near, {"starts": text}
