"""The house stands: imports run downward only, and heavy or loud things stay in their rooms.

Every import counts, wherever it is written: at the top, inside a function, under ``TYPE_CHECKING`` (a name
used in an annotation is knowledge too) and as a literal handed to ``import_module``. The one exception is
by construction: `seqray.__init__` and ``cli/main.py`` hold tables of module names that are loaded on use.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "seqray"

# A file may import from a lower layer, or from a file listed above it in its own. docs/architecture.md
# shows the same list to readers; a test compares the two.
LAYERS: tuple[tuple[str, tuple[str, ...]], ...] = (
    (
        "ground",
        (
            "__init__.py",
            "errors.py",
            "stopping.py",
            "alphabet.py",
            "columns.py",
            "mapping.py",
            "modelconfig.py",
            "config.py",
        ),
    ),
    (
        "things",
        (
            "records.py",
            "results.py",
            "explanation_results.py",
            "evaluation_results.py",
            "alignment_results.py",
            "findings.py",
            "words.py",
            "shuffle.py",
            "card.py",
        ),
    ),
    (
        "doors",
        (
            "io/__init__.py",
            "io/files.py",
            "io/staging.py",
            "io/formats.py",
            "io/identifiers.py",
            "io/fasta.py",
            "io/genbank.py",
            "io/sequences.py",
            "io/aligned_text.py",
            "io/stockholm.py",
            "io/a3m.py",
            "io/phylip.py",
            "io/clustal.py",
            "io/alignments.py",
            "io/delimited.py",
            "io/tables.py",
            "io/labelled_alignments.py",
            "io/predictions.py",
            "io/evaluation.py",
            "io/audit.py",
            "io/labelled.py",
            "io/tracks.py",
            "io/annotation.py",
            "io/scores.py",
            "io/shards.py",
            "io/summaries.py",
            "io/explanations.py",
            "io/motifs.py",
            "tokens.py",
            "backbones/__init__.py",
            "backbones/packages.py",
            "backbones/directory.py",
            "backbones/tokenizer.py",
            "backbones/complete.py",
            "tokenization.py",
            "alignment_tokens.py",
            "alignment_rows.py",
            "covariation.py",
            "column_profiles.py",
            "io/alignment_explanations.py",
            "splits.py",
            "homology/__init__.py",
            "homology/alignment.py",
            "homology/seeds.py",
            "homology/words.py",
            "homology/sketch.py",
            "similarity.py",
            "homology/mmseqs.py",
            "homology/relations.py",
            "homology/proof.py",
            "homology/split.py",
            "metrics.py",
            "inputs.py",
            "alignment_inputs.py",
            "frames.py",
        ),
    ),
    (
        "tensors",
        (
            "devices.py",
            "batches.py",
            "models/__init__.py",
            "models/output.py",
            "models/kernels.py",
            "models/positions.py",
            "models/attention.py",
            "models/layers.py",
            "models/words.py",
            "models/helices.py",
            "models/axial.py",
            "models/sequence.py",
            "models/alignment.py",
            "models/backbone.py",
            "models/build.py",
            "backbones/encoder.py",
            "networks.py",
            "baseline.py",
        ),
    ),
    ("product", ("modelheader.py", "modelfile.py", "zoo.py")),
    (
        "use",
        (
            "markov.py",
            "signature.py",
            "domain.py",
            "isotonic.py",
            "conformal.py",
            "calibrate.py",
            "training/__init__.py",
            "training/augment.py",
            "training/data.py",
            "training/alignments.py",
            "training/encode.py",
            "training/figures.py",
            "pretrained.py",
            "training/module.py",
            "training/partition.py",
            "training/trainer.py",
            "training/workdir.py",
            "training/finish.py",
            "training/masking.py",
            "training/teacher.py",
            "training/fit.py",
            "training/pretrain.py",
            "prediction.py",
            "alignment_prediction.py",
            "regions.py",
            "negatives/__init__.py",
            "negatives/recipes.py",
            "negatives/derived.py",
            "negatives/genome.py",
            "negatives/occurrences.py",
            "negatives/sources.py",
            "negatives/draw.py",
            "negatives/groups.py",
            "negatives/settings.py",
            "negatives/cut.py",
            "negatives/make.py",
            "windows.py",
            "peaks.py",
            "sweep.py",
            "calls.py",
            "null.py",
            "scantypes.py",
            "scanwork.py",
            "scanning.py",
            "shards.py",
            "explanations/__init__.py",
            "explanations/seeds.py",
            "explanations/trace.py",
            "explanations/rollout.py",
            "explanations/axial_trace.py",
            "explanations/axial_rollout.py",
            "explanations/letters.py",
            "explanations/logodds.py",
            "explanations/gradients.py",
            "explanations/backbones.py",
            "explanations/mutagenesis.py",
            "explanations/stem.py",
            "explanations/methods.py",
            "explanations/compute.py",
            "explanations/significance.py",
            "explanations/faithfulness.py",
            "explanations/verdict.py",
            "explanations/heads.py",
            "explanations/run.py",
            "explanations/hiding.py",
            "explanations/alignment_methods.py",
            "explanations/alignments.py",
            "explanations/column_pairs.py",
            "explanations/places.py",
            "explanations/sample.py",
            "explanations/seqlets.py",
            "explanations/support.py",
            "explanations/consensus.py",
            "explanations/words.py",
            "explanations/mixture.py",
            "explanations/motifs.py",
            "evaluation/__init__.py",
            "evaluation/resampling.py",
            "evaluation/weighted.py",
            "evaluation/mcnemar.py",
            "evaluation/measure.py",
            "evaluation/floor.py",
            "evaluation/subsets.py",
            "evaluation/curves.py",
            "evaluation/score.py",
            "evaluation/run.py",
            "evaluation/telling.py",
            "recalibrate.py",
            "audit/__init__.py",
            "audit/data.py",
            "audit/shared.py",
            "audit/composition.py",
            "audit/copies.py",
            "audit/order.py",
            "audit/intervals.py",
            "audit/plans.py",
            "audit/rules.py",
            "audit/floor.py",
            "audit/relatives.py",
            "audit/lookup.py",
            "audit/leaks.py",
            "audit/shortcuts.py",
            "audit/cautions.py",
            "audit/verdicts.py",
            "audit/run.py",
            "onnxgraph.py",
            "export.py",
            "engines.py",
            "estimator.py",
            "api.py",
        ),
    ),
    (
        "telling",
        (
            "plots/__init__.py",
            "plots/style.py",
            "plots/letters.py",
            "plots/records.py",
            "plots/alignments.py",
            "report/__init__.py",
            "report/text.py",
            "report/document.py",
            "report/data.py",
            "report/levels.py",
            "report/picture.py",
            "report/glyphs.py",
            "report/logo.py",
            "report/lines.py",
            "report/axis.py",
            "report/tracks.py",
            "report/heatmap.py",
            "report/curves.py",
            "report/bars.py",
            "report/overview.py",
            "report/records.py",
            "report/page.py",
            "report/alignment_grid.py",
            "report/pair_map.py",
            "report/alignment_page.py",
            "report/evaluation_plots.py",
            "report/evaluation_tables.py",
            "report/evaluation_page.py",
            "report/summary_page.py",
            "report/audit_page.py",
        ),
    ),
    (
        "surface",
        (
            "cli/__init__.py",
            "cli/telling.py",
            "cli/options.py",
            "cli/labelled.py",
            "cli/alignments.py",
            "cli/audit.py",
            "cli/origin.py",
            "cli/predict.py",
            "cli/evaluate_data.py",
            "cli/evaluate_tables.py",
            "cli/evaluate_inputs.py",
            "cli/evaluate.py",
            "cli/calibrate.py",
            "cli/scan_outputs.py",
            "cli/scan_shards.py",
            "cli/scan.py",
            "cli/gather.py",
            "cli/summary.py",
            "cli/explain_outputs.py",
            "cli/explain_alignments.py",
            "cli/explain.py",
            "cli/negatives_inputs.py",
            "cli/negatives_outputs.py",
            "cli/negatives.py",
            "cli/split_outputs.py",
            "cli/split.py",
            "cli/train.py",
            "cli/pretrain.py",
            "cli/models.py",
            "cli/completion.py",
            "cli/export.py",
            "cli/main.py",
            "__main__.py",
        ),
    ),
)

LISTED = [file for _, files in LAYERS for file in files]

FORBIDDEN_IN = {  # folder -> what no file in it may import
    "models/": (
        "seqray.io",
        "seqray.records",
        "seqray.results",
        "seqray.tokens",
        "seqray.modelfile",
        "seqray.zoo",
        "seqray.training",
        "lightning",
        "pytorch_lightning",
        "pathlib",
        "os",
        "io",
    ),
    "io/": ("seqray.tokens", "seqray.batches", "seqray.models", "torch", "lightning"),
}
ONLY_IN = {  # package -> the only place that may import it
    "lightning": "training/",
    "pytorch_lightning": "training/",
    "matplotlib": "plots/",
    "transformers": "backbones/",
    "peft": "backbones/",
}
TORCH_STARTS_AT = 3
GROUND_PACKAGES = {"numpy", "yaml"}


def order_of(layers: tuple[tuple[str, tuple[str, ...]], ...] = LAYERS) -> dict[str, tuple[int, int]]:
    return {
        file: (layer, place) for layer, (_, files) in enumerate(layers) for place, file in enumerate(files)
    }


def source_files() -> list[str]:
    return sorted(path.relative_to(SOURCE).as_posix() for path in SOURCE.rglob("*.py"))


def module_name(file: str) -> str:
    """``io/files.py`` -> ``seqray.io.files``; a package's ``__init__.py`` -> the package."""
    parts = ["seqray", *file.removesuffix(".py").split("/")]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _resolved(node: ast.ImportFrom, file: str) -> str:
    if node.level == 0:
        return node.module or ""
    package = ["seqray", *file.split("/")[:-1]]
    return ".".join([*package[: len(package) - node.level + 1], *filter(None, [node.module])])


