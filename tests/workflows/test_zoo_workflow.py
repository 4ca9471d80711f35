"""The workflow that trains the zoo: its plan, from a checkout whose path has a space."""

import shutil
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_a_checkout_with_a_space_in_its_path_stays_one_word(snakemake, tmp_path):
    checkout = tmp_path / "my checkout"
    for name in ("workflows/zoo", "workflows/rules", "configs"):
        shutil.copytree(ROOT / name, checkout / name)
    figures = checkout / "benchmarks/results/ecoli-promoter.card.json"
    figures.parent.mkdir(parents=True)
    figures.write_text("{}")
    done = snakemake(
        checkout / "workflows/zoo/workflow/Snakefile",
        checkout / "workflows/zoo",
        *("--cores", "1", "--dry-run", "--printshellcmds", "--"),
        f"{checkout}/src/seqray/zoo_models/ecoli-promoter.safetensors",
        f"{checkout}/src/seqray/zoo_models/bacteria-promoter-fast.safetensors",
        f"{checkout}/src/seqray/zoo_models/ecoli-genome.safetensors",
        SEQRAY_DATA=str(tmp_path),
    )
    assert done.returncode == 0, done.stderr
    command = f"--work-dir '{checkout}/runs/ecoli-promoter' --metrics '{figures}' --threads"
    told = " ".join((done.stdout + done.stderr).split())
    assert command in told
    teacher = f"{checkout}/src/seqray/zoo_models/bacteria-promoter.safetensors"
    assert f"--work-dir '{checkout}/runs/bacteria-promoter-fast' --teacher '{teacher}' --threads" in told
    plain, shipped = (
        f"{checkout}/runs/models/ecoli-promoter",
        f"{checkout}/src/seqray/zoo_models/ecoli-promoter",
    )
    assert f"seqray prefilter '{plain}.safetensors' {tmp_path}/ecoli_genome/GCF_" in told
    taught = f"{checkout}/runs/prefilters"
    assert f"--windows 600000 --threads 1 --out '{taught}/ecoli-promoter.safetensors'" in told
    assert f"seqray prefilter '{taught}/ecoli-promoter.safetensors' {tmp_path}/ecoli_genome/GCF_" in told
    assert f"--measure-only --windows 600000 --threads 1 --out '{shipped}.safetensors'" in told
    fast = "--lost 0.005 --threads 1 --out"
    assert f"--windows 2000000 {fast} '{taught}/bacteria-promoter-fast.safetensors'" in told
    assert f"--measure-only --windows 1500000 {fast} '{teacher[: -len('.safetensors')]}-fast" in told
    fold = f"{checkout}/runs/folds/bacteria-genome/fold-1.safetensors"
    assert f"--sheet '{checkout}/runs/data/genomes/train.tsv' --fold '{fold}' --fold" in told
    start = f"{checkout}/src/seqray/zoo_models/bacteria-genome.safetensors"
    assert f"--sheet '{checkout}/runs/data/genomes/enterics.tsv' --init '{start}' --threads" in told
