"""GenBank: records, features and genes in; calls as features out."""

from __future__ import annotations

import io
import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from copy import copy
from itertools import chain, takewhile
from pathlib import Path
from typing import Any, BinaryIO, Unpack, cast

from Bio import BiopythonParserWarning, BiopythonWarning, SeqIO
from Bio.GenBank.Scanner import GenBankScanner
from Bio.Seq import Seq, UndefinedSequenceError
from Bio.SeqFeature import AfterPosition, BeforePosition, CompoundLocation, SeqFeature, SimpleLocation
from Bio.SeqRecord import SeqRecord

from seqray.core.alphabet import DNA, Alphabet
from seqray.core.errors import InputError, NoRecordsError, SeqrayError
from seqray.core.host import own_warnings
from seqray.core.records import SequenceRecord
from seqray.core.results import Call, CallContext
from seqray.core.text import counted, format_number
from seqray.core.version import __version__
from seqray.io.calls import call_ids
from seqray.io.files import display_name, encode_text, open_input, open_output
from seqray.io.lines import (
    ELSEWHERE,
    UNREADABLE,
    WITHOUT_LETTERS,
    AnnotatedFile,
    Feature,
    Part,
    turn_at_origin,
)
from seqray.io.records import (
    GENBANK,
    RELEASE,
    Duplicates,
    RawRecord,
    ReadOptions,
    UniqueIds,
    detect_format,
    read_fasta,
    validate_records,
)
from seqray.io.tables import one_line

# ---------------------------------------------------------------------------------------------- records

_LOCUS = "write the LOCUS line as NCBI does, with a short name without blanks, or give FASTA and GFF3"
_DAMAGED = "correct it or export it again, or give FASTA and GFF3"
_NO_LETTERS = "no sequence in the file, fetch it with its letters as 'GenBank (full)'"
_FEATURE = re.compile(r" {5}(?=\S*[A-Za-z])\S+ +(\S.*)")  # its first line: kind and location
# Of what locations consist: positions, other records, and these words.
_LOCATION = re.compile(r"(?:(?:complement|join|order|bond|gap|one-of)\(|[A-Za-z_][\w.|-]*:|[\d.^<>,() ])*")
_LENGTHS = re.compile(r"Expected sequence length (\d+), found (\d+) \((.*)\)")
_NUMBER = re.compile(r"[ \t]*\d*[ \t]*(?=[^\s\d])")  # before the letters of a line
_NUMBER_ENDS = frozenset(f"{digit} " for digit in range(10))  # in the columns where they shall end
_CUT_OFF = "Premature end|Expected sequence length"  # of which Biopython only warns


def read_genbank(
    path: str | Path, alphabet: Alphabet = DNA, **options: Unpack[ReadOptions]
) -> Iterator[SequenceRecord]:
    """Read the records of a GenBank flat file in order.

    Parameters
    ----------
    path, alphabet, **options
        As in `read_sequences`.
    """
    where = display_name(path)
    with open_input(path) as handle:
        yield from validate_records(split_genbank(handle, where), alphabet, where, **options)


def split_genbank(
    handle: io.BufferedReader, where: str, on_record: Callable[[SeqRecord], None] | None = None
) -> Iterator[RawRecord]:
    """Records of an open binary stream; ``on_record`` is called with each as Biopython reads it."""
    other = detect_format(handle.peek(1))
    if other not in ("", GENBANK):
        raise InputError(f"is {other}, not GenBank", where=where)
    for record in parse_genbank(handle, where, features=on_record is not None):
        if on_record is not None:
            on_record(record)
        letters = b""
        with suppress(UndefinedSequenceError):  # a CONTIG line instead of the letters
            letters = bytes(record.seq or b"")
        circular = record.annotations.get("topology") == "circular"
        yield RawRecord(record_id(record), letters, record.description, circular, _NO_LETTERS)


