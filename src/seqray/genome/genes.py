"""Genes on a genome: a gene, an annotation, and what lies around a site."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate

import numpy as np
import numpy.typing as npt

from seqray.core.alphabet import DNA, reverse_complement_codes
from seqray.core.arrays import Codes
from seqray.core.errors import ConfigError, InputError, setting
from seqray.core.records import SequenceRecord
from seqray.core.text import first_and_more

_OPPOSITE = {"+": "-", "-": "+"}

# --- A gene, and the annotation of a genome


@dataclass(frozen=True, slots=True)
class Gene:
    """A gene, or one of its pieces: 0-based and half-open on the plus strand, perhaps beyond the origin."""

    start: int
    end: int
    strand: str  # ``+`` or ``-``
    name: str  # of the gene (``lacZ``), else its locus tag, else its ID
    locus: str = ""  # locus tag or ID; empty if there is none
    product: str = ""  # description of the product; empty if there is none
    # whether the 5' or 3' end lies elsewhere: beyond the contig, or in another piece. A coding gene with a
    # partial start begins with a whole codon
    partial_start: bool = False
    partial_end: bool = False
    pseudo: bool = False  # whether the file calls it a pseudogene
    coding: bool = True  # genes of RNA, and pseudogenes without a reading frame, are not
    table: int | None = None  # NCBI's number of its codon table; None if it is not stated

    @property
    def start_codon(self) -> int:
        """Position of the first letter in reading direction; it may exceed the length, as ``end`` does."""
        return self.start if self.strand == "+" else self.end - 1

    @property
    def place(self) -> tuple[int, int, str]:
        """Start, end and strand."""
        return self.start, self.end, self.strand

    @property
    def complete(self) -> bool:
        """Whether both ends are known."""
        return not (self.partial_start or self.partial_end)


@dataclass(frozen=True)
class Annotation:
    """The genes of a genome, read or predicted."""

    # by contig, sorted by start and end; contigs whose genes are not known are missing
    genes: Mapping[str, tuple[Gene, ...]]
    source: str  # where they come from, for messages and headers of outputs
    lengths: Mapping[str, int] = field(default_factory=dict)  # length of each contig, where it is stated
    # names of the contigs that the file of genes, or who read it, calls circular
    circular: Collection[str] = frozenset()
    file: str = ""  # that was read, for errors; empty for genes that were predicted
    others: Collection[str] = ()  # kinds of the features of the file that are no genes
    # finds the genes of a contig, and whether it is circular, when they are first asked for
    predict: Callable[[SequenceRecord, bool], tuple[Gene, ...]] | None = None
    # other names that the file states for its contigs, such as ``I`` for ``NC_001133.9``
    names: Mapping[str, Collection[str]] = field(default_factory=dict)
    # what was left out of the file, and which of its contigs were matched under other names
    notes: Sequence[str] = ()

    def of(self, contig: str) -> tuple[Gene, ...]:
        """The genes of one contig; empty if there are none."""
        return self.genes.get(contig, ())

    def find(self, contig: SequenceRecord, circular: bool) -> tuple[Gene, ...] | None:
        """The genes of a contig, predicted if need be; None where they are not known."""
        genes = self.genes.get(contig.id)
        return self.predict(contig, circular) if genes is None and self.predict else genes

    @property
    def count(self) -> int:
        """Number of genes; one in several pieces counts once."""
        return sum(map(count_genes, self.genes.values()))


def count_genes(genes: Iterable[Gene]) -> int:
    """Count the genes of a contig: pieces of one gene share its locus, or its name if it has no locus."""
    return len({gene.locus or (gene.place if gene.complete else gene.name) for gene in genes})


def sort_genes(genes: Iterable[Gene]) -> tuple[Gene, ...]:
    """Sort by position; genes of the same interval keep their order."""
    return tuple(sorted(genes, key=lambda gene: gene.place))


# --- Genes in the coordinates of another strand, or of a part of their contig


def shift_gene(gene: Gene, by: int) -> Gene:
    """The same gene, so many letters further on."""
    return replace(gene, start=gene.start + by, end=gene.end + by)


def flip_genes(genes: Sequence[Gene], length: int) -> tuple[Gene, ...]:
    """Genes of a contig as the minus strand has them: ``+`` is then the strand that is read."""
    return tuple(
        replace(gene, start=length - gene.end, end=length - gene.start, strand=_OPPOSITE[gene.strand])
        for gene in genes
    )


def cut_genes(genes: Sequence[Gene], start: int, end: int) -> tuple[Gene, ...]:
    """What is left of genes in ``[start, end)``, counted from there; a coding gene keeps whole codons."""
    cut = []
    for gene in genes:
        low, high = max(start - gene.start, 0), max(gene.end - end, 0)
        if gene.coding and gene.strand == "+":
            low += -low % 3
        elif gene.coding:
            high += -high % 3
        if gene.start + low >= gene.end - high:
            continue
        here = (low > 0, high > 0) if gene.strand == "+" else (high > 0, low > 0)
        first, last = gene.partial_start or here[0], gene.partial_end or here[1]
        part = replace(gene, start=gene.start + low - start, end=gene.end - high - start)
        cut.append(replace(part, partial_start=first, partial_end=last))
    return tuple(cut)


# --- Genes across the origin of a circular contig

OVERLAP = 50_000  # longer than nearly every gene, and 1 % of a genome


def genes_on_circle(sequence: str, find: Callable[[str], tuple[Gene, ...]]) -> tuple[Gene, ...]:
    """Genes of one round of a circular sequence, cut at a start; those across the origin end beyond it."""
    length = len(sequence)
    overlap = min(OVERLAP, length)
    genes = [gene for gene in find(sequence + sequence[:overlap]) if gene.complete]
    places = {gene.place for gene in genes}
    agreed = [
        gene.start
        for gene in genes
        if gene.end <= overlap and (gene.start + length, gene.end + length, gene.strand) in places
    ]
    middle = overlap // 2
    cut = min(agreed, key=lambda start: abs(start - middle), default=middle)
    around = [gene for gene in genes if cut <= gene.start < cut + length and gene.end - gene.start <= length]
    return sort_genes(shift_gene(gene, -length) if gene.start >= length else gene for gene in around)


# --- Find the gene downstream of a site, and the genes that contain it

FIRST_BASES = 2
"""A transcript that begins so far inside a gene begins with it; benchmarks/leaderless.py measures it."""


class GeneIndex:
    """The genes of one contig of this length, in any order, for questions about single positions."""

    def __init__(self, genes: Sequence[Gene], length: int, *, circular: bool = False) -> None:
        self._length, self._circular = length, circular
        self._starts: dict[str, tuple[list[int], list[Gene]]] = {}
        self._intervals: dict[str, tuple[list[Gene], list[int], list[int]]] = {}
        for strand, sign in (("+", 1), ("-", -1)):  # starts on minus are negative, so that they ascend
            own = sorted((gene for gene in genes if gene.strand == strand), key=lambda gene: gene.place)
            pairs = [(sign * (gene.start_codon % length), gene) for gene in own if not gene.partial_start]
            pairs.sort(key=lambda pair: (pair[0], pair[1].start - pair[1].end))
            self._starts[strand] = [start for start, _ in pairs], [gene for _, gene in pairs]
            reached = list(accumulate((gene.end for gene in own), max))  # which bounds the search
            self._intervals[strand] = own, [gene.start for gene in own], reached

    def downstream(
        self, site: int, strand: str, reach: int = 500, inside: int = 0
    ) -> tuple[Gene, int] | None:
        """The next gene whose start lies at or after a site, and the letters between, down to -``inside``.

        Genes with a partial start do not count; of several at one letter it is the longest.
        """
        starts, genes = self._starts[strand]
        here, first = (site, 0) if strand == "+" else (-site, 1 - self._length)
        here += self._length if self._circular and here - inside < first else 0
        place, turn = bisect_left(starts, here - inside), 0
        if place == len(starts) and self._circular:
            place, turn = 0, self._length
        if place == len(starts) or (distance := starts[place] + turn - here) > reach:
            return None
        return genes[place], distance

    def containing(self, site: int, strand: str | None = None) -> Gene | None:
        """The gene that contains a position; of several that with the nearest left end, then the longest."""
        found: list[Gene] = []
        for one in strand or "+-":
            gene = self._at(site, one) or (self._at(site + self._length, one) if self._circular else None)
            found += [gene] if gene else []
        return min(
            found,
            key=lambda gene: ((site - gene.start) % self._length, gene.start - gene.end, gene.strand),
            default=None,
        )

    def antisense(self, site: int, strand: str) -> Gene | None:
        """The gene on the other strand that contains a position of this strand."""
        return self.containing(site, _OPPOSITE[strand])

    def _at(self, site: int, strand: str) -> Gene | None:
        """The last interval that contains a position."""
        genes, starts, reached = self._intervals[strand]
        place = bisect_right(starts, site) - 1
        while place >= 0 and reached[place] > site:
            if genes[place].end > site:
                return genes[place]
            place -= 1
        return None


# --- Whether genes and sequences belong together: names of contigs, their lengths, and start codons

_MAX_SHOWN_NAMES = 3
_STARTS = ("ATG", "GTG", "TTG", "CTG", "ATT", "ATC", "ATA")  # of codon table 11
_OF_THIS_ASSEMBLY = "give the annotation of this assembly, or "
_MIN_GENES = 20
_MIN_START_SHARE = 0.5


def check_genes(
    annotation: Annotation, contigs: Iterable[tuple[str, Codes]], *, introns: bool = False
) -> Annotation:
    """Raise `InputError` if the genes can't be those of the sequences: other names, lengths or start codons.

    One common name is enough. Genes come back under the names of the sequences if contigs have others.
    """
    same, with_start, looked_at = {name: name for name in {**annotation.genes, **annotation.lengths}}, 0, 0
    known, own = _other_names(annotation), dict[str, str]()  # names of sequences to those of the file
    lengths: dict[str, int] = {}
    instead = setting("genes", None if introns else "predict")
    for name, codes in contigs:
        lengths[name] = len(codes)
        own[name] = contig = same.get(name) or known.get(_plain_name(name), "")
        if contig == name:
            check_contig(annotation, name, len(codes), instead)
        if contig == name or annotation.lengths.get(contig) == len(codes):
            starting, coding = count_starts(annotation.of(contig), codes)
            with_start, looked_at = with_start + starting, looked_at + coding
    annotated = [contig for contig, genes in annotation.genes.items() if genes]
    if not annotated:
        others = f", only features {_some(annotation.others)}" if annotation.others else ""
        what, remedy = f"contains no genes{others}", f"give another file or {instead}"
        raise InputError(what, where=annotation.file, remedy=remedy)
    if lengths and not set(annotated) & set(lengths):
        named = [(contig, name) for name, contig in own.items() if contig]
        renamed = dict(named)
        if not any(map(renamed.get, annotated)) or any(
            annotation.lengths.get(contig) != lengths[name]
            or _versions_differ(contig, name)
            or renamed[contig] != name  # two sequences have names of one contig
            for contig, name in named
        ):
            stated = [annotation.lengths[name] for name in annotated if name in annotation.lengths]
            plain = {_versionless(name) for name in annotated} & {_versionless(name) for name in lengths}
            raise InputError(
                f"has genes of {_some(annotated)}, but the sequences are {_some(lengths)}",
                where=annotation.file,
                remedy="only the version after the dot differs: use files of one version"
                if plain
                else f"their lengths differ, too: {_OF_THIS_ASSEMBLY}{instead}"
                if stated and not {*stated} & {*lengths.values()}
                else f"rename them in one of the files, or give {instead}",
            )
        annotation = _renamed(annotation, renamed)
    if looked_at >= _MIN_GENES and with_start < _MIN_START_SHARE * looked_at:
        raise InputError(
            f"the genes do not fit the sequence: {100 * with_start / looked_at:.0f} % of {looked_at} begin "
            "with a start codon",
            where=annotation.file,
            remedy=_OF_THIS_ASSEMBLY + instead,
        )
    return annotation


def _plain_name(name: str) -> str:
    """A name without its version and ``chr``, in small letters; mitochondria have two short names."""
    plain = re.sub(r"\Achr(?:omosome)?_?(?=.)", "", _versionless(name).lower())
    return "mt" if plain == "m" else plain


def _other_names(annotation: Annotation) -> dict[str, str]:
    """Contigs by the plain forms of their names, and of those that the file states; each form once."""
    forms: dict[str, set[str]] = {}
    for contig in {**annotation.genes, **annotation.lengths}:
        for name in (contig, *annotation.names.get(contig, ())):
            forms.setdefault(_plain_name(name), set()).add(contig)
    return {form: next(iter(contigs)) for form, contigs in forms.items() if len(contigs) == 1}


def _versions_differ(one: str, other: str) -> bool:
    """Whether two names state different versions of one sequence, whose letters may differ."""
    return one != other and _versionless(one) == _versionless(other) not in (one, other)


def _renamed(annotation: Annotation, names: Mapping[str, str]) -> Annotation:
    """The annotation of the contigs that have other names, under these."""
    pairs = first_and_more((f"'{old}' is '{new}'" for old, new in names.items()), _MAX_SHOWN_NAMES)
    note = f"{annotation.file}: contigs are matched under other names, as their lengths agree: {pairs}"
    if left := [contig for contig, genes in annotation.genes.items() if genes and contig not in names]:
        note += f"; genes of {_some(left)} are left out, as no sequence has their names"
    return replace(
        annotation,
        genes={names[contig]: genes for contig, genes in annotation.genes.items() if contig in names},
        lengths={new: annotation.lengths[contig] for contig, new in names.items()},
        circular=frozenset(names[contig] for contig in annotation.circular if contig in names),
        notes=(*annotation.notes, note),
    )


def check_contig(annotation: Annotation, contig: str, length: int, instead: str) -> None:
    """Raise `InputError` if the file of genes states another length, or a gene lies beyond the end."""
    stated, genes = annotation.lengths.get(contig, length), annotation.of(contig)
    reach = 2 * length if contig in annotation.circular else length
    beyond = next((gene for gene in genes if gene.start >= length or gene.end > reach), None)
    what = f"states {stated} bases of '{contig}', which has {length}" if stated != length and genes else ""
    if beyond and not what:
        place = f"{beyond.start + 1}-{beyond.end}"
        what = (
            f"the gene '{beyond.name}' ({place}) lies beyond the end of '{contig}', which has {length} bases"
        )
    if what:
        raise InputError(what, where=annotation.file, remedy=_OF_THIS_ASSEMBLY + instead)


def count_starts(genes: Sequence[Gene], codes: Codes) -> tuple[int, int]:
    """Count complete coding genes (n,) that begin with a start codon of bacteria, and all such genes."""
    if not len(codes):
        return 0, 0
    whole = [gene for gene in genes if gene.coding and gene.complete and not gene.pseudo]
    forward, backward = (
        np.array([gene.start_codon for gene in whole if gene.strand == strand], dtype=np.int64)[:, None]
        for strand in "+-"
    )
    codons = np.concatenate(
        [
            codes[(forward + np.arange(3)) % len(codes)],
            reverse_complement_codes(codes[(backward + np.arange(-2, 1)) % len(codes)]),
        ]
    )
    starts = {tuple(DNA.encode(codon).tolist()) for codon in _STARTS}
    return sum(tuple(codon) in starts for codon in codons.tolist()), len(codons)


def _versionless(name: str) -> str:
    stem, dot, version = name.rpartition(".")
    return stem if dot and version.isdigit() else name


def _some(names: Collection[str]) -> str:
    return first_and_more((f"'{name}'" for name in names), _MAX_SHOWN_NAMES) or "none"


# --- Genes as numbers along one strand, the second input of a locator beside the letters


TRACKS = (
    *("known", "frame-1", "frame-2", "frame-3", "opposite", "untranslated", "start", "stop"),
    *("opposite-start", "opposite-stop", "to-start", "from-end", "to-opposite-end", "from-opposite-start"),
)
"""Names of the tracks, in the direction of the strand:

