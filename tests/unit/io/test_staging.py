"""Outputs of one run appear together, or not at all."""

import os
from pathlib import Path

import pytest

from seqray.core.errors import InputError
from seqray.io.files import open_output
from seqray.io.staging import Staging


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


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_an_exception_leaves_what_was_there(tmp_path, error):
    old = tmp_path / "a.tsv"
    old.write_bytes(b"old")

    def fail():
        with Staging() as staging:
            write(staging.path(old), b"new")
            write(staging.path(tmp_path / "b.tsv"), b"new")
            raise error

    with pytest.raises(error):
        fail()
    assert [p.name for p in tmp_path.iterdir()] == ["a.tsv"]
    assert old.read_bytes() == b"old"


def test_files_that_a_writer_names_itself_move_too(tmp_path):
    with Staging() as staging:
        staged = staging.path(tmp_path / "x.bw")
        for word in ("plus", "minus"):
            write(Path(staged).with_name(f"x.{word}.bw"), word.encode())
    assert sorted(p.name for p in tmp_path.iterdir()) == ["x.minus.bw", "x.plus.bw"]


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


def test_standard_output_and_devices_are_written_directly():
    with Staging() as staging:
        assert staging.path("-") == "-"
        assert staging.path(os.devnull) == os.devnull


def test_a_target_that_cant_be_written_is_named_at_once(tmp_path):
    with Staging() as staging:
        with pytest.raises(InputError, match="is a directory"):
            staging.path(tmp_path)
        with pytest.raises(InputError, match="directory doesn't exist"):
            staging.path(tmp_path / "no" / "a.tsv")
        staging.path(tmp_path / "a.tsv")
        with pytest.raises(InputError, match="named twice"):
            staging.path(tmp_path / "a.tsv")


def test_an_error_names_the_file_of_the_user(tmp_path):
    def fail():
        with Staging() as staging:
            staged = staging.path(tmp_path / "a.tsv")
            raise InputError("can't be written (No space left on device)", where=str(staged))

    with pytest.raises(InputError) as caught:
        fail()
    assert caught.value.where == str(tmp_path / "a.tsv")
