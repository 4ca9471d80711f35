"""The axial transformer of alignments."""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from seqray.core.model_config import LinearConfig, ModelConfig
from seqray.models import layers
from seqray.models.attention import EndMatrix, LearnedPositions, Rotation, sinusoidal
from seqray.models.axial import ColumnAttention, RowAttention
from seqray.models.batches import AttentionStep, ModelOutput

# --- Which columns of an RNA alignment pair in helices, as probabilities, and their embedding

LETTERS = "ACGU"  # T in DNA
NONE = len(LETTERS)  # a gap, or a letter that is not known or hidden

# Of 5'-XY-3' on its complement, in kcal/mol at 37 °C.
STACKS = {
    "AA": -0.93,
    "AU": -1.10,
    "UA": -1.33,
    "CU": -2.08,
    "CA": -2.11,
    "GU": -2.24,
    "GA": -2.35,
    "CG": -2.36,
    "GG": -3.26,
    "GC": -3.42,
}
# Stacks with a wobble pair: the mean of these, and .3 below.
PAIRS = {"GC": -1.5, "CG": -1.5, "AU": -0.9, "UA": -0.9, "GU": -0.3, "UG": -0.3}
WOBBLES = ("GU", "UG")
WOBBLE_STACK = -0.3
MISMATCH, GAP = 1.2, 0.3  # what a row costs that can't pair here, and one that has a gap

KT = 0.6
COVARIATION = 1.0  # kcal/mol for columns whose pairing is all due to their changing together
CLOSING, GROWTH = 7.5, 1.2  # -log weight of a helix, and what more distant partners have more
MIN_PAIR_DISTANCE = 4  # columns between partners: three letters at least lie in a hairpin
MIN_ROW_SHARE = 0.499  # half, less rounding: with a letter in a column that counts, or a pair in two columns
MAX_LOG_WEIGHT = 60.0  # keeps its exponential within float32
STEPS = 40  # of the fixed point
ROWS_AT_ONCE, CELLS_AT_ONCE = 256, 1 << 21  # of the sums over rows; of the maps, C² for each alignment

CHANNELS = 4  # of a profile
KERNEL = 15  # columns: more than a turn of a helix, or a hairpin loop with its flanks
PLACES = 12  # along the alignment, at which the channels count for something of their own


@functools.cache
def _stack_energies() -> Tensor:
    """Energy of pair (a, d) with (b, c) inside of it, at [5a + b, 5c + d]: (25, 25)."""
    table = torch.full((5, 5, 5, 5), MISMATCH, dtype=torch.float32)
    for outer in PAIRS:
        for inner in PAIRS:
            (a, d), (b, c) = outer, inner
            if outer in WOBBLES or inner in WOBBLES:
                energy = (PAIRS[outer] + PAIRS[inner]) / 2 + WOBBLE_STACK
            else:
                energy = STACKS[a + b] if a + b in STACKS else STACKS[c + d]  # the other strand
            table[tuple(LETTERS.index(letter) for letter in (a, b, c, d))] = energy
    for axis in range(4):
        table.select(axis, NONE).fill_(GAP)
    return table.reshape(25, 25)


@functools.cache
def _pair_table() -> Tensor:
    """1 where two letters pair: (5, 5)."""
    table = torch.zeros(5, 5, dtype=torch.float32)
    for a, b in PAIRS:
        table[LETTERS.index(a), LETTERS.index(b)] = 1
    return table


