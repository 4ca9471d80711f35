"""Letters of DNA, RNA and protein, and their codes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from seqray.core.arrays import Codes
from seqray.core.errors import ConfigError, InputError, OtherLettersError

# --- Letters of DNA, RNA and protein: folding, validation, codes and complement

_NUCLEOTIDE_AMBIGUITY = "RYSWKMBDHVN"
_PAIRED = "ACGTRYSWKMBDHVN", "TGCAYRSWMKVHDBN"
_COMPLEMENT_CODES = np.array([3, 2, 1, 0, 4], dtype=np.uint8)

# Letters that only a protein has; none of them is an IUPAC code of a nucleotide.
_PROTEIN_ONLY = b"EFILPQJOXZ*"
# A few unknown letters in a nucleotide sequence are typing errors; in a protein at least a third of the
# letters are no bases. Any limit in the wide gap between the two separates them.
_MAX_TYPO_SHARE = 0.2
# A shorter peptide can't be distinguished from an oligonucleotide. From this length on, none is expected that
# contains alanine, cysteine, glycine and threonine, and nothing else.
_MIN_PEPTIDE_LENGTH = 20
_MAX_AMBIGUOUS_SHARE = 0.4

_INVALID = 255
GAPS, MISSING = b"-._", b"~?"  # in the rows of alignments


@dataclass(frozen=True)
class Alphabet:
    """The letters of one kind of sequence."""

    name: str  # ``dna``, ``rna`` or ``protein``
    # canonical letters, in the order of the codes 0, 1, ...; ambiguity letters share the code `unknown`
    letters: str
    ambiguous: str

    # what follows from the letters: the code of every ambiguity letter, one above the last canonical code; in
    # alignments that of a gap and of missing data; the letter that `unknown` becomes; whether letters pair,
    # so that a reverse complement exists; tables of bytes to folded bytes, to codes, and back
    unknown: int = field(init=False, repr=False, compare=False)
    gap: int = field(init=False, repr=False, compare=False)
    missing: int = field(init=False, repr=False, compare=False)
    unknown_letter: str = field(init=False, repr=False, compare=False)
    is_nucleotide: bool = field(init=False, repr=False, compare=False)
    folds: bytes = field(init=False, repr=False, compare=False)
    codes: bytes = field(init=False, repr=False, compare=False)
    column_codes: bytes = field(init=False, repr=False, compare=False)
    texts: bytes = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        unknown, unknown_letter = len(self.letters), "X" if self.name == "protein" else "N"
        folds = bytes.maketrans(bytes(range(97, 123)), bytes(range(65, 91)))
        if swap := {"dna": (b"Uu", b"TT"), "rna": (b"Tt", b"UU")}.get(self.name):
            folds = folds.translate(bytes.maketrans(*swap))
        known = {ord(letter): code for code, letter in enumerate(self.letters)}
        known |= {ord(letter): unknown for letter in self.ambiguous}
        gaps = dict.fromkeys(GAPS, unknown + 1) | dict.fromkeys(MISSING, unknown + 2)
        values = {
            "unknown": unknown,
            "gap": unknown + 1,
            "missing": unknown + 2,
            "unknown_letter": unknown_letter,
            "is_nucleotide": self.name != "protein",
            "folds": folds,
            "codes": bytes(known.get(folded, _INVALID) for folded in folds),
            "column_codes": bytes((known | gaps).get(folded, _INVALID) for folded in folds),
            "texts": (self.letters + unknown_letter + "-~").encode().ljust(256, b"?"),
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def normalize(self, text: str, where: str = "") -> str:
        """Fold case, write U as T (RNA: T as U), check every letter, drop the ``*`` that ends a protein."""
        try:
            data = text.encode("ascii")
        except UnicodeEncodeError as error:
            raise self._unknown_letter(text[error.start], error.start, where) from None
        return self.normalize_bytes(data, where).decode("ascii")

    def normalize_bytes(self, data: bytes, where: str = "") -> bytes:
        """`normalize` for letters that are bytes already; large sequences save two copies."""
        folded = data.translate(self.folds)
        if self.name == "protein" and folded.endswith(b"*") and len(folded) > 1:
            folded = folded[:-1]
        plain = self.letters if self.name == "protein" else self.letters + "N"
        other = folded.translate(None, plain.encode())
        strange = other.translate(None, self.ambiguous.encode())
        if self.is_nucleotide and other:
            _refuse_protein(self, len(folded), other, strange, where)
        if strange:
            position = folded.index(strange[:1])
            letter = data[position : position + 4].decode("utf-8", "replace")[0]
            raise self._unknown_letter(letter, position, where)
        if not self.is_nucleotide:
            _refuse_nucleotides(folded, where)
        return folded

    def encode(self, sequence: str, where: str = "") -> Codes:
        """Turn letters (n) into writable codes (n,): 0 to ``unknown - 1``, and ``unknown`` if ambiguous."""
        data = bytearray(sequence, "ascii", "replace").translate(self.codes)
        codes = np.frombuffer(data, dtype=np.uint8)
        if codes.size and codes.max() == _INVALID:
            return self.encode(self.normalize(sequence, where))
        return codes

    def decode(self, codes: npt.ArrayLike) -> str:
        """Turn codes of shape (n,) into letters; `unknown` becomes ``N`` (protein: ``X``)."""
        array = np.asarray(codes)
        if array.ndim != 1:
            raise ValueError(f"codes have shape {array.shape}, not (n,)")
        if array.size and not (array.min() >= 0 and array.max() <= self.unknown):
            raise ValueError(f"codes of {self.name} lie between 0 and {self.unknown}")
        return array.astype(np.uint8).tobytes().translate(self.texts).decode("ascii")

    def _unknown_letter(self, letter: str, index: int, where: str) -> InputError:
        if letter in "-.":
            remedy = "remove the gaps of the alignment"
        elif letter == "*":
            remedy = "split or trim the sequence at the stop"
        else:
            codes = f" and the ambiguity codes {self.ambiguous}" if self.ambiguous else ""
            remedy = f"{self.name} has the letters {self.letters}{codes}"
        return InputError(f"unknown letter {letter!r} at position {index + 1}", where=where, remedy=remedy)


def _refuse_protein(alphabet: Alphabet, length: int, other: bytes, strange: bytes, where: str) -> None:
    share = len(other) / length  # of letters that name no base
    if strange:
        protein = not strange.translate(None, _PROTEIN_ONLY) and share > _MAX_TYPO_SHARE
        why = f"the letters {' '.join(sorted(set(strange.decode())))} occur" if protein else ""
    else:
        protein = length >= _MIN_PEPTIDE_LENGTH and share > _MAX_AMBIGUOUS_SHARE
        why = f"{share:.0%} of the letters are no bases"
    if protein:
        raise OtherLettersError(
            f"looks like protein, but {alphabet.name.upper()} is expected ({why})",
            where=where,
            remedy="give nucleotides or choose a protein model",
            found="protein",
        )


def _refuse_nucleotides(folded: bytes, where: str) -> None:
    if len(folded) < _MIN_PEPTIDE_LENGTH or folded.translate(None, b"ACGTUN"):
        return
    if all(base in folded for base in (b"A", b"C", b"G")) and (b"T" in folded or b"U" in folded):
        raise OtherLettersError(
            "looks like nucleotides, but protein is expected (only the letters A C G T U N occur)",
            where=where,
            remedy="give amino acids or choose a DNA or RNA model",
            found="nucleotides",
        )


DNA = Alphabet("dna", "ACGT", _NUCLEOTIDE_AMBIGUITY)
RNA = Alphabet("rna", "ACGU", _NUCLEOTIDE_AMBIGUITY)
PROTEIN = Alphabet("protein", "ACDEFGHIKLMNPQRSTVWY", "XBZJUO")
ALPHABETS: Mapping[str, Alphabet] = MappingProxyType({a.name: a for a in (DNA, RNA, PROTEIN)})

ANY_LETTERS = Alphabet("a sequence", "ABCDEFGHIJKLMNOPQRSTUVWXYZ*", "")
"""Reads sequences before their alphabet is known."""


def alphabet_of(named: Alphabet | str) -> Alphabet:
    """The alphabet of a name, or the one given."""
    known = named if isinstance(named, Alphabet) else ALPHABETS.get(named)
    if known is None:
        raise ConfigError(f"unknown alphabet {named!r}", remedy=f"give {', '.join(ALPHABETS)}")
    return known


def infer_alphabet(sequences: Iterable[str]) -> Alphabet:
    """Tell which alphabet sequences, as `ANY_LETTERS` reads them, are of by the shares of their letters.

    Over 40 % of letters but ACGTUN make a protein (of proteins about 75 %), more U than T makes RNA.
    """
    letters = bases = uracil = thymine = 0
    for sequence in sequences:
        letters += len(sequence)
        uracil += sequence.count("U")
        thymine += sequence.count("T")
        bases += sum(map(sequence.count, "ACGN"))
    if letters - bases - uracil - thymine > _MAX_AMBIGUOUS_SHARE * letters:
        return PROTEIN
    return RNA if uracil > thymine else DNA


_COMPLEMENT_TABLES = {
    a.name: bytes.maketrans(
        *((text + text.lower()).translate(str.maketrans("Tt", t)).encode() for text in _PAIRED)
    )
    for a, t in ((DNA, "Tt"), (RNA, "Uu"))
}


def reverse_complement(sequence: str, alphabet: Alphabet = DNA) -> str:
    """Write the other strand of a normalized sequence, ambiguity codes included."""
    if not alphabet.is_nucleotide:
        raise InputError("a protein has no reverse complement")
    table = _COMPLEMENT_TABLES[alphabet.name]
    return sequence.encode("ascii").translate(table)[::-1].decode("ascii")


def canonical_strand(sequence: str, alphabet: Alphabet) -> str:
    """The first in order of a normalized sequence and its other strand; a protein as it is."""
    return min(sequence, reverse_complement(sequence, alphabet)) if alphabet.is_nucleotide else sequence


def reverse_complement_codes(codes: Codes) -> Codes:
    """Codes of the other strand: base c becomes 3 - c, unknown stays 4, the last axis is reversed."""
    return np.ascontiguousarray(_COMPLEMENT_CODES[codes[..., ::-1]])


# --- Codes of the columns of an alignment: letters of the alphabet, gaps and missing data

_NO_LETTERS = GAPS + MISSING
_LAST_STOP = re.compile(rb"(?<=.)\*(?=[-._~?]*\Z)", re.DOTALL)


def encode_columns(rows: Sequence[bytes], names: Sequence[str], alphabet: Alphabet, where: str) -> Codes:
    """Turn aligned rows, R of C letters each, into codes (R, C); a stop (``*``) at the end becomes a gap."""
    if alphabet.name == "protein":
        rows = [_LAST_STOP.sub(b"-", row) for row in rows]
    joined = b"".join(rows)
    codes = np.frombuffer(bytearray(joined).translate(alphabet.column_codes), dtype=np.uint8)
    codes = codes.reshape(len(rows), -1)
    letters = joined.translate(None, _NO_LETTERS)
    bad = np.argwhere(codes == _INVALID)
    if bad.size:
        row, column = bad[0].tolist()
        place = f"{where}: row {names[row]!r}"
        try:
            alphabet.normalize_bytes(rows[row].translate(None, _NO_LETTERS), place)
        except OtherLettersError:  # the whole row is of another alphabet
            raise
        except InputError:
            pass
        letter = rows[row][column : column + 1].decode("latin-1")
        remedy = (
            f"{alphabet.name} has the letters {alphabet.letters} and the ambiguity codes "
            f"{alphabet.ambiguous}; gaps are - . _ and missing data ~ ?"
        )
        remedy = "split or trim the sequence at the stop" if letter == "*" else remedy
        raise InputError(f"unknown letter {letter!r} at column {column + 1}", where=place, remedy=remedy)
    if letters:
        alphabet.normalize_bytes(letters, where)  # refuses what is of another kind
    return codes


def is_aligned_text(rows: Sequence[bytes], alphabet: Alphabet) -> bool:
    """Whether aligned rows have no letter outside the alphabet but gaps and marks of missing data."""
    stops = b"*" if alphabet.name == "protein" else b""
    return _INVALID not in b"".join(rows).translate(alphabet.column_codes, stops)


def decode_columns(codes: npt.NDArray[np.uint8], alphabet: Alphabet) -> str:
    """Letters of one row (C,): ambiguity letters become ``N`` or ``X``, gaps ``-``, missing data ``~``."""
    return np.ascontiguousarray(codes, dtype=np.uint8).tobytes().translate(alphabet.texts).decode("ascii")


# --- k-mers of many sequences at once, as flat arrays, for all measures of composition


@dataclass(frozen=True, slots=True)
class CodeStack:
    """Many sequences laid end to end."""

    codes: np.ndarray  # uint8 (T,); Letter codes of all sequences, one after the other
    lengths: np.ndarray  # int64 (N,); Letters of each sequence; they sum to T

    def __len__(self) -> int:
        return len(self.lengths)


def stack_sequences(sequences: Sequence[str], alphabet: Alphabet) -> CodeStack:
    """Encode sequences and lay them end to end."""
    lengths = np.fromiter((len(s) for s in sequences), dtype=np.int64, count=len(sequences))
    return CodeStack(alphabet.encode("".join(sequences)), lengths)


def stack_codes(sequences: Sequence[np.ndarray] | np.ndarray) -> CodeStack:
    """Lay encoded sequences end to end: a list of (n,) arrays or one (N, W) matrix of uint8 codes."""
    if isinstance(sequences, np.ndarray):
        n, width = sequences.shape
        return CodeStack(np.ascontiguousarray(sequences).reshape(-1), np.full(n, width, dtype=np.int64))
    lengths = np.fromiter((len(s) for s in sequences), dtype=np.int64, count=len(sequences))
    codes = np.concatenate(sequences) if sequences else np.empty(0, dtype=np.uint8)
    return CodeStack(codes, lengths)


def kmer_starts(stack: CodeStack, k: int, letters: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Find all k-mers of known letters: first letter in the stack, sequence, and place there."""
    total = len(stack.codes)
    owner = np.repeat(np.arange(len(stack), dtype=np.int64), stack.lengths)
    begin = np.cumsum(stack.lengths) - stack.lengths
    position = np.arange(total, dtype=np.int64) - begin[owner]
    unknown_before = np.concatenate(([0], np.cumsum(stack.codes >= letters)))
    end = np.minimum(np.arange(total) + k, total)
    whole = (position + k <= stack.lengths[owner]) & (unknown_before[end] == unknown_before[:-1])
    start = np.flatnonzero(whole)
    return start, owner[start], position[start]


