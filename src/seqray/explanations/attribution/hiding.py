"""Hide columns of an alignment, or leave out rows, and see what the log-odds of a class do.

A hidden column holds the mask token in every row, the sign by which training (``augment.mask``) and
pre-training hide letters: the column keeps its place and nothing is said of its letters. A row that is left
out takes part in nothing, and columns in which it alone had letters go with it, as prediction would have it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch

from seqray.core import Bools, Floats, Ints
from seqray.explanations.attribution.logodds import log_odds
from seqray.explanations.attribution.mutagenesis import stretches
from seqray.inference import compute_precision
from seqray.modelfile import TrainedModel
from seqray.models import AxialTransformer, collate, size_buckets
from seqray.models.tokenizers import FIRST_LETTER, MASK

TOKENS_AT_ONCE = 1 << 15


class AlignmentTarget(NamedTuple):
    """What is explained: the log-odds of class ``target`` by one ``network`` for ``tokens`` (R, 1 + C)."""

    model: TrainedModel
    network: AxialTransformer
    target: int
    tokens: Ints

    def of_logits(self, logits: torch.Tensor) -> torch.Tensor:
        """Logits (B, K) to log-odds (B,)."""
        return log_odds(logits.float(), self.target, self.model.card.temperature)

    def of_hidden(self, hidden: Bools) -> Floats:
        """Log-odds (N,) with columns hidden: flags (N, C), CLS not counted."""
        return self._ask([self._with_mask(columns) for columns in hidden])

    def of_rows(self, kept: Bools) -> Floats:
        """Log-odds (N,) with some rows only: flags (N, R), the query always kept."""
        return self._ask([self._of_rows(rows) for rows in kept])

    def _with_mask(self, columns: Bools) -> Ints:
        tokens = self.tokens.copy()
        tokens[:, 1:] = np.where(columns, MASK, tokens[:, 1:])
        return tokens

    def _of_rows(self, rows: Bools) -> Ints:
        return self.tokens[rows][:, np.append(True, self.letters()[rows].any(axis=0))]

    def letters(self) -> Bools:
        """Where a letter stands, not a gap: (R, C)."""
        return self.tokens[:, 1:] < FIRST_LETTER + len(self.model.alphabet.letters)  # gaps come after

    @torch.inference_mode()
    def _ask(self, variants: Sequence[Ints]) -> Floats:
        result = np.empty(len(variants))
        shapes = [one.shape for one in variants]
        with compute_precision(self.model.device, "fp32"):
            for indices in size_buckets(shapes, len(variants), TOKENS_AT_ONCE):
                batch = collate([variants[i] for i in indices]).to(self.model.device)
                logits = self.network(batch.tokens, *batch.masks).logits
                result[indices] = self.of_logits(logits).double().cpu().numpy()
        return result


def occlude_columns(question: AlignmentTarget, block: int = 1) -> Floats:
    """Fall of the log-odds when a column is hidden in all rows: (C,), below 0 where it rises.

    Stretches of ``block`` columns are hidden, half a block apart; a column's score is the mean over the
    stretches that hold it.
    """
    columns = question.tokens.shape[1] - 1
    block = min(block, columns)
    starts, place = stretches(columns, block)[:, None], np.arange(columns)
    hidden = (place >= starts) & (place < starts + block)  # (S, C)
    before = question.of_hidden(np.zeros((1, columns), dtype=bool))
    return (before - question.of_hidden(hidden)) @ hidden / hidden.sum(axis=0)


def leave_rows_out(question: AlignmentTarget) -> Floats:
    """Fall of the log-odds when a row is left out: (R,).

    nan for the query, which can't be left out, and for a row without which no letter remains.
    """
    rows = len(question.tokens)
    falls = np.full(rows, np.nan)
    letters = question.letters().sum(axis=1)
    out = np.flatnonzero((letters.sum() > letters) & (np.arange(rows) > 0))
    if len(out):
        every = np.ones((1, rows), dtype=bool)
        falls[out] = question.of_rows(every) - question.of_rows(~np.eye(rows, dtype=bool)[out])
    return falls
