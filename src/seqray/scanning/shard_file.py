"""Files of shards: a safetensors file with one entry of metadata in JSON.

Nothing in it can run, and its bytes depend on its content alone. The metadata carry the sha256 of themselves
and of all arrays: a shard is what was written, or it is refused.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import NoneType, TracebackType
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from seqray.core import ConfigError, InputError
from seqray.io import write_file

SHARD_SUFFIX = ".shard"
SHARD_FORMAT = 5
_KEY, _CHECKSUM = "seqray_shard", "checksum"
_REMEDY = "give the files that 'seqray scan --shard' wrote"
_MAX_INTEGER = 1 << 53
_AT_ONCE = 1 << 20  # entries of an array that are in memory while it is checked


def _is(*kinds: type) -> Callable[[Any], bool]:
    return lambda value: type(value) in kinds


def is_whole(value: Any) -> bool:
    """Whether a value is a whole number that arrays can count to."""
    return type(value) is int and 0 <= value < _MAX_INTEGER


def _is_list(of: Callable[[Any], bool], length: int | None = None) -> Callable[[Any], bool]:
    return lambda value: type(value) is list and length in (None, len(value)) and all(map(of, value))


_is_text = _is(str)
_HEADER: Mapping[str, Callable[[Any], bool]] = {
    **dict.fromkeys(("share", "extent"), _is_list(is_whole, 2)),
    **dict.fromkeys(("strands", "command", "findings"), _is_list(_is_text)),
    "card": lambda value: _is_list(_is_text)(value) and len(value) > 0,
    "model": _is_list(_is_text, 2),
    "skipped": _is_list(_is_list(_is_text, 2)),
    **dict.fromkeys(("contigs", "genes"), _is(list)),
    "species": _is(str, NoneType),
    "foreign": _is(bool),
    **dict.fromkeys(("expected", "rule", "options"), _is(dict)),
    "facts": lambda value: type(value) is dict and all(map(_is_text, value.values())),
    "counted": lambda value: type(value) is dict and all(map(is_whole, value.values())),
    **dict.fromkeys(("label", "sequences", "version", "alphabet", "engine", "track name"), _is_text),
    "min_distance": lambda value: is_whole(value) and value > 0,
    "points": lambda value: is_whole(value) and value > 0,
    "around": is_whole,
    "threshold": lambda value: type(value) in (int, float) and 0 <= value <= 1,
}
_ARRAYS = {
    **dict.fromkeys(("places", "counts", "starts", "origin"), "I64"),
    **dict.fromkeys(("edges", "scores", "null"), "F64"),
    "letters": "U8",
    "profile": "F32",
}


def write_shard(path: str | Path, header: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]) -> None:
    """Write one shard.

    Parameters
    ----------
    path
        See `seqray.io.open_output`.
    header
        Of JSON types.
    arrays
        One-dimensional, by name.
    """
    from safetensors.numpy import save

    known = {"format": SHARD_FORMAT, **header}
    text = _to_json(known | {_CHECKSUM: _checksum(known, ((name, [arrays[name]]) for name in _ARRAYS))})
    content = save({name: np.ascontiguousarray(array) for name, array in arrays.items()}, {_KEY: text})
    write_file(path, content)


def _to_json(header: Mapping[str, Any]) -> str:
    return json.dumps(header, separators=(",", ":"), ensure_ascii=True)


def _checksum(header: Mapping[str, Any], arrays: Iterable[tuple[str, Iterable[npt.NDArray[Any]]]]) -> str:
    """SHA-256 of the header and of the arrays, which come in parts; the type of each is settled."""
    digest = hashlib.sha256(_to_json(header).encode())
    for name, parts in arrays:
        digest.update(f"\n{name}\n".encode())
        for part in parts:
            digest.update(np.ascontiguousarray(part).data)
    return digest.hexdigest()


def no_shard(path: str) -> InputError:
    """The error for another file."""
    return InputError("is no shard of a scan", where=path, remedy=_REMEDY)


@contextmanager
def reading_shard(path: str) -> Iterator[None]:
    """Turn the errors that a shard with impossible content causes into an `InputError`."""
    try:
        yield
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, ConfigError) as error:
        raise no_shard(path) from error


class ShardFile:
    """A shard, read piece by piece; use it in ``with``.

    Raises `InputError` for a file that is missing, no shard, damaged, or of another format.
    """

    def __init__(self, path: str | Path) -> None:
        from safetensors import SafetensorError, safe_open

        self.path = str(path)
        self._stack = ExitStack()
        if not Path(path).is_file():
            other = "is a pipe or a device" if Path(path).exists() else "no such file"
            missing = "is a directory" if Path(path).is_dir() else other
            raise InputError(missing, where=self.path, remedy=_REMEDY)
        try:
            self._file: Any = self._stack.enter_context(safe_open(self.path, framework="numpy"))
            header = json.loads((self._file.metadata() or {})[_KEY])
        except OSError as error:
            raise InputError(f"can't be read ({error.strerror or error})", where=self.path) from None
        except KeyError:
            raise no_shard(self.path) from None
        except UnicodeEncodeError:  # of the library, which takes no others
            raise InputError("has a name that is not UTF-8", where=self.path, remedy="rename it") from None
        except (SafetensorError, ValueError, RecursionError):
            raise InputError(
                "is no shard of a scan, or is cut short", where=self.path, remedy="run its scan again"
            ) from None
        if not isinstance(header, dict):
            raise no_shard(self.path)
        if header.get("format") != SHARD_FORMAT:
            raise InputError(
                f"is a shard of format {header.get('format')}",
                where=self.path,
                remedy="gather with the version of seqray that scanned",
            )
        checksum = header.pop(_CHECKSUM, None)
        self.header: dict[str, Any] = header
        if not self._is_complete():
            raise no_shard(self.path)
        if checksum != _checksum(header, ((name, self._parts(name)) for name in _ARRAYS)):
            raise InputError(
                "is damaged: its checksum does not match", where=self.path, remedy="run its scan again"
            )

    def _is_complete(self) -> bool:
        """Whether all entries and arrays are there, of the right type."""
        if not all(name in self.header and fits(self.header[name]) for name, fits in _HEADER.items()):
            return False
        if set(_ARRAYS) != set(self._file.keys()):
            return False
        slices = {name: self._file.get_slice(name) for name in _ARRAYS}
        return all(
            len(part.get_shape()) == 1 and part.get_dtype() == _ARRAYS[name] for name, part in slices.items()
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def array(self, name: str) -> npt.NDArray[Any]:
        """One array, whole."""
        return self._file.get_tensor(name)

    def size(self, name: str) -> int:
        """Entries of one array, none of which is read."""
        return self._file.get_slice(name).get_shape()[0]

    def _parts(self, name: str) -> Iterator[npt.NDArray[Any]]:
        size = self.size(name)
        return (self.part(name, i, min(i + _AT_ONCE, size)) for i in range(0, size, _AT_ONCE))

    def part(self, name: str, start: int, end: int) -> npt.NDArray[Any]:
        """Read a part of one array and nothing else.

        Parameters
        ----------
        name
            Name of the array.
        start, end
            Half-open range of its entries.
        """
        return self._file.get_slice(name)[start:end]
