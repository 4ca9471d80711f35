"""Genes read from GenBank and GFF3, and their check against the sequences."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from Bio.SeqRecord import SeqRecord

from seqray.core.errors import InputError
from seqray.genome.genes import Gene, Genome, sort_genes
from seqray.io.features import read_annotated
from seqray.io.files import display_name, short_name
from seqray.io.genbank import genbank_annotation, gene_names
from seqray.io.lines import AnnotatedFile, Feature, Part, is_pseudo
from seqray.io.records import Duplicates, UniqueIds

# --- Which features of a file belong to one gene

Family = list[Feature]
"""What is transcribed, then the features that describe it, up to the gene."""

MAX_FAMILY_SIZE = 10
"""A file may name parents without end, or thousands of genes alike."""
_MESSENGERS = ("mRNA", "transcript", "primary_transcript")


def is_wanted(kind: str) -> bool:
    """Whether features of a kind can be genes, or parts of the description of a gene."""
    return kind == "CDS" or is_locus(kind) or kind in _MESSENGERS or kind.endswith("RNA")


def is_locus(kind: str) -> bool:
    """Whether a kind names the place of a gene, not its product."""
    return kind in ("gene", "pseudogene") or kind.endswith("_gene")


def families_of(features: Sequence[Feature]) -> Iterator[Family]:
    """One family for each CDS and each RNA, and for each gene to which none of these belongs."""
    parents = {(one.contig, one.attributes["ID"]): one for one in features if "ID" in one.attributes}
    loci: dict[tuple[str, str], Family] = {}
    for locus in features:
        if is_locus(locus.kind):
            for key in _keys(locus):
                loci.setdefault(key, []).append(locus)
    described, met = set[int](), set[tuple[str, str]]()
    for feature in features:
        if not is_locus(feature.kind) and feature.kind not in _MESSENGERS:
            family = _with_parents(feature, parents)
            if not is_locus(family[-1].kind):
                key = next((key for key in _keys(feature) if key in loci), None)
                if key is not None:
                    family += loci[key][:MAX_FAMILY_SIZE]
                    described.update(map(id, loci[key] if key not in met else ()))
                    met.add(key)
            described.update(map(id, family))
            yield family
    yield from ([one] for one in features if is_locus(one.kind) and id(one) not in described)


def _keys(feature: Feature) -> Iterator[tuple[str, str]]:
    """What a gene and its product share where no parent is named, the surest first."""
    attributes, parts = feature.attributes, feature.parts
    if "locus_tag" in attributes:
        yield feature.contig, f"locus {attributes['locus_tag']}"
    span = min(part.start for part in parts), max(part.end for part in parts), parts[0].strand
    yield feature.contig, f"span {span}"
    if "gene" in attributes and "locus_tag" not in attributes:
        yield feature.contig, f"gene {attributes['gene']}"


def _with_parents(feature: Feature, parents: Mapping[tuple[str, str], Feature]) -> Family:
    """A feature, the parent of its contig that its file names, and so on; the first of several parents."""
    family = [feature]
    while len(family) < MAX_FAMILY_SIZE:
        parent = parents.get((feature.contig, family[-1].attributes.get("Parent", "").split(",")[0]))
        if parent is None or any(parent is one for one in family):
            break
        family.append(parent)
    return family


# --- Genes as features of a file: a ``gene``, and a ``CDS`` if it is translated

_BACTERIAL = 11


def gene_features(genome: Genome) -> dict[str, list[Feature]]:
    """Features of each contig; a note says where the genes come from."""
    return {contig: [*_features(contig, genes, genome.source)] for contig, genes in genome.genes.items()}


def _features(contig: str, genes: Iterable[Gene], source: str) -> Iterator[Feature]:
    for gene in genes:
        names = gene_names(gene.name, gene.locus)
        note = {"note": f"{'pseudogene, ' if gene.pseudo else ''}{source}"}
        product = {"product": gene.product} if gene.product else {}
        codons = {"codon_start": "1", "transl_table": str(gene.table or _BACTERIAL)}
        kinds = {"gene": names | note, "CDS": names | product | codons | note}
        for kind in ("gene", "CDS") if gene.coding else ("gene",):
            yield Feature(
                *(contig, kind, (Part(gene.start, gene.end, gene.strand),), kinds[kind], ""),
                partial_start=gene.partial_start,
                partial_end=gene.partial_end,
            )


# --- Intervals of a gene of several parts

MAX_GAP = 50


class Piece(NamedTuple):
    """An interval of a gene, and whether the gene begins or ends elsewhere."""

    start: int
    end: int
    strand: str
    partial_start: bool
    partial_end: bool


def pieces_of(parts: Sequence[Part], length: int | None, offset: int | None) -> list[Piece]:
    """Join the parts of a gene that belong together; parts and pieces are in the order of transcription.

    ``length`` is that of a circular contig; ``offset`` counts the letters before the first whole codon, None
    if nothing is translated. A piece that is but the rest of a codon is left out.
    """
    groups: list[list[Part]] = []
    for part in parts:
        if groups and (shifted := _following(groups[-1][-1], part, length)):
            groups[-1].append(shifted)
        else:
            groups.append([part])
    pieces, read = [], -(offset or 0)
    for number, group in enumerate(groups):
        skip = 0 if offset is None else -read % 3
        read += sum(part.end - part.start for part in group)
        start, end, strand = min(p.start for p in group), max(p.end for p in group), group[0].strand
        start, end = (start, end - skip) if strand == "-" else (start + skip, end)
        turns = start // length * length if length else 0
        if start < end:
            pieces.append(Piece(start - turns, end - turns, strand, number > 0, number + 1 < len(groups)))
    return pieces


def _following(last: Part, part: Part, length: int | None) -> Part | None:
    """A part that continues another, moved by a round if it lies across the origin; None if it doesn't."""
    if part.strand != last.strand:
        return None
    for shift in (0, length, -length) if length else (0,):
        moved = Part(part.start + shift, part.end + shift, part.strand)
        gap = moved.start - last.end if part.strand == "+" else last.start - moved.end
        if -MAX_GAP <= gap <= MAX_GAP:
            return moved
    return None