def record_id(record: SeqRecord) -> str:
    """VERSION, or the name in the LOCUS line where that is missing or the ``.`` of an editor's own maps."""
    return record.name if record.id in (None, "", ".", "<unknown id>") else str(record.id)


class _Lines(io.TextIOWrapper):
    """Text lines for the parser, which skips what lies between records; here text there is an `InputError`.

    Keeps the first location without sense; moves letters to the column that the parser expects.
    """

    def __init__(self, handle: BinaryIO, where: str) -> None:
        super().__init__(handle, encoding="utf-8-sig", errors="replace")
        self.loci, self._where, self._ended, self._in_letters = 0, where, False, False
        self._record, self._odd, self._last = "", "", ""

    def readline(self, *size: Any) -> str:
        line = self._last = super().readline(*size)
        if self._in_letters and line[:1] in " \t0123456789" and line[8:10] not in _NUMBER_ENDS:
            line = _NUMBER.sub(f"{'1':>9} ", line, count=1)
        if line.startswith("ORIGIN"):
            self._in_letters = True
        elif line.startswith("LOCUS"):
            self.loci, self._ended, self._in_letters = self.loci + 1, False, False
            self._record, self._odd = line[12:].partition(" ")[0].strip(), ""
        elif not self._odd and (feature := _FEATURE.match(line)):
            location = feature[1].strip()
            if not _LOCATION.fullmatch(location):
                self._odd = f"the location '{location}' can't be read"
        elif self._ended and RELEASE.match(line.encode()):
            self._ended = False
        elif self._ended and line.strip():
            what = f"text after the end of GenBank record {self.loci}, where a line LOCUS must follow"
            raise InputError(f"{what} ({line.strip()[:40]!r})", where=self._where, remedy=_DAMAGED)
        self._ended |= line.startswith("//")
        return line

    def error(self, what: str, remedy: str) -> InputError:
        """The error for the record read last: that it is cut off, or of its odd location, else as given."""
        where = f"{self._where}: record '{self._record}'" if self._record else self._where
        if not (self._ended or self._last.endswith("\n")):  # the file ended within the record
            return InputError("the GenBank record is cut off", where=where, remedy="fetch it again")
        return InputError(self._odd or what, where=where, remedy="correct it" if self._odd else remedy)


def parse_genbank(handle: BinaryIO, where: str, *, features: bool) -> Iterator[SeqRecord]:
    """Yield the records of an open file, as Biopython reads them; ``features`` take four times as long.

    Of a damaged file the parser raises errors of any type, and of one that is cut off it only warns.
    """
    lines, records, count = _Lines(handle, where), None, 0
    while True:
        with own_warnings(BiopythonParserWarning):
            warnings.filterwarnings("error", _CUT_OFF, BiopythonParserWarning)
            try:
                if records is None and features:  # here, for a parser already reads when it is made
                    records = SeqIO.parse(lines, "genbank")
                elif records is None:
                    records = iter(GenBankScanner().parse_records(lines, do_features=False))
                record = next(records, None)
                len(record or ())  # which fails for a length that Python can't hold
            except BiopythonParserWarning as warning:
                raise lines.error(*_wrong_length(str(warning).rstrip("."))) from None
            except (SeqrayError, MemoryError):  # of reading, not of parsing
                raise
            except Exception as error:
                reason = next(iter(str(error).splitlines()), type(error).__name__).rstrip(":")
                what = f"the GenBank record can't be parsed ({reason})"
                raise lines.error(what, _LOCUS if "LOCUS" in reason else _DAMAGED) from None
        if record is None:
            break
        count += 1
        yield record
    if count < lines.loci:  # Biopython skips a LOCUS line that it can't read, with its record
        what = f"{lines.loci - count} of {lines.loci} LOCUS lines can't be parsed"
        raise InputError(what, where=where, remedy=_LOCUS)


