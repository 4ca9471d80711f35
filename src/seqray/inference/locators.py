"""Scores of a locator along strands: chunks depend on the length alone, so a CPU gives the same bits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from seqray.core.arrays import Codes, Floats, Ints, cut_stretch, logistic
from seqray.core.host import one_thread
from seqray.inference.sequences import Dtype, compute_precision
from seqray.modelfile.model import TrainedModel

CHUNK = 1 << 14
"""Letters of a chunk: the letters around it cost little, and its activations stay in the cache."""

_GPU_CHUNKS, _GPU_WORKERS = 8, 2  # in a pass; one worker prepares a pass while another one computes
_PHASE = 4  # a chunk and what is around it are whole tokens of this many letters


@dataclass(slots=True, eq=False)
class Strand:
    """One strand of a contig, in reading direction; ``scored`` keeps the chunks asked for last, by number.

    ``codes`` are (L,), ``tracks`` (T, L) the gene tracks of the model, None without genes.
    """

    codes: Codes
    tracks: npt.NDArray[np.uint8] | None = None
    circular: bool = False
    scored: dict[int, Floats] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.codes)


class StrandScorer:
    """Scores of the positive class of a locator. Compute within `running`."""

    def __init__(self, model: TrainedModel, dtype: Dtype = "fp32") -> None:
        self.radius = model.card.model.radius
        self.margin = -(-self.radius // _PHASE) * _PHASE
        self._model = model
        self._dtype: Dtype = dtype
        self._chunks_of_a_pass = 1 if model.engine or model.device.type == "cpu" else _GPU_CHUNKS
        self._pool: ThreadPoolExecutor | None = None

    @contextmanager
    def running(self) -> Iterator[None]:
        """Compute as many chunks at a time as there are threads, each in one thread."""
        if self._model.engine:
            with ThreadPoolExecutor(self._model.threads) as self._pool:
                yield
            self._pool = None
            return
        import torch

        workers = torch.get_num_threads() if self._chunks_of_a_pass == 1 else _GPU_WORKERS
        pool = ThreadPoolExecutor(workers, initializer=torch.set_num_threads, initargs=(1,))
        try:
            with one_thread(), pool as self._pool:
                yield
        finally:
            self._pool = None

    def at(self, strand: Strand, places: Ints) -> Floats:
        """Scores (n,) from 0 to 1 of letters of a strand."""
        scores, numbers = np.empty(len(places)), places // CHUNK
        needed = np.flatnonzero(np.bincount(numbers)).tolist()
        missing = [number for number in needed if number not in strand.scored]
        computed = dict(zip(missing, self.chunks(strand, missing), strict=True))
        strand.scored = {n: computed[n] if n in computed else strand.scored[n] for n in needed}
        for number in needed:
            here = numbers == number
            scores[here] = strand.scored[number][places[here] - number * CHUNK]
        return scores

    def chunks(self, strand: Strand, numbers: Iterable[int]) -> list[Floats]:
        """Scores of the letters of some chunks, each from 0 to 1; chunk i begins at letter i · `CHUNK`."""
        wanted, size = list(numbers), self._chunks_of_a_pass
        passes = [wanted[i : i + size] for i in range(0, len(wanted), size)]
        compute = map if self._pool is None else self._pool.map
        return [
            scores for of_pass in compute(lambda some: self._pass(strand, some), passes) for scores in of_pass
        ]

    def _pass(self, strand: Strand, numbers: list[int]) -> list[Floats]:
        lengths = [min((number + 1) * CHUNK, len(strand)) - number * CHUNK for number in numbers]
        width = -(-max(lengths) // _PHASE) * _PHASE + self.margin
        around = [(number * CHUNK - self.margin, number * CHUNK + width) for number in numbers]
        unknown, circular = self._model.alphabet.unknown, strand.circular
        codes = np.stack([cut_stretch(strand.codes, *ends, unknown, circular=circular) for ends in around])
        tracks = None
        if strand.tracks is not None:
            tracks = np.stack([cut_stretch(strand.tracks, *ends, 0, circular=circular) for ends in around])
        with nullcontext() if self._model.engine else compute_precision(self._model.device, self._dtype):
            logits = self._model.site_logits(codes, tracks)[..., self._model.card.positive_index]
        rows = zip(logits.astype(np.float64), lengths, strict=True)
        return [logistic(row[self.margin : self.margin + length]) for row, length in rows]
