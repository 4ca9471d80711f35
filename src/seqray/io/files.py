"""Opening of all inputs, and outputs that appear whole or not at all."""

from __future__ import annotations

import atexit
import bz2
import fcntl
import gzip
import hashlib
import io
import lzma
import os
import shutil
import stat
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self, cast

from seqray.core.errors import InputError, raise_if_terminated, signals_held

BLOCK = 1 << 20

# ----------------------------------------------------------------------------------- names and errors


def is_frame(table: object) -> bool:
    """Whether what takes the place of a file is a pandas frame, without importing pandas."""
    return hasattr(table, "itertuples")


def display_name(path: Any) -> str:
    """Name of a file, or of a frame, for messages."""
    return "the frame" if is_frame(path) else "standard input" if str(path) == "-" else str(path)


def short_name(path: str | Path) -> str:
    """The last part of a path; ``pipe`` for one that the shell made, whose number differs between runs."""
    path = Path(path)
    return "pipe" if path.parts[:3] == ("/", "dev", "fd") else path.name


def cannot_write(error: OSError, where: str, verb: str = "written") -> InputError:
    """What to raise for an error of writing, or of another verb; ``where`` names the file."""
    if isinstance(error, FileNotFoundError):
        lacks = (
            "takes no new files"
            if os.path.isdir(os.path.dirname(os.path.realpath(where)))
            else "doesn't exist"
        )
        what = "no such file" if verb == "read" else f"can't be written (its directory {lacks})"
        return InputError(what, where=where)
    if isinstance(error, IsADirectoryError):
        return InputError("is a directory", where=where, remedy="give a file")
    return InputError(f"can't be {verb} ({error.strerror})", where=where)


def encode_text(text: str) -> bytes:
    """Text in UTF-8; ``?`` takes the place of what a file name in another encoding left in it."""
    return text.encode("utf-8", "replace")


def sha256(path: str | Path) -> str:
    """Checksum of a file's bytes as they lie on disk, in hexadecimal; `InputError` if it can't be read."""
    try:
        with open(path, "rb") as handle:
            return hashlib.file_digest(handle, "sha256").hexdigest()
    except OSError as error:
        raise cannot_write(error, display_name(path), "read") from None


# ------------------------------------------------------- pipes give their bytes once, unless they are kept

_Pipe = tuple[int, int] | str
_pipes_read: dict[_Pipe, bytes | None] | None = None
"""Pipes that a run has read, with the bytes of those that are kept; None outside a run."""


@contextmanager
def single_reading_of_pipes() -> Iterator[None]:
    """Refuse to read a pipe twice within the block, unless `keep_pipes` was told of it."""
    global _pipes_read
    before, _pipes_read = _pipes_read, {}
    try:
        yield
    finally:
        _pipes_read = before


def keep_pipes(*paths: str | None) -> None:
    """Hold the bytes of pipes in memory, so that each can be read again; files and None are left alone."""
    for path in filter(None, paths):
        if _pipes_read is not None and (path == "-" or os.path.exists(path)):  # else whoever reads it says so
            pipe = _identify(path)
            if pipe is not None and _pipes_read.get(pipe) is None:
                with open_stream(path) as source:
                    _pipes_read[pipe] = source.read()


def _identify(path: str | Path) -> _Pipe | None:
    """What a pipe is known by under all its names; None for anything that can be opened again."""
    is_standard = str(path) == "-"
    try:
        about = os.fstat(sys.stdin.fileno()) if is_standard else os.stat(path)
    except (AttributeError, OSError, ValueError):
        if is_standard:  # closed, or replaced by a caller of `main`
            return "-"
        raise
    if stat.S_ISFIFO(about.st_mode) or stat.S_ISSOCK(about.st_mode):
        return about.st_dev, about.st_ino
    return "-" if is_standard else None


@contextmanager
def open_stream(path: str | Path) -> Iterator[BinaryIO]:
    """Open a file or pipe for reading, as it is; ``-`` is standard input, which stays open."""
    pipe = _identify(path)
    if pipe is not None and _pipes_read is not None:
        if (kept := _pipes_read.get(pipe)) is not None:
            yield io.BytesIO(kept)
            return
        if pipe in _pipes_read:
            what = "was read before, and a pipe can be read only once"
            raise InputError(what, where=display_name(path), remedy="save it to a file, and name the file")
        _pipes_read[pipe] = None
    if str(path) != "-":
        with open(path, "rb") as handle:
            yield handle
    elif sys.stdin is None:  # pyright: ignore[reportUnnecessaryComparison]
        raise InputError("is closed", where=display_name("-"), remedy="name a file")
    else:
        yield sys.stdin.buffer