def _wrong_length(reason: str) -> tuple[str, str]:
    """What is wrong with a record of which Biopython warns, and the remedy."""
    lengths = _LENGTHS.fullmatch(reason)
    if lengths is None:
        return f"the GenBank record can't be parsed ({reason})", _DAMAGED
    more = int(lengths[2]) > int(lengths[1])
    remedy = "" if more else ", or fetch the record again if it is cut off"
    what = f"the LOCUS line states {lengths[1]} letters, and the record has {lengths[2]}"
    return what, f"correct the LOCUS line{remedy}"


# --------------------------------------------------------------------------------------------- features


def genbank_annotation(
    records: Iterable[SeqRecord],
    name: str,
    wanted: Callable[[str], bool] | None,
    circles: Mapping[str, int],
    ids: UniqueIds,
) -> AnnotatedFile:
    """Features of the wanted kinds of parsed records; the kind of a ``regulatory`` one is its class."""
    features: list[Feature] = []
    lengths: dict[str, int] = {}
    circular: set[str] = set()
    others: dict[str, None] = {}
    names: dict[str, list[str]] = {}
    left_out = Counter[str]()
    for record in records:
        contig = ids.resolve(record_id(record))
        lengths[contig] = len(record)
        sources = (
            one.qualifiers.get("chromosome", ()) for one in record.features[:1] if one.type == "source"
        )
        names[contig] = [record.name, *chain.from_iterable(sources)]
        if record.annotations.get("topology") == "circular":
            circular.add(contig)
        around = len(record) if contig in circular else circles.get(contig)
        for feature in record.features:
            kind = next(iter(feature.qualifiers.get("regulatory_class", ())), feature.type)
            if wanted and not wanted(kind):
                others[kind] = None
                continue
            annotated, reason = _annotated(feature, kind, contig, name, around)
            features += [annotated] if annotated else []
            left_out.update([reason] if reason else [])
    return AnnotatedFile(GENBANK, features, lengths, frozenset(circular), tuple(others), left_out, names)


def _part(location: SimpleLocation) -> Part | None:
    """The place of a location; Biopython is 0-based and half-open, too. None if it is unknown."""
    start, end = location.start, location.end
    if not isinstance(start, int) or not isinstance(end, int):
        return None
    return Part(int(start), int(end), {1: "+", -1: "-"}.get(location.strand or 0, "."))


def _annotated(
    feature: SeqFeature, kind: str, contig: str, name: str, around: int | None
) -> tuple[Feature | None, str]:
    """A feature, unless no letter of this record is in it, and why it or a part of it is left out."""
    attributes = {key: values[0] for key, values in feature.qualifiers.items() if values}
    if feature.location is None:
        return None, UNREADABLE
    # Parts on other records, without letters or with unknown ends are left out.
    places = [(one, _part(one)) for one in feature.location.parts]
    elsewhere = list(takewhile(lambda place: place[0].ref is not None, places))
    pairs = [(one, part) for one, part in places if one.ref is None and part and part.start < part.end]
    reason = ELSEWHERE if any(one.ref is not None for one, _ in places) else ""
    if not pairs:
        return None, reason or WITHOUT_LETTERS
    turn = turn_at_origin([part for _, part in pairs], around)
    pairs = pairs[turn:] + pairs[:turn]
    codon = attributes.get("codon_start", "1")
    before = sum(max(part.end - part.start, 0) for _, part in elsewhere if part)
    annotated = Feature(
        contig,
        kind,
        tuple(part for _, part in pairs),
        attributes,
        f"{name}: record '{contig}'",
        partial_start=bool(elsewhere) or _is_open(*pairs[0], first=True),
        partial_end=places[-1][0].ref is not None or _is_open(*pairs[-1], first=False),
        offset=((int(codon) - 1 if codon in ("1", "2", "3") else 0) - before) % 3,
    )
    return annotated, reason


