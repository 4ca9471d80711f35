"""Published sets as they are, each with its official test part where it has one, and groups of relatives.

====================  ===============================================================================
bacteria              20 prokaryotes of iPro-MP, the species as context; trains ``bacteria-promoter``
ecoli-sigma           promoters of six sigma factors and non-promoters of *E. coli*, no test part
mouse-tata            mouse TATA promoters of CNNProm, no test part
human-core-all        70-bp core promoters of GUE, and its parts without and with a TATA box
human-core-notata
human-core-tata
human-300-tata        the same around the start, 300 bp, with a TATA box
...-made              human-core-all, human-core-tata, human-300-tata and human-nontata with negatives of
                      further kinds in the training part: made from its promoters, and for human-core-all also
                      fragments of mouse genes
tata                  TATA promoters of mouse and human of three sources, 251 bp, three kinds of negatives;
                      ``tata-no-gue`` and its like lack the training part of a source
human-nontata         251 bp, the official test part of a set whose training part can't be had
amp                   antimicrobial peptides of AMPlify; ``amp-imbalanced`` with its imbalanced test
deeploc1              proteins by their place in the cell, ten classes: the two smaller parts of DeepLoc 1.0
====================  ===============================================================================

The column ``subclass`` names how a negative was made, where a set has several kinds.

Groups hold what shares a 40-mer on either strand (peptides: a word of ten residues). The bacterial set comes
without a validation part; one is held out of its training part by whole groups.
"""

from __future__ import annotations

import csv
import gzip
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from pathlib import Path

import numpy as np

from grouping import groups_of, read, table
from seqray.core.alphabet import DNA, PROTEIN
from seqray.core.records import LabeledSequence
from seqray.datasets.negatives.make import make_negatives
from seqray.datasets.negatives.recipes import NegativeOptions, parse_mix
from seqray.homology.kmers import kmer_groups
from seqray.io.records import read_fasta

PROMOTER, BACKGROUND = "promoter", "background"
HELD_OUT, NO_SPLIT_HELD_OUT = 0.05, 0.12
WINDOWS_OF_A_FRAGMENT = 4
MADE_RATIO, LOW_MADE_RATIO = Fraction(3, 5), Fraction(3, 10)  # made negatives a promoter
SHARED_RESIDUES = 10
SIGMAS = (24, 28, 32, 38, 54, 70)


def grouped(examples: Sequence[LabeledSequence]) -> list[LabeledSequence]:
    """Name the group of each example, those of all splits together."""
    groups = groups_of([example.sequence for example in examples])
    return [replace(e, group=g) for e, g in zip(examples, groups, strict=True)]


def with_validation(examples: Sequence[LabeledSequence], share: float = HELD_OUT) -> list[LabeledSequence]:
    """Mark a share of the training groups as validation; large groups stay in training."""
    rng = np.random.default_rng(1)
    train = [e for e in examples if e.split == "train"]
    sizes: dict[str, int] = {}
    for e in train:
        sizes[e.group or ""] = sizes.get(e.group or "", 0) + 1
    chosen: set[str] = set()
    held = 0
    for group in rng.permutation(sorted(sizes)):
        if sizes[group] <= 20:
            chosen.add(str(group))
            held += sizes[group]
        if held >= share * len(train):
            break
    return [
        replace(e, split="validation") if e.split == "train" and e.group in chosen else e for e in examples
    ]


def bacteria(data: Path) -> list[LabeledSequence]:
    """Promoters against coding and convergent intergenic sequence of each species, one to two."""
    folder = data / "ipromp"
    with open(folder / "species.tsv", encoding="utf-8") as handle:
        species = [(row["id"], row["species"]) for row in csv.DictReader(handle, delimiter="\t")]
    examples = []
    for number, name in species:
        for split in ("train", "test"):
            for record in read(folder / f"{number}_{split}.txt.gz"):
                kind = record.description.split("--")[0].split()
                negative = bool({"CDS", "Convergent"} & set(kind))
                label = BACKGROUND if negative else PROMOTER
                examples.append(
                    LabeledSequence(record.sequence, label, f"{number}-{record.id}", None, split, name)
                )
    return with_validation(grouped(examples), 0.03)


def ecoli_sigma(data: Path) -> list[LabeledSequence]:
    """2860 promoters by their sigma factor against as many non-promoters."""
    folder = data / "ecoli_promoterlcnn"
    examples = []
    for sigma in SIGMAS:
        for record in read(folder / f"sigma{sigma}promoter.txt.gz"):
            examples.append(LabeledSequence(record.sequence, f"sigma{sigma}", record.id))
    for record in read(folder / "negative2860.txt.gz"):
        examples.append(LabeledSequence(record.sequence, BACKGROUND, record.id))
    usual = [e for e in examples if len(e.sequence) == 81]
    return grouped(usual)


