"""Write docs/accuracy.md from accuracy.tsv and other tables in benchmarks/results.

python benchmarks/accuracy_page.py
"""

from __future__ import annotations

import csv
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RESULTS, PAGE = ROOT / "benchmarks" / "results", ROOT / "docs" / "accuracy.md"
TABLE = RESULTS / "accuracy.tsv"

INTRODUCTION = """\
# Accuracy

After reading this page you can compare each shipped model with a simple baseline and with published
figures, with and without relatives of the training data in the test.
[Evaluation](concepts/evaluation.md#figures) explains the measures.

Each set is scored with two protocols:

- **official**: the published test part, or random folds.
- **honest**: the same test part without two kinds of sequences: those that share a 40-mer (peptides: a
  10-mer) with training or validation, and those that carry both labels. Sets without a test part use grouped
  folds, which keep such relatives together.

The columns of the table:

- `baseline`: logistic regression on k-mers and positions (peptides: composition and ends), fitted to the
  same training part, one for each species of `bacteria`. Where the species is not given, one baseline serves
  all species. The value of the model is its difference from this baseline.
- `species recognized`: what `predict` does by default with the windows of one species
  ([how](concepts/probabilities.md)).
- `seqray`: the shipped model, or the mean over folds. Brackets contain a 95 % interval from the bootstrap
  over groups of related sequences.
- `networks`: the range over the single networks of the model, trained from different seeds; with
  cross-validation, the range over folds.
- `published`: figures that the authors of the sources below measured.

`python benchmarks/accuracy.py` and `python benchmarks/accuracy_page.py` write this page from
[accuracy.tsv](../benchmarks/results/accuracy.tsv), which also lists versions and machine. `make accuracy`
runs all of it.
"""