def kmer_indices(stack: CodeStack, start: np.ndarray, k: int, letters: int) -> np.ndarray:
    """Number k-mers that begin at ``start`` (M,), from 0 to letters**k - 1, first letter most significant."""
    index = np.zeros(len(start), dtype=np.int64)
    for offset in range(k):
        index = index * letters + stack.codes[start + offset]
    return index


def kmer_counts(stack: CodeStack, k: int, letters: int) -> np.ndarray:
    """Count the k-mers of each sequence: int64 (N, letters**k)."""
    start, owner, _ = kmer_starts(stack, k, letters)
    size = letters**k
    flat = owner * size + kmer_indices(stack, start, k, letters)
    return np.bincount(flat, minlength=len(stack) * size).reshape(len(stack), size)


# --- Shuffle a sequence so that every dinucleotide occurs exactly as often as before


def dinucleotide_shuffle(codes: Codes, rng: np.random.Generator) -> Codes:
    """Draw codes (n,) uniformly from all with the same dinucleotide counts, first and last letter."""
    if len(codes) < 4:  # no other sequence has the same dinucleotides
        return codes.copy()
    order = np.argsort(codes[:-1], kind="stable")  # radix sort on bytes
    counts = np.bincount(codes[:-1], minlength=int(codes.max()) + 1)
    successors = np.split(codes[1:][order], np.cumsum(counts)[:-1])  # of each letter, as they occur
    last = _draw_last_edges(successors, int(codes[-1]), rng)
    shuffled = [_shuffle_edges(edges, last.get(letter), rng) for letter, edges in enumerate(successors)]
    return _walk(shuffled, int(codes[0]), len(codes))