def _is_open(location: SimpleLocation, part: Part, *, first: bool) -> bool:
    """Whether the first (or the last) end in reading direction lies elsewhere: ``<1..>9``."""
    if first == (part.strand != "-"):
        return isinstance(location.start, BeforePosition)
    return isinstance(location.end, AfterPosition)


# ------------------------------------------------------------------------------------------------ calls

# Classes of a model that are a controlled term for /regulatory_class of the feature table of INSDC; features
# of other classes are misc_feature.
REGULATORY_CLASSES = frozenset(
    ("promoter", "terminator", "enhancer", "silencer", "insulator", "ribosome_binding_site", "riboswitch")
)
# Likewise of boxes; others are "other".
_BOX_CLASSES = {"-10": "minus_10_signal", "-35": "minus_35_signal", "TATA": "TATA_box"}
_LOCUS_WIDTH = 28  # columns for the name in the LOCUS line, a space, and the number of letters
_SIGNS = {"+": 1, "-": -1}


def write_genbank(
    path: str | Path,
    source: str | Path | Iterable[tuple[str, SeqRecord]],
    calls: Iterable[Call],
    provenance: Sequence[str] = (),
    *,
    genes: Mapping[str, Sequence[Feature]] | None = None,
    is_circular: Callable[[str], bool] = lambda _: False,
    duplicates: Duplicates = "error",
) -> int:
    """Write all records of a FASTA or GenBank file with calls as features, and return how many calls.

    Long names are cut in LOCUS, whole in VERSION. ``source``: the file or its `named_records`.
    """
    named: dict[str, list[tuple[str, Call]]] = {}
    for name, call in call_ids(calls):
        named.setdefault(call.contig, []).append((name, call))
    with open_output(path) as handle:
        records = _records(source, duplicates) if isinstance(source, (str, Path)) else source
        for contig, record in records:
            if is_circular(contig):
                record.annotations["topology"] = "circular"
            if not any(feature.type in ("gene", "CDS") for feature in record.features):
                record.features += [_gene(one, len(record)) for one in (genes or {}).get(contig, ())]
            for name, call in named.get(contig, ()):
                record.features += _call_features(name, call, len(record))
            own = record.annotations.get("comment")
            if texts := [*([str(own)] if own else []), *map(one_line, provenance)]:
                record.annotations["comment"] = "\n".join(texts)
            with own_warnings(BiopythonWarning):  # of words wider than a line, such as checksums; they stay
                handle.write(encode_text(record.format("genbank")))
    return sum(map(len, named.values()))


def _records(source: str | Path, duplicates: Duplicates) -> Iterator[tuple[str, SeqRecord]]:
    """Records of the input, with the id that the scan knew them by."""
    where = display_name(source)
    with open_input(source) as handle:
        if detect_format(handle.peek(1)) == GENBANK:
            yield from named_records(parse_genbank(handle, where, features=True), where, duplicates)
            return
    with suppress(NoRecordsError):  # of an empty file, which the scan has let pass
        for record in read_fasta(
            source, DNA, duplicates=duplicates, soft_masks=False, on_skip=lambda _: None
        ):
            yield plain_record(record)


def named_records(
    records: Iterable[SeqRecord], where: str, duplicates: Duplicates
) -> Iterator[tuple[str, SeqRecord]]:
    """Records of a GenBank file as they are written again, with the id of each."""
    ids = UniqueIds(duplicates, where)
    for record in map(copy, records):  # whoever writes them adds to them
        record.annotations = {"molecule_type": "DNA", **record.annotations}
        record.features = [feature for feature in record.features if feature.location is not None]
        if (contig := ids.resolve(record_id(record))) != record.id:
            _rename(record, contig)
        yield contig, record


def plain_record(letters: SequenceRecord) -> tuple[str, SeqRecord]:
    """A sequence as a record without features, and its id."""
    record = SeqRecord(Seq(letters.sequence), description=letters.description)
    _rename(record, letters.id)
    topology = "circular" if letters.circular else "linear"
    record.annotations.update(molecule_type="DNA", topology=topology)
    return letters.id, record