def imported_names(source: str, file: str) -> Iterator[tuple[str, int]]:
    """Every dotted name that a file imports, with its line; ``from a import b`` gives ``a.b``."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = _resolved(node, file)
            yield from ((f"{base}.{alias.name}", node.lineno) for alias in node.names)
        elif isinstance(node, ast.Call) and node.args:
            called = getattr(node.func, "id", getattr(node.func, "attr", ""))
            name = node.args[0]
            if called in {"import_module", "__import__"} and isinstance(name, ast.Constant):
                yield str(name.value), node.lineno


def within(name: str, package: str) -> bool:
    return name == package or name.startswith(package + ".")


def target_file(name: str, order: dict[str, tuple[int, int]]) -> str | None:
    """The listed file that a dotted name lives in: the longest module that is a prefix of it."""
    modules = {module_name(file): file for file in order}
    parts = name.split(".")
    prefixes = (".".join(parts[:n]) for n in range(len(parts), 0, -1))
    return next((modules[prefix] for prefix in prefixes if prefix in modules), None)


def layer_faults(source: str, file: str, order: dict[str, tuple[int, int]]) -> list[str]:
    """Imports that do not run downward."""
    faults = []
    for name, line in imported_names(source, file):
        target = target_file(name, order) if within(name, "seqray") else None
        if target is not None and order[target] >= order[file]:
            faults.append(f"{file}:{line} imports {name}, which is not below it")
    return faults


def room_faults(source: str, file: str, layer: int) -> list[str]:
    """Imports of packages that have no business in this file."""
    faults = []
    for name, line in imported_names(source, file):
        banned = [b for folder, all_ in FORBIDDEN_IN.items() if file.startswith(folder) for b in all_]
        banned += [package for package, home in ONLY_IN.items() if not file.startswith(home)]
        banned += ["torch"] if layer < TORCH_STARTS_AT else []
        faults += [f"{file}:{line} imports {name}" for b in banned if within(name, b)]
        top = name.split(".")[0]
        if layer == 0 and top not in sys.stdlib_module_names | GROUND_PACKAGES | {"seqray"}:
            faults.append(f"{file}:{line} imports {name}, and the ground takes numpy and yaml only")
    return faults


def call_faults(source: str, file: str) -> list[str]:
    """``print``, exits and asserts (but on a type) outside cli/; files opened inside models/."""
    faults = []
    for node in ast.walk(ast.parse(source)):
        word = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
        if isinstance(node, ast.Assert) and not ast.unparse(node.test).startswith("isinstance("):
            word = "assert"
        word = node.exc.id if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Name) else word
        loud = {"print", "sys.exit", "exit", "quit", "os._exit", "SystemExit", "assert"}
        banned = (set() if file.startswith("cli/") or file == "__main__.py" else loud) | (
            {"open"} if file.startswith("models/") else set()
        )
        if word in banned:
            faults.append(f"{file}:{getattr(node, 'lineno', 0)} uses {word}")
    return faults


def read(file: str) -> str:
    return (SOURCE / file).read_text(encoding="utf-8")


# --- the package -----------------------------------------------------------------------------------------


def test_every_file_is_listed_once_and_every_listed_file_exists():
    assert sorted(LISTED) == source_files()


@pytest.mark.parametrize("file", LISTED)
def test_imports_run_downward(file):
    assert layer_faults(read(file), file, order_of()) == []


@pytest.mark.parametrize("file", LISTED)
def test_packages_stay_in_their_rooms(file):
    assert room_faults(read(file), file, order_of()[file][0]) == []


@pytest.mark.parametrize("file", LISTED)
def test_only_the_surface_speaks_or_ends_the_program(file):
    assert call_faults(read(file), file) == []


def documented_layers(text: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Read the table of layers out of docs/architecture.md: ``| 2 | doors | `io/files.py` ... |`` rows."""
    rows = re.findall(r"^\| (\d+) \| (\w+) \| (.+?) \|", text, flags=re.MULTILINE)
    assert [int(number) for number, _, _ in rows] == list(range(len(rows)))
    return tuple((name, tuple(re.findall(r"`([^`]+\.py)`", files))) for _, name, files in rows)


