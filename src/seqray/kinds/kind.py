"""What a kind of model brings with it, so that no other code asks which kind a model is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from seqray.core import Alignment, Alphabet, Example, SequenceRecord

if TYPE_CHECKING:
    from seqray.core.results import Prediction
    from seqray.inference import PredictOptions
    from seqray.io.sequences import Duplicates, OnSkip
    from seqray.kinds.explanation_files import ExplanationRequest
    from seqray.kinds.explanation_run import ExplanationRun
    from seqray.kinds.labeled import LabeledFiles
    from seqray.modelfile import TrainedModel

Record = TypeVar("Record", SequenceRecord, Alignment)


class Kind(ABC, Generic[Record]):
    """A kind of model.

    Attributes
    ----------
    unit
        What it reads, for messages.
    example, pretraining_unit
        Type of its labeled examples, and what pre-training counts.
    options
        Options of the command line that only this kind takes, or not every kind.
    explanation_columns
        Columns of its table of explanations.
    """

    unit: ClassVar[str]
    example: ClassVar[type]
    pretraining_unit: ClassVar[str]
    options: ClassVar[frozenset[str]]
    explanation_columns: ClassVar[tuple[str, ...]]

    @abstractmethod
    def read(
        self,
        path: str | Path,
        alphabet: Alphabet,
        *,
        duplicates: Duplicates = "error",
        on_skip: OnSkip | None = None,
    ) -> Iterator[Record]:
        """Read a file.

        Parameters
        ----------
        path
            The file, ``-`` for standard input.
        alphabet
            Validates and folds the letters.
        duplicates
            What happens to ids that occur again.
        on_skip
            Receives each record that can't be used; without it the first one is an error.
        """

    @abstractmethod
    def read_labeled(
        self, files: LabeledFiles, alphabet: Alphabet, on_skip: OnSkip | None = None
    ) -> Sequence[Example]:
        """Read labeled examples.

        Parameters
        ----------
        files
            Where they are.
        alphabet
            Validates and folds the letters.
        on_skip
            Receives each record without letters; without it the first one is an error.
        """

    @abstractmethod
    def adapt(self, examples: Sequence[Example], window: int) -> Sequence[Example]:
        """Examples in the form that this kind reads; ``window`` is the longest input.

        Raises
        ------
        ConfigError
            For examples that have no such form.
        """

    @abstractmethod
    def unlabeled(self, record: Record) -> str | Alignment:
        """What pre-training learns from a record."""

    @abstractmethod
    def convert(self, things: Any, alphabet: Alphabet) -> Iterator[Record]:
        """Convert whatever Python object holds the input; see `seqray.kinds.python_objects`."""

    @abstractmethod
    def predict(
        self, model: TrainedModel, records: Iterable[Record], options: PredictOptions, source: str = ""
    ) -> Iterator[Prediction]:
        """Classify records, in order.

        Parameters
        ----------
        model
            Of this kind.
        records
            As `read` or `convert` yield them.
        options
            How to compute and call.
        source
            Name of the file, for errors.
        """

    @abstractmethod
    def explain(
        self,
        model: TrainedModel,
        records: Iterable[Record],
        methods: tuple[str, ...],
        options: Mapping[str, Any],
    ) -> Iterator[Any]:
        """Explain records, in order.

        Parameters
        ----------
        model
            Of this kind.
        records
            As `read` or `convert` yield them.
        methods
            Names of methods.
        options
            Other fields of the options of this kind's explanations.
        """

    @abstractmethod
    def explanation_rows(self, explanation: Any, top: int | None = None) -> Iterator[tuple[object, ...]]:
        """Cells of its table of explanations; ``top`` limits them to that many of the best ranks."""

    @abstractmethod
    def explanation_run(
        self, model: TrainedModel, request: ExplanationRequest
    ) -> ExplanationRun[Any, Any, Any]:
        """Begin a run of ``seqray explain``."""


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
