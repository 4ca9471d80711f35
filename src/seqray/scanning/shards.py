"""A scan in shares: each gives a shard, and the shards together give what the whole scan would have given.

The shares can run anywhere and in any order. What depends on more than one unit of the work (which of two
neighbouring peaks stays, the threshold for a false discovery rate, the calls to expect by chance) is left to
`gather`, which needs neither model nor sequences.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from seqray.core import InputError, Intervals, SequenceRecord
from seqray.core.results import SkippedRecord
from seqray.scanning.calls import CallTable
from seqray.scanning.options import ScanOptions
from seqray.scanning.shard_file import ShardFile, no_shard
from seqray.scanning.sweep import Swept, join
from seqray.scanning.types import Contig, Detector, Profile, ScanCallbacks, ScanCounts, ScanResult, Share
from seqray.scanning.windows import Grid, WindowRule
from seqray.scanning.work import ScanWork, finalize_scan, make_profile, within_parts

# Counted by every share alike; all other counts are summed.
_COMMON = ("contigs", "letters", "null_positions")
_INTS, _FLOATS = np.int64, np.float64


@dataclass
class _Columns:
    """What the pieces of one share gave, as columns."""

    places: list[tuple[int, int, int]] = field(default_factory=list)  # contig, strand, first grid point
    edges: list[tuple[float, float]] = field(default_factory=list)  # first and last score of the piece
    counts: list[tuple[int, int, int]] = field(default_factory=list)  # peaks, end, points of the profile
    starts: list[npt.NDArray[Any]] = field(default_factory=list)
    scores: list[npt.NDArray[Any]] = field(default_factory=list)
    origin: list[npt.NDArray[Any]] = field(default_factory=list)
    profile: list[npt.NDArray[Any]] = field(default_factory=list)

    def add(self, place: tuple[int, int, int], swept: Swept, profile: Profile) -> None:
        self.places.append(place)
        self.edges.append((swept.first, swept.last))
        self.counts.append((len(swept.starts), swept.end, len(profile.scores)))
        self.starts.append(swept.starts)
        self.scores.append(swept.scores)
        self.origin.append(swept.origin)
        self.profile.append(profile.scores.astype(np.float32))  # what a track holds of them

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """One-dimensional arrays, by name."""
        return {
            "places": np.array(self.places, _INTS).reshape(-1),
            "edges": np.array(self.edges, _FLOATS).reshape(-1),
            "counts": np.array(self.counts, _INTS).reshape(-1),
            "starts": np.concatenate([np.empty(0, _INTS), *self.starts]),
            "scores": np.concatenate([np.empty(0, _FLOATS), *self.scores]),
            "origin": np.concatenate([np.empty(0, _INTS), *self.origin]),
            "profile": np.concatenate([np.empty(0, np.float32), *self.profile]),
        }


def scan_share(
    detector: Detector,
    records: Iterable[SequenceRecord],
    options: ScanOptions,
    callbacks: ScanCallbacks,
    share: Share,
) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
    """Do one share of a scan.

    Parameters
    ----------
    detector, records, options, callbacks
        As `seqray.scanning.scan_sequences`; records are all those of the scan. ``on_profile`` is not told.
    share
        Which part of the work.

    Returns
    -------
    header, arrays
        What `seqray.scanning.write_shard` takes. The caller adds what it wants to find again to the header.
    """
    work = ScanWork(detector, options, callbacks, share)
    columns = _Columns()
    contigs: list[Contig] = []
    profiles: list[Profile] = []
    for contig, windows in work.contigs(records):
        contigs.append(contig)
        for number, strand in enumerate(options.strands):
            for first, swept in work.pieces(contig, windows, strand, profiles.append):
                columns.add((len(contigs) - 1, number, first), swept, profiles.pop())
    null_scores = work.sweep_null()
    header = {
        "share": [share.number, share.total],
        "label": detector.label,
        "rule": asdict(work.rule),
        "points": work.sweep.points,
        "threshold": work.sweep.threshold,
        "strands": list(options.strands),
        "contigs": [_plain(contig) for contig in contigs],
        "sequences": work.checksum,
        "counted": asdict(work.counts),
    }
    return header, columns.arrays() | {"null": null_scores}


def _plain(contig: Contig) -> list[Any]:
    parts = None if contig.parts is None else contig.parts.pairs()
    return [contig.name, contig.length, contig.circular, parts]


def _contig(plain: Sequence[Any]) -> Contig:
    name, length, circular, parts = plain
    return Contig(name, length, circular, None if parts is None else Intervals.merge(map(tuple, parts)))


class _Shard:
    """One shard and the pieces in it.

    Raises
    ------
    InputError
        For arrays whose lengths do not go together.
    """

    def __init__(self, file: ShardFile) -> None:
        self.file = file
        sizes = {name: len(file.array(name)) for name in ("places", "edges", "counts")}
        rows = sizes["places"] // 3
        if sizes != {"places": 3 * rows, "edges": 2 * rows, "counts": 3 * rows}:
            raise no_shard(file.path)
        self.places = file.array("places").reshape(-1, 3)
        self._edges = file.array("edges").reshape(-1, 2)
        self._counts = file.array("counts").reshape(-1, 3)
        # Whole: they are few, and safetensors refuses an empty slice at the end of an array.
        self._found = [file.array(name) for name in ("starts", "scores", "origin")]
        self._peaks = np.concatenate(([0], np.cumsum(self._counts[:, 0])))
        self._points = np.concatenate(([0], np.cumsum(self._counts[:, 2])))
        if {len(array) for array in self._found} != {int(self._peaks[-1])}:
            raise no_shard(file.path)
        if file.size("profile") != self._points[-1]:
            raise no_shard(file.path)

    def swept(self, i: int) -> Swept:
        """What piece ``i`` of this shard gave."""
        first, last = self._edges[i].tolist()
        starts, scores, origin = (array[self._peaks[i] : self._peaks[i + 1]] for array in self._found)
        return Swept(first, last, int(self._counts[i, 1]), starts, scores, origin)

    def profile(self, i: int) -> npt.NDArray[np.float64]:
        """Scores of the grid's windows in piece ``i``, those outside the parts taken out."""
        span = int(self._points[i]), int(self._points[i + 1])
        return self.file.part("profile", *span).astype(np.float64)


