"""Make a synthetic genome with planted promoters, and the truth about where they are.

    python data/synthetic.py --out genome.fa --truth truth.bed --length 200000 --count 40 --seed 7
    python data/synthetic.py --promoters data/example/promoters.fa --background random --length 20000 \\
        --seed 1 --name construct --out data/example/construct.fa --truth data/example/construct.truth.bed

The background is made of reading frames of E. coli's codon usage, end to end on random strands, as most of a
bacterial genome is, or of independent letters, which look more like what lies between genes. Planted are
either windows from a FASTA file, each once, or windows drawn from the sigma70 consensus: -35 box TTGACA,
spacer of 15 to 19, -10 box TATAAT, discriminator of 5 to 8, start at a purine, more A and T upstream. Both
strands take turns. The truth is BED6: the planted window, 0-based and half-open; the start of transcription
lies SITE letters into it, read on its strand. The same arguments give the same bytes on every machine.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from random import Random

WINDOW, SITE = 81, 60
LINE = 60
MINUS_35, MINUS_10 = "TTGACA", "TATAAT"
SPACERS = {15: 0.05, 16: 0.25, 17: 0.4, 18: 0.2, 19: 0.1}
DISCRIMINATORS = {5: 0.15, 6: 0.4, 7: 0.35, 8: 0.1}
CONSERVATION = (0.75, 0.9, 0.7, 0.6, 0.55, 0.55), (0.85, 0.95, 0.5, 0.65, 0.6, 0.95)
"""Chance that each letter of the -35 and of the -10 box is the consensus letter, about as in nature."""
PROMOTER_GC = 0.4
COMPLEMENT = str.maketrans("ACGT", "TGCA")
CODONS = (150, 450)
"""Fewest and most codons of a reading frame."""
# Codons per thousand in E. coli K-12 (codon usage database, Nakamura et al. 2000, Nucleic Acids Res 28:292),
# in the order of the standard table: T, C, A, G at the first, then the second, then the third place.
USAGE = (
    *(22.2, 16.4, 13.9, 13.6, 8.4, 8.6, 7.1, 8.9, 16.1, 12.2, 0, 0, 5.2, 6.4, 0, 15.2),
    *(11.0, 11.0, 3.9, 52.7, 7.0, 5.5, 8.4, 23.2, 12.9, 9.7, 15.4, 28.8, 20.9, 22.0, 3.5, 5.4),
    *(30.2, 25.0, 4.3, 27.8, 8.9, 23.3, 7.0, 14.4, 17.6, 21.6, 33.6, 10.3, 8.7, 16.1, 2.1, 1.2),
    *(18.2, 15.2, 10.9, 26.2, 15.3, 25.5, 20.2, 33.7, 32.1, 19.1, 39.4, 17.8, 24.7, 29.6, 8.0, 11.1),
)
CODON_WEIGHTS = {
    a + b + c: per_thousand / sum(USAGE)
    for (a, b, c), per_thousand in zip(product("TCAG", repeat=3), USAGE, strict=True)
}
STOPS = {"TAA": 0.64, "TGA": 0.29, "TAG": 0.07}


@dataclass(frozen=True, slots=True)
class Planted:
    """A window in the genome: 0-based, half-open, with its strand."""

    name: str
    start: int
    end: int
    strand: str


def reverse_complement(letters: str) -> str:
    """Return the other strand, 5' to 3'."""
    return letters.translate(COMPLEMENT)[::-1]


# Only Random.random() is used: Python promises that its numbers for a seed never change.


def draw(rng: Random, weights: dict[str, float] | dict[int, float]) -> str | int:
    """Draw a key with the chance that its weight gives it; weights sum to 1."""
    left = rng.random()
    for key, weight in weights.items():
        left -= weight
        if left < 0:
            return key
    return next(reversed(weights))


def random_letters(rng: Random, length: int, gc: float) -> str:
    """Return independent letters with a given share of G and C."""
    weights = {"A": (1 - gc) / 2, "C": gc / 2, "G": gc / 2, "T": (1 - gc) / 2}
    return "".join(str(draw(rng, weights)) for _ in range(length))


def reading_frame(rng: Random) -> str:
    """Return a start codon, codons of E. coli's usage and a stop codon."""
    count = CODONS[0] + int(rng.random() * (CODONS[1] - CODONS[0] + 1))
    codons = [draw(rng, CODON_WEIGHTS) for _ in range(count)]
    return "ATG" + "".join(map(str, codons)) + str(draw(rng, STOPS))


def coding_letters(rng: Random, length: int) -> str:
    """Return reading frames end to end, each on a random strand, cut to a length."""
    letters = ""
    while len(letters) < length:
        frame = reading_frame(rng)
        letters += frame if rng.random() < 0.5 else reverse_complement(frame)
    return letters[:length]


