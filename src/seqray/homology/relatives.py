"""Groups of relatives by any kind of relation, and those that MMseqs2 finds."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np

from seqray.core.alphabet import DNA, Alphabet, reverse_complement
from seqray.core.arrays import Ints, number_by_appearance
from seqray.core.errors import InputError, OnProgress
from seqray.homology.kmers import kmer_groups, merge_groups
from seqray.homology.options import RelationOptions
from seqray.homology.similarity import homology_groups

_DATABASE = {"protein": "1", "dna": "2", "rna": "2"}


def mmseqs_groups(
    sequences: Sequence[str],
    identity: float = 0.8,
    alphabet: Alphabet = DNA,
    *,
    both_strands: bool = True,
    threads: int = 1,
) -> Ints:
    """Group sequences by ``mmseqs easy-cluster``, as `homology_groups` does without it.

    MMseqs2 also gets the reverse complement of each sequence, because its clustering may miss relatives on
    opposite strands. Raises an InputError if ``mmseqs`` is not on the path, fails, or leaves a sequence out.

    References
    ----------
    Steinegger M, Söding J. MMseqs2 enables sensitive protein sequence searching for the analysis of massive
    data sets. Nature Biotechnology 2017.
    """
    program = shutil.which("mmseqs")
    if program is None:
        raise InputError(
            "no program 'mmseqs' on the path", remedy="install MMseqs2, or leave out '--tool mmseqs'"
        )
    if not len(sequences):
        return np.empty(0, dtype=np.int64)
    both_strands = both_strands and alphabet.is_nucleotide
    with tempfile.TemporaryDirectory(prefix="seqray-mmseqs-") as folder:
        with open(Path(folder) / "in.fasta", "w", encoding="ascii") as handle:
            for row, sequence in enumerate(sequences):
                letters = sequence.replace("U", "T") if alphabet.is_nucleotide else sequence
                handle.write(f">{row}+\n{letters}\n")
                if both_strands:
                    other = reverse_complement(sequence, alphabet).replace("U", "T")
                    handle.write(f">{row}-\n{other}\n")
        command = [program, "easy-cluster", "in.fasta", "out", "tmp", "--min-seq-id", f"{identity:g}"]
        command += ["--seq-id-mode", "1", "--alignment-mode", "3", "-c", "0", "--cluster-mode", "1"]
        command += ["--dbtype", _DATABASE[alphabet.name], "--threads", str(threads), "-v", "1"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        table = Path(folder) / "out_cluster.tsv"
        if done.returncode or not table.is_file():
            said = (done.stderr.strip() or done.stdout.strip() or "no message").splitlines()[-1]
            raise InputError(f"mmseqs easy-cluster failed with status {done.returncode} ({said})")
        lines = [line.partition("\t") for line in table.read_text(encoding="ascii").splitlines()]
        representative = {member: name for name, _, member in lines}
    strands = "+-" if both_strands else "+"
    rows = np.tile(np.arange(len(sequences)), len(strands))
    names = [f"{row}{sign}" for sign in strands for row in range(len(sequences))]
    missing = [name for name in names if name not in representative]
    if missing:
        raise InputError(
            f"mmseqs left out {len(missing)} of {len(names)} sequences", remedy="run without '--tool mmseqs'"
        )
    # Both strands of a sequence are together, and so are all strands in one cluster.
    clusters = number_by_appearance(representative[name] for name in names)
    return merge_groups(clusters, rows)[: len(sequences)]


@dataclass(frozen=True)
class Related:
    """Groups of relatives: int64 (N,) from 0 in order of first appearance, and what relates them.

    ``reasons`` are the kinds of relation and how many groups each makes alone, in words.
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
    """Group N examples by all kinds of relation; without any each is a group of its own.

    ``others`` are further groups by name of the relation, (N,) each; negative numbers mean no group.
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
    reasons = {}
    for name, groups in kinds.items():
        sizes = np.bincount(groups[groups >= 0])
        larger = sizes[sizes > 1]
        reasons[name] = (
            f"joins {larger.sum()} examples in {len(larger)} groups, the largest of {sizes.max(initial=0)}"
        )
    plain = np.arange(len(sequences), dtype=np.int64)
    return Related(merge_groups(plain, *kinds.values()), reasons)
