"""Open files as bytes: compressed or not, standard streams, and output that appears only if complete."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import io
import lzma
import os
import shutil
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, BinaryIO, cast

from seqray.core import InputError, raise_if_terminated
from seqray.io.hidden import hidden_folder
from seqray.io.pipes import display_name, open_stream

BLOCK = 1 << 20

_GZIP = b"\x1f\x8b"
_OPENERS: dict[bytes, tuple[str, Callable[[Any], Any]]] = {
    _GZIP: ("gzip", lambda source: gzip.GzipFile(fileobj=source, mode="rb")),
    b"BZh": ("bzip2", bz2.BZ2File),
    b"\xfd7zXZ\x00": ("xz", lzma.LZMAFile),
}
_UNPACK, _ENCODE = "unpack it, or compress with gzip, bzip2 or xz", "save it as UTF-8"
_REFUSED = {
    b"PK\x03\x04": ("a zip archive", _UNPACK),
    b"\x28\xb5\x2f\xfd": ("compressed by zstd", _UNPACK),
    b"\xff\xfe": ("UTF-16", _ENCODE),  # as Excel writes "Unicode text"
    b"\xfe\xff": ("UTF-16", _ENCODE),
}

# bgzip writes an empty last block (SAM specification, section 4.1.2). A bgzip file that was cut between
# two blocks is valid gzip, so only the missing last block shows that records are lost.
_BGZF_END = bytes.fromhex("1f8b08040000000000ff0600424302001b0003000000000000000000")
_BGZF_FLAG = slice(12, 14)  # subfield identifier "BC" in the extra field of the first member


class _Source(io.RawIOBase):
    """Bytes as they are on disk; keeps their beginning and end, and needs no seeking."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self.head = self._pending = stream.read(len(_BGZF_END))
        self._tail = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._pending[: len(buffer)] or self._stream.read(len(buffer))
        self._pending = self._pending[len(data) :]
        self._tail = (self._tail + data[-len(_BGZF_END) :])[-len(_BGZF_END) :]
        buffer[: len(data)] = data
        return len(data)

    @property
    def lacks_end(self) -> bool:
        """Whether this is a bgzip file without its end marker, after reading to the end."""
        return self.head[_BGZF_FLAG] == b"BC" and self._tail != _BGZF_END


class _Reader(io.RawIOBase):
    """Decompressed bytes; any damage is an `InputError`, and so is a NUL byte where ``is_text``.

    So no reader of lines waits for the end of the first one in a binary file, which may have none.
    """

    def __init__(self, source: _Source, where: str, is_text: bool) -> None:
        self._source, self._where, self._is_text = source, where, is_text
        self._given = 0
        self._format, opener = next((o for m, o in _OPENERS.items() if source.head.startswith(m)), ("", None))
        buffered = io.BufferedReader(source, BLOCK)
        self._stream = opener(buffered) if opener else buffered

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        # Filled completely, although a pipe gives less at a time: readers need the whole first block.
        view, count = memoryview(buffer), 0
        while count < len(view) and (step := self._read_some(view[count:])):
            count += step
        if not self._given and self._format and bytes(view[: min(count, 2)]) == _GZIP:
            raise InputError(
                f"is compressed twice, by {self._format} and gzip", where=self._where, remedy="unpack it once"
            )
        if self._is_text and not self._given and bytes(view[:4]) == b"PAR1":
            raise InputError("is Parquet", where=self._where, remedy="write it as TSV or CSV")
        if self._is_text and (at := bytes(view[:count]).find(0)) >= 0:
            what = f"NUL byte at byte {self._given + at + 1}, so binary or damaged"
            raise InputError(what, where=self._where, remedy="give a text file")
        self._given += count
        return count

    def _read_some(self, view: memoryview) -> int:
        try:
            count = self._stream.readinto(view)
        except EOFError:
            raise self._broken("ends too early") from None
        except (zlib.error, lzma.LZMAError):
            raise self._broken("is damaged") from None
        except OSError as error:
            if self._format and error.errno is None:
                raise self._broken("is damaged") from None
            raise _cannot("read", error, self._where) from None
        if count == 0 and self._format == "gzip" and self._source.lacks_end:
            raise self._broken("ends too early (its end marker is missing)")
        return count

    def _broken(self, what: str) -> InputError:
        return InputError(
            f"the {self._format} data {what}", where=self._where, remedy="fetch or make the file again"
        )


def _cannot(verb: str, error: OSError, where: str) -> InputError:
    if isinstance(error, FileNotFoundError):
        missing = "no such file" if verb == "read" else "can't be written (its directory doesn't exist)"
        return InputError(missing, where=where)
    if isinstance(error, IsADirectoryError):
        return InputError("is a directory", where=where, remedy="give a file")
    return InputError(f"can't be {'read' if verb == 'read' else 'written'} ({error.strerror})", where=where)


@contextmanager
def open_input(path: str | Path, *, is_text: bool = True) -> Iterator[io.BufferedReader]:
    """Open a file for reading, decompressed.

    Raises `InputError` if the file is missing, a directory, not readable, a pipe that was read before, or of
    an unknown or double compression, or UTF-16; while reading, if compressed data are truncated or damaged,
    and for a NUL byte.

    Parameters
    ----------
    path
        A file or a pipe; ``-`` is standard input. gzip, bgzip, bzip2 and xz are known by their first
        bytes, not by the name.
    is_text
        False allows NUL bytes.

    Yields
    ------
    io.BufferedReader
        ``peek`` shows the first mebibyte, or all of a smaller file.
    """
    where = display_name(path)
    with ExitStack() as stack:
        try:
            source = _Source(stack.enter_context(open_stream(path)))
        except OSError as error:
            raise _cannot("read", error, where) from None
        for magic, (kind, remedy) in _REFUSED.items():
            if source.head.startswith(magic):
                raise InputError(f"is {kind}", where=where, remedy=remedy)
        yield io.BufferedReader(_Reader(source, where, is_text), BLOCK)


