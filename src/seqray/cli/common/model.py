"""Which model is used and where it is computed, and how the model is opened."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from seqray.cli.common.argument_types import auto_or_positive_int, positive_int
from seqray.cli.common.arguments import choice, option

if TYPE_CHECKING:
    from seqray.inference import Engine
    from seqray.modelfile import TrainedModel

MODEL_HELP = "a shipped model (see 'seqray models') or a model file"


def backbone_option() -> str | None:
    """Declare ``--backbone``."""
    return option(
        "--backbone",
        "DIR",
        "directory of the encoder that the model is built on, if it has moved since training",
    )


@dataclass(frozen=True, kw_only=True)
class ModelOptions:
    """A model, and what it is told of the sequences."""

    model: str = option("--model -m", "NAME|FILE", MODEL_HELP, required=True)
    context: str | None = option(
        "--context",
        "NAME",
        "origin of the sequences, such as their species; 'seqray models show' lists what a model knows",
    )
    backbone: str | None = backbone_option()


def threads_option() -> int | None:
    """Declare ``--threads``."""
    return option("--threads", "N", "processor threads (default: all)", type=positive_int)


def device_option(text: str = "auto (a GPU if there is one), cpu, cuda or cuda:N") -> str:
    """Declare ``--device``."""
    return option("--device", "DEVICE", text, default="auto")


@dataclass(frozen=True, kw_only=True)
class DeviceOptions:
    """Where a model computes."""

    title: ClassVar[str] = "computing"

    threads: int | None = threads_option()
    device: str = device_option()


@dataclass(frozen=True, kw_only=True)
class BatchOptions(DeviceOptions):
    """Where a model computes, and how many sequences at a time."""

    batch_size: int | Literal["auto"] = option(
        "--batch-size", "N|auto", "sequences per batch", type=auto_or_positive_int, default="auto"
    )


@dataclass(frozen=True, kw_only=True)
class PrecisionOptions(BatchOptions):
    """The same, and how exactly."""

    precision: Literal["fp32", "bf16"] = choice(
        "--precision", ("fp32", "bf16"), "bf16 is faster and less exact", default="fp32"
    )


@dataclass(frozen=True, kw_only=True)
class EngineOptions(PrecisionOptions):
    """The same, and with which library."""

    engine: Engine = choice(
        "--engine",
        ("torch", "onnx", "openvino"),
        "library that computes; others need an extra: pip install 'seqray[onnx]' or 'seqray[openvino]'",
        default="torch",
    )


def open_model(
    options: ModelOptions, computing: DeviceOptions, *, alignments: bool = False, verbose: bool = False
) -> TrainedModel:
    """Load a model onto the device that is asked for.

    Parameters
    ----------
    options
        Name, context and backbone.
    computing
        Device and threads; with `EngineOptions` also the engine.
    alignments
        Whether a model of alignments may be opened.
    verbose
        Report the model and the device on standard error.

    Raises
    ------
    ConfigError
        For a device or an engine that isn't there, or a model of alignments where sequences are expected.
    ModelFileError
        As `seqray.modelfile.load_model`.
    """
    from seqray.modelfile import load_model, locate_model

    locate_model(options.model)  # a misspelled name is reported before torch is loaded
    import torch

    from seqray.models import torch_device

    if computing.threads:
        torch.set_num_threads(computing.threads)
    engine = computing.engine if isinstance(computing, EngineOptions) else "torch"
    on_cpu = engine != "torch" and computing.device == "auto"
    device = "cpu" if on_cpu else torch_device(computing.device)
    model = load_model(options.model, options.backbone).to(device)
    if not alignments:
        model.check_reads_sequences()
    model = model.with_context(options.context)
    if verbose:
        about = f"model {model.card.name} sha256:{model.sha256}, torch {torch.__version__}"
        print(f"seqray: {about}, {torch.get_num_threads()} threads, {model.device}", file=sys.stderr)
    if engine == "torch" or not isinstance(computing, EngineOptions):
        return model
    from seqray.inference import with_engine

    return with_engine(model, engine, computing.precision)


def provenance(command: Sequence[str], model: TrainedModel, facts: Mapping[str, object]) -> list[str]:
    """The header of every output of a run with a model."""
    from seqray.io.tables import describe_alphabet, provenance_lines

    return provenance_lines(command, model.card.name, model.sha256, describe_alphabet(model.alphabet), facts)
