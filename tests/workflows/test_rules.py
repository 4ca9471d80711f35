"""The single rules of ``workflows/rules``: plans that Snakemake accepts, alone, taken over and changed."""

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from seqray.cli.main import VERBS, parser_of
from tables import letters

RULES = Path(__file__).parents[2] / "workflows" / "rules"
FILES = sorted(RULES.glob("*.smk"))
INPUTS = (
    *("sequences/a.fa", "positives/a.fa", "labelled/a.tsv", "splits/a.tsv", "splits/a.proof.tsv"),
    *("configs/a.yaml", "models/a.safetensors", "held_out/a.tsv", "calls/a.gff3", "calls/a.tsv"),
    *(f"shards/a/{number}-of-4.shard" for number in range(1, 5)),
)


@pytest.fixture
def dry_run(snakemake) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Plan targets by a Snakefile of this text."""

    def run(folder: Path, snakefile: str, *targets: str) -> subprocess.CompletedProcess[str]:
        (folder / "Snakefile").write_text(snakefile)
        words = ("--dry-run", "--cores", "1", "--printshellcmds", *targets)
        return snakemake(folder / "Snakefile", folder, *words)

    return run


def outputs_of(text: str) -> list[str]:
    block = re.search(r"^    output:\n(.*?)^    log:", text, flags=re.MULTILINE | re.DOTALL)[1]
    files = re.findall(r'"([^"]+)"', block)
    return [re.sub(r"\{name\}", "a", file).format(number=1, total=4) for file in files]


def test_there_is_a_rule_for_every_verb_that_makes_files():
    verbs = {re.search(r'"seqray (\w+)', path.read_text())[1] for path in FILES}
    assert verbs >= {
        "predict",
        "scan",
        "gather",
        "explain",
        "audit",
        "split",
        "train",
        "calibrate",
        "evaluate",
    }
    assert verbs <= set(VERBS)
    without = re.search("no rules\\s+for (.*?)\\.", (RULES / "README.md").read_text(), flags=re.DOTALL)[1]
    assert set(re.findall("`(\\w+)`", without)) == set(VERBS) - verbs


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_rule_names_options_that_its_verb_has(path):
    command = "".join(
        re.findall(r'^        "(.*)"$', path.read_text().partition("    shell:\n")[2], flags=re.M)
    )
    verb = re.match(r"seqray (\w+)", command)[1]
    known = {option for action in parser_of(verb)._actions for option in action.option_strings}
    assert set(re.findall(r"--[a-z-]+", command)) <= known


def test_all_rules_plan_their_outputs(dry_run, tmp_path):
    for name in INPUTS:
        (tmp_path / name).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / name).touch()
    includes = "\n".join(f"include: {str(path)!r}" for path in FILES)
    targets = [output for path in FILES for output in outputs_of(path.read_text())]
    done = dry_run(tmp_path, includes, "--forceall", *targets)
    assert done.returncode == 0, done.stdout + done.stderr
    planned = set(re.findall(r"^rule (\w+):", done.stdout, flags=re.MULTILINE))
    assert planned == {f"seqray_{path.stem}" for path in FILES}


CHANGED = """
include: {path!r}

use rule seqray_scan as promoters with:
    input: sequences="genomes/{{strain}}.fna"
    output: gff3="promoters/{{strain}}.gff3", tsv="promoters/{{strain}}.tsv"
    log: "logs/promoters/{{strain}}.log"
    benchmark: "benchmarks/promoters/{{strain}}.tsv"
    params: model="bacteria-genome", extra="--per-kb 2"
"""


def test_a_rule_can_be_taken_over_and_changed(snakemake, seqray_forks, tmp_path):
    """Run, for the environment of a rule is looked for once its job has ended."""
    (tmp_path / "genomes").mkdir()
    (tmp_path / "genomes" / "k12.fna").write_text(f">one\n{letters(900)}\n")
    (tmp_path / "Snakefile").write_text(CHANGED.format(path=str(RULES / "scan.smk")))
    words = ("--cores", "1", "--printshellcmds", "promoters/k12.gff3")
    done = snakemake(tmp_path / "Snakefile", tmp_path, *words, commands=seqray_forks.folder)
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    assert "seqray scan genomes/k12.fna --model bacteria-genome --per-kb 2" in said
    assert "\tpromoter\t" in (tmp_path / "promoters" / "k12.gff3").read_text()
