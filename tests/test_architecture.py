"""Packages are the layers: which package may import which, heavy things in their places, ceilings of lines.

Every import counts, wherever it is written: at the top, inside a function, under ``TYPE_CHECKING``, and as a
literal handed to ``import_module``. Files import files. Only ``seqray`` itself offers names, lazily; those
count as imports of the files that define them.
"""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import astuple
from graphlib import CycleError, TopologicalSorter
from importlib import import_module
from pathlib import Path

import pytest

import house
import ways

SOURCE = Path(__file__).parents[1] / "src" / "seqray"

ARROWS = {  # package -> the packages that it may import; there is no other table
    "core": "",
    "io": "core",
    "homology": "core",
    "metrics": "core",
    "models": "core",
    "datasets": "core io homology metrics",
    "genome": "core io",
    "calibration": "core homology metrics",
    "modelfile": "core io models",
    "inference": "core io models modelfile calibration",
    "scanning": "core io genome modelfile calibration inference",
    "explanations": "core io metrics models modelfile inference",
    "evaluation": "core homology metrics calibration",
    "training": "core io genome homology metrics models modelfile calibration inference kinds",
    "report": "core io genome metrics evaluation explanations",
    "kinds": "core io genome modelfile inference explanations",
    "api": "core io genome homology datasets models modelfile calibration inference scanning explanations "
    "evaluation training kinds",
    "cli": "core io genome homology metrics models datasets calibration modelfile inference scanning "
    "explanations evaluation training report kinds",
}
CEILINGS = {  # package -> most lines; to add, first make room: raising one is a decision
    "core": 4060,
    "io": 4360,
    "homology": 1280,
    "metrics": 640,
    "models": 2810,
    "datasets": 1970,
    "genome": 1010,
    "calibration": 1260,
    "modelfile": 1440,
    "inference": 2290,
    "scanning": 2450,
    "explanations": 3420,
    "evaluation": 680,
    "training": 5450,
    "report": 3170,
    "kinds": 630,
    "api": 1670,
    "cli": 6250,
}
MOST_LINES, MOST_FILES, MOST_FUNCTIONS, MOST_THAT_ASK_FOR_THE_KIND = 44800, 178, 2660, 5
WAYS = {  # run of benchmarks/ways.py -> most files, functions, frames to the network, opens of the input
    "predict": (35, 360, 13, 1),
    "scan with a page": (58, 600, 15, 1),
    "train": (47, 430, 15, 1),
    "explain of an alignment": (54, 510, 13, 1),
    "audit": (28, 260, 0, 1),
}
ONLY_IN = {  # third party -> the only places that may import it
    "torch": ("models", "modelfile", "inference", "explanations", "training", "api", "cli"),
    "lightning": ("training",),
    "matplotlib": ("report/plots.py",),
    "transformers": ("modelfile/backbones.py",),
    "peft": ("modelfile/backbones.py",),
    "pyrodigal": ("genome",),
    "pathlib": tuple(package for package in ARROWS if package != "models"),
}
CORE_PACKAGES = {"numpy", "yaml", "seqray"}


