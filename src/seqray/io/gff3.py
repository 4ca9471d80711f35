"""GFF3: calls out and in, and features of genomes in."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, groupby
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, unquote

from seqray.core.errors import InputError
from seqray.core.results import Call, CallContext
from seqray.core.text import counted, format_number
from seqray.io.calls import call_ids, context_attributes, context_from_attributes, parse_number
from seqray.io.files import encode_text, open_output
from seqray.io.lines import (
    HEADER_WORDS,
    AnnotatedFile,
    Feature,
    Part,
    ScanStatement,
    decoded_lines,
    is_position,
    numbered_lines,
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
    """Write calls as GFF3 features, by start in each of ``contigs``, and return how many; a site is 1-based.

    The type is the class if the Sequence Ontology has it; a feature spans the boxes of a promoter.
    """
    contigs, count = contigs or {}, 0
    with open_output(path) as handle:
        handle.write(b"##gff-version 3\n")
        for contig, length in contigs.items():
            handle.write(f"##sequence-region {_seqid(contig)} 1 {length}\n".encode())
        handle.write(comment_lines(provenance))
        circles = {name: _region_line(name, contigs[name]) for name in contigs if name in circular}
        for contig, group in groupby(call_ids(calls), key=lambda pair: pair[1].contig):
            handle.write(circles.pop(contig, b""))  # with its calls, and in order, as tabix requires
            spanned = [(*_span(call, contigs.get(contig, 0)), name, call) for name, call in group]
            for start, end, name, call in sorted(spanned, key=lambda row: row[0]):
                handle.write(_call_line(name, call, start, end))
            count += len(spanned)
        handle.writelines(circles.values())
    return count


def _region_line(contig: str, length: int) -> bytes:
    text = f"ID={_attribute(contig)};Name={_attribute(contig)};Is_circular=true"
    return _line(contig, "region", 1, length, ".", ".", ".", text)


def write_features(
    path: str | Path,
    features: Mapping[str, Sequence[Feature]],
    provenance: Sequence[str],
    contigs: Sequence[Any],
) -> None:
    """Write features of one part, by contig, so that they are read back as genes."""
    with open_output(path) as handle:
        handle.write(b"##gff-version 3\n")
        for contig in contigs:
            handle.write(f"##sequence-region {_seqid(contig.name)} 1 {contig.length}\n".encode())
        handle.write(comment_lines(provenance))
        for contig in contigs:
            handle.write(_region_line(contig.name, contig.length) if contig.circular else b"")
            handle.writelines(map(_feature_line, features.get(contig.name, ())))


def _feature_line(feature: Feature) -> bytes:
    attributes, is_gene = dict(feature.attributes), feature.kind == "gene"
    name = attributes.get("locus_tag") or f"{attributes.get('gene', 'gene')}_{feature.start + 1}"
    about = (
        {"ID": name, "Name": attributes.get("gene", name)}
        if is_gene
        else {"ID": f"cds-{name}", "Parent": name}
    )
    if feature.partial_start or feature.partial_end:  # of the left and the right end
        ends = (feature.partial_start, feature.partial_end)[:: -1 if feature.strand == "-" else 1]
        about["partial"] = "".join("01"[one] for one in ends)
    attributes.pop("codon_start", None)
    text = ";".join(f"{key}={_attribute(value)}" for key, value in (about | attributes).items())
    phase = "." if is_gene else "0"
    place = feature.start + 1, feature.end, ".", feature.strand
    return _line(feature.contig, feature.kind, *place, phase, text)


def _seqid(name: str) -> str:
    return quote(name, safe=".:^*$@!+_?-|")


def _attribute(text: str) -> str:
    return re.sub(r"[\x00-\x1f\x7f%;=&,]", lambda hit: f"%{ord(hit[0]):02X}", text)


def _line(contig: str, *cells: object) -> bytes:
    return encode_text("\t".join(map(str, (_seqid(contig), "seqray", *cells))) + "\n")


def _span(call: Call, length: int) -> tuple[int, int]:
    """Start and end of a call with the boxes before its site; on a circle they may lie across the origin."""
    context, start, end = call.context or CallContext(), call.start, call.end
    for box in context.boxes:
        if call.strand == "+":
            start = min(start, box.start if box.start <= call.site else box.start - length)
        else:
            end = max(end, box.start + len(box.letters) + (0 if box.start >= call.site else length))
    return (start + length, end + length) if start < 0 else (start, end)


def _call_line(name: str, call: Call, start: int, end: int) -> bytes:
    kind = call.label if call.label in GFF3_TYPES else "sequence_feature"
    score = format_number(call.score)
    context = call.context or CallContext()
    attributes = [f"ID={_attribute(name)}", f"Name={_attribute(context.gene or name)}"]
    attributes += [f"label={_attribute(call.label)}"] if kind != call.label else []
    attributes += [f"{'tss' if call.label in ('promoter', 'TSS') else 'site'}={call.site + 1}"]
    if call.context is None:
        attributes += [f"probability={score}"]
    else:
        stated = context_attributes(call.context)
        attributes += [f"score={score}", *(f"{key}={_attribute(text)}" for key, text in stated)]
    return _line(call.contig, kind, start + 1, end, score, call.strand, ".", ";".join(attributes))


class CalledFile(NamedTuple):
    """Calls of a scan with their contexts, the contigs that their file calls circular, and what it states."""

    calls: list[Call]
    circular: frozenset[str]
    statement: ScanStatement


def read_called(path: str | Path) -> CalledFile:
    """Read what `write_gff3` wrote; features without a site, or a score or probability, are ignored."""
    calls, circular, header = list[Call](), set[str](), list[str]()
    for row in _rows(path, header, ", as seqray scan --out calls.gff3 writes them"):
        if row.is_circular:
            circular.add(row.contig)
        attributes = row.attributes
        name = "score" if "score" in attributes else "probability"
        if (site := row.site) is not None:
            score, label = parse_number(attributes[name], name, row.where), attributes.get("label", row.kind)
            context = context_from_attributes(attributes, row.where) if name == "score" else None
            name = one_line(attributes.get("ID", ""))
            place = row.contig, row.start, row.end, row.strand, site
            calls.append(Call(*place, score, label, context, name))
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
    is_gtf: bool

    @property
    def site(self) -> int | None:
        """The site of a call that `write_gff3` wrote, 0-based; None for any other line."""
        site = self.attributes.get("tss", self.attributes.get("site"))
        if site is None or self.attributes.keys().isdisjoint(("score", "probability")):
            return None
        return parse_position(site, self.where) - 1

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

    def check(self, *, as_gene: bool) -> None:
        """Raise `InputError` for an interval or a strand, and as a gene for a phase that is none, or GTF."""
        if self.strand not in ("+", "-", ".", "?"):
            raise InputError(f"has the strand '{self.strand}'", where=self.where, remedy="use +, -, . or ?")
        what = f"has the interval {self.start + 1}-{self.end}"
        if self.start < 0:
            raise InputError(what, where=self.where, remedy="GFF3 counts from 1")
        if self.end <= self.start:
            what += ", whose end lies before the start"
            remedy = "write the smaller position first; across an origin, let the end exceed the length"
            raise InputError(what, where=self.where, remedy=remedy)
        if as_gene and self.phase not in ("0", "1", "2", "."):
            raise InputError(f"has the phase '{self.phase}'", where=self.where, remedy="use 0, 1, 2 or .")
        if as_gene and self.is_gtf:
            remedy = "convert it, for example with gffread"
            raise InputError("is GTF, not GFF3", where=self.where, remedy=remedy)


_GTF = re.compile(r'(\w+) "([^"]*)"')


def _parse_row(line: str, where: str, how: str = "") -> _Row:
    """Read a line; raises `InputError` unless it has nine columns, and positions that are whole numbers."""
    cells = line.split("\t")
    if len(cells) != 9:
        remedy = f"GFF3 needs nine, separated by tabs{how}"
        raise InputError(f"has {counted(len(cells), 'column')}", where=where, remedy=remedy)
    pairs = (part.partition("=") for part in cells[8].split(";"))
    attributes = {key.strip(): unquote(value.strip()) for key, _, value in pairs}
    if is_gtf := "=" not in cells[8] and ' "' in cells[8]:
        attributes = dict(_GTF.findall(cells[8]))
        attributes.setdefault("Parent", attributes.get("transcript_id", ""))
    start, end = parse_position(cells[3], where) - 1, parse_position(cells[4], where)
    return _Row(where, unquote(cells[0]), cells[2], start, end, cells[6], cells[7], attributes, is_gtf)


def _outside_fasta(lines: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Lines but those for a browser, and letters: from ``##FASTA`` or a header to an appended file."""
    in_letters = False
    for where, line in lines:
        if line.startswith(("##FASTA", ">")):
            in_letters = True
        elif in_letters:
            in_letters = not (line.startswith("##") or line.count("\t") == 8)
        if not in_letters and not (line.startswith(HEADER_WORDS) and "\t" not in line):
            yield where, line


