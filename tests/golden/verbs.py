"""The functions of ``import seqray``, each printed as CSV; they run as commands `python-NAME`."""

import csv
import sys
import warnings
from pathlib import Path

import pandas as pd

import seqray

INPUTS = Path("..", "inputs")
OWN = Path("..", "train-windows", "m.safetensors")

warnings.formatwarning = lambda message, category, *_: f"{category.__name__}: {message}\n"


def predict() -> None:
    """Windows, peptides and alignments as frames."""
    show(seqray.predict("ecoli-promoter", INPUTS / "promoters.fa", coverage=0.9))
    show(seqray.predict("antimicrobial-peptide", {"one": "GIGKFLHSAKKFGKAFVGEIMNS", "two": "MKVLAAGIV"}))
    show(seqray.predict("rna-family-type", INPUTS / "few.sto"))


def records() -> None:
    """Records of a file through the functions that give them one by one."""
    model = seqray.load_model(str(OWN))
    windows = list(seqray.read_fasta(INPUTS / "windows.fa"))
    show(*seqray.predict_records(model, windows))
    show(*seqray.scan_records(model, seqray.read_genbank(INPUTS / "genome.gb")).calls)
    options = seqray.ExplainOptions(methods=("occlusion",), shuffles=0)
    show(*(one.scores.tolist() for one in seqray.explain_records(model, windows[:3], options)))


def scan() -> None:
    """A model of windows, and a locator with genes."""
    show(seqray.scan(OWN, INPUTS / "genome.fa", threshold=0.7))
    show(seqray.scan("bacteria-genome", INPUTS / "genome.gb", genes=INPUTS / "genes.gff3", per_kb=2.0))


def explain() -> None:
    """Two methods, and the calls of a locator."""
    show(seqray.explain(OWN, INPUTS / "windows.fa", ["rollout", "ism"], top=5))
    calls = seqray.scan("bacteria-genome", INPUTS / "regions.fa", genes=None)
    show(seqray.explain("bacteria-genome", INPUTS / "regions.fa", calls=calls.head(2), genes=None, top=5))


def scores() -> None:
    """Figures of given probabilities."""
    table = pd.read_csv(INPUTS / "table.tsv", sep="\t")
    p = [(37 * i % 101 + 20 * (label == "promoter")) / 121 for i, label in enumerate(table.label)]
    found = seqray.evaluate_scores(
        list(table.label), p, ("background", "promoter"), "promoter", groups=list(table.group), draws=50
    )
    show(pd.DataFrame([str(figure) for figure in found.figures]))


def estimator() -> None:
    """Train on a table, predict with the model, and save it."""
    table = pd.read_csv(INPUTS / "table.tsv", sep="\t")
    model = seqray.SequenceClassifier(
        window=30, d_model=16, layers=1, heads=2, epochs=2, device="cpu", threads=1, seed=2
    )
    model.fit(table.sequence, table.label, groups=table.group)
    show(pd.DataFrame(model.predict_proba(table.sequence), columns=model.classes_))
    show(pd.DataFrame({"label": model.predict(table.sequence)}).head(20))
    model.save("m.safetensors")


def origin() -> None:
    """What sequences are like, and the records of files."""
    show(seqray.origin("bacteria-promoter-fast", INPUTS / "stretch.gb"))
    show(pd.DataFrame([(one.id, len(one.sequence)) for one in seqray.read_fasta(INPUTS / "regions.fa")]))
    show(pd.DataFrame([(one.id, len(one.sequence)) for one in seqray.read_genbank(INPUTS / "genome.gb")]))


def show(*things: object) -> None:
    """Write tables as CSV with what is known of them, other things as a row."""
    for thing in things:
        if isinstance(thing, pd.DataFrame):
            thing.to_csv(sys.stdout, index=False)
            csv.writer(sys.stdout).writerows(thing.attrs.items())
        else:
            csv.writer(sys.stdout).writerow([thing])
