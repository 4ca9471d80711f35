"""Axial attention and its rollout against plain loops."""

import math

import pytest
import torch
import torch.nn.functional as F
from esm.axial_attention import ColumnSelfAttention, RowSelfAttention
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from networks import random_network
from seqray.core.errors import ConfigError
from seqray.core.model_config import ModelConfig
from seqray.explanations import trace as axial_attention
from seqray.explanations.rollout import grad_rollout, rollout, value_rollout
from seqray.explanations.targets import without_cls
from seqray.explanations.trace import trace
from seqray.models import axial
from seqray.models.alignment import AxialTransformer
from seqray.models.attention import rotary_angles, sinusoidal
from seqray.models.axial import ColumnAttention, RowAttention

B, R, C, D, H = 2, 5, 7, 12, 3
E = D // H


def masks() -> tuple[Tensor, Tensor]:
    """The first alignment is whole, the second has 3 rows and 4 columns."""
    rows = torch.arange(R) < torch.tensor([[R], [3]])
    columns = torch.arange(C) < torch.tensor([[C], [4]])
    return rows, columns


def projected(layer: nn.Module, x: Tensor) -> list:
    """Queries, keys and values (3, B, R, C, H, E) as nested lists."""
    qkv = nn.functional.linear(x, layer.attention.qkv.weight, layer.attention.qkv.bias)
    return qkv.reshape(*x.shape[:3], 3, H, E).permute(3, 0, 1, 2, 4, 5).tolist()


def softmax(scores: list[float], real: list[bool]) -> list[float]:
    powers = [math.exp(score) if ok else 0.0 for score, ok in zip(scores, real, strict=True)]
    return [power / sum(powers) for power in powers]


def dot(a: list[float], b: list[float]) -> float:
    return sum(x * y for x, y in zip(a, b, strict=True))


def finish(layer: nn.Module, heads: list) -> Tensor:
    return nn.functional.linear(torch.tensor(heads), layer.attention.out.weight, layer.attention.out.bias)


def cell(weights: list[float], values: list[list[float]]) -> list[float]:
    return [sum(w * v[e] for w, v in zip(weights, values, strict=True)) for e in range(E)]


def column_in_loops(layer: ColumnAttention, x: Tensor, real: list) -> Tensor:
    q, k, v = projected(layer, x)
    out = torch.zeros(B, R, C, D).tolist()
    for b in range(B):
        for c in range(C):
            for r in range(R):
                heads = []
                for h in range(H):
                    scores = [dot(q[b][r][c][h], k[b][s][c][h]) / math.sqrt(E) for s in range(R)]
                    weights = softmax(scores, real[b])
                    heads += cell(weights, [v[b][s][c][h] for s in range(R)])
                out[b][r][c] = heads
    return finish(layer, out)


def row_in_loops(layer: RowAttention, x: Tensor, rows: list, columns: list) -> Tensor:
    """Tied: the scores of the real rows are added up and divided by √(their number times E)."""
    q, k, v = projected(layer, x)
    out = torch.zeros(B, R, C, D).tolist()
    for b in range(B):
        for c in range(C):
            for r in range(R):
                heads = []
                for h in range(H):
                    used = [s for s in range(R) if rows[b][s]] if layer.tied else [r]
                    scores = [
                        sum(dot(q[b][s][c][h], k[b][s][d][h]) for s in used) / math.sqrt(len(used) * E)
                        for d in range(C)
                    ]
                    weights = softmax(scores, columns[b])
                    heads += cell(weights, [v[b][r][d][h] for d in range(C)])
                out[b][r][c] = heads
    return finish(layer, out)


def every_path(layer: nn.Module, *arguments: Tensor | None):
    """Fused with gradients, by parts without, and explicit."""
    yield layer(*arguments)[0]
    with torch.no_grad():
        yield layer(*arguments)[0]
    yield layer(*arguments, need_weights=True)[0]


@pytest.mark.parametrize("masked", [False, True])
def test_column_attention_against_plain_loops(masked):
    layer, x = ColumnAttention(D, H), torch.randn(B, R, C, D)
    real = masks()[0] if masked else torch.ones(B, R, dtype=torch.bool)
    expected = column_in_loops(layer, x, real.tolist())
    for output in every_path(layer, x, real if masked else None):
        torch.testing.assert_close(output, expected)
        torch.testing.assert_close(layer(x, real, query_only=True)[0], expected[:, :1])


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("tied", [False, True])
def test_row_attention_against_plain_loops(tied, masked):
    layer, x = RowAttention(D, H, tied), torch.randn(B, R, C, D)
    ones = torch.ones(B, R, dtype=torch.bool), torch.ones(B, C, dtype=torch.bool)
    rows, columns = masks() if masked else ones
    expected = row_in_loops(layer, x, rows.tolist(), columns.tolist())
    for output in every_path(layer, x, rows if masked else None, columns if masked else None):
        torch.testing.assert_close(output[rows], expected[rows])
    for gradients in (True, False):
        with torch.set_grad_enabled(gradients):
            cls = layer(x, rows, columns, cls_only=True)[0]
        torch.testing.assert_close(cls[:, 0, 0], expected[:, 0, 0])


