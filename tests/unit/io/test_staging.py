"""Outputs of one run appear together, or not at all."""

import errno
import gzip
import os
import subprocess
import sys

import pytest

from seqray.core.errors import InputError
from seqray.io.files import Staging, hidden_folder, open_output, temporary_folder


def write(path, text):
    with open_output(path) as handle:
        handle.write(text)


def test_files_appear_at_the_end_and_nothing_else_stays(tmp_path):
    (tmp_path / "other").mkdir()
    one, two = tmp_path / "a.tsv", tmp_path / "other" / "b.bed"
    with Staging() as staging:
        write(staging.path(one), b"1")
        write(staging.path(two), b"2")
        assert not one.exists()
        assert not two.exists()
    assert (one.read_bytes(), two.read_bytes()) == (b"1", b"2")
    assert sorted(p.name for p in tmp_path.rglob("*")) == ["a.tsv", "b.bed", "other"]


def test_a_link_into_another_folder_is_followed_and_its_name_decides_on_the_format(tmp_path):
    (tmp_path / "store").mkdir()
    real, link = tmp_path / "store" / "1f2e", tmp_path / "x.tsv.gz"
    link.symlink_to(real)
    with Staging() as staging:
        write(staging.path(link), b"1")
    assert link.is_symlink()
    assert gzip.decompress(real.read_bytes()) == b"1"
    assert names(tmp_path / "store") == ["1f2e"]


@pytest.mark.parametrize("kind", ["hidden", "temporary"])
def test_a_fork_that_leaves_the_block_takes_no_folder_from_its_parent(tmp_path, kind):
    block = temporary_folder() if kind == "temporary" else hidden_folder(tmp_path / "x", "x")
    folder = block.__enter__()
    child = os.fork()
    if not child:
        block.__exit__(None, None, None)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert folder.is_dir()
    block.__exit__(None, None, None)
    assert not folder.exists()


def names(folder):
    return sorted(path.name for path in folder.iterdir())


ENDED = """
import signal, sys
from pathlib import Path
import seqray.io.files as module
from seqray.core.errors import Terminated, terminate
from seqray.io.files import open_output

def publish_and_end(working, target, where, publish=module.publish):
    publish(working, target, where)
    signal.raise_signal(signal.SIGTERM)

signal.signal(signal.SIGTERM, terminate)
try:
    with module.Staging() as staging:
        for path in sys.argv[1:]:
            with open_output(staging.path(path)) as handle:
                handle.write(b"1")
        module.publish = publish_and_end
except Terminated:
    sys.exit(7)
"""


def test_a_signal_between_two_files_waits_for_both(tmp_path):
    """In a process of its own, as all tests of signals, for runners of tests hear them, too."""
    outputs = [str(tmp_path / name) for name in ("a.tsv", "b.tsv")]
    done = subprocess.run(
        [sys.executable, "-c", ENDED, *outputs], capture_output=True, text=True, check=False
    )
    assert done.returncode == 7, done.stderr
    assert names(tmp_path) == ["a.tsv", "b.tsv"]


