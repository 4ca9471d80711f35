"""Data and predictions of an evaluation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from seqray.cli.model import AUTO, NO_CONTEXT, naming_other_models
from seqray.core.alphabet import ALPHABETS, Alphabet, canonical_strand
from seqray.core.card import Card
from seqray.core.errors import ConfigError, InputError
from seqray.core.records import Example, LabeledSequence, SequenceRecord
from seqray.core.results import Answers
from seqray.homology.kmers import kmer_groups, kmer_length
from seqray.kinds.kinds import LabeledFiles, kind_of

if TYPE_CHECKING:
    from seqray.cli.evaluate_options import EvaluateRequest, MeasureOptions
    from seqray.modelfile.model import TrainedModel


# --- The context in which a model reads each record: of the data, of the command line, or recognized


def set_contexts(
    how: MeasureOptions, model: TrainedModel, examples: Sequence[LabeledSequence]
) -> tuple[list[LabeledSequence], list[str]]:
    """Give each record the context in which the model reads it.

    A model without contexts takes the records as they are. The second value holds notes for the reader.
    ConfigError is raised for a context that the model doesn't know.
    """
    if how.context not in (AUTO, NO_CONTEXT):
        name = model.with_context(how.context).context
        return _all_in(name, examples), [f"all records are read as {name} (--context)"]
    if not model.card.model.contexts:
        return list(examples), []
    if how.context == NO_CONTEXT:
        return _all_in(None, examples), ["the model knows contexts, but gets none (--context none)"]
    from seqray.inference.labeled import known_context, recognize_context

    unknown = sum(known_context(model, example.context) is None for example in examples)
    if unknown < len(examples):
        note = f"{unknown} records are of no context that the model knows"
        return list(examples), [note] if unknown else []
    name = recognize_context(model, (SequenceRecord(one.id, one.sequence) for one in examples))[0].context
    if name is None:
        return list(examples), ["the records are of no context that the model knows"]
    return _all_in(name, examples), [f"all records are read as {name}, which they are like (--context auto)"]


def _all_in(name: str | None, examples: Sequence[LabeledSequence]) -> list[LabeledSequence]:
    return [replace(example, context=name) for example in examples]


# --- Labeled examples to evaluate: read, renamed, and divided into evaluation and training data


@dataclass(slots=True)
class EvaluationInput:
    """Everything that is measured.

    Attributes
    ----------
    name, sha256
        Of the model, or of the table of predictions.
    examples, train
        What is evaluated, in order of id, and what the floor may learn from.
    classes, positive
        Names in the order of the scores, and the one that counts as positive.
    answers
        Of the model, then of what it is compared with.
    card
        Facts of the model for the JSON file; empty for tables.
    read
        Number of labeled examples read; None where a table of labels is all.
    """

    name: str
    sha256: str
    alphabet: Alphabet
    examples: list[LabeledSequence]
    train: list[LabeledSequence]
    split: str
    classes: tuple[str, ...]
    positive: str
    answers: list[Answers]
    card: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    read: int | None = None


def read_for(request: EvaluateRequest, card: Card, notes: list[str]) -> list[Any]:
    """Read what a model takes: labeled sequences, or alignments, which have the same fields.

    ``notes`` receives a line about records that are left out.
    """
    files = request.data.located(request, request.labels)
    if not (files.tables or files.fastas):
        remedy = "give --test TABLE, or --test-class LABEL=FASTA for each class"
        raise InputError("no labeled data", remedy=remedy)
    return read_with_notes(kind_of(card).read_labeled, files, ALPHABETS[card.model.alphabet], notes)


def as_read_by(card: Card, examples: Sequence[LabeledSequence]) -> Sequence[Example]:
    """The same examples in the form that a model takes: sequences lose the flanks of its training data."""
    return [
        replace(one, sequence=card.trim_flanks(one.sequence)) if isinstance(one, LabeledSequence) else one
        for one in kind_of(card).adapt(examples, card.window)
    ]


def read_with_notes(
    read: Callable[..., Sequence[Any]], files: LabeledFiles, alphabet: Alphabet, notes: list[str]
) -> list[Any]:
    """Labeled examples; those without letters are noted and left out."""
    skipped: list[str] = []
    with naming_other_models():
        data = read(files, alphabet, on_skip=lambda record: skipped.append(record.id))
    if skipped:
        notes.append(f"{len(skipped)} records without letters are left out, such as '{skipped[0]}'")
    return list(data)


def choose_split(
    data: Sequence[LabeledSequence], wanted: str | None
) -> tuple[list[LabeledSequence], list[LabeledSequence], str]:
    """Evaluated examples, examples for training the floor, and the name of the evaluated part.

    Without ``wanted`` the split ``test`` is evaluated if there is one, else everything. Examples of split
    ``train``, or of none beside a named split, are for learning. Both come in order of id, so that the order
    of the input decides nothing.
    """
    names = {example.split for example in data}
    split = wanted or ("test" if "test" in names else "all")
    if split == "all":
        return ordered(data), [], split
    chosen = [example for example in data if example.split == split]
    if not chosen:
        known = ", ".join(sorted(name for name in names if name)) or "none"
        raise InputError(f"no example of split '{split}'", remedy=f"splits: {known}; or --split all")
    rest = [example for example in data if example.split in (None, "train") and split != "train"]
    return ordered(chosen), ordered(rest), split


def ordered(examples: Sequence[LabeledSequence]) -> list[LabeledSequence]:
    return sorted(examples, key=lambda e: (e.id, e.sequence, e.label, e.context or "", e.group or ""))


def renamed(examples: list[LabeledSequence], items: Sequence[str]) -> list[LabeledSequence]:
    """Rename labels by ``--map OLD=NEW``.

    ConfigError is raised for a word of another form, a label that is renamed twice, and one that no example
    has.
    """
    names = dict[str, str]()
    for item in items:
        old, equals, new = item.rpartition("=")
        if not (old and equals and new):
            raise ConfigError(f"'--map {item}' renames nothing", remedy="write --map LABEL=CLASS")
        if old in names:
            what = f"--map renames the label '{old}' twice, to {names[old]} and to {new}"
            raise ConfigError(what, remedy="give one --map for each label")
        names[old] = new
    unused = set(names) - {example.label for example in examples}
    if examples and unused:
        raise ConfigError(f"no example has the label '{sorted(unused)[0]}' that --map renames")
    return [replace(example, label=names.get(example.label, example.label)) for example in examples]


def check_labels(examples: Sequence[LabeledSequence], classes: Sequence[str]) -> None:
    """Refuse an example whose label is none of the classes."""
    for example in examples:
        if example.label not in classes:
            raise InputError(
                f"has the label '{example.label}', which is none of {', '.join(classes)}",
                where=example.where,
                remedy=f"rename it by --map {example.label}=CLASS, or give --unknown-labels drop",
            )


def group_keys(
    examples: Sequence[LabeledSequence], alphabet: Alphabet, how: str
) -> tuple[list[object] | None, str]:
    """Groups that the bootstrap draws as a whole: a key for each example or None, and a description.

    Examples without a group are groups of their own.

    ``how`` is ``column``, ``words``, ``none`` or ``auto``, as ``--groups``.
    """
    named = any(example.group for example in examples)
    lettered = all(example.sequence for example in examples)
    if how == "column" and not named:
        remedy = "name them in a column 'group', or use --groups words"
        raise ConfigError("no example has a group", remedy=remedy)
    if how == "words" and not lettered:
        raise ConfigError("--groups words needs sequences", remedy="use --groups none")
    if how == "column" or (how == "auto" and named):
        keys: list[object] = [example.group or ("", i) for i, example in enumerate(examples)]
        return keys, "groups of the column 'group' drawn whole"
    if how == "words" or (how == "auto" and lettered):
        k = kmer_length(alphabet)
        keys = kmer_groups([e.sequence for e in examples], k, alphabet=alphabet).tolist()
        return keys, f"sequences that share {k} letters drawn together"
    return None, "records drawn one by one"


def shared_records(
    examples: Sequence[LabeledSequence], train: Sequence[LabeledSequence], alphabet: Alphabet
) -> Iterator[str]:
    """A note that counts evaluated sequences that the floor learns from, on either strand."""
    known = {canonical_strand(one.sequence, alphabet) for one in train} - {""}
    shared = sum(canonical_strand(one.sequence, alphabet) in known for one in examples)
    if shared:
        yield (
            f"{shared} of {len(examples)} records are also in the training data that the floor learns from "
            "(--train): it remembers them, and its figures are too good; leave them out (seqray split)"
        )


def shared_groups(examples: Sequence[LabeledSequence], train: Sequence[LabeledSequence]) -> Iterator[str]:
    """A note that counts evaluated examples whose named group is also in the training data."""
    known = {example.group for example in train} - {None, ""}
    shared = sum(example.group in known for example in examples)
    if shared:
        yield (
            f"{shared} of {len(examples)} records have a group (column 'group') that training records have, "
            "too: the figures may be too high for new groups; split by whole groups (seqray split)"
        )
