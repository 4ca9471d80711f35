"""Whether genes and sequences belong together: names of contigs, their lengths, and start codons."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

import numpy as np

from seqray.annotation.genes import Annotation, Gene
from seqray.core import DNA, Codes, InputError, Ints, reverse_complement_codes

_ASSEMBLY = "give the annotation of this assembly, or genes='predict'"
_MAX_SHOWN_NAMES = 3
_STARTS = ("ATG", "GTG", "TTG", "CTG", "ATT", "ATC", "ATA")  # of codon table 11
_MIN_GENES = 20
_MIN_START_SHARE = 0.5


def check_genes(annotation: Annotation, contigs: Iterable[tuple[str, Codes]]) -> None:
    """Raise `InputError` if the genes can't be those of the sequences: other names, lengths or start codons.

    Parameters
    ----------
    annotation
        As read.
    contigs
        Name and codes (n,) of each sequence, see `seqray.core.DNA`. Sequences without genes, and genes of
        other sequences, are accepted, as long as one name is common.
    """
    names, with_start, looked_at = [], 0, 0
    for name, codes in contigs:
        names.append(name)
        check_contig(annotation, name, len(codes))
        found, seen = count_starts(annotation.of(name), codes)
        with_start, looked_at = with_start + found, looked_at + seen
    check_names(annotation, names)
    check_starts(with_start, looked_at, annotation.file)


def check_names(annotation: Annotation, contigs: Collection[str]) -> None:
    """Raise `InputError` if there are no genes, or none on a sequence of these names.

    No sequences at all are another error, which reading them again explains.
    """
    annotated = [contig for contig, genes in annotation.genes.items() if genes]
    if not annotated:
        others = f", only features {_some(annotation.others)}" if annotation.others else ""
        remedy = "give another file, genes='predict' or genes=None"
        raise InputError(f"contains no genes{others}", where=annotation.file, remedy=remedy)
    if contigs and not set(annotated) & set(contigs):
        same = {_versionless(name) for name in annotated} & {_versionless(name) for name in contigs}
        raise InputError(
            f"has genes of {_some(annotated)}, but the sequences are {_some(contigs)}",
            where=annotation.file,
            remedy="only the version after the dot differs: use files of one version"
            if same
            else "use the same names in both files",
        )


def check_contig(annotation: Annotation, contig: str, length: int) -> None:
    """Raise `InputError` if the annotation gives a contig another length, or a gene lies beyond its end."""
    stated = annotation.lengths.get(contig, length)
    if stated != length and annotation.of(contig):
        raise InputError(
            f"states {stated} letters of '{contig}', which has {length}",
            where=annotation.file,
            remedy=_ASSEMBLY,
        )
    reach = 2 * length if contig in annotation.circular else length
    for gene in annotation.of(contig):
        if gene.start >= length or gene.end > reach:
            raise InputError(
                f"the gene '{gene.name}' ({gene.start + 1}-{gene.end}) lies beyond the end of '{contig}', "
                f"which has {length} letters",
                where=annotation.file,
                remedy=_ASSEMBLY,
            )


def count_starts(genes: Sequence[Gene], codes: Codes) -> tuple[int, int]:
    """Count the genes that begin with a start codon of bacteria (ATG, GTG, TTG, CTG, ATT, ATC, ATA).

    Parameters
    ----------
    genes
        Of one contig. Only complete coding genes are looked at; pseudogenes are not.
    codes
        (n,) of the contig, see `seqray.core.DNA`.

    Returns
    -------
    tuple of int
        Genes with a start codon, and genes looked at.
    """
    if not len(codes):
        return 0, 0
    forward, backward = (_start_codons(genes, strand) for strand in "+-")
    codons = np.concatenate(
        [
            codes[(forward[:, None] + np.arange(3)) % len(codes)],
            reverse_complement_codes(codes[(backward[:, None] + np.arange(-2, 1)) % len(codes)]),
        ]
    )
    known = {tuple(DNA.encode(codon).tolist()) for codon in _STARTS}
    return sum(tuple(codon) in known for codon in codons.tolist()), len(codons)


def _start_codons(genes: Iterable[Gene], strand: str) -> Ints:
    chosen = (gene for gene in genes if gene.strand == strand and gene.coding and gene.complete)
    return np.array([gene.start_codon for gene in chosen if not gene.pseudo], dtype=np.int64)


def check_starts(with_start: int, looked_at: int, file: str) -> None:
    """Raise `InputError` if fewer than half of at least 20 genes begin with a start codon.

    In a random place 11 % of codons are one.

    The counts are those of `count_starts`, summed over contigs.
    """
    if looked_at >= _MIN_GENES and with_start < _MIN_START_SHARE * looked_at:
        raise InputError(
            f"the genes do not fit the sequence: {100 * with_start / looked_at:.0f} % of {looked_at} begin "
            "with a start codon",
            where=file,
            remedy=_ASSEMBLY,
        )


def _versionless(name: str) -> str:
    stem, dot, version = name.rpartition(".")
    return stem if dot and version.isdigit() else name


def _some(names: Collection[str]) -> str:
    shown = ", ".join(f"'{name}'" for name in list(names)[:_MAX_SHOWN_NAMES])
    return (
        f"{shown} and {len(names) - _MAX_SHOWN_NAMES} more"
        if len(names) > _MAX_SHOWN_NAMES
        else shown or "none"
    )