def random_box(rng: Random, consensus: str, conservation: Sequence[float]) -> str:
    """Return a box whose letters keep to the consensus with the given chances."""
    kept = (rng.random() < chance for chance in conservation)
    return "".join(
        letter if keep else random_letters(rng, 1, 0.5) for letter, keep in zip(consensus, kept, strict=True)
    )


def random_promoter(rng: Random) -> str:
    """Return a window of a sigma70 promoter with its start at index SITE."""
    box_35 = random_box(rng, MINUS_35, CONSERVATION[0])
    spacer = random_letters(rng, int(draw(rng, SPACERS)), PROMOTER_GC)
    box_10 = random_box(rng, MINUS_10, CONSERVATION[1])
    discriminator = random_letters(rng, int(draw(rng, DISCRIMINATORS)), 0.5)
    core = box_35 + spacer + box_10 + discriminator
    start = str(draw(rng, {"A": 0.6, "G": 0.4}))
    upstream = random_letters(rng, SITE - len(core), PROMOTER_GC)
    return upstream + core + start + random_letters(rng, WINDOW - SITE - 1, 0.5)


def plant(rng: Random, promoters: Sequence[tuple[str, str]], genome: str) -> tuple[str, list[Planted]]:
    """Write every promoter over a place of its own, strands in turn.

    The genome is divided evenly among the promoters, and each lies at random within its share, at least
    its own length away from the borders.

    Raises
    ------
    ValueError
        The genome is too short for so many promoters.
    """
    share = len(genome) // max(len(promoters), 1)
    if promoters and share < 3 * max(len(letters) for _, letters in promoters):
        raise ValueError(f"{len(promoters)} promoters need more than {len(genome)} letters: use --length")
    planted: list[Planted] = []
    for number, (name, letters) in enumerate(promoters):
        free = share - 3 * len(letters) + 1
        start = number * share + len(letters) + int(rng.random() * free)
        strand = "+-"[number % 2]
        written = letters if strand == "+" else reverse_complement(letters)
        genome = genome[:start] + written + genome[start + len(letters) :]
        planted.append(Planted(name, start, start + len(letters), strand))
    return genome, planted


def read_fasta(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the id and letters of each record of a small FASTA file."""
    for record in path.read_text().split(">")[1:]:
        header, *lines = record.splitlines()
        letters = "".join(lines).upper()
        if set(letters) - set("ACGT"):
            raise ValueError(f"{path}: record '{header.split()[0]}' has letters other than A, C, G and T")
        yield header.split()[0], letters


def fasta_text(name: str, description: str, letters: str) -> str:
    """Return one FASTA record in lines of LINE letters."""
    lines = (letters[start : start + LINE] for start in range(0, len(letters), LINE))
    return "\n".join([f">{name} {description}", *lines]) + "\n"


def bed_text(name: str, planted: Sequence[Planted]) -> str:
    """Return the truth as BED6."""
    rows = (f"{name}\t{item.start}\t{item.end}\t{item.name}\t0\t{item.strand}\n" for item in planted)
    return "".join(rows)


def parse_arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--out", type=Path, required=True, help="FASTA of the genome")
    parser.add_argument("--truth", type=Path, required=True, help="BED of what was planted")
    parser.add_argument("--length", type=int, default=200_000)
    parser.add_argument("--count", type=int, default=40, help="promoters drawn from the consensus")
    parser.add_argument("--promoters", type=Path, help="FASTA of windows to plant instead, each once")
    parser.add_argument("--background", choices=("coding", "random"), default="coding")
    parser.add_argument("--gc", type=float, default=0.508, help="of a random background; that of E. coli")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--name", default="synthetic", help="name of the sequence")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    """Write the genome and its truth."""
    args = parse_arguments(argv)
    rng, random = Random(args.seed), args.background == "random"
    try:
        if args.promoters:
            promoters = list(read_fasta(args.promoters))
        else:
            promoters = [(f"planted_{number + 1}", random_promoter(rng)) for number in range(args.count)]
        letters = random_letters(rng, args.length, args.gc) if random else coding_letters(rng, args.length)
        genome, planted = plant(rng, promoters, letters)
    except (OSError, ValueError) as error:
        print(f"synthetic.py: error: {error}", file=sys.stderr)
        return 2
    what = f"random sequence, GC {args.gc:g}" if random else "reading frames of E. coli codon usage"
    description = f"{what}, seed {args.seed}, with {len(planted)} planted promoters"
    args.out.write_text(fasta_text(args.name, description, genome))
    args.truth.write_text(bed_text(args.name, planted))
    return 0


if __name__ == "__main__":
    sys.exit(main())