def mouse_tata(data: Path) -> list[LabeledSequence]:
    """1255 TATA promoters against 3530 fragments of genes, 251 bp."""
    folder = data / "umarov2017"
    return table(read(folder / "Mouse_tata.fa.gz"), read(folder / "Mouse_nonprom.fa.gz"))


def labeled_rows(path: Path, label_column: str) -> list[tuple[str, str]]:
    """Read sequences and classes of a published table."""
    with gzip.open(path, "rt", encoding="utf-8", newline="") as handle:
        return [(row["sequence"].upper(), row[label_column]) for row in csv.DictReader(handle)]


def gue(name: str) -> Callable[[Path], list[LabeledSequence]]:
    """Make one of the GUE sets, with its official training, validation and test parts."""

    def make(data: Path) -> list[LabeledSequence]:
        examples = []
        for part, split in (("train", "train"), ("dev", "validation"), ("test", "test")):
            rows = labeled_rows(data / "gue_prom" / f"{name}_{part}.csv.gz", "label")
            for number, (sequence, label) in enumerate(rows, 1):
                kind = PROMOTER if label == "1" else BACKGROUND
                examples.append(LabeledSequence(sequence, kind, f"{part}{number}", None, split))
        return grouped(examples)

    return make


TATA_SITE, TATA_WINDOW, TATA_TEST = 200, 251, 0.2
"""The windows of CNNProm. Windows of 300 letters, with the start at index 249, are cut to the same length."""


def tata(without: str, data: Path) -> list[LabeledSequence]:
    """TATA promoters of mouse and human, of three sources whose negatives were made in three ways.

    CNNProm has no test part: a fifth of its groups is held out. A sequence of training or validation that
    shares a 40-mer with a test part is left out, and so is what comes from the source ``without``.
    """
    rows = [("cnnprom", "train", e.sequence, e.label) for e in mouse_tata(data)]
    for source, name, dev, column in (
        ("gue", "gue_prom/prom_300_tata", "dev", "label"),
        ("ipromoter", "ipromoter_seqvec/mm_TA", "val", "class"),
        ("ipromoter", "ipromoter_seqvec/hs_TA", "val", "class"),
    ):
        for part, split in (("train", "train"), (dev, "validation"), ("test", "test")):
            found = cut_to_site(data / f"{name}_{part}.csv.gz", column)
            rows += [(source, split, *row) for row in found]
    examples = [
        LabeledSequence(letters, label, f"{source}-{part}-{n}", None, part, source)
        for n, (source, part, letters, label) in enumerate(rows, 1)
        if len(letters) == TATA_WINDOW
    ]
    examples = hold_out(grouped(examples), "cnnprom", TATA_TEST)
    tested = {e.group for e in examples if e.split == "test"}
    kept = [e for e in examples if e.split == "test" or (e.group not in tested and e.context != without)]
    return [replace(e, context=None) for e in kept]


def cut_to_site(path: Path, column: str) -> list[tuple[str, str]]:
    """Letters and labels of windows of 300 letters, cut so that the start is at ``TATA_SITE``."""
    return [
        (DNA.normalize(letters[249 - TATA_SITE :]), PROMOTER if label == "1" else BACKGROUND)
        for letters, label in labeled_rows(path, column)
    ]


def hold_out(examples: Sequence[LabeledSequence], source: str, share: float) -> list[LabeledSequence]:
    """Mark a share of the small groups of a source (its context) as test, and an eighth as validation."""
    rng = np.random.default_rng(1)
    sizes = Counter(e.group or "" for e in examples)
    names = sorted({e.group or "" for e in examples if e.context == source and sizes[e.group or ""] <= 20})
    drawn = dict(zip(names, rng.random(len(names)), strict=True))

    def part(example: LabeledSequence) -> str | None:
        place = drawn.get(example.group or "", 1.0)
        held = "test" if place < share else "validation" if place < share + 0.125 else example.split
        return held if example.context == source else example.split

    return [replace(e, split=part(e)) for e in examples]


def with_made_negatives(
    examples: Sequence[LabeledSequence], ratio: Fraction = MADE_RATIO
) -> list[LabeledSequence]:
    """Add negatives of two kinds, ``ratio`` of them a promoter: most segments replaced, and shuffled ones.

    They are for training alone, so that threshold and probabilities are those of the set as it was published.
    Without a split, some groups become the validation part.
    """
    if all(e.split is None for e in examples):
        examples = with_validation([replace(e, split="train") for e in examples], NO_SPLIT_HELD_OUT)
    promoters = [e for e in examples if e.label == PROMOTER and e.split == "train"]
    mix = parse_mix(["substitution=2", "shuffle=1"])
    options = NegativeOptions(mix=mix, ratio=ratio, label=BACKGROUND)
    return [*examples, *make_negatives(promoters, options, DNA).negatives]


def made(
    make: Callable[[Path], list[LabeledSequence]], ratio: Fraction = MADE_RATIO
) -> Callable[[Path], list[LabeledSequence]]:
    """Make a set, and add the negatives of `with_made_negatives`."""
    return lambda data: with_made_negatives(make(data), ratio)


