"""What each kind of model reads, and how it predicts and explains."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from seqray.core.alphabet import Alphabet
from seqray.core.card import Card
from seqray.core.errors import ConfigError
from seqray.core.records import Alignment, Example, LabeledSequence, SequenceRecord
from seqray.core.run_config import RunConfig
from seqray.core.text import describe_cropping, describe_truncation
from seqray.explanations.options import AlignmentOptions, ExplainOptions
from seqray.genome.tracks import gene_tracks, track_rows
from seqray.inference.sequences import Batch, predict_batches
from seqray.io.alignments import read_alignments
from seqray.io.explanations import COLUMN_COLUMNS, EXPLANATION_COLUMNS, column_lines, explanation_rows
from seqray.io.records import OnSkip
from seqray.io.sequences import read_sequences
from seqray.kinds.labeled import LabeledFiles, queries, read_alignment_examples, read_sequence_examples

if TYPE_CHECKING:
    from seqray.core.explanation import AlignmentExplanation, Explanation
    from seqray.explanations.calls import TracksOf
    from seqray.genome.genes import Gene
    from seqray.genome.tracks import Tracks
    from seqray.inference.predictions import PredictOptions
    from seqray.modelfile.model import TrainedModel


# --- What the commands and the Python functions do differently for each kind of model

Records = Iterable[Any]


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A kind of model: what it reads, and the functions that open, classify and explain its input.

    Attributes
    ----------
    unit
        What it reads, for messages.
    example, pretraining_unit
        Type of its labeled examples, and what pre-training counts.
    reads_each_record
        Whether every record of a FASTA file is an input of its own.
    describe_truncation
        Number of inputs that were read in part, of all, and the card to a sentence.
    options
        Options of the command line that not every kind takes.
    read
        Path and alphabet, with ``duplicates`` and ``on_skip`` as of `seqray.io.sequences.read_sequences`, to
        records.
    convert
        Any Python object and an alphabet to records, see `seqray.kinds.python_objects`.
    read_labeled
        `seqray.kinds.LabeledFiles` and an alphabet to labeled examples; ``on_skip`` receives each record
        without letters, which is an error otherwise.
    adapt
        Examples and the longest input to examples in the form that this kind reads.
    unlabeled
        A record to what pre-training learns from it.
    predict
        Model, records, options and the name of the input to batches: records, and what is predicted for them.
    explain, explain_options
        Model, records and options to explanations, in order; and the type of the options.
    explanation_columns, explanation_rows
        Columns of the table of explanations, and the cells of its rows for one explanation, with the most
        positions wanted.
    """

    unit: str
    example: type
    pretraining_unit: str
    reads_each_record: bool
    describe_truncation: Callable[[int, int, Card], str]
    options: frozenset[str]
    read: Callable[..., Iterator[Any]]
    convert: Callable[[Any, Alphabet], Iterator[Any]]
    read_labeled: Callable[..., Sequence[Example]]
    adapt: Callable[[Sequence[Example], int], Sequence[Example]]
    unlabeled: Callable[[Any], Any]
    predict: Callable[[TrainedModel, Records, PredictOptions, str], Iterator[Batch]]
    explain: Callable[[TrainedModel, Records, Any], Iterator[Any]]
    explain_options: type
    explanation_columns: tuple[str, ...]
    explanation_rows: Callable[[Any, int | None], Iterator[tuple[object, ...]]]


# --- Models that read single sequences, with networks of seqray or on a backbone


def _read_labeled(
    files: LabeledFiles, alphabet: Alphabet, on_skip: OnSkip | None = None
) -> Sequence[Example]:
    if files.query_only:
        return read_alignment_examples(files, alphabet)
    if files.alignment_labels:
        raise ConfigError(
            "--alignment-labels is for models that read alignments, and this one reads sequences",
            remedy="choose another model, or add --query-only to take the first rows",
        )
    return read_sequence_examples(files, alphabet, on_skip=on_skip)


def convert_records(sequences: Any, alphabet: Alphabet) -> Iterator[SequenceRecord]:
    """See `seqray.kinds.as_records`."""
    from seqray.kinds.objects import as_records

    return as_records(sequences, alphabet)


def describe_cut_sequences(count: int, total: int, card: Card) -> str:
    """See `seqray.core.describe_truncation`."""
    return describe_truncation(count, total, card.window, card.truncate)


def _adapt(examples: Sequence[Example], window: int) -> Sequence[Example]:
    alignments = [one for one in examples if isinstance(one, Alignment)]
    return queries(alignments, window) if alignments else examples


def _explain(
    model: TrainedModel, records: Iterable[SequenceRecord], options: ExplainOptions
) -> Iterator[Explanation]:
    from seqray.explanations.sequences import explain_records

    return explain_records(model, records, options)