def _rename(record: SeqRecord, name: str) -> None:
    """Name a record, in its LOCUS line as far as there is room."""
    record.id, record.name = name, name[: _LOCUS_WIDTH - 1 - len(str(len(record)))]
    record.annotations.pop("accessions", None)  # that of the id is written


def gene_names(name: str, locus: str) -> dict[str, str]:
    """Qualifiers that name a gene: its name, unless that is but the locus tag, and the locus tag."""
    names = {"gene": "" if name == locus else name, "locus_tag": locus}
    return {key: value for key, value in names.items() if value}


def _call_features(name: str, call: Call, length: int) -> Iterator[SeqFeature]:
    context = call.context or CallContext()
    is_term = call.label in REGULATORY_CLASSES
    stated = [f"trust {context.trust}"] if context.trust else []
    if context.precision is not None:
        stated.append(f"precision {format_number(context.precision)}")
    called = name if is_term else f"{name} ({call.label})"
    notes = [", ".join([f"{called}, site {call.site + 1}, score {format_number(call.score)}", *stated])]
    if context.distance is not None:
        notes.append(f"{counted(context.distance, 'base')} before the first base of {context.gene}")
    if context.within:
        notes.append(f"in {context.within} on the {context.within_strand} strand")
    qualifiers = {"note": notes, **({"regulatory_class": [call.label]} if is_term else {})}
    qualifiers |= {key: [value] for key, value in gene_names(context.gene, context.locus).items()}
    qualifiers["inference"] = [f"ab initio prediction:seqray:{__version__}"]
    location = _location(Part(call.start, call.end, call.strand), length)
    yield _feature(location, "regulatory" if is_term else "misc_feature", qualifiers)
    for box in reversed(context.boxes):
        location = _location(Part(box.start, box.start + len(box.letters), call.strand), length)
        term, note = _BOX_CLASSES.get(box.name, "other"), f"{box.letters}, {name}"
        notes = [f"{box.name} {note}" if term == "other" else note]
        yield _feature(location, "regulatory", {"regulatory_class": [term], "note": notes})


def _gene(feature: Feature, length: int) -> SeqFeature:
    parts = [part for place in feature.parts for part in _location(place, length).parts]
    for at, is_start, is_open in ((0, True, feature.partial_start), (-1, False, feature.partial_end)):
        part = parts[at]
        start, end = cast(int, part.start), cast(int, part.end)
        if is_open and is_start == (part.strand != -1):  # it goes on beyond its left end
            parts[at] = SimpleLocation(BeforePosition(start), part.end, part.strand)
        elif is_open:
            parts[at] = SimpleLocation(part.start, AfterPosition(end), part.strand)
    location = parts[0] if len(parts) == 1 else CompoundLocation(parts)
    return _feature(location, feature.kind, {key: [value] for key, value in feature.attributes.items()})


def _location(part: Part, length: int) -> SimpleLocation | CompoundLocation:
    """An interval, in two parts in the direction of reading if it crosses the origin of a circle."""
    start, end, strand = part
    sign = _SIGNS.get(strand)
    start, end = (start - length, end - length) if start >= length else (start, end)
    if end <= length:
        return SimpleLocation(start, end, sign)
    parts = [SimpleLocation(start, length, sign), SimpleLocation(0, end - length, sign)]
    return CompoundLocation(parts[::-1] if sign == -1 else parts)


def _feature(
    location: SimpleLocation | CompoundLocation, kind: str, qualifiers: Mapping[str, Sequence[str]]
) -> SeqFeature:
    """A feature whose values stay in their lines: those of GFF3 may hold line breaks."""
    lines = {key: [one_line(value) for value in values] for key, values in qualifiers.items()}
    return SeqFeature(location, kind, qualifiers=lines)
