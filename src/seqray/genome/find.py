"""Genes of a genome: read from GenBank or GFF3, or predicted by Pyrodigal, which is imported where used."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from Bio.Data import CodonTable
from Bio.Seq import Seq
from Bio.SeqRecord import SeqRecord

from seqray.core.alphabet import DNA, reverse_complement
from seqray.core.arrays import Codes
from seqray.core.errors import ConfigError, InputError, missing_package, setting
from seqray.core.records import SequenceRecord
from seqray.genome.genes import Annotation, Gene, check_genes, genes_on_circle, sort_genes
from seqray.io.features import read_annotated
from seqray.io.files import display_name, short_name
from seqray.io.genbank import genbank_annotation, gene_names
from seqray.io.lines import AnnotatedFile, Feature, Part, is_pseudo
from seqray.io.records import Duplicates, UniqueIds
from seqray.io.tables import one_line

if TYPE_CHECKING:
    import pyrodigal

# --- Which features of a file belong to one gene

Family = list[Feature]
"""What is transcribed, then the features that describe it, up to the gene."""

MAX_FAMILY_SIZE = 10  # a file may name parents without end, or thousands of genes alike
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


def gene_features(annotation: Annotation) -> dict[str, list[Feature]]:
    """Features of each contig; a note says where the genes come from."""
    return {
        contig: [*_features(contig, genes, annotation.source)] for contig, genes in annotation.genes.items()
    }


def _features(contig: str, genes: Iterable[Gene], source: str) -> Iterator[Feature]:
    for gene in genes:
        names = gene_names(gene.name, gene.locus)
        note = {"note": f"{'pseudogene, ' if gene.pseudo else ''}{source}"}
        product = {"product": gene.product} if gene.product else {}
        codons = {"codon_start": "1", "transl_table": str(gene.table or _BACTERIAL)}
        kinds = {"gene": names | note, "CDS": names | product | codons | note}
        for kind in ("gene", "CDS") if gene.coding else ("gene",):
            yield Feature(
                contig,
                kind,
                (Part(gene.start, gene.end, gene.strand),),
                kinds[kind],
                "",
                partial_start=gene.partial_start,
                partial_end=gene.partial_end,
            )


def proteins(annotation: Annotation, contigs: Iterable[SequenceRecord]) -> Iterator[tuple[str, str, str]]:
    """Name, place and residues of each protein; of a gene in pieces not all bases are known."""
    tables = CodonTable.unambiguous_dna_by_id
    for contig in contigs:
        genes, text = annotation.genes.get(contig.id, ()), contig.sequence
        pieces = Counter(gene.locus or gene.name for gene in genes if gene.coding and not gene.complete)
        for gene in genes:
            whole = gene.complete or pieces[gene.locus or gene.name] == 1
            if not (gene.coding and whole) or gene.pseudo:
                continue
            if (number := gene.table or _BACTERIAL) not in tables:
                remedy = f"choose one of {', '.join(map(str, tables))}"
                raise InputError(
                    f"{gene.name} has no codon table {number}", where=annotation.file, remedy=remedy
                )
            bases = text[gene.start : gene.end] + text[: max(gene.end - len(text), 0)]
            bases = reverse_complement(bases, DNA) if gene.strand == "-" else bases
            residues = str(Seq(bases[: len(bases) // 3 * 3]).translate(table=str(number)))
            starts = not gene.partial_start and bases[:3].upper() in tables[number].start_codons
            place = f"{contig.id}:{gene.start + 1}-{gene.end}({gene.strand})"
            about = " ".join(filter(None, (gene.locus * (gene.locus != gene.name), place, gene.product)))
            name = "_".join(gene.name.split())
            yield name, one_line(about), (f"M{residues[1:]}" if starts else residues).removesuffix("*")


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
    """Join the parts of a gene that belong together; both in the order of transcription.

    ``length`` is that of a circle, ``offset`` the letters before the first codon, None without any.
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
) -> Annotation:
    """Read the genes of a GenBank or GFF3 file; its content decides on the format, not its name.

    ``circles`` are lengths of contigs known to be circular: a gene on either side of the origin is one there.
    """
    file = read_annotated(path, is_wanted, circles, duplicates=duplicates)
    return _annotation(file, display_name(path), circles or {})


