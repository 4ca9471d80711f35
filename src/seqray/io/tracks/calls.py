"""Calls and intervals as tracks: GFF3, BED, TSV. The only place where coordinates are converted.

Inside seqray, in TSV, BED, bedGraph and bigWig positions are 0-based and half-open; in GFF3 they are
1-based and closed. Both are always on the plus strand of the named sequence.

A call across the origin of a circular contig has an ``end`` beyond the contig's length. GFF3 keeps it so, as
its specification asks, and marks the contig by a feature with ``Is_circular=true``; the TSV keeps it too. BED
knows no circle: the call becomes two lines of one name, up to the end of the contig and from its start.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from urllib.parse import quote, unquote

from seqray.core import InputError
from seqray.core.results import Call
from seqray.io.files import open_input, open_output
from seqray.io.tables import comment_lines, format_number

NO_CONTIGS: Mapping[str, int] = MappingProxyType({})

# Terms of the Sequence Ontology that a class of a model may be named after; GFF3 takes no other types.
GFF3_TYPES = frozenset(
    (
        *("promoter", "TSS", "enhancer", "silencer", "insulator", "terminator", "origin_of_replication"),
        *("TF_binding_site", "ribosome_entry_site", "polyA_site", "CpG_island"),
        *("five_prime_cis_splice_site", "three_prime_cis_splice_site"),
    )
)
CALL_COLUMNS = ("id", "contig", "start", "end", "strand", "site", "score", "label")
BED_COLUMNS = ("chrom", "chromStart", "chromEnd", "name", "score", "strand", "probability", "site")


@dataclass(frozen=True, slots=True)
class Interval:
    """A line of a BED file or a feature: 0-based, half-open; ``strand`` is ``+``, ``-`` or ``.``.

    ``kind`` is the type of a feature (``gene``, ``CDS``), empty for a line of a BED file.
    """

    contig: str
    start: int
    end: int
    name: str = ""
    strand: str = "."
    kind: str = ""


def call_ids(calls: Iterable[Call]) -> Iterator[tuple[str, Call]]:
    """Number calls from 1 in their order: ``promoter_1`` ..; the same in every format of one run."""
    for number, call in enumerate(calls, start=1):
        yield f"{'_'.join(call.label.split())}_{number}", call


# ------------------------------------------------------------------------------------------------ TSV


def write_calls_tsv(path: str | Path, calls: Iterable[Call], provenance: Sequence[str] = ()) -> int:
    """Write calls as a table, 0-based and half-open, and return how many."""
    with open_output(path) as handle:
        handle.write(comment_lines(provenance) + ("\t".join(CALL_COLUMNS) + "\n").encode())
        count = 0
        for name, c in call_ids(calls):
            cells = (name, c.contig, c.start, c.end, c.strand, c.site, format_number(c.score), c.label)
            handle.write(("\t".join(map(str, cells)) + "\n").encode())
            count += 1
    return count


# ------------------------------------------------------------------------------------------------ BED


def _within_contig(call: Call, length: int | None) -> list[tuple[int, int]]:
    """The call's interval, or the two that a run across the origin leaves."""
    if length is None or call.end <= length:
        return [(call.start, call.end)]
    return [(call.start, length), (0, call.end - length)]


def write_bed(
    path: str | Path,
    calls: Iterable[Call],
    provenance: Sequence[str] = (),
    *,
    contigs: Mapping[str, int] = NO_CONTIGS,
) -> int:
    """Write calls as BED6 and two more columns, and return how many calls (not lines).

    Parameters
    ----------
    contigs
        Length of each contig; calls across the origin of a circular one need it to be split.

    Notes
    -----
    Columns: chrom, chromStart, chromEnd, name, score (probability times 1000, rounded), strand,
    probability, site (0-based).
    """
    count = 0
    with open_output(path) as handle:
        handle.write(comment_lines(provenance) + ("#" + "\t".join(BED_COLUMNS) + "\n").encode())
        for name, c in call_ids(calls):
            rest = f"{name}\t{round(1000 * c.score)}\t{c.strand}\t{format_number(c.score)}\t{c.site}\n"
            for start, end in _within_contig(c, contigs.get(c.contig)):
                handle.write(f"{c.contig}\t{start}\t{end}\t{rest}".encode())
            count += 1
    return count


def _numbered_lines(path: str | Path) -> Iterator[tuple[str, str]]:
    """Place (``file: line 3``) and text of each line that holds data."""
    with open_input(path) as handle:
        for number, raw in enumerate(handle, start=1):
            where = f"{path}: line {number}"
            try:
                line = raw.decode("utf-8").rstrip("\r\n")
            except UnicodeDecodeError:
                raise InputError("is not text in UTF-8", where=where) from None
            if line.startswith("##FASTA"):
                return
            if line.strip() and not line.startswith("#"):
                yield where, line


def _integer(text: str, where: str) -> int:
    if not re.fullmatch(r"[0-9]{1,18}", text):
        raise InputError(f"has '{text}' where a position belongs", where=where)
    return int(text)


