"""Genes as asked for: read, or predicted for bacteria, archaea and their viruses by Pyrodigal.

Pyrodigal (the extra ``genes``) is imported where it is used: genes of a file are read without it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seqray.core.alphabet import DNA
from seqray.core.errors import ConfigError, InputError, missing_package, setting
from seqray.core.records import SequenceRecord
from seqray.genome.genes import Gene, Genome, check_genes, genes_on_circle, sort_genes
from seqray.genome.read import read_genes

if TYPE_CHECKING:
    import pyrodigal

# Prodigal's authors advise to train on 100 kb or more, and on drafts whose contigs have some 3 kb or more.
MIN_TRAINING_LETTERS = 100_000
MIN_N50 = 3_000
MAX_TRAINING_LETTERS = 20_000_000
MAX_CONTIG_LETTERS = 32_000_000
"""Prodigal's longest sequence; no bacterium has a longer chromosome."""

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
        """Learn from the contigs of one genome.

        From fewer than `MIN_TRAINING_LETTERS`, or mostly contigs below `MIN_N50`, nothing is learned:
        ready-made models of many species are used.
        """
        try:
            import pyrodigal
        except ImportError:
            raise missing_package("pyrodigal", "genes") from None
        tables = sorted(pyrodigal.TRANSLATION_TABLES)
        if table is not None and table not in tables:
            raise ConfigError(
                f"unknown codon table {table}", remedy=f"choose one of {', '.join(map(str, tables))}"
            )
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
) -> Genome:
    """Genes predicted contig by contig, after learning from the first; with ``is_circular``, that one now."""
    for record in records:  # training reads a part; too long a contig is refused before the scan
        check_predictable(record.sequence, where=f"record '{record.id}'")
    predictor = GenePredictor.train((record.sequence.replace("U", "T") for record in records), table)

    def predict(record: SequenceRecord, circular: bool) -> tuple[Gene, ...]:
        return predictor.genes_of(record.sequence.replace("U", "T"), circular=circular, name=record.id)

    first = records[:1] if is_circular else []
    ready = {record.id: predict(record, bool(is_circular and is_circular(record))) for record in first}
    return Genome(ready, predictor.source, predict=predict)


def predict_all(records: Sequence[SequenceRecord], *, table: int | None = None, threads: int = 1) -> Genome:
    """Predict the genes of all contigs of a genome, so many at a time, after training on all of them.

    The longest contig takes about 30 bytes a letter on top of the records.
    """
    predictor = GenePredictor.train((record.sequence for record in records), table)

    def predict(record: SequenceRecord) -> tuple[Gene, ...]:
        return predictor.genes_of(record.sequence, circular=record.circular, name=record.id)

    with ThreadPoolExecutor(threads) as pool:
        genes = list(pool.map(predict, records))
    return Genome(
        {record.id: own for record, own in zip(records, genes, strict=True)},
        predictor.source,
        {record.id: len(record) for record in records},
        frozenset(record.id for record in records if record.circular),
    )


def choose_genes(
    genes: str | Path | Genome,
    records: Iterable[SequenceRecord],
    is_circular: Callable[[SequenceRecord], bool],
    *,
    table: int | None = None,
    own: Callable[[Mapping[str, int]], Genome] | None = None,
    ahead: bool = False,
    introns: bool = False,
) -> tuple[Genome | None, str]:
    """Read or predict the genes that were asked for."""
    predicted = isinstance(genes, str) and genes in ("auto", "predict")
    if table is not None and not predicted:
        raise ConfigError(
            f"{setting('codon_table', table)} is for predicted genes, but "
            f"{setting('genes', genes.source if isinstance(genes, Genome) else genes)} was given",
            remedy="give one of them",
        )
    if isinstance(genes, str) and genes == "none":
        return None, ""
    circles = {record.id: len(record) for record in records if is_circular(record)}
    contigs = ((record.id, DNA.encode(record.sequence.replace("U", "T"))) for record in records)
    if not predicted:
        genome = genes if isinstance(genes, Genome) else read_genes(genes, circles)
        return check_genes(genome, contigs), ""
    if genes == "auto" and own is not None:
        try:
            genome = own(circles)
            if genome.count:
                check_genes(genome, contigs)
        except InputError as error:
            without = f"or give {setting('genes', 'predict')}"
            remedy = error.remedy if without in error.remedy else f"{error.remedy or 'correct it'}, {without}"
            raise InputError(error.what, where=error.where, remedy=remedy) from None
        if genome.count and table is not None:
            raise ConfigError(
                f"{setting('codon_table', table)} is for predicted genes, but {genome.file} names genes",
                remedy=f"give {setting('genes', 'predict')}, too",
            )
        if genome.count:
            return genome, ""
    needed = genes == "predict" or table is not None
    if introns:
        remedy = f"give {setting('genes')} as GFF3 or GenBank"
        if needed:
            raise ConfigError(
                "the model is for genomes whose genes have introns, which are not predicted",
                remedy=f"{remedy}, or {setting('genes', 'none')}",
            )
        return None, f"{remedy}, for genes with introns are not predicted"
    if not needed and find_spec("pyrodigal") is None:
        return None, f"give {setting('genes')}, or pip install pyrodigal to predict them"
    try:
        return predicted_genes(list(records), table, is_circular=is_circular if ahead else None), ""
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
