"""Small scripts of benchmarks and data, and their index."""

import gzip
import json
import re
from collections import Counter
from fnmatch import fnmatch
from fractions import Fraction
from itertools import product
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch
from safetensors.numpy import load_file

import corpora
import gpu
import locator_explanations
import machine
import peptides
import restate_cards
from accuracy_page import PAGE, page, read
from accuracy_sets import FOLDS, TEST_SETS
from automatic import COLUMNS, SETS
from locator_cards import FIGURES, rows_of
from prefilter import count_missing
from published_sets import BACKGROUND, PROMOTER, with_made_negatives
from seqray.calibration.signature import sketch_genome
from seqray.core.records import LabeledSequence
from seqray.core.run_config import load_run_config
from seqray.genome.find import read_genes
from seqray.modelfile.file import load_model, save_model
from seqray.modelfile.header import FOLDER
from smoothing import Choice, call
from training_sheet import genome_rows, read_table, training_rows, write_table
from whole_genome import agreement


def card(**values):
    """Figures by species, with genes; half of that with letters alone."""
    tables = {
        f"{species}, region, {mode}": {figure: {"value": factor * value} for figure in FIGURES}
        for species, value in values.items()
        for mode, factor in (("with genes", 1), ("letters alone", 0.5))
    }
    return SimpleNamespace(
        metrics=tables | {"headline": {}, "x, species left out, with genes": {"auprc": {"value": 9}}}
    )


def test_a_row_has_the_mean_over_shared_species_and_in_how_many_a_model_is_better():
    rows = list(rows_of([("a", card(x=0.2, y=0.4, z=7)), ("b", card(x=0.3, y=0.4))]))
    assert len(rows) == 2 * 2 * len(FIGURES)
    assert rows[:2] == [
        ("a", "with genes", "auprc", 2, "0.3000", 0),
        ("b", "with genes", "auprc", 2, "0.3500", 1),
    ]
    assert rows[-1] == ("b", "letters alone", FIGURES[-1], 2, "0.1750", 1)


AREAS = {
    ("rollout", "deletion"): [1.0, 2.0],
    ("rollout", "insertion"): [6.0, 7.0],
    ("nearness", "deletion"): [2.0, 2.0],
    ("nearness", "insertion"): [5.0, 5.0],
    ("random", "deletion"): [4.0, 4.0],
    ("random", "insertion"): [4.0, 4.0],
}


def test_a_gain_is_above_0_where_the_score_falls_faster_and_rises_faster():
    assert locator_explanations.gain(AREAS, "rollout", "random", "deletion").tolist() == [3.0, 2.0]
    assert locator_explanations.gain(AREAS, "rollout", "random", "insertion").tolist() == [2.0, 3.0]
    assert locator_explanations.gain(AREAS, "rollout", "nearness", "deletion").tolist() == [1.0, 0.0]


def test_every_method_is_compared_with_chance_and_with_nearness():
    rows = {tuple(row[:3]): row[3:5] for row in locator_explanations.table(AREAS, ["rollout"])}
    assert rows == {
        ("rollout", "deletion gain", "random"): (2, 2.5),
        ("rollout", "insertion gain", "random"): (2, 2.5),
        ("rollout", "deletion gain", "nearness"): (2, 0.5),
        ("rollout", "insertion gain", "nearness"): (2, 1.5),
        ("nearness", "deletion gain", "random"): (2, 2.0),
        ("nearness", "insertion gain", "random"): (2, 1.0),
    }


def test_rows_of_a_table_follow_what_their_figures_depend_on(tmp_path, monkeypatch):
    path = tmp_path / "memory.tsv"
    for verb, rows in (("predict", [(1, 2), (3, 4)]), ("scan", [(5, 6)])):
        monkeypatch.setattr("sys.argv", ["benchmarks/memory.py", verb])
        for row in rows:
            machine.add_row(path, ("a", "b"), row)
    lines = path.read_text().splitlines()
    assert lines[0] == "# command: python benchmarks/memory.py predict"
    assert [line.partition(":")[0] for line in lines[1:3]] == ["# versions", "# machine"]
    assert lines[3:7] == ["a\tb", "1\t2", "3\t4", "# command: python benchmarks/memory.py scan"]
    assert lines[9:] == ["5\t6"]


def test_calls_within_ten_letters_on_the_same_strand_are_not_missing():
    wanted = [("+", 100), ("+", 200), ("-", 300), ("-", 400)]
    assert count_missing(wanted, wanted) == 0
    assert count_missing(wanted, [("+", 110), ("+", 211), ("+", 300), ("-", 390)]) == 2
    assert count_missing(wanted, []) == 4
    assert count_missing([], wanted) == 0