@pytest.mark.parametrize(("rows", "columns", "batch"), [(70, 30, 1), (9, 600, 1), (600, 9, 1), (3, 1100, 2)])
@pytest.mark.parametrize("tied", [False, True])
def test_paths_agree_where_lines_are_cut_into_parts(rows, columns, batch, tied):
    """Many lines, long lines, and maps that are larger than their alignment."""
    x = torch.randn(batch, rows, columns, 8)
    layers = ColumnAttention(8, 2), RowAttention(8, 2, tied)
    for layer in layers:
        expected = layer(x, need_weights=True)[0]
        with torch.no_grad():
            torch.testing.assert_close(layer(x)[0], expected)


@pytest.mark.parametrize("cells", [1, 8, 20])
def test_rows_are_summed_in_parts(cells, monkeypatch):
    monkeypatch.setattr(axial, "CELLS_AT_ONCE", cells)
    x, (rows, columns) = torch.randn(B, R, C, D), masks()
    for layer in (ColumnAttention(D, H), RowAttention(D, H, True), RowAttention(D, H, False)):
        given = (rows,) if isinstance(layer, ColumnAttention) else (rows, columns)
        expected = layer(x, *given)[0]
        with torch.no_grad():
            torch.testing.assert_close(layer(x, *given)[0][rows], expected[rows])


def test_tied_weights_of_one_row_are_those_of_ordinary_attention():
    tied, free = RowAttention(D, H, True), RowAttention(D, H, False)
    free.load_state_dict(tied.state_dict())
    x = torch.randn(B, 1, C, D)
    torch.testing.assert_close(tied(x)[0], free(x)[0])


def test_tied_weights_of_equal_rows_sharpen_with_the_root_of_their_number():
    """n copies of a row: the sum is n times the score, divided by √n, so the scores grow as √n."""
    layer, x = RowAttention(4, 1, True), torch.randn(1, 1, C, 4)
    one = layer(x, need_weights=True)[1].log()
    nine = layer(x.expand(1, 9, C, 4), need_weights=True)[1].log()
    differences = [part[..., 1:] - part[..., :1] for part in (one, nine)]  # free of the norm of softmax
    torch.testing.assert_close(differences[1], 3 * differences[0], rtol=1e-4, atol=1e-5)


def test_rotary_positions_go_into_the_row_step():
    layer, x = RowAttention(D, H, True), torch.randn(B, R, C, D)
    rotation = rotary_angles(torch.arange(C).float(), E)
    shifted = rotary_angles(torch.arange(C).float() + 17, E)
    turned = layer(x, None, None, rotation)[0]
    assert not torch.allclose(turned, layer(x)[0], atol=1e-4)
    torch.testing.assert_close(layer(x, None, None, shifted)[0], turned, rtol=1e-4, atol=1e-5)
    with torch.no_grad():
        torch.testing.assert_close(layer(x, None, None, rotation)[0], turned)


def test_strided_input_reaches_the_fused_kernel():
    """What a column step gives is a transposed view; the scores of all rows at once would fill the memory."""
    x = torch.randn(1, 600, 3, 8).transpose(1, 2)
    with torch.no_grad(), sdpa_kernel(SDPBackend.FLASH_ATTENTION):
        output = RowAttention(8, 2, tied=False)(x)[0]
    assert output.shape == x.shape


# --- fair-esm: the reference MSA Transformer -------------------------------------------------------------


def from_esm(theirs: nn.Module, ours: nn.Module) -> None:
    """Give our layer the projections of theirs."""
    parts = [theirs.q_proj, theirs.k_proj, theirs.v_proj]
    ours.attention.qkv.load_state_dict(
        {name: torch.cat([getattr(part, name) for part in parts]) for name in ("weight", "bias")}
    )
    ours.attention.out.load_state_dict(theirs.out_proj.state_dict())


