"""``seqray compare``: the starts that two strains share, those that moved, were lost or gained, or may be."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain, product
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
# Scores of the same bases differ by up to .18 with the phase of the tokens: benchmarks/results/phases.tsv.
_MAX_SCORE_CHANGE = 0.2
_TRUST = ("doubtful", "medium", "high")
_SAME = "the same {} bases"


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
        starts.append(Start(row["id"], place, row["gene"], distance, score, row["trust"], *around))
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
    ways = (_by_letters, _by_fewer_letters, _by_gene_letters) if genomes else (_by_gene,)
    chosen, taken, none = dict[int, tuple[int, int, int]](), set[int](), Start("", "", MISSING, None, 0, "")
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
    places = [find_letters(*of) for of in zip((a, b), genomes[::-1], (False, True), strict=False)]
    rows = list[tuple[object, ...]]()
    for x, y, shift, way in both:
        in_a, in_b = (start is not None and start.score >= threshold for start in (x, y))
        one, own, other = (x, 0, 1) if in_a else (y, 1, 0)
        if one is None or not (in_a or in_b) or not (one.letters or one.gene != MISSING):
            continue
        change, told = "lost" if in_a else "gained", list[str]()
        if x and y:
            moved, weak = abs(shift) > tolerance, not (in_a and in_b)
            change = change if weak else "moved" if moved else "same"
            told = ["below the threshold"] if weak else _change_of_score(x, y)
            told += ["the same gene"] * (way == 2)
            if moved and way == 2:
                told += [f"the start of A: {places[0][x.call]}", f"that of B: {places[1][y.call]}"]
            elif genomes:
                unlike = _differences(y, x, -shift, of_b=True) if own else _differences(x, y, shift)
                told += [unlike] * bool(told or moved or way or not _is_same(unlike))
        elif genomes:
            told = [places[own][one.call]]
        elif any(start.gene == one.gene for start in (a, b)[other]):
            told = ["another start of the gene"]
        if change in ("lost", "gained") and any(map(_is_same, told)):
            change = "unsure"
        gene = next((start.gene for start in (x, y) if start and start.gene != MISSING), MISSING)
        cells = [getattr(start, name) if start else None for start in (x, y) for name in _CELLS]
        rows.append((change, gene, shift if x and y else None, *cells, "; ".join(told) or None))
    return rows


def _change_of_score(a: Start, b: Start) -> list[str]:
    """Whether the start is weaker or stronger in B, by its trust, or by more than the phase does."""
    if a.trust != b.trust and {a.trust, b.trust} <= {*_TRUST}:
        return ["weaker" if _TRUST.index(b.trust) < _TRUST.index(a.trust) else "stronger"]
    change = b.score - a.score
    return ["weaker" if change < 0 else "stronger"] if abs(change) > _MAX_SCORE_CHANGE else []


def _is_same(told: str) -> bool:
    return re.match(_SAME.format("[0-9]+"), told) is not None


def find_letters(starts: Sequence[Start], genome: Sequence[SequenceRecord], of_b: bool) -> dict[str, str]:
    """Where a genome has the bases around each start, by the name of the call, and which of them differ."""
    told, strands = {start.call: "no such bases" for start in starts}, list(_strands(genome))
    lines = [Start("", "", MISSING, None, 0, "", text) for _, _, text in strands]
    pairs = sorted(_by_letters(lines, starts), reverse=True)
    for j, (i, shift) in {j: (i, shift) for _, i, j, shift in pairs}.items():  # the best comes last
        (record, sign, _), start = strands[i], starts[j]
        first, end = max(0, -shift - start.at), min(len(record), len(start.letters) - shift - start.at)
        left, right = (first, end) if sign == "+" else (len(record) - end, len(record) - first)
        place = f" at {record.id}:{left + 1}-{right}({sign})"
        told[start.call] = _differences(start, lines[i], -shift, place, of_b=of_b)
    return told


def _differences(start: Start, other: Start, shift: int, place: str = "", *, of_b: bool = False) -> str:
    """How many bases around a start differ there, and which if they are few, as A has them, then B."""
    ahead, told = shift + other.at - start.at, list[str]()
    span = range(max(0, -ahead), min(len(start.letters), len(other.letters) - ahead))
    unlike = [at for at in span if start.letters[at] != other.letters[at + ahead]]
    if not unlike:
        return _SAME.format(len(span)) + (place and f"; other genes or bases farther away differ,{place}")
    for at in unlike[: _MAX_SHOWN * (len(unlike) <= _MAX_SHOWN)]:
        bases, base = (start.letters[at], other.letters[at + ahead])[:: -1 if of_b else 1], at - start.at
        box = next((f" in the {name} box" for name, places in start.boxes if base in places), "")
        told.append(f"{base + (base >= 0):+d} {'>'.join(bases)}{box}")
    return f"{len(unlike)} of {len(span)} bases differ{place}{': ' if told else ''}{', '.join(told)}"


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
            first, second = max(0, -shift), max(0, shift)
            overlap = min(len(start.letters) - first, len(b[j].letters) - second)
            own, other = start.letters[first : first + overlap], b[j].letters[second : second + overlap]
            same = sum(map(str.__eq__, own, other))
            if overlap >= _MIN_OVERLAP and same >= _MIN_IDENTITY * overlap:
                yield -same, i, j, shift + start.at - b[j].at


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
    genome_a: str | None = option("--genome-a FILE", "FASTA or GenBank of the scan of A; needs --genome-b")
    genome_b: str | None = option("--genome-b FILE", "the same of B: tells whether its bases are there")
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
    by = "the bases around them and of their genes" if genomes else "their genes"
    facts = {"matched by": f"{by}; more than {counted(request.tolerance, 'base')} elsewhere is moved"}
    write_table(request.out, COLUMNS, rows, provenance_lines(request.command, "", "", "", facts))
    changes = Counter(str(row[0]) for row in rows)
    told = ", ".join(
        f"{changes[change]} {change}" for change in ("same", "moved", "lost", "gained", "unsure")
    )
    left = sum(start.gene == MISSING and not start.letters for start in (*a, *b))
    without = f"; {counted(left, 'call')} without a gene left out" if left else ""
    return Outcome(records=len(rows), last=f"{told}{without}")
