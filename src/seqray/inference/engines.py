"""Computes the logits of a model by torch, ONNX Runtime or OpenVINO, the others without torch."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
import numpy.typing as npt

from seqray.core.arrays import Bools, Codes, Ints
from seqray.core.card import Card, card_to_json
from seqray.core.errors import ConfigError, InputError, ModelFileError, missing_package, require_type
from seqray.core.model_config import LETTERS_PER_TOKEN
from seqray.inference.sequences import Dtype
from seqray.io.files import write_file
from seqray.modelfile.model import (
    SELF_TEST_TOLERANCE,
    StoredModel,
    TrainedModel,
    check_self_test,
    make_self_test,
    open_stored_model,
)
from seqray.models.tokenizers import CLS, FIRST_LETTER, PAD, UNK, make_tokenizer, pad_arrays

Engine = Literal["auto", "torch", "onnx", "openvino"]
ENGINES: tuple[Engine, ...] = ("auto", "torch", "onnx", "openvino")
PACKAGES: dict[Engine, tuple[str, ...]] = {"onnx": ("onnx", "onnxruntime"), "openvino": ("onnx", "openvino")}
FASTEST: dict[Dtype, tuple[Engine, ...]] = {"fp32": ("onnx", "openvino"), "bf16": ("openvino",)}
"""In this order, where they are installed; then torch. `benchmarks/engines.py` measures it."""

Run = Callable[[dict[str, np.ndarray]], np.ndarray]
"""A function from the inputs of a graph to logits (B, K)."""
Start = Callable[[bytes], Run]


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class EngineModel(StoredModel):
    """A model computed by another engine; ``number`` is that of a member, which shares its functions."""

    start: Start
    number: int | None = None
    runs: dict[tuple[int | None, bool], Run] = field(default_factory=dict)
    making: threading.Lock = field(default_factory=threading.Lock)

    def member(self, number: int) -> Self:
        return replace(super().member(number), number=number)

    def logits(self, tokens: Ints, *masks: Bools | None) -> npt.NDArray[np.float32]:
        [mask] = masks or [None]
        return self._run({"tokens": tokens} if mask is None else {"tokens": tokens, "mask": mask})

    def site_logits(
        self, codes: Codes, tracks: npt.NDArray[np.uint8] | None = None
    ) -> npt.NDArray[np.float32]:
        inputs = {"letters": codes}
        if count := len(self.card.model.tracks):
            unknown = np.zeros((len(codes), count, codes.shape[1]), dtype=np.uint8)
            inputs["tracks"] = unknown if tracks is None else tracks
        return self._run(inputs)

    def _run(self, inputs: dict[str, np.ndarray]) -> npt.NDArray[np.float32]:
        key = self.number, "mask" in inputs
        with self.making:
            if key not in self.runs:
                graph = build_graph(self, masked="mask" in inputs)
                self.runs[key] = self.start(graph.SerializeToString())
        return self.runs[key](inputs)


def choose_engine(card: Card, dtype: Dtype = "fp32") -> Engine:
    """Name the engine that is fastest on a CPU, of those that are installed and can compute the model."""
    able: list[Engine] = [name for name in FASTEST[dtype] if all(map(find_spec, PACKAGES[name]))]
    return able[0] if able and card.model.is_plain else "torch"


def with_engine(
    model: TrainedModel, engine: Engine = "torch", dtype: Dtype = "fp32", threads: int | None = None
) -> TrainedModel:
    """Return the same model, computed by an engine whose logits of the self-test are those of the card."""
    if engine not in ENGINES:
        raise ConfigError(f"unknown engine '{engine}'", remedy=f"known are {', '.join(ENGINES)}")
    if dtype not in FASTEST:
        raise ConfigError(f"unknown dtype '{dtype}'", remedy=f"known are {', '.join(FASTEST)}")
    if engine == "auto":
        engine = choose_engine(model.card, dtype) if model.device.type == "cpu" else "torch"
    if engine == "torch":
        return model
    if model.device.type != "cpu":
        raise ConfigError(f"the engine '{engine}' computes on the CPU", remedy="use the device cpu")
    require_graph(model.card)
    if threads is None:
        import torch

        threads = torch.get_num_threads()
    about, start = RUNNERS[engine](dtype, threads)
    changed = EngineModel(
        card=model.card,
        networks=model.networks,
        sha256=model.sha256,
        context=model.context,
        prefilter=model.prefilter,
        weights=model.arrays(),
        start=start,
        threads=threads,
        engine=about,
    )
    if dtype == "fp32":
        facts = model.card.self_test
        if not facts and model.networks:  # a model that was never saved has none
            facts = make_self_test(model)
        check_self_test(replace(changed, card=replace(model.card, self_test=facts)), f"engine '{engine}'")
    return changed


def open_with_engine(path: str | Path, engine: Engine, dtype: Dtype, threads: int) -> TrainedModel:
    """Open a model file for an engine other than torch, which is not loaded, as `with_engine` does."""
    model = open_stored_model(path)
    try:
        return with_engine(model, engine, dtype, threads)
    except ModelFileError as error:
        raise ModelFileError(error.what, where=error.where or str(path), remedy=error.remedy) from None


def _onnx_runtime(dtype: Dtype, threads: int) -> tuple[str, Start]:
    """Name and version of ONNX Runtime, and what makes a function of a graph."""
    if dtype != "fp32":
        raise ConfigError("the engine 'onnx' computes in fp32 only", remedy="use torch or openvino for bf16")
    try:
        import onnxruntime
    except ModuleNotFoundError:
        raise missing_package("onnxruntime", "onnx") from None

    def start(content: bytes) -> Run:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1  # of a batch: see `seqray.inference.sequences.map_threads`
        options.log_severity_level = 3  # errors only
        session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
        return lambda inputs: np.asarray(session.run(["logits"], inputs)[0])

    return f"ONNX Runtime {onnxruntime.__version__}", start


def _openvino(dtype: Dtype, threads: int) -> tuple[str, Start]:
    """The same for OpenVINO, the fastest in batches."""
    try:
        import openvino
    except ModuleNotFoundError:
        raise missing_package("openvino", "openvino") from None
    settings = {
        # By default OpenVINO rounds to bf16 on processors that support it.
        "INFERENCE_PRECISION_HINT": "bf16" if dtype == "bf16" else "f32",
        "INFERENCE_NUM_THREADS": threads,
        "NUM_STREAMS": threads,  # so that a batch has one thread
    }

    def start(content: bytes) -> Run:
        core, own = openvino.Core(), threading.local()
        compiled = core.compile_model(core.read_model(content), "CPU", settings)

        def run(inputs: dict[str, np.ndarray]) -> np.ndarray:
            request = own.request = getattr(own, "request", None) or compiled.create_infer_request()
            request.infer(inputs)
            return request.get_tensor("logits").data.copy()  # the next call overwrites it

        return run

    return f"OpenVINO {openvino.__version__.split('-')[0]}", start


RUNNERS = {"onnx": _onnx_runtime, "openvino": _openvino}


# --- A model as an ONNX file for other programs, written after a comparison with torch

if TYPE_CHECKING:
    import onnx

Inputs = dict[str, npt.NDArray[Any]]

_CHECKED_LENGTHS = 64  # from a few letters to the window
_LONG_STRAND = 4500  # tokens, more than a scan reads at once


def require_graph(card: Card) -> None:
    """Refuse models of alignments and backbones, which can't be converted, by the card alone."""
    if not card.model.is_plain and not card.model.is_locator:
        kind = "uses a backbone" if card.model.backbone else "reads alignments"
        raise ConfigError(
            f"model '{card.name}' {kind} and cannot be converted to ONNX",
            remedy="use torch, or a model of genomes or sequences",
        )