def run_esm(layer: nn.Module, x: Tensor, padded: Tensor | None = None) -> Tensor:
    """Their layout is (R, C, B, D), and their mask is True at padding."""
    return layer(x.permute(1, 2, 0, 3), self_attn_padding_mask=padded)[0].permute(2, 0, 1, 3)


def esm_pair(axis: str) -> tuple[nn.Module, nn.Module]:
    theirs = (RowSelfAttention if axis == "row" else ColumnSelfAttention)(D, H).eval()
    ours = RowAttention(D, H, True) if axis == "row" else ColumnAttention(D, H)
    from_esm(theirs, ours)
    return theirs, ours


@pytest.mark.parametrize("axis", ["row", "column"])
@pytest.mark.parametrize("rows", [1, R])
def test_against_fair_esm_without_padding(axis, rows):
    theirs, ours = esm_pair(axis)
    x = torch.randn(B, rows, C, D)
    expected = run_esm(theirs, x)
    for output in every_path(ours, x):
        torch.testing.assert_close(output, expected)


def test_padded_rows_change_fair_esm_and_leave_ours():
    """Theirs divides by the rows of the batch, padding counted, and so weakens every score."""
    theirs, ours = esm_pair("row")
    x = torch.randn(1, R, C, D)
    wide = torch.cat([x, torch.zeros(1, 4, C, D)], dim=1)
    real = torch.arange(R + 4)[None] < R
    padded = ~real[:, :, None].expand(1, R + 4, C)
    assert (run_esm(theirs, wide, padded)[:, :R] - run_esm(theirs, x)).abs().max() > 1e-3
    torch.testing.assert_close(ours(wide, real)[0][:, :R], ours(x)[0], rtol=0, atol=1e-6)


ROWS, COLUMNS, WIDTH, HEADS = 4, 5, 12, 3
OF_HEAD = WIDTH // HEADS
W = 0.5


def make(tied: bool) -> AxialTransformer:
    config = ModelConfig(
        kind="alignment", alphabet="rna", d_model=WIDTH, layers=2, heads=HEADS, tied=tied, classes=3
    )
    return random_network(config, seed=5, noise=0.3)


TOKENS = torch.randint(2, 10, (1, ROWS, COLUMNS), generator=torch.Generator().manual_seed(1))


def attend(layer, x: Tensor, axis: str, tied: bool) -> tuple[Tensor, Tensor]:
    """One step as attention between all cells (N = R·C), with -inf between those of other lines."""
    q, k, v = (
        F.linear(x, layer.attention.qkv.weight, layer.attention.qkv.bias)
        .view(-1, 3, HEADS, OF_HEAD)
        .unbind(1)
    )
    row, column = torch.arange(ROWS * COLUMNS) // COLUMNS, torch.arange(ROWS * COLUMNS) % COLUMNS
    line = column if axis == "column" else row
    scores = torch.einsum("ihe,jhe->hij", q, k) / math.sqrt(OF_HEAD)
    if tied:
        cells = scores.view(HEADS, ROWS, COLUMNS, ROWS, COLUMNS)
        total = sum(cells[:, r, :, r] for r in range(ROWS)) / math.sqrt(ROWS)  # (H, C, C)
        scores = total.repeat(1, ROWS, ROWS)  # the same map between the columns of every row
    weights = scores.masked_fill(line[:, None] != line, -math.inf).softmax(dim=-1)  # (H, N, N)
    weights.requires_grad_() if not weights.requires_grad else weights.retain_grad()
    heads = torch.einsum("hij,jhe->ihe", weights, v).flatten(1)
    return F.linear(heads, layer.attention.out.weight, layer.attention.out.bias), weights


def reference(network: AxialTransformer) -> tuple[Tensor, list[Tensor]]:
    """Logits (K,) and the full weights (H, RC, RC) of each step, the graph kept."""
    x = network.embedding(TOKENS[0]) + sinusoidal(torch.arange(COLUMNS).float(), WIDTH)
    x = x + torch.cat([network.query[None], torch.zeros(ROWS - 1, WIDTH)])[:, None]
    x, maps = x.flatten(0, 1), []
    for block in network.blocks:
        y, weights = attend(block.column, block.column_norm(x), "column", tied=False)
        x = x + y
        maps.append(weights)
        y, weights = attend(block.row, block.row_norm(x), "row", block.row.tied)
        x = x + y
        maps.append(weights)
        x = x + block.feed_forward.down(F.gelu(block.feed_forward.up(block.feed_forward_norm(x))))
    return network.head(x[:1])[0], maps


