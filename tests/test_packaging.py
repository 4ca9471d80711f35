"""What lies in ``packaging/`` agrees with the package, and runs as far as it can without what it is made for.

Versions and dependencies are those of the package; every option exists, with the choices and defaults of the
real parser; the commands of Galaxy tools and Nextflow modules are rendered and run, and their own tests hold.
"""

import argparse
import fnmatch
import os
import re
import shlex
import subprocess
import tomllib
from pathlib import Path
from xml.etree import ElementTree

import jinja2
import pytest
import yaml

import galaxy_tool
import nextflow_module
from seqray.cli.main import main, parser_of
from seqray.core.version import __version__
from seqray.modelfile import header
from seqray.modelfile.header import read_card

ROOT = Path(__file__).resolve().parents[1]
PACKAGING = ROOT / "packaging"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
CONDA_NAMES = {"torch": "pytorch", "matplotlib": "matplotlib-base"}
TOOLS = sorted((PACKAGING / "galaxy").glob("seqray_*.xml"))
MODULES = sorted((PACKAGING / "nf-core/seqray").iterdir())


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def options(verb: str) -> dict[str, argparse.Action]:
    """Every option of a verb."""
    return {name: action for action in parser_of(verb)._actions for name in action.option_strings}


def run(script: str, folder: Path, commands: Path) -> None:
    path = os.pathsep.join([str(commands), os.environ.get("PATH", "")])
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=folder,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


def recipe() -> dict:
    """The conda recipe, rendered as conda-build does it."""
    template = jinja2.Environment(undefined=jinja2.StrictUndefined).from_string(
        read("packaging/bioconda/meta.yaml")
    )
    return yaml.safe_load(template.render(PYTHON="python", pin_subpackage=lambda name, max_pin: name))


# --- versions and dependencies ---------------------------------------------------------------------------


def test_every_file_names_the_version_of_the_package():
    citation = yaml.safe_load(read("CITATION.cff"))
    macros = ElementTree.fromstring(read("packaging/galaxy/macros.xml"))
    named = {
        "CITATION.cff": {citation["version"]},
        "bioconda": {recipe()["package"]["version"]},
        "galaxy": {macros.findtext("token[@name='@TOOL_VERSION@']")},
        "Dockerfile": set(
            re.findall(r'VERSION="(.+?)"|seqray:([\d.]+\d)', read("packaging/container/Dockerfile"))
        ),
        "seqray.def": set(
            re.findall(r"version ([\d.]+\d)|seqray-([\d.]+\d)-py3", read("packaging/container/seqray.def"))
        ),
    }
    for module in MODULES:
        named[f"{module.name}/main.nf"] = set(re.findall(r'"seqray:(.+?)"', (module / "main.nf").read_text()))
        named[f"{module.name}/environment.yml"] = {
            yaml.safe_load((module / "environment.yml").read_text())["dependencies"][0].partition("=")[2]
        }
        named[f"{module.name}/main.nf.test"] = set(
            re.findall(r"\['seqray'\] == '(.+?)'", (module / "tests/main.nf.test").read_text())
        )
    for environment in ROOT.glob("workflows/**/envs/seqray.yaml"):
        pins = re.findall(r"seqray ==([\d.]+)", environment.read_text(encoding="utf-8"))
        named[str(environment.relative_to(ROOT))] = set(pins)
    flat = {
        name: {word for part in found for word in ([part] if isinstance(part, str) else part) if word}
        for name, found in named.items()
    }
    assert flat == {name: {__version__} for name in named}


def test_the_conda_recipe_asks_for_what_the_package_asks_for():
    wanted = set()
    for requirement in PROJECT["dependencies"]:
        name, bound = re.fullmatch(r"([\w-]+)(.*)", requirement).groups()
        wanted.add(f"{CONDA_NAMES.get(name, name.lower())} {bound}")
    needs = recipe()["requirements"]
    optional = PROJECT["optional-dependencies"]["genes"]  # conda has no extras: the version, if it is there
    assert [line.replace(" ", "") for line in needs["run_constrained"]] == optional
    assert set(needs["run"]) == wanted | {f"python {PROJECT['requires-python']}"}
    build = tomllib.loads(read("pyproject.toml"))["build-system"]["requires"]
    assert {line.replace(" ", "") for line in needs["host"]} == {
        "pip",
        f"python{PROJECT['requires-python']}",
        *build,
    }
    entry = recipe()["build"]["entry_points"]
    assert entry == [f"{name} = {target}" for name, target in PROJECT["scripts"].items()]
    assert recipe()["about"]["license"] == PROJECT["license"]
    assert (PACKAGING / "bioconda" / recipe()["source"]["path"]).resolve() == ROOT