def test_docs_show_the_same_layers():
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    assert documented_layers(text) == LAYERS


# --- what is loaded when ---------------------------------------------------------------------------------


def loaded_by(statement: str) -> set[str]:
    """Top-level packages in ``sys.modules`` after a statement, in a fresh interpreter."""
    program = f"import sys\ntry:\n    {statement}\nexcept SystemExit:\n    pass\n"
    program += "print('LOADED', *sorted({m.split('.')[0] for m in sys.modules}))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(done.stdout.rpartition("LOADED ")[2].split())


HEAVY = {"torch", "lightning", "pandas", "sklearn", "scipy", "pyarrow", "Bio", "pysam", "matplotlib"}


def test_importing_seqray_is_light():
    assert loaded_by("import seqray") & (HEAVY | {"numpy"}) == set()


@pytest.mark.parametrize("argument", ["--help", "--version"])
def test_help_and_version_are_light(argument):
    statement = f"from seqray.cli.main import main; main([{argument!r}])"
    assert loaded_by(statement) & (HEAVY | {"numpy", "yaml"}) == set()


def test_every_public_name_loads():
    seqray = import_module("seqray")
    assert all(getattr(seqray, name) is not None for name in seqray.__all__)


# --- the checker itself: sources that are wrong on purpose ------------------------------------------------

