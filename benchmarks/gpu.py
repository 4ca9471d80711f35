"""What a GPU gives: the results of the CPU, and how fast, with how much memory, at several batch sizes.

    python benchmarks/gpu.py

Shipped models score random sequences on the CPU and on the GPU, in float32 and in bf16: ``difference`` is the
largest of a probability from that of the CPU in float32, ``other digits`` the share of sequences of which a
printed probability differs, ``other calls`` the share that is called otherwise. Then ``scan`` (letters to
calibrated probabilities), ``rollout`` and ``train`` (a step of AdamW) are timed: medians of rounds, after one
round that is not counted; MB (10**6 bytes) is the largest memory that torch had taken on the GPU. The row of
the CPU beside them is measured with the threads of torch. The figures of a locator are of letters of a strand
without genes; a batch of ``train`` is then made of chunks of 2,048 letters.

Without a GPU this says so in one line, and ends with exit status 3.
"""

from __future__ import annotations

import copy
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn import Module

from machine import describe, script_parser, write_and_show
from seqray.core.text import format_number
from seqray.explanations.rollout import rollout
from seqray.explanations.trace import trace
from seqray.inference.locators import CHUNK, Strand, StrandScorer
from seqray.inference.sequences import Dtype, compute_precision, score_codes
from seqray.modelfile.file import load_model
from seqray.modelfile.model import TrainedModel

NO_GPU = 3
MODELS = ("ecoli-promoter", "arabidopsis-promoter", "bacteria-promoter-fast", "bacteria-genome")
PRECISIONS: tuple[Dtype, ...] = ("fp32", "bf16")
BATCHES = {"cpu": (64,), "cuda": (64, 512, 4096)}
LOCATOR_BATCHES = {"cpu": (8,), "cuda": (8, 64, 512)}
CHUNK_LETTERS = 2048  # of a locator in training
COLUMNS = ("model", "what", "device", "precision", "batch", "value", "unit")
Row = tuple[str, str, str, str, str, str, str]


def random_codes(model: TrainedModel, count: int) -> np.ndarray:
    """Windows (count, W) of random letters."""
    letters = len(model.alphabet.letters)
    codes = np.random.default_rng(0).integers(0, letters, (count, model.card.window))
    return codes.astype(np.uint8)


def random_strand(length: int) -> Strand:
    """Random letters without genes."""
    return Strand(np.random.default_rng(0).integers(0, 4, length).astype(np.uint8))


def equality(name: str, device: str, count: int) -> Iterator[Row]:
    """Compare probabilities on a device with those of the CPU in float32."""
    model = load_model(name)
    expected = probabilities(model, count, "fp32")
    model.to(device)
    for precision in PRECISIONS:
        found = probabilities(model, count, precision)
        figures = {
            "difference": float(np.abs(found - expected).max()),
            "other digits": float((_printed(found) != _printed(expected)).any(axis=1).mean()),
            "other calls": float((_called(model, found) != _called(model, expected)).mean()),
        }
        for what, value in figures.items():
            yield name, what, device, precision, "auto", f"{value:.3g}", ""


def probabilities(model: TrainedModel, count: int, precision: Dtype) -> np.ndarray:
    """Those of random windows (count, K), or of 64 times as many letters of a strand (64 count, 1)."""
    if not model.is_locator:
        return score_codes(model, random_codes(model, count), dtype=precision)
    return strand_scores(model, random_strand(64 * count), precision)[:, None]


