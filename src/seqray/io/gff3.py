"""GFF3: calls out and in, and features of genomes in."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import takewhile
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote, unquote

from seqray.core.errors import InputError
from seqray.core.results import Call
from seqray.core.text import format_number
from seqray.io.calls import call_ids, context_attributes, context_from_attributes, parse_number
from seqray.io.files import display_name, encode_text, open_input, open_output
from seqray.io.lines import (
    AnnotatedFeature,
    AnnotatedFile,
    Feature,
    Part,
    ScanStatement,
    decoded_lines,
    is_position,
    is_pseudo,
    parse_position,
    turn_at_origin,
)
from seqray.io.tables import comment_lines, one_line

# Terms of the Sequence Ontology that a class of a model may be named after; GFF3 allows no other types.
GFF3_TYPES = frozenset(
    (
        *("promoter", "TSS", "enhancer", "silencer", "insulator", "terminator", "origin_of_replication"),
        *("TF_binding_site", "ribosome_entry_site", "polyA_site", "CpG_island"),
        *("five_prime_cis_splice_site", "three_prime_cis_splice_site"),
    )
)

# ----------------------------------------------------------------------------------------- calls, out and in


def write_gff3(
    path: str | Path,
    calls: Iterable[Call],
    provenance: Sequence[str] = (),
    *,
    contigs: Mapping[str, int] | None = None,
    circular: Collection[str] = (),
) -> int:
    """Write calls as GFF3 features, and return how many.

    The type is the class if it is a term of the Sequence Ontology (``promoter``), else ``sequence_feature``
    with the class as ``label``. ``tss`` (``site`` for other classes than promoters) is 1-based. A call of a
    locator has ``score`` and what its context knows; ``probability`` is then that of the context. Each of
    the ``contigs``, given with their lengths, has a line ``##sequence-region``; a circular one also gets a
    ``region`` with ``Is_circular=true``.
    """
    contigs, count = contigs or {}, 0
    with open_output(path) as handle:
        handle.write(b"##gff-version 3\n")
        for contig, length in contigs.items():
            handle.write(f"##sequence-region {_seqid(contig)} 1 {length}\n".encode())
        handle.write(comment_lines(provenance))
        for contig in (name for name in contigs if name in circular):
            text = f"ID={_attribute(contig)};Name={_attribute(contig)};Is_circular=true"
            handle.write(_line(contig, "region", 1, contigs[contig], ".", ".", ".", text))
        for count, (name, call) in enumerate(call_ids(calls), start=1):  # noqa: B007
            handle.write(_call_line(name, call))
    return count


def _seqid(name: str) -> str:
    return quote(name, safe=".:^*$@!+_?-|")


def _attribute(text: str) -> str:
    return re.sub(r"[\x00-\x1f\x7f%;=&,]", lambda hit: f"%{ord(hit[0]):02X}", text)


def _line(contig: str, *cells: object) -> bytes:
    return encode_text("\t".join(map(str, (_seqid(contig), "seqray", *cells))) + "\n")


def _call_line(name: str, call: Call) -> bytes:
    kind = call.label if call.label in GFF3_TYPES else "sequence_feature"
    score = format_number(call.score)
    attributes = [f"ID={_attribute(name)}"]
    attributes += [f"label={_attribute(call.label)}"] if kind != call.label else []
    attributes += [f"{'tss' if call.label in ('promoter', 'TSS') else 'site'}={call.site + 1}"]
    if call.context is None:
        attributes += [f"probability={score}"]
    else:
        stated = context_attributes(call.context)
        attributes += [f"score={score}", *(f"{key}={_attribute(text)}" for key, text in stated)]
    return _line(call.contig, kind, call.start + 1, call.end, score, call.strand, ".", ";".join(attributes))


class CalledFile(NamedTuple):
    """Calls of a scan with their contexts, the contigs that their file calls circular, and what it states."""

    calls: list[Call]
    circular: frozenset[str]
    statement: ScanStatement


def read_called(path: str | Path) -> CalledFile:
    """Read what `write_gff3` wrote; circular contigs may be those of another program.

    Features without a site, or with neither score nor probability among their attributes, are ignored. Raises
    `InputError` with the line for a line that isn't GFF3.
    """
    calls, circular, header = list[Call](), set[str](), list[str]()
    is_header = True
    with open_input(path) as handle:
        for where, line in _before_fasta(decoded_lines(handle, display_name(path))):
            if line.startswith("#"):
                header += [line] * is_header
                continue
            row, is_header = _parse_row(line, where), False
            if row.is_circular:
                circular.add(row.contig)
            attributes = row.attributes
            site = attributes.get("tss", attributes.get("site"))
            name = "score" if "score" in attributes else "probability"
            if site is not None and name in attributes:
                call = Call(
                    contig=row.contig,
                    start=row.start,
                    end=row.end,
                    strand=row.strand,
                    site=parse_position(site, where) - 1,
                    score=parse_number(attributes[name], name, where),
                    label=attributes.get("label", row.kind),
                    context=context_from_attributes(attributes, where) if name == "score" else None,
                    id=one_line(attributes.get("ID", "")),
                )
                calls.append(call)
    return CalledFile(calls, frozenset(circular), ScanStatement.of(path, header))


# ------------------------------------------------------------------------------------------------- rows


class _Row(NamedTuple):
    """One line of a GFF3 file, its interval 0-based and half-open; the strand and phase are as written."""

    where: str
    contig: str
    kind: str
    start: int
    end: int
    strand: str
    phase: str
    attributes: dict[str, str]

    @property
    def is_circular(self) -> bool:
        """Whether the line says that its contig, of which it is all, is circular."""
        return self.attributes.get("Is_circular", "").lower() == "true"

    @property
    def part(self) -> Part:
        return Part(self.start, self.end, self.strand)

    @property
    def open_ends(self) -> tuple[bool, bool]:
        """Whether the left and the right end lie elsewhere, as NCBI or Prodigal write it."""
        flags = self.attributes.get("partial", "")
        if flags in ("01", "10", "11"):
            return flags[0] == "1", flags[1] == "1"
        left, right = self.attributes.get("start_range", ""), self.attributes.get("end_range", "")
        return left.startswith("."), right.endswith(".")

    def require_interval(self) -> None:
        """Raise `InputError` for an interval that begins before the first letter, or is empty."""
        what = f"has the interval {self.start + 1}-{self.end}"
        if self.start < 0:
            raise InputError(what, where=self.where, remedy="GFF3 counts from 1")
        if self.end <= self.start:
            raise InputError(
                f"{what}, whose end lies before the start",
                where=self.where,
                remedy="write the smaller position first; across an origin, let the end exceed the length",
            )


def _parse_row(line: str, where: str) -> _Row:
    """Read a line; raises `InputError` unless it has nine columns, and positions that are whole numbers."""
    cells = line.split("\t")
    if len(cells) != 9:
        raise InputError(
            f"has {len(cells)} columns", where=where, remedy="GFF3 needs nine, separated by tabs"
        )
    pairs = (part.partition("=") for part in cells[8].split(";"))
    attributes = {key.strip(): unquote(value) for key, _, value in pairs}
    start, end = parse_position(cells[3], where) - 1, parse_position(cells[4], where)
    return _Row(where, unquote(cells[0]), cells[2], start, end, cells[6], cells[7], attributes)


def _before_fasta(lines: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Lines (place, text) up to one with ``>``, which begins letters also without ``##FASTA``."""
    return takewhile(lambda line: not line[1].startswith(">"), lines)