def test_images_install_the_tested_torch():
    tested = re.search(r"^TORCH \?= (\S+)$", read("Makefile"), flags=re.MULTILINE)[1]
    assert f'ARG TORCH="{tested}"' in read("packaging/container/Dockerfile")
    assert f'TORCH="{tested}"' in read("packaging/container/seqray.def")


def test_images_copy_what_is_there():
    docker = read("packaging/container/Dockerfile")
    copied = [
        name for line in re.findall(r"^COPY (?!--from)(.+) \S+$", docker, re.M) for name in line.split()
    ]
    ignored = read("packaging/container/Dockerfile.dockerignore").splitlines()
    assert copied
    for name in copied:
        assert (ROOT / name).exists()
        assert f"!{name}" in ignored  # all else is kept from the builder
    kept = {line[1:] for line in ignored if line.startswith("!")}
    assert kept == set(copied)
    readme, licence = PROJECT["readme"], PROJECT["license-files"]
    assert {readme, *licence, "pyproject.toml", "src"} <= set(copied)
    wheel, constraints = re.search(
        r"%files\n    (\S+) \S+\n    (\S+) \S+\n", read("packaging/container/seqray.def")
    ).groups()
    assert wheel == f"dist/seqray-{__version__}-py3-none-any.whl"
    assert (ROOT / constraints).exists()


def test_image_scripts_are_shell():
    definition = read("packaging/container/seqray.def")
    sections = dict(re.findall(r"^%(\w+)\n(.*?)(?=^%|\Z)", definition, flags=re.MULTILINE | re.DOTALL))
    assert set(sections) == {"labels", "files", "post", "environment", "test", "runscript", "help"}
    for name in ("post", "environment", "test", "runscript"):
        subprocess.run(["bash", "-n"], input=sections[name], text=True, check=True)
    joined = read("packaging/container/Dockerfile").replace("\\\n", " ")
    for line in re.findall(r"^RUN (.+)$", joined, flags=re.MULTILINE):
        subprocess.run(["bash", "-n"], input=line, text=True, check=True)


def test_citation_has_what_the_format_requires():
    citation = yaml.safe_load(read("CITATION.cff"))
    assert {"cff-version", "message", "title", "authors"} <= set(citation)
    assert citation["license"] == PROJECT["license"]
    assert {author["name"] for author in citation["authors"]} == {a["name"] for a in PROJECT["authors"]}


