"""Which letters of a genome lie in a k-mer that held-out letters have too, on either strand."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from seqray.core import DNA, Bools, Codes, kmer_starts, mark_intervals, stack_codes
from seqray.homology.shared_kmers import canonical_hashes


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
