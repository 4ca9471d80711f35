"""What of the gradients remains where a CPU trains in bfloat16, with norms of torch and of seqray.

    python benchmarks/bfloat16.py

One batch of random letters and labels, one thread. A share is the length of a weight's gradient in bfloat16
over that in float32: 1 is right. ``norms`` are the weights of layer norms, ``others`` all other weights. The
seconds of the processor are those of the forward and the backward pass, medians of rounds in turn.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from machine import describe, script_parser, take_turns, with_decimals, write_and_show
from seqray.modelfile.file import load_model
from seqray.modelfile.model import TrainedModel
from seqray.models.layers import LayerNorm

MODELS = ("bacteria-genome", "ecoli-promoter", "human-promoter-300")
COLUMNS = (
    *("model", "norms", "norms_smallest", "norms_median", "others_smallest"),
    *("float32_s", "bfloat16_s"),
)
WINDOWS, CHUNKS, CHUNK = 64, 8, 2048
SITES = 0.002  # share of the letters
ROUNDS = 9

Loss = Callable[[], Tensor]


def loss_of(model: TrainedModel) -> Loss:
    """The loss of the first member on a batch of a usual size; of a locator with its auxiliary task."""
    network, random = model.networks[0], np.random.default_rng(0)
    length = CHUNK if model.is_locator else model.card.window
    codes = random.integers(0, 4, (CHUNKS if model.is_locator else WINDOWS, length)).astype(np.uint8)
    if not model.is_locator:
        tokens = torch.from_numpy(model.tokenizer.encode_codes(codes))
        answers = torch.arange(len(codes)) % model.card.model.classes
        return lambda: F.cross_entropy(network(tokens).logits.float(), answers)
    letters = torch.from_numpy(codes.astype(np.int64))
    sites = torch.from_numpy(random.random(codes.shape) < SITES).float()

    def loss() -> Tensor:
        out = network(letters)
        genes = F.binary_cross_entropy_with_logits(out.tracks.float(), torch.zeros(out.tracks.shape))
        return F.binary_cross_entropy_with_logits(out.logits[..., 0].float(), sites) + genes

    return loss


def gradients(network: nn.Module, loss: Loss, *, bfloat16: bool) -> dict[str, float]:
    """Length of the gradient of each weight that has one."""
    network.zero_grad()
    with torch.autocast("cpu", torch.bfloat16, enabled=bfloat16):
        value = loss()
    value.backward()
    return {name: float(one.grad.norm()) for name, one in network.named_parameters() if one.grad is not None}


def row_of(name: str, norms: str) -> Iterator[object]:
    """The row of a model with one kind of norms."""
    model = load_model(name)
    network = model.networks[0].requires_grad_(True).eval()
    for module in network.modules():
        if norms == "torch" and isinstance(module, LayerNorm):
            object.__setattr__(module, "__class__", nn.LayerNorm)
    ways = {half: partial(gradients, network, loss_of(model), bfloat16=half) for half in (False, True)}
    full, half = (way() for way in ways.values())
    shares = {key: half[key] / value for key, value in full.items() if value}
    own = [share for key, share in shares.items() if "norm." in key]
    others = [share for key, share in shares.items() if "norm." not in key]
    yield from (name, norms, min(own), statistics.median(own), min(others))
    yield from (statistics.median(seconds) for seconds in take_turns(ways, ROUNDS).values())


def main() -> None:
    """Write the table."""
    parser = script_parser(__doc__, "bfloat16.tsv")
    options = parser.parse_args()
    torch.set_num_threads(1)
    rows = [with_decimals(row_of(name, norms), 3) for name in MODELS for norms in ("torch", "seqray")]
    write_and_show(options.out, COLUMNS, rows, describe(["bfloat16.py"]))


if __name__ == "__main__":
    main()