def _check_header(file: ShardFile) -> None:
    """Refuse a header whose parts are not those that `scan_share` writes."""
    header = file.header
    share = header["share"]
    wanted = {"rule": WindowRule, "counted": ScanCounts}
    if (
        len(share) != 2
        or not all(isinstance(number, int) for number in share)
        or any(set(header[key]) != {f.name for f in fields(kind)} for key, kind in wanted.items())
        or not set(header["options"]) <= {f.name for f in fields(ScanOptions)}
    ):
        raise no_shard(file.path)


def check_shards(files: Sequence[ShardFile]) -> None:
    """Make sure that the shards are all of one scan.

    Raises
    ------
    InputError
        For a file that is no shard, a shard of another scan, one that is given twice, and one that is
        missing.
    """
    for file in files:
        _check_header(file)
    first, own = files[0], ("share", "counted", "sequences")
    total = first.header["share"][1]
    seen: dict[int, str] = {}
    for file in files:
        for key in (key for key in first.header if key not in own):
            if file.header.get(key) != first.header[key]:
                raise InputError(
                    f"is a shard of another scan than '{first.path}' (their '{key}' differ)",
                    where=file.path,
                    remedy="scan all shards with the same command, but for --shard and --out",
                )
        if file.header["sequences"] != first.header["sequences"]:
            raise InputError(
                f"was scanned from other sequences than '{first.path}', though of the same ids and lengths",
                where=file.path,
                remedy="scan all shards from one file that stays as it is",
            )
        number, of = file.header["share"]
        common = [file.header["counted"][key] == first.header["counted"][key] for key in _COMMON]
        if of != total or not all(common):
            raise InputError(f"is a shard of another scan than '{first.path}'", where=file.path)
        if number in seen:
            raise InputError(f"is shard {number}/{of}, and so is '{seen[number]}'", where=file.path)
        seen[number] = file.path
    missing = [number for number in range(1, total + 1) if number not in seen]
    if missing:
        which = ", ".join(f"{number}/{total}" for number in missing[:5])
        more = f" and {len(missing) - 5} more" if len(missing) > 5 else ""
        raise InputError(
            f"{len(missing)} of {total} shards are missing: {which}{more}",
            remedy="run 'seqray scan' for them",
        )


def gather(files: Sequence[ShardFile], options: ScanOptions, callbacks: ScanCallbacks) -> ScanResult:
    """Put the shards of a scan together.

    Parameters
    ----------
    files
        All of them, in any order; see `check_shards`.
    options
        Those of the scan.
    callbacks
        ``on_contig`` and ``on_profile`` are told in the order of the whole scan.

    Returns
    -------
    ScanResult
        To the bit that of the whole scan.
    """
    header = files[0].header
    shards = [_Shard(file) for file in files]
    where = {
        tuple(place): (s, i)
        for s, shard in enumerate(shards)
        for i, place in enumerate(shard.places.tolist())
    }
    rule, points = WindowRule(**header["rule"]), int(header["points"])
    calls = CallTable(header["label"], rule.window)
    for number, contig in enumerate(map(_contig, header["contigs"])):
        grid = Grid(contig.length, rule, circular=contig.circular)
        if callbacks.on_contig is not None:
            callbacks.on_contig(contig.name, contig.length)
        rows = []
        for s, strand in enumerate(header["strands"]):
            pieces = []
            for first in range(0, grid.points, points):
                shard, i = where[number, s, first]
                pieces.append(shards[shard].swept(i))
                if callbacks.on_profile is not None:
                    starts = grid.starts(first, first + points, strand)
                    scores = shards[shard].profile(i)
                    callbacks.on_profile(make_profile(contig, grid, strand, starts, scores))
            peaks = join(grid, strand, pieces, options.min_distance)
            rows.append(within_parts(contig, grid, strand, peaks))
        calls.add(contig.name, contig.length, contig.circular, rows)
    null = np.concatenate([file.array("null") for file in files])
    return finalize_scan(calls, null, _sum_counts(files), options, float(header["threshold"]))


def _sum_counts(files: Sequence[ShardFile]) -> ScanCounts:
    counted: list[Mapping[str, int]] = [file.header["counted"] for file in files]
    names = [f.name for f in fields(ScanCounts)]
    return ScanCounts(
        **{name: counted[0][name] if name in _COMMON else sum(c[name] for c in counted) for name in names}
    )


def skipped_of(file: ShardFile) -> Iterator[SkippedRecord]:
    """Yield the records that a scan skipped, which every shard lists."""
    for name, reason in file.header["skipped"]:
        yield SkippedRecord(name, reason)