# --- Read genes from GenBank and GFF3


def read_genes(
    path: str | Path, circles: Mapping[str, int] | None = None, *, duplicates: Duplicates = "error"
) -> Genome:
    """Read the genes of a GenBank or GFF3 file; its content decides on the format, not its name.

    ``circles`` are lengths of contigs known to be circular: a gene on either side of the origin is one there.
    """
    file = read_annotated(path, is_wanted, circles, duplicates=duplicates)
    return _genome(file, display_name(path), circles or {})


def genes_of_records(
    records: Iterable[SeqRecord],
    path: str | Path,
    circles: Mapping[str, int],
    *,
    duplicates: Duplicates = "error",
) -> Genome:
    """The same of the records of a GenBank file, read with their features."""
    name = display_name(path)
    file = genbank_annotation(records, name, is_wanted, circles, UniqueIds(duplicates, name))
    return _genome(file, name, circles)


def _genome(file: AnnotatedFile, name: str, circles: Mapping[str, int]) -> Genome:
    around = {**circles, **{contig: file.lengths[contig] for contig in file.circular}}
    families = list(families_of(file.features))
    with_frames = any(family[0].kind == "CDS" for family in families)
    found: dict[str, dict[Gene, None]] = {contig: {} for contig in file.lengths}
    for family in families:  # genes are keys, so that those of several transcripts are kept once
        coding = _is_coding(family, with_frames)
        found.setdefault(family[0].contig, {}).update(dict.fromkeys(_genes(family, around, coding)))
    genes = {contig: sort_genes(ones) for contig, ones in found.items()}
    source = f"{file.format} {short_name(name)}"
    notes = (f"{name}: {file.note}",) if file.note else ()
    return Genome(
        *(genes, source, file.lengths, frozenset(around), name, file.others), names=file.names, notes=notes
    )


def _is_coding(family: Family, with_frames: bool) -> bool:
    """Whether a family is translated; in a file without CDS, a gene is unless the file says otherwise."""
    if family[0].kind == "CDS":
        return True
    biotype = _first(family, "gene_biotype", "biotype") or "protein_coding"
    return (
        is_locus(family[0].kind)
        and not with_frames
        and biotype == "protein_coding"
        and not any(is_pseudo(one.kind, one.attributes) for one in family)
    )


def _genes(family: Family, around: Mapping[str, int], coding: bool) -> Iterator[Gene]:
    """The gene of a family, or its pieces; ``around`` are the lengths of circular contigs."""
    feature = family[0]
    locus = (
        _first(family, "locus_tag", "gene_id") or _first(family[::-1], "ID") or _first(family, "protein_id")
    )
    name = _first(family, "gene") or _first([one for one in family if is_locus(one.kind)], "Name")
    table = feature.attributes.get("transl_table", "")
    if strange := [part.strand for part in feature.parts if part.strand not in ("+", "-")]:
        raise InputError(f"a gene has the strand '{strange[0]}'", where=feature.where, remedy="use + or -")
    pieces = pieces_of(feature.parts, around.get(feature.contig), feature.offset if coding else None)
    for number, piece in enumerate(pieces, start=1):
        cut = feature.partial_start or feature.offset > 0
        yield Gene(
            *piece[:3],
            name=name or locus or f"{feature.kind}_{pieces[0].start + 1}",
            locus=locus,
            product=_first(family, "product"),
            partial_start=piece.partial_start or (number == 1 and cut),
            partial_end=piece.partial_end or (number == len(pieces) and feature.partial_end),
            pseudo=any(is_pseudo(one.kind, one.attributes) for one in family),
            coding=coding,
            table=int(table) if coding and re.fullmatch(r"[0-9]{1,2}", table) else None,
        )


def _first(family: Family, *keys: str) -> str:
    """The first value that a feature or one of its parents has; empty if there is none."""
    return next((one.attributes[key] for one in family for key in keys if one.attributes.get(key)), "")
