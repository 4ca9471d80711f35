"""Train the models of ``scan_species.py``: each has not seen a part of the genera.

    python benchmarks/train_folds.py --sheet TRAIN.tsv --config CONFIG --out runs/folds --run

Prints the command of each fold, and with ``--run`` runs those whose model does not exist yet; an interrupted
training is continued. ``folds.tsv`` names the model of each genus.

Genera (the column ``group`` of the sheet) are held out together where they share more than .4 % of their
40-mers, so that *Escherichia* goes with *Salmonella*; what a fold holds out includes the short contexts of
the same genera. Folds are balanced by letters of whole genomes. Genera that are in the sheet with contexts
alone, and have no relative with a genome, are in the training data of every fold. The row ``*`` is for genera
that are not in the sheet.
"""

from __future__ import annotations

import argparse
import shlex
import subprocess
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "data"))

import numpy as np

from loci import words
from machine import read_table, script_parser
from seqray.core.alphabet import DNA
from seqray.io.sequences import read_sequences
from seqray.io.tables import write_table

SHARED = 0.004
"""Share of the 40-mers of the smaller of two genera that makes them relatives. Enterobacteria share .005 to
.01; the next pair (*Bordetella*, *Burkholderia*) .0016; rRNA and other conserved genes are below .0005."""
SAMPLED = np.uint64(16)
"""One 40-mer in this many is compared, chosen by its hash."""
CONTEXT = 1000
"""Letters of the shortest contig that is part of a genome; shorter ones are letters around single sites."""
OTHERS = "*"


@dataclass(frozen=True)
class Genus:
    """What a sheet has of a genus.

    Attributes
    ----------
    name
        Its name.
    letters
        Of its whole genomes; 0 where there are contexts alone.
    words
        Hashes of its 40-mers, sampled; sorted (N,).
    """

    name: str
    letters: int
    words: np.ndarray


def parse_arguments(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = script_parser(__doc__)
    parser.add_argument("--sheet", type=Path, required=True, help="genomes, for `seqray train`")
    parser.add_argument("--config", type=Path, required=True, help="settings, for `seqray train`")
    parser.add_argument("--out", type=Path, required=True, help="folder of the models")
    parser.add_argument("--folds", type=int, default=4)
    parser.add_argument("--init", metavar="MODEL", help="that all begin with, as `seqray train` takes it")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--set", nargs="+", action="extend", default=[], metavar="KEY=VALUE", help="as there")
    parser.add_argument("--run", action="store_true", help="run the commands")
    return parser.parse_args(argv)


def read_genera(sheet: Path) -> list[Genus]:
    """Read all genera of a sheet."""
    letters: dict[str, int] = defaultdict(int)
    found: dict[str, list[np.ndarray]] = defaultdict(list)
    for row in read_table(sheet):
        genus = row["group"]
        sequences = [record.sequence for record in read_sequences(sheet.parent / row["genome"], DNA)]
        found[genus] += [sample_words(sequence) for sequence in sequences]
        letters[genus] += sum(len(sequence) for sequence in sequences if len(sequence) >= CONTEXT)
    return [Genus(name, letters[name], np.unique(np.concatenate(found[name]))) for name in found]


def sample_words(sequence: str) -> np.ndarray:
    """Return the hashes of some 40-mers of a sequence, the same 40-mers of every sequence."""
    if len(sequence) < 40:
        return np.empty(0, dtype=np.uint64)
    hashes, clean = words(sequence)
    kept = hashes[clean]
    return np.unique(kept[(kept >> np.uint64(7)) % SAMPLED == 0])


def shared_share(first: Genus, second: Genus) -> float:
    """Return the share of the 40-mers of the smaller of two genera that the other has, too."""
    smaller = min(len(first.words), len(second.words))
    both = len(np.intersect1d(first.words, second.words, assume_unique=True))
    return both / smaller if smaller else 0.0


def join_relatives(genera: Sequence[Genus], share: float = SHARED) -> list[list[Genus]]:
    """Return genera in groups of relatives (single linkage), in the order of the sheet."""
    group = {genus.name: number for number, genus in enumerate(genera)}
    for first, second in combinations(genera, 2):
        if shared_share(first, second) > share:
            kept, gone = group[first.name], group[second.name]
            group = {name: kept if number == gone else number for name, number in group.items()}
    numbers = dict.fromkeys(group.values())
    return [[genus for genus in genera if group[genus.name] == number] for number in numbers]


def balance(groups: Sequence[Sequence[Genus]], folds: int) -> list[list[str]]:
    """Return the names of the genera that each fold holds out; those without a genome are in none.

    The largest group goes to the fold with the fewest letters, and so on.
    """
    held_out: list[list[str]] = [[] for _ in range(folds)]
    letters = [0] * folds
    sizes = [(sum(genus.letters for genus in group), group) for group in groups]
    for size, group in sorted(sizes, key=lambda pair: -pair[0]):
        if size:
            smallest = letters.index(min(letters))
            held_out[smallest] += [genus.name for genus in group]
            letters[smallest] += size
    return held_out


def train_command(args: argparse.Namespace, held_out: Sequence[str], model: Path) -> list[str]:
    """Return the command that trains a fold."""
    command = [
        sys.executable,
        "-m",
        "seqray",
        "train",
        "--config",
        str(args.config),
        "--sheet",
        str(args.sheet),
    ]
    for genus in held_out:
        command += ["--hold-out", genus]
    command += ["--init", args.init] if args.init else []
    for setting in args.set:
        command += ["--set", setting]
    return [*command, "--threads", str(args.threads), "--quiet", "--out", str(model)]


def fold_rows(folds: Sequence[Sequence[str]], models: Sequence[Path]) -> list[tuple[str, int, str]]:
    """Return genus, fold and model of each genus, and of all others."""
    pairs = list(enumerate(zip(folds, models, strict=True), start=1))
    rows = [(genus, number, model.name) for number, (genera, model) in pairs for genus in genera]
    return [*rows, (OTHERS, 1, models[0].name)]


def run_missing(commands: Mapping[Path, Sequence[str]]) -> None:
    """Run the commands whose models do not exist, one after the other."""
    for model, command in commands.items():
        if not model.exists():
            subprocess.run(command, check=True)


def main(argv: Sequence[str] | None = None) -> int:
    """Plan the folds, print their commands and run them."""
    args = parse_arguments(argv)
    args.out.mkdir(parents=True, exist_ok=True)
    groups = join_relatives(read_genera(args.sheet))
    folds = balance(groups, args.folds)
    models = [args.out / f"fold-{number}.safetensors" for number in range(1, args.folds + 1)]
    related = [" + ".join(genus.name for genus in group) for group in groups if len(group) > 1]
    comments = [f"relatives: {', '.join(related) or 'none'}"]
    write_table(args.out / "folds.tsv", ("genus", "fold", "model"), fold_rows(folds, models), comments)
    commands = {m: train_command(args, held, m) for held, m in zip(folds, models, strict=True)}
    for command in commands.values():
        print(shlex.join(command), flush=True)
    if args.run:
        run_missing(commands)
    return 0


if __name__ == "__main__":
    sys.exit(main())
