"""Read genes from GenBank and GFF3.

A coding sequence (CDS) is a gene, and so is an RNA other than mRNA. A feature ``gene`` or ``pseudogene`` is
one only if none of these belongs to it: a pseudogene without a reading frame, a gene of a file without CDS.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from seqray.annotation.families import Family, families_of, is_locus, is_wanted
from seqray.annotation.genes import Annotation, Gene, sort_genes
from seqray.annotation.pieces import pieces_of
from seqray.core import InputError
from seqray.io import display_name, short_name
from seqray.io.sequences import Duplicates
from seqray.io.tracks import AnnotatedFeature, is_pseudo, read_annotated


def read_genes(
    path: str | Path, circles: Mapping[str, int] | None = None, *, duplicates: Duplicates = "error"
) -> Annotation:
    """Read the genes of a GenBank or GFF3 file; its content decides on the format, not its name.

    Raises `InputError` if the file can't be read, has another format, is cut off or damaged, has a gene
    without a strand, or if two of its GenBank records have one id.

    Parameters
    ----------
    path
        Plain or compressed; ``-`` is standard input. GFF3 of NCBI, Prokka, Bakta, Prodigal or Ensembl, with
        or without its FASTA.
    circles
        Lengths of contigs that are known to be circular, whether the file says so or not: a gene in two parts
        on either side of the origin is then one.
    duplicates
        As the sequences of the same GenBank file are read: under ``rename`` each record keeps its own genes.
    """
    file = read_annotated(path, is_wanted, circles, duplicates=duplicates)
    around = {**(circles or {}), **{contig: file.lengths[contig] for contig in file.circular}}
    families = list(families_of(file.features))
    with_frames = any(family[0].kind == "CDS" for family in families)
    found: dict[str, dict[Gene, None]] = {contig: {} for contig in file.lengths}
    for family in families:  # genes are keys, so that those of several transcripts are kept once
        coding = _is_coding(family, with_frames)
        found.setdefault(family[0].contig, {}).update(dict.fromkeys(_genes(family, around, coding)))
    genes = {contig: sort_genes(ones) for contig, ones in found.items()}
    name = display_name(path)
    source = f"{file.format} {short_name(name)}"
    return Annotation(genes, source, file.lengths, frozenset(around), name, file.others)


def _is_coding(family: Family, with_frames: bool) -> bool:
    """Whether a family is translated; in a file without CDS, a gene is unless the file says otherwise."""
    if family[0].kind == "CDS":
        return True
    biotype = _first(family, "gene_biotype", "biotype") or "protein_coding"
    return (
        is_locus(family[0].kind)
        and not with_frames
        and biotype == "protein_coding"
        and not any(map(_is_pseudo, family))
    )


def _genes(family: Family, around: Mapping[str, int], coding: bool) -> Iterator[Gene]:
    """The gene of a family, or its pieces; ``around`` are the lengths of circular contigs."""
    feature, name, locus = family[0], _name(family), _locus(family)
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
            pseudo=any(map(_is_pseudo, family)),
            coding=coding,
            table=_table(feature) if coding else None,
        )


def _is_pseudo(feature: AnnotatedFeature) -> bool:
    return is_pseudo(feature.kind, feature.attributes)


def _table(feature: AnnotatedFeature) -> int | None:
    stated = feature.attributes.get("transl_table", "")
    return int(stated) if re.fullmatch(r"[0-9]{1,2}", stated) else None


def _locus(family: Family) -> str:
    return (
        _first(family, "locus_tag", "gene_id") or _first(family[::-1], "ID") or _first(family, "protein_id")
    )


def _name(family: Family) -> str:
    return _first(family, "gene") or _first([one for one in family if is_locus(one.kind)], "Name")


def _first(family: Family, *keys: str) -> str:
    """The first value that a feature or one of its parents has; empty if there is none."""
    return next((one.attributes[key] for one in family for key in keys if one.attributes.get(key)), "")
