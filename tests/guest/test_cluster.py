"""A training on one device is alone, whatever the variables of a cluster say of other tasks."""

import os
import subprocess
import sys

import pytest
from lightning.fabric.utilities.rank_zero import rank_zero_only

import seqray
from commands import repeated
from seqray.core.run_config import RunConfig
from seqray.training.trainer import is_main_process, make_trainer, quiet
from tables import letters, tsv, write

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
TRAIN_AND_FIT = """
import csv, os, sys
import seqray
from seqray.cli.main import main

rank, words = int(os.environ["SLURM_PROCID"] or 0), sys.argv[1:]
assert main(words) == 0
from lightning.fabric.utilities.rank_zero import rank_zero_only
assert rank_zero_only.rank == rank
X, y = zip(*csv.reader(open(words[2]), delimiter="\\t"))
seqray.SequenceClassifier(d_model=8, heads=2, layers=1, epochs=1, members=1).fit(X[1:], y[1:]).predict(X[1:])
assert rank_zero_only.rank == rank
"""


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
        trainer = make_trainer(config, tmp_path)
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
    trainer = make_trainer(RunConfig(trainer={"accelerator": "cpu", "devices": 2}), tmp_path)
    environment = trainer._accelerator_connector.cluster_environment
    assert environment.creates_processes_externally == waits


@pytest.mark.parametrize("variables", [TASKS["Slurm"], {"RANK": "genus", "SLURM_PROCID": ""}])
def test_a_training_of_one_task_among_others_writes_its_model_and_leaves_the_rank(tmp_path, variables):
    """The verb and the estimator, each in the process of a task."""
    table, out = tmp_path / "table.tsv", tmp_path / "m.safetensors"
    rows = [(letters(24, i), ("no", "yes")[i % 2]) for i in range(60)]
    write(table, tsv("sequence label", rows))
    words = ["train", "--train", str(table), "--members", "1", "--threads", "1", "--out", str(out)]
    words += repeated("--set", SETTINGS)
    numbered = ("SLURM_", "RANK", "LOCAL_", "WORLD_")
    clean = {name: value for name, value in os.environ.items() if not name.startswith(numbered)}
    command = [sys.executable, "-c", TRAIN_AND_FIT, *words]
    done = subprocess.run(command, env=clean | variables, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    assert seqray.load_model(out).card.classes == ("no", "yes")
    assert list((tmp_path / "m.safetensors.training/member-1/log").rglob("metrics.csv"))  # of the first rank