def read_bed(path: str | Path) -> list[Interval]:
    """Read the intervals of a BED file; ``track`` and ``browser`` lines are passed over.

    Raises
    ------
    InputError
        Naming file and line, for too few columns, a position that is no number, or an empty interval.
    """
    intervals = []
    for where, line in _numbered_lines(path):
        if line.split(maxsplit=1)[0] in ("track", "browser"):
            continue
        cells = line.split("\t") if "\t" in line else line.split()
        if len(cells) < 3:
            raise InputError(
                f"has {len(cells)} columns", where=where, remedy="BED needs contig, start and end"
            )
        start, end = _integer(cells[1], where), _integer(cells[2], where)
        if start >= end:
            raise InputError(f"has the empty interval {start}-{end}", where=where)
        name, strand = (cells[3] if len(cells) > 3 else ""), (cells[5] if len(cells) > 5 else ".")
        if strand not in ("+", "-", "."):
            raise InputError(f"has the strand '{strand}'", where=where, remedy="use +, - or .")
        intervals.append(Interval(cells[0], start, end, name, strand))
    return intervals


# ----------------------------------------------------------------------------------------------- GFF3


def _seqid(name: str) -> str:
    return quote(name, safe=".:^*$@!+_?-|")


def _attribute(text: str) -> str:
    return re.sub(r"[\x00-\x1f\x7f%;=&,]", lambda hit: f"%{ord(hit[0]):02X}", text)


def _site_name(label: str) -> str:
    return "tss" if label in ("promoter", "TSS") else "site"


def _gff3_line(name: str, call: Call, source: str) -> str:
    kind = call.label if call.label in GFF3_TYPES else "sequence_feature"
    score = format_number(call.score)
    attributes = [f"ID={_attribute(name)}"]
    attributes += [f"label={_attribute(call.label)}"] if kind != call.label else []
    attributes += [f"{_site_name(call.label)}={call.site + 1}", f"probability={score}"]
    cells = (_seqid(call.contig), source, kind, call.start + 1, call.end, score, call.strand, ".")
    return "\t".join(map(str, cells)) + "\t" + ";".join(attributes) + "\n"


def write_gff3(
    path: str | Path,
    calls: Iterable[Call],
    provenance: Sequence[str] = (),
    source: str = "seqray",
    *,
    contigs: Mapping[str, int] = NO_CONTIGS,
    circular: Collection[str] = (),
) -> int:
    """Write calls as GFF3 features, and return how many.

    Parameters
    ----------
    contigs
        Length of each contig scanned, for the ``##sequence-region`` lines.
    circular
        Names of the contigs that are circles; each gets a ``region`` with ``Is_circular=true``.

    Notes
    -----
    The type is the class where the Sequence Ontology knows it (``promoter``), else ``sequence_feature`` with
    the class as ``label``. ``tss`` (``site`` for other classes than promoters) is 1-based.
    """
    count = 0
    with open_output(path) as handle:
        handle.write(b"##gff-version 3\n")
        for contig, length in contigs.items():
            handle.write(f"##sequence-region {_seqid(contig)} 1 {length}\n".encode())
        handle.write(comment_lines(provenance))
        for contig in (name for name in contigs if name in circular):
            attributes = f"ID={_attribute(contig)};Name={_attribute(contig)};Is_circular=true"
            cells = (_seqid(contig), source, "region", 1, contigs[contig], ".", ".", ".", attributes)
            handle.write(("\t".join(map(str, cells)) + "\n").encode())
        for name, call in call_ids(calls):
            handle.write(_gff3_line(name, call, source).encode())
            count += 1
    return count


def _gff3_call(line: str, where: str) -> Call | None:
    cells = line.split("\t")
    if len(cells) != 9:
        raise InputError(f"has {len(cells)} columns", where=where, remedy="GFF3 needs nine, parted by tabs")
    pairs = (part.partition("=") for part in cells[8].split(";"))
    attributes = {key.strip(): unquote(value) for key, _, value in pairs}
    site = attributes.get("tss", attributes.get("site"))
    if site is None or "probability" not in attributes:
        return None
    return Call(
        contig=unquote(cells[0]),
        start=_integer(cells[3], where) - 1,
        end=_integer(cells[4], where),
        strand=cells[6],
        site=_integer(site, where) - 1,
        score=_probability(attributes["probability"], where),
        label=attributes.get("label", cells[2]),
    )


def _probability(text: str, where: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InputError(f"has the probability '{text}'", where=where) from None


def read_gff3_calls(path: str | Path) -> list[Call]:
    """Read back what `write_gff3` wrote; features without a site and a probability are passed over.

    Raises
    ------
    InputError
        Naming file and line, for a line that isn't GFF3.
    """
    calls = (_gff3_call(line, where) for where, line in _numbered_lines(path))
    return [call for call in calls if call is not None]


def _gff3_feature(line: str, where: str) -> Interval:
    cells = line.split("\t")
    if len(cells) != 9:
        raise InputError(f"has {len(cells)} columns", where=where, remedy="GFF3 needs nine, parted by tabs")
    start, end = _integer(cells[3], where), _integer(cells[4], where)
    if start < 1 or end < start:
        raise InputError(f"has the interval {start}-{end}", where=where, remedy="GFF3 counts from 1")
    pairs = (part.partition("=") for part in cells[8].split(";"))
    attributes = {key.strip(): unquote(value) for key, _, value in pairs}
    strand = cells[6] if cells[6] in ("+", "-") else "."
    return Interval(unquote(cells[0]), start - 1, end, attributes.get("ID", ""), strand, cells[2])


def read_gff3_features(path: str | Path) -> list[Interval]:
    """Read every feature of a GFF3 file, in its order; a feature of several lines gives as many intervals.

    Raises
    ------
    InputError
        Naming file and line, for a line that isn't GFF3.
    """
    return [_gff3_feature(line, where) for where, line in _numbered_lines(path)]