def test_the_sdist_takes_along_what_the_project_consists_of():
    sdist = tomllib.loads(read("pyproject.toml"))["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]
    assert {"packaging", "workflows", "docs", "CITATION.cff", "mkdocs.yml"} <= set(sdist)
    assert [name for name in sdist if not (ROOT / name).exists()] == []


# --- Galaxy ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", TOOLS, ids=lambda path: path.stem)
def test_galaxy_parameters_are_options_of_the_verb(path):
    tool = galaxy_tool.load(path)
    verb = path.stem.removeprefix("seqray_")
    known = options(verb)
    text = tool.findtext("command")
    used = set(re.findall(r"--[a-z][\w-]*", text))
    assert used <= set(known)
    for param in tool.findall("inputs//param[@argument]"):
        name = param.get("argument")
        if name == "SEQUENCES":
            continue
        action = known[name]
        assert name in used or param.get("truevalue") == name
        if name == "--model":
            assert {o.get("value") for o in param.findall("option")} <= set(header.available_models())
        elif param.get("type") == "select":
            assert [o.get("value") for o in param.findall("option")] == list(action.choices)
        if param.get("type") in ("integer", "float") and param.get("optional") != "true":
            # None: the kind of model decides.
            assert action.default is None or float(param.get("value")) == action.default
        if param.get("type") == "boolean":
            assert param.get("checked") == "false"
            assert action.default is False


def offered_models(*kinds: str) -> list[str]:
    """Shipped models that the tools of Galaxy offer: they read FASTA."""
    cards = {name: read_card(header.locate_model(name)) for name in header.available_models()}
    return [name for name, card in cards.items() if card.model.kind in kinds]


def test_galaxy_offers_every_shipped_model_that_fits():
    offered = {
        path.stem: {
            o.get("value")
            for param in galaxy_tool.load(path).findall("inputs//param[@argument='--model']")
            for o in param.findall("option")
        }
        for path in TOOLS
    }
    assert offered["seqray_predict"] == set(offered_models("sequence"))
    models = offered_models("sequence", "locator")
    sites = {name for name in models if read_card(header.locate_model(name)).site is not None}
    assert offered["seqray_scan"] == sites


@pytest.mark.parametrize("path", TOOLS, ids=lambda path: path.stem)
def test_the_help_of_galaxy_tells_of_every_shipped_model(path):
    text = galaxy_tool.load(path).findtext("help")
    rows = dict(
        re.findall(
            r"^([a-z0-9-]+) +(\S.*)$",
            text.partition("**Models**")[2].partition("Models do")[0],
            flags=re.MULTILINE,
        )
    )
    assert set(rows) - {"name"} == set(offered_models("sequence", "locator"))
    for name in offered_models("sequence", "locator"):
        assert ("for classification only" in rows[name]) == (
            read_card(header.locate_model(name)).site is None
        )


def test_the_try_of_the_wheel_keeps_to_what_every_unix_has():
    text = read("packaging/try_wheel.sh")
    assert "stat -c" not in text  # GNU alone
    assert text.count('"${offline[@]}"') == text.count('${offline[@]+"${offline[@]}"}')  # bash before 4.4


GALAXY_TESTS = [(path, n) for path in TOOLS for n in range(len(galaxy_tool.load(path).findall("tests/test")))]


@pytest.mark.parametrize(("path", "number"), GALAXY_TESTS, ids=[f"{p.stem}-{n}" for p, n in GALAXY_TESTS])
def test_galaxy_tests_hold(path, number, tmp_path, monkeypatch):
    tool = galaxy_tool.load(path)
    test = tool.findall("tests/test")[number]
    group = galaxy_tool.values(tool.find("inputs"), test, path.parent / "test-data")
    files = {"skipped": "skipped.dat"}
    command = galaxy_tool.command(tool, group, files)
    monkeypatch.chdir(tmp_path)
    assert main(shlex.split(command.replace("${GALAXY_SLOTS:-1}", "1"))[1:]) == 0
    made = galaxy_tool.outputs(tool, group)
    assert len(made) == int(test.get("expect_num_outputs"))
    places = {data.get("name"): data.get("from_work_dir") or files[data.get("name")] for data in made}
    assert all((tmp_path / place).exists() for place in places.values())
    for output in test.findall("output"):
        galaxy_tool.check(tmp_path / places[output.get("name")], output.find("assert_contents"))


def test_galaxy_test_data_are_the_example():
    for copy in (PACKAGING / "galaxy/test-data").iterdir():
        assert copy.read_bytes() == (ROOT / "data/example" / copy.name).read_bytes()


# --- Nextflow --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("section", ["script", "stub"])
@pytest.mark.parametrize("module", MODULES, ids=lambda path: path.name)
def test_nextflow_scripts_make_what_the_channels_take(seqray_forks, module, section, tmp_path):
    source = (module / "main.nf").read_text()
    data = re.search(r"data/example/[\w.]+", (module / "tests/main.nf.test").read_text())[0]
    (tmp_path / "input.fa").symlink_to(ROOT / data)
    variables = {
        "sequences": "input.fa",
        "model": "ecoli-promoter",
        "prefix": "sample",
        "annotation": "",
        "args": "--track sample.bw" if module.name == "scan" else "--prior 0.1",
        "task.cpus": "1",
        "task.process": "A:B",
    }
    script = nextflow_module.script(source, section, variables)
    run(script, tmp_path, seqray_forks.folder)
    made = {path.name for path in tmp_path.iterdir()} - {"input.fa"}
    taken = set()
    for pattern, optional in nextflow_module.outputs(source).values():
        found = set(fnmatch.filter(made, pattern))
        assert found or (optional and section == "stub")
        assert not found & taken  # no file comes out of two channels
        taken |= found
    assert taken == made
    assert yaml.safe_load((tmp_path / "versions.yml").read_text()) == {"A:B": {"seqray": __version__}}


@pytest.mark.parametrize("module", MODULES, ids=lambda path: path.name)
def test_nextflow_descriptions_name_the_channels(module):
    source = (module / "main.nf").read_text()
    about = yaml.safe_load((module / "meta.yml").read_text())
    assert about["name"] == f"seqray_{module.name}"
    assert f"process {about['name'].upper()} {{" in source
    channels = {name: pattern for name, (pattern, _) in nextflow_module.outputs(source).items()}
    described = {
        name: next(iter(entries[0][-1] if isinstance(entries[0], list) else entries[0]))
        for name, entries in about["output"].items()
    }
    assert described == channels
    words = re.findall(r"(?:path|val)\(?\s*(\w+)", source.split("input:")[1].split("output:")[0])
    assert words == [
        next(iter(one)) for entry in about["input"] for one in (entry if isinstance(entry, list) else [entry])
    ]