KILLED = """
import os, signal, sys
from pathlib import Path
from seqray.io.files import Staging, open_output
with Staging() as staging:
    for path in sys.argv[1:]:
        with open_output(staging.path(path)) as handle:
            handle.write(b"half")
    with open_output(sys.argv[1]) as handle:
        os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_a_killed_run_left_goes_with_the_next_run_of_the_same_outputs(tmp_path):
    outputs = [tmp_path / "a.tsv", tmp_path / "b.tsv"]
    subprocess.run([sys.executable, "-c", KILLED, *map(str, outputs)], check=False)
    assert [name[:8] for name in names(tmp_path)] == [".seqray-"] * 3
    for path in outputs:
        with Staging() as staging:
            write(staging.path(path), b"whole")
            write(path, b"other")
    assert names(tmp_path) == ["a.tsv", "b.tsv"]
    assert [path.read_bytes() for path in outputs] == [b"whole"] * 2


def test_two_runs_at_once_dont_touch_what_is_the_others(tmp_path):
    with Staging() as first:
        write(first.path(tmp_path / "a.tsv"), b"1")
        with Staging() as second:
            write(second.path(tmp_path / "a.tsv"), b"2")
        assert (tmp_path / "a.tsv").read_bytes() == b"2"
    assert (tmp_path / "a.tsv").read_bytes() == b"1"
    assert names(tmp_path) == ["a.tsv"]


def test_a_link_stays_a_link_and_keeps_the_mode(tmp_path):
    target, link = tmp_path / "real.tsv", tmp_path / "link.tsv"
    target.write_bytes(b"old")
    target.chmod(0o640)
    link.symlink_to(target)
    with Staging() as staging:
        write(staging.path(link), b"new")
    assert link.is_symlink()
    assert target.read_bytes() == b"new"
    assert target.stat().st_mode & 0o777 == 0o640


def test_an_error_names_the_file_of_the_user(tmp_path):
    def fail():
        with Staging() as staging:
            staged = staging.path(tmp_path / "a.tsv")
            raise InputError("can't be written (No space left on device)", where=str(staged))

    with pytest.raises(InputError) as caught:
        fail()
    assert caught.value.where == str(tmp_path / "a.tsv")


def test_a_folder_is_empty_and_goes_with_its_content(tmp_path):
    target = tmp_path / "a.tsv"
    with hidden_folder(target, "a.tsv") as folder:
        assert folder.parent == tmp_path
        assert folder.stat().st_mode & 0o777 == 0o700
        assert [path.name for path in folder.iterdir()] == [".lock"]
        (folder / "half").mkdir()
        (folder / "half" / "a.tsv").write_text("1")
    assert list(tmp_path.iterdir()) == []


SIGNALLED = """
import signal, sys
from pathlib import Path
import seqray.io.files as module
from seqray.core.errors import Terminated
from seqray.core.errors import terminate

signal.signal(signal.SIGTERM, terminate)
for name in ("_take", "_is_file", "_empty"):  # as it is made, locked and removed
    known = getattr(module, name)

    def end_and_go_on(*words):
        signal.raise_signal(signal.SIGTERM)
        return known(*words)

    setattr(module, name, end_and_go_on)
    try:
        with module.hidden_folder(Path(sys.argv[1]), "a.tsv"):
            print("still there")
    except Terminated:
        print("ended")
    setattr(module, name, known)
"""


def test_a_signal_leaves_no_folder(tmp_path):
    """In a process of its own, as all tests of signals."""
    command = [sys.executable, "-c", SIGNALLED, str(tmp_path / "a.tsv")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "ended\n" * 3
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("needs", ["os.open", "seqray.io.files._empty"])
def test_a_folder_that_lacks_a_descriptor_is_not_left(tmp_path, monkeypatch, needs):
    def refuse(*_):
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    monkeypatch.setattr(needs, refuse)
    with pytest.raises(InputError, match="Too many open files"), hidden_folder(tmp_path / "a.tsv", "a.tsv"):
        pass
    assert os.listdir(tmp_path) == []


def test_a_link_in_its_place_is_not_followed(tmp_path):
    target, mine = tmp_path / "a.tsv", tmp_path / "mine"
    mine.mkdir()
    (mine / "thesis.txt").write_text("1")
    with hidden_folder(target, "a.tsv") as folder:
        name = folder.name
    (tmp_path / name).symlink_to(mine)
    with hidden_folder(target, "a.tsv") as folder:
        assert folder.name != name
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([name, "mine"])
    assert (mine / "thesis.txt").exists()


def test_a_file_system_without_locks_gets_folders_of_one_use(tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr("fcntl.flock", refuse)
    with (
        hidden_folder(tmp_path / "a.tsv", "a.tsv") as one,
        hidden_folder(tmp_path / "a.tsv", "a.tsv") as other,
    ):
        assert one != other
    assert not one.exists()
    assert not other.exists()
