"""What a kind of model brings with it, so that no other code asks which kind a model is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from seqray.core import Alphabet, Example

if TYPE_CHECKING:
    from seqray.core.results import Prediction
    from seqray.inference import PredictOptions
    from seqray.kinds.explanation_files import ExplanationRequest
    from seqray.kinds.explanation_run import ExplanationRun
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
    explain
        Model, records, names of methods and other options to explanations, in order.
    explanation_columns, explanation_rows
        Columns of the table of explanations, and the cells of its rows for one explanation, with the most
        positions wanted.
    explanation_run
        Model and request to a run of ``seqray explain``.
    """

    unit: str
    example: type
    pretraining_unit: str
    reads_each_record: bool
    options: frozenset[str]
    read: Callable[..., Iterator[Any]]
    convert: Callable[[Any, Alphabet], Iterator[Any]]
    read_labeled: Callable[..., Sequence[Example]]
    adapt: Callable[[Sequence[Example], int], Sequence[Example]]
    unlabeled: Callable[[Any], Any]
    predict: Callable[[TrainedModel, Records, PredictOptions, str], Iterator[Prediction]]
    explain: Callable[[TrainedModel, Records, tuple[str, ...], Mapping[str, Any]], Iterator[Any]]
    explanation_columns: tuple[str, ...]
    explanation_rows: Callable[[Any, int | None], Iterator[tuple[object, ...]]]
    explanation_run: Callable[[TrainedModel, ExplanationRequest], ExplanationRun[Any, Any, Any]]


def checked_options(options: Any, given: Mapping[str, Any], *reserved: str) -> Mapping[str, Any]:
    """Refuse the name of a setting that doesn't exist, as Python does for an argument.

    Parameters
    ----------
    options
        A dataclass.
    given
        Values by name.
    *reserved
        Fields that can't be given.
    """
    names = [field.name for field in fields(options) if field.name not in reserved]
    for name in given:
        if name not in names:
            raise TypeError(f"unknown setting '{name}'; known are {', '.join(names)}")
    return given
