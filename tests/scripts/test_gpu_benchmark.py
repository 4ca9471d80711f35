"""``benchmarks/gpu.py``, with the CPU in place of a GPU."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import torch

import gpu


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
