"""Classify alignments: the counterpart of `seqray.inference.sequences`.

Each alignment is cropped to what the model reads (`seqray.core.msa.choose_cells`: the query and the rows
that differ most, and the columns with most letters), then scored by itself: its neighbors in a batch and the
padding change no probability by more than float32 rounding. On the CPU, the number of threads and the batch
size that is asked for change no bit.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from seqray.calibration.isotonic import apply_isotonic
from seqray.core.alignment import choose_cells, omits_letters
from seqray.core.arrays import Codes, Floats, Ints
from seqray.core.errors import ConfigError
from seqray.core.records import Alignment
from seqray.core.results import Prediction
from seqray.core.text import counted
from seqray.inference.predictions import (
    BatchSize,
    Dtype,
    PredictOptions,
    compute_precision,
    map_batches,
    prediction_builder,
)
from seqray.inference.sequences import TRUNCATED, chosen_batch
from seqray.modelfile.model import TrainedModel
from seqray.models.alignment import AxialTransformer
from seqray.models.batches import collate
from seqray.models.tokenizers import AlignmentTokenizer, size_buckets

CHUNK = 256  # alignments read and scored at once: bounds memory
TOKENS_AT_ONCE = 1 << 15  # of a batch on the CPU, padding counted


def predict_alignments(
    model: TrainedModel,
    alignments: Iterable[Alignment],
    options: PredictOptions | None = None,
    **settings: Any,
) -> Iterator[Prediction]:
    """Classify each alignment, in order, reading some hundred at a time.

    Parameters
    ----------
    model
        Of kind ``alignment``.
    alignments
        Of any depth and width.
    options
        How to compute and call.
    **settings
        Fields of `PredictOptions`, in place of ``options``.

    Returns
    -------
    iterator of Prediction
        The length is that of the query, the flags are about the query; ``truncated`` is about the columns:
        more of them have letters than the model reads.

    Raises
    ------
    ConfigError
        For a model of sequences, or settings that can't be used with this model, such as more rows than it
        reads.
    """
    chosen = options or PredictOptions(**settings)
    alignment_networks(model)
    depth_read(model, chosen.rows)  # before anything is read or written
    build = prediction_builder(model, chosen)

    def answer(chunk: Sequence[Alignment]) -> Iterator[Prediction]:
        cells = [cells_read(model, one, chosen.rows) for one in chunk]
        scores = _score(model, _cropped(chunk, cells), chosen.batch_size, chosen.dtype)
        predictions = build([_query(one) for one in chunk], scores)
        return (_flagged(*one) for one in zip(chunk, cells, predictions, strict=True))

    return (prediction for chunk in _chunks(alignments) for prediction in answer(chunk))


def alignment_networks(model: TrainedModel) -> list[AxialTransformer]:
    """The members of a model of alignments.

    Raises
    ------
    ConfigError
        For a model of sequences.
    """
    networks = [one for one in model.networks if isinstance(one, AxialTransformer)]
    if len(networks) < len(model.networks):
        raise ConfigError(f"model '{model.card.name}' reads sequences, not alignments")
    return networks


def _query(alignment: Alignment) -> tuple[str, Codes]:
    codes = alignment.codes[0]
    return alignment.id, codes[codes <= alignment.alphabet.unknown]


def _flagged(alignment: Alignment, cells: tuple[Ints, Ints], prediction: Prediction) -> Prediction:
    if not omits_letters(alignment, *cells):
        return prediction
    return replace(prediction, flags=(*prediction.flags, TRUNCATED))


def cells_read(model: TrainedModel, alignment: Alignment, rows: int | None) -> tuple[Ints, Ints]:
    """Indices of the rows and columns that a model reads, see `seqray.core.msa.choose_cells`.

    Parameters
    ----------
    model, alignment
        Of kind ``alignment``, and what it reads.
    rows
        As in `PredictOptions`.
    """
    depth = depth_read(model, rows)
    return choose_cells(alignment, depth, model.card.window)


def depth_read(model: TrainedModel, rows: int | None) -> int:
    """Most rows that are read of an alignment.

    Raises `ConfigError` for more than the model reads.

    Parameters
    ----------
    model
        Of kind ``alignment``.
    rows
        As in `PredictOptions`.
    """
    most = model.card.model.max_rows
    if rows is not None and rows > most:
        reads = f"model '{model.card.name}' reads {counted(most, 'row')} at most"
        raise ConfigError(
            f"{rows} rows are asked for, and {reads}", remedy=f"give {most} or fewer, or leave it out"
        )
    return most if rows is None else rows


def _cropped(alignments: Sequence[Alignment], cells: Sequence[tuple[Ints, Ints]]) -> list[Codes]:
    return [one.codes[np.ix_(*chosen)] for one, chosen in zip(alignments, cells, strict=True)]


def score_alignments(
    model: TrainedModel,
    alignments: Sequence[Alignment],
    rows: int | None = None,
    batch_size: BatchSize = "auto",
    dtype: Dtype = "fp32",
) -> Floats:
    """Calibrated probabilities (N, K) of alignments, in their order.

    Parameters
    ----------
    model
        Of kind ``alignment``.
    alignments
        N of them, of any depth and width.
    rows, batch_size, dtype
        As in `PredictOptions`.
    """
    cells = [cells_read(model, one, rows) for one in alignments]
    return _score(model, _cropped(alignments, cells), batch_size, dtype)


def _score(model: TrainedModel, cropped: Sequence[Codes], batch_size: BatchSize, dtype: Dtype) -> Floats:
    tokens = [AlignmentTokenizer(model.alphabet).encode(codes) for codes in cropped]
    result = np.empty((len(tokens), model.card.model.classes))
    size = chosen_batch(batch_size, model.device) or len(tokens)

    def compute(indices: Ints) -> None:
        batch = collate([tokens[i] for i in indices]).to(model.device)
        with compute_precision(model.device, dtype), torch.inference_mode():
            logits = model.logits(batch.tokens, *batch.masks)
            result[indices] = torch.softmax(logits.double(), dim=-1).cpu().numpy()

    map_batches(compute, size_buckets([one.shape for one in tokens], size, TOKENS_AT_ONCE), model.device)
    return apply_isotonic(result, model.card)


def _chunks(alignments: Iterable[Alignment]) -> Iterator[list[Alignment]]:
    source = iter(alignments)
    while chunk := list(itertools.islice(source, CHUNK)):
        yield chunk