SMALL = (("low", ("a.py", "b.py")), ("mid", ("io/__init__.py", "io/x.py")), ("high", ("c.py",)))


@pytest.mark.parametrize(
    ("file", "source"),
    [
        ("a.py", "import seqray.c"),
        ("a.py", "from seqray import c"),
        ("a.py", "from seqray.c import thing"),
        ("a.py", "from . import c"),
        ("a.py", "from .c import thing"),
        ("io/x.py", "from ..c import thing"),
        ("a.py", "def f():\n    from seqray.b import thing"),
        ("a.py", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from seqray.c import T"),
        ("a.py", "from importlib import import_module\nimport_module('seqray.c')"),
        ("io/__init__.py", "from seqray.io import x"),
        ("b.py", "import seqray.b"),
    ],
)
def test_an_upward_import_is_found(file, source):
    assert len(layer_faults(source, file, order_of(SMALL))) == 1


@pytest.mark.parametrize(
    ("file", "source"),
    [
        ("b.py", "from seqray.a import thing"),
        ("c.py", "from seqray.io.x import thing\nimport seqray.a, json"),
        ("io/x.py", "from ..a import thing\nfrom seqray import b"),
        ("a.py", "'import seqray.c'  # text is no import"),
    ],
)
def test_a_downward_import_passes(file, source):
    assert layer_faults(source, file, order_of(SMALL)) == []


@pytest.mark.parametrize(
    ("file", "layer", "source"),
    [
        ("models/build.py", 3, "from pathlib import Path"),
        ("models/build.py", 3, "from seqray.records import SequenceRecord"),
        ("models/build.py", 3, "import lightning.pytorch as L"),
        ("io/fasta.py", 2, "from seqray.tokens import PAD"),
        ("io/fasta.py", 2, "def f():\n    import torch"),
        ("prediction.py", 5, "import lightning"),
        ("scanning.py", 5, "from matplotlib import pyplot"),
        ("metrics.py", 2, "from torch import nn"),
        ("config.py", 0, "import pandas"),
    ],
)
def test_a_package_in_the_wrong_room_is_found(file, layer, source):
    assert room_faults(source, file, layer) != []


@pytest.mark.parametrize(
    ("file", "source"),
    [
        ("scanning.py", "print('found')"),
        ("io/files.py", "import sys\nsys.exit(2)"),
        ("config.py", "raise SystemExit(2)"),
        ("prediction.py", "def f(x):\n    assert x"),
        ("models/build.py", "open('weights')"),
    ],
)
def test_a_loud_call_is_found(file, source):
    assert len(call_faults(source, file)) == 1


@pytest.mark.parametrize(
    ("file", "source"),
    [
        ("cli/scan.py", "print('found')\nraise SystemExit(1)"),
        ("prediction.py", "assert isinstance(x, int)"),
        ("io/files.py", "open('file')"),
    ],
)
def test_what_is_allowed_passes(file, source):
    assert call_faults(source, file) == []


def test_the_table_of_the_docs_is_read():
    text = (
        "| layer | name | files |\n|---|---|---|\n| 0 | low | `a.py`, `b/c.py` | x |\n| 1 | high | `d.py` |\n"
    )
    assert documented_layers(text) == (("low", ("a.py", "b/c.py")), ("high", ("d.py",)))
