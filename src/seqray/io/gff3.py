"""GFF3."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import takewhile
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote, unquote

from seqray.core.errors import InputError
from seqray.core.results import Call
from seqray.core.text import format_number
from seqray.io.calls import call_ids, context_attributes, context_from_attributes, parse_number
from seqray.io.files import encode_text, open_output
from seqray.io.lines import Feature, is_pseudo, numbered_lines, parse_position
from seqray.io.tables import comment_lines, one_line

# Terms of the Sequence Ontology that a class of a model may be named after; GFF3 allows no other types.
GFF3_TYPES = frozenset(
    (
        *("promoter", "TSS", "enhancer", "silencer", "insulator", "terminator", "origin_of_replication"),
        *("TF_binding_site", "ribosome_entry_site", "polyA_site", "CpG_island"),
        *("five_prime_cis_splice_site", "three_prime_cis_splice_site"),
    )
)


def to_gff3(start: int, end: int) -> tuple[int, int]:
    """From 0-based and half-open to 1-based and closed."""
    return start + 1, end


def from_gff3(start: int, end: int) -> tuple[int, int]:
    """From 1-based and closed to 0-based and half-open."""
    return start - 1, end


# --------------------------------------------------------------------------------------------- writing


def _seqid(name: str) -> str:
    return quote(name, safe=".:^*$@!+_?-|")


def _attribute(text: str) -> str:
    return re.sub(r"[\x00-\x1f\x7f%;=&,]", lambda hit: f"%{ord(hit[0]):02X}", text)


def _line(contig: str, *cells: object) -> bytes:
    return encode_text("\t".join(map(str, (_seqid(contig), "seqray", *cells))) + "\n")


def _call_line(name: str, call: Call) -> bytes:
    kind = call.label if call.label in GFF3_TYPES else "sequence_feature"
    score, (site, _) = format_number(call.score), to_gff3(call.site, call.site)
    attributes = [f"ID={_attribute(name)}"]
    attributes += [f"label={_attribute(call.label)}"] if kind != call.label else []
    attributes += [f"{'tss' if call.label in ('promoter', 'TSS') else 'site'}={site}"]
    if call.context is None:
        attributes += [f"probability={score}"]
    else:
        known = context_attributes(call.context)
        attributes += [f"score={score}", *(f"{key}={_attribute(text)}" for key, text in known)]
    interval = to_gff3(call.start, call.end)
    return _line(call.contig, kind, *interval, score, call.strand, ".", ";".join(attributes))


def write_gff3(
    path: str | Path,
    calls: Iterable[Call],
    provenance: Sequence[str] = (),
    *,
    contigs: Mapping[str, int] | None = None,
    circular: Collection[str] = (),
) -> int:
    """Write calls as GFF3 features, and return how many.

    Parameters
    ----------
    path, provenance
        See `seqray.io.tables.open_table`.
    calls
        The features, in their order.
    contigs, circular
        Length of each contig scanned, for the ``##sequence-region`` lines, and names of the circular ones;
        each of these gets a ``region`` with ``Is_circular=true``.

    Notes
    -----
    The type is the class if it is a term of the Sequence Ontology (``promoter``), else ``sequence_feature``
    with the class as ``label``. ``tss`` (``site`` for other classes than promoters) is 1-based. A call of a
    locator has ``score`` and what its context knows; ``probability`` is then that of the context.
    """
    contigs, count = contigs or {}, 0
    with open_output(path) as handle:
        handle.write(b"##gff-version 3\n")
        for contig, length in contigs.items():
            handle.write(f"##sequence-region {_seqid(contig)} 1 {length}\n".encode())
        handle.write(comment_lines(provenance))
        for contig in (name for name in contigs if name in circular):
            text = f"ID={_attribute(contig)};Name={_attribute(contig)};Is_circular=true"
            whole = to_gff3(0, contigs[contig])
            handle.write(_line(contig, "region", *whole, ".", ".", ".", text))
        for count, (name, call) in enumerate(call_ids(calls), start=1):  # noqa: B007
            handle.write(_call_line(name, call))
    return count


# --------------------------------------------------------------------------------------------- reading


class Gff3Row(NamedTuple):
    """One line of a GFF3 file, its interval 0-based and half-open; the strand and phase are as written."""

    where: str
    contig: str
    kind: str
    start: int
    end: int
    strand: str
    phase: str
    attributes: dict[str, str]


def parse_gff3_row(line: str, where: str) -> Gff3Row:
    """Read one line.

    Raises `InputError` unless it has nine columns, and positions that are whole numbers.
    """
    cells = line.split("\t")
    if len(cells) != 9:
        raise InputError(
            f"has {len(cells)} columns", where=where, remedy="GFF3 needs nine, separated by tabs"
        )
    pairs = (part.partition("=") for part in cells[8].split(";"))
    attributes = {key.strip(): unquote(value) for key, _, value in pairs}
    start, end = parse_position(cells[3], where), parse_position(cells[4], where)
    interval, (strand, phase) = from_gff3(start, end), cells[6:8]
    return Gff3Row(where, unquote(cells[0]), cells[2], *interval, strand, phase, attributes)


def require_interval(row: Gff3Row) -> None:
    """Raise `InputError` for an interval that begins before the first letter, or is empty."""
    start, end = to_gff3(row.start, row.end)
    if start < 1:
        raise InputError(f"has the interval {start}-{end}", where=row.where, remedy="GFF3 counts from 1")
    if end < start:
        raise InputError(
            f"has the interval {start}-{end}, whose end lies before the start",
            where=row.where,
            remedy="write the smaller position first; across an origin, let the end exceed the length",
        )


def lines_before_fasta(lines: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Lines (place, text) up to one with ``>``, which begins letters also without ``##FASTA``."""
    return takewhile(lambda line: not line[1].startswith(">"), lines)


