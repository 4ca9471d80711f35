"""Scores along a genome: bedGraph and bigWig."""

from __future__ import annotations

import io
import os
import shutil
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

import numpy as np
import numpy.typing as npt

from seqray.core.errors import InputError
from seqray.core.text import format_number
from seqray.io.files import OutputFile, encode_text, hidden_folder, open_output
from seqray.io.lines import check_line_start
from seqray.io.tables import comment_lines

TRACK_SUFFIXES = (".bedgraph.gz", ".bedgraph", ".bg.gz", ".bg", ".bigwig", ".bw")
STRANDS = {"+": "plus", "-": "minus"}
_STEP = np.dtype([("contig", "<u4"), ("start", "<u4"), ("end", "<u4"), ("value", "<f4")])
BLOCK = 1 << 16  # steps handed to a bigWig at once: bounds memory


_Sink = Callable[[str, npt.NDArray[np.void]], None]
"""Writes the steps of a contig on one strand, in ascending order."""


def track_paths(path: str | Path) -> dict[str, Path]:
    """The file of each strand: ``x.bw`` becomes ``x.plus.bw`` and ``x.minus.bw``."""
    target = Path(path)
    for suffix in TRACK_SUFFIXES:
        stem = target.name[: -len(suffix)]
        if stem and target.name.lower().endswith(suffix):
            end = target.name[len(stem) :]
            return {strand: target.with_name(f"{stem}.{word}{end}") for strand, word in STRANDS.items()}
    remedy = "use .bedgraph, .bedgraph.gz or .bw"
    raise InputError("does not end in the suffix of a known track format", where=str(path), remedy=remedy)


class TrackWriter:
    """A score along contigs as bedGraph or bigWig, a file per strand; none appears if the block fails."""

    def __init__(
        self,
        path: str | Path,
        provenance: Sequence[str] = (),
        name: str = "seqray",
        place: Callable[[Path], str | Path] = Path,
    ) -> None:
        self.paths = {strand: Path(place(one)) for strand, one in track_paths(path).items()}
        self._provenance, self._name = provenance, name
        self._contigs: dict[str, int] = {}
        self._sinks: dict[str, _Sink] = {}
        self._reached: dict[str, tuple[int, int]] = {}  # by strand: number of the contig, position
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as opening:
            for strand, path in self.paths.items():
                if path.suffix.lower() in (".bw", ".bigwig"):
                    sink = _bigwig(path, self._contigs)
                else:
                    sink = _bedgraph(path, self._provenance, f"{self._name} ({strand})")
                self._sinks[strand] = opening.enter_context(sink)
            self._stack = opening.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return self._stack.__exit__(kind, error, trace)

    def begin(self, contig: str, length: int) -> None:
        """Begin the next contig; each comes once, also those that get no values."""
        if contig in self._contigs:
            what = f"two contigs are called '{contig}'"
            raise InputError(what, remedy="rename duplicates to write a track")
        self._contigs[contig] = length

    def add(self, contig: str, strand: str, start: int, values: npt.ArrayLike, span: int = 1) -> None:
        """Add values (n,) of ``span`` positions each along a strand of the last contig; nan leaves a gap."""
        number = len(self._contigs) - 1
        if not self._contigs or next(reversed(self._contigs)) != contig:
            raise ValueError(f"'{contig}' is not the contig that was begun last")
        scores, length = np.asarray(values, np.float64), self._contigs[contig]
        starts = start + span * np.arange(len(scores), dtype=np.int64)
        inside = np.isfinite(scores) & (starts + span > 0) & (starts < length)
        steps = np.empty(int(inside.sum()), dtype=_STEP)
        steps["contig"], steps["value"] = number, scores[inside]
        steps["start"] = np.maximum(starts[inside], 0)
        steps["end"] = np.minimum(starts[inside] + span, length)
        if not len(steps):
            return
        if (number, int(steps["start"][0])) < self._reached.get(strand, (0, 0)):
            raise ValueError(f"values of {contig} {strand} at {start} come after later positions")
        self._reached[strand] = (number, int(steps["end"][-1]))
        self._sinks[strand](contig, steps)


@contextmanager
def _bedgraph(path: Path, provenance: Sequence[str], name: str) -> Iterator[_Sink]:
    with open_output(path) as handle:
        handle.write(comment_lines(provenance))
        if (
            path.suffix.lower() != ".gz"
        ):  # which is for tabix; it refuses this line, and a browser names the file
            handle.write(encode_text(f'track type=bedGraph name="{name}"\n'))

        def write(contig: str, steps: npt.NDArray[np.void]) -> None:
            check_line_start(contig)
            columns = (steps["start"].tolist(), steps["end"].tolist(), steps["value"].tolist())
            lines = (
                f"{contig}\t{start}\t{end}\t{format_number(value)}\n"
                for start, end, value in zip(*columns, strict=True)
            )
            handle.write("".join(lines).encode())

        yield write


@contextmanager
def _bigwig(path: Path, contigs: Mapping[str, int]) -> Iterator[_Sink]:
    # The header contains the length of every contig and comes first, but contigs are known only when all is
    # read: the steps wait in a file of fixed-width entries.
    with open_output(path) as handle, ExitStack() as stack:
        folder = stack.enter_context(hidden_folder(Path(os.path.realpath(path)), str(path)))
        waiting, finished = folder / "steps", folder / "track.bw"
        with io.BufferedWriter(OutputFile(waiting, "wb", str(path)), BLOCK) as spool:

            def write(contig: str, steps: npt.NDArray[np.void]) -> None:
                spool.write(steps.tobytes())

            yield write
        try:
            _convert_to_bigwig(waiting, finished, contigs)
        except (OSError, RuntimeError, UnicodeEncodeError) as error:  # a full disk, an odd name
            raise InputError(f"can't be written as bigWig ({error})", where=str(path)) from None
        with open(finished, "rb") as source:
            shutil.copyfileobj(source, handle)


def _blocks(handle: BinaryIO) -> Iterator[npt.NDArray[np.void]]:
    while data := handle.read(BLOCK * _STEP.itemsize):
        block = np.frombuffer(data, dtype=_STEP)
        yield from np.split(block, np.flatnonzero(np.diff(block["contig"])) + 1)


def _convert_to_bigwig(waiting: Path, finished: Path, contigs: Mapping[str, int]) -> None:
    import pyBigWig

    names = list(contigs) or ["none"]
    bigwig = pyBigWig.open(str(finished), "w")
    try:
        bigwig.addHeader([(name, contigs.get(name, 1)) for name in names])
        with open(waiting, "rb") as handle:
            for steps in _blocks(handle):
                starts, ends, values = (steps[key].tolist() for key in ("start", "end", "value"))
                bigwig.addEntries([names[steps["contig"][0]]] * len(steps), starts, ends=ends, values=values)
    finally:
        bigwig.close()
    if not waiting.stat().st_size:
        _index_nothing(finished)


def _index_nothing(bigwig: Path) -> None:
    """Add the index that pyBigWig leaves out: an R-tree of no items (Kent et al. 2010, supplement)."""
    with open(bigwig, "r+b") as handle:
        handle.seek(-4, os.SEEK_END)
        place, magic = handle.tell(), handle.read(4)
        handle.seek(place)
        handle.write(struct.pack("<IIQIIIIQII", 0x2468ACE0, 64, 0, 0, 0, 0, 0, place, 1, 0))
        handle.write(struct.pack("<BBH", 1, 0, 0) + magic)
        handle.seek(24)
        handle.write(struct.pack("<Q", place))