def with_fragments(data: Path) -> list[LabeledSequence]:
    """Human core promoters, made negatives, and windows of the fragments of mouse genes of CNNProm."""
    examples, rng = made(gue("prom_core_all"))(data), np.random.default_rng(1)
    length = len(examples[0].sequence)
    for fragment in (e for e in mouse_tata(data) if e.label == BACKGROUND):
        starts = rng.integers(0, len(fragment.sequence) - length + 1, WINDOWS_OF_A_FRAGMENT)
        examples += [
            replace(
                fragment,
                sequence=fragment.sequence[start : start + length],
                id=f"{fragment.id}-{number}",
                group=f"mouse-{fragment.group}",
                split="train",
                subclass="gene",
            )
            for number, start in enumerate(starts.tolist(), 1)
        ]
    return examples


def human_nontata(data: Path) -> list[LabeledSequence]:
    """4915 non-TATA promoters against 4119 others, 251 bp; many of the others overlap."""
    rows = labeled_rows(data / "nontata_gb_test" / "human_nontata_promoters_test.csv.gz", "class")
    examples = [
        LabeledSequence(DNA.normalize(sequence), PROMOTER if label == "1" else BACKGROUND, f"row{number}")
        for number, (sequence, label) in enumerate(rows, 1)
    ]
    return grouped(examples)


def peptides(test: str) -> Callable[[Path], list[LabeledSequence]]:
    """Make the AMPlify set with one of its two tests: ``balanced`` or ``imbalanced``.

    Of the others 42 % begin with M, of the antimicrobial ones 2 %: mature peptides have lost it. A training
    sequence that begins with M is therefore there twice, with it and without.
    """

    def make(data: Path) -> list[LabeledSequence]:
        folder = data / "amplify"
        files = (
            ("amp", "train", "AMPlify_AMP_train_common"),
            ("other", "train", "AMPlify_non_AMP_train_balanced"),
            ("amp", "test", "AMPlify_AMP_test_common"),
            ("other", "test", f"AMPlify_non_AMP_test_{test}"),
        )
        examples = [
            LabeledSequence(record.sequence, label, record.id, None, split)
            for label, split, file in files
            for record in read_fasta(folder / f"{file}.fa.gz", PROTEIN, duplicates="rename")
        ]
        examples += [
            replace(e, sequence=e.sequence[1:], id=f"{e.id}-without-M")
            for e in examples
            if e.split == "train" and e.sequence.startswith("M")
        ]
        groups = kmer_groups([e.sequence for e in examples], SHARED_RESIDUES, alphabet=PROTEIN)
        return [replace(e, group=f"g{g}") for e, g in zip(examples, groups, strict=True)]

    return make


def deeploc(data: Path) -> list[LabeledSequence]:
    """2768 proteins of DeepLoc 1.0 to learn from, and 1678 to validate with.

    The name of the place comes before ``-M`` (membrane), ``-S`` (soluble) or ``-U`` (unknown). The validation
    part has 23 proteins of cytoplasm and nucleus, a class that the other has not: they count as cytoplasm.
    """
    folder = data / "deeploc1"
    examples = []
    for split, file in (("train", "deeploc_test_set"), ("validation", "deeploc_our_val_set")):
        for record in read_fasta(folder / f"{file}.fasta.gz", PROTEIN, duplicates="rename"):
            label = record.description.split()[0].rsplit("-", 1)[0]
            label = "Cytoplasm" if label == "Cytoplasm-Nucleus" else label
            examples.append(LabeledSequence(record.sequence, label, record.id, None, split))
    groups = kmer_groups([e.sequence for e in examples], SHARED_RESIDUES, alphabet=PROTEIN)
    return [replace(e, group=f"g{g}") for e, g in zip(examples, groups, strict=True)]


PUBLISHED: dict[str, Callable[[Path], list[LabeledSequence]]] = {
    "bacteria": bacteria,
    "ecoli-sigma": ecoli_sigma,
    "mouse-tata": mouse_tata,
    "human-core-all": gue("prom_core_all"),
    "human-core-notata": gue("prom_core_notata"),
    "human-core-tata": gue("prom_core_tata"),
    "human-300-tata": gue("prom_300_tata"),
    "human-core-all-made": with_fragments,
    "human-core-tata-made": made(gue("prom_core_tata")),
    "human-300-tata-made": made(gue("prom_300_tata")),
    "tata": partial(tata, ""),
    **{f"tata-no-{source}": partial(tata, source) for source in ("cnnprom", "gue", "ipromoter")},
    "human-nontata": human_nontata,
    "human-nontata-made": made(human_nontata, LOW_MADE_RATIO),
    "amp": peptides("balanced"),
    "amp-imbalanced": peptides("imbalanced"),
    "deeploc1": deeploc,
}
