"""Groups found by MMseqs2, if it is installed: ``mmseqs easy-cluster`` in a temporary folder."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from seqray.core import DNA, Alphabet, InputError, Ints, reverse_complement
from seqray.homology.groups import merge_groups

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
