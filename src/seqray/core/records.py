"""Sequences and alignments: validated once, then immutable."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from seqray.core.alphabet import Alphabet
from seqray.core.arrays import Codes
from seqray.core.column_codes import decode_columns, missing_code
from seqray.core.errors import require_type

MISSING_TEXTS = {"nan", "na", "none", "<na>"}
"""What a missing value becomes as text, in lower case. As letters, ``nan`` would be N, A, N."""


@dataclass(frozen=True, slots=True)
class SequenceRecord:
    """One named sequence.

    Attributes
    ----------
    id
        First word of the FASTA header (or the accession.version of a GenBank record).
    sequence
        Letters folded to upper case and validated by an alphabet.
    description
        The rest of the header.
    soft_masked
        Half-open, 0-based intervals that were lower case in the file; empty where its reader was not asked to
        note them.
    circular
        True if the file marks it so (GenBank topology).
    ID_SOURCE
        Where a file states ids, for errors; as of `Alignment`.

    Examples
    --------
    >>> record = SequenceRecord("plasmid", "ACGTTG", circular=True)
    >>> record.id, len(record), record.circular
    ('plasmid', 6, True)
    """

    id: str
    sequence: str
    description: str = ""
    soft_masked: tuple[tuple[int, int], ...] = ()
    circular: bool = False
    ID_SOURCE: ClassVar[str] = "the first word of a header"

    def __len__(self) -> int:
        return len(self.sequence)


def require_record(thing: SequenceRecord) -> SequenceRecord:
    """Return a record; raises `ConfigError` for anything else, such as text."""
    require_type(thing, SequenceRecord, "give other forms to seqray.predict, seqray.scan or seqray.explain")
    return thing


@dataclass(frozen=True, slots=True)
class LabeledSequence:
    """One training or test example.

    Attributes
    ----------
    sequence, label
        Validated letters, and the name of their class.
    id
        Identifier; made from the row number where the table has none.
    group
        Examples of one group (a gene family, a genome region) never fall on both sides of a split.
    split
        ``train``, ``validation`` or ``test`` if the data assign it.
    context
        Additional information, such as the species, if the data have it.
    subclass
        Part of its class, such as how a negative was made, if the data name it.
    file
        Where it was read, for errors; two examples are equal without it.
    """

    sequence: str
    label: str
    id: str
    group: str | None = None
    split: str | None = None
    context: str | None = None
    subclass: str | None = None
    file: str = field(default="", compare=False, repr=False)

    @property
    def where(self) -> str:
        """File and record, for an error."""
        return f"{self.file}: record '{self.id}'" if self.file else f"record '{self.id}'"


@dataclass(frozen=True, slots=True, eq=False)
class Alignment:
    """Sequences aligned so that homologous letters share a column.

    Attributes
    ----------
    id
        Accession or name in the file, or the name of the file.
    names
        Of the R rows, as in the file; a name may occur twice.
    codes
        (R, C) uint8, not writable: letters, gaps and missing data, see `column_codes`. Row 0 is the query.
    alphabet
        Of the codes.
    label
        Name of its class, where one is known.
    group
        Alignments of one group (a clan, a superfamily) never fall on both sides of a split.
    split
        ``train``, ``validation`` or ``test`` if the data assign it.
    ss_cons
        Consensus structure, one sign a column, where the file has one.
    metadata
        Other annotations of the file, by key; several lines of one key are lines of its text.
    """

    id: str
    names: tuple[str, ...] = field(repr=False)
    codes: Codes = field(repr=False)
    alphabet: Alphabet = field(repr=False)
    label: str | None = None
    group: str | None = None
    split: str | None = None
    ss_cons: str | None = field(default=None, repr=False)
    metadata: Mapping[str, str] = field(default_factory=dict, repr=False)
    ID_SOURCE: ClassVar[str] = "#=GF AC, else the first word of #=GF ID, else the name of the file"

    def __post_init__(self) -> None:
        codes = np.array(self.codes, dtype=np.uint8)  # a copy, which no other code can change
        if codes.ndim != 2 or 0 in codes.shape:
            raise ValueError(f"codes have shape {codes.shape}, not (R, C) with both 1 or more")
        if len(self.names) != len(codes):
            raise ValueError(f"{len(self.names)} names for {len(codes)} rows")
        if codes.max() > missing_code(self.alphabet):
            raise ValueError(f"code {codes.max()} is none of {self.alphabet.name}")
        if self.ss_cons is not None and len(self.ss_cons) != codes.shape[1]:
            raise ValueError(f"{len(self.ss_cons)} signs of structure for {codes.shape[1]} columns")
        codes.setflags(write=False)
        object.__setattr__(self, "codes", codes)
        object.__setattr__(self, "names", tuple(self.names))
        object.__setattr__(self, "metadata", MappingProxyType(dict(self.metadata)))

    def __reduce__(self) -> tuple[type[Alignment], tuple[object, ...]]:
        # A read-only mapping can't be sent to a worker process; a plain one can.
        values = (getattr(self, name) for name in self.__slots__ if name != "metadata")
        return Alignment, (*values, dict(self.metadata))

    @property
    def rows(self) -> int:
        """Number of rows R."""
        return self.codes.shape[0]

    @property
    def columns(self) -> int:
        """Number of columns C."""
        return self.codes.shape[1]

    def text(self, row: int) -> str:
        """Letters of one row, gaps as ``-`` and missing data as ``~``: C characters."""
        return decode_columns(self.codes[row], self.alphabet)

    def query(self) -> str:
        """Letters of row 0 without gaps and missing data."""
        return decode_columns(self.codes[0][self.codes[0] <= self.alphabet.unknown], self.alphabet)

    @property
    def where(self) -> str:
        """Which alignment, for an error."""
        return f"alignment '{self.id}'"

    @property
    def sequence(self) -> str:
        """The query's letters, which identify copies of alignments."""
        return self.query()

    @property
    def context(self) -> None:
        """Alignments have none; sequences may."""
        return None

    @property
    def subclass(self) -> None:
        """Alignments have none; sequences may."""
        return None

    def query_positions(self) -> npt.NDArray[np.int64]:
        """0-based position in the query of each column (C,); -1 where the query has no letter."""
        letters = self.codes[0] <= self.alphabet.unknown
        return np.where(letters, np.cumsum(letters) - 1, -1)

    def take_rows(self, rows: Sequence[int] | npt.NDArray[np.int64]) -> Alignment:
        """The same alignment with these rows only, in this order; the first of them is the new query."""
        index = np.asarray(rows, dtype=np.int64)
        return replace(self, names=tuple(self.names[i] for i in index), codes=self.codes[index])

    def take_columns(self, columns: Sequence[int] | npt.NDArray[np.int64]) -> Alignment:
        """The same alignment with these columns only, in this order."""
        index = np.asarray(columns, dtype=np.int64)
        ss_cons = None if self.ss_cons is None else "".join(self.ss_cons[i] for i in index)
        return replace(self, codes=self.codes[:, index], ss_cons=ss_cons)


Example = LabeledSequence | Alignment
"""What a model is trained on."""


def files_of(examples: Iterable[Example]) -> str:
    """Name the files of examples, for an error about all of them; empty if they are not known."""
    files = dict.fromkeys(one.file for one in examples if isinstance(one, LabeledSequence))
    return ", ".join(filter(None, files))
