"""Embedding, k-mers, feed-forward, blocks, pooling and head."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from seqray.core.alphabet import ALPHABETS
from seqray.core.model_config import RESIDUAL_KERNEL, LinearConfig, ModelConfig, StemConfig
from seqray.models.attention import Linear, MultiHeadAttention, PositionTerms, Rotation, rotary_angles
from seqray.models.batches import AttentionStep, Dropout, ModelOutput

# --- k-mers: their places, and vectors or weights of them


def kmer_places(letters: Tensor, real: Tensor, longest: int, alphabet: int) -> Iterator[Tensor]:
    """Number the k-mers that begin at letters (..., N), for k from 1 to ``longest``: from 1, and 0 for none.

    Padding, which comes last, and letters below 0 are in no k-mer.
    """
    following = F.pad(letters.where(real, -1), (0, longest - 1), value=-1)
    count = letters.shape[-1]
    index = following[..., :count]
    known = index >= 0
    for ahead in range(longest):
        if ahead:
            letter = following[..., ahead : ahead + count]
            known = known & (letter >= 0)
            index = alphabet * index + letter
        yield torch.where(known, 1 + index, 0)


def lookup(place: Tensor, table: Tensor) -> Tensor:
    """Rows of a table (R, D) by their number from 1, zeros for 0."""
    return F.embedding(place, F.pad(table, (0, 0, 1, 0)))


class LinearTerm(nn.Module):
    """Logits to add to those of a network, times ``scale``; all begin so that nothing is changed."""

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(1))
        self.bias = nn.Parameter(torch.zeros(classes))

    def added_to(self, output: ModelOutput, *inputs: Tensor | None) -> ModelOutput:
        """The output of a network with the logits of what `forward` takes."""
        logits = self.scale * output.logits.float() + self(*inputs)
        return ModelOutput(logits, output.attention, output.subclasses)


class LinearPart(LinearTerm):
    """A weight of each k-mer for each class, wherever it is, and at each place; summed, they are logits.

    ``counts`` has a table (A**k, K) for each k; ``places`` one (S, R, A**k, K) for each k of the settings,
    for S ends and R letters from there. ``steps`` (A + 1, T, K) has what 1 to T letters of each kind add
    together, and last a length of so many; more count as T.
    """

    def __init__(self, alphabet: int, config: LinearConfig, classes: int) -> None:
        super().__init__(classes)
        self.alphabet, self.config = alphabet, config
        self.counts = nn.ParameterList(torch.zeros(alphabet**k, classes) for k in range(1, config.words + 1))
        self.places = nn.ParameterList(
            torch.zeros(config.sides, config.reach, alphabet**k, classes) for k in config.placed
        )
        if config.steps:
            self.steps = nn.Parameter(torch.zeros(alphabet + 1, config.steps, classes))

    def forward(self, letters: Tensor, real: Tensor) -> Tensor:
        """Logits (B, K) of letters (B, N) int64 and their bool mask."""
        with torch.autocast(letters.device.type, enabled=False):  # small terms of a long sum
            return self.bias + sum(values.sum(dim=1) for _, values in self._terms(letters, real))

    def contributions(self, letters: Tensor, real: Tensor) -> Tensor:
        """What each letter adds to the logits: (B, N, K); a k-mer's part is divided among its letters.

        Their sum and the bias are the logits of `forward`.
        """
        added = letters.new_zeros((), dtype=self.bias.dtype)
        for k, values in self._terms(letters, real):
            for ahead in range(k):  # zero beyond the last letter, where no k-mer begins
                added = added + F.pad(values, (0, 0, ahead, 0))[:, : letters.shape[1]] / k
        return added

    def _terms(self, letters: Tensor, real: Tensor) -> Iterator[tuple[int, Tensor]]:
        """Yield k, and what the k-mers add that begin at each letter (B, N, K)."""
        config = self.config
        left = real.cumsum(dim=1)
        distances = (left, left[:, -1:] - left + 1)[: config.sides]
        every = kmer_places(letters, real, max(config.words, *config.placed), self.alphabet)
        for k, place in enumerate(every, start=1):
            if k <= config.words:
                yield k, lookup(place, self.counts[k - 1])
            if k in config.placed:
                tables = self.places[config.placed.index(k)]
                for table, distance in zip(tables, distances, strict=True):
                    index = (distance - 1) * self.alphabet**k + place
                    near = (place > 0) & (distance <= config.reach)
                    yield k, lookup(torch.where(near, index, 0), table.flatten(0, 1))
        if config.steps:
            kind = torch.arange(self.alphabet + 1, device=letters.device)
            present = (letters[..., None] == kind) | (kind == self.alphabet)  # the last is any letter
            present = present & real[..., None]  # (B, N, A + 1)
            number = present.sum(dim=1)
            row = kind * config.steps + number.clamp(1, config.steps) - 1
            together = self.steps.flatten(0, 1)[row]  # (B, A + 1, K), of which each letter gets its share
            yield 1, present.to(together.dtype) @ (together / number.clamp(min=1)[..., None])


class KmerEmbedding(nn.Module):
    """A vector for each k-mer of 2 to ``longest`` letters, added at its first letter.

    Rows of the tables are scaled by the square root of their number: a k-mer of four letters is a sixteenth
    as frequent as one of two, but Adam updates both equally.
    """

    def __init__(self, letters: int, longest: int, d_model: int) -> None:
        super().__init__()
        self.letters = letters
        self.tables = nn.ParameterList(
            torch.zeros(letters**length, d_model) for length in range(2, longest + 1)
        )

    def forward(self, letters: Tensor, real: Tensor) -> Tensor:
        """Letters (..., N), below 0 if unknown, and their bool mask to (..., N, D); padding comes last."""
        places = kmer_places(letters, real, 1 + len(self.tables), self.letters)
        next(places)  # of single letters
        added = letters.new_zeros((), dtype=self.tables[0].dtype)
        for table, place in zip(self.tables, places, strict=True):
            added = added + len(table) ** 0.5 * lookup(place, table)
        return added


class Pooling(nn.Module):
    """Final states (B, T, D), CLS first, to what the head reads, (B, P D) of P vectors side by side.

    These are CLS, or means and largest values over all tokens but padded ones. It has no weights.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.parts = config.pooling
        self.size = sum(2 if part == "ends" else 1 for part in self.parts)
        self.cls_only = self.parts == ("cls",)  # the other tokens of the last block are not needed
        stride = config.stem.stride if config.stem else 1
        self.reach = -(-config.ends // stride)  # tokens of either end

    def forward(self, states: Tensor, mask: Tensor | None = None) -> Tensor:
        """Pool states (B, T, D); the mask (B, T) is True at real tokens, None if nothing is padded."""
        if self.cls_only:
            return states[:, 0]
        pooled = []
        for part in self.parts:
            if part == "cls":
                pooled.append(states[:, 0])
            elif part == "max":
                pooled.append(self._letters(states, mask).amax(dim=1))
            else:  # padding may hold anything: a weight of 0 would not hide an infinite value
                hidden = states if mask is None else states * mask[..., None].to(states.dtype)
                pooled.append((self._weights(part, states, mask).to(states.dtype) @ hidden).flatten(1))
        return torch.cat(pooled, dim=-1)

    def shares(self, states: Tensor, mask: Tensor | None = None) -> Tensor:
        """Share of each token in what the head reads, the mean over the P vectors: float32 (B, T), sums to 1.

        In a largest value it is the share of the channels that take theirs from this token.
        """
        found = []
        for part in self.parts:
            if part == "max":
                largest = self._letters(states, mask).argmax(dim=1)  # (B, D)
                counts = torch.zeros(states.shape[:2], device=states.device)
                ones = torch.ones(largest.shape, device=states.device)
                found.append(counts.scatter_add_(1, largest, ones)[:, None] / states.shape[2])
            else:
                found.append(self._weights(part, states, mask))
        return torch.cat(found, dim=1).mean(dim=1)

    def _weights(self, part: str, states: Tensor, mask: Tensor | None) -> Tensor:
        """Weights of the tokens in the one or two vectors of a part: (B, V, T), each row sums to 1."""
        B, T, _ = states.shape
        place = torch.arange(T, device=states.device).expand(B, T)
        if part == "cls":
            return (place == 0)[:, None].float()
        real = place > 0 if mask is None else mask & (place > 0)
        chosen = real[:, None]
        if part == "ends":
            count = real.sum(dim=1, keepdim=True)
            near = torch.stack((place <= self.reach, place > count - self.reach), dim=1)
            chosen = chosen & near
        return chosen / chosen.sum(dim=-1, keepdim=True)

    @staticmethod
    def _letters(states: Tensor, mask: Tensor | None) -> Tensor:
        """States with CLS and padding at minus infinity."""
        hidden = torch.zeros(states.shape[:2], dtype=torch.bool, device=states.device)
        hidden[:, 0] = True
        if mask is not None:
            hidden = hidden | ~mask
        return states.masked_fill(hidden[..., None], float("-inf"))


# --- Parts of all networks: convolutional stem, feed-forward layer, pre-norm blocks, head

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {"relu": F.relu, "gelu": F.gelu}
SPECIAL_TOKENS = 4  # PAD, CLS, MASK, UNK come before letters or k-mers, see `seqray.models.tokenizers`
TOKENS_AT_ONCE = 2048  # of the feed-forward layer, whose hidden vectors are the widest


class ChannelsLastConvolution(nn.Conv1d):
    """`torch.nn.Conv1d` on (B, N, C), which needs no transposed copy before or after: to (B, N, D)."""

    def __init__(self, channels: int, d_model: int, kernel: int) -> None:
        super().__init__(channels, d_model, kernel, padding=kernel // 2)

    def forward(self, input: Tensor) -> Tensor:
        pixels = input[:, :, None].permute(0, 3, 1, 2)  # (B, N, C) -> (B, C, N, 1), a view
        y = F.conv2d(pixels, self.weight[..., None], self.bias, padding=(self.kernel_size[0] // 2, 0))
        return y.squeeze(3).transpose(1, 2)  # (B, D, N, 1) -> (B, N, D), a view


class LayerNorm(nn.LayerNorm):
    """`torch.nn.LayerNorm` that trains in float32: sums of gradients in bfloat16 lose half of them.

    ``benchmarks/bfloat16.py`` measures that, on a CPU.
    """

    def forward(self, input: Tensor) -> Tensor:
        mixed = input.dtype == torch.bfloat16 and self.weight.dtype == torch.float32
        if not mixed or not torch.is_grad_enabled():
            return super().forward(input)
        with torch.autocast(input.device.type, enabled=False):
            return super().forward(input.float())


class TokenEmbedding(nn.Module):
    """A trained vector for each token: (B, N) -> (B, N, D)."""

    stride = 1

    def __init__(self, vocabulary: int, d_model: int) -> None:
        super().__init__()
        self.table = nn.Embedding(vocabulary, d_model)

    def forward(
        self, tokens: Tensor, mask: Tensor | None, terms: PositionTerms | None = None
    ) -> tuple[Tensor, Tensor | None]:
        """Vectors (B, T, D) of tokens (B, T) int64, and their mask, True at real ones."""
        x = self.table(tokens)
        return x if terms is None else terms.add(terms.scale(x), x), mask


class ConvolutionalStem(nn.Module):
    """Local detectors before attention: letters (B, N) to tokens (B, T, D), T = ceil(N / stride).

    Parallel convolutions of several widths over a narrow letter embedding, concatenated to D channels; then
    residual convolutions; then an optional factor for each position; then each ``stride`` neighbors are
    merged into one token by a linear map; then the optional position matrix. Letters that are padding are set
    to zero before each convolution, as the convolution's own border is: padding changes nothing.
    """

    def __init__(self, vocabulary: int, d_model: int, config: StemConfig, activation: str) -> None:
        super().__init__()
        width = vocabulary  # of the embedding that the first convolutions read: no letter is lost in it
        self.stride = config.stride
        self.activation = ACTIVATIONS[activation]
        self.letters = nn.Embedding(vocabulary, width)
        branch = d_model // len(config.kernels)
        self.detectors = nn.ModuleList(
            ChannelsLastConvolution(width, branch, kernel) for kernel in config.kernels
        )
        self.residual = nn.ModuleList(
            ChannelsLastConvolution(d_model, d_model, RESIDUAL_KERNEL) for _ in range(config.depth)
        )
        self.merge = Linear(config.stride * d_model, d_model)
        reach = max(config.kernels) // 2 + config.depth * (RESIDUAL_KERNEL // 2)
        self.field = config.stride + 2 * reach  # letters that a token reads

    def forward(
        self, letters: Tensor, mask: Tensor | None, terms: PositionTerms | None = None
    ) -> tuple[Tensor, Tensor | None]:
        """Letters and mask (B, N) to vectors (B, T, D), and their mask (B, T)."""
        if self.training and letters.device.type == "cpu" and torch.is_autocast_enabled("cpu"):
            return self.read(self.letters(letters), mask, terms, self.detect(letters, mask))
        return self.read(self.letters(letters), mask, terms)

    def detect(self, letters: Tensor, mask: Tensor | None) -> Tensor:
        """What all detectors find (B, N, D), as one product of matrices: faster in bfloat16 on a CPU."""
        detectors = cast(list[ChannelsLastConvolution], list(self.detectors))
        width = max(detector.kernel_size[0] for detector in detectors)
        around = _one_hot_around(letters, mask, width, self.letters.num_embeddings)
        tables = []
        with torch.autocast("cpu", enabled=False):  # rounded once, as weights are
            for detector in detectors:
                table = torch.einsum("va,dak->dkv", self.letters.weight, detector.weight)
                missing = (width - detector.kernel_size[0]) // 2  # places on either side
                tables.append(F.pad(table, (0, 0, missing, missing)).flatten(1))
        bias = torch.cat([cast(Tensor, detector.bias) for detector in detectors])
        return F.linear(around, torch.cat(tables), bias)

    def read(
        self,
        vectors: Tensor,
        mask: Tensor | None,
        terms: PositionTerms | None = None,
        detected: Tensor | None = None,
    ) -> tuple[Tensor, Tensor | None]:
        """As `forward`, from embedded letters (B, N, width), and what the detectors find, if it is known."""
        count = vectors.shape[1]
        real = None if mask is None else mask[:, :, None].to(self.merge.weight.dtype)  # (B, N, 1)

        def hide_padding(x: Tensor) -> Tensor:
            return x if real is None else x * real.to(x.dtype)

        vectors = hide_padding(vectors)
        if detected is None:
            detected = torch.cat([detector(vectors) for detector in self.detectors], dim=-1)
        x = self.activation(detected)  # (B, N, D)
        for convolution in self.residual:
            x = x + self.activation(convolution(hide_padding(x)))
        if terms is not None:
            x = terms.scale(x)
        x = F.pad(hide_padding(x), (0, 0, 0, -count % self.stride))
        x = x.unflatten(1, (-1, self.stride)).flatten(2)  # (B, T·s, D) -> (B, T, s·D)
        x = self.merge(x)
        if terms is not None:
            x = terms.add(x, vectors, self.stride)
        return x, None if mask is None else mask[:, :: self.stride]


def _one_hot_around(letters: Tensor, mask: Tensor | None, width: int, vocabulary: int) -> Tensor:
    """One-hot letters around each letter (B, N), (B, N, width · vocabulary); the rows overlap in memory."""
    rows, count = letters.shape
    real = torch.ones_like(letters, dtype=torch.bool) if mask is None else mask
    in_bfloat16 = torch.is_autocast_enabled("cpu")  # where the product is computed so, spare the conversion
    dtype = torch.get_autocast_dtype("cpu") if in_bfloat16 else torch.float32
    one_hot = torch.zeros(rows, count + width - 1, vocabulary, dtype=dtype)
    one_hot.narrow(1, width // 2, count).scatter_(2, letters[..., None], real[..., None].to(dtype))
    return one_hot.as_strided((rows, count, width * vocabulary), (one_hot.stride(0), vocabulary, 1))


class FeedForward(nn.Module):
    """act(x W1 + b1) W2 + b2, for each token by itself."""

    def __init__(self, d_model: int, d_ff: int, activation: str, linear: type[nn.Linear] = Linear) -> None:
        super().__init__()
        self.up = linear(d_model, d_ff)
        self.down = linear(d_ff, d_model)
        self.activation = ACTIVATIONS[activation]

    def forward(self, x: Tensor) -> Tensor:
        return self.down(self.activation(self.up(x)))


class ClassificationHead(nn.Module):
    """Norm and linear map of what is read of a record, such as the state of CLS: (B, D) -> (B, K).

    An example belongs to a class if it belongs to any of its subclasses, so their probabilities add up.
    """

    def __init__(self, width: int, config: ModelConfig) -> None:
        super().__init__()
        self.norm = LayerNorm(width)
        self.linear = nn.Linear(width, config.outputs)
        self.subclasses = config.subclasses

    def forward(self, pooled: Tensor) -> Tensor:
        return self.answer(pooled).logits

    def answer(self, pooled: Tensor, attention: tuple[AttentionStep, ...] = ()) -> ModelOutput:
        """As `forward` of ``pooled`` (B, D), with the logits of the subclasses if there are any."""
        logits = self.linear(self.norm(pooled.to(self.linear.weight.dtype)))
        if not self.subclasses:
            return ModelOutput(logits, attention)
        classes = [each.logsumexp(dim=-1) for each in logits.split(self.subclasses, dim=-1)]
        return ModelOutput(torch.stack(classes, dim=-1), attention, logits)


class ResidualBlock(nn.Module, ABC):
    """What pre-norm blocks (Xiong et al. 2020) share: x + FeedForward(norm(x)) after their attention."""

    linear: type[nn.Linear] = Linear  # of the feed-forward layer

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        width = config.d_model
        self.add_attention(config)
        self.feed_forward_norm = LayerNorm(width)
        self.feed_forward = FeedForward(width, config.d_ff or 4 * width, config.activation, self.linear)
        self.dropout = Dropout(config.dropout)

    @abstractmethod
    def add_attention(self, config: ModelConfig) -> None:
        """Create the norms and the attention layers of the block."""

    def add(self, x: Tensor, branch: Tensor) -> Tensor:
        """x + dropout(branch), in place without gradients."""
        branch = self.dropout(branch)
        return x + branch if torch.is_grad_enabled() else x.add_(branch)

    def add_feed_forward(self, x: Tensor) -> Tensor:
        """Add the feed-forward layer to each token; without gradients in place, to some tokens at a time."""
        if torch.is_grad_enabled():
            return x + self._fed_forward(x.flatten(1, -2)).view(x.shape)
        x = x.contiguous()
        for part in x.flatten(1, -2).split(TOKENS_AT_ONCE, dim=1):  # views of (B, R·C, D)
            part += self._fed_forward(part)
        return x

    def _fed_forward(self, tokens: Tensor) -> Tensor:
        return self.dropout(self.feed_forward(self.feed_forward_norm(tokens)))


class Block(ResidualBlock):
    """Pre-norm residual block: x + Attention(norm(x)), then x + FeedForward(norm(x))."""

    def add_attention(self, config: ModelConfig) -> None:
        self.attention_norm = LayerNorm(config.d_model)
        self.attention = MultiHeadAttention(config.d_model, config.heads, config.kv_heads)

    def forward(
        self,
        x: Tensor,
        mask: Tensor | None = None,
        rotation: Rotation | None = None,
        *,
        cls_only: bool = False,
        need_weights: bool = False,
    ) -> tuple[Tensor, tuple[AttentionStep, ...]]:
        """Attention and feed-forward: (B, L, D), or with ``cls_only`` (B, 1, D), and the attention step.

        Without gradients ``x`` is changed in place. ``need_weights`` also returns the attention weights.
        """
        attended, weights = self.attention(
            self.attention_norm(x), mask, rotation, first_query_only=cls_only, need_weights=need_weights
        )
        x = self.add(x[:, :1] if cls_only else x, attended)
        del attended  # the next layer needs the memory
        steps = () if weights is None else (AttentionStep("sequence", weights, mask),)
        return self.add_feed_forward(x), steps


class Transformer(nn.Module):
    """What the networks of sequences and of alignments share: blocks, and a head on CLS or all tokens."""

    embed: Callable[..., tuple[Any, ...]]  # tokens and masks to vectors, then masks and rotation for blocks

    gap_tokens = 0  # tokens after the letters or k-mers

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        words = len(ALPHABETS[config.alphabet].letters) ** config.k
        self.config, self.vocabulary = config, SPECIAL_TOKENS + words + self.gap_tokens

    def add_blocks(self, block: type[ResidualBlock]) -> None:
        """Create dropout, blocks and head; called after the parts of the embedding."""
        self.dropout = Dropout(self.config.dropout)
        self.blocks = nn.ModuleList(block(self.config) for _ in range(self.config.layers))
        self.pooling = Pooling(self.config)
        self.head = ClassificationHead(self.pooling.size * self.config.d_model, self.config)

    def forward(self, tokens: Tensor, *others: Tensor | None, return_attention: bool = False) -> ModelOutput:
        """Logits (B, K) of tokens as ``embed`` takes them, and the attention of each layer if asked for."""
        x, *read = self.embed(tokens, *others)
        states, steps = self.read_states(x, *read, return_attention=return_attention)
        return self.answer(states, read[0], tokens, *others, steps=steps)

    def answer(
        self, states: Tensor, real: Tensor | None, *_: Tensor | None, steps: tuple[AttentionStep, ...] = ()
    ) -> ModelOutput:
        """Logits of final states and their mask; what else is given are the inputs of `forward`."""
        return self.head.answer(self.pooling(states.flatten(1, -2), real), steps)

    def read_states(
        self, x: Tensor, *others: Any, return_attention: bool = False
    ) -> tuple[Tensor, tuple[AttentionStep, ...]]:
        """Final states that the head reads, and the attention of each layer on request.

        If the head reads CLS alone, and unless attention is requested, the last block computes only CLS.
        """
        steps: list[AttentionStep] = []
        shortened = self.pooling.cls_only and not return_attention
        for number, block in enumerate(self.blocks, start=1):
            cls_only = shortened and number == len(self.blocks)
            x, taken = block(x, *others, cls_only=cls_only, need_weights=return_attention)
            steps += taken
        return x, tuple(steps)

    def states(self, tokens: Tensor, *masks: Tensor | None) -> Tensor:
        """Final state of every token, for pre-training: (B, T, D), or (B, R, C, D) of alignments."""
        x, *others = self.embed(tokens, *masks)
        for block in self.blocks:
            x, _ = block(x, *others)
        return x

    def rotation(self, coordinates: Tensor) -> Rotation | None:
        """Rotary angles of coordinates (T,) or (B, T), if the network uses them."""
        if self.config.positions != "rotary":
            return None
        return rotary_angles(coordinates, self.config.d_model // self.config.heads)
