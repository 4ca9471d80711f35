"""``seqray compare``: the starts that two strains share, and those that moved, were lost or gained."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import NamedTuple

from seqray.cli.inputs import check_files, check_suffix
from seqray.cli.options import Outcome, Probability, Request, WholeNumber, option
from seqray.core.alphabet import DNA, reverse_complement
from seqray.core.errors import ConfigError, InputError
from seqray.core.records import SequenceRecord, unknown_contig
from seqray.core.text import counted
from seqray.io.calls import parse_number
from seqray.io.lines import parse_position
from seqray.io.sequences import read_sequences
from seqray.io.tables import MISSING, provenance_lines, read_rows, write_table

_REMEDY = "give two calls.tsv of 'seqray scan' with a model for genomes"
_TABLE = ("id", "contig", "strand", "site", "score", "trust", "gene", "distance")
_WORD = 12  # bases that two starts share in a row before all of them are compared
_MIN_IDENTITY, _MIN_OVERLAP = 0.8, 30  # of these bases
_UPSTREAM, _DOWNSTREAM = 60, 20  # bases around a start


class Start(NamedTuple):
    """A call as its file states it, and the bases around it, if known."""

    call: str
    place: str
    gene: str
    distance: int | None  # to its gene
    score: float
    trust: str
    letters: str = ""


_CELLS = ("call", "place", "distance", "score", "trust")
COLUMNS = ("change", "gene", "shift", *(f"{cell}_{strain}" for strain in "ab" for cell in _CELLS), "reason")


def read_starts(path: str | Path, genome: Sequence[SequenceRecord] | None = None) -> list[Start]:
    """Read calls of a locator, TSV or CSV, and from the ``genome`` the bases around; places are 1-based."""
    starts, contigs = list[Start](), {record.id: record.sequence for record in genome or ()}
    for where, row in read_rows(path, _TABLE, _REMEDY):
        contig, strand, site = row["contig"], row["strand"], parse_position(row["site"], where)
        if genome is None and re.fullmatch(re.escape(contig) + "_[0-9]+", row["gene"]):
            what = f"the gene '{row['gene']}' is named after its contig, so it has no name in another strain"
            raise InputError(what, where=where, remedy="give --genome-a and --genome-b")
        if genome is not None and contig not in contigs:
            raise unknown_contig("names the contig", contig, contigs, where)
        before, after = (_DOWNSTREAM, _UPSTREAM) if strand == "-" else (_UPSTREAM, _DOWNSTREAM)
        around = contigs.get(contig, "")[max(site - before, 0) : site + after + 1]
        letters = reverse_complement(around) if strand == "-" else around
        distance = None if row["gene"] == MISSING else parse_position(row["distance"], where)
        place, score = f"{contig}:{site + 1}({strand})", parse_number(row["score"], "score", where)
        starts.append(Start(row["id"], place, row["gene"], distance, score, row["trust"], letters))
    return starts


def compare_starts(
    a: Sequence[Start],
    b: Sequence[Start],
    tolerance: int,
    threshold: float = 0,
    genomes: Sequence[Sequence[SequenceRecord]] = (),
) -> list[tuple[object, ...]]:
    """Rows of `COLUMNS`; a start that lies more than ``tolerance`` bases elsewhere has moved.

    Partners agree in most bases, then lie nearest. A call below the ``threshold`` is only a reason.
    """
    pairs = _by_letters(a, b) if genomes else _by_gene(a, b)
    chosen, taken = dict[int, tuple[int, int]](), set[int]()
    for _, i, j, shift in sorted(pairs, key=lambda pair: (pair[0], abs(pair[3]), *pair[1:3])):
        if i not in chosen and j not in taken:
            chosen[i] = j, shift
            taken.add(j)
    both = [(x, b[chosen[i][0]], chosen[i][1]) if i in chosen else (x, None, 0) for i, x in enumerate(a)]
    both += [(None, y, 0) for j, y in enumerate(b) if j not in taken]
    places = list(map(find_letters, (a, b), genomes[::-1]))
    rows = list[tuple[object, ...]]()
    for x, y, shift in both:
        in_a, in_b = (start is not None and start.score >= threshold for start in (x, y))
        one, own, other = (x, 0, 1) if in_a else (y, 1, 0)
        if one is None or not (in_a or in_b) or not (one.letters or one.gene != MISSING):
            continue
        change, reason = "lost" if in_a else "gained", None
        if in_a and in_b:
            change = "moved" if abs(shift) > tolerance else "same"
        elif x and y:
            reason = "below the threshold"
        elif genomes:
            reason = places[own].get(one.call, "no such bases")
        elif any(start.gene == one.gene for start in (a, b)[other]):
            reason = "another start of the gene"
        cells = [getattr(start, name) if start else None for start in (x, y) for name in _CELLS]
        rows.append((change, one.gene, shift if x and y else None, *cells, reason))
    return rows


def find_letters(starts: Sequence[Start], genome: Sequence[SequenceRecord]) -> dict[str, str]:
    """Where a genome has the bases around each start, by the name of the call, and how many differ."""
    told, strands = dict[str, str](), [(record, sign) for record in genome for sign in "+-"]
    texts = (r.sequence if sign == "+" else reverse_complement(r.sequence) for r, sign in strands)
    lines = [Start("", "", MISSING, None, 0, "", text) for text in texts]
    for agree, i, j, shift in sorted(_by_letters(lines, starts), reverse=True):  # the best comes last
        (record, sign), first = strands[i], max(0, -shift)
        end = min(len(record), len(starts[j].letters) - shift)
        left, right = (first, end) if sign == "+" else (len(record) - end, len(record) - first)
        differ = f"{end - first + agree} of {end - first} bases differ"
        if end - first + agree == 0:
            differ = f"the same {end - first} bases; other genes or bases farther away differ,"
        told[starts[j].call] = f"{differ} at {record.id}:{left + 1}-{right}({sign})"
    return told


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
                yield -same, i, j, shift


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
    by = "the bases around them" if genomes else "their genes"
    facts = {"matched by": f"{by}; more than {counted(request.tolerance, 'base')} elsewhere is moved"}
    write_table(request.out, COLUMNS, rows, provenance_lines(request.command, "", "", "", facts))
    changes = Counter(str(row[0]) for row in rows)
    told = ", ".join(f"{changes[change]} {change}" for change in ("same", "moved", "lost", "gained"))
    left = sum(start.gene == MISSING and not start.letters for start in (*a, *b))
    without = f"; {counted(left, 'call')} without a gene left out" if left else ""
    return Outcome(records=len(rows), last=f"{told}{without}")
