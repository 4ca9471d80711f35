"""What explanations cost: rollout beside the forward pass alone, its memory, and a whole run of `explain`.

    python benchmarks/explanation_cost.py [--threads 2] [--promoters FASTA]

- ``rollout/forward``: time of rollout (the forward pass included) over that of the forward pass alone, both
  in turn in one process: 301 tokens, a batch of 64 in micro-batches of 8; 4 layers, 128 wide, 8 heads.
- ``rollout memory``: resident memory above that after a first short record, for one record of 16,001 tokens,
  the same network; its forward pass alone stands beside it.
- ``explain``: seconds of ``seqray explain`` with its default method and checks on the first 1,000 records of
  a FASTA file of promoters, such as ``umarov2017/Ecoli_prom.fa.gz`` (839 records; they are repeated).
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from machine import describe, script_parser, write_and_show
from seqray.core.alphabet import DNA
from seqray.io.records import read_fasta

TOKENS, BATCH, MICRO, LONG_TOKENS = 301, 64, 8, 16_001
ROUNDS = 9


def network(length: int):  # noqa: ANN201
    """Reference network with random weights."""
    import torch

    from seqray.core.model_config import ModelConfig
    from seqray.modelfile.file import build_network

    torch.manual_seed(0)
    config = ModelConfig(d_model=128, layers=4, heads=8, d_ff=512, max_length=length, dropout=0.0)
    return build_network(config).eval().requires_grad_(False)


def time_rollout(threads: int) -> list[tuple[str, float]]:
    """Medians of interleaved rounds: forward alone, rollout, and their ratio."""
    import torch

    from seqray.explanations.rollout import rollout
    from seqray.explanations.trace import trace
    from seqray.models.attention import keep_freed_memory

    torch.set_num_threads(threads)
    keep_freed_memory()
    model = network(TOKENS - 1)
    tokens = torch.randint(4, 8, (BATCH, TOKENS))
    tokens[:, 0] = 1
    pieces = tokens.split(MICRO)
    seconds: dict[str, list[float]] = {"forward": [], "rollout": []}
    with torch.inference_mode():
        for _ in range(ROUNDS):
            for name, work in (("forward", model), ("rollout", lambda piece: rollout(trace(model, piece)))):
                start = time.perf_counter()
                for piece in pieces:
                    work(piece)
                seconds[name].append(time.perf_counter() - start)
    forward, rolled = (statistics.median(seconds[name][1:]) for name in ("forward", "rollout"))
    ratio = statistics.median(
        r / f for f, r in zip(seconds["forward"][1:], seconds["rollout"][1:], strict=True)
    )
    return [
        ("forward, sequences/s", BATCH / forward),
        ("rollout, sequences/s", BATCH / rolled),
        ("rollout/forward", ratio),
    ]


def memory(what: str) -> float:
    """MiB above the resident memory of a warm process, in a process of its own."""
    done = subprocess.run(
        [sys.executable, __file__, "--memory-of", what], capture_output=True, text=True, check=True
    )
    return float(done.stdout)


def _measure_memory(what: str) -> float:
    import torch

    from seqray.explanations.rollout import rollout
    from seqray.explanations.trace import trace

    torch.set_num_threads(1)
    model = network(LONG_TOKENS - 1)

    def run(length: int) -> None:
        tokens = torch.randint(4, 8, (1, length))
        tokens[:, 0] = 1
        with torch.inference_mode():
            model(tokens) if what == "forward" else rollout(trace(model, tokens))

    run(500)
    before = _resident("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
    run(LONG_TOKENS)
    return (_resident("VmHWM") - before) / 1024


def _resident(key: str) -> float:
    lines = Path("/proc/self/status").read_text().splitlines()
    return float(next(line.split()[1] for line in lines if line.startswith(key)))


def time_explain(promoters: Path, records: int, threads: int) -> float:
    """Seconds of the command on so many records."""
    read = list(read_fasta(promoters, DNA, duplicates="rename"))
    with tempfile.TemporaryDirectory() as folder:
        fasta = Path(folder) / "in.fa"
        chosen = (read[i % len(read)].sequence for i in range(records))
        fasta.write_text("".join(f">r{i}\n{letters}\n" for i, letters in enumerate(chosen)))
        words = [
            sys.executable,
            "-m",
            "seqray",
            "explain",
            str(fasta),
            "--model",
            "ecoli-promoter",
            "--quiet",
        ]
        words += ["--threads", str(threads), "--device", "cpu", "--out", f"{folder}/out.tsv"]
        start = time.perf_counter()
        subprocess.run(words, check=True)
        return time.perf_counter() - start


def main() -> None:
    parser = script_parser(__doc__, "explanation_cost.tsv")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--promoters", type=Path, help="FASTA of 81-bp promoters")
    parser.add_argument("--records", type=int, default=1000)
    parser.add_argument("--memory-of", choices=("forward", "rollout"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.memory_of:
        print(_measure_memory(args.memory_of))
        return
    rows = time_rollout(args.threads)
    rows += [
        (f"{what} of {LONG_TOKENS} tokens, MiB above the model", memory(what))
        for what in ("forward", "rollout")
    ]
    if args.promoters:
        seconds = time_explain(args.promoters, args.records, args.threads)
        rows.append((f"explain with checks, {args.records} records of 81 bp, seconds", seconds))
    head = [*describe(sys.argv), f"threads: {args.threads}, rounds: {ROUNDS}"]
    write_and_show(args.out, ("what", "value"), [(what, f"{value:.4g}") for what, value in rows], head)


if __name__ == "__main__":
    main()
