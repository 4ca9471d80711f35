"""Which model is used and where it is computed, and how the model is opened."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from seqray.cli.common.argument_types import AutoOrPositiveInt, Threads
from seqray.cli.common.arguments import Options, option
from seqray.cli.common.processors import count_threads, has_gpu_device, use_threads
from seqray.core import InputError, OtherLettersError

if TYPE_CHECKING:
    from seqray.core import Card
    from seqray.modelfile import TrainedModel

Engine = Literal["auto", "torch", "onnx", "openvino"]

MODEL_HELP = "a shipped model (see 'seqray models') or a model file"
MAX_NAMED_MODELS = 3

AUTO, NO_CONTEXT = "auto", "none"
CONTEXT = option(
    "--context NAME|auto|none",
    "origin of the sequences, such as their species; auto: the context of the model that they "
    "resemble, if any; 'seqray models show' lists what a model knows",
    AUTO,
)
TRUNCATE = option(
    "--truncate",
    "what is read of sequences longer than the model reads: both ends, a half each, or the start; none "
    "refuses them (default: as the model was trained)",
)
BACKBONE = option("--backbone DIR", "directory of the encoder that the model is built on, if it has moved")
THREADS = option("--threads N", "processor threads (default: as many as the processors that seqray may use)")


class ModelOptions(Options):
    """A model, and the origin of the sequences."""

    model: str = option("--model -m NAME|FILE", MODEL_HELP)
    context: str = CONTEXT
    backbone: str | None = BACKBONE


class DeviceOptions(Options, heading="computing"):
    """Where a model computes."""

    threads: Threads | None = THREADS
    device: str = option("--device DEVICE", "auto (a GPU if there is one), cpu, cuda or cuda:N", "auto")


class BatchOptions(DeviceOptions):
    """Where a model computes, and how many sequences at a time."""

    batch_size: AutoOrPositiveInt = option(
        "--batch-size N|auto", "sequences per batch of a GPU; no effect on a CPU", "auto"
    )


class DtypeOptions(BatchOptions):
    """The same, and how exactly."""

    dtype: Literal["fp32", "bf16"] = option("--dtype", "bf16 is faster and less exact", "fp32")


class EngineOptions(DtypeOptions):
    """The same, and with which library."""

    engine: Engine = option(
        "--engine",
        "library that computes; auto: the fastest installed one; others than torch need an extra: "
        "pip install 'seqray[onnx]' or 'seqray[openvino]'",
        "torch",
    )


def open_model(
    options: ModelOptions,
    computing: DeviceOptions,
    *,
    alignments: bool = False,
    locators: bool = False,
    verbose: bool = False,
) -> TrainedModel:
    """Load a model onto the requested device.

    Parameters
    ----------
    options
        Name, context and backbone; `recognize` looks for a context that is left to the records.
    computing
        Device and threads; with `EngineOptions` also the engine.
    alignments, locators
        Whether a model of alignments, or a locator, may be opened.
    verbose
        Report the model and the device on standard error.

    Raises
    ------
    ConfigError
        For a device or an engine that isn't there, or a model of a kind that this verb does not take.
    ModelFileError
        As `seqray.modelfile.load_model`.
    """
    from seqray.modelfile import locate_model

    path = locate_model(options.model)  # a misspelled name is reported before torch is loaded
    engine = _engine_without_torch(options, computing, path)
    model, threads = _open_torch(options, computing) if engine is None else _open(path, computing, engine)
    if not (locators if model.is_locator else alignments):
        model.check_reads_sequences()
    if options.context not in (AUTO, NO_CONTEXT):
        model = model.with_context(options.context)
    if verbose:
        about = f"model {model.card.name} sha256:{model.sha256}, {model.engine or _torch_version()}"
        print(f"seqray: {about}, {threads} threads, {model.device}", file=sys.stderr)
    return model


def _engine_without_torch(options: ModelOptions, computing: DeviceOptions, path: Path) -> Engine | None:
    """The engine, if it needs no torch to find out that it computes; else None."""
    if not isinstance(computing, EngineOptions) or computing.engine == "torch" or options.backbone:
        return None
    if computing.device not in ("cpu", "auto"):
        return None
    if computing.engine != "auto":
        return computing.engine
    if computing.device == "auto" and has_gpu_device():
        return None
    from seqray.inference import choose_engine
    from seqray.modelfile import read_card

    found = choose_engine(read_card(path), computing.dtype)
    return None if found == "torch" else found


def _open(path: Path, computing: DeviceOptions, engine: Engine) -> tuple[TrainedModel, int]:
    """The model and the number of threads, without torch."""
    from seqray.inference import open_with_engine

    dtype = computing.dtype if isinstance(computing, EngineOptions) else "fp32"
    threads = count_threads(computing.threads)
    return open_with_engine(path, engine, dtype, threads), threads


def _open_torch(options: ModelOptions, computing: DeviceOptions) -> tuple[TrainedModel, int]:
    """The model and the number of threads; by another engine where one was asked for."""
    from seqray.modelfile import load_model
    from seqray.models import torch_device

    threads = use_threads(computing.threads)
    engine = computing.engine if isinstance(computing, EngineOptions) else "torch"
    on_cpu = engine not in ("auto", "torch") and computing.device == "auto"
    device = "cpu" if on_cpu else torch_device(computing.device)
    model = load_model(options.model, options.backbone).to(device)
    if engine == "torch" or not isinstance(computing, EngineOptions):
        return model, threads
    from seqray.inference import with_engine

    return with_engine(model, engine, computing.dtype), threads


def _torch_version() -> str:
    import torch

    return f"torch {torch.__version__}"


@contextmanager
def naming_other_models() -> Iterator[None]:
    """Let an error about proteins for a model of nucleotides, or the reverse, say which models ship."""
    try:
        yield
    except OtherLettersError as error:
        models = _shipped_for(error.found)
        raise InputError(error.what, where=error.where, remedy=f"{error.remedy}; {models}") from None


def _shipped_for(letters: str) -> str:
    """Shipped models of proteins or nucleotides, and what each reads."""
    from seqray.core import ALPHABETS
    from seqray.modelfile import available_models, locate_model, read_card

    cards = [(name, read_card(locate_model(name)).model) for name in available_models()]
    wanted = [
        f"{name} (reads {model.kind}s)"
        for name, model in cards
        if ALPHABETS[model.alphabet].is_nucleotide == (letters == "nucleotides")
    ]
    if len(wanted) > MAX_NAMED_MODELS:
        return f"'seqray models' lists those for {letters}"
    return f"shipped for {letters}: {', '.join(wanted) or 'none'}"


def provenance(command: Sequence[str], model: TrainedModel, facts: Mapping[str, object]) -> list[str]:
    """Build the header of every output of a run with a model.

    Parameters
    ----------
    command
        Words of the command line.
    model
        The model of the run.
    facts
        Further lines: key and value.
    """
    from seqray.io.tables import describe_alphabet, provenance_lines

    engine = {"engine": model.engine} if model.engine else {}
    alphabet = describe_alphabet(model.alphabet)
    return provenance_lines(command, model.card.name, model.sha256, alphabet, {**facts, **engine})


def check_new_model(out: str, source: str) -> None:
    """Refuse a new model file that can't be written, before the model is loaded.

    Parameters
    ----------
    out, source
        Paths of the new file, and of the model that it is made of.

    Raises
    ------
    ModelFileError, InputError
        For another suffix; for the model itself, and a folder that does not exist.
    """
    from seqray.modelfile import check_model_path

    check_model_path(out)
    if os.path.exists(out) and os.path.samefile(out, source):
        raise InputError("is the model and would be overwritten", where=out, remedy="name another output")


def truncation_fact(card: Card) -> dict[str, str]:
    """What is read of sequences that are too long, for the header; nothing where they are refused."""
    if card.truncate == "none":
        return {}
    return {"truncate": f"{card.truncate}: at most {card.window} letters of a record are read"}
