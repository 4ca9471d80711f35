"""The model of a verb, and where it computes."""

from __future__ import annotations

import logging
import os
import resource
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from seqray.cli.options import AutoOrPositiveInt, Options, Threads, option, refuse_unused
from seqray.core.errors import ConfigError, InputError, OtherLettersError

if TYPE_CHECKING:
    from seqray.core.card import Card
    from seqray.core.records import SequenceRecord
    from seqray.kinds.kinds import Kind
    from seqray.modelfile.model import TrainedModel


# --- How many threads a run takes, how threads without work wait, and limits under which none can work

# MB in which the libraries of a verb are loaded; with less they abort or wait for ever (benchmarks/limits.py)
MIN_ADDRESS_SPACE = 600
MORE_ADDRESS_SPACE = {"scan": 1000, "explain": 1000} | dict.fromkeys(
    ("evaluate", "calibrate", "train", "pretrain", "prefilter"), 1300
)
SLEEP = {
    "OMP_WAIT_POLICY": "passive",  # GNU's OpenMP, of torch's wheels for Linux, reads it
    "KMP_BLOCKTIME": "0",  # LLVM's and Intel's, of torch for macOS and of conda
}
KERNELS = ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "16384")
_SPIN = (*SLEEP, "GOMP_SPINCOUNT")
_COUNT = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")


def prepare_process() -> None:
    """Set what libraries read when they are loaded; what the user has set stays, but for matplotlib."""
    if "torch" not in sys.modules and not any(name in os.environ for name in _SPIN):
        os.environ.update(SLEEP)  # a thread that spins takes the processor from work that it waits for
    os.environ.setdefault(*KERNELS)  # batches have more shapes than the 1,024 whose kernels oneDNN keeps
    if "matplotlib" not in sys.modules:  # a notebook names one that may not be installed; figures need none
        os.environ.pop("MPLBACKEND", None)
        logging.getLogger("matplotlib").setLevel(logging.ERROR)  # it warns of a home that can't be written
    if resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY:
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # with more it may wait for memory for ever


def check_address_space(verb: str) -> None:
    """Refuse a limit of the address space (``ulimit -v``) under which libraries abort while being loaded."""
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    least = MORE_ADDRESS_SPACE.get(verb, MIN_ADDRESS_SPACE)
    if 0 <= limit < least * 1_000_000:
        raise InputError(
            f"the address space is limited to {limit // 1_000_000} MB (ulimit -v)",
            remedy=f"allow {least} MB or more",
        )


def use_threads(asked: int | None) -> int:
    """Compute with so many threads, by default ``OMP_NUM_THREADS``, else torch's or `free_processors`."""
    from threading import Event, Thread

    import torch

    count = asked or torch.get_num_threads()
    if not asked and not any(os.environ.get(name) for name in _COUNT):
        count = min(count, free_processors())
    done, workers = Event(), list[Thread]()
    try:  # start so many threads and end them: OpenMP ends the process where one of its own can't start
        for _ in range(count - 1):
            workers.append(Thread(target=done.wait))
            workers[-1].start()
    except RuntimeError:
        workers.pop()
        remedy = "give a smaller --threads or OMP_NUM_THREADS, or raise the limits (ulimit -u, -v)"
        raise ConfigError(f"can't start {count} threads", remedy=remedy) from None
    finally:
        done.set()
        for thread in workers:
            thread.join()
    torch.set_num_threads(count)
    return count


def count_threads(asked: int | None) -> int:
    """Return the number of threads of a run that does not load torch, by the same rule."""
    named = (os.environ.get(name, "").split(",")[0].strip() for name in _COUNT)
    return asked or next((int(n) for n in named if n.isdecimal() and int(n)), free_processors())


def has_gpu_device(root: Path = Path("/")) -> bool:
    """Whether the machine may have a GPU that torch can use; found without torch, by its device files."""
    devices = root / "dev"  # NVIDIA's, AMD's and those of WSL
    return any(devices.glob("nvidia*")) or (devices / "kfd").exists() or (devices / "dxg").exists()


def free_processors(root: Path = Path("/")) -> int:
    """Processors that this process may use: its affinity, Slurm's share, the quota of its cgroups."""
    own = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    limits: list[float] = [own, *_quotas(root)]
    if (task := os.environ.get("SLURM_CPUS_PER_TASK", "")).isdecimal():
        limits.append(int(task))
    return max(1, int(min(limits)))


