"""A training on one device is alone, whatever the variables of a cluster say of other tasks."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from lightning.fabric.utilities.rank_zero import rank_zero_only

import seqray
from seqray.core.run_config import RunConfig
from seqray.training.trainer import is_main_process, make_trainer, quiet

TASKS = {
    "Slurm": {"SLURM_JOB_ID": "1", "SLURM_PROCID": "1", "SLURM_NTASKS": "2", "SLURM_LOCALID": "1"},
    "sbatch -n 2": {"SLURM_JOB_ID": "1", "SLURM_NTASKS": "2", "SLURM_JOB_NAME": "job"},
    "torchrun": {
        **{"RANK": "1", "WORLD_SIZE": "2", "LOCAL_RANK": "1", "GROUP_RANK": "0", "TORCHELASTIC_RUN_ID": "1"},
        **{"MASTER_ADDR": "localhost", "MASTER_PORT": "29999", "LOCAL_WORLD_SIZE": "2"},
    },
    "Kubeflow": {
        **{"KUBERNETES_PORT": "tcp://127.0.0.1:443", "RANK": "1", "WORLD_SIZE": "2"},
        **{"MASTER_ADDR": "localhost", "MASTER_PORT": "29999"},
    },
    "Open MPI": {"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2"},
    "LSF": {
        **{"LSB_JOBID": "1", "LSB_DJOB_RANKFILE": "hosts", "JSM_NAMESPACE_RANK": "1"},
        **{"JSM_NAMESPACE_SIZE": "2", "JSM_NAMESPACE_LOCAL_RANK": "1"},
    },
}
SETTINGS = ("model.d_model=8", "model.heads=2", "model.layers=1", "model.d_ff=8", "trainer.max_epochs=1")
FIT = """
import json, sys, seqray
from lightning.fabric.utilities.rank_zero import rank_zero_only

before = rank_zero_only.rank
X, y = json.load(sys.stdin)
seqray.SequenceClassifier(d_model=8, heads=2, layers=1, epochs=1, members=1).fit(X, y).predict(X)
assert rank_zero_only.rank == before == 1
"""


@pytest.fixture(scope="module")
def examples():
    rng = np.random.default_rng(1)
    sequences = ["".join(rng.choice(list("ACGT"), 24)) for _ in range(60)]
    return sequences, ["no", "yes"] * 30


def run(words, variables, given=None):
    numbered = ("SLURM_", "RANK", "LOCAL_", "WORLD_")
    clean = {name: value for name, value in os.environ.items() if not name.startswith(numbered)}
    command = [sys.executable, *words]
    done = subprocess.run(
        command, env=clean | variables, input=given, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr[-2000:]


def is_main() -> bool:
    """What Lightning takes this process for."""
    return getattr(rank_zero_only, "rank", None) == 0


@pytest.mark.parametrize("task", list(TASKS))
def test_a_training_on_one_device_is_alone_and_one_on_two_is_not(tmp_path, monkeypatch, task):
    for name, value in TASKS[task].items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(rank_zero_only, "rank", 1)  # which Lightning takes from them when it is imported
    config = RunConfig(trainer={"accelerator": "cpu"})
    with quiet(config):
        trainer = make_trainer(config, tmp_path, progress=False)
        assert (trainer.world_size, trainer.global_rank, is_main()) == (1, 0, True)
    assert not is_main()
    assert is_main_process(config)
    assert not is_main_process(RunConfig(trainer={"accelerator": "cpu", "devices": 2}))
    assert not is_main_process(RunConfig(trainer={"accelerator": "cpu", "num_nodes": 2}))


@pytest.mark.parametrize(("variables", "waits"), [({}, False), ({"SLURM_STEP_NUM_TASKS": "2"}, True)])
def test_only_tasks_of_srun_are_the_processes_of_a_training_on_two_devices(
    tmp_path, monkeypatch, variables, waits
):
    """A script of sbatch -n 2 is one task, which begins the second process itself."""
    batch = TASKS["sbatch -n 2"] | {"SLURM_PROCID": "0", "SLURM_LOCALID": "0", "SLURM_NODEID": "0"}
    for name, value in (batch | {"SLURM_NTASKS_PER_NODE": "2"} | variables).items():
        monkeypatch.setenv(name, value)
    trainer = make_trainer(RunConfig(trainer={"accelerator": "cpu", "devices": 2}), tmp_path, progress=False)
    environment = trainer._accelerator_connector.cluster_environment
    assert environment.creates_processes_externally == waits


@pytest.mark.parametrize("variables", [TASKS["Slurm"], {"RANK": "genus", "SLURM_PROCID": ""}])
def test_a_training_of_one_task_among_others_writes_its_model(tmp_path, examples, variables):
    table, out = tmp_path / "table.tsv", tmp_path / "m.safetensors"
    rows = ["\t".join(row) for row in zip(*examples, strict=True)]
    table.write_text("\n".join(["sequence\tlabel", *rows]) + "\n")
    words = ["train", "--train", str(table), "--members", "1", "--threads", "1", "--out", str(out)]
    words += [word for setting in SETTINGS for word in ("--set", setting)]
    run(["-m", "seqray", *words], variables)
    assert seqray.load_model(out).card.classes == ("no", "yes")
    assert list((tmp_path / "m.safetensors.training/member-1/log").rglob("metrics.csv"))  # of the first rank


def test_a_fit_of_one_task_among_others_leaves_the_rank_of_its_process(examples):
    run(["-c", FIT], TASKS["torchrun"], json.dumps(examples))