def genes_of_records(
    records: Iterable[SeqRecord],
    path: str | Path,
    circles: Mapping[str, int],
    *,
    duplicates: Duplicates = "error",
) -> Annotation:
    """The same of the records of a GenBank file, read with their features."""
    name = display_name(path)
    file = genbank_annotation(records, name, is_wanted, circles, UniqueIds(duplicates, name))
    return _annotation(file, name, circles)


def _annotation(file: AnnotatedFile, name: str, circles: Mapping[str, int]) -> Annotation:
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
    return Annotation(
        genes, source, file.lengths, frozenset(around), name, file.others, names=file.names, notes=notes
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


# --- Predict genes of bacteria, archaea and their viruses

# Prodigal's authors advise to train on 100 kb or more, and on drafts whose contigs have some 3 kb or more.
MIN_TRAINING_LETTERS = 100_000
MIN_N50 = 3_000
MAX_TRAINING_LETTERS = 20_000_000
MAX_CONTIG_LETTERS = 32_000_000  # Prodigal's longest sequence; no bacterium has a longer chromosome

STANDARD, MYCOPLASMA = 11, 4
_MAX_SAMPLE_LETTERS = 300_000
# Table 4 reads TGA as an amino acid, so table 11 cuts its genes to pieces. In 100,000 letters of M.
# pneumoniae, genes of table 11 have 372 to 487 letters on average, and table 4 finds .08 to .17 more that is
# coding. In 22 genomes of table 11 they have 529 or more, and table 4 finds less than .05 more. Measured by
# benchmarks/codon_tables.py.
_MIN_MEAN_GENE_LENGTH = 600
_MIN_CODING_GAIN, _MIN_CODING_SHARE = 0.05, 0.70


class GenePredictor:
    """Finds genes, as it was trained to or by ready-made models; safe to share between threads."""

    def __init__(self, finder: pyrodigal.GeneFinder, table: int | None, *, trained: bool) -> None:
        self._finder, self.table, self._trained = finder, table, trained

    @property
    def source(self) -> str:
        """The program and the way of prediction, for headers of outputs."""
        mode = "" if self._trained else ", metagenomic mode"
        table = f", codon table {self.table}" if self.table else ""
        return f"predicted by pyrodigal {version('pyrodigal')}{mode}{table}"

    @classmethod
    def train(cls, sequences: Iterable[str], table: int | None = None) -> GenePredictor:
        """Learn from the contigs of one genome; of too few letters, or short contigs, nothing is learned."""
        try:
            import pyrodigal
        except ImportError:
            raise missing_package("pyrodigal", "genes") from None
        tables = sorted(pyrodigal.TRANSLATION_TABLES)
        if table is not None and table not in tables:
            known = ", ".join(map(str, tables))
            raise ConfigError(f"unknown codon table {table}", remedy=f"choose one of {known}")
        contigs = _take((check_predictable(sequence) for sequence in sequences), MAX_TRAINING_LETTERS)
        sizes = [len(contig) - contig.count("N") for contig in contigs]
        long = sum(size for size in sizes if size >= MIN_N50)
        if sum(sizes) < MIN_TRAINING_LETTERS or 2 * long < sum(sizes):
            return cls(_ready_made(table), table, trained=False)
        if table is not None:
            return cls(_trained(contigs, table), table, trained=True)
        sample = _take(sorted(contigs, key=len, reverse=True), _MAX_SAMPLE_LETTERS)
        standard = _trained(contigs, STANDARD)
        count, share = _coding(standard, sample)
        if share * sum(map(len, sample)) < _MIN_MEAN_GENE_LENGTH * count:
            other = _trained(contigs, MYCOPLASMA)
            if _coding(other, sample)[1] > max(_MIN_CODING_SHARE, share + _MIN_CODING_GAIN):
                return cls(other, MYCOPLASMA, trained=True)
        return cls(standard, STANDARD, trained=True)

    def genes_of(self, sequence: str, *, circular: bool = False, name: str = "gene") -> tuple[Gene, ...]:
        """Genes of one contig; those that run beyond a linear contig are partial."""
        check_predictable(sequence, where=f"record '{name}'")
        genes = genes_on_circle(sequence, self._find) if circular else self._find(sequence)
        named = ((f"{name}_{number}", gene) for number, gene in enumerate(genes, start=1))
        return tuple(replace(gene, name=tag, locus=tag) for tag, gene in named)

    def _find(self, sequence: str) -> tuple[Gene, ...]:
        genes = self._finder.find_genes(sequence)
        return sort_genes(
            Gene(
                start=gene.begin - 1,
                end=gene.end,
                strand="+" if gene.strand == 1 else "-",
                name="",
                partial_start=gene.partial_begin if gene.strand == 1 else gene.partial_end,
                partial_end=gene.partial_end if gene.strand == 1 else gene.partial_begin,
                table=genes.training_info.translation_table,
            )
            for gene in genes
        )


def predicted_genes(
    records: Sequence[SequenceRecord],
    table: int | None = None,
    *,
    is_circular: Callable[[SequenceRecord], bool] | None = None,
) -> Annotation:
    """Genes predicted contig by contig, after learning from the first; with ``is_circular``, that one now."""
    for record in records:  # training reads a part; too long a contig is refused before the scan
        check_predictable(record.sequence, where=f"record '{record.id}'")
    predictor = GenePredictor.train((record.sequence.replace("U", "T") for record in records), table)

    def predict(record: SequenceRecord, circular: bool) -> tuple[Gene, ...]:
        return predictor.genes_of(record.sequence.replace("U", "T"), circular=circular, name=record.id)

    first = records[:1] if is_circular else []
    ready = {record.id: predict(record, bool(is_circular and is_circular(record))) for record in first}
    return Annotation(ready, predictor.source, predict=predict)


def predict_all(
    records: Sequence[SequenceRecord], *, table: int | None = None, threads: int = 1
) -> Annotation:
    """Predict the genes of all contigs of a genome, so many at a time, after training on all of them."""
    predictor = GenePredictor.train((record.sequence for record in records), table)

    def predict(record: SequenceRecord) -> tuple[Gene, ...]:
        return predictor.genes_of(record.sequence, circular=record.circular, name=record.id)

    with ThreadPoolExecutor(threads) as pool:
        genes = list(pool.map(predict, records))
    lengths = {record.id: len(record) for record in records}
    circular = frozenset(record.id for record in records if record.circular)
    return Annotation(dict(zip(lengths, genes, strict=True)), predictor.source, lengths, circular)


def choose_genes(
    genes: str | Path | Annotation,
    records: Iterable[SequenceRecord],
    is_circular: Callable[[SequenceRecord], bool],
    *,
    table: int | None = None,
    own: Callable[[Mapping[str, int]], Annotation] | None = None,
    ahead: bool = False,
    introns: bool = False,
) -> tuple[Annotation | None, str]:
    """Read or predict the genes that were asked for; None with the reason where there are none."""
    predicted, needed = genes in ("auto", "predict"), genes == "predict" or table is not None
    if table is not None and not predicted:
        raise ConfigError(
            f"{setting('codon_table', table)} is for predicted genes, but "
            f"{setting('genes', genes.source if isinstance(genes, Annotation) else genes)} was given",
            remedy="give one of them",
        )
    if introns and needed:
        raise ConfigError(
            "the model is for genomes whose genes have introns, which are not predicted",
            remedy=f"give {setting('genes')} as GFF3 or GenBank, or {setting('genes', 'none')}",
        )
    if genes == "none":
        return None, ""
    circles = {record.id: len(record) for record in records if is_circular(record)}
    contigs = ((record.id, DNA.encode(record.sequence.replace("U", "T"))) for record in records)
    annotation, reason = None, ""
    if not predicted:
        annotation = genes if isinstance(genes, Annotation) else read_genes(genes, circles)
        annotation = check_genes(annotation, contigs, introns=introns)
    elif genes == "auto" and own is not None:
        annotation = _own_genes(partial(own, circles), contigs, table, introns)
    if annotation is None:
        first = is_circular if ahead else None
        annotation, reason = _predict_if_possible(records, table, first, introns, needed)
    return annotation, reason


def _own_genes(
    own: Callable[[], Annotation], contigs: Iterable[tuple[str, Codes]], table: int | None, introns: bool
) -> Annotation | None:
    """The genes that the sequences come with; None if they come without."""
    try:
        annotation = own()
        if not annotation.count:
            return None
        check_genes(annotation, contigs, introns=introns)
    except InputError as error:
        without = f"or give {setting('genes', None if introns else 'predict')}"
        remedy = error.remedy if without in error.remedy else f"{error.remedy or 'correct it'}, {without}"
        raise InputError(error.what, where=error.where, remedy=remedy) from None
    if table is not None:
        raise ConfigError(
            f"{setting('codon_table', table)} is for predicted genes, but {annotation.file} names genes",
            remedy=f"give {setting('genes', 'predict')}, too",
        )
    return annotation


def _predict_if_possible(
    records: Iterable[SequenceRecord],
    table: int | None,
    is_circular: Callable[[SequenceRecord], bool] | None,
    introns: bool,
    needed: bool,
) -> tuple[Annotation | None, str]:
    """Predicted genes, or why there are none, which is an error if they are needed."""
    if introns:
        known = f"give {setting('genes')} as GFF3 or GenBank"
        return None, f"{known}, for genes with introns are not predicted"
    if not needed and find_spec("pyrodigal") is None:
        return None, f"give {setting('genes')}, or pip install pyrodigal to predict them"
    try:
        return predicted_genes(list(records), table, is_circular=is_circular), ""
    except InputError as error:
        if needed:
            raise
        return None, str(error)


def check_predictable(sequence: str, where: str = "") -> str:
    """Raise `InputError` for a contig of more than `MAX_CONTIG_LETTERS`; returns its letters."""
    if len(sequence) > MAX_CONTIG_LETTERS:
        what = f"genes can't be predicted in a contig of {len(sequence)} bases, too many for a bacterium"
        raise InputError(what, where=where, remedy="give genes in a file, or none")
    return sequence


def _take(sequences: Iterable[str], most: int) -> list[str]:
    """Whole sequences until there are enough letters; the last is cut."""
    taken: list[str] = []
    for sequence in sequences:
        taken.append(sequence[:most])
        most -= len(taken[-1])
        if most <= 0:
            break
    return taken


def _trained(contigs: Sequence[str], table: Any) -> pyrodigal.GeneFinder:
    import pyrodigal

    finder = pyrodigal.GeneFinder(mask=True)
    finder.train(*contigs, translation_table=table)
    return finder


def _ready_made(table: int | None) -> pyrodigal.GeneFinder:
    import pyrodigal

    bins = pyrodigal.METAGENOMIC_BINS
    if table is not None:
        own = [one for one in bins if one.training_info.translation_table == table]
        if not own:
            raise InputError(
                f"fewer than {MIN_TRAINING_LETTERS} bases are too few to learn genes of codon table {table}",
                remedy=f"give more of the genome, or codon table {STANDARD} or {MYCOPLASMA}",
            )
        bins = pyrodigal.MetagenomicBins(own)
    return pyrodigal.GeneFinder(meta=True, mask=True, metagenomic_bins=bins)


def _coding(finder: pyrodigal.GeneFinder, sample: Sequence[str]) -> tuple[int, float]:
    """Number of genes, and the share of letters in them."""
    sizes = [gene.end - gene.begin + 1 for contig in sample for gene in finder.find_genes(contig)]
    return len(sizes), sum(sizes) / sum(map(len, sample))
