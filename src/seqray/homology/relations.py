"""Why examples belong together: shared words, alignment, coordinates or a name; all kinds are joined."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from seqray.core import Alphabet, InputError
from seqray.homology.mmseqs import mmseqs_groups
from seqray.homology.options import RelationOptions
from seqray.homology.similarity import group_plan, homology_groups, merge_groups
from seqray.homology.splits import kmer_groups, position_groups

_PLACE = re.compile(r"(?P<contig>.+?):(?P<position>\d+)(?:-\d+)?(?::?\(?[+-]\)?)?(?::.*)?")


@dataclass(frozen=True)
class Related:
    """Groups, and what made them.

    Attributes
    ----------
    groups : int64 (N,)
        From 0 in order of first appearance.
    reasons
        Kind of relation and how many groups it makes alone, in words.
    """

    groups: np.ndarray
    reasons: dict[str, str] = field(default_factory=dict)

    @property
    def sizes(self) -> np.ndarray:
        """Examples of each group."""
        return np.bincount(self.groups)


def find_relatives(
    sequences: Sequence[str],
    alphabet: Alphabet,
    options: RelationOptions,
    others: Mapping[str, np.ndarray] | None = None,
) -> Related:
    """Join all kinds of relation.

    Parameters
    ----------
    sequences
        Validated letters, N of them.
    alphabet
        Of the sequences.
    options
        Which relations between sequences to look for.
    others
        Further groups by name of the relation, (N,) each; negative numbers stand for none.

    Returns
    -------
    Related
        Without any relation each example is a group of its own.
    """
    kinds: dict[str, np.ndarray] = {}
    strands = alphabet.is_nucleotide and options.both_strands
    where = " on either strand" if strands else ""
    if options.word:
        kinds[f"a shared word of {options.word} letters{where}"] = kmer_groups(
            sequences, options.word, options.both_strands, alphabet
        )
    if options.identity:
        name = f"an identity of {options.identity:g} or more{where}, found by {options.tool}"
        kinds[name] = _by_identity(sequences, alphabet, options)
    kinds |= others or {}
    reasons = {name: _count(groups) for name, groups in kinds.items()}
    plain = np.arange(len(sequences), dtype=np.int64)
    return Related(merge_groups(plain, *kinds.values()), reasons)


def _by_identity(sequences: Sequence[str], alphabet: Alphabet, options: RelationOptions) -> np.ndarray:
    if options.tool == "mmseqs":
        return mmseqs_groups(
            sequences,
            options.identity,
            alphabet,
            both_strands=options.both_strands,
            threads=options.threads,
        )
    return homology_groups(sequences, options.identity, alphabet, both_strands=options.both_strands)


def _count(groups: np.ndarray) -> str:
    sizes = np.bincount(groups[groups >= 0])
    larger = sizes[sizes > 1]
    return f"joins {larger.sum()} examples in {len(larger)} groups, the largest of {sizes.max(initial=0)}"


def expected_sensitivity(sequences: Sequence[str], identity: float, alphabet: Alphabet) -> float:
    """Share of pairs at the threshold that seqray's own search finds, by simulation (0 to 1)."""
    return group_plan(sequences, identity, alphabet).sensitivity


def named_groups(names: Sequence[str | None]) -> np.ndarray:
    """Number names: int64 (N,), -1 where there is none (None or empty)."""
    numbers: dict[str, int] = {}
    return np.array([numbers.setdefault(n, len(numbers)) if n else -1 for n in names], dtype=np.int64)


def parse_places(ids: Sequence[str]) -> tuple[list[str], np.ndarray]:
    """Take contig and position out of ids such as ``chr1:1234``, ``chr1:1234:+`` or ``chr1:1234-1315(-)``.

    Raises
    ------
    InputError
        For an id of another form.
    """
    found = [_PLACE.fullmatch(identifier) for identifier in ids]
    for identifier, match in zip(ids, found, strict=True):
        if match is None:
            raise InputError(
                "is no place such as chr1:1234:+",
                where=f"id '{identifier}'",
                remedy="name the columns instead: --positions contig,position",
            )
    places = [match for match in found if match]
    return [p["contig"] for p in places], np.array([int(p["position"]) for p in places], dtype=np.int64)


def parse_positions(texts: Sequence[str], column: str) -> np.ndarray:
    """Read whole numbers: int64 (N,).

    Raises
    ------
    InputError
        For a cell that holds none.
    """
    for row, text in enumerate(texts, start=1):
        if not (text.isascii() and text.isdigit()):
            raise InputError(f"'{text}' in column '{column}' is no position", where=f"example {row}")
    return np.array([int(text) for text in texts], dtype=np.int64)


def near_groups(
    contigs: Sequence[str], positions: np.ndarray, lengths: Sequence[int], block: int
) -> np.ndarray:
    """Blocks of the genome, and never a border between sequences that may overlap: int64 (N,)."""
    return position_groups(contigs, positions, block, min_gap=max(lengths, default=0))