def _rows(lines: Iterable[tuple[str, str]]) -> Iterator[Gff3Row]:
    return (parse_gff3_row(line, where) for where, line in lines_before_fasta(lines))


def parse_gff3_features(lines: Iterable[tuple[str, str]]) -> list[Feature]:
    """Every feature of GFF3, in the order of the lines; a feature of several lines gives as many intervals.

    Raises `InputError` with the line for a line that isn't GFF3.
    """
    features = []
    for row in _rows(lines):
        require_interval(row)
        strand = row.strand if row.strand in ("+", "-") else "."
        name = row.attributes.get("ID", "")
        pseudo = is_pseudo(row.kind, row.attributes)
        features.append(Feature(row.contig, row.start, row.end, name, strand, row.kind, pseudo))
    return features


def read_gff3_calls(path: str | Path) -> list[Call]:
    """Read the calls that `write_gff3` wrote, with their contexts.

    Features without a site, or with neither score nor probability among their attributes, are ignored. Raises
    `InputError` with the line for a line that isn't GFF3.
    """
    calls = (_call(row) for row in _rows(numbered_lines(path)))
    return [call for call in calls if call is not None]


def read_circular(path: str | Path) -> frozenset[str]:
    """Read the names of the contigs that `write_gff3`, or another, calls circular; errors as above."""
    rows = _rows(numbered_lines(path))
    return frozenset(row.contig for row in rows if is_circular(row))


def is_circular(row: Gff3Row) -> bool:
    """Whether a line says that its contig, of which it is all, is circular."""
    return row.attributes.get("Is_circular", "").lower() == "true"


def _call(row: Gff3Row) -> Call | None:
    attributes = row.attributes
    text = attributes.get("tss", attributes.get("site"))
    name = "score" if "score" in attributes else "probability"
    if text is None or name not in attributes:
        return None
    position = parse_position(text, row.where)
    return Call(
        contig=row.contig,
        start=row.start,
        end=row.end,
        strand=row.strand,
        site=from_gff3(position, position)[0],
        score=parse_number(attributes[name], name, row.where),
        label=attributes.get("label", row.kind),
        context=context_from_attributes(attributes, row.where) if name == "score" else None,
        id=one_line(attributes.get("ID", "")),
    )