ALIGNMENTS = """
## Alignments: type of RNA

The data are seed alignments of Rfam with nine classes of RNA. Five folds keep whole clans on one side
([rna_type.tsv](../benchmarks/results/rna_type.tsv), `python benchmarks/rna_type.py`). Brackets contain
95 % intervals from the bootstrap over clans. Macro-F1 is the mean of F1 over the classes. The last column is
the macro-F1 of `network with linear part`, which is what `rna-family-type` is, minus that of the row.

- `random forest` and `logistic regression`: baselines on length, composition, k-mers, helices and ends.
  What is asked about first rows is trained on first rows.
- `network`, `network with linear part`: one network that is trained on alignments and reads six rows or
  fewer, without and with its [linear part](concepts/alignments.md#the-linear-part).
- `without other`: the same answers for families of the eight other classes, when `other` is no answer.
- `not in the trial`: the families that had no part in the choice of this form of the model
  ([decision 12](decisions/0012-zoo.md#rna-family-type)).
"""
GENERA = """
## Prokaryotes of a genus that was not trained on

The genera of `bacteria` were divided into four parts. For each part, a smaller network like
`bacteria-promoter` (64 wide, two layers, three epochs, no shifted windows) was trained on the species of the
other parts. It scored the test sequences of the left-out species, without the species as input
([held_out_genera.tsv](../benchmarks/results/held_out_genera.tsv), `python benchmarks/held_out_genera.py
--parts 4 --set model.d_model=64 model.d_ff=128 model.layers=2 trainer.max_epochs=3 augment.shift=0`).

Brackets contain 95 % intervals from the bootstrap over groups of related sequences. The baseline is logistic
regression on k-mers and positions of the same training sequences. `flagged` is the share of sequences
with the flag `out-of-domain`. The signature recognizes a file of 400 of these sequences as foreign in all
draws (*Staphylococcus aureus*: 13 of 20, [signature.tsv](../benchmarks/results/signature.tsv)). Neither
the flag nor the signature predicts on which genera the model fails: this depends on their promoters.

| species | n | baseline | AUROC | flagged |
|---|---|---|---|---|
"""
TRANSFER = """
## On sets of other sources

The table shows shipped models on sets of other authors, with other promoters and other negatives for the
same question ([transfer.tsv](../benchmarks/results/transfer.tsv), `python benchmarks/transfer.py --models
runs/transfer`, whose first lines say how to train the models that are not shipped;
`data/other_sources.py` describes the sets). Sequences that share a 40-mer with the training table are left
out. `AUROC` and what follows it are for windows cut around the start as in training; `2 off` and `5 off` are
AUROCs for windows cut 2 and 5 bases upstream. MCC, sensitivity and specificity are those at the threshold
that the model states. `coverage` is the share of prediction sets that hold the class where 90 % was asked
for. The baseline is logistic regression on k-mers and positions of the training table. `shares` is logistic
regression on the shares of the bases alone.

- `tata-no-...` are networks with the settings of `mouse-tata-promoter` (one member) that were trained without
  the source of the row. They show what to expect on a fourth source; the model itself has all three in
  training. `mouse-tata` is the model that was shipped before. It learned CNNProm alone, without shifted
  windows.
- The four models of human promoters learned negatives of several kinds
  ([decision 29](decisions/0029-subclasses.md)). Those that were made from promoters (most segments replaced)
  are like the negatives of the sets `ipromoter-...` and `gue-nontata`; those of `cnnprom-mouse` and
  `genomic-nontata` are fragments of genes and of the genome. With their own set alone their AUROCs here were
  .63 to .81.
- A quarter of the windows that `bacteria-promoter` learned are shifted by up to 5 bases. Windows that are
  5 bases off cost .00 to .04 in AUROC (*Z. mobilis* .07). Without shifted windows in training they cost .08
  to .26 ([decision 25](decisions/0025-other-sources.md)). In rows without "species" the model does not get
  the species. By default `predict` takes the species that a file is clearly nearest to, as in the row
  "species recognized". *E. coli* and *Shigella* are too similar for that: name the species with `--context`.

Of such files, 25 have a coverage below .85. `predict` prints a caution for 22 of them
([cautions](concepts/probabilities.md#scores-unlike-those-of-held-out-examples)).

| model | set | n | AUROC | 2 off | 5 off | MCC | sensitivity | specificity | coverage | baseline | shares |
|---|---|---|---|---|---|---|---|---|---|---|---|
"""
AUTOMATIC = """
## Settings chosen from the data

`seqray train --train TABLE --out MODEL` without other settings, compared with settings that somebody
tuned for the set and with the baseline, on what the networks held out
([automatic.tsv](../benchmarks/results/automatic.tsv), `python benchmarks/automatic.py`). These parts also
chose the epochs, so the figures of both trainings are slightly too good. `difference` is that to the tuned
settings, with a 95 % interval from the bootstrap over groups of related sequences. Of several classes, a
figure is the mean over the classes.

A linear part of a model answers by copies that lack a fifth of this part, and learned from the rest of it,
which the networks and the baseline did not. The minutes of `ecoli-cnnprom`, `ecoli-sigma`, `mouse-tata` and
`human-300-tata` are of before the linear model was fitted in one thread of BLAS, which takes less. The tuned
settings of `ecoli-sigma` are older than its k-mers, which
[the rules](concepts/training.md#what-is-chosen-from-the-data)
choose. `arabidopsis-promoter` can't be compared: its networks held out other parts.

| set | n | measure | baseline | tuned | automatic | difference | processor minutes |
|---|---|---|---|---|---|---|---|
"""
PAIRS = """
## Pairs of columns against structures

The table shows the share of true pairs among the best L/5 and L pairs, where L is the number of bases
of the query. True pairs are base pairs of Rfam's consensus structures and contacts of Pfam domains
([contacts.tsv](../benchmarks/results/contacts.tsv), `python benchmarks/contacts.py`). Row attention comes
from `rna-family-type`, and from a network pretrained on the 20 domains alone
(`configs/pfam-pretraining.yaml`). Neither network was trained on pairs, and its attention is not a way to
find them, so seqray offers no pairs by attention. The helices come from energies of stacked pairs, without a
network; networks of RNA read them (`model.helices`).
"""


def read(path: Path = TABLE) -> tuple[list[str], list[dict[str, str]]]:
    """Provenance lines and rows of the table."""
    lines = path.read_text(encoding="utf-8").splitlines()
    head = [line[2:] for line in lines if line.startswith("# ")]
    body = [line for line in lines if not line.startswith("#")]
    return head, list(csv.DictReader(body, delimiter="\t"))


