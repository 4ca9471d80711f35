"""Does ``seqray audit`` find by itself what is known to be wrong with published sets?

    SEQRAY_DATA=... python benchmarks/audit_sets.py

Each row is a set and a finding that it should give, with the sentence that the audit says. The sets and their
addresses are in ``data/sources.tsv``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from machine import add_data, describe, script_parser
from seqray.core.alphabet import ALPHABETS, Alphabet
from seqray.core.records import LabeledSequence
from seqray.datasets.audit.run import audit
from seqray.io.files import open_input
from seqray.io.sequences import read_labeled_fastas, read_labeled_table
from seqray.io.tables import write_table

DNA, PROTEIN = ALPHABETS["dna"], ALPHABETS["protein"]
COLUMNS = ("set", "sequences", "finding", "found", "severity", "figures")


class Set:
    """Examples of a published set, with the letters as its files hold them."""

    def __init__(self, alphabet: Alphabet = DNA) -> None:
        self.alphabet = alphabet
        self.examples: list[LabeledSequence] = []
        self.letters: list[str] = []
        self.skipped = 0
        self.in_file_order = False

    def fastas(self, split: str | None = None, **paths: Path) -> Set:
        """Add one FASTA file a class."""
        read = read_labeled_fastas(paths, self.alphabet, self.letters.append, self._skip)
        self.examples += [replace(example, split=split) for example in read]
        return self

    def table(self, path: Path, split: str | None = None) -> Set:
        """Add a table."""
        self.in_file_order = True
        read = read_labeled_table(path, self.alphabet, self.letters.append)
        self.examples += [replace(example, split=split) for example in read]
        return self

    def _skip(self, record: object) -> None:
        self.skipped += 1


def promoterlcnn(folder: Path) -> Set:
    here = folder / "ecoli_promoterlcnn"
    return Set().fastas(promoter=here / "positive2860.txt.gz", other=here / "negative2860.txt.gz")


def umarov(folder: Path) -> Set:
    here = folder / "umarov2017"
    return Set().fastas(promoter=here / "Ecoli_prom.fa.gz", other=here / "Ecoli_non_prom.fa.gz")


def nontata(folder: Path) -> Set:
    """Its table calls the label ``class``."""
    path = folder / "nontata_gb_test" / "human_nontata_promoters_test.csv.gz"
    found = Set()
    with open_input(path) as handle:
        rows = [line.decode().strip().split(",") for line in handle][1:]
    found.letters = [sequence for sequence, _ in rows]
    found.examples = [
        LabeledSequence(DNA.normalize(sequence, str(path)), label, f"row{i}")
        for i, (sequence, label) in enumerate(rows, start=1)
    ]
    found.in_file_order = True
    return found


def gue(name: str) -> Callable[[Path], Set]:
    def read(folder: Path) -> Set:
        here, found = folder / "gue_prom", Set()
        for part, split in (("train", "train"), ("dev", "validation"), ("test", "test")):
            found.table(here / f"prom_{name}_{part}.csv.gz", split)
        return found

    return read


def amplify(folder: Path) -> Set:
    here = folder / "amplify"
    found = Set(PROTEIN)
    for part, split in (("train", "train"), ("test", "test")):
        found.fastas(
            split,
            amp=here / f"AMPlify_AMP_{part}_common.fa.gz",
            other=here / f"AMPlify_non_AMP_{part}_balanced.fa.gz",
        )
    return found


SETS: dict[str, tuple[Callable[[Path], Set], tuple[str, ...]]] = {
    "ecoli_promoterlcnn": (promoterlcnn, ("letter_case", "overlap_within_class", "gc")),
    "umarov2017 E. coli": (umarov, ("overlap_within_class", "gc")),
    "nontata_gb_test": (nontata, ("overlap_within_class",)),
    "gue_prom core_all": (gue("core_all"), ("copies_across", "contradicting_labels")),
    "gue_prom core_notata": (gue("core_notata"), ("copies_across", "contradicting_labels")),
    "gue_prom core_tata": (gue("core_tata"), ("copies_across", "contradicting_labels")),
    "gue_prom 300_tata": (gue("300_tata"), ("copies_across", "contradicting_labels")),
    "amplify": (amplify, ("initial_m", "first_letter", "relatives_across", "score_gap")),
}


def audited(name: str, folder: Path, seed: int) -> list[tuple[str, ...]]:
    """Audit one set: a row for each finding that it should give, and for the others that it gives."""
    read, expected = SETS[name]
    data = read(folder)
    found = audit(
        data.examples,
        data.alphabet,
        data.letters,
        in_file_order=data.in_file_order,
        seed=seed,
        skipped=data.skipped,
    )
    given = {finding.kind: finding for finding in found.findings}
    rows = []
    for kind in dict.fromkeys((*expected, *given)):
        finding = given.get(kind)
        verdict = "no" if finding is None else "yes" if kind in expected else "also"
        facts = (finding.severity, finding.what) if finding else (".", ".")
        rows.append((name, str(len(data.examples)), kind, verdict, *facts))
    return rows


def main() -> int:
    parser = script_parser(__doc__, "audit_sets.tsv")
    add_data(parser)
    parser.add_argument("--sets", nargs="*", choices=tuple(SETS), default=list(SETS))
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    rows = []
    for name in args.sets:
        rows += audited(name, args.data, args.seed)
        print(f"{name}: {sum(row[0] == name for row in rows)} rows", file=sys.stderr)
    notes = describe(["audit_sets.py", "--seed", str(args.seed)])
    notes.append("found: yes = it should and does, no = it should and doesn't, also = it does besides")
    write_table(args.out, COLUMNS, rows, notes)
    missed = [row for row in rows if row[3] == "no"]
    return 1 if missed else 0


if __name__ == "__main__":
    raise SystemExit(main())