def _rows(path: str | Path, header: list[str], how: str = "") -> Iterator[_Row]:
    """The rows of a file; the comments above the first are added to ``header``."""
    is_header = True
    for where, line in _outside_fasta(numbered_lines(path)):
        if line.startswith("#"):
            header += [line] * is_header
        else:
            is_header = False
            yield _parse_row(line, where, how)


# --------------------------------------------------------------------------------------------- features

CONTIGS = frozenset(("source", "region", "chromosome", "contig", "supercontig", "scaffold", "plasmid"))
_OF_ONE_LOCUS = re.compile(r"CDS|pseudogene|(?:.*_)?gene|.*RNA|(?:primary_)?transcript")


def parse_gff3_annotation(
    handle: Iterable[bytes], name: str, wanted: Callable[[str], bool] | None, circles: Mapping[str, int]
) -> AnnotatedFile:
    """Features, each of all its lines; see `seqray.io.features.read_annotated`. GTF has no genes."""
    lengths: dict[str, int] = {}
    circular: set[str] = set()
    others: dict[str, None] = {}
    names: dict[str, list[str]] = {}
    groups: dict[tuple[str, ...], list[_Row]] = {}
    for where, line in _outside_fasta(decoded_lines(handle, name)):
        if line.startswith("#"):
            words = line.split()
            if len(words) == 4 and words[::2] == ["##sequence-region", "1"] and is_position(words[3]):
                lengths[unquote(words[1])] = int(words[3])
            continue
        row = _parse_row(line, where)
        if row.is_circular:
            circular.add(row.contig)
            lengths[row.contig] = row.end
        if row.kind in CONTIGS and row.start == 0:
            stated = (row.attributes.get(key, "") for key in ("Name", "chromosome", "Alias", "ID"))
            own = (one.rpartition(":")[2] for text in stated for one in text.split(",") if one)
            names.setdefault(row.contig, []).extend(own)
        if wanted and not wanted(row.kind):
            others[row.kind] = None
            continue
        row.check(as_gene=wanted is not None)
        # Lines of one ID are one feature; else coding lines of one parent, and those of a gene's locus tag.
        keys = ["Parent"] if row.kind == "CDS" else []
        for key in ("ID", *keys, *(["locus_tag"] if _OF_ONE_LOCUS.fullmatch(row.kind) else [])):
            if value := row.attributes.get(key):
                groups.setdefault((row.contig, row.kind, key, value), []).append(row)
                break
        else:
            groups[row.where,] = [row]
    around = {**circles, **{contig: lengths[contig] for contig in circular}}
    features = [_joined(rows, around.get(rows[0].contig)) for rows in groups.values()]
    return AnnotatedFile("GFF3", features, lengths, frozenset(circular), tuple(others), names=names)


