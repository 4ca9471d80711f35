"""Groups of related examples: shared k-mers, alignment, coordinates or a name; all kinds are joined."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from seqray.core import Alphabet, Ints, OnProgress
from seqray.homology.groups import merge_groups
from seqray.homology.mmseqs import mmseqs_groups
from seqray.homology.options import RelationOptions
from seqray.homology.shared_kmers import kmer_groups
from seqray.homology.similarity import homology_groups


@dataclass(frozen=True)
class Related:
    """Groups of relatives, and what relates them.

    Attributes
    ----------
    groups : int64 (N,)
        From 0 in order of first appearance.
    reasons
        Kind of relation and how many groups it makes alone, in words.
    """

    groups: Ints
    reasons: dict[str, str] = field(default_factory=dict)


def find_relatives(
    sequences: Sequence[str],
    alphabet: Alphabet,
    options: RelationOptions,
    others: Mapping[str, Ints] | None = None,
    on_progress: OnProgress | None = None,
) -> Related:
    """Group examples by all kinds of relation.

    Parameters
    ----------
    sequences, alphabet, options
        N validated sequences, their alphabet, and which relations between them to find.
    others
        Further groups by name of the relation, (N,) each; negative numbers mean no group.
    on_progress
        Called while sequences are aligned.

    Returns
    -------
    Related
        Without any relation each example is a group of its own.
    """
    kinds: dict[str, Ints] = {}
    strands = alphabet.is_nucleotide and options.both_strands
    where = " on either strand" if strands else ""
    if options.word:
        kinds[f"a shared {options.word}-mer{where}"] = kmer_groups(
            sequences, options.word, options.both_strands, alphabet
        )
    if options.identity:
        name = f"an identity of {options.identity:g} or more{where}, found by {options.tool}"
        by_identity = partial(homology_groups, on_progress=on_progress)
        if options.tool == "mmseqs":
            by_identity = partial(mmseqs_groups, threads=options.threads)
        kinds[name] = by_identity(sequences, options.identity, alphabet, both_strands=options.both_strands)
    kinds |= others or {}
    reasons = {name: _count(groups) for name, groups in kinds.items()}
    plain = np.arange(len(sequences), dtype=np.int64)
    return Related(merge_groups(plain, *kinds.values()), reasons)


def _count(groups: Ints) -> str:
    sizes = np.bincount(groups[groups >= 0])
    larger = sizes[sizes > 1]
    return f"joins {larger.sum()} examples in {len(larger)} groups, the largest of {sizes.max(initial=0)}"
