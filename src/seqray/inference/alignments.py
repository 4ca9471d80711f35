"""Classify alignments: the counterpart of `seqray.inference.sequences`.

Each alignment is cropped to what the model reads (`seqray.core.msa.crop_alignment`: the query and the rows
that differ most, and the columns with most letters), then scored by itself: its neighbors in a batch and the
padding change no probability by more than float32 rounding. On the CPU, the number of threads and the batch
size that is asked for change no bit.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import torch

from seqray.calibration import apply_isotonic
from seqray.core import Alignment, Codes, ConfigError, Floats, Ints
from seqray.core.msa import crop_alignment
from seqray.core.results import Prediction
from seqray.inference.parallel import compute_precision, map_batches
from seqray.inference.predictions import BatchSize, Dtype, PredictOptions, prediction_builder
from seqray.inference.sequences import chosen_batch
from seqray.modelfile import TrainedModel
from seqray.models import AxialTransformer, collate, size_buckets
from seqray.models.tokenizers import AlignmentTokenizer

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
        The length is that of the query, the flags are about the query.

    Raises
    ------
    ConfigError
        For a model of sequences, or settings that can't be used with this model.
    """
    chosen = options or PredictOptions(**settings)
    alignment_networks(model)

    def score(chunk: Sequence[Alignment]) -> Floats:
        return score_alignments(model, chunk, chosen.rows, chosen.batch_size, chosen.dtype)

    build = prediction_builder(model, chosen)
    return (p for chunk in _chunks(alignments) for p in build([_query(one) for one in chunk], score(chunk)))


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
    config, tokenizer = model.card.model, AlignmentTokenizer(model.alphabet)
    depth = config.max_rows if rows is None else min(rows, config.max_rows)
    fitted = [crop_alignment(one, depth, model.card.window, config.row_choice) for one in alignments]
    tokens = [tokenizer.encode(one.codes) for one in fitted]
    result = np.empty((len(tokens), config.classes))
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
