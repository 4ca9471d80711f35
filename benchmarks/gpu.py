"""What a GPU gives: the results of the CPU, and how fast, with how much memory, at several batch sizes.

    python benchmarks/gpu.py

Shipped models score random sequences on the CPU and on the GPU, in float32 and in bf16: ``difference`` is the
largest of a probability from that of the CPU in float32, ``other digits`` the share of sequences of which a
printed probability differs, ``other calls`` the share that is called otherwise. Then ``scan`` (letters to
calibrated probabilities), ``rollout`` and ``train`` (a step of AdamW) are timed: medians of rounds, after one
round that is not counted; MB (10**6 bytes) is the largest memory that torch had taken on the GPU. The row of
the CPU beside them is measured with the threads of torch.

Without a GPU this says so in one line, and ends with exit status 3.
"""

from __future__ import annotations

import argparse
import copy
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F

from machine import ROOT, describe, write_and_show
from seqray.core import format_number
from seqray.explanations.attribution import rollout, trace
from seqray.inference import Dtype, compute_precision, score_codes
from seqray.modelfile import TrainedModel, load_model

NO_GPU = 3
MODELS = ("ecoli-promoter", "arabidopsis-promoter", "bacteria-promoter-fast")
PRECISIONS: tuple[Dtype, ...] = ("fp32", "bf16")
BATCHES = {"cpu": (64,), "cuda": (64, 512, 4096)}
COLUMNS = ("model", "what", "device", "precision", "batch", "value", "unit")
Row = tuple[str, str, str, str, str, str, str]


def random_codes(model: TrainedModel, count: int) -> np.ndarray:
    """Windows (count, W) of random letters."""
    letters = len(model.alphabet.letters)
    codes = np.random.default_rng(0).integers(0, letters, (count, model.card.window))
    return codes.astype(np.uint8)


def equality(name: str, device: str, count: int) -> Iterator[Row]:
    """Compare probabilities on a device with those of the CPU in float32."""
    model = load_model(name)
    codes = random_codes(model, count)
    expected = score_codes(model, codes)
    model.to(device)
    for precision in PRECISIONS:
        found = score_codes(model, codes, dtype=precision)
        figures = {
            "difference": float(np.abs(found - expected).max()),
            "other digits": float((_printed(found) != _printed(expected)).any(axis=1).mean()),
            "other calls": float((_called(model, found) != _called(model, expected)).mean()),
        }
        for what, value in figures.items():
            yield name, what, device, precision, "auto", f"{value:.3g}", ""


def _printed(probabilities: np.ndarray) -> np.ndarray:
    return np.array([[format_number(value) for value in row] for row in probabilities.tolist()])


def _called(model: TrainedModel, probabilities: np.ndarray) -> np.ndarray:
    return probabilities[:, model.card.positive_index] >= model.card.threshold


def speeds(name: str, device: str, rounds: int) -> Iterator[Row]:
    """Time scan, rollout and training on a device."""
    model = load_model(name).to(device)
    for batch in BATCHES[torch.device(device).type]:
        for precision in PRECISIONS:
            for what, work in works(model, batch, precision).items():
                rate, megabytes = timed(work, batch, model.device, rounds)
                yield name, what, device, precision, str(batch), f"{rate:.4g}", "sequences/s"
                if megabytes:
                    yield name, f"{what}, memory", device, precision, str(batch), f"{megabytes:.4g}", "MB"


def works(model: TrainedModel, batch: int, precision: Dtype) -> dict[str, Callable[[], object]]:
    """What is timed, each for one batch."""
    codes = random_codes(model, batch)
    tokens = torch.from_numpy(model.tokenizer.encode_codes(codes)).to(model.device)

    def explain() -> None:
        with compute_precision(model.device, precision), torch.inference_mode():
            for network in model.sequence_networks:
                rollout(trace(network, tokens))

    return {
        "scan": lambda: score_codes(model, codes, batch_size=batch, dtype=precision),
        "rollout": explain,
        "train": training(model, tokens, precision),
    }


def training(model: TrainedModel, tokens: torch.Tensor, precision: Dtype) -> Callable[[], float]:
    """A step of the first member: forward, backward, AdamW. Returns the loss before it."""
    network = copy.deepcopy(model.networks[0]).train().requires_grad_(True)
    optimizer = torch.optim.AdamW(network.parameters(), lr=1e-4)
    labels = torch.arange(len(tokens), device=tokens.device) % model.card.model.classes

    def step() -> float:
        with torch.autocast(tokens.device.type, dtype=torch.bfloat16, enabled=precision == "bf16"):
            loss = F.cross_entropy(network(tokens).logits.float(), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return float(loss.detach())

    return step


def timed(
    work: Callable[[], object], batch: int, device: torch.device, rounds: int
) -> tuple[float, float | None]:
    """Sequences per second, and on a GPU the largest memory in MB."""
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
    return batch / statistics.median(seconds[1:]), memory


def main() -> int:
    """Measure all models, and write the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", default="cuda", help="cuda or cuda:N")
    parser.add_argument("--models", nargs="+", default=MODELS)
    parser.add_argument("--sequences", type=int, default=4096, help="that CPU and GPU are compared on")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks" / "results" / "gpu.tsv")
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
