"""A user who may write into one folder only, and has no home: every verb works, and says no word of it."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
# Seen by every process of Python, also where the tests run as root: whatever is written elsewhere is refused.
GUARD = """
import os, sys

WRITES = {"os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.symlink", "os.link", "os.chmod"}
PLACES = tuple(os.environ["WRITABLE"].split(":"))


def refuse(event, arguments):
    if event == "open":
        path, mode, flags = arguments
        if not flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
            return
    elif event in WRITES:
        path = arguments[0]
    else:
        return
    if isinstance(path, (str, bytes, os.PathLike)):
        place = os.path.realpath(os.fsdecode(path))
        of_open_folder = event != "open" and arguments[-1] != -1  # which was checked when it was made
        if not of_open_folder and not place.startswith(PLACES):
            raise PermissionError(13, "Permission denied", place)


sys.addaudithook(refuse)
"""
EXAMPLE = ROOT / "data" / "example"
NETWORK = ("model.d_model=8", "model.heads=2", "model.layers=1", "model.d_ff=8", "trainer.max_epochs=1")
VERBS = (
    "models",
    f"predict {EXAMPLE}/promoters.fa -m ecoli-promoter --out out/p.tsv",
    f"scan {EXAMPLE}/regions.fa -m ecoli-promoter --null-mb 0 --out out/s.tsv --html out/s.html",
    f"explain {EXAMPLE}/promoters.fa -m ecoli-promoter --method rollout --no-check "
    "--plot out/e.svg --out out/e.tsv",
    "train --train out/t.tsv --members 1 --threads 1 --work-dir out/work --out out/m.safetensors "
    + " ".join(f"--set {setting}" for setting in NETWORK),
)
PROGRAM = """
import sys
from seqray.cli.main import main
for words in sys.argv[1:]:
    assert main(words.split()) == 0, words
"""


@pytest.fixture
def place(tmp_path):
    folder = tmp_path
    for name in ("out", "tmp", "guard"):
        (folder / name).mkdir()
    (folder / "guard" / "sitecustomize.py").write_text(GUARD)
    (folder / "file").touch()
    rows = np.random.default_rng(0).choice(list("ACGT"), (40, 24))
    table = "\n".join(f"{''.join(row)}\t{('no', 'yes')[i % 2]}" for i, row in enumerate(rows))
    (folder / "out" / "t.tsv").write_text(f"sequence\tlabel\n{table}\n")
    return folder


def test_a_user_without_a_home_writes_only_what_was_asked_for(place):
    variables = {"PATH": os.environ["PATH"], "OMP_NUM_THREADS": "1", "PYTHONPATH": f"{place}/guard"}
    variables |= {"WRITABLE": f"{place}/out:{place}/tmp:/dev/", "TMPDIR": f"{place}/tmp"}
    variables["HOME"] = f"{place}/file/home"  # where no folder can be made, not even by root
    command = [sys.executable, "-c", PROGRAM, *VERBS]
    done = subprocess.run(command, cwd=place, env=variables, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    assert not [word for word in ("atplotlib", "Errno", "Traceback") if word in done.stderr], done.stderr
    assert not [path for path in (place / "tmp").rglob("*") if path.is_file()]
    asked = [Path(word).name for words in VERBS for word in words.split() if word.startswith("out/")]
    assert {*asked} <= {path.name for path in (place / "out").iterdir()}
