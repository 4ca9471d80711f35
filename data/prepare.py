"""Make labeled tables from the public files under ``SEQRAY_DATA``.

    python data/prepare.py ecoli --out runs/data/ecoli.tsv.gz

The files are named, with addresses and checksums, in ``data/sources.tsv``. The tables are not part of the
repository: they hold other people's data. What each set is for:

===================  =========================================================================
ecoli                trains the shipped ``ecoli-promoter``; 81 + 2*3 bp windows of NC_000913.3, none
                     of which touches the region that the scan benchmark is measured on
ecoli-cnnprom        839 / 3000, cross-validated against published figures
arabidopsis          trains the shipped ``arabidopsis-promoter``: TATA and non-TATA promoters
                     against the big background
arabidopsis-tata     1497 / 2879 and 5905 / 11459, cross-validated against published figures
arabidopsis-nontata
others               see ``data/published_sets.py``: sets with a test part of their own
===================  =========================================================================
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "benchmarks"))

from ecoli_split import CONTIG, DEV, TEST, overlaps
from ecoli_truth import Placed, Truth, load_truth
from grouping import SHARED_WORD, groups_of, read, table
from machine import add_data
from published_sets import PUBLISHED
from seqray.core.alphabet import DNA, dinucleotide_shuffle, reverse_complement
from seqray.core.records import LabeledSequence
from seqray.io.sequences import write_labeled_table

WINDOW, SITE, FLANK = 81, 60, 3
BLOCK = 10_000
"""Letters of the genome that stay on one side of a split."""
SEED = 20261120
RANDOM_PER_START, SHUFFLED_SHARE = 10, 0.25

Window = tuple[int, str]
"""Position of the transcription start (0-based) and strand."""


def arabidopsis(data: Path, positives: Sequence[str], negatives: str) -> list[LabeledSequence]:
    """Promoters of EPD (-200 to 50, TSS at index 200) against fragments of genes."""
    folder = data / "umarov2017"
    promoters = [record for name in positives for record in read(folder / name)]
    return table(promoters, read(folder / negatives))


def locate(sequence: str, genome: str, reverse: str) -> Window | None:
    """Find an 81-bp window in the genome, as the position and strand of its transcription start."""
    start = genome.find(sequence)
    if start >= 0:
        return start + SITE, "+"
    start = reverse.find(sequence)
    return None if start < 0 else (len(genome) - 1 - start - SITE, "-")


def cut(genome: str, window: Window, flank: int = 0) -> str:
    """Letters around a transcription start, 5' to 3' on its own strand; empty near the ends."""
    position, strand = window
    before, after = SITE + flank, WINDOW - SITE - 1 + flank
    low, high = (before, after) if strand == "+" else (after, before)
    piece = genome[position - low : position + high + 1] if position >= low else ""
    piece = piece if len(piece) == WINDOW + 2 * flank else ""
    return piece if strand == "+" else reverse_complement(piece)


def ecoli_cnnprom(data: Path) -> list[LabeledSequence]:
    """σ70 promoters against antisense coding fragments, grouped by genome position and shared words."""
    truth = load_truth(data)
    reverse = reverse_complement(truth.genome)
    folder = data / "umarov2017"
    rows = [(r, "promoter") for r in read(folder / "Ecoli_prom.fa.gz")]
    rows += [(r, "background") for r in read(folder / "Ecoli_non_prom.fa.gz")]
    places = [locate(record.sequence, truth.genome, reverse) for record, _ in rows]
    blocks = [place[0] // BLOCK if place else f"none{i}" for i, place in enumerate(places)]
    groups = groups_of([record.sequence for record, _ in rows], blocks)
    return [
        LabeledSequence(record.sequence, label, f"{label}-{record.id}", group)
        for (record, label), group in zip(rows, groups, strict=True)
    ]


class StartMap:
    """Known transcription starts of both strands, for keeping negatives away from them."""

    def __init__(self, starts: Iterable[Window]) -> None:
        found = set(starts)
        self._sorted = {s: np.array(sorted(p for p, strand in found if strand == s)) for s in "+-"}

    def distance(self, window: Window) -> int:
        """Letters to the nearest known start on the same strand."""
        known = self._sorted[window[1]]
        i = int(np.searchsorted(known, window[0]))
        near = known[max(0, i - 1) : i + 1]
        return int(np.abs(near - window[0]).min()) if len(near) else 1 << 30


def thin(starts: Iterable[Window], distance: int) -> list[Window]:
    """Keep one of the starts of a strand that lie within ``distance`` of the one kept before."""
    kept: list[Window] = []
    for strand in "+-":
        last = -(1 << 30)
        for position in sorted({p for p, s in starts if s == strand}):
            if position - last > distance:
                kept.append((position, strand))
                last = position
    return kept


def as_windows(placed: Iterable[Placed]) -> list[Window]:
    """Position and strand of sites."""
    return [(row.position, row.strand) for row in placed]


def published_windows(data: Path, truth: Truth, names: Sequence[str]) -> list[Window]:
    """Where the windows of published 81-bp sets lie; those that the genome lacks are left out."""
    reverse = reverse_complement(truth.genome)
    records = [record for name in names for record in read(data / name)]
    places = (locate(record.sequence, truth.genome, reverse) for record in records)
    return [place for place in places if place]


def random_windows(rng: np.random.Generator, length: int, n: int) -> list[Window]:
    """Draw windows uniformly over the genome and both strands."""
    positions = rng.integers(WINDOW, length - WINDOW, n)
    return [(int(p), "+-"[int(s)]) for p, s in zip(positions, rng.integers(0, 2, n), strict=True)]


def beside(rng: np.random.Generator, starts: Sequence[Window], nearest: int, farthest: int) -> list[Window]:
    """Shift each start by ``nearest`` to ``farthest`` letters: these teach where exactly the start lies."""
    shifts = rng.integers(nearest, farthest + 1, len(starts)) * rng.choice([-1, 1], len(starts))
    return [(position + int(shift), strand) for (position, strand), shift in zip(starts, shifts, strict=True)]


def ecoli(data: Path) -> list[LabeledSequence]:
    """Windows of NC_000913.3: known starts against five kinds of background.

    Starts are those of RegulonDB and EcoCyc, and those of the dRNA-seq table that lie upstream of a gene on
    its strand: starts inside genes hardly resemble promoters, and training on them costs recall of the
    well-established ones (docs/decisions). Backgrounds: random windows of either strand; windows shifted off
    a known start; the antisense coding and the non-promoter windows of two published sets. None lies within
    15 letters of a start of any kind on its strand. Last come shuffled copies of starts and random windows: a
    scan states how many calls shuffled sequence gives, which says little where a model has never met any.

    The split is by region: ``test`` is the benchmark's region, ``validation`` the development region. No
    window for training overlaps either or shares a 40-mer with them.
    """
    truth = load_truth(data)
    rng = np.random.default_rng(SEED)
    known = as_windows(truth.supported())
    cnnprom = published_windows(data, truth, ["umarov2017/Ecoli_prom.fa.gz"])
    upstream = [row for row in truth.supported() if row.site.upstream]
    positives = thin([*as_windows(upstream), *cnnprom], distance=3)
    starts = StartMap([*known, *positives])
    published = published_windows(
        data, truth, ["umarov2017/Ecoli_non_prom.fa.gz", "ecoli_promoterlcnn/negative2860.txt.gz"]
    )
    candidates = {
        "random": random_windows(rng, len(truth.genome), RANDOM_PER_START * len(positives)),
        "beside": beside(rng, positives, 20, 150),
        "published": published,
    }
    rows = [("promoter", "start", w) for w in positives]
    rows += [
        ("background", kind, w)
        for kind, windows in candidates.items()
        for w in dict.fromkeys(windows)
        if starts.distance(w) > 15
    ]
    examples = split_by_region(truth.genome, rows)
    return examples + list(shuffled_copies(examples, rng))


def shuffled_copies(
    examples: Iterable[LabeledSequence], rng: np.random.Generator
) -> Iterable[LabeledSequence]:
    """Yield a copy of each start and of one random window in four with its dinucleotides shuffled.

    The test part gets none: its figures are those of real windows.
    """
    for example in examples:
        kind = (example.id or "").split(":")[0]
        drawn = kind == "start" or (kind == "random" and rng.random() < SHUFFLED_SHARE)
        if drawn and example.split != "test":
            letters = DNA.decode(dinucleotide_shuffle(DNA.encode(example.sequence), rng))
            yield replace(example, sequence=letters, label="background", id=f"shuffled-{example.id}")


def split_by_region(genome: str, rows: Sequence[tuple[str, str, Window]]) -> list[LabeledSequence]:
    """Cut the windows out, name the split, and drop what one split shares with the next."""
    examples = []
    for label, kind, (position, strand) in rows:
        sequence = cut(genome, (position, strand), FLANK)
        if sequence:
            name = f"{kind}:{CONTIG}:{position + 1}:{strand}"
            split = split_of(position - WINDOW - FLANK, position + WINDOW + FLANK + 1)
            examples.append(LabeledSequence(sequence, label, name, f"b{position // BLOCK}", split))
    test, dev = (words_of(genome[slice(*region)]) for region in (TEST, DEV))
    held_out = {"train": test | dev, "validation": test, "test": set()}
    return [e for e in examples if not shares(e.sequence, held_out[e.split or "train"])]


def split_of(start: int, end: int) -> str:
    """Name the split of an interval of the genome."""
    if overlaps(start, end, TEST):
        return "test"
    return "validation" if overlaps(start, end, DEV) else "train"


def words_of(region: str) -> set[str]:
    """Words of both strands."""
    both = (region, reverse_complement(region))
    return {strand[i : i + SHARED_WORD] for strand in both for i in range(len(strand) - SHARED_WORD + 1)}


def shares(sequence: str, words: set[str]) -> bool:
    """Say whether a sequence holds one of the words."""
    return any(sequence[i : i + SHARED_WORD] in words for i in range(len(sequence) - SHARED_WORD + 1))


TATA, NON_TATA = "Arabidopsis_tata.fa.gz", "Arabidopsis_non_tata.fa.gz"
SMALL, BIG = "Arabidopsis_non_prom.fa.gz", "Arabidopsis_non_prom_big.fa.gz"
SETS: dict[str, Callable[[Path], list[LabeledSequence]]] = {
    "ecoli": ecoli,
    "ecoli-cnnprom": ecoli_cnnprom,
    "arabidopsis": lambda data: arabidopsis(data, [TATA, NON_TATA], BIG),
    "arabidopsis-tata": lambda data: arabidopsis(data, [TATA], SMALL),
    "arabidopsis-nontata": lambda data: arabidopsis(data, [NON_TATA], BIG),
    **PUBLISHED,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("set", choices=SETS)
    add_data(parser)
    parser.add_argument("--out", required=True, help="labeled table, .tsv or .tsv.gz")
    args = parser.parse_args()
    examples = SETS[args.set](args.data)
    Path(args.out).parent.mkdir(parents=True, exist_ok=True)
    write_labeled_table(args.out, examples)
    counts: dict[tuple[str, str], int] = {}
    for example in examples:
        key = (example.split or "-", example.label)
        counts[key] = counts.get(key, 0) + 1
    print(
        f"{args.set}: " + ", ".join(f"{n} {label} ({split})" for (split, label), n in sorted(counts.items()))
    )


if __name__ == "__main__":
    main()
