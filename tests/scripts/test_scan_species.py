"""The benchmark that leaves genera out: truth, methods, means, and the folds of genera."""

import sys
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import scan_species
import train_folds
from genome_truth import KnownGenome, KnownStart
from invented import SHEET, SITES, Letters, write_fasta, write_rows
from matching import rank_calls
from train_folds import Genus

letters = Letters(5)
CONTIGS = {"c1": letters(12_000), "c2": letters(8000)}


def known(position: int, distance: int | None = 30, weight: float = 1.0, source: str = "a") -> KnownStart:
    return KnownStart(position, "+", "promoter", distance, frozenset({source}), False, weight)


def genome(name: str = "g", *starts: KnownStart) -> KnownGenome:
    return KnownGenome(name, "G s", "G", "bacteria", CONTIGS, starts)


def sheet_row(name: str, domain: str = "bacteria", weight: str = "1.0") -> dict[str, str]:
    return {"name": name, "species": f"{name} s", "genus": "G", "domain": domain, "weight": weight}


def test_recall_counts_starts_of_full_weight_and_any_start_makes_a_call_right():
    section = scan_species.make_section(
        genome("g", known(100), known(500, None), known(900, weight=0.5), known(13_000, weight=0.5))
    )
    assert section.region == (0, 20_000)
    recall, precision = section.pairs["genes"]
    assert recall.position.tolist() == [100]
    assert precision.position.tolist() == [100, 500, 900, 13_000]
    assert section.pairs["all"][0].position.tolist() == [100, 500]
    assert set(section.pairs) == {"genes", "all"}


def listed(count: int) -> list[KnownStart]:
    return [known(100 * (i + 1), weight=0.5, source="kuo") for i in range(count)]


def test_starts_before_genes_of_one_source_are_a_truth_where_there_are_fifty():
    others = [known(9000, None, source="kuo"), known(9100)]
    pairs = scan_species.make_section(genome("g", *listed(50), *others)).pairs
    assert pairs["kuo"][0].position.tolist() == [100 * (i + 1) for i in range(50)]
    assert len(pairs["kuo"][1]) == 52
    assert "kuo" not in scan_species.make_section(genome("g", *listed(49), *others)).pairs


def test_a_truth_that_some_genomes_lack_has_the_mean_of_the_others():
    truth = genome("b", *listed(50))
    calls = {"seqray": rank_calls([100, 200, 300], ["+"] * 3, [3.0, 2.0, 1.0])}
    has = scan_species.measure_genome(sheet_row("b"), truth, calls, "", 20)
    rows = scan_species.mean_rows([result("a"), has])
    means = {row["truth"]: row for row in rows if row["genome"] == "mean"}
    assert (means["kuo"]["species"], means["kuo"]["recall"]) == ("1 genomes", pytest.approx(3 / 50))
    assert means["all"]["species"] == "2 genomes"


def test_the_starts_of_one_data_set_are_a_truth_of_their_own():
    source = scan_species.DATA_SETS["hpylori"][0]
    starts = known(100), known(700, source=source), known(900, None, weight=0.5, source=source)
    pairs = scan_species.make_section(genome("hpylori", *starts)).pairs
    assert [part.position.tolist() for part in pairs["1907"]] == [[700, 900], [700, 900]]
    assert [part.position.tolist() for part in pairs["1907 genes"]] == [[700], [700, 900]]


def result(name: str, weight: str = "1.0", genus: str = "G", replicates: int = 20) -> scan_species.Result:
    """Two starts upstream of genes; the model finds both, ten and two letters off, the rule one."""
    truth = genome(name, known(100), known(15_000))
    methods = {
        "seqray": rank_calls([110, 15_002, 4000], ["+"] * 3, [3.0, 2.0, 1.0]),
        "no letters": rank_calls([15_020, 60], ["+", "+"], [2.0, 1.0]),
    }
    row = sheet_row(name, weight=weight) | {"genus": genus}
    return scan_species.measure_genome(row, truth, methods, "fold-1.safetensors", replicates)


def test_rows_of_a_genome():
    rows = {
        (row["method"], row["tolerance"], row["calls_per_kb"]): row
        for row in scan_species.genome_rows(result("g"))
        if row["truth"] == "genes"
    }
    assert len(rows) == 2 * 2 * 3
    ours, five = rows["seqray", 25, "1"], rows["seqray", 5, "1"]
    assert (ours["recall"], ours["precision"], ours["calls"]) == (1.0, pytest.approx(2 / 3), 3)
    assert (five["recall"], five["precision"]) == (0.5, pytest.approx(1 / 3))
    assert rows["no letters", 25, "1"]["recall"] == 0.5  # 60 is 40 letters off
    assert (ours["above"], five["above"]) == (0.5, 0.5)
    assert rows["no letters", 25, "1"]["above_high"] == 0
    assert (ours["model"], rows["no letters", 25, "1"]["model"]) == ("fold-1.safetensors", "")
    assert ours["starts"] == 2