def _draw_last_edges(successors: list[Codes], end: int, rng: np.random.Generator) -> dict[int, int]:
    """The letter after the last occurrence of each letter but ``end``: a random tree that leads there.

    Eulerian walks exist for these trees (Altschul and Erickson); Wilson's algorithm (1996) draws one.
    """
    tree: dict[int, int] = {}
    reached = {end}
    for start, edges in enumerate(successors):
        letter = start if len(edges) else end
        while letter not in reached:
            tree[letter] = int(rng.choice(successors[letter]))  # a later visit overwrites: loops are erased
            letter = tree[letter]
        letter = start if len(edges) else end
        while letter not in reached:
            reached.add(letter)
            letter = tree[letter]
    return tree


def _shuffle_edges(edges: Codes, last: int | None, rng: np.random.Generator) -> list[int]:
    """Edges in reverse order of use, so that ``pop`` takes the next one; an edge to ``last`` is used last."""
    if last is None:
        return rng.permutation(edges).tolist()
    rest = np.delete(edges, np.flatnonzero(edges == last)[0])
    return [last, *rng.permutation(rest).tolist()]


def _walk(successors: list[list[int]], start: int, length: int) -> Codes:
    walk = bytearray(length)
    walk[0] = letter = start
    take = [edges.pop for edges in successors]
    for i in range(1, length):  # each step depends on the one before: a loop of 50 ns a letter
        walk[i] = letter = take[letter]()
    return np.frombuffer(walk, dtype=np.uint8)


# --- What a network counts in a sequence as its composition, see `ModelConfig.composition`

COMPOSITION_ENDS = (15, 30, 60)  # letters of the ends
COMPOSITION_GAPS = (1, 2, 3)  # from the first letter of a pair to the second
# Factors that make the features of each part vary by about 1 between proteins. Sampling alone makes the root
# of A p, for a share p of one of A letters in n, vary by √A / 2√n, so that whole sequences vary least.
WHOLE_FACTOR, END_FACTORS, PAIR_FACTOR = 5.0, (1.5, 1.9, 2.5), 1.6


def composition_size(letters: int, parts: Sequence[str]) -> int:
    """Number of features of an alphabet of so many letters."""
    sizes = {
        "whole": letters,
        "ends": 2 * len(COMPOSITION_ENDS) * letters,
        "pairs": len(COMPOSITION_GAPS) * letters**2,
    }
    return sum(sizes[part] for part in parts)