def _quotas(root: Path) -> Iterator[float]:
    """CPU quotas, in processors, of the cgroups of this process and of those that hold them."""
    for line in _text(root / "proc/self/cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers and "cpu" not in controllers.split(","):
            continue
        mount = root / "sys/fs/cgroup" / ("cpu" if controllers else "")
        inner = mount / path.strip("/")
        for folder in (inner, *inner.parents):  # inside a container some of them can't be seen
            if not folder.is_relative_to(mount):
                break
            files = ("cpu.cfs_quota_us", "cpu.cfs_period_us") if controllers else ("cpu.max",)
            words = " ".join(_text(folder / name) for name in files).split()  # quota and period
            if len(words) == 2 and all(map(str.isdigit, words)) and int(words[1]):
                yield int(words[0]) / int(words[1])


def _text(path: Path) -> str:
    """What a file holds; nothing where it can't be read."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError:
        return ""


# --- Which model is used and where it is computed, and how the model is opened

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
    only_for="sequences",
)
BACKBONE = option(
    "--backbone DIR", "directory of the encoder that the model is built on, if it has moved", only_for="model"
)
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

    dtype: Literal["fp32", "bf16"] = option(
        "--dtype", "bf16 is faster and less exact", "fp32", only_for="any model"
    )


class EngineOptions(DtypeOptions):
    """The same, and with which library."""

    engine: Engine = option(
        "--engine",
        "library that computes; auto: the fastest installed one; others than torch need "
        "pip install onnx onnxruntime, or openvino",
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
    """Load a model onto the requested device."""
    from seqray.modelfile.header import locate_model

    path = locate_model(options.model)  # a misspelled name is reported before torch is loaded
    engine = computing.engine if isinstance(computing, EngineOptions) else "torch"
    dtype = computing.dtype if isinstance(computing, EngineOptions) else "fp32"
    if light := _engine_without_torch(options, computing, path):
        from seqray.inference.engines import open_with_engine

        threads = count_threads(computing.threads)
        model = open_with_engine(path, light, dtype, threads)
    else:
        from seqray.modelfile.file import load_model
        from seqray.models.batches import torch_device

        threads = use_threads(computing.threads)
        on_cpu = engine not in ("auto", "torch") and computing.device == "auto"
        device = "cpu" if on_cpu else torch_device(computing.device)
        model = load_model(options.model, options.backbone).to(device)
        if engine != "torch":
            from seqray.inference.engines import with_engine

            model = with_engine(model, engine, dtype)
    if not (locators if model.is_locator else alignments):
        model.check_reads_sequences()
    if options.context not in (AUTO, NO_CONTEXT):
        model = model.with_context(options.context)
    if verbose:
        import torch

        engine = model.engine or f"torch {torch.__version__}"
        about = f"model {model.card.name} sha256:{model.sha256}, {engine}"
        print(f"seqray: {about}, {threads} threads, {model.device}", file=sys.stderr)
    return model


def refuse_for_others(request: Options, kind: Kind) -> None:
    """Refuse an option that is for models of another kind alone."""
    from seqray.kinds.kinds import KINDS

    others = {other.unit for other in KINDS.values()} - {kind.unit}
    reads = f"and this one reads {kind.unit}"
    refuse_unused(request, {unit: (f"is for models that read {unit}, {reads}", "") for unit in others})


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
    from seqray.inference.engines import choose_engine
    from seqray.modelfile.header import read_card

    found = choose_engine(read_card(path), computing.dtype)
    return None if found == "torch" else found


@contextmanager
def naming_other_models() -> Iterator[None]:
    """Let an error about proteins for a model of nucleotides, or the reverse, say which models ship."""
    try:
        yield
    except OtherLettersError as error:
        from seqray.core.alphabet import ALPHABETS
        from seqray.modelfile.header import available_models, locate_model, read_card

        cards = ((name, read_card(locate_model(name)).model) for name in available_models())
        names = [
            f"{name} (reads {model.kind}s)"
            for name, model in cards
            if ALPHABETS[model.alphabet].is_nucleotide == (error.found == "nucleotides")
        ]
        models = f"shipped for {error.found}: {', '.join(names) or 'none'}"
        if len(names) > MAX_NAMED_MODELS:
            models = f"'seqray models' lists those for {error.found}"
        raise InputError(error.what, where=error.where, remedy=f"{error.remedy}; {models}") from None


def provenance(command: Sequence[str], model: TrainedModel, facts: Mapping[str, object]) -> list[str]:
    """Build the header of every output of a run with a model."""
    from seqray.io.tables import describe_alphabet, provenance_lines

    engine = {"engine": model.engine} if model.engine else {}
    alphabet = describe_alphabet(model.alphabet)
    return provenance_lines(command, model.card.name, model.sha256, alphabet, {**facts, **engine})


def check_new_model(out: str, source: str) -> None:
    """Refuse a new model file that can't be written, before the model is loaded."""
    from seqray.modelfile.header import check_model_path

    check_model_path(out)
    if os.path.exists(out) and os.path.samefile(out, source):
        raise InputError("is the model and would be overwritten", where=out, remedy="name another output")


def truncation_fact(card: Card) -> dict[str, str]:
    """What is read of sequences that are too long, for the header; nothing where they are refused."""
    if card.truncate == "none":
        return {}
    return {"truncate": f"{card.truncate}: at most {card.window} bases or residues of a record are read"}


# --- The context that records are read in: as the command line says, or as the records look


def recognize(
    options: ModelOptions, model: TrainedModel, records: Iterable[SequenceRecord]
) -> tuple[TrainedModel, Iterable[SequenceRecord]]:
    """Set the context that the first records are of, unless the command line says what they are."""
    if options.context != AUTO or not model.card.model.contexts:
        return model, records
    from seqray.inference.origin import recognize_context

    return recognize_context(model, records)


def context_fact(options: ModelOptions, model: TrainedModel) -> dict[str, str]:
    """The context that records are read in, for the header; nothing for a model without contexts."""
    if not model.card.model.contexts:
        return {}
    how = "recognized by the first records" if options.context == AUTO else "as asked"
    return {"context": f"{model.context}, {how}" if model.context else "none"}


def recognized(options: ModelOptions, model: TrainedModel) -> list[str]:
    """What to tell the user of a context that was recognized; nothing if none was."""
    if options.context != AUTO or not model.context:
        return []
    from seqray.inference.origin import read_as

    return [read_as(model)]
