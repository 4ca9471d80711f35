"""Classify alignments: the counterpart of `seqray.inference.sequences`.

Each alignment is cut to what the model reads (`seqray.core.msa.fit`: the query and the rows that differ
most, and the columns with most letters), then answered by itself: its neighbours in a batch, and the padding
that they bring, change no probability by more than float32 rounding.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import torch

from seqray.calibration import bent
from seqray.core import Alignment, ConfigError, Floats
from seqray.core.msa import fit
from seqray.core.results import Prediction
from seqray.inference.sequences import BatchSize, Precision, answerer, arithmetic, check_settings
from seqray.modelfile import TrainedModel
from seqray.models import alignment_buckets, collate_alignments
from seqray.models.tokenizers import AlignmentTokenizer

CHUNK = 256  # alignments read and answered at once: bounds memory
TOKENS_AT_ONCE = 1 << 15  # of a batch on the CPU, padding counted


def predict_alignments(
    model: TrainedModel,
    alignments: Iterable[Alignment],
    *,
    rows: int | None = None,
    batch_size: BatchSize = "auto",
    threshold: float | None = None,
    prior: float | None = None,
    coverage: float | None = None,
    precision: Precision = "fp32",
) -> Iterator[Prediction]:
    """Classify each alignment, in order, reading some hundred at a time.

    Parameters
    ----------
    model
        Of kind ``alignment``.
    alignments
        Of any depth and width.
    rows
        Most rows to read, the query counted, where fewer are wanted than the model reads; 1 is the query
        alone, which shows what the alignment adds.
    batch_size, threshold, prior, coverage, precision
        As in `seqray.inference.predict_records`.

    Yields
    ------
    Prediction
        Its length is that of the query, its flags are about the query.

    Raises
    ------
    ConfigError
        For a model of sequences, or settings that can't be used with this model.
    """
    if model.card.model.kind != "alignment":
        raise ConfigError(f"model '{model.card.name}' reads sequences, not alignments")
    check_settings(model.card, threshold, prior, batch_size)
    answer = answerer(model, threshold, prior, coverage)

    def answers() -> Iterator[Prediction]:
        for chunk in _chunks(alignments):
            probabilities = score_alignments(model, chunk, rows, batch_size, precision)
            letters = model.alphabet.unknown
            queries = [one.codes[0][one.codes[0] <= letters] for one in chunk]
            yield from answer([one.id for one in chunk], queries, probabilities)

    return answers()


def score_alignments(
    model: TrainedModel,
    alignments: Sequence[Alignment],
    rows: int | None = None,
    batch_size: BatchSize = "auto",
    precision: Precision = "fp32",
) -> Floats:
    """Calibrated probabilities (N, K) of alignments, in their order."""
    config, tokenizer = model.card.model, AlignmentTokenizer(model.alphabet)
    depth = config.max_rows if rows is None else min(rows, config.max_rows)
    fitted = [fit(one, depth, model.card.window, config.row_choice) for one in alignments]
    tokens = [tokenizer.encode(one.codes) for one in fitted]
    result = np.empty((len(tokens), config.classes))
    size = len(tokens) if batch_size == "auto" else batch_size
    with arithmetic(model.device, precision), torch.inference_mode():
        for indices in alignment_buckets([one.shape for one in tokens], size, TOKENS_AT_ONCE):
            batch = collate_alignments([tokens[i] for i in indices]).to(model.device)
            logits = model.logits(batch.tokens, batch.row_mask, batch.column_mask)
            result[indices] = torch.softmax(logits.double(), dim=-1).cpu().numpy()
    return bent(result, model.card)


def _chunks(alignments: Iterable[Alignment]) -> Iterator[list[Alignment]]:
    source = iter(alignments)
    while chunk := list(itertools.islice(source, CHUNK)):
        yield chunk
