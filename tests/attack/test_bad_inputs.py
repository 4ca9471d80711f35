"""Every argument of every verb with every kind of bad value: one line, status 2, and nothing left."""

import os
import resource
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from attack.arguments import arguments
from attack.cases import GOOD, WORKING, Case, cases
from seqray.cli.main import VERBS, main
from seqray.training import members as member
from tables import write

FOLDERS = ("", ".tsv", ".html", ".json", "_mqc.json", ".plus.bw", ".png", ".meme", ".yaml", ".onnx")
FOLDERS += (".safetensors",)


@pytest.fixture(scope="module")
def limited() -> Iterator[None]:
    """A limit of memory, for what reads an endless file without an end."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + (4 << 30), before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


@pytest.fixture(scope="module")
def place(limited, attack_files, tmp_path_factory) -> Iterator[Path]:
    """A folder of good files and of folders, which is the working folder; nothing is trained."""
    folder = tmp_path_factory.mktemp("bad-inputs")
    for name, data in attack_files.items():
        write(folder / name, data)
    for suffix in FOLDERS:
        (folder / f"folder{suffix}").mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setattr(member, "run_fit", _stop)
        yield folder


def _stop(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


def contents(folder: Path) -> dict[str, tuple[int, int]]:
    return {entry.name: (entry.stat().st_mtime_ns, entry.stat().st_size) for entry in os.scandir(folder)}


CASES = list(cases(str.encode))  # their names do not depend on what files hold
ALL = [
    case.name if case.is_quick else pytest.param(case.name, marks=pytest.mark.long, id=case.name)
    for case in CASES
]


@pytest.fixture(scope="module")
def by_name(attack_files) -> dict[str, Case]:
    return {case.name: case for case in cases(attack_files.__getitem__)}


@contextmanager
def made(case: Case) -> Iterator[None]:
    """Make the file of a case, or the link that leads an output to an input."""
    path = Path(os.fsdecode(os.fsencode(case.target)))
    if case.content is not None:
        path.write_bytes(case.content)
    elif case.kind == "an input":
        path.symlink_to(case.source)
    try:
        yield
    finally:
        if case.content is not None or case.kind == "an input":
            path.unlink()


@pytest.mark.parametrize("name", ALL)
def test_a_bad_value_is_refused_in_a_line(place, by_name, name, capfd, tally):
    case = by_name[name]
    before = contents(place)
    with made(case):
        status = main(case.words)
    printed, said = capfd.readouterr()
    assert status == 2, said
    assert printed == "" or case.argument.verb == "models verify"  # a line for each model
    assert said.startswith("seqray: error: ")
    assert said.count("\n") == 1
    assert said[:-1].isprintable()
    assert case.is_named_in(said), said
    assert contents(place) == before
    tally(f"bad values: {case.argument.takes}", False)


def test_every_argument_of_every_verb_has_its_cases():
    """It fails for a new option: say in `arguments` what it takes."""
    unknown = [str(argument) for argument in arguments() if not argument.takes]
    assert unknown == []
    assert {str(argument) for argument in arguments()} == {str(case.argument) for case in CASES}
    assert len({case.name for case in CASES}) == len(CASES)
    assert sum(case.is_quick for case in CASES) > 600


def test_every_verb_has_a_command_that_works():
    assert {argument.verb for argument in arguments()} <= set(WORKING)


def assert_works(place: Path, words: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    """Run a command that works, and remove what it makes; training is stopped."""
    before = contents(place)
    assert main(words) in (0, 130), capfd.readouterr().err
    for new in contents(place).keys() - before.keys():
        shutil.rmtree(place / new) if (place / new).is_dir() else (place / new).unlink()


@pytest.mark.parametrize("name", [name for name in WORKING if name in VERBS])
def test_a_verb_works_without_a_bad_value(place, name, capfd):
    assert_works(place, [name, *WORKING[name].split()], capfd)


# Good files where a role has several kinds.
OWN = {
    "prefilter input": "contig.fa",
    "train --genome": "contig.fa",
    "train --sites": "contig.tsv",
    "train --alignment-labels": "alignments.tsv",
    "evaluate --alignment-labels": "alignments.tsv",
    "pretrain input": "genome.fa",
}
# These need more than one good file: examples of all classes in all parts, a model of another training.
NEED_MORE = {
    f"train --{name}" for name in ("validation", "test", "test-class", "like", "fold", "alignment-labels")
}
MISSING = [case for case in CASES if case.kind == "missing" and str(case.argument) not in NEED_MORE]
FILES = [case for case in MISSING if "@" in WORKING.get(str(case.argument), "")]


@pytest.mark.long
@pytest.mark.parametrize("case", FILES, ids=str)
def test_it_is_the_bad_file_that_is_refused(place, case, capfd):
    """With a good one in its place the command works."""
    name = OWN.get(str(case.argument), GOOD[case.argument.takes])
    assert_works(place, replace(case, value=name).words, capfd)
