"""Hidden folders: whose they are, and where no locks are to be had."""

import errno
import os
import subprocess
import sys

import pytest

from seqray.core.errors import InputError
from seqray.io.files import hidden_folder


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