SEQUENCES = Kind(
    unit="sequences",
    example=LabeledSequence,
    pretraining_unit="windows",
    reads_each_record=True,
    describe_truncation=describe_cut_sequences,
    options=frozenset(
        {
            *("--calls", "--best-calls", "--track", "--motifs", "--heads", "--shuffles"),
            *("--members", "--fuse", "--spread", "--steps", "--truncate"),
        }
    ),
    read=read_sequences,
    convert=convert_records,
    read_labeled=_read_labeled,
    adapt=_adapt,
    unlabeled=lambda record: record.sequence,
    predict=predict_batches,
    explain=_explain,
    explain_options=ExplainOptions,
    explanation_columns=EXPLANATION_COLUMNS,
    explanation_rows=explanation_rows,
)


# --- Models that read alignments


def _convert(alignments: Any, alphabet: Alphabet) -> Iterator[Alignment]:
    from seqray.kinds.objects import as_alignments

    return as_alignments(alignments, alphabet)


def _alignments_adapt(examples: Sequence[Example], window: int) -> Sequence[Example]:
    if not all(isinstance(one, Alignment) for one in examples):
        raise ConfigError("the model reads alignments, and the data are sequences")
    return examples


def _predict(
    model: TrainedModel, records: Iterable[Alignment], options: PredictOptions, source: str
) -> Iterator[Batch]:
    from seqray.inference.alignments import predict_alignment_batches

    return predict_alignment_batches(model, records, options)


def _alignments_explain(
    model: TrainedModel, records: Iterable[Alignment], options: AlignmentOptions
) -> Iterator[AlignmentExplanation]:
    from seqray.explanations.alignments import explain_alignments

    return explain_alignments(model, records, options)


ALIGNMENTS = Kind(
    unit="alignments",
    example=Alignment,
    pretraining_unit="alignments",
    reads_each_record=False,
    describe_truncation=lambda count, total, card: describe_cropping(count, total, card.window),
    options=frozenset(
        {
            *("--rows", "--query-only", "--row-profile"),
        }
    ),
    read=read_alignments,
    convert=_convert,
    read_labeled=lambda files, alphabet, on_skip=None: read_alignment_examples(files, alphabet),
    adapt=_alignments_adapt,
    unlabeled=lambda alignment: alignment,
    predict=_predict,
    explain=_alignments_explain,
    explain_options=AlignmentOptions,
    explanation_columns=COLUMN_COLUMNS,
    explanation_rows=column_lines,
)


# --- Models that read whole strands with their genes: locators, which find sites

if TYPE_CHECKING:
    GenesOf = Callable[[SequenceRecord, bool], Sequence[Gene] | None]


def tracks_reader(model: TrainedModel, find: GenesOf | None) -> TracksOf:
    """Give `cut_stretches` the gene tracks that a locator names; None without genes.

    Parameters
    ----------
    model
        A locator.
    find
        A contig, and whether it is circular, to its genes.
    """
    rows = track_rows(model.card.model.tracks)

    def tracks_of(contig: SequenceRecord, strand: str, circular: bool) -> Tracks | None:
        genes = find(contig, circular) if find and rows else None
        if genes is None:
            return None
        return np.ascontiguousarray(gene_tracks(genes, len(contig), strand, circular=circular)[rows])

    return tracks_of


def _no_examples(*_: object, **__: object) -> NoReturn:
    raise ConfigError(
        "a locator reads genomes and a table of sites, not labeled examples",
        remedy="use 'seqray train --genome' or 'seqray scan'",
    )


def _refuse(card: Card) -> NoReturn:
    raise ConfigError(
        f"model '{card.name}' is a locator, which classifies no sequences",
        remedy="use 'seqray scan' to find sites",
    )


LOCATORS = Kind(
    unit="genomes",
    example=SequenceRecord,
    pretraining_unit="genomes",
    reads_each_record=True,
    describe_truncation=describe_cut_sequences,
    options=frozenset(
        {
            *("--calls", "--best-calls", "--track", "--motifs", "--shuffles", "--inputs"),
            *("--genes", "--codon-table", "--members", "--fuse", "--spread", "--steps"),
        }
    ),
    read=read_sequences,
    convert=convert_records,
    read_labeled=_no_examples,
    adapt=_no_examples,
    unlabeled=lambda record: record.sequence,
    predict=lambda model, records, options, source: _refuse(model.card),
    explain=lambda model, records, options: _refuse(model.card),
    explain_options=ExplainOptions,
    explanation_columns=EXPLANATION_COLUMNS,
    explanation_rows=explanation_rows,
)


# --- The kind of a model by its settings: the only table of kinds

KINDS: Mapping[str, Kind] = {
    "sequence": SEQUENCES,
    "backbone": SEQUENCES,
    "alignment": ALIGNMENTS,
    "locator": LOCATORS,
}


def kind_of(described: Card | RunConfig) -> Kind:
    """The kind of the model that a card or the settings of a training describe."""
    return KINDS[described.model.kind]


def check_options(kind: Kind, given: Iterable[str]) -> None:
    """Refuse options of the command line that this kind of model does not take.

    Raises
    ------
    ConfigError
        For an option of another kind.
    """
    for option in given:
        readers = [other.unit for other in KINDS.values() if option in other.options]
        if readers and option not in kind.options:
            reads = f"and this one reads {kind.unit}"
            raise ConfigError(f"{option} is for models that read {readers[0]}, {reads}")
