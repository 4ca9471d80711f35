"""``seqray compare``: starts that two strains share, and that moved, were replaced, lost or gained."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, pairwise, product
from pathlib import Path
from typing import NamedTuple

import numpy as np

from seqray.cli.inputs import check_files, check_suffix
from seqray.cli.options import Outcome, Probability, Request, WholeNumber, option
from seqray.core.alphabet import DNA, reverse_complement
from seqray.core.errors import ConfigError, InputError
from seqray.core.records import SequenceRecord, unknown_contig
from seqray.core.text import counted
from seqray.io.calls import context_from_attributes, parse_number
from seqray.io.lines import parse_position
from seqray.io.sequences import read_sequences
from seqray.io.tables import MISSING, provenance_lines, read_rows, write_table

_REMEDY = "give two calls.tsv of 'seqray scan' with a model for genomes"
_TABLE = ("id", "contig", "strand", "site", "score", "trust", "gene", "distance")
_WORD = 12  # bases that two starts share in a row before all of them are compared
_MIN_IDENTITY, _MIN_OVERLAP = 0.8, 30  # of these bases
_UPSTREAM, _DOWNSTREAM = 60, 20  # bases around a start
# Starts that are left are compared each with each. Of 190,000 pairs by chance, of 26 % G and C, less than
# 0.02 agree in 70 % at any shift; a test works this out.
_LOWER_IDENTITY, _MAX_SHIFT = 0.7, 10
_OF_GENE, _MAX_MOVE = 81, 150  # first bases that tell a gene; most bases between two starts of one gene
_MAX_SHOWN = 5  # bases that differ
# Bases are aligned with gaps if so many more of them agree; of longer gaps the rest is hardly seen.
_MIN_SAVED, _MAX_GAP, _MIN_SEEN = 8, 20, 0.45
# Scores of the same bases differ by up to .18 with the phase of the tokens: benchmarks/results/phases.tsv.
_MAX_SCORE_CHANGE = 0.2
_CHANGES = ("same", "moved", "replaced", "lost", "gained", "unsure")
_NEAR = "just below the threshold"
_NO_SIGN = f"the same [0-9]+ bases|the gene begins|the start codon|{_NEAR}"  # begin reasons that show no loss
Pairs = Sequence[tuple[int, int]]  # places in two texts


class Start(NamedTuple):
    """A call as its file states it, and the bases around it, if known."""

    call: str
    place: str
    gene: str
    distance: int | None  # to its gene
    score: float
    trust: str
    letters: str = ""
    at: int = 0  # where the start is among them
    of_gene: str = ""  # first bases of its gene
    boxes: Sequence[tuple[str, range]] = ()  # bases of each; 0 is the start
    strand: tuple[str, str] = ("", "")  # contig and sign
    begin: int = 0  # of its gene, along the strand


_CELLS = ("call", "place", "distance", "score", "trust")
COLUMNS = ("change", "gene", "shift", *(f"{cell}_{strain}" for strain in "ab" for cell in _CELLS), "reason")


def read_starts(path: str | Path, genome: Sequence[SequenceRecord] | None = None) -> list[Start]:
    """Read calls of a locator, TSV or CSV, and from the ``genome`` the bases around; places are 1-based."""
    starts, strands = list[Start](), {(r.id, sign): text for r, sign, text in _strands(genome or ())}
    for where, row in read_rows(path, _TABLE, _REMEDY):
        contig, strand, site = row["contig"], row["strand"], parse_position(row["site"], where)
        if genome is None and re.fullmatch(re.escape(contig) + "_[0-9]+", row["gene"]):
            what = f"the gene '{row['gene']}' is named after its contig, so it has no name in another strain"
            raise InputError(what, where=where, remedy="give --genome-a and --genome-b")
        if genome is not None and (contig, "+") not in strands:
            raise unknown_contig("names the contig", contig, [record.id for record in genome], where)
        distance = None if row["gene"] == MISSING else parse_position(row["distance"], where)
        text = strands.get((contig, strand), "")
        here = len(text) - 1 - site if strand == "-" else site
        first, gene = max(here - _UPSTREAM, 0), (here + (distance or 0)) % max(len(text), 1)
        boxes, cells = list[tuple[str, range]](), {n: cell for n, cell in row.items() if cell != MISSING}
        for box in context_from_attributes(cells, where).boxes:  # these count from 1, tables from 0
            left, size = box.start + 1 - site, len(box.letters)
            boxes.append(
                (box.name, range(1 - left - size, 1 - left) if strand == "-" else range(left, left + size))
            )
        place, score = f"{contig}:{site + 1}({strand})", parse_number(row["score"], "score", where)
        of_gene = "" if distance is None else text[gene : gene + _OF_GENE]
        around = text[first : max(here + _DOWNSTREAM + 1, 0)], here - first, of_gene, boxes
        told = row["id"], place, row["gene"], distance, score, row["trust"]
        starts.append(Start(*told, *around, (contig, strand), gene))
    return starts


def _strands(genome: Sequence[SequenceRecord]) -> Iterator[tuple[SequenceRecord, str, str]]:
    for record in genome:
        yield record, "+", record.sequence
        yield record, "-", reverse_complement(record.sequence)


def compare_starts(
    a: Sequence[Start],
    b: Sequence[Start],
    tolerance: int,
    threshold: float = 0,
    genomes: Sequence[Sequence[SequenceRecord]] = (),
) -> list[tuple[object, ...]]:
    """Rows of `COLUMNS`; a start that lies more than ``tolerance`` bases elsewhere has moved."""
    chosen, taken, none = dict[int, tuple[int, int, int]](), set[int](), Start("", "", MISSING, None, 0, "")
    ways = (_by_letters, _by_fewer_letters, _by_gene_letters) if genomes else (_by_gene,)
    for way, pairs_of in enumerate(ways):
        left = [none if i in chosen else x for i, x in enumerate(a)]
        pairs = pairs_of(left, [none if j in taken else y for j, y in enumerate(b)])
        for _, i, j, shift in sorted(pairs, key=lambda pair: (pair[0], abs(pair[3]), *pair[1:3])):
            near = abs(shift) <= tolerance or min(a[i].score, b[j].score) >= threshold
            if near and i not in chosen and j not in taken:
                chosen[i] = j, shift, way
                taken.add(j)
    both = [(x, b[chosen[i][0]], *chosen[i][1:]) if i in chosen else (x, None, 0, 0) for i, x in enumerate(a)]
    both += [(None, y, 0, 0) for j, y in enumerate(b) if j not in taken]
    places = [find_letters(*of) for of in zip((a, b), (b, a), genomes[::-1], "BA", strict=False)]
    rows = list[tuple[object, ...]]()
    for x, y, shift, way in both:
        in_a, in_b = (start is not None and start.score >= threshold for start in (x, y))
        one = x if in_a else y if in_b else None
        if one is None or not (one.letters if genomes else one.gene != MISSING):
            continue
        change, told = "lost" if in_a else "gained", list[str]()
        if x and y:
            moved, weak, pairs = abs(shift) > tolerance, not (in_a and in_b), _align(x, y, shift)
            alike = way < 2 or _agreeing(x, y, pairs) >= _LOWER_IDENTITY * len(x.letters)
            change = change if weak else "moved" if moved else "same" if alike else "replaced"
            told = _change_of_score(x, y)
            told = ["below the threshold" if told else _NEAR] if weak else told
            if genomes and told and x.distance is not None and y.distance is not None:
                told += _gene_elsewhere(x, x.distance, {y.distance - shift: y.of_gene}, "B")
            told += ["the same gene"] * (way == 2)
            unlike = _differences(x, y, pairs, "B")
            same = re.match(_NO_SIGN, unlike) and not (told or moved or way)
            told += [unlike] * bool(genomes and not same and not (moved and way == 2))
            if way == 2 and change in ("moved", "replaced"):
                told += [f"the start of A: {places[0][x.call][-1]}", f"that of B: {places[1][y.call][-1]}"]
        elif genomes:
            told = places[one is y][one.call]
        elif any(start.gene == one.gene for start in (b if in_a else a)):
            told = ["another start of the gene"]
        if change in ("lost", "gained") and any(re.match(_NO_SIGN, text) for text in told):
            change = "unsure"
        gene = next((start.gene for start in (x, y) if start and start.gene != MISSING), MISSING)
        cells = [getattr(start, name) if start else None for start in (x, y) for name in _CELLS]
        rows.append((change, gene, shift if x and y else None, *cells, "; ".join(told) or None))
    return rows


def _change_of_score(a: Start, b: Start) -> list[str]:
    """Whether the start is weaker or stronger in B, by more than the phase does."""
    return ["weaker" if b.score < a.score else "stronger"] * (abs(b.score - a.score) > _MAX_SCORE_CHANGE)


def find_letters(
    starts: Sequence[Start], others: Iterable[Start], genome: Sequence[SequenceRecord], strain: str
) -> dict[str, list[str]]:
    """Where the other strain has the bases around each start, by the name of the call, and which differ.

    Ahead of that, where its gene begins elsewhere, as far as the starts of that strain, ``others``, tell.
    """
    told, strands = {start.call: ["no such bases"] for start in starts}, list(_strands(genome))
    lines = [Start("", "", MISSING, None, 0, "", text) for _, _, text in strands]
    genes: dict[tuple[str, str], dict[int, str]] = {}
    for other in others:
        genes.setdefault(other.strand, {})[other.begin] = other.of_gene
    found = sorted(_by_letters(lines, starts), reverse=True)
    for j, (i, shift) in {j: (i, shift) for _, i, j, shift in found}.items():  # the best comes last
        (record, sign, text), start = strands[i], starts[j]
        pairs = _align(start, lines[i], -shift)
        first, end = pairs[0][1], pairs[-1][1] + 1
        left, right = (first, end) if sign == "+" else (len(record) - end, len(record) - first)
        begin = end + start.at + (start.distance or 0) - pairs[-1][0] - 1
        place, near = f" at {record.id}:{left + 1}-{right}({sign})", genes.get((record.id, sign), {})
        told[start.call] = _gene_elsewhere(start, begin, near, strain, text[begin : begin + _OF_GENE])
        told[start.call].append(_differences(start, lines[i], pairs, strain, place))
    return told


def _gene_elsewhere(
    start: Start, begin: int, genes: Mapping[int, str], strain: str, there: str = ""
) -> list[str]:
    """That the gene of a start does not begin at ``begin`` in the other strain, whose bases are ``there``."""
    near = {at - begin: text for at, text in genes.items() if abs(at - begin) <= _MAX_MOVE}
    if near:
        bases = min(near, key=abs)
        way = "farther down" if bases > 0 else "farther up"
        told = f"the gene begins {counted(abs(bases), 'base')} {way}stream in {strain}"
        is_other = bases and not _is_like(start.of_gene, near[bases])
    else:
        told = f"the start codon of the gene is {there[:3]} in {strain}"
        is_other = there[:3] not in (start.of_gene[:3], "ATG", "GTG", "TTG")
        is_other = is_other and _is_like(start.of_gene[3:], there[3:])  # else it is another place
    return [told] if start.of_gene and is_other else []


def _is_like(one: str, other: str) -> bool:
    return sum(map(str.__eq__, one, other)) >= _LOWER_IDENTITY * len(one)


def _align(own: Start, other: Start, shift: int) -> Pairs:
    """Places of bases around a start and of those beside them; with gaps if many more agree then."""
    from Bio.Align import PairwiseAligner  # slow to import

    ahead, letters = shift + other.at - own.at, own.letters
    pairs = [(i, i + ahead) for i in range(max(0, -ahead), min(len(letters), len(other.letters) - ahead))]
    first, agree = max(0, ahead - _MAX_GAP), _agreeing(own, other, pairs)
    around = other.letters[first : max(0, ahead + len(letters) + _MAX_GAP)]
    if not _MIN_SEEN * len(pairs) <= agree < len(pairs) - _MAX_SHOWN:
        return pairs
    aligner = PairwiseAligner(mismatch_score=-1, open_gap_score=-8, extend_gap_score=-0.5, end_gap_score=0)
    runs = zip(*aligner.align(letters, around)[0].aligned.tolist(), strict=True)
    gapped = [(i, first + left + i - start) for (start, end), (left, _) in runs for i in range(start, end)]
    better = _agreeing(own, other, gapped) >= max(agree + _MIN_SAVED, _LOWER_IDENTITY * len(letters))
    return gapped if better and not {*pairs}.isdisjoint(gapped) else pairs


def _agreeing(own: Start, other: Start, pairs: Pairs) -> int:
    return sum(own.letters[i] == other.letters[j] for i, j in pairs)


def _differences(own: Start, other: Start, pairs: Pairs, strain: str, place: str = "") -> str:
    """How many bases around a start differ in the other strain, and which, as A has them, then B."""
    base = {i: f"{i - own.at + (i >= own.at):+d}" for i in range(len(own.letters))}
    unlike = {i: other.letters[j] for i, j in pairs if own.letters[i] != other.letters[j]}
    boxes = [(0, own.at, *box) for box in own.boxes]
    boxes += [(1, other.at, *box) for box in other.boxes if box[0] not in dict(own.boxes)]
    box_of = {of[0]: name for side, at, name, box in boxes for of in pairs if of[side] - at in box}
    turn, gaps, told = 1 if strain == "B" else -1, list[str](), dict[int | str, str]()
    for (i, j), (k, m) in pairwise(pairs):
        for bases, how in zip((m - j - 1, k - i - 1), ("inserted", "deleted")[::turn], strict=True):
            gaps += [f"{counted(bases, 'base')} {how} between {base[i]} and {base[k]}"] * min(bases, 1)
    if not unlike and not gaps:
        return f"the same {len(pairs)} bases{place and f'; other genes or bases farther away differ,{place}'}"
    for i, letter in unlike.items():
        box = box_of.get(i)
        if box and [box_of.get(k) for k in unlike].count(box) > 1:  # shown as a whole
            places = [k for k, name in box_of.items() if name == box]
            texts = ["".join(of.get(k, own.letters[k]) for k in places) for of in ({}, unlike)]
            told[box] = f"{box} box {'>'.join(texts[::turn])}"
        elif box or len(unlike) <= _MAX_SHOWN:
            of_box = f" in the {box} box" if box else ""
            told[i] = f"{base[i]} {'>'.join((own.letters[i], letter)[::turn])}{of_box}"
    gaps += [f"{len(unlike)} of {len(pairs)} bases differ"] * bool(unlike)
    return f"{', '.join(gaps)}{place}{': ' if told else ''}{', '.join(told.values())}"


def _by_gene(a: Sequence[Start], b: Sequence[Start]) -> Iterator[tuple[int, int, int, int]]:
    """Pairs of one gene; the shift counts how much farther from the gene the second lies."""
    for (i, x), (j, y) in product(enumerate(a), enumerate(b)):
        if x.gene == y.gene != MISSING:
            yield 0, i, j, (y.distance or 0) - (x.distance or 0)


def _by_letters(a: Sequence[Start], b: Sequence[Start]) -> Iterator[tuple[int, int, int, int]]:
    """Pairs whose bases agree; the shift counts how much farther upstream the second lies."""
    words: dict[str, list[tuple[int, int]]] = {}
    for j, start in enumerate(b):
        for at in range(len(start.letters) - _WORD + 1):
            words.setdefault(start.letters[at : at + _WORD], []).append((j, at))
    for i, start in enumerate(a):
        places = range(len(start.letters) - _WORD + 1)
        for j, shift in {
            (j, o - at) for at in places for j, o in words.get(start.letters[at : at + _WORD], ())
        }:
            farther = shift + start.at - b[j].at
            pairs = _align(b[j], start, -farther)
            same = _agreeing(b[j], start, pairs)
            if len(pairs) >= _MIN_OVERLAP and same >= _MIN_IDENTITY * len(pairs):
                yield -same, i, j, farther


def _by_fewer_letters(a: Sequence[Start], b: Sequence[Start]) -> Iterator[tuple[int, int, int, int]]:
    """Pairs whose bases agree less, a few bases shifted."""
    width = _UPSTREAM + 1 + _DOWNSTREAM
    others = np.array([list(y.letters.ljust(width).encode()) for y in b], np.uint8).reshape(-1, width)
    for (i, x), shift in product(enumerate(a), range(-_MAX_SHIFT, _MAX_SHIFT + 1)):
        if len(x.letters) == width:
            letters = np.frombuffer(x.letters.encode(), np.uint8)[max(0, -shift) : width - max(0, shift)]
            same = (letters == others[:, max(0, shift) : width + min(0, shift)]).sum(axis=1)
            for j in np.flatnonzero(same >= _LOWER_IDENTITY * len(letters)).tolist():
                yield -int(same[j]), i, j, shift + x.at - b[j].at


def _by_gene_letters(a: Sequence[Start], b: Sequence[Start]) -> Iterator[tuple[int, int, int, int]]:
    """Pairs whose genes begin with bases that agree; shifts as those of `_by_letters`."""
    genes = [[start._replace(letters=start.of_gene, at=0) for start in starts] for starts in (a, b)]
    for _, i, j, between in chain(_by_letters(*genes), _by_fewer_letters(*genes)):
        shift = between + (b[j].distance or 0) - (a[i].distance or 0)
        if abs(shift) <= _MAX_MOVE:
            yield 0, i, j, shift


class CompareRequest(Request):
    """Options of ``seqray compare``."""

    a: str = option("A", "calls of one strain by a model for genomes: .tsv or .csv of 'seqray scan'")
    b: str = option("B", "calls of the other strain, in the same format")
    genome_a: str | None = option("--genome-a FILE", "FASTA or GenBank of the scan of A: compares bases")
    genome_b: str | None = option(
        "--genome-b FILE", "the same of B; without both, genes of one name are compared"
    )
    threshold: Probability = option("--threshold T", "calls with lower scores are none, but a reason", 0.0)
    out: str = option("--out -o FILE", "TSV or CSV (default: standard output)", "-")
    tolerance: WholeNumber = option("--tolerance N", "bases that the same start may lie elsewhere", 5)


def run(request: CompareRequest) -> Outcome:
    """Read both, match their starts, write."""
    check_suffix(request.out, ".tsv", ".csv")
    check_files([request.a, request.b], [request.out], [request.genome_a, request.genome_b])
    if (request.genome_a is None) != (request.genome_b is None):
        raise ConfigError("one genome is given", remedy="give both --genome-a and --genome-b")
    paths = list(filter(None, (request.genome_a, request.genome_b)))
    genomes = [list(read_sequences(path, DNA, soft_masks=False)) for path in paths]
    a, b = map(read_starts, (request.a, request.b), genomes or (None, None))
    rows = compare_starts(a, b, request.tolerance, request.threshold, genomes)
    by = "the bases around them and of their genes" if genomes else "the names of their genes"
    facts = {
        "matched by": f"{by}; more than {counted(request.tolerance, 'base')} elsewhere is moved",
        "shift": "bases that the start of B lies farther upstream than that of A; below 0: downstream",
    }
    write_table(request.out, COLUMNS, rows, provenance_lines(request.command, "", "", "", facts))
    changes = Counter(str(row[0]) for row in rows)
    changes.update(str(row[-1]).partition(";")[0] for row in rows)
    told, scores = (
        ", ".join(f"{changes[word]} {word}" for word in words) for words in (_CHANGES, ("weaker", "stronger"))
    )
    return Outcome(records=len(rows), last=f"{told}; {scores}")
