"""Pipes: read once, or kept; never silently empty."""

from __future__ import annotations

import gzip
import io
import os
import sys
from pathlib import Path

import pytest

from seqray.core.errors import InputError
from seqray.io.files import keep_pipes, open_input, single_reading_of_pipes

TEXT = b">a\nACGT\n"


@pytest.fixture
def pipe():
    """Name of a pipe that holds `TEXT`, packed."""
    reading, writing = os.pipe()
    os.write(writing, gzip.compress(TEXT))
    os.close(writing)
    yield f"/dev/fd/{reading}"
    os.close(reading)


def read(path) -> bytes:
    with open_input(path) as handle:
        return handle.read()


def test_a_second_reading_is_refused_under_any_name(pipe, tmp_path):
    link = tmp_path / "link"
    link.symlink_to(pipe)
    with single_reading_of_pipes():
        assert read(pipe) == TEXT
        for name in (pipe, link):
            with pytest.raises(InputError, match="a pipe can be read only once; save it to a file") as caught:
                read(name)
            assert caught.value.where == str(name)
        with pytest.raises(InputError, match="a pipe can be read only once"):
            keep_pipes(pipe)


def test_what_is_kept_is_read_as_often_as_wanted(pipe, tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    with single_reading_of_pipes():
        keep_pipes(pipe, None, pipe, str(tmp_path / "absent"))
        with open_input(pipe) as one, open_input(pipe) as other:
            assert one.read(3) == TEXT[:3]
            assert other.read() == TEXT
            assert one.read() == TEXT[3:]
    assert list(tmp_path.iterdir()) == []


def test_each_run_reads_its_own_standard_input(monkeypatch):
    for text in (TEXT, b">b\nA\n"):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text)))
        with single_reading_of_pipes():
            keep_pipes("-")
            assert [read("-"), read("-")] == [text, text]


def test_a_file_is_read_as_often_as_wanted(tmp_path):
    path = tmp_path / "a.fa"
    path.write_bytes(TEXT)
    with single_reading_of_pipes():
        keep_pipes(str(path))
        assert [read(path), read(path)] == [TEXT, TEXT]


def test_a_pipe_that_cant_be_copied_is_named(pipe, monkeypatch):
    def full():
        return Path("/dev/full").open("wb")

    monkeypatch.setattr("tempfile.TemporaryFile", full)
    message = r"can't be copied, to be read twice \(No space left on device\); save it to a file"
    with single_reading_of_pipes(), pytest.raises(InputError, match=message) as caught:
        keep_pipes(pipe)
    assert caught.value.where == pipe


def test_a_closed_standard_input_is_named(monkeypatch):
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(InputError, match=r"^standard input: is closed; name a file"):
        read("-")