def encode_text(text: str) -> bytes:
    """Text in UTF-8; ``?`` takes the place of what a file name in another encoding left in it."""
    return text.encode("utf-8", "replace")


class OutputFile(io.FileIO):
    """A file that is on the disk before it is closed, and whose errors name the user's file."""

    def __init__(self, path: Path, mode: str, where: str) -> None:
        self._where = where
        self._is_new = mode == "xb"  # else a device or a pipe, which can't be forced to the disk
        super().__init__(path, mode)

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except OSError as error:
            raise _cannot("write", error, self._where) from None

    def close(self) -> None:
        try:
            if not self.closed and self._is_new:
                os.fsync(self.fileno())
            super().close()
        except OSError as error:
            raise _cannot("write", error, self._where) from None


class _Bgzip(io.RawIOBase):
    """gzip in blocks, so that tabix and genome browsers can index what we write; the time stamp is 0."""

    def __init__(self, target: OutputFile) -> None:
        from Bio.bgzf import BgzfWriter  # here, for the help of a verb loads this file

        self._writer = BgzfWriter(mode="wb", fileobj=target)

    def writable(self) -> bool:
        return True

    def write(self, data: Any, /) -> int:
        # In slices, because the writer copies all that is left after each block.
        view = memoryview(data).cast("B")[:BLOCK]
        self._writer.write(bytes(view))
        return len(view)

    def close(self) -> None:
        if not self.closed:
            super().close()
            self._writer.close()


def _stack_writer(target: OutputFile, compress: bool) -> BinaryIO:
    raw = _Bgzip(target) if compress else target
    return cast(BinaryIO, io.BufferedWriter(raw, BLOCK))


class _StandardOutput(io.RawIOBase):
    """Standard output, whose errors name it; it stays open."""

    def writable(self) -> bool:
        return True

    def write(self, data: Any, /) -> int:
        with _naming_standard_output():
            return sys.stdout.buffer.write(data)


@contextmanager
def _naming_standard_output() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:  # its reader went away, which is no error
        raise
    except OSError as error:
        raise cannot_write(error, "standard output") from None


def flush_standard_output() -> None:
    """Write what was printed; raises `InputError` if it can't be written."""
    with _naming_standard_output():
        sys.stdout.flush()


@contextmanager
def open_output(path: str | Path) -> Iterator[BinaryIO]:
    """Open a file for writing; it appears under its name only when the block ends without an exception.

    The bytes go to a hidden folder beside the file, are flushed to the disk, and renamed at the end; on any
    exception, Ctrl-C included, they are removed. A link is followed: it stays, and the file that it names is
    replaced. Devices and pipes are written directly. Raises `InputError` if the file can't be written: a
    directory, a missing directory, no permission, a full disk.

    Parameters
    ----------
    path
        ``-`` is standard output, a name that ends in ``.gz`` is compressed by bgzip (which gunzip reads).
    """
    if str(path) == "-":
        yield cast(BinaryIO, _StandardOutput())
        flush_standard_output()
        return
    where, compress, in_place = str(path), Path(path).suffix == ".gz", is_stream(path)
    target = Path(path if in_place else os.path.realpath(path))
    if target.is_file() and not os.access(target, os.W_OK):
        raise InputError("can't be written (it is read-only)", where=where)
    with ExitStack() as stack:
        working = target if in_place else enter_hidden_folder(stack, target, where) / target.name
        with _open_target(working, target, where) as raw, _stack_writer(raw, compress) as out:
            yield out
        if not in_place:
            raise_if_terminated()
            publish(working, target, where)


def write_file(path: str | Path, content: str | bytes) -> None:
    """Write a whole file as `open_output` does; text as `encode_text` encodes it."""
    with open_output(path) as handle:
        handle.write(encode_text(content) if isinstance(content, str) else content)


def is_stream(path: str | Path) -> bool:
    """Whether a path is a pipe, a device or a folder, which no file can replace.

    Asks for the path itself, because what ``/dev/fd/63`` links to is no path.
    """
    return os.path.exists(path) and not os.path.isfile(path)


def enter_hidden_folder(stack: ExitStack, target: Path, where: str) -> Path:
    """Make the hidden folder of an output until a stack is closed.

    Raises `InputError` if it can't be made.
    """
    try:
        return stack.enter_context(hidden_folder(target))
    except OSError as error:
        raise cannot_write(error, where) from None


def _open_target(working: Path, target: Path, where: str) -> OutputFile:
    try:
        return OutputFile(working, "wb" if working == target else "xb", where)
    except OSError as error:
        raise _cannot("write", error, where) from None


def publish(working: Path, target: Path, where: str) -> None:
    """Rename a complete file to its place; it keeps the mode of the file that was there.

    Raises `InputError` if that fails. File and place are in the same file system.
    """
    try:
        if target.exists():
            shutil.copymode(target, working)
        working.replace(target)
    except OSError as error:
        raise cannot_write(error, where) from None


def cannot_write(error: OSError, where: str) -> InputError:
    """What to raise for an error of writing; ``where`` names the output."""
    return _cannot("write", error, where)


def sha256(path: str | Path) -> str:
    """Checksum of a file's bytes as they lie on disk, in hexadecimal.

    Raises `InputError` if the file can't be read.
    """
    try:
        with open(path, "rb") as handle:
            return hashlib.file_digest(handle, "sha256").hexdigest()
    except OSError as error:
        raise _cannot("read", error, display_name(path)) from None