def page(head: Sequence[str], rows: Sequence[Mapping[str, str]]) -> str:
    """Lay the page out."""
    shown = [row for row in rows if row["measure"]]
    overall = [row for row in shown if row["low"] or not row["set"].startswith("bacteria")]
    species = [row for row in shown if row["set"] == "bacteria" and row not in overall]
    parts = [INTRODUCTION, *_overall(overall), *_species(species), *_models(overall), *_sources(overall)]
    parts += _transfer(read(RESULTS / "transfer.tsv")[1])
    parts += _automatic(read(RESULTS / "automatic.tsv")[1])
    parts += _genera(read(RESULTS / "held_out_genera.tsv")[1])
    parts += _alignments(read(RESULTS / "rna_type.tsv")[1]) + _pairs(read(RESULTS / "contacts.tsv")[1])
    machine = [line for line in head if line.startswith(("versions", "machine"))]
    said = "The rows were measured at different times and on different machines. The last measurements used:"
    whole = "\n".join([*parts, "", said, "", *(f"{line[0].upper()}{line[1:]}." for line in machine), ""])
    return whole.replace("one member", "one network")  # as tables call it


def _overall(rows: Sequence[Mapping[str, str]]) -> list[str]:
    lines = [
        "| set | protocol | n | measure | published | baseline | seqray | networks |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        protocol = ", ".join(filter(None, (row["protocol"], row["condition"])))
        name = row["measure"].replace("_", " ")
        cells = (row["set"], protocol, row["n"], name, row["published"] or "-", _short(row["floor"]))
        lines.append(f"| {' | '.join(cells)} | {_with_interval(row)} | {_members(row)} |")
    return lines


def _species(rows: Sequence[Mapping[str, str]]) -> list[str]:
    if not rows:
        return []
    by_name: dict[str, dict[str, Mapping[str, str]]] = {}
    for row in rows:
        by_name.setdefault(row["condition"], {})[row["protocol"]] = row
    lines = ["", "## AUROC of `bacteria-promoter` by species, with the species as input", ""]
    lines += ["| species | n | baseline | official | honest |", "|---|---|---|---|---|"]
    for name, found in by_name.items():
        official, honest = found.get("official"), found.get("honest")
        cells = (
            name,
            official["n"] if official else "-",
            _short(official["floor"]) if official else "-",
            _short(official["seqray"]) if official else "-",
            f"{_short(honest['seqray'])} (n {honest['n']})" if honest else "-",
        )
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def _models(rows: Sequence[Mapping[str, str]]) -> list[str]:
    lines = [
        "",
        "## What was trained",
        "",
        "| model or configuration | parameters | networks or folds | training |",
    ]
    lines.append("|---|---|---|---|")
    seen = set()
    for row in rows:
        if row["model"] not in seen:
            seen.add(row["model"])
            seconds = f"{row['train_seconds']} s, one thread" if row["train_seconds"] else "not timed"
            lines.append(f"| {row['model']} | {row['parameters']} | {row['seeds']} | {seconds} |")
    return lines


def _sources(rows: Sequence[Mapping[str, str]]) -> list[str]:
    lines = ["", "## Sources of the published figures", ""]
    found: dict[str, set[str]] = {}
    for row in rows:
        if row["source"]:
            found.setdefault(row["source"], set()).add(row["set"])
    return lines + [f"- {', '.join(sorted(sets))}: {source}" for source, sets in found.items()]


def _transfer(rows: Sequence[Mapping[str, str]]) -> list[str]:
    """One line a model, set and context: windows in place, and the AUROC of those cut elsewhere."""
    found: dict[tuple[str, str, str], dict[str, Mapping[str, str]]] = {}
    for row in rows:
        if row["protocol"] == "unrelated":
            known = row["context"].partition(": ")[0]  # recognized, or told
            found.setdefault((row["model"], row["set"], known), {})[row["shift"]] = row
    lines = []
    for (model, name, known), cuts in found.items():
        row = cuts["0"]
        off = [_short(cuts[shift]["auroc"] if shift in cuts else "") for shift in ("-2", "-5")]
        how = {"-": "", "recognized": ", species recognized"}.get(known, ", species given")
        auroc = f"**{_short(row['auroc'])}** ({_short(row['low'])} to {_short(row['high'])})"
        names = ("mcc", "sensitivity", "specificity", "coverage", "floor_auroc", "letters_auroc")
        cells = (model, name + how, row["n"], auroc, *off, *(_short(row[column]) for column in names))
        lines.append(f"| {' | '.join(cells)} |")
    return [TRANSFER + "\n".join(lines)]


def _automatic(rows: Sequence[Mapping[str, str]]) -> list[str]:
    lines = []
    for row in rows:
        if row["figure"] in ("mcc", "auroc"):
            gap = _figure(row, "difference") if row["difference"] else "-"
            cells = (row["set"], row["held_out"], row["figure"], _short(row["floor"]), _short(row["tuned"]))
            lines.append(
                f"| {' | '.join(cells)} | **{_short(row['automatic'])}** | {gap} | {row['cpu_minutes']} |"
            )
    return [AUTOMATIC + "\n".join(lines)]


def _genera(rows: Sequence[Mapping[str, str]]) -> list[str]:
    lines = []
    for row in rows:
        interval = f" ({_short(row['low'])} to {_short(row['high'])})" if row["low"] else ""
        auroc = f"**{_short(row['auroc'])}**{interval}"
        cells = (row["species"], row["n"] or "-", _short(row["floor"]), auroc)
        lines.append(f"| {' | '.join(cells)} | {_short(row['flagged'])} |")
    return [GENERA + "\n".join(lines)]


def _alignments(rows: Sequence[Mapping[str, str]]) -> list[str]:
    columns = "| families | rows | model | macro-F1 | MCC | gain of the model |"
    lines = [ALIGNMENTS, columns, "|---|---|---|---|---|---|"]
    for row in rows:
        cells = [row["families"], row["rows"], row["model"]]
        cells += [_figure(row, name) for name in ("macro_f1", "mcc")]
        gain = {"gain": row["model_gain"], "gain_low": row["gain_low"], "gain_high": row["gain_high"]}
        last = "-" if row["model"] == "network with linear part" else _figure(gain, "gain")
        lines.append(f"| {' | '.join(cells)} | {last} |")
    names = [column for column in rows[0] if column.startswith("f1_")]
    heads = [f"{row['model']}, {row['rows']}" for row in rows if row["families"] == "all"]
    lines += ["", "F1 of each class, of all families:", "", f"| class | {' | '.join(heads)} |"]
    lines.append("|---" * (1 + len(heads)) + "|")
    for name in names:
        cells = [_short(row[name]) for row in rows if row["families"] == "all"]
        lines.append(f"| {name.removeprefix('f1_')} | {' | '.join(cells)} |")
    return lines


def _pairs(rows: Sequence[Mapping[str, str]]) -> list[str]:
    lines = [PAIRS, "| task | scores | alignments | L/5 | L |", "|---|---|---|---|---|"]
    for row in rows:
        cells = [_figure(row, name) for name in ("top_l5", "top_l")]
        lines.append(f"| {row['task']} | {row['scores']} | {row['alignments']} | {' | '.join(cells)} |")
    return lines


def _figure(row: Mapping[str, str], name: str) -> str:
    return f"{_short(row[name])} ({_short(row[f'{name}_low'])} to {_short(row[f'{name}_high'])})"


def _short(text: str) -> str:
    return f"{float(text):.3f}" if text else "-"


def _with_interval(row: Mapping[str, str]) -> str:
    value = f"**{_short(row['seqray'])}**"
    return f"{value} ({_short(row['low'])} to {_short(row['high'])})" if row["low"] else value


def _members(row: Mapping[str, str]) -> str:
    if not row["seed_low"] or row["seed_low"] == row["seed_high"]:
        return "-"
    return f"{_short(row['seed_low'])} to {_short(row['seed_high'])}"


def main() -> None:
    PAGE.write_text(page(*read()), encoding="utf-8")
    print(f"wrote {PAGE.name}")


if __name__ == "__main__":
    ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter).parse_args()
    main()
