"""Sequences, alignments, and regions on them."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import ClassVar, Literal

import numpy as np
import numpy.typing as npt

from seqray.core.alphabet import Alphabet, decode_columns
from seqray.core.arrays import Codes, Floats, Ints
from seqray.core.errors import InputError
from seqray.core.text import Brief

# --- Sequences and alignments: validated once, then immutable

MISSING_TEXTS = {"nan", "na", "none", "<na>"}
"""What a missing value becomes as text, in lower case. As letters, ``nan`` would be N, A, N."""


@dataclass(frozen=True, slots=True, repr=False)
class SequenceRecord(Brief):
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
    ID_SOURCE: ClassVar[str] = "the first word of a header, VERSION of GenBank, or the column id"

    def __len__(self) -> int:
        return len(self.sequence)


@dataclass(frozen=True, slots=True, repr=False)
class LabeledSequence(Brief):
    """One training or test example."""

    sequence: str  # validated letters, and the name of their class
    label: str
    id: str  # identifier; made from the row number where the table has none
    # examples of one group (a gene family, a genome region) never fall on both sides of a split
    group: str | None = None
    split: str | None = None  # ``train``, ``validation`` or ``test`` if the data assign it
    context: str | None = None  # additional information, such as the species, if the data have it
    subclass: str | None = None  # part of its class, such as how a negative was made, if the data name it
    # where it was read, for errors; two examples are equal without it
    file: str = field(default="", compare=False, repr=False)

    @property
    def where(self) -> str:
        """File and record, for an error."""
        return f"{self.file}: record '{self.id}'" if self.file else f"record '{self.id}'"


@dataclass(frozen=True, slots=True, eq=False)
class Alignment:
    """Sequences aligned so that homologous letters share a column."""

    id: str  # accession or name in the file, or the name of the file
    names: tuple[str, ...] = field(repr=False)  # of the R rows, as in the file; a name may occur twice
    # (R, C) uint8, not writable: letters, gaps and missing data, see `column_codes`. Row 0 is the query
    codes: Codes = field(repr=False)
    alphabet: Alphabet = field(repr=False)  # of the codes
    label: str | None = None  # name of its class, where one is known
    # alignments of one group (a clan, a superfamily) never fall on both sides of a split
    group: str | None = None
    split: str | None = None  # ``train``, ``validation`` or ``test`` if the data assign it
    # consensus structure, one sign a column, where the file has one
    ss_cons: str | None = field(default=None, repr=False)
    # other annotations of the file, by key; several lines of one key are lines of its text
    metadata: Mapping[str, str] = field(default_factory=dict, repr=False)
    context: ClassVar[None] = None  # sequences may have one, and a subclass
    subclass: ClassVar[None] = None
    ID_SOURCE: ClassVar[str] = "#=GF AC, else the first word of #=GF ID, else the name of the file"

    def __post_init__(self) -> None:
        codes = np.array(self.codes, dtype=np.uint8)  # a copy, which no other code can change
        if codes.ndim != 2 or 0 in codes.shape:
            raise ValueError(f"codes have shape {codes.shape}, not (R, C) with both 1 or more")
        if len(self.names) != len(codes):
            raise ValueError(f"{len(self.names)} names for {len(codes)} rows")
        if codes.max() > self.alphabet.missing:
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


# --- Sets of intervals on a sequence, and the regions of a genome that a user selects

_REGION = re.compile(r"(?P<contig>.+?):(?P<start>[\d,]+)(?:-(?P<end>[\d,]+))?")
_MAX_DIGITS = 18
# For the suggestion in an error: enough for every finished genome, bounded for a metagenome.
_MAX_KEPT_NAMES = 10_000


@dataclass(frozen=True)
class Intervals:
    """Sorted intervals that neither touch nor overlap."""

    starts: Ints  # (n,) 0-based and half-open
    ends: Ints

    @classmethod
    def merge(cls, pairs: Iterable[tuple[int, int]]) -> Intervals:
        """Sort intervals and join those that touch or overlap; empty ones vanish."""
        merged: list[list[int]] = []
        for start, end in sorted(pair for pair in pairs if pair[0] < pair[1]):
            if merged and start <= merged[-1][1]:
                merged[-1][1] = max(merged[-1][1], end)
            else:
                merged.append([start, end])
        table = np.array(merged, dtype=np.int64).reshape(-1, 2)
        return cls(table[:, 0], table[:, 1])

    def pairs(self) -> list[tuple[int, int]]:
        """The intervals as plain pairs."""
        return list(zip(self.starts.tolist(), self.ends.tolist(), strict=True))

    def contains(self, positions: Ints) -> npt.NDArray[np.bool_]:
        """Whether each position is in an interval."""
        if not len(self.starts):
            return np.zeros(positions.shape, dtype=bool)
        nearest = np.searchsorted(self.starts, positions, "right") - 1
        return (nearest >= 0) & (positions < self.ends[nearest])

    def count_covered(self, positions: Ints) -> Ints:
        """Count, for each position, the letters below it that lie in an interval."""
        if not len(self.starts):
            return np.zeros(positions.shape, dtype=np.int64)
        before = np.concatenate(([0], np.cumsum(self.ends - self.starts)))
        nearest = np.searchsorted(self.starts, positions, "right") - 1
        inside = np.minimum(positions, self.ends[nearest]) - self.starts[nearest]
        return np.where(nearest >= 0, before[nearest] + inside, 0)

    def sample_evenly(self, most: int) -> Ints:
        """At most ``most`` positions inside the intervals, spread evenly over their letters, ascending."""
        sizes = np.cumsum(self.ends - self.starts)
        total = int(sizes[-1]) if len(sizes) else 0
        ranks = np.linspace(0, total - 1, min(most, total)).astype(np.int64)
        place = np.searchsorted(sizes, ranks, "right")
        return self.ends[place] - (sizes[place] - ranks)

    def extended(self, by: int, length: int, *, circular: bool = False) -> Intervals:
        """Extend each interval on both sides, on a sequence of this length."""
        if by * 2 >= length and circular:
            return Intervals.merge([(0, length)] if len(self.starts) else [])
        pairs = []
        for start, end in zip((self.starts - by).tolist(), (self.ends + by).tolist(), strict=True):
            pairs.append((max(start, 0), min(end, length)))
            if circular:
                pairs += [(length + start, length), (0, end - length)]  # empty unless across the origin
        return Intervals.merge((max(start, 0), min(end, length)) for start, end in pairs)


@dataclass(frozen=True, slots=True)
class Contig:
    """A sequence that is scanned, without its letters; sites are called in ``parts``, None for everywhere."""

    name: str
    length: int
    circular: bool = False
    parts: Intervals | None = None

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """The parts as pairs; none where sites are called everywhere."""
        return [] if self.parts is None else self.parts.pairs()

    @property
    def scanned(self) -> Intervals:
        """Where sites are called."""
        return Intervals.merge([(0, self.length)]) if self.parts is None else self.parts


@dataclass(frozen=True, slots=True)
class Region:
    """One part of a genome that a user selects."""

    contig: str  # interval of a sequence, 0-based and half-open; ``end`` is None for the rest of the sequence
    start: int
    end: int | None
    text: str  # as the user wrote it; it means the whole contig if one has exactly this name
    where: str  # origin of the text, for errors

    def __str__(self) -> str:
        """As `parse_region` reads it."""
        if self.end is not None:
            return f"{self.contig}:{self.start + 1}-{self.end}"
        return f"{self.contig}:{self.start + 1}" if self.start else self.contig


def parse_region(text: str) -> Region:
    """Read ``contig``, ``contig:start`` or ``contig:start-end``: 1-based, closed, also as in 1,000."""
    where = f"--region {text}"
    match = _REGION.fullmatch(text)
    if match is None:
        return Region(text, 0, None, text, where)
    start = _letter(match["start"])
    end = _letter(match["end"]) if match["end"] else None
    if start < 1 or (end is not None and end < start):
        raise InputError("is no region", where=where, remedy="write NAME:START-END, 1-based, START <= END")
    return Region(match["contig"], start - 1, end, text, where)


def _letter(text: str) -> int:
    """Number of a letter; 0, which is none, for a number beyond any sequence."""
    digits = text.replace(",", "").lstrip("0")
    return int(digits) if 1 <= len(digits) <= _MAX_DIGITS else 0


class MissingContigs:
    """Names of contigs that a user gave and that have not been read yet; pairs of name and origin."""

    def __init__(self, names: Iterable[tuple[str, str]]) -> None:
        self._missing = dict(names)
        self._seen: list[str] = []

    def see(self, name: str) -> None:
        """Note that a contig of this name was read."""
        if self._missing and len(self._seen) < _MAX_KEPT_NAMES:
            self._seen.append(name)
        self.drop(name)

    def drop(self, name: str) -> None:
        """No longer require a name."""
        self._missing.pop(name, None)

    def check(self) -> None:
        """Raise `InputError` for the first name still missing, with the most similar one that was read."""
        for name, where in self._missing.items():
            near = max(self._seen, key=lambda seen: _similarity(name, seen), default=None)
            remedy = f"did you mean '{near}'?" if near else "the input has no sequence"
            raise InputError(f"the input has no sequence named '{name}'", where=where, remedy=remedy)


def unknown_contig(what: str, name: str, known: Iterable[str], where: str) -> InputError:
    """The error for a contig that ``what``, such as "the calls name", and the sequences do not have."""
    near = max(known, key=lambda seen: _similarity(name, seen), default="none")
    remedy = "rename one of them, as both files need the same names, or give the files of one assembly"
    return InputError(f"{what} '{name}', the genome has '{near}'", where=where, remedy=remedy)


def _similarity(name: str, seen: str) -> tuple[bool, float]:
    # '1' is meant by 'chr1', though '11' has more in common with it.
    same_end = name.endswith(seen) or seen.endswith(name)
    return same_end, difflib.SequenceMatcher(None, name, seen).ratio()


class RegionSet:
    """Selected regions by contig; regions that overlap count once."""

    def __init__(self, regions: Iterable[Region]) -> None:
        self._by_text: dict[str, list[Region]] = {}
        self._by_contig: dict[str, list[Region]] = {}
        for region in regions:
            self._by_text.setdefault(region.text, []).append(region)
            self._by_contig.setdefault(region.contig, []).append(region)
        self._names = MissingContigs((name, parts[0].where) for name, parts in self._by_contig.items())

    def parts_of(self, contig: str, length: int) -> Intervals | None:
        """The regions on one contig, or None if nothing of it was selected."""
        self._names.see(contig)
        for region in self._by_text.get(contig, ()):  # "NAME:1-9" may be a contig's whole name
            self._names.drop(region.contig)
        whole = [(0, length)] * (contig in self._by_text)
        parts = [_bounded(region, length) for region in self._by_contig.get(contig, ())]
        return Intervals.merge(whole + parts) if whole or parts else None

    def check(self) -> None:
        """Raise `InputError` for a contig that was selected but not read."""
        self._names.check()


def _bounded(region: Region, length: int) -> tuple[int, int]:
    end = length if region.end is None else region.end
    if end > length or region.start >= length:
        what = f"lies beyond the end of '{region.contig}', which has {length} bases"
        raise InputError(what, where=region.where, remedy="check that it belongs to this assembly")
    return region.start, end


# --- Occupancy and conservation of the columns of an alignment, and whether it is one


def occupancy(codes: Codes, alphabet: Alphabet) -> Floats:
    """Share of the rows that have a letter, ambiguous ones counted: (R, C) to (C,)."""
    return (codes <= alphabet.unknown).mean(axis=0)


def letter_counts(codes: Codes, alphabet: Alphabet) -> Ints:
    """Count each of the A letters in each column of codes (R, C): (A, C). Ambiguous letters do not count."""
    return np.stack([(codes == letter).sum(axis=0) for letter in range(len(alphabet.letters))])


def conservation(codes: Codes, alphabet: Alphabet) -> Floats:
    """Conservation (C,) of codes (R, C): 1 - H / log A of the known letters of a column; nan without any."""
    letters, counts = len(alphabet.letters), letter_counts(codes, alphabet).astype(np.float64)
    total = counts.sum(axis=0)
    shares = counts / np.maximum(total, 1)
    entropy = -(shares * np.log(np.where(shares > 0, shares, 1.0))).sum(axis=0)
    return np.where(total > 0, 1 - entropy / np.log(letters), np.nan)


_RELATED = 0.15  # of the way from chance to identity: what two rows of an alignment share at the least


def looks_unaligned(codes: Codes, alphabet: Alphabet) -> bool:
    """Whether rows (R, C) have no gap, and share hardly more letters of a column than by chance."""
    rows = len(codes)
    if rows < 2 or (codes > alphabet.unknown).any():
        return False
    counts = letter_counts(codes, alphabet).astype(np.float64)
    shared = (counts * (counts - 1)).sum(axis=0).mean() / (rows * (rows - 1))
    by_chance = ((counts.sum(axis=1) / max(counts.sum(), 1)) ** 2).sum()
    return bool(shared - by_chance < _RELATED * (1 - by_chance))


# --- Which rows and columns of an alignment a model reads

Choice = Literal["diverse", "random"]


def choose_rows(codes: Codes, depth: int, choice: Choice = "diverse", seed: int = 0) -> Ints:
    """Choose the rows of codes (R, C) that a model reads, ascending, the query (row 0) among them.

    ``diverse`` adds the row farthest from those chosen (Rao et al. 2021, 3.2), ``random`` any row.
    """
    rows = len(codes)
    if rows <= depth:
        return np.arange(rows)
    if choice == "random":
        others = np.random.default_rng(seed).choice(rows - 1, depth - 1, replace=False) + 1
    else:
        others = np.array(_most_different(codes, depth - 1), dtype=np.int64)
    return np.sort(np.append(others, 0).astype(np.int64))


def _most_different(codes: Codes, count: int) -> list[int]:
    distance = np.zeros(len(codes), dtype=np.int64)  # to all rows chosen so far, summed
    free = np.ones(len(codes), dtype=bool)
    free[0] = False
    chosen, last = [], 0
    for _ in range(count):
        distance += np.count_nonzero(codes != codes[last], axis=1)
        last = int(np.argmax(np.where(free, distance, -1)))
        free[last] = False
        chosen.append(last)
    return chosen


def choose_columns(codes: Codes, letters: int, budget: int) -> Ints:
    """Choose the columns of codes (R, C) that a model reads, ascending: those with the most letters."""
    occupied = np.count_nonzero(codes < letters, axis=0)
    kept = np.flatnonzero(occupied)
    if len(kept) > budget:
        fullest = np.argsort(-occupied[kept], kind="stable")[:budget]
        kept = np.sort(kept[fullest])
    return kept.astype(np.int64)


def choose_cells(alignment: Alignment, depth: int, budget: int) -> tuple[Ints, Ints]:
    """Choose the rows that a model reads, then the columns with letters in these rows."""
    rows = choose_rows(alignment.codes, depth)
    columns = choose_columns(alignment.codes[rows], alignment.alphabet.unknown + 1, budget)
    if not len(columns):
        what = f"the rows that are read ({len(rows)} of {alignment.rows}) have no letters"
        remedy = "put a row with letters first, for it is always read, or remove the alignment"
        raise InputError(what, where=f"alignment '{alignment.id}'", remedy=remedy)
    return rows, columns


def omits_letters(alignment: Alignment, rows: Ints, columns: Ints) -> bool:
    """Whether these rows have letters in columns other than these."""
    omitted = np.delete(alignment.codes[rows], columns, axis=1)
    return bool(np.any(omitted <= alignment.alphabet.unknown))


def crop_alignment(alignment: Alignment, depth: int, budget: int) -> Alignment:
    """Crop an alignment to the rows and columns that a model reads."""
    rows, columns = choose_cells(alignment, depth, budget)
    cut = alignment.take_rows(rows)
    return cut if len(columns) == cut.columns else cut.take_columns(columns)