def strand_scores(model: TrainedModel, strand: Strand, precision: Dtype) -> np.ndarray:
    """Scores (L,) of all letters of a strand."""
    scorer = StrandScorer(model, precision)
    with scorer.running():
        return np.concatenate(scorer.chunks(strand, range(-(-len(strand) // CHUNK))))


def _printed(probabilities: np.ndarray) -> np.ndarray:
    return np.array([[format_number(value) for value in row] for row in probabilities.tolist()])


def _called(model: TrainedModel, probabilities: np.ndarray) -> np.ndarray:
    positive = 0 if model.is_locator else model.card.positive_index
    return probabilities[:, positive] >= model.card.threshold


def speeds(name: str, device: str, rounds: int) -> Iterator[Row]:
    """Time scan, rollout and training on a device."""
    model = load_model(name).to(device)
    batches = LOCATOR_BATCHES if model.is_locator else BATCHES
    for precision in PRECISIONS:
        for batch in batches[model.device.type]:
            for what, (work, count, unit) in works(model, batch, precision).items():
                seconds, megabytes = timed(work, model.device, rounds)
                yield name, what, device, precision, str(batch), f"{count / seconds:.4g}", f"{unit}/s"
                if megabytes:
                    yield name, f"{what}, memory", device, precision, str(batch), f"{megabytes:.4g}", "MB"


Work = tuple[Callable[[], object], int, str]
"""What is timed, and how many units of what it handles."""


def works(model: TrainedModel, batch: int, precision: Dtype) -> dict[str, Work]:
    """What is timed, each for one batch."""
    return (_locator_works if model.is_locator else _window_works)(model, batch, precision)


def _window_works(model: TrainedModel, batch: int, precision: Dtype) -> dict[str, Work]:
    codes = random_codes(model, batch)
    tokens = torch.from_numpy(model.tokenizer.encode_codes(codes)).to(model.device)

    def explain() -> None:
        with compute_precision(model.device, precision), torch.inference_mode():
            for network in model.sequence_networks:
                rollout(trace(network, tokens))

    def loss(network: Module) -> Tensor:
        return F.cross_entropy(network(tokens).logits.float(), labels)

    labels = torch.arange(len(tokens), device=tokens.device) % model.card.model.classes
    found = {
        "scan": lambda: score_codes(model, codes, batch_size=batch, dtype=precision),
        "rollout": explain,
        "train": training(model, loss, precision),
    }
    return {what: (work, batch, "sequences") for what, work in found.items()}


def _locator_works(model: TrainedModel, batch: int, precision: Dtype) -> dict[str, Work]:
    strand = random_strand(batch * CHUNK_LETTERS)
    letters = torch.from_numpy(strand.codes.reshape(batch, -1).astype(np.int64)).to(model.device)
    labels = (letters == 0).float()[..., None]

    def loss(network: Module) -> Tensor:
        return F.binary_cross_entropy_with_logits(network(letters).logits.float(), labels)

    scan, train = partial(strand_scores, model, strand, precision), training(model, loss, precision)
    return {what: (work, letters.numel(), "letters") for what, work in (("scan", scan), ("train", train))}


def training(
    model: TrainedModel, loss_of: Callable[[Module], Tensor], precision: Dtype
) -> Callable[[], float]:
    """A step of the first member: forward, backward, AdamW. Returns the loss before it."""
    network = copy.deepcopy(model.networks[0]).train().requires_grad_(True)
    optimizer = torch.optim.AdamW(network.parameters(), lr=1e-4)

    def step() -> float:
        with torch.autocast(model.device.type, dtype=torch.bfloat16, enabled=precision == "bf16"):
            loss = loss_of(network)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return float(loss.detach())

    return step


def timed(work: Callable[[], object], device: torch.device, rounds: int) -> tuple[float, float | None]:
    """Seconds of a round, and on a GPU the largest memory in MB."""
    on_gpu, seconds = device.type == "cuda", []
    if on_gpu:
        torch.cuda.reset_peak_memory_stats(device)
    for _ in range(1 + rounds):
        start = time.perf_counter()
        work()
        if on_gpu:
            torch.cuda.synchronize(device)
        seconds.append(time.perf_counter() - start)
    memory = torch.cuda.max_memory_allocated(device) / 1e6 if on_gpu else None
    return statistics.median(seconds[1:]), memory


def main() -> int:
    """Measure all models, and write the table."""
    parser = script_parser(__doc__, "gpu.tsv")
    parser.add_argument("--device", default="cuda", help="cuda or cuda:N")
    parser.add_argument("--models", nargs="+", default=MODELS)
    parser.add_argument("--sequences", type=int, default=4096, help="that CPU and GPU are compared on")
    parser.add_argument("--rounds", type=int, default=9)
    arguments = parser.parse_args()
    if not torch.cuda.is_available():
        print("gpu.py: torch sees no GPU here; nothing was measured", file=sys.stderr)
        return NO_GPU
    notes = describe(["gpu.py", *sys.argv[1:]])
    about = f"{torch.cuda.get_device_name(arguments.device)}, CUDA {torch.version.cuda}"
    notes += [f"GPU: {about}", f"threads of the CPU: {torch.get_num_threads()}"]
    rows: list[Row] = []
    for name in arguments.models:
        rows += equality(name, arguments.device, arguments.sequences)
        for device in ("cpu", arguments.device):
            rows += speeds(name, device, arguments.rounds)
    write_and_show(arguments.out, COLUMNS, rows, notes)
    return 0


if __name__ == "__main__":
    sys.exit(main())
