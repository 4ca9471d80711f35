"""Computes the logits of a model by torch, ONNX Runtime or OpenVINO.

Only the logits are computed elsewhere; tokens, batches, calibration and flags stay the same. ONNX Runtime and
OpenVINO compute on the CPU, a batch in one thread, and as many batches at a time as there are threads. A
model that is opened for them loads no torch.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from seqray.core.arrays import Bools, Ints
from seqray.core.card import Card
from seqray.core.errors import ConfigError, ModelFileError, missing_package
from seqray.inference.onnx import build_graph, require_graph
from seqray.inference.predictions import Dtype
from seqray.modelfile.header import StoredModel, open_stored_model
from seqray.modelfile.model import TrainedModel
from seqray.modelfile.self_test import check_self_test, make_self_test

if TYPE_CHECKING:
    from torch import Tensor

Engine = Literal["auto", "torch", "onnx", "openvino"]
ENGINES: tuple[Engine, ...] = ("auto", "torch", "onnx", "openvino")
PACKAGES: dict[Engine, tuple[str, ...]] = {"onnx": ("onnx", "onnxruntime"), "openvino": ("onnx", "openvino")}
FASTEST: dict[Dtype, tuple[Engine, ...]] = {"fp32": ("onnx", "openvino"), "bf16": ("openvino",)}
"""In this order, where they are installed; then torch. `benchmarks/engines.py` measures it."""

Run = Callable[[dict[str, np.ndarray]], np.ndarray]
Graph = Callable[[bool], Run]


@dataclass(frozen=True, eq=False)
class EngineModel(StoredModel):
    """A model whose logits are computed by another engine.

    ``graph`` takes whether there is a mask, and returns a function from the inputs of the graph to logits
    (B, K); ``member_graphs`` do so for each member alone. ``threads`` batches are computed at a time;
    ``about`` is name and version of the engine.
    """

    graph: Graph = field(kw_only=True)
    member_graphs: tuple[Graph, ...] = field(kw_only=True)
    threads: int = field(kw_only=True)
    about: str = field(kw_only=True)

    @property
    def engine(self) -> str:
        return self.about

    def member(self, number: int) -> Self:
        return replace(super().member(number), graph=self.member_graphs[number], member_graphs=())

    def array_logits(self, tokens: Ints, mask: Bools | None = None) -> npt.NDArray[np.float32]:
        inputs = {"tokens": tokens} if mask is None else {"tokens": tokens, "mask": mask}
        return self.graph(mask is not None)(inputs)

    def logits(self, tokens: Tensor, *masks: Tensor | None) -> Tensor:
        import torch

        mask = masks[0] if masks else None
        return torch.from_numpy(
            self.array_logits(tokens.cpu().numpy(), None if mask is None else mask.cpu().numpy())
        )


def choose_engine(card: Card, dtype: Dtype = "fp32") -> Engine:
    """Name the engine that is fastest on a CPU, of those that are installed and can compute the model.

    Parameters
    ----------
    card
        Of the model.
    dtype
        In which it is computed.
    """
    if card.model.kind != "sequence":
        return "torch"
    for name in FASTEST[dtype]:
        if all(map(find_spec, PACKAGES[name])):
            return name
    return "torch"


def with_engine(
    model: TrainedModel, engine: Engine = "torch", dtype: Dtype = "fp32", threads: int | None = None
) -> TrainedModel:
    """Return the same model, computed by an engine.

    Parameters
    ----------
    model
        On the CPU, unless the engine is torch.
    engine
        ``torch``, ``onnx`` (ONNX Runtime), ``openvino``, or ``auto``: see `choose_engine`, torch on a GPU.
    dtype
        OpenVINO computes in float32 or ``bf16``, ONNX Runtime in float32 only.
    threads
        Batches that other engines compute at a time; torch's number of threads by default.

    Raises
    ------
    ConfigError
        The engine or dtype is unknown, or the engine is not installed or does not support the device or
        dtype.
    ModelFileError
        The engine's float32 logits of the self-test differ from those of the card, or of torch.

    Examples
    --------
    >>> import seqray
    >>> from seqray.inference.engines import with_engine
    >>> with_engine(seqray.load_model("ecoli-promoter"), "onnx").card.name
    'ecoli-promoter'
    """
    if engine not in ENGINES:
        raise ConfigError(f"unknown engine '{engine}'", remedy=f"known are {', '.join(ENGINES)}")
    if dtype not in FASTEST:
        raise ConfigError(f"unknown dtype '{dtype}'", remedy=f"known are {', '.join(FASTEST)}")
    if engine == "auto":
        engine = choose_engine(model.card, dtype) if model.device.type == "cpu" else "torch"
    if engine == "torch":
        return model
    if model.is_locator:
        raise ConfigError(f"the engine '{engine}' computes no locators", remedy="use the engine torch")
    if model.device.type != "cpu":
        raise ConfigError(f"the engine '{engine}' computes on the CPU", remedy="use the device cpu")
    require_graph(model.card)
    threads = threads or _torch_threads()
    runner = RUNNERS[engine](dtype, threads)
    changed = EngineModel(
        model.card,
        model.networks,
        model.sha256,
        model.context,
        model.prefilter,
        weights=model.arrays(),
        graph=_graph_of(model, runner.start),
        member_graphs=tuple(_graph_of(model.member(i), runner.start) for i in range(model.card.members)),
        threads=threads,
        about=runner.about,
    )
    if dtype == "fp32":
        facts = model.card.self_test
        if not facts and model.networks:  # a model that was never saved has none
            facts = make_self_test(model)
        check_self_test(replace(changed, card=replace(model.card, self_test=facts)), f"engine '{engine}'")
    return changed


def _graph_of(model: TrainedModel, start: Callable[[bytes], Run]) -> Graph:
    """Make each graph at its first use: the one without a mask is faster, but suits only a scan."""
    graphs = cache(lambda masked: start(build_graph(model, masked=masked).SerializeToString()))
    making = threading.Lock()

    def graph(masked: bool) -> Run:
        with making:
            return graphs(masked)

    return graph


def open_with_engine(path: str | Path, engine: Engine, dtype: Dtype, threads: int) -> TrainedModel:
    """Open a model file for an engine other than torch, which is not loaded.

    Parameters
    ----------
    path
        Of the model file.
    engine, dtype, threads
        As in `with_engine`.

    Raises
    ------
    ConfigError, ModelFileError
        As `with_engine` and `seqray.modelfile.open_stored_model`.
    """
    model = open_stored_model(path)
    try:
        return with_engine(model, engine, dtype, threads)
    except ModelFileError as error:
        raise ModelFileError(error.what, where=error.where or str(path), remedy=error.remedy) from None


def _torch_threads() -> int:
    import torch

    return torch.get_num_threads()


class _Runner(NamedTuple):
    """An engine: its name and version, and what makes a function of a graph."""

    about: str
    start: Callable[[bytes], Run]


def _onnx_runtime(dtype: Dtype, threads: int) -> _Runner:
    if dtype != "fp32":
        raise ConfigError("the engine 'onnx' computes in fp32 only", remedy="use torch or openvino for bf16")
    try:
        import onnxruntime
    except ModuleNotFoundError:
        raise missing_package("onnxruntime", "onnx") from None

    def start(content: bytes) -> Run:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1  # of a batch: see `seqray.inference.parallel`
        options.log_severity_level = 3  # errors only
        session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
        return lambda inputs: np.asarray(session.run(["logits"], inputs)[0])

    return _Runner(f"ONNX Runtime {onnxruntime.__version__}", start)


def _openvino(dtype: Dtype, threads: int) -> _Runner:
    try:
        import openvino
    except ModuleNotFoundError:
        raise missing_package("openvino", "openvino") from None
    about = f"OpenVINO {openvino.__version__.split('-')[0]}"
    return _Runner(about, partial(_start_openvino, openvino, dtype, threads))


def _start_openvino(openvino: Any, dtype: Dtype, threads: int, content: bytes) -> Run:
    core = openvino.Core()
    settings = {
        # By default OpenVINO rounds to bf16 on processors that support it.
        "INFERENCE_PRECISION_HINT": "bf16" if dtype == "bf16" else "f32",
        "INFERENCE_NUM_THREADS": threads,
        "NUM_STREAMS": threads,  # so that a batch has one thread: see `seqray.inference.parallel`
    }
    compiled, own = core.compile_model(core.read_model(content), "CPU", settings), threading.local()

    def run(inputs: dict[str, np.ndarray]) -> np.ndarray:
        request = own.request = getattr(own, "request", None) or compiled.create_infer_request()
        request.infer(inputs)
        return request.get_tensor("logits").data.copy()  # the next call overwrites it

    return run


RUNNERS = {"onnx": _onnx_runtime, "openvino": _openvino}