def _rows(lines: Iterable[tuple[str, str]]) -> Iterator[_Row]:
    return (_parse_row(line, where) for where, line in _before_fasta(lines))


# --------------------------------------------------------------------------------------------- features


def parse_gff3_features(lines: Iterable[tuple[str, str]]) -> list[Feature]:
    """Every feature of GFF3, in the order of the lines; a feature of several lines gives as many intervals.

    Raises `InputError` with the line for a line that isn't GFF3.
    """
    features = []
    for row in _rows(lines):
        row.require_interval()
        strand = row.strand if row.strand in ("+", "-") else "."
        pseudo = is_pseudo(row.kind, row.attributes)
        name = row.attributes.get("ID", "")
        features.append(Feature(row.contig, row.start, row.end, name, strand, row.kind, pseudo))
    return features


def parse_gff3_annotation(
    handle: Iterable[bytes], name: str, wanted: Callable[[str], bool], circles: Mapping[str, int]
) -> AnnotatedFile:
    """Features of the wanted kinds, whose lines are joined; see `seqray.io.features.read_annotated`."""
    lengths: dict[str, int] = {}
    circular: set[str] = set()
    others: dict[str, None] = {}
    groups: dict[tuple[str, ...], list[_Row]] = {}
    for where, line in _before_fasta(decoded_lines(handle, name)):
        if line.startswith("#"):
            words = line.split()
            if len(words) == 4 and words[::2] == ["##sequence-region", "1"] and is_position(words[3]):
                lengths[unquote(words[1])] = int(words[3])
            continue
        row = _parse_row(line, where)
        if row.is_circular:
            circular.add(row.contig)
            lengths[row.contig] = row.end
        if not wanted(row.kind):
            others[row.kind] = None
            continue
        _check_row(row, line)
        # Lines of one ID are one feature; else coding lines of one parent, and lines of a locus tag.
        for key in ("ID", *(["Parent"] if row.kind == "CDS" else []), "locus_tag"):
            if value := row.attributes.get(key):
                groups.setdefault((row.contig, row.kind, key, value), []).append(row)
                break
        else:
            groups[row.where,] = [row]
    around = {**circles, **{contig: lengths[contig] for contig in circular}}
    features = [_joined(rows, around.get(rows[0].contig)) for rows in groups.values()]
    return AnnotatedFile("GFF3", features, lengths, frozenset(circular), tuple(others))


