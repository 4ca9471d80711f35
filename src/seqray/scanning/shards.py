"""Shards of a divided scan: safetensors files with a header and a checksum, and how they are joined."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, astuple
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from seqray.core.card_parts import LocatorFacts
from seqray.core.errors import InputError
from seqray.core.records import Contig, Intervals, SequenceRecord
from seqray.core.serialization import from_mapping
from seqray.genome.genes import Annotation, Gene
from seqray.io.files import write_file
from seqray.scanning.contigs import Grid, ScoreProfile
from seqray.scanning.options import ScanCallbacks, ScanOptions, ShardNumber
from seqray.scanning.results import CallTable, ScanCounts, ScanResult, finish_scan
from seqray.scanning.scan import PiecePeaks, Scan, join_pieces
from seqray.scanning.scorers import Scorer
from seqray.scanning.words import judge

SHARD_FORMAT = 5
_KEY, _CHECKSUM = "seqray_shard", "checksum"
_REMEDY = "give the files that 'seqray scan --shard' wrote"
_AT_ONCE = 1 << 20  # entries of an array that are in memory while it is checked
_ARRAYS = ("places", "counts", "starts", "origin", "edges", "scores", "null", "letters", "profile")
# Counted by every shard alike; all other counts are summed.
_COMMON = ("contigs", "letters", "null_positions")
# Entries of a header too long to state in an error, and what the shard is if they differ.
_INPUTS = {"sequences": "from other sequences", "genes": "with other genes"}


def scan_shard(
    scorer: Scorer, records: Iterable[SequenceRecord], callbacks: ScanCallbacks, shard: ShardNumber
) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
    """Scan one shard of all ``records``: header, to which the caller may add, arrays for `write_shard`."""
    scan, options = Scan(scorer, callbacks, shard), scorer.options
    places: list[tuple[int, int, int]] = []  # contig, strand, first grid point
    pieces: list[PiecePeaks] = []
    profiles: list[npt.NDArray[np.float32]] = []  # the precision of a track
    with scorer.running():
        for contig, opened in scan.open(records):
            for number, strand in enumerate(options.strands):
                for first, peaks, profile in scan.pieces(contig, opened, strand):
                    places.append((len(scan.contigs) - 1, number, first))
                    pieces.append(peaks)
                    profiles.append(profile.scores.astype(np.float32))
            del opened  # else it is in memory while the next record is read
        null_scores = scan.null_scores()
    annotation, (window, site, stride) = scan.genes, scorer.grid
    header = {
        "share": [shard.number, shard.total],
        "label": scorer.label,
        "extent": list(scorer.extent),
        "around": scorer.around,
        "genes": []
        if annotation is None
        else [annotation.source, {name: [*map(astuple, genes)] for name, genes in annotation.genes.items()}],
        "rule": {
            "window": window,
            "site": site,
            "stride": stride,
            "max_ambiguous": scorer.max_ambiguous,
            "unknown": scorer.alphabet.unknown,
            "cutoffs": asdict(scorer.cutoffs) if scorer.cutoffs else None,
        },
        "points": scan.piece_points,
        "min_distance": scorer.min_distance,
        "threshold": scorer.threshold,
        "strands": list(options.strands),
        "contigs": [
            [contig.name, contig.length, contig.circular, contig.parts and contig.parts.pairs()]
            for contig in scan.contigs
        ],
        "sequences": scan.checksum,
        "counted": asdict(scan.counts),
    }
    counts = [(len(p.starts), p.end, len(profile)) for p, profile in zip(pieces, profiles, strict=True)]
    arrays = {
        "places": np.array(places, np.int64).reshape(-1),
        "edges": np.array([(p.first, p.last) for p in pieces], np.float64).reshape(-1),
        "counts": np.array(counts, np.int64).reshape(-1),
        "starts": np.concatenate([np.empty(0, np.int64), *(p.starts for p in pieces)]),
        "scores": np.concatenate([np.empty(0), *(p.scores for p in pieces)]),
        "origin": np.concatenate([np.empty(0, np.int64), *(p.candidates for p in pieces)]),
        "letters": np.concatenate([np.empty(0, np.uint8), *(p.letters.reshape(-1) for p in pieces)]),
        "profile": np.concatenate([np.empty(0, np.float32), *profiles]),
        "null": null_scores,
    }
    return header, arrays


def write_shard(path: str | Path, header: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]) -> None:
    """Write one shard: a header of JSON types, and one-dimensional arrays by name."""
    from safetensors.numpy import save

    known = {"format": SHARD_FORMAT, **header}
    text = _to_json(known | {_CHECKSUM: _checksum(known, ((name, [arrays[name]]) for name in _ARRAYS))})
    write_file(path, save({name: np.ascontiguousarray(a) for name, a in arrays.items()}, {_KEY: text}))


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


class ShardFile(ExitStack):
    """A shard, read piece by piece; use it in ``with``."""

    def __init__(self, path: str | Path) -> None:
        from safetensors import SafetensorError, safe_open

        super().__init__()
        self.path = str(path)
        if not Path(path).is_file():
            other = "is a pipe or a device" if Path(path).exists() else "no such file"
            missing = "is a directory" if Path(path).is_dir() else other
            raise InputError(missing, where=self.path, remedy=_REMEDY)
        try:
            self._file: Any = self.enter_context(safe_open(self.path, framework="numpy"))
            header = json.loads((self._file.metadata() or {})[_KEY])
            version, checksum = header.get("format"), header.pop(_CHECKSUM, None)
        except OSError as error:
            raise InputError(f"can't be read ({error.strerror or error})", where=self.path) from None
        except (KeyError, AttributeError):
            raise InputError("is no shard of a scan", where=self.path, remedy=_REMEDY) from None
        except UnicodeEncodeError:  # of the library, which takes no others
            raise InputError("has a name that is not UTF-8", where=self.path, remedy="rename it") from None
        except (SafetensorError, ValueError, RecursionError):
            what = "is no shard of a scan, or is cut short"
            remedy = "run its scan again (tables of 'seqray predict' are joined without gather)"
            raise InputError(what, where=self.path, remedy=remedy) from None
        if version != SHARD_FORMAT:
            remedy = "gather with the version of seqray that scanned"
            raise InputError(f"is a shard of format {version}", where=self.path, remedy=remedy)
        if set(_ARRAYS) != set(self._file.keys()) or checksum != _checksum(
            header, ((name, self._parts(name)) for name in _ARRAYS)
        ):
            what = "is damaged: its checksum does not match"
            raise InputError(what, where=self.path, remedy="run its scan again")
        self.header: dict[str, Any] = header

    def array(self, name: str, start: int = 0, end: int | None = None) -> npt.NDArray[Any]:
        """One array, or a part of it and nothing else."""
        return self._file.get_tensor(name) if end is None else self._file.get_slice(name)[start:end]

    def _parts(self, name: str) -> Iterator[npt.NDArray[Any]]:
        size = self._file.get_slice(name).get_shape()[0]
        return (self.array(name, i, min(i + _AT_ONCE, size)) for i in range(0, size, _AT_ONCE))


# --- Join the shards of a scan


def check_shards(files: Sequence[ShardFile]) -> None:
    """Raise `InputError` for a file of another scan, and for one twice or missing."""
    first, own = files[0], ("share", "counted", *_INPUTS)
    total = first.header["share"][1]
    keys = sorted((key for key in first.header if key not in own), key=lambda key: key != "command")
    seen: dict[int, str] = {}
    for file in files:
        number, of = file.header["share"]
        other = next((key for key in keys if file.header.get(key) != first.header[key]), None)
        reason = other and _difference(other, file.header.get(other), first.header[other])
        for name, what in _INPUTS.items():
            if not reason and file.header[name] != first.header[name]:
                remedy = "scan all shards from the same, unchanged files"
                raise InputError(f"was scanned {what} than '{first.path}'", where=file.path, remedy=remedy)
        if not reason and of != total:
            reason = f"it is one of {of} shards, not of {total}"
        counted = [[shard.header["counted"][key] for key in _COMMON] for shard in (file, first)]
        if reason or counted[0] != counted[1]:
            what = f"is a shard of another scan than '{first.path}': {reason or 'they read other records'}"
            remedy = "scan all shards with the same command, but for --shard and --out"
            raise InputError(what, where=file.path, remedy=remedy)
        if number in seen:
            same = f"shard {number}/{of}, and so is '{seen[number]}'"
            same = "given twice" if seen[number] == file.path else same
            raise InputError(f"is {same}", where=file.path, remedy="give each shard once")
        seen[number] = file.path
    if missing := total - len(seen):
        few = islice((number for number in range(1, total + 1) if number not in seen), 5)
        which = ", ".join(f"{number}/{total}" for number in few)
        more = f" and {missing - 5} more" if missing > 5 else ""
        what = f"missing of {total} shards: {which}{more}"
        raise InputError(what, remedy="run 'seqray scan' for them")


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


class _Pieces:
    """The pieces of one shard."""

    def __init__(self, file: ShardFile) -> None:
        self.places = [tuple(place) for place in file.array("places").reshape(-1, 3).tolist()]
        self._file, self._edges = file, file.array("edges").reshape(-1, 2)
        self._counts = file.array("counts").reshape(-1, 3)
        self._ends = np.concatenate(([[0, 0, 0]], np.cumsum(self._counts, axis=0)))
        # Read whole: they are few, and safetensors rejects an empty slice at the end of an array.
        letters = file.array("letters").reshape(-1, file.header["around"]) if file.header["around"] else None
        self._columns = [file.array(name) for name in ("starts", "scores", "origin")]
        self._columns.append(np.empty((len(self._columns[0]), 0), np.uint8) if letters is None else letters)

    def peaks(self, i: int) -> PiecePeaks:
        first, last = self._edges[i].tolist()
        own = slice(self._ends[i, 0], self._ends[i + 1, 0])
        return PiecePeaks(first, last, int(self._counts[i, 1]), *(column[own] for column in self._columns))

    def scores(self, i: int) -> npt.NDArray[np.float64]:
        """Scores of the grid's windows; NaN outside the parts of the contig."""
        return self._file.array("profile", int(self._ends[i, 2]), int(self._ends[i + 1, 2])).astype(
            np.float64
        )


