"""GenBank with calls as features."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import cast

from Bio import BiopythonWarning
from Bio.Seq import Seq
from Bio.SeqFeature import AfterPosition, BeforePosition, CompoundLocation, SeqFeature, SimpleLocation
from Bio.SeqRecord import SeqRecord

from seqray.core.alphabet import DNA
from seqray.core.errors import NoRecordsError
from seqray.core.records import SequenceRecord
from seqray.core.results import Box, Call, CallContext
from seqray.core.text import format_number
from seqray.core.version import __version__
from seqray.io.calls import call_ids
from seqray.io.features import AnnotatedFeature
from seqray.io.files import display_name, encode_text, open_input, open_output
from seqray.io.genbank import parse_genbank
from seqray.io.records import GENBANK, Duplicates, UniqueIds, detect_format
from seqray.io.sequences import read_fasta
from seqray.io.tables import one_line

# Classes of a model that are a controlled term for /regulatory_class of the feature table of INSDC; features
# of other classes are misc_feature.
REGULATORY_CLASSES = frozenset(
    ("promoter", "terminator", "enhancer", "silencer", "insulator", "ribosome_binding_site", "riboswitch")
)
_LOCUS_WIDTH = 28  # columns for the name in the LOCUS line, a space, and the number of letters
_OWN_GENES = ("gene", "CDS")
_SIGNS = {"+": 1, "-": -1}


def write_genbank(
    path: str | Path,
    source: str | Path,
    calls: Iterable[Call],
    provenance: Sequence[str] = (),
    *,
    genes: Mapping[str, Sequence[AnnotatedFeature]] | None = None,
    is_circular: Callable[[str], bool] = lambda _: False,
    duplicates: Duplicates = "error",
) -> int:
    """Write all records of a FASTA or GenBank file with calls as features, and return how many calls.

    Parameters
    ----------
    path
        See `seqray.io.open_output`.
    source
        The file that was scanned; it must be readable again.
    calls
        In their order.
    provenance
        Added to the COMMENT of each record.
    genes
        Features by contig; records that have genes of their own don't get them.
    is_circular
        Says of the id of a record whether it was scanned as a circle, beside those that the file marks.
    duplicates
        As the file was read, see `seqray.io.sequences.read_fasta`.

    Notes
    -----
    A call is a ``regulatory`` feature of its class (``promoter``), or else a ``misc_feature``; its boxes are
    ``minus_10_signal`` and ``minus_35_signal``. Names of records that are too long for the LOCUS line are cut
    there, and kept whole as VERSION. What Biopython does not read of a GenBank file is lost.
    """
    named: dict[str, list[tuple[str, Call]]] = {}
    for name, call in call_ids(calls):
        named.setdefault(call.contig, []).append((name, call))
    with open_output(path) as handle:
        for contig, record in _records(source, duplicates):
            if is_circular(contig):
                record.annotations["topology"] = "circular"
            if not any(feature.type in _OWN_GENES for feature in record.features):
                record.features += [_gene(one, len(record)) for one in (genes or {}).get(contig, ())]
            for name, call in named.get(contig, ()):
                record.features += _call_features(name, call, len(record))
            _comment(record, provenance)
            handle.write(_text(record))
    return sum(map(len, named.values()))


def _records(source: str | Path, duplicates: Duplicates) -> Iterator[tuple[str, SeqRecord]]:
    """Records of the input, with the id that the scan knew them by."""
    where = display_name(source)
    with open_input(source) as handle:
        if detect_format(handle.peek(1)) == GENBANK:
            ids = UniqueIds(duplicates, where)
            for record in parse_genbank(handle, where, features=True):
                record.annotations.setdefault("molecule_type", "DNA")
                record.features = [feature for feature in record.features if feature.location is not None]
                name = record.id or record.name
                if (contig := ids.resolve(name)) != name:
                    _rename(record, contig)
                yield contig, record
            return
    for record in _fasta_records(source, duplicates):
        new = SeqRecord(Seq(record.sequence), description=record.description)
        _rename(new, record.id)
        topology = "circular" if record.circular else "linear"
        new.annotations.update(molecule_type="DNA", topology=topology)
        yield record.id, new


def _rename(record: SeqRecord, name: str) -> None:
    """Name a record, in its LOCUS line as far as there is room."""
    record.id, record.name = name, name[: _LOCUS_WIDTH - 1 - len(str(len(record)))]
    record.annotations.pop("accessions", None)  # that of the id is written


def _fasta_records(source: str | Path, duplicates: Duplicates) -> Iterator[SequenceRecord]:
    """Records of a FASTA file; none of an empty one, which the scan has let pass."""
    with suppress(NoRecordsError):
        yield from read_fasta(source, DNA, duplicates=duplicates, soft_masks=False, on_skip=lambda _: None)


def _text(record: SeqRecord) -> bytes:
    with warnings.catch_warnings():  # of words that are wider than a line, such as checksums; they stay whole
        warnings.simplefilter("ignore", BiopythonWarning)
        return encode_text(record.format("genbank"))


def _comment(record: SeqRecord, lines: Sequence[str]) -> None:
    own = record.annotations.get("comment")
    texts = [*([str(own)] if own else []), *map(one_line, lines)]
    if texts:
        record.annotations["comment"] = "\n".join(texts)


# -------------------------------------------------------------------------------------------- features


def _location(start: int, end: int, strand: str, length: int) -> SimpleLocation | CompoundLocation:
    """An interval, in two parts in the direction of reading if it crosses the origin of a circle."""
    sign = _SIGNS.get(strand)
    start, end = (start - length, end - length) if start >= length else (start, end)
    if end <= length:
        return SimpleLocation(start, end, sign)
    parts = [SimpleLocation(start, length, sign), SimpleLocation(0, end - length, sign)]
    return CompoundLocation(parts[::-1] if sign == -1 else parts)


def gene_names(name: str, locus: str) -> dict[str, str]:
    """Qualifiers that name a gene: its name, unless that is but the locus tag, and the locus tag."""
    known = {"gene": "" if name == locus else name, "locus_tag": locus}
    return {key: value for key, value in known.items() if value}


def _call_features(name: str, call: Call, length: int) -> Iterator[SeqFeature]:
    context = call.context or CallContext()
    qualifiers: dict[str, list[str]] = {"note": list(_notes(name, call))}
    kind = "misc_feature"
    if call.label in REGULATORY_CLASSES:
        kind, qualifiers["regulatory_class"] = "regulatory", [call.label]
    qualifiers |= {key: [value] for key, value in gene_names(context.gene, context.locus).items()}
    qualifiers["inference"] = [f"ab initio prediction:seqray:{__version__}"]
    yield _feature(_location(call.start, call.end, call.strand, length), kind, qualifiers)
    for signal, box in (("minus_35_signal", context.minus35), ("minus_10_signal", context.minus10)):
        if box is not None:
            yield _signal(signal, box, name, call.strand, length)


def _signal(signal: str, box: Box, name: str, strand: str, length: int) -> SeqFeature:
    location = _location(box.start, box.start + len(box.letters), strand, length)
    qualifiers = {"regulatory_class": [signal], "note": [f"{box.letters}, {name}"]}
    return _feature(location, "regulatory", qualifiers)


def _notes(name: str, call: Call) -> Iterator[str]:
    context = call.context or CallContext()
    shares = {"probability": context.probability, "precision": context.precision}
    known = [f"{key} {format_number(value)}" for key, value in shares.items() if value is not None]
    called = name if call.label in REGULATORY_CLASSES else f"{name} ({call.label})"
    yield ", ".join([f"{called}, site {call.site + 1}, score {format_number(call.score)}", *known])
    if context.distance is not None:
        unit = "letter" if context.distance == 1 else "letters"
        yield f"{context.distance} {unit} before the first letter of {context.gene}"
    if context.within:
        yield f"in {context.within} on the {context.within_strand} strand"


def _gene(feature: AnnotatedFeature, length: int) -> SeqFeature:
    places = [_location(part.start, part.end, part.strand, length) for part in feature.parts]
    parts = [part for place in places for part in place.parts]
    if feature.partial_start:
        parts[0] = _opened(parts[0], at_left=parts[0].strand != -1)
    if feature.partial_end:
        parts[-1] = _opened(parts[-1], at_left=parts[-1].strand == -1)
    location = parts[0] if len(parts) == 1 else CompoundLocation(parts)
    return _feature(location, feature.kind, {key: [value] for key, value in feature.attributes.items()})


def _feature(
    location: SimpleLocation | CompoundLocation, kind: str, qualifiers: Mapping[str, Sequence[str]]
) -> SeqFeature:
    """A feature whose values stay in their lines: those of GFF3 may hold line breaks."""
    lines = {key: [one_line(value) for value in values] for key, values in qualifiers.items()}
    return SeqFeature(location, kind, qualifiers=lines)


def _opened(part: SimpleLocation, *, at_left: bool) -> SimpleLocation:
    """A part that goes on beyond its left or its right end."""
    if at_left:
        return SimpleLocation(BeforePosition(cast(int, part.start)), part.end, part.strand)
    return SimpleLocation(part.start, AfterPosition(cast(int, part.end)), part.strand)