def _joined(rows: list[_Row], around: int | None) -> Feature:
    """One feature of its lines; ``around`` is the length of a circular contig."""
    numbers = [row.attributes.get("part", "").partition("/")[0] for row in rows]
    if all(map(is_position, numbers)):  # as NCBI numbers the parts of trans-spliced genes: 1/2, or 1
        order = sorted(range(len(rows)), key=lambda i: int(numbers[i]))
        rows = [rows[i] for i in order]
        rows = _from_first(rows, turn_at_origin([row.part for row in rows], around))
    elif len({row.strand for row in rows}) == 1 and len(rows) > 1:
        ordered = sorted(rows, key=lambda row: row.start, reverse=rows[0].strand == "-")
        rows = _from_first(ordered, _turn(ordered, rows, around) if around else 0)
    first, last = rows[0], rows[-1]
    return Feature(
        first.contig,
        first.kind,
        tuple(row.part for row in rows),
        first.attributes,
        first.where,
        partial_start=first.open_ends[first.strand == "-"],
        partial_end=last.open_ends[last.strand != "-"],
        offset=int(first.phase) if first.phase in ("1", "2") else 0,
        site=first.site,
    )


def _from_first(rows: list[_Row], turn: int) -> list[_Row]:
    return rows[turn:] + rows[:turn]


def _turn(ordered: list[_Row], listed: list[_Row], around: int) -> int:
    """Which line on a circle, sorted along it, comes first: by the origin, the file's order, or phases."""
    if turn := turn_at_origin([row.part for row in ordered], around):
        return turn
    turn = ordered.index(listed[0])
    if _from_first(ordered, turn) == listed != sorted(listed, key=lambda row: row.start):
        return turn
    return next((turn for turn in range(len(ordered)) if _in_phase(_from_first(ordered, turn))), 0)


def _in_phase(rows: list[_Row]) -> bool:
    """Whether each line has the phase that the lengths of those before it give, and the first one 0."""
    before = accumulate((row.end - row.start for row in rows), initial=0)
    return all(row.phase == str(-letters % 3) for row, letters in zip(rows, before, strict=False))
