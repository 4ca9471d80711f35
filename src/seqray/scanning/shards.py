"""Shares of a divided scan."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, astuple, fields
from functools import partial
from itertools import islice
from pathlib import Path
from types import NoneType, TracebackType
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from seqray.core.arrays import Floats
from seqray.core.errors import ConfigError, InputError
from seqray.core.records import Intervals, SequenceRecord
from seqray.core.results import SkippedRecord
from seqray.core.serialization import from_mapping
from seqray.genome.genes import Annotation, Gene
from seqray.io.files import write_file
from seqray.scanning.calls import CallTable
from seqray.scanning.detectors import Detector
from seqray.scanning.options import ScanCallbacks, ScanOptions, ShardNumber
from seqray.scanning.peaks import PiecePeaks, add_calls, finalize_scan
from seqray.scanning.results import Contig, ScanCounts, ScanResult, ScoreProfile
from seqray.scanning.scan import Scanner
from seqray.scanning.windows import Grid, WindowRule

# --- Files of shards: a safetensors file with one entry of metadata in JSON

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


# --- Scan in shards that together give the result of the whole scan

# Counted by every shard alike; all other counts are summed.
_COMMON = ("contigs", "letters", "null_positions")
_PEAK_ARRAYS = {"starts": np.int64, "scores": np.float64, "origin": np.int64}


def scan_shard(
    detector: Detector,
    records: Iterable[SequenceRecord],
    options: ScanOptions,
    callbacks: ScanCallbacks,
    shard: ShardNumber,
) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
    """Scan one shard.

    Parameters
    ----------
    detector, records, options, callbacks
        As `seqray.scanning.scan_sequences`; records are all those of the scan. ``on_profile`` is not called.
    shard
        Which part of the work.

    Returns
    -------
    header, arrays
        For `seqray.scanning.write_shard`. The caller may add entries to the header.
    """
    scanner = Scanner(detector, options, callbacks, shard)
    contigs: list[Contig] = []
    places: list[tuple[int, int, int]] = []  # contig, strand, first grid point
    pieces: list[PiecePeaks] = []
    profiles: list[npt.NDArray[np.float32]] = []  # the precision of a track
    with detector.running():
        for contig, windows in scanner.contigs(records):
            contigs.append(contig)
            for number, strand in enumerate(options.strands):
                for first, peaks, profile in scanner.pieces(contig, windows, strand):
                    places.append((len(contigs) - 1, number, first))
                    pieces.append(peaks)
                    profiles.append(profile.scores.astype(np.float32))
        null_scores = scanner.null_scores()
    header = {
        "share": [shard.number, shard.total],
        "label": detector.label,
        "extent": list(detector.extent),
        "around": detector.around,
        "genes": _genes_to_list(scanner.annotation),
        "rule": asdict(scanner.rule),
        "points": scanner.finder.points,
        "min_distance": scanner.finder.min_distance,
        "threshold": scanner.finder.threshold,
        "strands": list(options.strands),
        "contigs": [_contig_to_list(contig) for contig in contigs],
        "sequences": scanner.checksum,
        "counted": asdict(scanner.counts),
    }
    counts = [(len(p.starts), p.end, len(profile)) for p, profile in zip(pieces, profiles, strict=True)]
    arrays = {
        "places": np.array(places, np.int64).reshape(-1),
        "edges": np.array([(p.first, p.last) for p in pieces], np.float64).reshape(-1),
        "counts": np.array(counts, np.int64).reshape(-1),
        **{
            name: np.concatenate([np.empty(0, kind), *(getattr(p, name) for p in pieces)])
            for name, kind in _PEAK_ARRAYS.items()
        },
        "letters": np.concatenate([np.empty(0, np.uint8), *(p.letters.reshape(-1) for p in pieces)]),
        "profile": np.concatenate([np.empty(0, np.float32), *profiles]),
        "null": null_scores,
    }
    return header, arrays


def _contig_to_list(contig: Contig) -> list[Any]:
    parts = None if contig.parts is None else contig.parts.pairs()
    return [contig.name, contig.length, contig.circular, parts]


def _contig_from_list(values: Sequence[Any]) -> Contig:
    name, length, circular, parts = values
    if (type(name), is_whole(length), type(circular)) != (str, True, bool):
        raise ValueError("no contig")
    return Contig(name, length, circular, None if parts is None else Intervals.merge(map(tuple, parts)))


def _genes_to_list(annotation: Annotation | None) -> list[Any]:
    if annotation is None:
        return []
    genes = {name: [astuple(gene) for gene in found] for name, found in annotation.genes.items()}
    return [annotation.source, genes]


def _genes_from_list(values: Sequence[Any]) -> Annotation | None:
    if not values:
        return None
    source, genes = values
    typed = {contig: tuple(map(_gene_from_list, found)) for contig, found in genes.items()}
    return Annotation(typed, str(source))


def _gene_from_list(values: Sequence[Any]) -> Gene:
    gene = from_mapping(Gene, dict(zip((f.name for f in fields(Gene)), values, strict=True)))
    if gene.strand not in ("+", "-") or not (is_whole(gene.end) and 0 <= gene.start < gene.end):
        raise ValueError("no gene")
    return gene


class _Shard:
    """One shard and the pieces in it; raises `InputError` for arrays that don't match each other."""

    def __init__(self, file: ShardFile) -> None:
        self.file = file
        sizes = {name: file.size(name) for name in ("places", "edges", "counts")}
        rows = sizes["places"] // 3
        if sizes != {"places": 3 * rows, "edges": 2 * rows, "counts": 3 * rows}:
            raise no_shard(file.path)
        self.places = file.array("places").reshape(-1, 3)
        self._edges = file.array("edges").reshape(-1, 2)
        self._counts = file.array("counts").reshape(-1, 3)
        # Read whole: they are few, and safetensors rejects an empty slice at the end of an array.
        self._found = [file.array(name) for name in _PEAK_ARRAYS]
        self._peaks = np.concatenate(([0], np.cumsum(self._counts[:, 0])))
        self._points = np.concatenate(([0], np.cumsum(self._counts[:, 2])))
        peaks, around = int(self._peaks[-1]), file.header["around"]
        if (
            np.any(self._counts < 0)
            or {len(array) for array in self._found} != {peaks}
            or (file.size("letters"), file.size("profile")) != (peaks * around, self._points[-1])
        ):
            raise no_shard(file.path)
        self._letters = file.array("letters").reshape(peaks, around)

    def peaks(self, i: int, grid: Grid, points: int) -> PiecePeaks:
        """Peaks of piece ``i`` of this shard, which has so many points of a grid."""
        first, last = self._edges[i].tolist()
        own = slice(self._peaks[i], self._peaks[i + 1])
        starts, scores, origin = (array[own] for array in self._found)
        letters, end = self._letters[own], points - 1
        within = (starts >= 0) & (starts <= grid.last) & (origin >= 0) & (origin <= end)
        known = (scores >= 0) & (scores <= 1)
        if (
            self._counts[i, 1:].tolist() != [end, points]
            or not np.all(within & known)
            or np.any(letters > grid.rule.unknown)
        ):
            raise no_shard(self.file.path)
        return PiecePeaks(first, last, end, starts, scores, origin, letters)

    def profile(self, i: int) -> Floats:
        """Scores of the grid's windows in piece ``i``; NaN outside the parts."""
        span = int(self._points[i]), int(self._points[i + 1])
        scores = self.file.part("profile", *span).astype(np.float64)
        if np.any((scores < 0) | (scores > 1)):  # NaN is neither
            raise no_shard(self.file.path)
        return scores


