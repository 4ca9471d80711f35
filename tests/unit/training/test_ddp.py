"""Two processes on one machine take the steps of one, and measure the whole validation part."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from seqray.core.records import LabeledSequence
from seqray.core.serialization import from_mapping, to_mapping
from seqray.modelfile.file import load_model
from seqray.training import fit
from seqray.training.members import RunOptions

# Run by both processes: the trainer starts the second one with the same command.
PROGRAM = """
import json, sys
from pathlib import Path
from seqray.core.run_config import RunConfig
from seqray.core.serialization import from_mapping
from seqray.core.records import LabeledSequence
from seqray.training import fit; from seqray.training.members import RunOptions
from seqray.training.trainer import is_main_process

if __name__ == "__main__":
    folder = Path(sys.argv[1])
    job = json.loads((folder / "job.json").read_text())
    data = [LabeledSequence(*row) for row in job["data"]]
    config = from_mapping(RunConfig, job["config"])
    run = RunOptions(folder / "two", threads=1)
    result = fit.train(config, data, folder / "two.safetensors", run)
    print(is_main_process(config), len(result.history[0]), flush=True)
"""


def run_in_two_processes(folder: Path, config, data: list[LabeledSequence]) -> list[str]:
    rows = [[e.sequence, e.label, e.id, e.group, e.split] for e in data]
    (folder / "job.json").write_text(json.dumps({"config": to_mapping(config), "data": rows}))
    (folder / "program.py").write_text(PROGRAM)
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("SLURM_", "LOCAL_RANK", "WORLD_SIZE"))}
    process = subprocess.Popen(
        [sys.executable, str(folder / "program.py"), str(folder)],
        env=clean | {"OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        out, err = process.communicate(timeout=600)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)  # the second process too
        raise
    assert process.returncode == 0, err
    return sorted(out.split("\n"))


def test_two_processes_take_the_steps_of_one_with_twice_the_batch(motif_task, make_config, tmp_path):
    """The mean of the gradients of two half batches is that of the whole: the models agree to rounding.

    64 training sequences divide evenly; two members show that a second run in the same processes works; the
    validation part is measured in full, half of it by each process.
    """
    marked = motif_task(64 + 300)
    data = [
        LabeledSequence(e.sequence, e.label, e.id, None, "train" if i < 64 else "validation")
        for i, e in enumerate(marked)
    ]
    one = make_config(model={"dropout": 0.0}, optimizer={"batch_size": 16}, members=2)
    settings = to_mapping(one)
    settings["optimizer"]["batch_size"] = 8
    settings["trainer"] |= {"devices": 2, "strategy": "ddp"}
    two = from_mapping(type(one), settings)
    assert run_in_two_processes(tmp_path, two, data) == ["", "False 2", "True 2"]

    single = fit.train(one, data, None, RunOptions(tmp_path / "one", threads=1))
    double = load_model(tmp_path / "two.safetensors")
    tokens = torch.from_numpy(np.stack([double.tokenizer.encode(e.sequence) for e in marked[:200]]))
    # Not the weights themselves: a key's bias changes no output, and AdamW blows its rounding errors up.
    for a, b in zip(single.networks, double.networks, strict=True):
        with torch.inference_mode():
            assert torch.allclose(a(tokens).logits, b(tokens).logits, atol=1e-4)
    assert double.card.training["validation"]["loss"] == pytest.approx(single.validation["loss"], rel=1e-4)
    for number, history in enumerate(single.history, start=1):
        mark = json.loads((tmp_path / "two" / f"member-{number}" / "finished.json").read_text())
        for row, other in zip(history, mark["history"], strict=True):
            assert row == pytest.approx(other, rel=1e-4)
