"""Classify alignments, cropped to what the model reads; on the CPU batch and threads change no bit."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from seqray.core.arrays import Floats, Ints
from seqray.core.errors import ConfigError
from seqray.core.records import Alignment, choose_cells, omits_letters
from seqray.core.results import Prediction
from seqray.core.text import counted
from seqray.inference import sequences
from seqray.modelfile.model import TrainedModel
from seqray.models.alignment import AxialTransformer
from seqray.models.tokenizers import AlignmentTokenizer, pad_arrays, size_buckets

CHUNK = 256  # alignments read and scored at once: bounds memory
TOKENS_AT_ONCE = 1 << 15  # of a batch on the CPU, padding counted


def predict_alignments(
    model: TrainedModel,
    alignments: Iterable[Alignment],
    options: sequences.PredictOptions | None = None,
    **settings: Any,
) -> Iterator[Prediction]:
    """Classify each alignment, in order, some hundred at a time; length and flags are those of the query."""
    batches = predict_alignment_batches(model, alignments, options or sequences.PredictOptions(**settings))
    return (prediction for _, predictions in batches for prediction in predictions)


def predict_alignment_batches(
    model: TrainedModel, alignments: Iterable[Alignment], options: sequences.PredictOptions
) -> Iterator[sequences.Batch]:
    """As `predict_alignments`, in the batches that are read at once."""
    alignment_networks(model)
    depth_read(model, options.rows)  # before anything is read or written
    build, source = sequences.prediction_builder(model, options), iter(alignments)

    def answer(batch: Sequence[Alignment]) -> sequences.Batch:
        cells = [cells_read(model, one, options.rows) for one in batch]
        scores = score_alignments(model, batch, cells, options.batch_size, options.dtype)
        reads = []
        for one, chosen in zip(batch, cells, strict=True):
            query = one.codes[0]
            query = query[query <= one.alphabet.unknown]
            reads.append(sequences.Read(one.id, query, len(query), omits_letters(one, *chosen)))
        return batch, build(reads, scores)

    return map(answer, iter(lambda: list(itertools.islice(source, CHUNK)), []))


def alignment_networks(model: TrainedModel) -> list[AxialTransformer]:
    """The members of a model of alignments. Raises ConfigError for a model of sequences."""
    networks = [one for one in model.networks if isinstance(one, AxialTransformer)]
    if len(networks) < len(model.networks):
        raise ConfigError(f"model '{model.card.name}' reads sequences, not alignments")
    return networks


def cells_read(model: TrainedModel, alignment: Alignment, rows: int | None) -> tuple[Ints, Ints]:
    """Indices of the rows and columns that a model reads; ``rows`` is as in `PredictOptions`."""
    depth = depth_read(model, rows)
    return choose_cells(alignment, depth, model.card.window)


def depth_read(model: TrainedModel, rows: int | None) -> int:
    """Most rows that are read of an alignment. Raises ConfigError for more than the model reads."""
    most = model.card.model.max_rows
    if rows is not None and rows > most:
        reads = f"model '{model.card.name}' reads {counted(most, 'row')} at most"
        raise ConfigError(
            f"{rows} rows are asked for, and {reads}", remedy=f"give {most} or fewer, or leave it out"
        )
    return most if rows is None else rows


def score_alignments(
    model: TrainedModel,
    alignments: Sequence[Alignment],
    cells: Sequence[tuple[Ints, Ints]],
    batch_size: sequences.BatchSize = "auto",
    dtype: sequences.Dtype = "fp32",
) -> Floats:
    """Calibrated probabilities (N, K) of the `cells_read` of alignments, in their order."""
    tokenizer = AlignmentTokenizer(model.alphabet)
    pairs = zip(alignments, cells, strict=True)
    tokens = [tokenizer.encode(one.codes[np.ix_(*chosen)]) for one, chosen in pairs]
    size = sequences.chosen_batch(batch_size, model.device) or len(tokens)
    parts = size_buckets([one.shape for one in tokens], size, TOKENS_AT_ONCE)

    return sequences.score_parts(
        model, len(tokens), parts, lambda rows: pad_arrays([tokens[i] for i in rows]), dtype
    )