def product(maps: list[Tensor]) -> Tensor:
    """Row of cell 0 of the product of w I + (1 - w) A, the rows of A made to sum to 1."""
    total = torch.eye(ROWS * COLUMNS)
    for a in maps:
        a = a / a.sum(dim=-1, keepdim=True)
        total = (W * torch.eye(ROWS * COLUMNS) + (1 - W) * a) @ total
    return total[0].view(ROWS, COLUMNS)


@pytest.mark.parametrize("tied", [True, False])
def test_the_network_is_the_reference(tied):
    network = make(tied)
    torch.testing.assert_close(network(TOKENS).logits[0], reference(network)[0])
    torch.testing.assert_close(trace(network, TOKENS).logits[0], reference(network)[0])


@pytest.mark.parametrize("line_bytes", [1, 1 << 20])
@pytest.mark.parametrize("tied", [True, False])
def test_rollout_is_the_product_over_all_cells(tied, line_bytes, monkeypatch):
    monkeypatch.setattr(axial_attention, "LINE_BYTES", line_bytes)
    network = make(tied)
    expected = product([a.detach().mean(dim=0) for a in reference(network)[1]])
    grid = rollout(trace(network, TOKENS))
    torch.testing.assert_close(grid[0], expected)
    steps = network(TOKENS, return_attention=True).attention  # in the layout that rollout takes
    by_weights = rollout([step.weights for step in steps], along=[step.axis for step in steps])
    torch.testing.assert_close(by_weights[0], expected)
    assert grid.sum().item() == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("label", [0, 2])
@pytest.mark.parametrize("tied", [True, False])
def test_class_gradient_rollout_is_the_product_over_all_cells(tied, label):
    network = make(tied)
    logits, maps = reference(network)
    slopes = torch.autograd.grad(logits[label], maps)
    mixed = []
    for a, slope in zip(maps, slopes, strict=True):
        positive = (a * slope).clamp(min=0).mean(dim=0).detach()
        idle = positive.sum(dim=-1) <= 0
        mixed.append(torch.where(idle[:, None], torch.eye(ROWS * COLUMNS), positive))
    for traced in (trace(one, TOKENS, gradients=True) for one in (network, Outer(network))):
        grid = grad_rollout(traced, traced.logits[:, label])
        torch.testing.assert_close(grid[0], product(mixed), rtol=1e-4, atol=1e-6)
        torch.testing.assert_close(rollout(traced)[0], product([a.detach().mean(dim=0) for a in maps]))
        with pytest.raises(ConfigError, match="value-rollout needs the values"):
            value_rollout(traced)


class Outer(nn.Module):
    """A network that seqray doesn't know, with axial attention within; tied rows compute CLS alone."""

    def __init__(self, inner: AxialTransformer) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, tokens: Tensor) -> Tensor:
        tied = self.inner.config.tied
        return self.inner(tokens).logits if tied else self.inner.head(self.inner.states(tokens)[:, 0, 0])


def test_frozen_networks_have_gradients_too():
    network = make(True).requires_grad_(False)
    traced = trace(network, TOKENS, gradients=True)
    assert grad_rollout(traced, traced.logits[:, 0]).sum().item() == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("tied", [True, False])
def test_padding_gets_nothing_and_changes_nothing(tied):
    network = make(tied)
    wide = torch.full((2, ROWS + 2, COLUMNS + 3), 7)
    wide[:, :ROWS, :COLUMNS] = TOKENS
    rows, columns = torch.ones(2, ROWS + 2, dtype=torch.bool), torch.ones(2, COLUMNS + 3, dtype=torch.bool)
    rows[0, ROWS:], columns[0, COLUMNS:] = False, False
    for gradients in (False, True):
        one, two = (
            trace(network, *given, gradients=gradients) for given in ((TOKENS,), (wide, rows, columns))
        )
        grids = [grad_rollout(t, t.logits[:, 1]) if gradients else rollout(t) for t in (one, two)]
        torch.testing.assert_close(grids[1][0, :ROWS, :COLUMNS], grids[0][0], rtol=1e-4, atol=1e-6)
        assert grids[1][0, ROWS:].abs().max() == 0
        assert grids[1][0, :, COLUMNS:].abs().max() == 0


def test_cls_is_taken_out():
    grid = torch.tensor([[[0.5, 0.1, 0.1], [0.2, 0.1, 0.0]]])
    expected = torch.tensor([[[1 / 3, 1 / 3], [1 / 3, 0.0]]])
    torch.testing.assert_close(without_cls(grid), expected)
    nothing = without_cls(torch.tensor([[[1.0, 0.0, 0.0], [0.0, 0.0, 0.0]]]))
    torch.testing.assert_close(nothing, torch.full((1, 2, 2), 0.25))