- ``known``: the genes of the contig are known; where they are not, the other tracks are 0
- ``frame-1`` to ``frame-3``: in a coding gene of this strand, by the position in the codon; ``opposite``: in
  one of the other strand; ``untranslated``: in a gene of either strand that makes no protein
- ``start``, ``stop``: outermost letter of the start and of the stop codon of a gene of this strand;
  ``opposite-start``, ``opposite-stop``: the same of the other strand
- ``to-start``: nearness of the next gene of this strand ahead, ``from-end``: of the last one behind;
  ``to-opposite-end`` and ``from-opposite-start``: of the genes of the other strand ahead and behind. Nearness
  is 1 at the outermost letter of the gene and falls evenly to 0 over `TRACK_REACH` letters.
"""

TRACK_REACH = 512

Tracks = npt.NDArray[np.uint8]

_ROWS = {name: row for row, name in enumerate(TRACKS)}
_FULL = 255  # stands for 1
_AHEAD = np.round(_FULL * np.arange(1, TRACK_REACH + 1) / TRACK_REACH).astype(np.uint8)


def track_rows(names: Sequence[str]) -> list[int]:
    """Rows of `gene_tracks`. Raises `ConfigError` for a name that is not one of `TRACKS`."""
    if unknown := [name for name in names if name not in _ROWS]:
        raise ConfigError(f"the model reads a gene track '{unknown[0]}', which is unknown")
    return [_ROWS[name] for name in names]


def gene_tracks(genes: Sequence[Gene] | None, length: int, strand: str, *, circular: bool = False) -> Tracks:
    """Tracks of a contig, in the direction of a strand."""
    tracks = np.zeros((len(TRACKS), length), dtype=np.uint8)
    if genes is None or not length:
        return tracks
    tracks[_ROWS["known"]] = _FULL
    for gene in genes:
        start = gene.start if strand == "+" else (length - gene.end) % length
        for name, first, values in _painted(gene, start, same=gene.strand == strand):
            _raise_row(tracks[_ROWS[name]], first, values, circular=circular)
    return tracks


def named_tracks(
    names: Sequence[str], genes: Sequence[Gene] | None, length: int, strand: str, *, circular: bool = False
) -> Tracks | None:
    """The tracks (T, L) that a model names; None where genes are not known, or where it names none."""
    rows = track_rows(names)
    if genes is None or not rows:
        return None
    tracks = gene_tracks(genes, length, strand, circular=circular)
    return tracks if rows == [*range(len(tracks))] else tracks[rows]  # a copy is as large as ten contigs


def tracks_reader(
    names: Sequence[str], find: Callable[[SequenceRecord, bool], Sequence[Gene] | None] | None
) -> Callable[[SequenceRecord, str, bool], Tracks | None]:
    """A function from a contig, a strand and whether it is circular to `named_tracks`; ``find`` has genes."""

    def tracks_of(contig: SequenceRecord, strand: str, circular: bool) -> Tracks | None:
        genes = find(contig, circular) if find and names else None
        return named_tracks(names, genes, len(contig), strand, circular=circular)

    return tracks_of


def _painted(gene: Gene, start: int, *, same: bool) -> Iterator[tuple[str, int, Tracks]]:
    """Tracks of a gene of the strand that is read, or of the other one, and where their values begin."""
    end = start + gene.end - gene.start
    whole = np.full(end - start, _FULL, dtype=np.uint8)
    if gene.coding and same:
        for frame in range(3):
            row = np.zeros(end - start, dtype=np.uint8)
            row[frame::3] = _FULL
            yield f"frame-{frame + 1}", start, row
    else:
        yield "opposite" if gene.coding else "untranslated", start, whole
    left, right = ("start", "stop") if same else ("opposite-stop", "opposite-start")
    ahead, behind = ("to-start", "from-end") if same else ("to-opposite-end", "from-opposite-start")
    open_left, open_right = gene.partial_start, gene.partial_end
    if not same:
        open_left, open_right = open_right, open_left
    if not open_left:  # else the true edge is not on the contig
        yield left, start, whole[:1]
        yield ahead, start - TRACK_REACH + 1, _AHEAD
    if not open_right:
        yield right, end - 1, whole[:1]
        yield behind, end - 1, _AHEAD[::-1]


def _raise_row(row: Tracks, first: int, values: Tracks, *, circular: bool) -> None:
    """Raise a row to at least these values, which may reach beyond its ends."""
    places = np.arange(first, first + len(values))
    if first >= 0 and first + len(values) <= len(row):
        part = row[first : first + len(values)]
        np.maximum(part, values, out=part)
    elif circular:
        np.maximum.at(row, places % len(row), values)
    else:
        inside = (places >= 0) & (places < len(row))
        np.maximum.at(row, places[inside], values[inside])