# ------------------------------------------------------------------ inputs, as bytes, compressed or not

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
        self.tail = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._pending[: len(buffer)] or self._stream.read(len(buffer))
        self._pending = self._pending[len(data) :]
        self.tail = (self.tail + data[-len(_BGZF_END) :])[-len(_BGZF_END) :]
        buffer[: len(data)] = data
        return len(data)


class _Reader(io.RawIOBase):
    """Decompressed bytes; damage is an `InputError`, and in a text a NUL byte: lines could be endless."""

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
            what = f"is compressed twice, by {self._format} and gzip"
            raise InputError(what, where=self._where, remedy="unpack it once")
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
            raise cannot_write(error, self._where, "read") from None
        is_bgzip = self._format == "gzip" and self._source.head[_BGZF_FLAG] == b"BC"
        if count == 0 and is_bgzip and self._source.tail != _BGZF_END:
            raise self._broken("ends too early (its end marker is missing)")
        return count

    def _broken(self, what: str) -> InputError:
        return InputError(
            f"the {self._format} data {what}", where=self._where, remedy="fetch or make the file again"
        )


@contextmanager
def open_input(path: str | Path, *, is_text: bool = True) -> Iterator[io.BufferedReader]:
    """Open a file or a pipe for reading, decompressed; ``peek`` shows the first mebibyte.

    gzip, bgzip, bzip2 and xz are known by their first bytes, not by the name; ``-`` is standard input.
    """
    where = display_name(path)
    with ExitStack() as stack:
        try:
            source = _Source(stack.enter_context(open_stream(path)))
        except OSError as error:
            raise cannot_write(error, where, "read") from None
        for magic, (kind, remedy) in _REFUSED.items():
            if source.head.startswith(magic):
                if str(path).lower().endswith((".xlsx", ".ods")):
                    kind, remedy = "a spreadsheet", "save it as CSV"
                raise InputError(f"is {kind}", where=where, remedy=remedy)
        yield io.BufferedReader(_Reader(source, where, is_text), BLOCK)


# ------- folders of this process, not of its forks; in the hidden ones files wait until they are whole


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """Yield an empty folder, which this process removes at the end of the block or its own."""
    folder = Path(tempfile.mkdtemp(prefix="seqray-"))
    owner = os.getpid()

    def remove() -> None:
        if os.getpid() == owner:
            shutil.rmtree(folder, ignore_errors=True)

    atexit.register(remove)
    try:
        yield folder
    finally:
        remove()
        atexit.unregister(remove)


_LOCK = ".lock"


@contextmanager
def hidden_folder(target: Path, where: str) -> Iterator[Path]:
    """Yield an empty folder beside ``target``, which is removed at the end with all that is in it."""
    stem = f".seqray-{hashlib.blake2b(os.fsencode(target.name), digest_size=6).hexdigest()}"
    taken, owner = None, os.getpid()
    try:
        with signals_held():
            try:
                taken = next(
                    filter(None, (_take(target.with_name(f"{stem}-{number}")) for number in count()))
                )
            except OSError as error:
                raise cannot_write(error, where) from None
        yield taken[0]
    finally:
        if taken is not None and os.getpid() == owner:
            with signals_held():
                _remove(*taken)


def _take(folder: Path) -> tuple[Path, int | None] | None:
    """The folder, emptied, and its lock; None if it is that of a living run, or not ours."""
    while True:
        try:
            folder.mkdir(mode=0o700)
        except FileExistsError:
            with suppress(FileNotFoundError):
                about = folder.lstat()
                if not stat.S_ISDIR(about.st_mode) or about.st_uid != os.geteuid():
                    return None  # somebody else's, who could have put anything there
        try:
            lock = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT, 0o600)
        except FileNotFoundError:  # its run ended just now
            continue
        except OSError:
            with suppress(OSError):  # it is empty if it was made just now
                folder.rmdir()
            raise
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            return None
        except OSError:  # a file system without locks
            os.close(lock)
            return Path(tempfile.mkdtemp(prefix=".seqray-", dir=folder.parent)), None
        if _is_file(lock, folder / _LOCK):
            try:
                _empty(folder)
            except OSError:
                _remove(folder, lock)
                raise
            return folder, lock
        os.close(lock)


