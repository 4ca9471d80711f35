"""The train workflow run by Snakemake itself on a small made set: results, a second run, wrong settings."""

import shutil
from pathlib import Path

import pytest

from machine import read_table
from seqray.modelfile.file import load_model
from seqray.modelfile.header import read_card

ROOT = Path(__file__).parents[2] / "workflows" / "train"
SNAKEFILE = ROOT / "workflow" / "Snakefile"


def project(folder: Path) -> Path:
    for name in ("config", "data"):
        shutil.copytree(ROOT / ".test" / name, folder / name)
    return folder


@pytest.fixture(scope="module")
def finished(run, seqray_forks, tmp_path_factory) -> Path:
    folder = project(tmp_path_factory.mktemp("train"))
    done = run(folder, "--cores", "2", commands=seqray_forks.folder)
    assert done.returncode == 0, done.stderr
    return folder


def test_every_configuration_gives_a_model_with_a_card(finished):
    for name, width in (("tiny", 8), ("wide", 12)):
        run = finished / "results" / "made" / name / "seed-1"
        card = read_card(run / "calibrated.safetensors")
        assert (card.name, card.model.d_model) == (name, width)
        assert card.training["calibrated_on"]["examples"] == 60
        assert name in (run / "card.txt").read_text()
        load_model(run / "calibrated.safetensors")  # its self-test holds
        for page in ("evaluation.html", "explanations.html"):
            assert "</html>" in (run / page).read_text()


def test_all_are_measured_on_the_same_held_out_part(finished):
    rows = read_table(finished / "results" / "summary.tsv")
    assert [row["sample"] for row in rows] == ["made/tiny/seed-1", "made/wide/seed-1"]
    split = read_table(finished / "results" / "made" / "split.tsv")
    held_out = sum(row["split"] == "test" for row in split)
    assert {(row["split"], row["n"]) for row in rows} == {("test", str(held_out))}
    for row in rows:
        table = read_table(finished / "results" / row["sample"] / "evaluation.tsv")
        [mcc] = [
            r["value"] for r in table if (r["subset"], r["source"], r["metric"]) == ("all", "model", "mcc")
        ]
        assert row["mcc"] == mcc
    wide = finished / "results" / "made" / "wide" / "seed-1"
    assert (wide / "comparison.html").exists()
    assert not (wide.parents[1] / "tiny" / "seed-1" / "comparison.html").exists()  # it is the reference


def test_a_second_run_does_nothing(run, finished):
    done = run(finished, "--cores", "1")
    assert done.returncode == 0
    assert "Nothing to be done" in done.stderr


def test_one_report_shows_it_all(run, finished, tmp_path):
    page = tmp_path / "report.html"
    done = run(finished, "--cores", "1", "--report", str(page))
    assert done.returncode == 0, done.stderr
    text = page.read_text(encoding="utf-8")
    for words in ("Models trained on labeled sets", "Evaluation", "Comparison", "Explanations", "Models"):
        assert words in text


def test_a_changed_setting_trains_again(run, seqray_forks, finished, tmp_path):
    folder = tmp_path / "changed"
    shutil.copytree(finished, folder)
    config = folder / "config" / "tiny.yaml"
    config.write_text(config.read_text().replace("d_model: 8", "d_model: 4"))
    model = "results/made/tiny/seed-1/model.safetensors"
    done = run(folder, "--cores", "2", model, commands=seqray_forks.folder)
    assert done.returncode == 0, done.stderr
    assert read_card(folder / model).model.d_model == 4


@pytest.mark.parametrize(
    ("file", "old", "new", "complaint"),
    [
        ("config.yaml", "seeds: [1]", "seeds: []", "[] should be non-empty"),
        ("config.yaml", "seeds:", "seed:", "'seed' was unexpected"),
        ("sets.tsv", "set\ttable", "set\ttabel", "config/sets.tsv: line 2: set 'made': "),
        ("sets.tsv", "labelled", "none", "config/sets.tsv: line 2: set 'made': data/none.tsv: no such file"),
        ("sets.tsv", "held_out", "none", "line 2: set 'made': data/none.tsv: no such file"),
        ("config.yaml", "tiny.yaml", "none.yaml", "configs: 'tiny': config/none.yaml: no such file"),
    ],
)
def test_a_wrong_project_stops_before_any_work(run, tmp_path, file, old, new, complaint):
    folder = project(tmp_path / "wrong")
    path = folder / "config" / file
    path.write_text(path.read_text().replace(old, new))
    done = run(folder, "--cores", "1")
    assert done.returncode != 0
    assert complaint in done.stderr
    assert not (folder / "results").exists()


def test_the_linter_is_content(run, tmp_path):
    done = run(ROOT / ".test", "--lint", XDG_CACHE_HOME=str(tmp_path))
    assert done.returncode == 0, done.stderr + done.stdout
