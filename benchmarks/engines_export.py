"""What torch's exporter would give in place of the ONNX graph that is written by hand: cost, result, speed.

    python benchmarks/engines_export.py

Three graphs with a mask are made of shipped models, one of each kind of network: ``hand`` by
`seqray.inference.engines.build_graph`; ``exporter`` by `torch.onnx.export` from the network as it is;
``rewritten`` by the exporter after parts of the network were replaced, see `exportable`. This needs the
package onnxscript besides the extras onnx and openvino.

Each graph is made in a process of its own. ``make_cpu_s`` is the processor time for it, with the imports
of the exporter, and ``mb`` the size of the graph in MB (10**6 bytes). ``result`` is the largest
difference of a logit from torch's over sequences of many lengths, or what went wrong. ``milliseconds`` is
the processor time of a batch on one thread, the median of interleaved rounds. ``times_hand`` divides it
by that of the graph ``hand`` on the same engine.
"""

from __future__ import annotations

import statistics
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from multiprocessing import get_context

import numpy as np
import torch
from torch import Tensor, nn

from exportable import rewritten
from machine import describe, script_parser, take_turns
from seqray.core.errors import SeqrayError
from seqray.inference.engines import RUNNERS, Run, build_graph, check_graph
from seqray.io.tables import write_table
from seqray.modelfile.file import load_model
from seqray.modelfile.model import TrainedModel
from seqray.models.tokenizers import CLS

MODELS = (
    "ecoli-promoter",
    "bacteria-promoter-fast",
    "human-core-promoter",
    "antimicrobial-peptide",
    "arabidopsis-promoter",
)
GRAPHS = ("hand", "exporter", "rewritten")
BATCHES = {1: 20, 64: 1}  # sequences of a batch: batches of a turn
COLUMNS = ("model", "graph", "result", "make_cpu_s", "mb", "engine", "batch", "milliseconds", "times_hand")


class Members(nn.Module):
    """All members of a model in one network: logits and probabilities."""

    def __init__(self, model: TrainedModel) -> None:
        super().__init__()
        self.networks = nn.ModuleList(model.networks)
        self.temperature = model.card.temperature

    def forward(self, tokens: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        members = [torch.log_softmax(net(tokens, mask).logits, dim=-1) for net in self.networks]
        logits = torch.stack(members).mean(dim=0) / self.temperature
        return logits, logits.softmax(dim=-1)


@dataclass(frozen=True)
class Made:
    """A graph and what it cost, or why there is none."""

    content: bytes
    result: str
    cpu: float


def exported(model: TrainedModel, edited: bool) -> bytes:
    """Call the exporter for any batch and length; what it notes about the source of a node is left out."""
    # An example as long as a table of positions would fix the length.
    tokens = torch.full((3, model.card.window), CLS)
    free = {0: torch.export.Dim.DYNAMIC, 1: torch.export.Dim.DYNAMIC}
    with rewritten(model.card.model) if edited else nullcontext(), torch.no_grad():
        program = torch.onnx.export(
            Members(model).eval(),
            (tokens, torch.ones_like(tokens, dtype=torch.bool)),
            dynamo=True,
            dynamic_shapes=[free, free],
            input_names=["tokens", "mask"],
            output_names=["logits", "probabilities"],
            verbose=False,
        )
    assert program is not None
    graph = program.model_proto
    for part in (*graph.graph.node, *graph.graph.value_info, graph.graph, graph):
        part.ClearField("metadata_props")
    return graph.SerializeToString(deterministic=True)


def make(name: str, kind: str) -> Made:
    """Make one graph and compare it with torch."""
    torch.set_num_threads(1)
    model = load_model(name)
    began = time.process_time()
    try:
        if kind == "hand":
            content = build_graph(model).SerializeToString()
        else:
            content = exported(model, edited=kind == "rewritten")
    except (RuntimeError, AssertionError) as error:  # the exporter's errors are among them
        return Made(b"", f"fails: {type(error.__cause__ or error).__name__}", time.process_time() - began)
    cpu = time.process_time() - began
    try:
        return Made(content, f"within {check_graph(model, content):.1e}", cpu)
    except SeqrayError:
        return Made(b"", "wrong: logits differ", cpu)
    except Exception as error:  # ONNX Runtime has no class of its own for what fails in a graph
        return Made(b"", f"wrong: {type(error).__name__} at another length", cpu)


def milliseconds(model: TrainedModel, graphs: dict[str, bytes], rounds: int) -> dict[tuple, float]:
    """Median per batch of each (engine, graph, size of batch)."""
    runs = {
        (e, g): runner("fp32", 1)[1](content)
        for e, runner in RUNNERS.items()
        for g, content in graphs.items()
    }
    medians = {}
    for size, repeats in BATCHES.items():
        inputs = _inputs(model, size)
        turns = {key: partial(_repeat, run, inputs, repeats) for key, run in runs.items()}
        for key, seconds in take_turns(turns, rounds).items():
            medians[*key, size] = 1000 * statistics.median(seconds) / repeats
    return medians


def _repeat(run: Run, inputs: dict[str, np.ndarray], times: int) -> None:
    for _ in range(times):
        run(inputs)


def _inputs(model: TrainedModel, size: int) -> dict[str, np.ndarray]:
    """Random sequences, the last eighth of every second one padded."""
    rng, window = np.random.default_rng(0), model.card.window
    codes = rng.integers(0, len(model.alphabet.letters), (size, window)).astype(np.uint8)
    tokens = model.tokenizer.encode_codes(codes).astype(np.int64)
    mask = np.ones(tokens.shape, dtype=bool)
    mask[1::2, -window // 8 :] = False
    return {"tokens": tokens, "mask": mask}


def measure(name: str, rounds: int) -> list[list[str]]:
    """Rows of the table for one model."""
    made = {}
    for kind in GRAPHS:
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
            made[kind] = pool.submit(make, name, kind).result()
    graphs = {kind: one.content for kind, one in made.items() if one.content}
    medians = milliseconds(load_model(name), graphs, rounds)
    rows = []
    for kind, one in made.items():
        head = [name, kind, one.result, f"{one.cpu:.2f}", f"{len(one.content) / 1e6:.2f}"]
        for engine in RUNNERS:
            for size in BATCHES:
                found = medians.get((engine, kind, size))
                ratio = None if found is None else found / medians[engine, "hand", size]
                figures = ["" if v is None else f"{v:.3g}" for v in (found, ratio)]
                rows.append([*head, engine, str(size), *figures])
    return rows


def main() -> None:
    """Measure the models."""
    parser = script_parser(__doc__, "engines_export.tsv")
    parser.add_argument("--models", nargs="+", default=MODELS, metavar="MODEL")
    parser.add_argument("--rounds", type=int, default=31, help="turns of each graph")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    packages = ", ".join(f"{p} {version(p)}" for p in ("onnx", "onnxruntime", "openvino", "onnxscript"))
    notes = [*describe(["engines_export.py", *sys.argv[1:]]), f"engines: {packages}"]
    rows: list[list[str]] = []
    for name in arguments.models:
        found = measure(name, arguments.rounds)
        print(*("\t".join(row) for row in found), sep="\n", flush=True)
        rows += found
    write_table(arguments.out, COLUMNS, rows, notes)


if __name__ == "__main__":
    main()
