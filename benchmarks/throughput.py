"""CPU inference: our networks beside Hugging Face's BertModel of the same size, in one process.

    python benchmarks/throughput.py --threads 2 --rounds 15

Ours is what ``seqray predict`` and ``scan`` run: `seqray.inference.sequences.score_codes`, from letters to
calibrated probabilities, in micro-batches. BertModel gets ready tokens without padding, as one batch of 64,
with its default attention (torch's fused kernel). All methods take turns, in another order each round; a
figure is the median of the rounds, with quartiles. bf16 is a copy in bfloat16 for BertModel, autocast for
us. The rows "plain operators" are ours without the short cuts of `seqray.models.attention`.

Random weights: speed does not depend on them. What bf16 does to probabilities is told in the model cards.
"""

from __future__ import annotations

import copy
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from unittest.mock import patch

import numpy as np
import torch
from transformers import BertConfig, BertModel

from machine import ROOT, describe, script_parser, take_turns, write_and_show
from seqray.core.card import Card
from seqray.core.model_config import ModelConfig, StemConfig
from seqray.core.run_config import load_run_config
from seqray.inference.sequences import Dtype, score_codes
from seqray.modelfile.file import build_network
from seqray.modelfile.model import TrainedModel
from seqray.models import attention as kernels

Work = Callable[[], object]
BERT, OURS, PLAIN = "BertModel", "seqray", "seqray, plain operators"
COLUMNS = ("shape", "method", "precision", "sequences_per_s", "q25", "q75")
COLUMNS += ("times_bert_fp32", "times_bert_bf16")
REFERENCE = ModelConfig(d_model=128, layers=4, heads=8, d_ff=512, max_length=300)
STEM = ModelConfig(
    d_model=64, layers=3, heads=4, max_length=81, stem=StemConfig(kernels=(3, 7, 11, 15), stride=3, depth=1)
)


@dataclass(frozen=True)
class Case:
    """One shape: a configuration and the number of sequences scored in one turn."""

    name: str
    config: ModelConfig
    count: int
    bert: bool = False


@dataclass(frozen=True)
class Row:
    """One method on one shape: quartiles of its sequences per second."""

    case: str
    method: str
    precision: Dtype
    low: float
    median: float
    high: float


def cases() -> list[Case]:
    """Return the reference shape, the shapes of the shipped models, and a deeper stem."""
    shipped = [ROOT / "configs" / f"{name}.yaml" for name in ("ecoli-promoter", "arabidopsis-promoter")]
    return [
        Case("4 layers, D 128, 301 tokens", REFERENCE, 64, bert=True),
        Case("3 layers, D 64, stem of depth 1, 28 tokens", STEM, 2048),
        *(Case(f"one network of {path.stem}", load_run_config(path).model, 2048) for path in shipped),
    ]


def bert_like(config: ModelConfig) -> BertModel:
    """Return a BertModel with the same layers, width, heads and feed-forward width."""
    settings = BertConfig(
        vocab_size=8,
        hidden_size=config.d_model,
        num_hidden_layers=config.layers,
        num_attention_heads=config.heads,
        intermediate_size=config.d_ff or 4 * config.d_model,
        max_position_embeddings=max(512, config.max_length),
    )
    return BertModel(settings).eval()


@contextmanager
def plain_operators() -> Iterator[None]:
    """Switch the short cuts off."""
    with patch.object(kernels, "uses_cpu_shortcuts", lambda x: False):
        yield


def methods(case: Case) -> dict[tuple[str, Dtype], Work]:
    """Return what takes turns on one shape."""
    length = case.config.max_length
    codes = np.random.default_rng(0).integers(0, 4, (case.count, length)).astype(np.uint8)
    card = Card(name="m", classes=("a", "b"), positive="a", window=length, model=case.config)
    model = TrainedModel(card, (build_network(case.config),))

    def ours(precision: Dtype) -> Work:
        return lambda: score_codes(model, codes, dtype=precision)

    def plain(precision: Dtype) -> Work:
        return plain_operators()(ours(precision))

    turns: dict[tuple[str, Dtype], Work] = {}
    if case.bert:
        tokens = torch.from_numpy(model.tokenizer.encode_codes(codes))
        bert = bert_like(case.config)
        half = copy.deepcopy(bert).bfloat16()
        turns[BERT, "fp32"] = torch.inference_mode()(lambda: bert(tokens))
        turns[BERT, "bf16"] = torch.inference_mode()(lambda: half(tokens))
    for precision in ("fp32", "bf16"):
        turns[OURS, precision] = ours(precision)
        turns[PLAIN, precision] = plain(precision)
    return turns


def measure(case: Case, rounds: int) -> list[Row]:
    """Let the methods take turns."""
    seconds = take_turns(methods(case), rounds, time.perf_counter)
    return [
        Row(case.name, *key, *(case.count / t for t in reversed(statistics.quantiles(values, n=4))))
        for key, values in seconds.items()
    ]


def ratio(row: Row, rows: list[Row], precision: Dtype) -> str:
    """Return how many times as fast as BertModel of that precision on the same shape, or nothing."""
    rivals = [r for r in rows if (r.case, r.method, r.precision) == (row.case, BERT, precision)]
    return f"{row.median / rivals[0].median:.2f}" if rivals else ""


def cells(rows: list[Row]) -> Iterator[list[str]]:
    """Lay the rows out, with the speed relative to BertModel."""
    for row in rows:
        figures = [f"{value:.4g}" for value in (row.median, row.low, row.high)]
        ratios = [ratio(row, rows, "fp32"), ratio(row, rows, "bf16")]
        yield [row.case, row.method, row.precision, *figures, *ratios]


def main() -> None:
    """Measure all shapes."""
    parser = script_parser(__doc__, "throughput.tsv")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=15, help="turns of each method")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(0)
    rows = [row for case in cases() for row in measure(case, arguments.rounds)]
    threads = f"threads: {arguments.threads}; medians and quartiles of {arguments.rounds} interleaved rounds"
    notes = [*describe(["throughput.py", *sys.argv[1:]]), threads]
    write_and_show(arguments.out, COLUMNS, cells(rows), notes)


if __name__ == "__main__":
    main()
