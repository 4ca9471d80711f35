"""From calls to genes: the start of each gene, or why none was called."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from seqray.core.records import Contig
from seqray.core.results import Call, CallContext
from seqray.core.text import counted
from seqray.genome.genes import FIRST_BASES, Gene, GeneIndex, flip_genes
from seqray.io.calls import call_ids
from seqray.io.tables import one_line
from seqray.scanning.results import ScanResult

# --- Operons: genes that follow each other on one strand, without room for a start of their own

MAX_OPERON_GAP = 50  # bases between two genes of a probable operon; benchmarks/operons.py measures the rule
MAX_OVERLAP = 50


def genes_before(
    genes: Sequence[Gene], length: int, *, circular: bool, most: int = MAX_OPERON_GAP
) -> dict[Gene, tuple[Gene, int]]:
    """By gene of a contig, the one before it in its probable operon, and the bases between (or overlap)."""
    before = {}
    for strand in "+-":
        own = [gene for gene in genes if gene.strand == strand]
        read = own if strand == "+" else flip_genes(own, length)
        turns = (0, length) if circular else (0,)
        ends = sorted(
            (one.end - turn, i) for i, one in enumerate(read) for turn in turns if not one.partial_end
        )
        for gene, one in zip(own, read, strict=True):
            if one.partial_start:
                continue
            at = bisect_right(ends, (one.start + MAX_OVERLAP, len(read))) - 1
            while at >= 0 and (gap := one.start - ends[at][0]) <= most:
                other = own[ends[at][1]]
                # one that lies within it ends here, too, and is not before it
                if gene_key(other) != gene_key(gene) and other.end - other.start > -gap:
                    before[gene] = other, gap
                    break
                at -= 1
    return before


def gene_key(gene: Gene) -> str:
    """What the pieces of a gene share."""
    return gene.locus or (str(gene.place) if gene.complete else gene.name)


# --- The start of each gene

MIN_ROOM = 100  # bases before a gene in which most starts lie
MAX_INSIDE = 100  # bases inside a gene in which a call may tell that its start codon lies further downstream
_PLACES = np.arange(0, MIN_ROOM + 1, 20)  # of these


@dataclass(frozen=True, slots=True)
class GeneStart:
    """A gene with the calls before it, the best first, each with its id; or the reason why there is none."""

    contig: str
    gene: Gene  # over all its pieces
    operon: str  # the first gene of its probable operon, itself if nothing is before it; empty in eukaryotes
    calls: tuple[tuple[str, Call], ...]
    reason: str


GENE_COLUMNS = (
    *("gene", "locus_tag", "contig", "start", "end", "strand", "call", "site", "distance", "score", "trust"),
    *("precision", "alternatives", "operon", "reason", "product"),
)


def gene_rows(starts: Iterable[GeneStart]) -> Iterator[tuple[object, ...]]:
    """Cells of `GENE_COLUMNS`; None for what is not known."""
    for one in starts:
        gene, best = one.gene, one.calls[0] if one.calls else None
        context = (best and best[1].context) or CallContext()
        others = [f"{name}:{_distance(call)}:{_trust(call)}" for name, call in one.calls[1:]]
        place = one.contig, gene.start, gene.end, gene.strand
        called = (best[0], best[1].site, context.distance, best[1].score) if best else (None,) * 4
        names = (one_line(text) or None for text in (one.operon, one.reason, gene.product))
        yield (
            *(one_line(gene.name), one_line(gene.locus) or None, *place, *called),
            *(context.trust or None, context.precision, ", ".join(others) or None, *names),
        )


def gene_starts(result: ScanResult) -> list[GeneStart]:
    """A row for each gene whose upstream region was searched, by contig and place."""
    starts = list[GeneStart]()
    by_contig: dict[str, list[tuple[str, Call]]] = {}
    for name, call in call_ids(result.calls):
        by_contig.setdefault(call.contig, []).append((name, call))
    for contig in result.scanned:
        genes = result.genes.of(contig.name) if result.genes else ()
        index = GeneIndex(genes, contig.length, circular=contig.circular)
        calls: dict[str, list[tuple[str, Call]]] = {}
        for name, call in by_contig.get(contig.name, ()):
            if ahead := index.downstream(call.site, call.strand, inside=FIRST_BASES):
                calls.setdefault(gene_key(ahead[0]), []).append((name, call))
        placed = {(call.site, call.strand): call for _, call in by_contig.get(contig.name, ())}
        pieces: dict[str, list[Gene]] = {}
        for gene in genes:
            pieces.setdefault(gene_key(gene), []).append(gene)
        before = genes_before(genes, contig.length, circular=contig.circular) if result.operons else {}
        leaders = {gene_key(gene): pair for gene, pair in before.items()}
        for key, parts in pieces.items():
            first = next((part for part in parts if not part.partial_start), None)
            if parts[0].strand not in result.options.strands or not _is_searched(first or parts[0], contig):
                continue
            whole = replace(
                first or parts[0],
                start=min(part.start for part in parts),
                end=max(part.end for part in parts),
            )
            ranked = sorted(calls.get(key, ()), key=lambda pair: -pair[1].score)
            reason = "" if ranked else _reason(whole, contig, leaders.get(key), placed)
            operon = (_first_of_operon(key, leaders) or whole).name if result.operons else ""
            starts.append(GeneStart(contig.name, whole, operon, tuple(ranked), reason))
    return starts


def _first_of_operon(key: str, leaders: Mapping[str, tuple[Gene, int]]) -> Gene | None:
    """The first gene of an operon, None where a gene has none before it; on a circle it may have no first."""
    first, seen = None, {key}
    while key in leaders and gene_key(leaders[key][0]) not in seen:
        first = leaders[key][0]
        key = gene_key(first)
        seen.add(key)
    return first


def _is_searched(gene: Gene, contig: Contig) -> bool:
    """Whether any place before the gene was searched, or lies beyond the end of its contig."""
    places = gene.start_codon + _PLACES * (-1 if gene.strand == "+" else 1)
    places = places % contig.length if contig.circular else np.clip(places, 0, contig.length - 1)
    return bool(contig.scanned.contains(places).any())


def _call_inside(gene: Gene, contig: Contig, placed: Mapping[tuple[int, str], Call]) -> str:
    """The best call within the first bases of a gene, in words; empty without one."""
    calls = list[tuple[float, int, Call]]()
    for bases in range(1, min(MAX_INSIDE, gene.end - gene.start - 1) + 1):
        site = gene.start_codon + (bases if gene.strand == "+" else -bases)
        if call := placed.get((site % contig.length if contig.circular else site, gene.strand)):
            calls.append((call.score, bases, call))
    if not calls:
        return ""
    score, bases, call = max(calls, key=lambda one: one[0])
    told = f"a call (score {score:.2f}, {_trust(call)}) lies {counted(bases, 'base')} inside"
    return f"{told}: the start codon may lie further downstream"


def _reason(
    gene: Gene, contig: Contig, leader: tuple[Gene, int] | None, placed: Mapping[tuple[int, str], Call]
) -> str:
    """Why no start was called before a gene."""
    room = gene.start_codon if gene.strand == "+" else contig.length - gene.end
    at_end = room < 3 and not contig.circular
    if gene.partial_start:
        return "at the end of the contig: begins beyond it" if room < 3 else "its first base is not known"
    if not at_end and (inside := _call_inside(gene, contig, placed)):
        return inside
    if leader is not None:
        other, gap = leader
        how = f"{'follows' if gap > 0 else 'overlaps'} {other.name} by {counted(abs(gap), 'base')}"
        how = how if gap else f"begins where {other.name} ends"
        return f"{how} on its strand: probably in one operon"
    if not contig.circular and room < MIN_ROOM:
        return f"at the end of the contig: {counted(room, 'base')} before it"
    return "no start above the threshold"


def describe_gene(result: ScanResult, name: str) -> list[str]:
    """Lines on the genes of a name: their starts, and their neighbors on the contig with theirs."""
    starts = {(one.contig, gene_key(one.gene)): one for one in gene_starts(result)}
    lines = []
    for contig in result.scanned:
        genes = result.genes.of(contig.name) if result.genes else ()
        known = {gene_key(gene): gene for gene in genes}  # by place
        keys = list(known)
        named = {gene_key(gene) for gene in genes if name in (gene.name, gene.locus)}
        for at in (at for at, key in enumerate(keys) if key in named):
            for place, what in ((at, ""), (at - 1, "left of it: "), (at + 1, "right of it: ")):
                around = keys[place % len(keys)] if contig.circular else "".join(keys[max(place, 0) :][:1])
                if around in known and (not what or around not in named):
                    other = GeneStart(contig.name, known[around], "", (), "its start was not searched")
                    lines.append(what + _said_of(starts.get((contig.name, around), other)))
    return lines


def _said_of(one: GeneStart) -> str:
    """A gene and its starts, with positions from 1."""
    gene = one.gene
    said = [
        f"{call.site + 1:,} ({counted(_distance(call) or 0, 'base')} before it, trust {_trust(call)})"
        for _, call in one.calls
    ]
    locus = f" ({gene.locus})" if gene.locus not in ("", gene.name) else ""
    place = f"{one.contig}:{gene.start + 1:,}-{gene.end:,} ({gene.strand})"
    others = f"; also {', '.join(said[1:])}" if said[1:] else ""
    return f"{gene.name}{locus}, {place}: {f'best start {said[0]}{others}' if said else one.reason}"


def _distance(call: Call) -> int | None:
    return call.context.distance if call.context else None


def _trust(call: Call) -> str:
    return (call.context.trust if call.context else "") or "unknown"