def _check_row(row: _Row, line: str) -> None:
    row.require_interval()
    if row.phase not in ("0", "1", "2", "."):
        raise InputError(f"has the phase '{row.phase}'", where=row.where, remedy="use 0, 1, 2 or .")
    if row.strand not in ("+", "-", ".", "?"):
        raise InputError(f"has the strand '{row.strand}'", where=row.where, remedy="use + or -")
    column = line.rpartition("\t")[2]
    if "=" not in column and ' "' in column:
        raise InputError("is GTF, not GFF3", where=row.where, remedy="convert it, for example with gffread")


def _joined(rows: list[_Row], around: int | None) -> AnnotatedFeature:
    """One feature of its lines; ``around`` is the length of a circular contig."""
    numbers = [row.attributes.get("part", "").partition("/")[0] for row in rows]
    strands = {row.strand for row in rows}
    if all(map(is_position, numbers)):  # as NCBI numbers the parts of trans-spliced genes: 1/2, or 1
        order = sorted(range(len(rows)), key=lambda i: int(numbers[i]))
        rows = [rows[i] for i in order]
    elif len(strands) == 1:
        rows = sorted(rows, key=lambda row: row.start, reverse=strands == {"-"})
    turn = turn_at_origin([row.part for row in rows], around)
    rows = rows[turn:] + rows[:turn]
    first, last = rows[0], rows[-1]
    return AnnotatedFeature(
        first.contig,
        first.kind,
        tuple(row.part for row in rows),
        first.attributes,
        first.where,
        partial_start=first.open_ends[first.strand == "-"],
        partial_end=last.open_ends[last.strand != "-"],
        offset=int(first.phase) if first.phase != "." else 0,
    )
