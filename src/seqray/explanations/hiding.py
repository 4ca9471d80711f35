"""Hide columns of an alignment, or leave out rows, and see what the log-odds of a class do.

A hidden column holds the mask token in every row, the sign by which training (``augment.mask``) and
pre-training hide letters: the column keeps its place and nothing is said of its letters. A row that is left
out takes part in nothing: the network answers as if it weren't there.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from seqray.explanations.logodds import log_odds
from seqray.explanations.mutagenesis import stretches
from seqray.modelfile import TrainedModel
from seqray.models.alignment import AxialTransformer
from seqray.prediction import arithmetic
from seqray.tokens import MASK, Tokens

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

TOKENS_AT_ONCE = 1 << 15


class AlignmentQuestion(NamedTuple):
    """What is explained: the log-odds of class ``target`` by one ``network`` for ``tokens`` (R, 1 + C)."""

    model: TrainedModel
    network: AxialTransformer
    target: int
    tokens: Tokens

    def of_logits(self, logits: torch.Tensor) -> torch.Tensor:
        """Logits (B, K) to log-odds (B,)."""
        return log_odds(logits.float(), self.target, self.model.card.temperature)

    def of_hidden(self, hidden: Flags) -> Floats:
        """Log-odds (N,) with columns hidden: flags (N, C), CLS not counted."""
        return self._ask(hidden, None)

    def of_rows(self, kept: Flags) -> Floats:
        """Log-odds (N,) with some rows only: flags (N, R), the query always kept."""
        return self._ask(np.zeros((len(kept), self.tokens.shape[1] - 1), dtype=bool), kept)

    @torch.inference_mode()
    def _ask(self, hidden: Flags, kept: Flags | None) -> Floats:
        result = np.empty(len(hidden))
        step = max(1, TOKENS_AT_ONCE // self.tokens.size)
        with arithmetic(self.model.device, "fp32"):
            for start in range(0, len(hidden), step):
                part = slice(start, start + step)
                tokens = np.repeat(self.tokens[None], len(hidden[part]), axis=0)
                tokens[:, :, 1:] = np.where(hidden[part, None, :], MASK, tokens[:, :, 1:])
                rows = None if kept is None else torch.from_numpy(kept[part]).to(self.model.device)
                logits = self.network(torch.from_numpy(tokens).to(self.model.device), rows).logits
                result[part] = self.of_logits(logits).double().cpu().numpy()
        return result


def occlude_columns(question: AlignmentQuestion, block: int = 1) -> Floats:
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


def leave_rows_out(question: AlignmentQuestion) -> Floats:
    """Fall of the log-odds when a row is left out: (R,), nan for the query, which can't be."""
    rows = len(question.tokens)
    falls = np.full(rows, np.nan)
    if rows > 1:
        every = np.ones((1, rows), dtype=bool)
        falls[1:] = question.of_rows(every) - question.of_rows(~np.eye(rows, dtype=bool)[1:])
    return falls