def gather_shards(files: Sequence[ShardFile], callbacks: ScanCallbacks) -> ScanResult:
    """Join all shards of a scan, in any order: to the bit the result of the whole; see `check_shards`."""
    header, shards = files[0].header, [*map(_Pieces, files)]
    where = {place: (shard, i) for shard in shards for i, place in enumerate(shard.places)}
    options, points = ScanOptions(**header["options"]), header["points"]
    window, site, stride = (header["rule"][name] for name in ("window", "site", "stride"))
    before, after = header["extent"]
    calls, contigs = CallTable(header["label"], (before, after)), list[Contig]()
    for number, (name, length, circular, pairs) in enumerate(header["contigs"]):
        parts = None if pairs is None else Intervals.merge(map(tuple, pairs))
        contig = Contig(name, length, circular, parts)
        grid = Grid(length, window, site, stride, circular=circular)
        contigs.append(contig)
        if callbacks.on_contig is not None:
            callbacks.on_contig(name, length)
        strands = []
        for at, strand in enumerate(options.strands):
            pieces = []
            for first in range(0, grid.points, points):
                shard, i = where[number, at, first]
                pieces.append(shard.peaks(i))
                if callbacks.on_profile is not None:
                    starts = grid.starts(first, first + points, strand)
                    profile = ScoreProfile.of(contig, grid, strand, starts, shard.scores(i))
                    callbacks.on_profile(profile)
            strands.append((strand, *join_pieces(grid, strand, pieces, header["min_distance"])))
        calls.add(contig, strands)
    annotation = None
    if header["genes"]:
        source, genes = header["genes"]
        annotation = Annotation(
            {name: tuple(Gene(*row) for row in rows) for name, rows in genes.items()}, source
        )
    counted = [file.header["counted"] for file in files]
    sums = {name: sum(counts[name] for counts in counted) for name in counted[0] if name not in _COMMON}
    result = finish_scan(
        calls,
        np.concatenate([file.array("null") for file in files]),
        ScanCounts(**{**counted[0], **sums}),
        contigs,
        options,
        float(header["threshold"]),
        from_positions=window == 1,
        genes=annotation,
        figures=from_mapping(LocatorFacts, header["expected"], "expected"),
        species=header["species"],
        foreign=header["foreign"],
    )
    judge(result, header["findings"])
    return result