def test_means_are_of_genomes_that_count_and_of_methods_that_all_have():
    first, second, poor = result("a"), result("b"), result("c", weight="0.2")
    recall = {key: values / 2 for key, values in second.recall.items() if key[0] == "seqray"}
    precision = {key: values for key, values in second.precision.items() if key[0] == "seqray"}
    second = replace(second, recall=recall, precision=precision)
    assert [one.counted for one in (first, second, poor)] == [True, True, False]
    archaeon = sheet_row("g", domain="archaea")
    assert not scan_species.measure_genome(archaeon, genome("g", known(100)), {}, "", 2).counted
    rows = list(scan_species.mean_rows([first, second, poor]))
    assert {row["method"] for row in rows} == {"seqray"}
    mean = next(row for row in rows if (row["truth"], row["tolerance"]) == ("genes", 25))
    assert mean["genome"] == "mean"
    assert mean["recall"] == pytest.approx((1.0 + 0.5) / 2)
    assert mean["starts"] == 4
    assert mean["species"] == "2 genomes"
    assert np.isnan(mean["above"])
    assert list(scan_species.mean_rows([poor])) == []


def test_the_strains_of_a_genus_count_as_one_in_the_mean_of_genera():
    strains = [result("a"), result("b")]
    other = result("c", genus="H")
    other = replace(other, recall={key: values / 4 for key, values in other.recall.items()})
    means = {
        row["genome"]: row["recall"]
        for row in scan_species.mean_rows([*strains, other])
        if (row["method"], row["truth"], row["tolerance"]) == ("seqray", "genes", 25)
    }
    assert means == pytest.approx({"mean": (1 + 1 + 0.25) / 3, "mean of genera": (1 + 0.25) / 2})


def test_the_whole_benchmark_without_models(tmp_path, capsys):
    write_fasta(tmp_path / "g.fa", **CONTIGS)
    good = ("G s", "G", "g.fa", "", "g.tsv", "1.0", "bacteria", "g", "")
    poor = ("H s", "H", "g.fa", "", "none.tsv", "0.0", "bacteria", "h", "")
    write_rows(tmp_path / "genomes.tsv", SHEET, good, poor)
    for name, weight in (("g", "1.00"), ("none", "0.00")):
        site = ("c2", "101", "+", "promoter", weight, "a", "", "0", "20", "")
        write_rows(tmp_path / f"{name}.tsv", SITES, site)
    out = tmp_path / "out.tsv"
    arguments = ["--genomes", str(tmp_path / "genomes.tsv"), "--methods", "no-letters", "--out", str(out)]
    assert scan_species.main([*arguments, "--replicates", "5"]) == 0
    text = out.read_text()
    assert "# H s: no start of use" in text
    rows = [line.split("\t") for line in text.splitlines() if line[0] != "#"]
    assert {row[0] for row in rows} == {"genome", "mean", "mean of genera", "g"}
    assert "g               no letters" in capsys.readouterr().out


def genus(name: str, size: int, *shared: int) -> Genus:
    return Genus(name, size, np.array(sorted(shared), dtype=np.uint64))


def test_genera_that_share_words_stay_together():
    genera = [genus("A", 10, *range(100)), genus("B", 0, 50, 999), genus("C", 30, *range(998, 1500))]
    # B shares one word of two with A, and the other with C; A and C share none.
    groups = train_folds.join_relatives(genera)
    assert [[one.name for one in group] for group in groups] == [["A", "B", "C"]]
    groups = train_folds.join_relatives(genera, share=0.5)
    assert [[one.name for one in group] for group in groups] == [["A"], ["B"], ["C"]]


def test_each_genus_is_held_out_once_and_the_commands_say_so(tmp_path, capsys, monkeypatch):
    shared = letters(2000)
    rows = ["species\tgroup\tgenome\tgenes\tsites\tweight"]
    texts = {"a": shared + letters(500), "b": letters(3000), "c": shared[:600], "d": letters(240)}
    for name, text in texts.items():
        (tmp_path / f"{name}.fa").write_text(f">1\n{text}\n")
        rows.append(f"{name} s\t{name}\t{name}.fa\t{'none' if name in 'cd' else 'predict'}\t{name}.tsv\t1")
    (tmp_path / "train.tsv").write_text("\n".join(rows) + "\n")
    ran = []
    monkeypatch.setattr(train_folds.subprocess, "run", lambda command, check: ran.append(command))
    out = tmp_path / "folds"
    out.mkdir()
    (out / "fold-2.safetensors").write_text("trained before")
    common = ["--sheet", str(tmp_path / "train.tsv"), "--config", "c.yaml", "--out", str(out)]
    assert train_folds.main([*common, "--folds", "2", "--run"]) == 0
    models = scan_species.read_models(out / "folds.tsv")
    assert Counter(Path(model).stem for model in models.values()) == {"fold-1": 2, "fold-2": 2}
    assert Path(models["a"]).stem == Path(models["c"]).stem == "fold-2"
    assert "d" not in models
    (command,) = ran  # the model of the other fold is there
    held_out = [second for first, second in pairwise(command) if first == "--hold-out"]
    assert held_out == ["b"]
    assert command[0] == sys.executable
    assert len(capsys.readouterr().out.splitlines()) >= 2