class Sources:
    """The files of the package ``seqray`` in a folder, and what each of them imports."""

    def __init__(self, root: Path) -> None:
        self.root = root
        places = {path: path.relative_to(root.parent).with_suffix("") for path in sorted(root.rglob("*.py"))}
        names = {path: ".".join(["seqray", *place.parts[1:]]) for path, place in places.items()}
        self.files = {name.removesuffix(".__init__"): path for path, name in names.items()}
        stub = ast.parse((root / "__init__.pyi").read_text())
        nodes = [node for node in stub.body if isinstance(node, ast.ImportFrom)]
        self.offered = {a.name: f"seqray.{n.module or a.name}" for n in nodes for a in n.names}

    def is_package(self, module: str) -> bool:
        return self.files[module].name == "__init__.py"

    def names(self, module: str) -> Iterator[tuple[str, int]]:
        """Every dotted name that a file imports, with its line; ``from a import b`` gives ``a.b``."""
        package = module if self.is_package(module) else module.rpartition(".")[0]
        for node in ast.walk(ast.parse(self.files[module].read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                yield from ((alias.name, node.lineno) for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                up = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
                base = ".".join([*up, *filter(None, [node.module])])
                yield from ((f"{base}.{alias.name}", node.lineno) for alias in node.names)
            elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
                called = getattr(node.func, "id", getattr(node.func, "attr", ""))
                if called in {"import_module", "__import__"}:
                    yield str(node.args[0].value), node.lineno

    def door(self, name: str) -> str:
        """The module that an import names: the longest known one that begins a dotted name, or ""."""
        while name and name not in self.files:
            name = name.rpartition(".")[0]
        return name

    def imports(self, module: str) -> Iterator[tuple[str, int]]:
        """The files of seqray that a file imports, also by a name that ``seqray`` offers, and the line."""
        for name, line in self.names(module):
            if door := self.door(name):
                offered = self.offered.get(name.partition(".")[2], "") if door == "seqray" else ""
                yield self.door(offered) or door, line


def layer(module: str) -> str:
    """``seqray.io.tables`` -> ``io``; seqray itself and its ``__main__`` have none."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 and parts[1] != "__main__" else ""


def arrow_faults(sources: Sources) -> list[str]:
    """Imports between packages that the graph doesn't have."""
    return [
        f"{module}:{line} imports {home}: {layer(module)} may not import {layer(home)}"
        for module in sources.files
        if layer(module)
        for home, line in sources.imports(module)
        if layer(home) not in (layer(module), *ARROWS.get(layer(module), "").split())
    ]


def door_faults(sources: Sources) -> list[str]:
    """Names taken from a folder instead of the file that defines them; only ``seqray`` offers names."""
    faults = [
        f"{module}:{line} imports {name} from a folder"
        for module in sources.files
        for name, line in sources.names(module)
        if (door := sources.door(name)) and sources.is_package(door) and door != "seqray" and door != name
    ]
    stubs = sources.root.rglob("*.pyi")
    return faults + [f"{stub} is a stub" for stub in stubs if stub.parent != sources.root]


def cycle(sources: Sources) -> list[str]:
    """Files that import each other in a circle; empty where none do."""
    graph = {m: {home for home, _ in sources.imports(m) if home != m} for m in sources.files}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return error.args[1]
    return []


def place_faults(sources: Sources) -> list[str]:
    """Third-party packages outside the places that may import them."""
    faults = []
    for module, path in sources.files.items():
        place = path.relative_to(sources.root).as_posix()
        for name, line in sources.names(module):
            top = name.split(".")[0]
            homes = ONLY_IN.get(top.removeprefix("pytorch_"))
            allowed = homes is None or any(place.startswith(home) for home in homes)
            if place.startswith("core/"):
                allowed &= top in sys.stdlib_module_names | CORE_PACKAGES
            faults += [] if allowed else [f"{place}:{line} imports {name}"]
    return faults


def call_faults(sources: Sources) -> list[str]:
    """``print``, exits and asserts (but on a type) outside cli/; files opened inside models/."""
    faults = []
    for module, path in sources.files.items():
        banned = set() if layer(module) in ("cli", "") else {"print", "sys.exit", "exit", "quit", "os._exit"}
        banned |= {"open"} if layer(module) == "models" else set()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            word = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
            if isinstance(node, ast.Assert) and not ast.unparse(node.test).startswith("isinstance("):
                word = "assert"
            if isinstance(node, ast.Raise) and "SystemExit" in ast.unparse(node):
                word = "SystemExit"
            if word in banned or (banned and word in {"assert", "SystemExit"}):
                faults.append(f"{module}:{getattr(node, 'lineno', 0)} uses {word}")
    return faults


def offer_faults(sources: Sources) -> list[str]:
    """Names in the stub that their file doesn't define, that are private, or that a file has, too."""
    faults = []
    for name, module in sources.offered.items():
        if name.startswith("_") and name != "__version__":
            faults.append(f"{name} is offered, which is private")
        if (sources.root / f"{name}.py").exists() or (sources.root / name).is_dir():
            faults.append(f"{name} is offered, the name of a file")
        if not hasattr(import_module(module), name):
            faults.append(f"{name} is offered, which {module} doesn't have")
    return faults


CHECKS = (arrow_faults, door_faults, cycle, place_faults, call_faults, offer_faults)


@pytest.mark.parametrize("check", CHECKS)
def test_the_package_keeps_its_architecture(check):
    assert check(Sources(SOURCE)) == []


def test_the_graph_names_every_package_and_seqray_itself_is_small():
    assert {path.parent.name for path in SOURCE.glob("*/__init__.py")} == set(ARROWS)
    assert len(list(SOURCE.glob("*.py"))) <= 6


def test_the_house_keeps_below_its_ceilings():
    figures = house.measure()
    lines = {package: figures[f"lines in {package}"] for package in ARROWS}
    assert {package: n for package, n in lines.items() if n > CEILINGS[package]} == {}
    assert figures["lines"] <= MOST_LINES
    assert figures["files"] <= MOST_FILES
    assert figures["functions"] <= MOST_FUNCTIONS
    assert figures["files that ask for the kind"] <= MOST_THAT_ASK_FOR_THE_KIND


@pytest.mark.parametrize("run", WAYS)
def test_a_run_passes_no_more_than_it_may(run):
    way = ways.measure(run)
    assert all(map(int.__le__, astuple(way), WAYS[run])), way


def test_the_documentation_shows_the_same_graph():
    text = (SOURCE.parents[1] / "docs" / "architecture.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)/` \| .+ \| (.+?) \|$", text, flags=re.MULTILINE)
    assert {name: set(re.findall(r"\w+", below)) for name, below in rows} == {
        package: set(below.split()) for package, below in ARROWS.items()
    }


def test_the_graph_between_packages_has_no_circle():
    assert list(
        TopologicalSorter({package: below.split() for package, below in ARROWS.items()}).static_order()
    )


# --- what is loaded when ---------------------------------------------------------------------------------


def loaded_by(statement: str) -> set[str]:
    """Top-level packages in ``sys.modules`` after a statement, in a fresh interpreter."""
    program = f"import sys\ntry:\n    {statement}\nexcept SystemExit:\n    pass\n"
    program += "print('LOADED', *sorted({m.split('.')[0] for m in sys.modules}))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(done.stdout.rpartition("LOADED ")[2].split())


HEAVY = {"torch", "lightning", "pandas", "sklearn", "scipy", "pyarrow", "Bio", "pysam", "matplotlib", "numpy"}
HEAVY |= {"pyrodigal", "yaml"}


def test_importing_the_packages_loads_nothing_heavy():
    assert loaded_by("import " + ", ".join(["seqray", *(f"seqray.{one}" for one in ARROWS)])) & HEAVY == set()


@pytest.mark.parametrize(
    ("asked", "allowed"),
    [
        ("['--help'], ['--version']", set()),
        ("['predict', '--help'], ['scan', '--help']", {"numpy"}),
        ("*([verb, '--help'] for verb in VERBS),", {"numpy", "yaml"}),
    ],
)
def test_help_and_version_are_light(asked, allowed):
    program = f"from seqray.cli.main import VERBS, main; assert not any(map(main, ({asked})))"
    assert loaded_by(program) & HEAVY <= allowed


def test_every_public_name_loads():
    seqray = import_module("seqray")
    assert all(getattr(seqray, name) is not None for name in seqray.__all__)


# --- the checks themselves: sources that are wrong on purpose ---------------------------------------------


@pytest.fixture
def small(tmp_path):
    """A package in which everything is in order; ``small(file=source)`` replaces the source of a file."""
    files = {
        "__init__.py": "",
        "__init__.pyi": "from .modelfile.zoo import load_model as load_model",
        "core/__init__.py": "",
        "core/errors.py": "class InputError(Exception): ...",
        "core/results/__init__.py": "",
        "core/results/prediction.py": "from seqray.core.errors import InputError",
        "models/__init__.py": "",
        "models/layers.py": "import torch\nfrom seqray.core.errors import InputError",
        "modelfile/__init__.py": "",
        "modelfile/zoo.py": "def load_model(): ...\n'import seqray.cli  # text is no import'",
        "cli/__init__.py": "",
        "cli/scan.py": "print('found')\nraise SystemExit(1)",
    }

    def write(**changed: str) -> Sources:
        for name, source in (files | {f"{k.replace('__', '/')}.py": v for k, v in changed.items()}).items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(source)
        return Sources(tmp_path)

    return write


def test_nothing_is_found_where_nothing_is_wrong(small):
    assert [check(small()) for check in CHECKS[:-1]] == [[]] * 5


@pytest.mark.parametrize(
    ("check", "file", "source"),
    [
        (arrow_faults, "core__errors", "from seqray import load_model"),
        (arrow_faults, "core__errors", "import seqray.modelfile.zoo"),
        (arrow_faults, "core__errors", "from ..modelfile.zoo import load_model"),
        (arrow_faults, "core__errors", "def f():\n    from seqray.modelfile import load_model"),
        (arrow_faults, "core__errors", "if TYPE_CHECKING:\n    from seqray.models.layers import Layer"),
        (arrow_faults, "core__errors", "import_module('seqray.cli.scan')"),
        (arrow_faults, "models__layers", "from seqray.modelfile import zoo"),
        (arrow_faults, "modelfile__zoo", "from seqray.cli.scan import main"),
        (door_faults, "models__layers", "from seqray.core import InputError"),
        (door_faults, "cli__scan", "from seqray.modelfile import load_model"),
        (cycle, "core__errors", "from seqray.core.results.prediction import Prediction"),
        (place_faults, "core__errors", "import pandas"),
        (place_faults, "core__errors", "def f():\n    import torch"),
        (place_faults, "models__layers", "from pathlib import Path"),
        (place_faults, "modelfile__zoo", "import lightning.pytorch as L"),
        (place_faults, "modelfile__zoo", "from matplotlib import pyplot"),
        (call_faults, "core__errors", "print('found')"),
        (call_faults, "core__errors", "import sys\nsys.exit(2)"),
        (call_faults, "modelfile__zoo", "raise SystemExit(2)"),
        (call_faults, "modelfile__zoo", "def f(x):\n    assert x"),
        (call_faults, "models__layers", "open('weights')"),
    ],
)
def test_what_is_wrong_is_found(small, check, file, source):
    assert check(small(**{file: source})) != []
