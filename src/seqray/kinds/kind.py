"""What the commands and the Python functions do differently for each kind of model."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from seqray.core import Alphabet, Card, Example

if TYPE_CHECKING:
    from seqray.core.results import Prediction
    from seqray.inference import PredictOptions
    from seqray.modelfile import TrainedModel

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
        Model, records, options and the name of the input to predictions, in order.
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
    predict: Callable[[TrainedModel, Records, PredictOptions, str], Iterator[Prediction]]
    explain: Callable[[TrainedModel, Records, Any], Iterator[Any]]
    explain_options: type
    explanation_columns: tuple[str, ...]
    explanation_rows: Callable[[Any, int | None], Iterator[tuple[object, ...]]]