def _is_file(handle: int, path: Path) -> bool:
    """Whether a path still is the file that is open."""
    try:
        return os.path.samestat(os.fstat(handle), path.lstat())
    except FileNotFoundError:
        return False


def _empty(folder: Path) -> None:
    """Remove all but the lock, which goes last: who holds it may fill the folder."""
    for entry in folder.iterdir():
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry, ignore_errors=True)
        elif entry.name != _LOCK:
            entry.unlink(missing_ok=True)


def _remove(folder: Path, lock: int | None) -> None:
    with suppress(OSError):  # as where no more files can be opened; then it may hold the lock alone
        _empty(folder)
    with suppress(OSError):  # another run may have taken the folder by now
        (folder / _LOCK).unlink(missing_ok=True)
        folder.rmdir()
    if lock is not None:
        os.close(lock)


# ------------------------------------------------------------------------------------- one output at a time


class OutputFile(io.FileIO):
    """A file that is on the disk before it is closed, and whose errors name the user's file."""

    def __init__(self, path: Path, mode: str, where: str) -> None:
        self._where = where
        self._is_new = mode == "xb"  # else a device or a pipe, which can't be forced to the disk
        try:
            super().__init__(path, mode)
        except OSError as error:
            raise cannot_write(error, where) from None

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except OSError as error:
            raise cannot_write(error, self._where) from None

    def close(self) -> None:
        try:
            if not self.closed and self._is_new:
                os.fsync(self.fileno())
            super().close()
        except OSError as error:
            raise cannot_write(error, self._where) from None


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

    Devices and pipes are written directly; ``-`` is standard output, and ``.gz`` compresses by bgzip.
    """
    if str(path) == "-":
        yield cast(BinaryIO, _StandardOutput())
        flush_standard_output()
        return
    where, in_place = str(path), is_stream(path)
    target = Path(path if in_place else os.path.realpath(path))
    if target.is_file() and not os.access(target, os.W_OK):
        raise InputError("can't be written (it is read-only)", where=where)
    with ExitStack() as stack:
        working = target if in_place else stack.enter_context(hidden_folder(target, where)) / target.name
        with OutputFile(working, "wb" if in_place else "xb", where) as raw:
            compressed = _Bgzip(raw) if Path(path).suffix.lower() == ".gz" else raw
            with cast(BinaryIO, io.BufferedWriter(compressed, BLOCK)) as out:
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


def publish(working: Path, target: Path, where: str) -> None:
    """Rename a complete file to its place in the same file system; it keeps the mode of the file there."""
    try:
        if target.exists():
            shutil.copymode(target, working)
        working.replace(target)
    except OSError as error:
        raise cannot_write(error, where) from None


# ------------------------------------------------------- several outputs that appear together, or not at all


class Staging:
    """Hidden folders beside the outputs of one run, whose files appear all together, or none, at the end.

    Folders go last: one left by a crash shows that outputs beside it may not be of one run.
    """

    def __init__(self) -> None:
        self._outputs: dict[Path, tuple[Path, str]] = {}  # staged file to its target and the user's name
        self._folders = ExitStack()

    def path(self, target: str | Path) -> Path | str:
        """Where to write what shall appear as ``target``; devices, pipes and ``-`` are written directly."""
        name, real = str(target), Path(os.path.realpath(target))
        if name == "-" or (is_stream(target) and not real.is_dir()):
            return target
        if real.is_dir():
            raise InputError("is a directory", where=name, remedy="give a file")
        if real.exists() and not os.access(real, os.W_OK):
            raise InputError("can't be written (it is read-only)", where=name)
        if any(other == real for other, _ in self._outputs.values()):
            raise InputError("is named twice as an output", where=name)
        # The name decides on the format, so it is that of a link, not of the file behind.
        staged = self._folders.enter_context(hidden_folder(real, name)) / Path(target).name
        self._outputs[staged] = (real, name)
        return staged

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._folders:
            if error is None:
                flush_standard_output()
                with signals_held():
                    raise_if_terminated()
                    for staged, (target, name) in self._outputs.items():
                        if staged.exists():  # a writer may have had nothing to say
                            publish(staged, target, name)
                    self._folders.close()
        if isinstance(error, InputError) and Path(error.where) in self._outputs:
            _, where = self._outputs[Path(error.where)]
            raise InputError(error.what, where=where, remedy=error.remedy) from None