def strands(**values: dict[int, float]) -> dict[str, np.ndarray]:
    found = {name: np.full(300, 1e-6) for name in "+-"}
    for name, pairs in values.items():
        for place, value in pairs.items():
            found["+" if name == "plus" else "-"][place] = value
    return found


def test_calls_are_ranked_and_keep_their_distance():
    scores = strands(plus={40: 0.5, 70: 0.4}, minus={45: 0.3})
    for distance, positions in ((50, [40, 45]), (25, [40, 70, 45])):
        found = call(scores, Choice(0, 0, distance))
        assert found.position.tolist() == positions
        assert found.plus.tolist() == [place != 45 for place in positions]


def test_several_letters_with_low_probabilities_outrank_one():
    scores = strands(plus={40: 0.4, **dict.fromkeys(range(196, 205), 0.2)})
    assert call(scores, Choice(0, 0, 25)).position[0] == 40
    assert call(scores, Choice(8, 0, 25)).position.tolist() == [200, 40]


def test_company_within_the_region_outranks_a_site_alone():
    scores = strands(plus={40: 0.4, 150: 0.35, 200: 0.3})
    assert call(scores, Choice(0, 0, 25)).position.tolist() == [40, 150, 200]
    assert call(scores, Choice(0, 80, 25)).position[0] == 150


RNG = np.random.default_rng(7)


def rows(splits: list[str | None]) -> list[LabeledSequence]:
    """A promoter and a background of each split, of 60 letters, each in a group of its own."""
    return [
        LabeledSequence("".join(RNG.choice(list("ACGT"), 60)), label, f"{label}{n}", f"{label}{n}", split)
        for n, split in enumerate(splits)
        for label in (PROMOTER, BACKGROUND)
    ]


def test_made_negatives_are_of_training_promoters_alone():
    given = rows(["train"] * 30 + ["validation"] * 5 + ["test"] * 5)
    found = with_made_negatives(given, Fraction(3, 5))
    assert found[: len(given)] == given
    made = found[len(given) :]
    assert Counter(e.subclass for e in made) == {"substitution": 12, "shuffle": 6}
    assert {(e.label, e.split) for e in made} == {(BACKGROUND, "train")}
    parents = {e.id: e for e in given if e.label == PROMOTER and e.split == "train"}
    for e in made:
        parent = parents[e.id.split(":")[1]]
        assert e.group == parent.group
        if e.subclass == "shuffle":
            assert Counter(e.sequence) == Counter(parent.sequence)
            assert e.sequence != parent.sequence


def test_without_a_split_some_groups_are_held_out_and_make_nothing():
    found = with_made_negatives(rows([None] * 100), Fraction(1))
    given, made = found[:200], found[200:]
    parts = Counter(e.split for e in given)
    assert parts["train"] + parts["validation"] == 200
    assert 24 <= parts["validation"] <= 25  # .12 of 200 groups, and the one that exceeds it
    held_out = {e.group for e in given if e.split == "validation"}
    assert held_out.isdisjoint(e.group for e in made)


def test_text_site_and_figures_change_and_nothing_else(tiny_model_file, tmp_path, monkeypatch):
    model = load_model(tiny_model_file)
    shipped = tmp_path / "src" / "tiny.safetensors"
    shipped.parent.mkdir()
    save_model(shipped, model.networks, model.card)
    (tmp_path / "configs").mkdir()
    (tmp_path / "configs/tiny.yaml").write_text(
        "data: {site: 3}\ncard: {use: as a test, limits: [it knows nothing]}\n"
    )
    (tmp_path / "benchmarks/results").mkdir(parents=True)
    figures = {"headline": {"metric": "mcc", "value": 0.5, "low": 0.4, "high": 0.6}}
    (tmp_path / "benchmarks/results/tiny.card.json").write_text(json.dumps(figures))
    monkeypatch.setattr(restate_cards, "ROOT", tmp_path)
    monkeypatch.setattr(restate_cards, "locate_model", lambda name: shipped)
    monkeypatch.setattr(restate_cards, "load_model", lambda name: load_model(shipped))
    before = load_file(shipped)
    restate_cards.restate("tiny")
    after, card = load_file(shipped), load_model(shipped).card
    assert card.info == {"use": "as a test", "limits": ["it knows nothing"]}
    assert card.site == 3
    assert card.metrics == figures
    assert before.keys() == after.keys()
    assert all((before[name] == after[name]).all() for name in before)
    kept = ("threshold", "temperature", "training")
    assert all(getattr(card, name) == getattr(model.card, name) for name in kept)