_INPUTS = {
    "sequences": "from other sequences",
    "genes": "with other genes",
}
"""Entries of a header too long to state in an error, and what it is if they differ."""


def _check_header(file: ShardFile) -> None:
    """Raise an error for a header that `scan_shard` does not write."""
    header = file.header
    with reading_shard(file.path):
        ShardNumber(*header["share"])
        ScanOptions(**header["options"])
        rule = from_mapping(WindowRule, header["rule"])
        contigs = map(_contig_from_list, header["contigs"])
        if (
            header["counted"].keys() != {f.name for f in fields(ScanCounts)}
            or not all(map(is_whole, (rule.stride - 1, rule.window - 1, rule.unknown)))
            or any(contig.length < rule.window for contig in contigs)
        ):
            raise ValueError("no scan")


def _of_another_scan(file: ShardFile, first: ShardFile, reason: str) -> InputError:
    return InputError(
        f"is a shard of another scan than '{first.path}': {reason}",
        where=file.path,
        remedy="scan all shards with the same command, but for --shard and --out",
    )


def _difference(name: str, here: Any, there: Any) -> str:
    """What differs between two values of a header: settings, or the words of a command."""
    if isinstance(here, dict) and isinstance(there, dict):
        names = [key for key in there if here.get(key) != there[key]] or [name]
        return ", ".join(f"{key} {here.get(key)}, not {there.get(key)}" for key in names)
    if isinstance(here, list) and isinstance(there, list):
        own, missing = ([str(w) for w in a if w not in b] for a, b in ((here, there), (there, here)))
        if own or missing:
            return f"its {name} has {' '.join(own) or 'nothing'} in place of {' '.join(missing) or 'nothing'}"
    return f"its {name} is {here}, not {there}"