def pair_probabilities(
    letters: Tensor, row_mask: Tensor | None = None, column_mask: Tensor | None = None
) -> Tensor:
    """Probability that two columns pair: (B, C, C) float32, symmetric; a row sums to 1 at most.

    Letters (B, R, C) are 0 to 3 for A, C, G and U (T), below for one that is hidden or ambiguous, above for
    none. The masks (B, R) and (B, C) are True at real rows and columns. Columns where more than half of the
    rows have a gap pair with none, and their neighbors stack on each other. Letters that are hidden or
    ambiguous hold their column, and pair with none.
    """
    B, R, C = letters.shape
    row_mask = letters.new_ones(B, R, dtype=torch.bool) if row_mask is None else row_mask
    column_mask = letters.new_ones(B, C, dtype=torch.bool) if column_mask is None else column_mask
    step = max(1, CELLS_AT_ONCE // (C * C))
    parts = zip(letters.split(step), row_mask.split(step), column_mask.split(step), strict=True)
    with torch.no_grad(), torch.autocast(letters.device.type, enabled=False):
        return torch.cat([_pair_probabilities(*part) for part in parts])


def _pair_probabilities(letters: Tensor, row_mask: Tensor, column_mask: Tensor) -> Tensor:
    B, R, C = letters.shape
    held = letters < NONE
    letters = letters.where((letters >= 0) & held, NONE)
    real = row_mask.float()
    rows = real.sum(dim=1)[:, None]  # (B, 1)
    kept = column_mask & (torch.einsum("brc,br->bc", held.float(), real) >= MIN_ROW_SHARE * rows)
    paired = real.new_zeros(B, C, C)
    count = int(kept.sum(dim=1).max())
    if count <= MIN_PAIR_DISTANCE:
        return paired
    order = kept.byte().argsort(dim=1, descending=True, stable=True)[:, :count]  # (B, N), kept ones first
    inside = kept.gather(1, order)
    letters = letters.gather(2, order[:, None].expand(B, R, count)).where(inside[:, None], NONE)
    weights = _log_weights(letters, real / rows)
    batch = torch.arange(B, device=letters.device)[:, None, None]
    paired[batch, order[:, :, None], order[:, None]] = _solve_competition(
        weights.clamp(max=MAX_LOG_WEIGHT).exp()
    )
    return paired


def _log_weights(letters: Tensor, shares: Tensor) -> Tensor:
    """Log weight of all helices through columns i < j, else -inf: (B, R, N), shares (B, R) to (B, N, N)."""
    stacks, pairs = _stack_energies().to(shares.device), _pair_table().to(shares.device)
    B, _, N = letters.shape
    frequency, together = shares.new_zeros(B, N, 5), shares.new_zeros(B, N, N)
    energy = shares.new_zeros(B, N - 1, N - 1)
    for rows, share in zip(letters.split(ROWS_AT_ONCE, 1), shares.split(ROWS_AT_ONCE, 1), strict=True):
        there = F.one_hot(rows, 5) * share[:, :, None, None]  # (B, R, N, 5)
        frequency = frequency + there.sum(dim=1)  # (B, N, 5)
        together = together + _sum_over_rows(F.embedding(rows, pairs), there)
        steps = 5 * rows[:, :, :-1] + rows[:, :, 1:]  # (B, R, N - 1): a column and the next
        found = F.one_hot(steps, 25) * share[:, :, None, None]
        energy = energy + _sum_over_rows(F.embedding(steps, stacks), found)
    covariation = together - frequency @ pairs @ frequency.transpose(1, 2)
    # Of (i, j) on (i + 1, j - 1), at [i, j - 1].
    gain = (COVARIATION * covariation[:, :-1, 1:] - energy) / KT
    never = together < MIN_ROW_SHARE

    def diagonal(x: Tensor, offset: int) -> Tensor:
        return x.diagonal(offset, 1, 2)

    inward: dict[int, Tensor] = {}  # by j - i: log weight of all runs from (i, j) inward, the pair itself 0
    for apart in range(MIN_PAIR_DISTANCE, N):
        run = gain.new_zeros(B, N - apart)
        if apart - 2 in inward:
            run = F.softplus(diagonal(gain, apart - 1) + inward[apart - 2][:, 1:-1])
        inward[apart] = run.masked_fill(diagonal(never, apart), -math.inf)
    weights = gain.new_full((B, N, N), -math.inf)
    outward: dict[int, Tensor] = {}
    for apart in reversed(range(MIN_PAIR_DISTANCE, N)):
        run = gain.new_zeros(B, N - apart)
        if apart + 2 in outward:
            run[:, 1:-1] = F.softplus(diagonal(gain, apart + 1) + outward[apart + 2])
        outward[apart] = run.masked_fill(diagonal(never, apart), -math.inf)
        closing = CLOSING + GROWTH * math.log(apart / MIN_PAIR_DISTANCE)
        diagonal(weights, apart).copy_(inward[apart] + outward[apart] - closing)
    return weights


def _sum_over_rows(left: Tensor, right: Tensor) -> Tensor:
    """(B, R, N, K) and (B, R, M, K) to (B, N, M)."""
    return left.transpose(1, 2).flatten(2) @ right.transpose(1, 2).flatten(2).transpose(1, 2)


def _solve_competition(weights: Tensor) -> Tensor:
    """Probabilities of pairs, symmetric, of weights of columns i < j: (B, N, N)."""
    weights = weights + weights.transpose(1, 2)
    free = torch.ones_like(weights[:, :, :1])
    for _ in range(STEPS):
        free = (free / (1 + weights @ free)).sqrt()  # the geometric mean with the last step: no swinging
    paired = weights * free * free.transpose(1, 2)
    total = paired.sum(dim=2, keepdim=True).clamp(min=1)  # above 1 where the steps have not settled
    return paired / torch.maximum(total, total.transpose(1, 2))


def helix_profile(
    letters: Tensor, row_mask: Tensor | None = None, column_mask: Tensor | None = None
) -> Tensor:
    """How each column pairs, (B, C, 4), of what `pair_probabilities` takes.

    These are the probabilities that it pairs with a column to its right, and to its left; then the same times
    the logarithm, base 100, of how many columns away that is, those of gaps counted.
    """
    paired = pair_probabilities(letters, row_mask, column_mask)
    columns = torch.arange(letters.shape[2], device=letters.device)
    apart = (columns[:, None] - columns).abs().clamp(min=1).float().log() / math.log(100)
    sides = [part.sum(dim=2) for both in (paired, paired * apart) for part in (both.triu(), both.tril())]
    return torch.stack(sides, dim=-1)


class HelixEmbedding(nn.Module):
    """A vector for each column from the helices around it, the same for all rows.

    A convolution over the profile finds stems and loops. In addition, the profile has separate weights at
    some places along the alignment, with linear interpolation between them: a product of place and profile,
    which the network would otherwise have to learn (see `seqray.models.attention.PositionGain`).
    """

    def __init__(self, d_model: int, activation: str) -> None:
        super().__init__()
        self.detector = layers.ChannelsLastConvolution(CHANNELS, d_model, KERNEL)
        self.activation = layers.ACTIVATIONS[activation]
        self.out = nn.Linear(d_model, d_model)
        self.table = nn.Parameter(torch.zeros(PLACES, CHANNELS, d_model))

    def forward(self, profile: Tensor, column_mask: Tensor | None) -> Tensor:
        """What `helix_profile` gives, (B, C, 4), to (B, C, D)."""
        columns = torch.arange(profile.shape[1], device=profile.device)[None, :, None]
        last = profile.shape[1] if column_mask is None else column_mask.sum(dim=1)[:, None, None]
        place = columns.float() / last * (PLACES - 1)  # (B or 1, C, 1)
        near = F.relu(1 - (place - torch.arange(PLACES, device=profile.device)).abs())  # (B or 1, C, P)
        there = (near[..., None] * profile[:, :, None]).flatten(2) @ self.table.flatten(0, 1)
        return self.out(self.activation(self.detector(profile))) + there


# --- A linear part: what a forest of alignments reads


class AlignmentLinearPart(layers.LinearTerm):
    """Logits (B, K) that are linear in `features` of an alignment, with a weight (F, K) of each."""

    def __init__(self, alphabet: int, config: LinearConfig, classes: int, helices: bool) -> None:
        super().__init__(classes)
        self.alphabet, self.config = alphabet, config
        words = sum(alphabet**k for k in range(1, config.words + 1))
        ends = config.sides * config.reach * (alphabet + 1)
        count = 2 + alphabet + words + ends + (PLACES * CHANNELS if helices else 0)
        self.weight = nn.Parameter(torch.zeros(count, classes))

    def forward(self, letters: Tensor, *others: Tensor | None) -> Tensor:
        """Logits of what `features` takes."""
        with torch.autocast(self.weight.device.type, enabled=False):  # counts must be exact
            return self.bias + self.features(letters, *others) @ self.weight

    def features(
        self,
        letters: Tensor,
        row_mask: Tensor | None = None,
        column_mask: Tensor | None = None,
        profile: Tensor | None = None,
    ) -> Tensor:
        """Features (B, F), float32, of letters (B, R, C) from 0, below if unknown, above in gaps.

        These are length and logarithm of the length of the query, and its shares of letters; square roots of
        the shares of k-mers, mean over the rows; shares of letters, unknown ones too, at each place from both
        ends of the rows; and means of the `helix_profile` (B, C, 4) over twelfths of the columns.
        """
        (B, R, C), alphabet, config = letters.shape, self.alphabet, self.config
        rows = letters.new_ones(B, R, dtype=torch.bool) if row_mask is None else row_mask
        columns = letters.new_ones(B, C, dtype=torch.bool) if column_mask is None else column_mask
        filled = (letters < alphabet) & rows[:, :, None] & columns[:, None]
        count = rows.sum(dim=1, keepdim=True)
        length = filled[:, 0].sum(dim=1, keepdim=True).clamp(min=1).float()
        order = filled.byte().argsort(dim=2, descending=True, stable=True)  # k-mers pass over gaps
        places = layers.kmer_places(letters.gather(2, order), filled.gather(2, order), config.words, alphabet)
        counts = (_counts(place, alphabet**k) for k, place in enumerate(places, start=1))
        shares = [F.normalize(one, p=1, dim=2) for one in counts]  # (B, R, A**k)
        parts = [length, length.log(), shares[0][:, 0], *((one.sum(dim=1) / count).sqrt() for one in shares)]
        left, kinds = filled.cumsum(dim=2), alphabet + 1
        kind = torch.where(letters < 0, alphabet, letters)
        for distance in (left, left[:, :, -1:] - left + 1)[: config.sides]:
            place = torch.where(filled & (distance <= config.reach), 1 + (distance - 1) * kinds + kind, 0)
            parts.append(_counts(place.flatten(1), config.reach * kinds) / count)
        if profile is not None:
            twelfth = torch.arange(C, device=letters.device) * PLACES // columns.sum(dim=1, keepdim=True)
            inside = F.one_hot(twelfth.where(columns, PLACES), PLACES + 1)[..., :PLACES].float()  # (B, C, P)
            parts.append((F.normalize(inside, p=1, dim=1).mT @ profile).flatten(1))
        return torch.cat(parts, dim=1)


def _counts(place: Tensor, size: int) -> Tensor:
    """How often each number from 1 to ``size`` is among places (..., N): (..., size), float32."""
    found = torch.zeros(*place.shape[:-1], 1 + size, device=place.device)
    return found.scatter_add_(-1, place, torch.ones_like(place, dtype=torch.float32))[..., 1:]


# --- The transformer classifier of an alignment

GAP_TOKENS = 2  # gap and missing data come after the letters, see seqray.models.tokenizers.alignment


class AxialContext(NamedTuple):
    """What is read beside vectors: masks (B, R) and (B, C), rotation of columns, and `helix_profile`."""

    row_mask: Tensor | None = None
    column_mask: Tensor | None = None
    rotation: Rotation | None = None
    profile: Tensor | None = None


class AxialBlock(layers.ResidualBlock):
    """Pre-norm residual block: x + Column(norm(x)), x + Row(norm(x)), x + FeedForward(norm(x))."""

    def add_attention(self, config: ModelConfig) -> None:
        self.column_norm = layers.LayerNorm(config.d_model)
        self.column = ColumnAttention(config.d_model, config.heads)
        self.row_norm = layers.LayerNorm(config.d_model)
        self.row = RowAttention(config.d_model, config.heads, config.tied)

    def forward(
        self, x: Tensor, context: AxialContext, *, cls_only: bool = False, need_weights: bool = False
    ) -> tuple[Tensor, tuple[AttentionStep, ...]]:
        """Attend over columns, then rows: (B, R, C, D), and the two steps.

        Without gradients ``x`` is changed in place. With ``cls_only`` only CLS of the query, (B, 1, 1, D), is
        computed: tied rows still need queries and keys of every row, untied rows only the query row.
        """
        row_mask, column_mask, rotation, _ = context
        query_only = cls_only and not self.row.tied
        attended, by_column = self.column(
            self.column_norm(x), row_mask, query_only=query_only, need_weights=need_weights
        )
        x = self.add(x[:, :1] if query_only else x, attended)
        attended, by_row = self.row(
            self.row_norm(x),
            None if query_only else row_mask,
            column_mask,
            rotation,
            cls_only=cls_only,
            need_weights=need_weights,
        )
        x = self.add(x[:, :1, :1] if cls_only else x, attended)
        found = (("column", by_column, row_mask), ("row", by_row, column_mask))
        steps = tuple(AttentionStep(axis, w, mask) for axis, w, mask in found if w is not None)
        return self.add_feed_forward(x), steps


class CellEmbedding(nn.Module):
    """A trained vector for each cell, and with a stem one of its neighbors in the row, gaps as letters."""

    stride = 1

    def __init__(self, config: ModelConfig, vocabulary: int) -> None:
        super().__init__()
        self.table = nn.Embedding(vocabulary, config.d_model)
        self.stem = (
            layers.ConvolutionalStem(vocabulary, config.d_model, config.stem, config.activation)
            if config.stem
            else None
        )

    def forward(self, tokens: Tensor, column_mask: Tensor | None = None) -> Tensor:
        """(B, R, C) with CLS in column 0, and the mask (B, C), to (B, R, C, D)."""
        x = self.table(tokens)
        if self.stem is None:
            return x
        B, R, C = tokens.shape
        real = None if column_mask is None else column_mask[:, None, 1:].expand(B, R, C - 1).flatten(0, 1)
        around, _ = self.stem(tokens[:, :, 1:].flatten(0, 1), real)  # (B·R, C - 1, D)
        return x + F.pad(around.unflatten(0, (B, R)), (0, 0, 1, 0))


class AxialTransformer(layers.Transformer):
    """Tokens (B, R, C), the query in row 0 and CLS in column 0, to logits (B, K).

    Embedding, positions of the columns, a learned mark on row 0, pre-norm blocks of column attention, row
    attention and feed-forward layer, and a head on the final state of CLS of the query. The other rows have
    no order, so permuting them changes nothing. Column attention carries their information to that cell, can
    learn to ignore copies, and an explanation starts there.
    """

    gap_tokens = GAP_TOKENS

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config)
        width, vocabulary = config.d_model, self.vocabulary
        self.embedding = CellEmbedding(config, vocabulary)
        self.query = nn.Parameter(torch.randn(width) * 0.02)
        self.positions = (
            LearnedPositions(1 + config.max_length, width) if config.positions == "learned" else None
        )
        self.ends = EndMatrix(config.ends, vocabulary, width) if config.ends else None
        self.words = (
            layers.KmerEmbedding(vocabulary - layers.SPECIAL_TOKENS - GAP_TOKENS, config.words, width)
            if config.words
            else None
        )
        self.helices = HelixEmbedding(width, config.activation) if config.helices else None
        self.linear = (
            AlignmentLinearPart(
                vocabulary - layers.SPECIAL_TOKENS - GAP_TOKENS, config.linear, config.classes, config.helices
            )
            if config.linear
            else None
        )
        self.add_blocks(AxialBlock)

    def embed(
        self, tokens: Tensor, row_mask: Tensor | None = None, column_mask: Tensor | None = None
    ) -> tuple[Tensor, AxialContext]:
        """Tokens (B, R, C) to vectors (B, R, C, D), and what the blocks read beside them.

        Column 0 is CLS, row 0 the query; both are real. The masks (B, R) and (B, C) are True at real rows and
        columns, None if nothing is padded.
        """
        x = self.embedding(tokens, column_mask)
        columns = torch.arange(tokens.shape[2], device=tokens.device, dtype=torch.float32)  # CLS at 0
        if self.positions is not None:
            x = x + self.positions(len(columns)).to(x.dtype)
        elif self.config.positions == "sinusoidal":
            x = x + sinusoidal(columns, self.config.d_model).to(x.dtype)
        letters, real = tokens[:, :, 1:], None if column_mask is None else column_mask[:, 1:]
        filled = letters < self.vocabulary - GAP_TOKENS
        filled = filled if real is None else filled & real[:, None]
        if self.ends is not None:
            x = x + F.pad(self.ends(letters, filled), (0, 0, 1, 0)).to(x.dtype)  # CLS has none
        if self.words is not None:
            order = filled.byte().argsort(dim=2, descending=True, stable=True)  # words pass over gaps
            added = self.words(letters.gather(2, order) - layers.SPECIAL_TOKENS, filled.gather(2, order))
            back = order.argsort(dim=2)[..., None].expand_as(added)
            x = x + F.pad(added.gather(2, back), (0, 0, 1, 0)).to(x.dtype)
        profile = None
        if self.helices is not None:
            profile = helix_profile(*letters_of(tokens, row_mask, column_mask))
            added = self.helices(profile, real)  # (B, C - 1, D)
            x = x + F.pad(added, (0, 0, 1, 0))[:, None].to(x.dtype)
        first = torch.arange(tokens.shape[1], device=tokens.device)[:, None, None] == 0  # (R, 1, 1)
        x = self.dropout(x + first * self.query.to(x.dtype))
        return x, AxialContext(row_mask, column_mask, self.rotation(columns), profile)

    def answer(
        self, states: Tensor, real: Any, *inputs: Any, steps: tuple[AttentionStep, ...] = ()
    ) -> ModelOutput:
        """As in `Transformer`, with those of the linear part; ``real`` is the context of the blocks."""
        output = super().answer(states, None, steps=steps)
        return self.linear.added_to(output, *letters_of(*inputs), real.profile) if self.linear else output


def letters_of(
    tokens: Tensor, row_mask: Tensor | None = None, column_mask: Tensor | None = None
) -> tuple[Tensor, Tensor | None, Tensor | None]:
    """Letters (B, R, C) of tokens, as `helix_profile` takes them, and their masks (B, R) and (B, C)."""
    columns = None if column_mask is None else column_mask[:, 1:]
    return tokens[:, :, 1:] - layers.SPECIAL_TOKENS, row_mask, columns
