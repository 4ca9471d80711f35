"""Computes the logits of a model by torch, ONNX Runtime or OpenVINO.

Only `TrainedModel.logits` is replaced; tokens, batches, calibration and flags stay the same. ONNX Runtime
and OpenVINO compute on the CPU, a batch in one thread, and as many batches at a time as torch has threads.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from seqray.core import ConfigError, missing_package
from seqray.inference.onnx import build_graph
from seqray.inference.predictions import Precision
from seqray.modelfile import TrainedModel, check_self_test, make_self_test

Engine = Literal["torch", "onnx", "openvino"]
ENGINES: tuple[Engine, ...] = ("torch", "onnx", "openvino")
Run = Callable[[dict[str, np.ndarray]], np.ndarray]


@dataclass(frozen=True, eq=False)
class EngineModel(TrainedModel):
    """A model whose logits are computed by another engine.

    Attributes
    ----------
    graph
        Takes whether there is a mask; returns a function from the inputs of the graph to logits (B, K).
    """

    graph: Callable[[bool], Run] = field(kw_only=True)

    def logits(self, tokens: Tensor, *masks: Tensor | None) -> Tensor:
        """As `TrainedModel.logits`."""
        mask = masks[0] if masks else None
        inputs = {"tokens": tokens.cpu().numpy()}
        if mask is not None:
            inputs["mask"] = mask.cpu().numpy()
        return torch.from_numpy(self.graph(mask is not None)(inputs))


def with_engine(model: TrainedModel, engine: Engine = "torch", precision: Precision = "fp32") -> TrainedModel:
    """Return the same model, computed by an engine.

    Parameters
    ----------
    model
        On the CPU, unless the engine is torch.
    engine
        ``torch``, ``onnx`` (ONNX Runtime) or ``openvino``.
    precision
        OpenVINO computes in float32 or ``bf16``, ONNX Runtime in float32 only.

    Raises
    ------
    ConfigError
        The engine is unknown, not installed, or does not support the device or precision.
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
    if engine == "torch":
        return model
    if model.is_locator:
        raise ConfigError(f"the engine '{engine}' computes no locators", remedy="use the engine torch")
    if model.device.type != "cpu":
        raise ConfigError(f"the engine '{engine}' computes on the CPU", remedy="use the device cpu")
    start = RUNNERS[engine](precision)
    # The graph without a mask is faster but suits only a scan, so each graph is made at its first use.
    graphs = cache(lambda masked: start(build_graph(model, masked=masked).SerializeToString()))
    making = threading.Lock()

    def graph(masked: bool) -> Run:
        with making:
            return graphs(masked)

    changed = EngineModel(model.card, model.networks, model.sha256, model.context, graph=graph)
    if precision == "fp32":
        facts = model.card.self_test or make_self_test(model)  # a model that was never saved has none
        check_self_test(replace(changed, card=replace(model.card, self_test=facts)), f"engine '{engine}'")
    return changed


def _onnx_runtime(precision: Precision) -> Callable[[bytes], Run]:
    if precision != "fp32":
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

    return start


def _openvino(precision: Precision) -> Callable[[bytes], Run]:
    try:
        import openvino
    except ModuleNotFoundError:
        raise missing_package("openvino", "openvino") from None
    return partial(_start_openvino, openvino, precision, torch.get_num_threads())


def _start_openvino(openvino: Any, precision: Precision, threads: int, content: bytes) -> Run:
    core = openvino.Core()
    settings = {
        # By default OpenVINO rounds to bf16 on processors that support it.
        "INFERENCE_PRECISION_HINT": "bf16" if precision == "bf16" else "f32",
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
