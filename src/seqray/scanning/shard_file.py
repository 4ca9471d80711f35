"""Files of shards: a safetensors file with one entry of metadata in JSON.

Nothing in it can run, and its bytes depend on its content alone.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from seqray.core import InputError
from seqray.io import open_output

SHARD_SUFFIX = ".shard"
SHARD_FORMAT = 2
_KEY = "seqray_shard"
_REMEDY = "give the files that 'seqray scan --shard' wrote"
_HEADER: Mapping[str, type | tuple[type, ...]] = {
    **dict.fromkeys(("share", "strands", "contigs", "skipped", "command", "model"), list),
    **dict.fromkeys(("extent", "genes"), list),
    "species": (str, type(None)),
    **dict.fromkeys(("expected", "rule", "counted", "facts", "options"), dict),
    **dict.fromkeys(("label", "sequences", "version", "alphabet", "track name"), str),
    **dict.fromkeys(("points", "around"), int),
    "threshold": (int, float),
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

    text = json.dumps({"format": SHARD_FORMAT, **header}, separators=(",", ":"), ensure_ascii=True)
    content = save({name: np.ascontiguousarray(array) for name, array in arrays.items()}, {_KEY: text})
    with open_output(path) as handle:
        handle.write(content)


def no_shard(path: str) -> InputError:
    """The error for another file."""
    return InputError("is no shard of a scan", where=path, remedy=_REMEDY)


class ShardFile:
    """A shard, read piece by piece; use it in ``with``.

    Raises `InputError` for a file that is missing, no shard, cut short, or of another format.
    """

    def __init__(self, path: str | Path) -> None:
        from safetensors import SafetensorError, safe_open

        self.path = str(path)
        self._stack = ExitStack()
        if not Path(path).is_file():
            missing = "is a directory" if Path(path).is_dir() else "no such file"
            raise InputError(missing, where=self.path, remedy=_REMEDY)
        try:
            self._file: Any = self._stack.enter_context(safe_open(self.path, framework="numpy"))
            header = json.loads((self._file.metadata() or {})[_KEY])
        except OSError as error:
            raise InputError(f"can't be read ({error.strerror or error})", where=self.path) from None
        except KeyError:
            raise no_shard(self.path) from None
        except (SafetensorError, ValueError):
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
        self.header: dict[str, Any] = header
        if not self._is_whole():
            raise no_shard(self.path)

    def _is_whole(self) -> bool:
        """Whether all entries and arrays are there, of the right type."""
        if not all(isinstance(self.header.get(name), kind) for name, kind in _HEADER.items()):
            return False
        if not set(_ARRAYS) <= set(self._file.keys()):
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