def build_graph(model: TrainedModel, *, masked: bool = True) -> onnx.ModelProto:
    """As `seqray.inference.onnx_networks.make_graph`; ConfigError where ``onnx`` is not installed."""
    require_graph(model.card)
    try:
        from seqray.inference.onnx_networks import make_graph
    except ModuleNotFoundError as error:
        if error.name != "onnx":
            raise
        raise missing_package("onnx", "onnx") from None
    return make_graph(model, masked=masked)


def export_onnx(model: TrainedModel, path: str | Path) -> float:
    """Write one graph with all members and the calibration, and return how near it is to torch.

    The same model gives the same bytes; nothing is written where logits differ. The metadata hold the card.
    """
    require_type(model, TrainedModel, "load it by seqray.load_model")
    if Path(path).suffix != ".onnx":
        raise InputError("does not end in .onnx", where=str(path), remedy="use .onnx")
    graph = build_graph(model)
    metadata = {
        "seqray_card": card_to_json(model.card),
        "seqray_model_sha256": model.sha256,
        "seqray_tokens": json.dumps(_reading_rules(model), sort_keys=True),
    }
    for key, value in metadata.items():
        entry = graph.metadata_props.add()
        entry.key, entry.value = key, value
    content = graph.SerializeToString(deterministic=True)
    difference = check_graph(model, content)
    write_file(path, content)
    return difference


