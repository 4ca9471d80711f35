"""Scan in shards that together give the result of the whole scan.

The shards can run anywhere and in any order. Steps that depend on more than one unit of the work (which of
two neighboring peaks is kept, the threshold for a false discovery rate, the calls to expect by chance) are
left to `gather_shards`, which needs neither model nor sequences.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, astuple, fields
from functools import partial
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt

from seqray.annotation import Annotation, Gene
from seqray.core import Floats, InputError, Intervals, SequenceRecord, from_mapping
from seqray.core.results import SkippedRecord
from seqray.scanning.calls import CallTable
from seqray.scanning.detector import Detector
from seqray.scanning.finalize import add_calls, finalize_scan
from seqray.scanning.options import ScanCallbacks, ScanOptions, ShardNumber
from seqray.scanning.peak_finder import PiecePeaks
from seqray.scanning.results import Contig, ScanCounts, ScanResult, ScoreProfile
from seqray.scanning.scanner import Scanner
from seqray.scanning.shard_file import ShardFile, is_whole, no_shard, reading_shard
from seqray.scanning.windows import Grid, WindowRule

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