def test_without_a_gpu_it_says_so_and_writes_nothing(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr("sys.argv", ["benchmarks/gpu.py", "--out", str(tmp_path / "gpu.tsv")])
    assert gpu.main() == 3
    assert capsys.readouterr().err == "gpu.py: torch sees no GPU here; nothing was measured\n"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", ["windows", "locator"])
def test_a_device_agrees_with_itself_and_bf16_does_not(kind, tiny_model_file, locator_file):
    path = {"windows": tiny_model_file, "locator": locator_file}[kind]
    rows = {(row[1], row[3]): float(row[5]) for row in gpu.equality(str(path), "cpu", 50)}
    assert [rows[what, "fp32"] for what in ("difference", "other digits", "other calls")] == [0, 0, 0]
    assert 0 < rows["difference", "bf16"] < 0.1
    assert rows["other digits", "bf16"] > 0.5


def test_scan_rollout_and_training_are_timed(tiny_model_file, locator_file):
    rows = list(gpu.speeds(str(tiny_model_file), "cpu", 1))
    kinds = product(("fp32", "bf16"), ("scan", "rollout", "train"))
    assert [(row[3], row[1], row[6]) for row in rows] == [(*kind, "sequences/s") for kind in kinds]
    assert all(float(row[5]) > 0 for row in rows)
    rows = list(gpu.speeds(str(locator_file), "cpu", 1))
    assert [(row[1], row[6]) for row in rows] == 2 * [("scan", "letters/s"), ("train", "letters/s")]
    assert all(float(row[5]) > 0 for row in rows)


@pytest.mark.parametrize("kind", ["windows", "locator"])
def test_a_step_of_training_lowers_the_loss(kind, tiny_model, locator):
    model = {"windows": tiny_model, "locator": locator}[kind]
    before = [parameter.clone() for parameter in model.networks[0].parameters()]
    step, _, _ = gpu.works(model, 4, "fp32")["train"]
    losses = np.array([step() for _ in range(20)], dtype=float)
    assert losses[-1] < losses[0]
    after = model.networks[0].parameters()  # the model itself stays as it is
    assert all(torch.equal(old, new) for old, new in zip(before, after, strict=True))


def test_the_page_is_that_of_the_table():
    assert PAGE.read_text(encoding="utf-8") == page(*read())


def test_every_row_is_of_a_known_set_and_every_set_has_a_configuration():
    known = {task.shown: task for task in (*TEST_SETS, *FOLDS)}
    _, rows = read()
    assert {row["set"] for row in rows} <= set(known)
    for task in TEST_SETS:
        assert load_run_config(PAGE.parents[1] / "configs" / f"{task.model}.yaml").name == task.model
    for task in FOLDS:
        load_run_config(PAGE.parents[1] / "configs" / f"{task.config}.yaml")


def test_figures_of_a_test_part_are_those_of_a_shipped_model():
    _, rows = read()
    tests = {task.shown for task in TEST_SETS}
    for row in rows:
        if row["set"] in tests:
            assert (FOLDER / f"{row['model']}.safetensors").exists()
            assert 0 <= float(row["seqray"]) <= 1
            assert not row["low"] or float(row["low"]) <= float(row["seqray"]) <= float(row["high"])


def test_the_trainings_without_settings_are_of_known_sets():
    _, rows = read(PAGE.parents[1] / "benchmarks" / "results" / "automatic.tsv")
    assert set(rows[0]) == set(COLUMNS)
    assert {row["set"] for row in rows} <= set(SETS)
    for row in rows:
        if row["difference"]:
            gap = float(row["automatic"]) - float(row["tuned"])
            assert abs(gap - float(row["difference"])) < 2e-4


GENOME = {"species": "A b", "genus": "A", "genome": "/g.fa", "genes": "", "note": ""}
SITE = {"contig": "c", "position": 5, "strand": "+", "weight": 1.0}
CONTEXT = {"species": "C d", "genus": "C", "weight": 0.2, "shares": "", "type": "CDS", "distance": ""}


def test_genomes_and_contexts_of_the_sheet(tmp_path: Path):
    rows = [
        {"name": "ecoli", "domain": "bacteria", "weight": 1.0},
        {"name": "upstream", "domain": "bacteria", "weight": 0.5},
        {"name": "unclear", "domain": "bacteria", "weight": 0.0},
        {"name": "archaeon", "domain": "archaea", "weight": 1.0},
    ]
    write_table(
        tmp_path / "genomes.tsv", [{**GENOME, **row, "sites": f"{row['name']}.sites.tsv"} for row in rows]
    )
    write_table(tmp_path / "ecoli.sites.tsv", [{**SITE, "site": s} for s in ("promoter", "internal")])
    write_table(tmp_path / "upstream.sites.tsv", [{**SITE, "site": "promoter"}] * 10)
    contexts = [
        {**CONTEXT, "sequence": "ACGTT", "index": 3},
        {**CONTEXT, "sequence": "ACGTT", "index": 3},
        {**CONTEXT, "sequence": "GGGTTATGCC", "index": 2, "distance": 3},
        {**CONTEXT, "sequence": "CCCTT", "index": 2, "shares": "test"},
        {**CONTEXT, "species": "E f", "sequence": "TTTTT", "index": 2, "weight": 0.0},
    ]
    write_table(tmp_path / "contexts.tsv.gz", contexts)

    write_table(tmp_path / "archaeon.sites.tsv", [{**SITE, "site": "promoter"}])
    assert [row["held_out"] for row in genome_rows(tmp_path, "archaea")] == ["archaeon.split.bed"]
    found = list(training_rows(tmp_path))
    kept = ("species", "group", "genes", "held_out", "weight", "inside")
    assert [tuple(row[key] for key in kept) for row in found] == [
        ("A b", "A", "predict", "ecoli.split.bed", 6.0, 1.0),
        ("A b", "A", "predict", "upstream.split.bed", 0.5, 0.1),
        ("C d (contexts)", "C", "contexts-c-d.gff3", "", 1.0, 1.0),
    ]
    with gzip.open(tmp_path / "contexts-c-d.fa.gz", "rt") as handle:
        assert handle.read() == ">contexts-c-d-1\nACGTT\n>contexts-c-d-2\nGGGTTATGCC\n"
    # The start is letter 3 of 10, counted from 1; the gene begins 3 letters on and ends beyond the context.
    assert (tmp_path / "contexts-c-d.gff3").read_text() == (
        "##gff-version 3\n##sequence-region contexts-c-d-1 1 5\n##sequence-region contexts-c-d-2 1 10\n"
        "contexts-c-d-2\t.\tCDS\t6\t10\t.\t+\t0\tID=contexts-c-d-2;end_range=10,.\n"
    )
    genes = read_genes(tmp_path / "contexts-c-d.gff3").genes
    assert {contig: len(found) for contig, found in genes.items()} == {
        "contexts-c-d-1": 0,  # known to have none
        "contexts-c-d-2": 1,
    }
    sites = read_table(tmp_path / "contexts-c-d.sites.tsv")
    assert [(s["contig"], s["position"], s["strand"]) for s in sites] == [
        ("contexts-c-d-1", "4", "+"),
        ("contexts-c-d-2", "3", "+"),
    ]


def test_a_set_of_peptides_has_each_sequence_once_and_none_of_both_labels(tmp_path):
    letters, labels = ("ACD", "EFG", "ACD", "HIK", "HIK", "ACGT" * 5), "0 1 0 0 1 0"
    fasta = "".join(f">Seq_{i}\n{sequence}\n" for i, sequence in enumerate(letters))
    for name, text in (("seqs.fasta", fasta), ("classes.txt", "\n".join(labels.split()))):
        (tmp_path / f"{name}.gz").write_bytes(gzip.compress(text.encode()))
    assert peptides.read_set(tmp_path) == (["ACD", "EFG"], ["0", "1"])


def test_the_slope_of_timid_probabilities_is_above_1():
    """Of ten records at .8 nine are positive, and of ten at .2 one is: logit(.9) / logit(.8)."""
    truth = np.array([1] * 9 + [0] + [1] + [0] * 9)
    found = peptides.slope(truth, np.repeat([0.8, 0.2], 10))
    assert found == pytest.approx(np.log(9) / np.log(4), abs=1e-3)
    assert np.isnan(peptides.slope(truth, np.full(20, 0.5)))


def test_differences_over_sets_of_peptides_have_an_interval_of_student():
    """Differences of .1, .2 and .3: mean .2, standard error .1 / sqrt(3), and 4.303 of these."""
    row = dict.fromkeys((f"{f}_{m}" for f in peptides.FIGURES for m in peptides.MODELS), "0.5")
    row |= {"split": "random", "half": "judge", "slope_seqray": "1"}
    row |= {"tested": "40", "positives": "50", "records": "100"}
    rows = [row | {"mcc_seqray": str(0.6 + gap), "mcc_svm": "0.6"} for gap in (0.1, 0.2, 0.3)]
    found = {tuple(line[:4]): line[4:] for line in peptides.differences(rows)}
    assert found["judge", "random", "mcc", "svm"] == [3, 3, "0.2000", "-0.0484", "0.4484"]
    assert found["all", "random", "mcc", "best"] == found["judge", "random", "mcc", "svm"]
    assert found["judge", "random", "log slope", ""] == [3, "", "0.0000", "0.0000", "0.0000"]
    assert not any(key[0] == "choose" for key in found)
    assert {peptides.half_of(name) for name in ("acp_anticp", "hiv_sqv")} == {"choose"}
    assert {peptides.half_of(name) for name in ("pip_pipel", "hiv_v3")} == {"judge"}


def test_shipped_locators_hold_a_sketch_of_each_genome_that_they_were_measured_in(tmp_path, monkeypatch):
    for name in ("archaea-genome", "bacteria-genome", "ecoli-genome", "fungi-genome"):
        card = load_model(name).card
        assert card.domain.genomes.keys() == {table.species for table in card.locator.expected}
        assert {len(sketch.numbers) for sketch in card.domain.genomes.values()} == {2000}
    shipped, species = tmp_path / "e.safetensors", "Escherichia coli K-12 MG1655"
    model = load_model("ecoli-genome")
    save_model(shipped, model.networks, model.card)
    (tmp_path / "genome.fna").write_text(">c\n" + "ACGTTGCATGTCGCATGATGCCATG\n")
    monkeypatch.setattr(restate_cards, "locate_model", lambda name: shipped)
    monkeypatch.setattr(restate_cards, "read_list", lambda: [{"species": species, "genome": "genome.fna"}])
    restate_cards.sketch("ecoli-genome", tmp_path)
    card = load_model(shipped).card
    assert card.domain.genomes == {species: sketch_genome(["ACGTTGCATGTCGCATGATGCCATG"])}
    assert card.metrics == model.card.metrics


def test_files_of_others_are_compared_with_another_reader(tmp_path):
    folder = tmp_path / "others"
    folder.mkdir()
    (folder / "dna.fa").write_text(">a\nACGUN\n>b\nacgt\n")
    (folder / "protein.faa").write_text(">a\nMKVLQ\n")
    (folder / "rows.fasta").write_text(">a\nAC-GT\n>b\nACGGT\n")
    (folder / "layout.phy").write_text(
        " 2 12\none       ACGTAC\n          GTACGT\ntwo       TTTTTT\n          GGGGGG\n"
    )
    (folder / "cut.gb").write_text("LOCUS       x 4 bp DNA linear BCT 01-JAN-2026\nORIGIN\n        1 ac")
    (folder / "notes.txt").write_text("not read")
    assert corpora.main([str(folder), "--out", str(tmp_path / "out.tsv")]) == 0
    rows = machine.read_table(tmp_path / "out.tsv")
    outcomes = {(row["format"], row["outcome"]): row["files"] for row in rows if row["file"] == "all"}
    assert outcomes["fasta", "same"] == "3"
    assert outcomes["phylip", "same"] == "1"
    [cut] = [row for row in rows if row["file"] == "others/cut.gb"]
    assert cut["outcome"].startswith("refused by")
    assert cut["reason"]


def test_calls_of_two_precisions_are_compared_by_strand():
    calls = pd.DataFrame({"strand": [*"+++-"], "site": [10, 100, 205, 100], "score": [0.5, 0.4, 0.3, 0.9]})
    others = pd.DataFrame({"strand": [*"+-+"], "site": [200, 106, 10], "score": [0.3, 0.9, 0.75]})
    # at 10 on + both call; 205 and 200 are 5 apart; 100 on + has none near, 100 and 106 on - are 6 apart
    assert agreement(calls, others) == (1, 2, 0.25)


BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
NAMED = set(re.findall(r"`([\w*.-]+\.(?:py|tsv|card\.json|json))`", (BENCHMARKS / "README.md").read_text()))


def test_every_script_is_named_and_exists():
    assert {name for name in NAMED if name.endswith(".py")} == {path.name for path in BENCHMARKS.glob("*.py")}


def test_every_table_of_results_is_named():
    patterns = [name for name in NAMED if not name.endswith(".py")]
    results = [path.name for path in (BENCHMARKS / "results").iterdir()]
    assert [name for name in results if not any(fnmatch(name, pattern) for pattern in patterns)] == []
    unused = [pattern for pattern in patterns if not any(fnmatch(name, pattern) for name in results)]
    assert unused == []
