"""Groups of relatives, by words, by MMseqs2, by locus."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np

from seqray.core.alphabet import DNA, Alphabet, reverse_complement
from seqray.core.arrays import Bools, Codes, Ints, mark_intervals
from seqray.core.errors import InputError, OnProgress
from seqray.core.letters import kmer_starts, stack_codes
from seqray.homology.kmers import canonical_hashes, kmer_groups, merge_groups
from seqray.homology.options import RelationOptions
from seqray.homology.similarity import homology_groups

# --- Groups found by MMseqs2, if it is installed: ``mmseqs easy-cluster`` in a temporary folder

_DATABASE = {"protein": "1", "dna": "2", "rna": "2"}


def mmseqs_groups(
    sequences: Sequence[str],
    identity: float = 0.8,
    alphabet: Alphabet = DNA,
    *,
    both_strands: bool = True,
    threads: int = 1,
) -> Ints:
    """Group sequences by ``mmseqs easy-cluster``, as `seqray.homology.homology_groups` does without it.

    Raises an InputError if ``mmseqs`` is not on the path, fails, or leaves a sequence out.

    Parameters
    ----------
    identity
        Threshold (``--min-seq-id``), of the letters of the shorter sequence.
    both_strands
        Also give MMseqs2 the reverse complement of each sequence, because its clustering may miss relatives
        on opposite strands; of no effect for protein.

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
        _write_fasta(Path(folder) / "in.fasta", sequences, alphabet, both_strands)
        command = [program, "easy-cluster", "in.fasta", "out", "tmp", "--min-seq-id", f"{identity:g}"]
        command += ["--seq-id-mode", "1", "--alignment-mode", "3", "-c", "0", "--cluster-mode", "1"]
        command += ["--dbtype", _DATABASE[alphabet.name], "--threads", str(threads), "-v", "1"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        table = Path(folder) / "out_cluster.tsv"
        if done.returncode or not table.is_file():
            said = (done.stderr.strip() or done.stdout.strip() or "no message").splitlines()[-1]
            raise InputError(f"mmseqs easy-cluster failed with status {done.returncode} ({said})")
        representative = _read_clusters(table)
    strands = "+-" if both_strands else "+"
    rows = np.tile(np.arange(len(sequences)), len(strands))
    names = [f"{row}{sign}" for sign in strands for row in range(len(sequences))]
    missing = [name for name in names if name not in representative]
    if missing:
        raise InputError(
            f"mmseqs left out {len(missing)} of {len(names)} sequences", remedy="run without '--tool mmseqs'"
        )
    # Both strands of a sequence are together, and so are all strands in one cluster.
    return merge_groups(np.array([representative[name] for name in names]), rows)[: len(sequences)]


def _write_fasta(path: Path, sequences: Sequence[str], alphabet: Alphabet, both_strands: bool) -> None:
    with open(path, "w", encoding="ascii") as handle:
        for row, sequence in enumerate(sequences):
            handle.write(f">{row}+\n{sequence.replace('U', 'T') if alphabet.is_nucleotide else sequence}\n")
            if both_strands:
                other = reverse_complement(sequence, alphabet).replace("U", "T")
                handle.write(f">{row}-\n{other}\n")


def _read_clusters(path: Path) -> dict[str, int]:
    """Number of the cluster of each name; rows of the table are representative and member."""
    numbers: dict[str, int] = {}
    cluster: dict[str, int] = {}
    for line in path.read_text(encoding="ascii").splitlines():
        representative, _, member = line.partition("\t")
        cluster[member] = numbers.setdefault(representative, len(numbers))
    return cluster


# --- Groups of related examples: shared k-mers, alignment, coordinates or a name; all kinds are joined


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


# --- Which letters of a genome lie in a k-mer that held-out letters have too, on either strand


class KmerSet:
    """The k-mers of some stretches of DNA; a k-mer and its reverse complement are the same.

    Parameters
    ----------
    stretches
        Codes (n,) of each, see `seqray.core.DNA`. K-mers with an ambiguous letter are left out.
    k
        Letters of a k-mer.

    Examples
    --------
    >>> known = KmerSet([DNA.encode("ACGTTGCA")], k=4)
    >>> known.marks(DNA.encode("GGAACGTT")).tolist()  # ACGT, CGTT, and AACG as CGTT on the other strand
    [False, False, True, True, True, True, True, True]
    """

    def __init__(self, stretches: Iterable[Codes], k: int) -> None:
        self.k = k
        found = [_kmers(codes, k)[1] for codes in stretches]
        keys = np.sort(np.concatenate([*found, np.empty(0, dtype=np.uint64)]))
        self._keys = keys[np.concatenate((keys[1:] != keys[:-1], [True]))] if len(keys) else keys

    def __len__(self) -> int:
        return len(self._keys)

    def marks(self, codes: Codes) -> Bools:
        """Mark the letters (n,) that lie in a k-mer of the set."""
        starts, keys = _kmers(codes, self.k)
        if not len(keys) or not len(self._keys):
            return np.zeros(len(codes), dtype=bool)
        order = np.argsort(keys)  # a search in order stays in the cache
        at = np.minimum(np.searchsorted(self._keys, keys[order]), len(self._keys) - 1)
        shared = starts[order[self._keys[at] == keys[order]]]
        return mark_intervals(shared, shared + self.k, len(codes))


def _kmers(codes: Codes, k: int) -> tuple[np.ndarray, np.ndarray]:
    """First letter and hash of every k-mer of known letters."""
    if len(codes) < k:
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.uint64)
    stack = stack_codes([codes])
    starts, _, _ = kmer_starts(stack, k, DNA.unknown)
    return starts, canonical_hashes(stack, k, both_strands=True)[starts]
