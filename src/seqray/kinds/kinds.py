"""Kinds of models: what each reads, unlabeled and labeled, and how it predicts and explains."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import numpy as np

from seqray.core.alphabet import ANY_LETTERS, PROTEIN, Alphabet, alphabet_of, infer_alphabet
from seqray.core.arrays import Floats
from seqray.core.card import Card
from seqray.core.errors import ConfigError, InputError, OtherLettersError, require, require_type, setting
from seqray.core.records import Alignment, Example, LabeledSequence, SequenceRecord
from seqray.core.results import Prediction
from seqray.core.run_config import RunConfig
from seqray.core.text import describe_truncation, first_and_more
from seqray.explanations.options import GENOME_METHODS, AlignmentOptions, ExplainOptions
from seqray.inference.origin import FileCheck, recognize_context
from seqray.inference.sequences import Batch, PredictOptions, known_context, predict_batches
from seqray.io.alignments import read_alignments, read_labeled_alignments, read_labeled_stockholm
from seqray.io.explanations import COLUMN_COLUMNS, EXPLANATION_COLUMNS, column_lines, explanation_rows
from seqray.io.records import OnLetters, OnSkip
from seqray.io.sequences import OnUnread, read_labeled_fastas, read_labeled_table, read_sequences
from seqray.io.tables import Columns

if TYPE_CHECKING:
    from seqray.modelfile.model import TrainedModel

E = TypeVar("E", LabeledSequence, Alignment)
SplitExamples = tuple[str | None, list[LabeledSequence]]
"""Examples of one file, with the split that is assigned to all of them."""

# --- Labeled examples in files: tables, one FASTA file per class, or alignments with a table of labels


@dataclass(frozen=True, slots=True, kw_only=True)
class LabeledFiles:
    """Where labeled examples are: in files, or in memory as ``examples``."""

    examples: Sequence[Any] = ()
    tables: Sequence[tuple[str | None, Any]] = ()  # paths, or pandas frames
    fastas: Mapping[str, str] = field(default_factory=dict)
    alignment_labels: str | None = None
    query_only: bool = False
    on_unread: OnUnread | None = None
    on_unlabeled: Callable[[str, int], None] | None = None
    keep: Mapping[str, list[str]] = field(default_factory=dict)
    columns: Columns | None = None


def read_parts(
    files: LabeledFiles,
    alphabet: Alphabet,
    on_letters: OnLetters | None = None,
    on_skip: OnSkip | None = None,
) -> list[SplitExamples]:
    """Read labeled sequences with the splits that their files name."""
    how = {
        "on_letters": on_letters,
        "on_unread": files.on_unread,
        "keep": files.keep,
        "columns": files.columns,
    }
    tables = [(s, read_labeled_table(p, alphabet, **how)) for s, p in files.tables]
    if files.fastas:
        tables.append((None, read_labeled_fastas(files.fastas, alphabet, on_letters, on_skip)))
    for one in files.examples:
        require_type(one, LabeledSequence, "give sequences with labels")
        if on_letters is not None:
            on_letters(one.sequence)
    if files.examples:
        read = [replace(e, sequence=alphabet.normalize(e.sequence, e.where)) for e in files.examples]
        tables.append((None, read))
    if not tables:
        remedy = "give --train TABLE, or --class LABEL=FASTA for each class"
        raise InputError("no training data", remedy=remedy)
    return tables


def read_sequence_examples(
    files: LabeledFiles,
    alphabet: Alphabet | str | None = None,
    on_letters: OnLetters | None = None,
    on_skip: OnSkip | None = None,
) -> tuple[list[LabeledSequence], Alphabet]:
    """Read labeled sequences, each with the split of its file; their letters tell an alphabet of None."""
    known = ANY_LETTERS if alphabet is None else alphabet_of(alphabet)
    examples = with_named_splits(read_parts(files, known, on_letters, on_skip))
    return in_inferred_alphabet(examples) if alphabet is None else (examples, known)


def in_inferred_alphabet(examples: Sequence[LabeledSequence]) -> tuple[list[LabeledSequence], Alphabet]:
    """Write examples of any letters in those of their alphabet, see `seqray.core.alphabet.infer_alphabet`."""
    alphabet = infer_alphabet(example.sequence for example in examples)
    written, others = list[LabeledSequence](), list[tuple[str, OtherLettersError]]()
    for e in examples:
        try:
            written.append(replace(e, sequence=alphabet.normalize(e.sequence, e.where)))
        except OtherLettersError as error:
            others.append((e.id, error))
    if not others:
        return written, alphabet
    first, letters = others[0][1], alphabet.name if alphabet is PROTEIN else alphabet.name.upper()
    remedy = f"most letters of the data are {letters}: give sequences of one kind"
    alike = first_and_more((f"'{name}'" for name, _ in others[1:]), 5, of="records")
    what = f"{first.what}, and so do {alike}" if alike else first.what
    raise InputError(what, where=first.where, remedy=remedy)


def with_named_splits(parts: Sequence[tuple[str | None, Sequence[E]]]) -> list[E]:
    """The examples of all parts, each of the split that is assigned to its file, if there is one."""
    examples = []
    for split, part in parts:
        others = [one for one in part if split is not None and one.split not in (None, split)]
        if others:
            count = f" ({len(others)} records are not of '{split}')"
            takes = f"--{split} takes its whole file as '{split}'{count}"
            what = f"is of the split '{others[0].split}', but {takes}"
            remedy = "give the file with --train, which keeps its splits, or leave out the column 'split'"
            raise InputError(what, where=others[0].where, remedy=remedy)
        examples += part if split is None else [replace(one, split=split) for one in part]
    return examples


def read_alignment_examples(files: LabeledFiles, alphabet: Alphabet) -> list[Alignment]:
    """Read labeled alignments; InputError where there are none, or FASTA files of classes."""
    if files.fastas:
        raise InputError("--class takes sequences, not alignments", remedy="give --train TABLE")
    if files.examples and all(isinstance(one, Alignment) for one in files.examples):
        return list(files.examples)
    if not files.tables:
        remedy = "give --train TABLE, or --train FILE --alignment-labels TABLE"
        raise InputError("no training data", remedy=remedy)
    splits, paths = [split for split, _ in files.tables], [path for _, path in files.tables]
    how = {"on_unread": files.on_unread, "columns": files.columns}
    if files.alignment_labels:
        parts, unlabeled = read_labeled_stockholm(paths, files.alignment_labels, alphabet, **how)
        if unlabeled and files.on_unlabeled is not None:
            files.on_unlabeled(files.alignment_labels, unlabeled)
    else:
        parts = [read_labeled_alignments(path, alphabet, **how) for path in paths]
    examples = with_named_splits(list(zip(splits, parts, strict=True)))
    return [one.take_rows([0]) for one in examples] if files.query_only else examples


def queries(alignments: Iterable[Alignment], window: int) -> list[LabeledSequence]:
    """First rows without gaps, cut to the window: the training input of a sequence model."""
    return [
        LabeledSequence(one.sequence[:window], one.label or "", one.id, one.group, one.split)
        for one in alignments
    ]


# --- The kinds: models of sequences, and what differs for those of alignments and for locators


class Kind:
    """Models that read single sequences, with networks of seqray or on a backbone; others override."""

    unit = "sequences"
    example: type = LabeledSequence
    pretraining_unit = "windows"
    explain_options: type = ExplainOptions
    default_methods: tuple[str, ...] = ExplainOptions.methods
    explanation_columns = EXPLANATION_COLUMNS
    read: Callable[..., Iterator[Any]] = staticmethod(read_sequences)
    explanation_rows: Callable[[Any, int | None], Iterator[tuple[object, ...]]] = staticmethod(
        explanation_rows
    )

    def describe_truncation(self, count: int, total: int, card: Card) -> str:
        """Say that so many of all inputs were read in part."""
        return describe_truncation(count, total, card.window, card.truncate)

    def reader(self, columns: Columns | None) -> Callable[..., Iterator[Any]]:
        """What reads a file; ``columns`` says how a table calls those of sequences and ids."""
        return partial(self.read, columns=columns or {})

    def convert(
        self, things: Any, alphabet: Alphabet, on_skip: OnSkip | None = None, columns: Columns | None = None
    ) -> Iterator[Any]:
        """Turn any Python object into records, see `seqray.kinds.objects`."""
        from seqray.kinds.objects import as_records

        return as_records(things, alphabet, on_skip=on_skip, columns=columns)

    def read_labeled(
        self, files: LabeledFiles, alphabet: Alphabet, on_skip: OnSkip | None = None
    ) -> Sequence[Example]:
        """Read labeled examples; ``on_skip`` gets each record without letters, which else is an error."""
        if files.query_only:
            return read_alignment_examples(files, alphabet)
        if files.alignment_labels:
            raise ConfigError(
                "--alignment-labels is for models that read alignments, and this one reads sequences",
                remedy="choose another model, or add --query-only to take the first rows",
            )
        return read_sequence_examples(files, alphabet, on_skip=on_skip)[0]

    def adapt(self, examples: Sequence[Example], window: int) -> Sequence[Example]:
        """The examples in the form that this kind reads."""
        alignments = [one for one in examples if isinstance(one, Alignment)]
        return queries(alignments, window) if alignments else examples

    def unlabeled(self, record: Any) -> Any:
        """What pre-training learns from a record."""
        return record.sequence

    def predict(
        self, model: TrainedModel, records: Iterable[Any], options: PredictOptions, source: str
    ) -> Iterator[Batch]:
        """Batches of records of an input of some name, and what is predicted for them."""
        return predict_batches(model, records, options, source)

    def explain(self, model: TrainedModel, records: Iterable[Any], options: Any) -> Iterator[Any]:
        """Explanations of records, in order."""
        from seqray.explanations.sequences import explain_records

        return explain_records(model, records, options)


class AlignmentKind(Kind):
    """Models that read alignments."""

    unit = "alignments"
    example = Alignment
    pretraining_unit = "alignments"
    explain_options = AlignmentOptions
    default_methods = AlignmentOptions.methods
    explanation_columns = COLUMN_COLUMNS
    read = staticmethod(read_alignments)
    explanation_rows = staticmethod(column_lines)

    def describe_truncation(self, count: int, total: int, card: Card) -> str:
        which = f"{count} of {total} alignments have letters in more than {card.window} columns"
        return f"{which}: the {card.window} columns with the most letters are read"

    def reader(self, columns: Columns | None) -> Callable[..., Iterator[Any]]:
        return self.read

    def convert(
        self, things: Any, alphabet: Alphabet, on_skip: OnSkip | None = None, columns: Columns | None = None
    ) -> Iterator[Any]:
        from seqray.kinds.objects import as_alignments

        require(columns is None, "columns", "is for models that read sequences")

        return as_alignments(things, alphabet, on_skip=on_skip)

    def read_labeled(
        self, files: LabeledFiles, alphabet: Alphabet, on_skip: OnSkip | None = None
    ) -> Sequence[Example]:
        return read_alignment_examples(files, alphabet)

    def adapt(self, examples: Sequence[Example], window: int) -> Sequence[Example]:
        if not all(isinstance(one, Alignment) for one in examples):
            raise ConfigError("the model reads alignments, and the data are sequences")
        return examples

    def unlabeled(self, record: Any) -> Any:
        return record

    def predict(
        self, model: TrainedModel, records: Iterable[Any], options: PredictOptions, source: str
    ) -> Iterator[Batch]:
        from seqray.inference.alignments import predict_alignment_batches

        return predict_alignment_batches(model, records, options)

    def explain(self, model: TrainedModel, records: Iterable[Any], options: Any) -> Iterator[Any]:
        from seqray.explanations.alignments import explain_alignments

        return explain_alignments(model, records, options)


class LocatorKind(Kind):
    """Models that read whole strands with their genes, and find sites."""

    unit = "genomes"
    example = SequenceRecord
    pretraining_unit = "genomes"
    default_methods = GENOME_METHODS

    def read_labeled(self, *_: object, **__: object) -> NoReturn:
        raise ConfigError(
            "a model for genomes reads genomes and a table of sites, not labeled examples",
            remedy="use 'seqray train --genome' or 'seqray scan'",
        )

    adapt = read_labeled

    def predict(self, model: TrainedModel, *_: Any, **__: Any) -> NoReturn:
        raise ConfigError(
            f"model '{model.card.name}' is a model for genomes, which classifies no sequences",
            remedy="use 'seqray scan' to find sites",
        )

    explain = predict


KINDS: Mapping[str, Kind] = {
    "sequence": (SEQUENCES := Kind()),
    "backbone": SEQUENCES,
    "own": SEQUENCES,
    "alignment": AlignmentKind(),
    "locator": LocatorKind(),
}
"""The only table of kinds, by the settings of a model."""


def kind_of(described: Card | RunConfig) -> Kind:
    """The kind of the model that a card or the settings of a training describe."""
    return KINDS[described.model.kind]


# --- Labeled examples, each read as what it is from


def read_in_contexts(
    context: str | None, model: TrainedModel, examples: Sequence[Example]
) -> tuple[list[Any], list[str]]:
    """Give each record the context in which the model reads it, if it knows some, and say so in notes."""
    if context not in ("auto", "none", None):
        name = model.with_context(context).context
        note = f"all records are read as {name} ({setting('context')})"
    elif not model.card.model.contexts:
        return list(examples), []
    elif context != "auto":
        name, note = None, f"the model knows contexts, but gets none ({setting('context', 'none')})"
    elif known := sum(known_context(model, example.context) is not None for example in examples):
        unknown = len(examples) - known
        return list(examples), [f"{unknown} records are of no context that the model knows"] * bool(unknown)
    else:
        records = (SequenceRecord(example.id, example.sequence) for example in examples)
        name = recognize_context(model, records)[0].context
        if name is None:
            return list(examples), ["the records are of no context that the model knows"]
        note = f"all records are read as {name}, which they are like ({setting('context', 'auto')})"
    return [replace(example, context=name) for example in examples], [note]


def model_probabilities(
    model: TrainedModel,
    examples: Sequence[Example],
    *,
    on_batch: Callable[[Sequence[Prediction]], None] = lambda _: None,
    **settings: Any,
) -> Floats:
    """Calibrated probabilities (N, K) of examples, each sequence in the context that the data name."""
    kind, options = kind_of(model.card), PredictOptions(**settings)
    probabilities = np.empty((len(examples), len(model.card.classes)))
    sequences = [one for one in examples if isinstance(one, LabeledSequence)]
    contexts = [known_context(model, one.context) for one in sequences] or [None] * len(examples)
    files = {one.file for one in sequences}
    source = files.pop() if len(files) == 1 else ""
    for name in dict.fromkeys(contexts):
        rows = [i for i, context in enumerate(contexts) if context == name]
        reader = model if name is None else model.with_context(name)
        chosen, done = (examples[i] for i in rows), 0
        records = (x if isinstance(x, Alignment) else SequenceRecord(x.id, x.sequence) for x in chosen)
        for _, predictions in kind.predict(reader, records, options, source):
            part = rows[done : done + len(predictions)]
            probabilities[part] = [prediction.probabilities for prediction in predictions]
            done += len(predictions)
            on_batch(predictions)
    return probabilities


def judge_examples(
    model: TrainedModel,
    examples: Sequence[Example],
    context: str | None,
    *,
    prior: float | None = None,
    watch: Callable[[Iterable[Prediction]], Iterable[Prediction]] = iter,
    **settings: Any,
) -> tuple[Floats, FileCheck, list[str]]:
    """Probabilities (N, K) without the flanks of training data, what was seen of the file, and notes."""
    card = model.card
    read, notes = read_in_contexts(context, model, examples)
    records = [
        replace(one, sequence=card.trim_flanks(one.sequence)) if isinstance(one, LabeledSequence) else one
        for one in kind_of(card).adapt(read, card.window)
    ]
    check = FileCheck(model, prior=prior, recognized=True)
    check.see(records)
    scores = model_probabilities(
        model, records, on_batch=lambda batch: check.see(predictions=watch(batch)), prior=prior, **settings
    )
    return scores, check, notes