def _reading_rules(model: TrainedModel) -> dict[str, object]:
    """How letters become the inputs of the graph."""
    settings, letters = model.card.model, model.alphabet.letters
    if model.is_locator:
        return {
            "letters": letters,
            "unknown": model.alphabet.unknown,
            "tracks": settings.tracks,
            "multiple": LETTERS_PER_TOKEN,
            "radius": settings.radius,
        }
    beyond = make_tokenizer(settings).vocab_size
    return {
        "tokenizer": settings.tokenizer,
        "k": settings.k,
        "letters": letters,
        "first_letter": FIRST_LETTER,
        "CLS": CLS,
        "PAD": PAD,
        "UNK": UNK,
        "contexts": {name: beyond + i for i, name in enumerate(settings.contexts)},
    }


def check_graph(model: TrainedModel, content: bytes) -> float:
    """Largest difference of a logit from torch, in the self-test and in sequences of many lengths."""
    try:
        import onnxruntime
    except ModuleNotFoundError:
        raise missing_package("onnxruntime", "onnx") from None
    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    largest = 0.0
    answer = model.site_logits if model.is_locator else model.logits
    for inputs in _stretches(model) if model.is_locator else _padded_batches(model):
        expected = answer(*inputs.values())
        [logits] = session.run(["logits"], inputs)
        difference = np.abs(np.asarray(logits) - expected)
        if not (difference <= SELF_TEST_TOLERANCE * (1 + np.abs(expected))).all():
            raise ModelFileError(
                f"model '{model.card.name}' can't be exported: the graph differs by {difference.max():.3g}"
            )
        largest = max(largest, float(difference.max()))
    return largest


def _stretches(model: TrainedModel) -> Iterator[Inputs]:
    """Letters and tracks of strands: of one token, about one window of attention, and more than a chunk."""
    rng, settings = np.random.default_rng(0), model.card.model
    block = LETTERS_PER_TOKEN * (settings.locator.window if settings.locator else 1)
    for tokens in (1, block // 4 - 1, block // 4, block // 4 + 1, 1000, _LONG_STRAND):
        shape = (2, LETTERS_PER_TOKEN * max(tokens, 1))
        letters = rng.integers(0, len(model.alphabet.letters) + 1, shape).astype(np.uint8)
        inputs: Inputs = {"letters": letters}
        if count := len(settings.tracks):
            tracks = rng.integers(0, 256, (2, count, shape[1]))
            tracks[:, :, : shape[1] // 2] *= rng.integers(0, 2, (2, count, 1))  # whole tracks are 0
            inputs["tracks"] = tracks.astype(np.uint8)
        yield inputs


def _padded_batches(model: TrainedModel) -> Iterator[Inputs]:
    """Tokens and masks: each sequence of the self-test alone, and all of them with shorter ones, padded."""
    sequences = [str(s) for s in model.card.self_test.get("sequences", ())]
    contexts = [*model.card.self_test.get("contexts", ()), *[None] * len(sequences)][: len(sequences)]
    rng = np.random.default_rng(0)
    lengths = np.unique(np.linspace(model.card.model.k, model.card.window, _CHECKED_LENGTHS).astype(int))
    rows = [model.with_context(c).tokenizer.encode(s) for s, c in zip(sequences, contexts, strict=True)]
    plain, count = model.with_context(None).tokenizer, len(model.alphabet.letters)
    drawn = [plain.encode_codes(rng.integers(0, count + 1, n).astype(np.uint8)) for n in lengths]
    for batch in (*([row] for row in rows), rows + drawn):
        tokens, (mask,) = pad_arrays(batch)
        yield {"tokens": tokens, "mask": np.ones(tokens.shape, dtype=bool) if mask is None else mask}