def check_shards(files: Sequence[ShardFile]) -> None:
    """Raise `InputError` for a file that is no shard or one of another scan, and for one twice or missing."""
    for file in files:
        _check_header(file)
    first, own = files[0], ("share", "counted", *_INPUTS)
    total = first.header["share"][1]
    keys = sorted((key for key in first.header if key not in own), key=lambda key: key != "command")
    seen: dict[int, str] = {}
    for file in files:
        for key in keys:
            if file.header.get(key) != first.header[key]:
                raise _of_another_scan(file, first, _difference(key, file.header.get(key), first.header[key]))
        for name, what in _INPUTS.items():
            if file.header[name] != first.header[name]:
                raise InputError(
                    f"was scanned {what} than '{first.path}'",
                    where=file.path,
                    remedy="scan all shards from the same, unchanged files",
                )
        number, of = file.header["share"]
        common = [file.header["counted"][key] == first.header["counted"][key] for key in _COMMON]
        if of != total or not all(common):
            reason = f"it is one of {of} shards, not of {total}" if of != total else "they read other records"
            raise _of_another_scan(file, first, reason)
        if number in seen:
            same = (
                "given twice"
                if seen[number] == file.path
                else f"shard {number}/{of}, and so is '{seen[number]}'"
            )
            raise InputError(f"is {same}", where=file.path, remedy="give each shard once")
        seen[number] = file.path
    missing = total - len(seen)
    if missing:
        first_few = islice((number for number in range(1, total + 1) if number not in seen), 5)
        which = ", ".join(f"{number}/{total}" for number in first_few)
        more = f" and {missing - 5} more" if missing > 5 else ""
        raise InputError(
            f"missing of {total} shards: {which}{more}",
            remedy="run 'seqray scan' for them",
        )


def gather_shards(files: Sequence[ShardFile], options: ScanOptions, callbacks: ScanCallbacks) -> ScanResult:
    """Join the shards of a scan.

    Parameters
    ----------
    files
        All of them, in any order; see `check_shards`.
    options
        Those of the scan.
    callbacks
        ``on_contig`` and ``on_profile`` are called in the order of the whole scan.

    Returns
    -------
    ScanResult
        To the bit that of the whole scan.
    """
    with reading_shard(files[0].path):
        return _gather(files, options, callbacks)


def _gather(files: Sequence[ShardFile], options: ScanOptions, callbacks: ScanCallbacks) -> ScanResult:
    header = files[0].header
    shards = [_Shard(file) for file in files]
    where = {tuple(place): (shard, i) for shard in shards for i, place in enumerate(shard.places.tolist())}
    rule, points = WindowRule(**header["rule"]), header["points"]

    def pieces(number: int, contig: Contig, grid: Grid, strand: str) -> Iterator[PiecePeaks]:
        for first in range(0, grid.points, points):
            shard, i = where[number, header["strands"].index(strand), first]
            last = min(first + points, grid.points)
            yield shard.peaks(i, grid, last - first)
            if callbacks.on_profile is not None:
                starts = grid.starts(first, last, strand)
                callbacks.on_profile(ScoreProfile.of(contig, grid, strand, starts, shard.profile(i)))

    before, after = header["extent"]
    calls = CallTable(header["label"], (before, after))
    contigs = list(map(_contig_from_list, header["contigs"]))
    for number, contig in enumerate(contigs):
        grid = Grid(contig.length, rule, circular=contig.circular)
        if callbacks.on_contig is not None:
            callbacks.on_contig(contig.name, contig.length)
        read = partial(pieces, number, contig, grid)
        add_calls(calls, contig, grid, options.strands, header["min_distance"], read)
    null = np.concatenate([file.array("null") for file in files])
    genes, threshold = _genes_from_list(header["genes"]), float(header["threshold"])
    return finalize_scan(calls, null, _sum_counts(files), options, threshold, rule, contigs, genes)


def _sum_counts(files: Sequence[ShardFile]) -> ScanCounts:
    counted: list[Mapping[str, int]] = [file.header["counted"] for file in files]
    names = [f.name for f in fields(ScanCounts)]
    return ScanCounts(
        **{name: counted[0][name] if name in _COMMON else sum(c[name] for c in counted) for name in names}
    )


def skipped_records(file: ShardFile) -> Iterator[SkippedRecord]:
    """The records that the scan skipped, which every shard lists."""
    for name, reason in file.header["skipped"]:
        yield SkippedRecord(name, reason)
