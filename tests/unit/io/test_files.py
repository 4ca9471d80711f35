"""Opening and writing files: compression, broken files, standard streams, all-or-nothing output."""

import bz2
import gzip
import io
import lzma
import os
import stat
import sys
import threading

import pytest
from Bio.bgzf import BgzfReader

from seqray.core.errors import InputError
from seqray.io.files import cannot_write, keep_pipes, open_input, open_output, sha256, single_reading_of_pipes
from tables import bgzip

TEXT = b"".join(b"%d the quick brown fox\n" % (i * i) for i in range(20_000))


COMPRESSIONS = {
    "plain": bytes,
    "gzip": gzip.compress,
    "two members": lambda data: gzip.compress(data[:1000]) + gzip.compress(data[1000:]),
    "bgzip": bgzip,
    "bzip2": bz2.compress,
    "xz": lzma.compress,
}


def read(path) -> bytes:
    with open_input(path) as handle:
        return handle.read()


@pytest.mark.parametrize("compression", COMPRESSIONS)
@pytest.mark.parametrize("data", [b"", b"x", TEXT], ids=["empty", "one byte", "large"])
def test_compression_is_known_by_content(make, compression, data):
    assert read(make(COMPRESSIONS[compression](data))) == data


def test_a_pipe_that_gives_little_at_a_time_is_read_whole(tmp_path):
    pipe, data = tmp_path / "pipe", gzip.compress(TEXT)
    os.mkfifo(pipe)

    def feed():
        with open(pipe, "wb", buffering=0) as out:
            out.write(data[:1])
            out.write(data[1:5000])
            out.write(data[5000:])

    feeder = threading.Thread(target=feed)
    feeder.start()
    with open_input(pipe) as handle:
        assert handle.peek(1)[:100] == TEXT[:100]
        assert handle.read() == TEXT
    feeder.join()


@pytest.mark.parametrize("compression", ["gzip", "bgzip", "bzip2", "xz"])
@pytest.mark.parametrize("keep", [0.02, 0.5, 0.99])
def test_truncated_file_is_named(make, compression, keep):
    data = COMPRESSIONS[compression](TEXT)
    path = make(data[: int(len(data) * keep)])
    with pytest.raises(InputError, match="data ends too early") as caught:
        read(path)
    assert str(caught.value).startswith(f"{path}: ")


def test_bgzip_cut_between_two_blocks_is_noticed_although_it_is_valid_gzip(make, monkeypatch):
    cut = bgzip(TEXT)[:-28]
    assert gzip.decompress(cut) == TEXT
    with pytest.raises(InputError, match="end marker is missing"):
        read(make(cut))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(cut)))
    with pytest.raises(InputError, match=r"^standard input: .*end marker is missing"):
        read("-")


@pytest.mark.parametrize(("magic", "name"), [(b"PK\x03\x04", "zip"), (b"\x28\xb5\x2f\xfd", "zstd")])
def test_other_compressions_are_refused_by_name(make, magic, name):
    with pytest.raises(InputError, match=name):
        read(make(magic + b"1234"))


def names(directory) -> list[str]:
    return sorted(entry.name for entry in directory.iterdir())


@pytest.mark.parametrize("failure", [KeyboardInterrupt, SystemExit, ValueError])
@pytest.mark.parametrize("name", ["out.tsv", "out.tsv.gz"])
def test_interrupted_output_leaves_the_old_file_and_nothing_else(tmp_path, failure, name):
    target = tmp_path / name
    target.write_bytes(b"old")

    def interrupted():
        with open_output(target) as out:
            out.write(TEXT)
            raise failure

    with pytest.raises(failure):
        interrupted()
    assert target.read_bytes() == b"old"
    assert names(tmp_path) == [name]


def test_compressed_output_is_bgzip_and_the_same_each_time(tmp_path):
    for name in ("a.gz", "b.GZ"):
        with open_output(tmp_path / name) as out:
            for i in range(0, len(TEXT), 100_000):
                out.write(TEXT[i : i + 100_000])
    data = (tmp_path / "a.gz").read_bytes()
    assert data == (tmp_path / "b.GZ").read_bytes()
    assert data[4:8] == bytes(4)  # time stamp
    assert gzip.decompress(data) == TEXT
    assert BgzfReader(tmp_path / "a.gz", "rb").read(len(TEXT) + 1) == TEXT
    assert read(tmp_path / "a.gz") == TEXT


def test_pipes_are_written_in_place(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    received: list[bytes] = []
    reader = threading.Thread(target=lambda: received.append(pipe.read_bytes()))
    reader.start()
    with open_output(pipe) as out:
        out.write(TEXT)
    reader.join()
    assert received == [TEXT]
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_new_files_follow_the_umask(tmp_path):
    before = os.umask(0o027)
    try:
        with open_output(tmp_path / "out.tsv"):
            pass
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "out.tsv").stat().st_mode) == 0o640


def test_sha256_of_the_example_of_the_standard(make, tmp_path):
    # FIPS 180-2, appendix B.1.
    expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert sha256(make(b"abc")) == expected
    with pytest.raises(InputError, match="no such file"):
        sha256(tmp_path / "absent")


def test_a_folder_that_takes_no_file_is_told_from_one_that_is_not_there(tmp_path):
    for name, why in (("out.tsv", "takes no new files"), ("none/out.tsv", "doesn't exist")):  # as in /proc
        assert why in str(cannot_write(FileNotFoundError(), str(tmp_path / name)))


FASTA = b">a\nACGT\n"


@pytest.fixture
def pipe():
    """Name of a pipe that holds `FASTA`, packed."""
    reading, writing = os.pipe()
    os.write(writing, gzip.compress(FASTA))
    os.close(writing)
    yield f"/dev/fd/{reading}"
    os.close(reading)


def test_a_second_reading_is_refused_under_any_name(pipe, tmp_path):
    link = tmp_path / "link"
    link.symlink_to(pipe)
    with single_reading_of_pipes():
        assert read(pipe) == FASTA
        for name in (pipe, link):
            with pytest.raises(InputError, match="a pipe can be read only once; save it to a file") as caught:
                read(name)
            assert caught.value.where == str(name)
        with pytest.raises(InputError, match="a pipe can be read only once"):
            keep_pipes(pipe)


def test_what_is_kept_is_read_as_often_as_wanted(pipe, tmp_path):
    with single_reading_of_pipes():
        keep_pipes(pipe, None, pipe, str(tmp_path / "absent"))
        with open_input(pipe) as one, open_input(pipe) as other:
            assert one.read(3) == FASTA[:3]
            assert other.read() == FASTA
            assert one.read() == FASTA[3:]


def test_each_run_reads_its_own_standard_input(monkeypatch):
    for text in (FASTA, b">b\nA\n"):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text)))
        with single_reading_of_pipes():
            keep_pipes("-")
            assert [read("-"), read("-")] == [text, text]
