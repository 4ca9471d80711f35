"""Training on a backbone: only what shall be trained changes, and runs resume as ever."""

import shutil

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from seqray.core.errors import ConfigError, InputError
from seqray.core.records import LabeledSequence
from seqray.core.run_config import RunConfig
from seqray.core.serialization import from_mapping
from seqray.modelfile.file import load_model
from seqray.modelfile.initial_weights import InitialWeights
from seqray.training import fit
from seqray.training.members import RunOptions
from seqray.training.module import Classifier


def task(count, length=40, seed=0):
    """Sequences of unequal lengths; those of class ``promoter`` are rich in A."""
    rng = np.random.default_rng(seed)
    examples = []
    for i in range(count):
        shares = [0.55, 0.15, 0.15, 0.15] if i % 2 else [0.25] * 4
        letters = "".join(rng.choice(list("ACGT"), length - int(rng.integers(0, 8)), p=shares))
        examples.append(LabeledSequence(letters, ("background", "promoter")[i % 2], f"s{i}"))
    return examples


@pytest.fixture
def settings(backbones):
    def make(tuning, **sections):
        torch.set_num_threads(1)
        backbone = {"path": str(backbones["bpe"]), "tuning": tuning} | sections.pop("backbone", {})
        model = {"kind": "backbone", "max_length": 40, "dropout": 0.0, "backbone": backbone}
        model |= sections.pop("model", {})
        return from_mapping(
            RunConfig,
            {
                "model": model,
                "data": {"window": 40},
                "optimizer": {"batch_size": 16, "learning_rate": 1e-2, "ema": 0.5},
                "trainer": {"max_epochs": 3, "accelerator": "cpu"},
                **sections,
            },
        )

    return make


@pytest.mark.parametrize("tuning", ["frozen", "lora", "full"])
def test_what_is_not_trained_stays_bit_for_bit(tuning, settings, backbones, tmp_path):
    result = fit.train(settings(tuning), task(60), tmp_path / "m.safetensors", RunOptions(tmp_path / "w"))
    losses = [row["train_loss"] for row in result.history[0]]
    assert losses[-1] < losses[0]
    stored = load_file(backbones["bpe"] / "model.safetensors")
    encoder = load_model(tmp_path / "m.safetensors").networks[0].encoder
    same = [
        torch.equal(value, stored[name.replace(".base_layer", "")])
        for name, value in encoder.named_parameters()
        if "lora_" not in name
    ]
    assert len(same) == 37
    assert (not any(same)) if tuning == "full" else all(same)
    checkpoint = torch.load(tmp_path / "w" / "member-1" / "last.ckpt", weights_only=True)
    saved = {n for n in checkpoint["state_dict"] if n.startswith("network.")}
    assert saved == {f"network.{name}" for name in result.networks[0].state_dict()}
    assert result.card.training["parameters"] == sum(p.numel() for p in result.networks[0].parameters())
    assert "transformers" in result.card.training["versions"]


def test_an_interrupted_run_resumes_to_the_same_model(settings, tmp_path, monkeypatch, backbones):
    more = {"members": 2, "augment": {"shift": 2, "reverse_complement": 0.5}}
    config, data = settings("lora", **more), task(60)
    whole = fit.train(config, data, None, RunOptions(tmp_path / "whole"))
    original, count = Classifier.training_step, [0]

    def step(self, batch, number):
        count[0] += 1
        if count[0] in (6, 17):  # in the second epoch, and in the second member
            raise KeyboardInterrupt
        return original(self, batch, number)

    monkeypatch.setattr(Classifier, "training_step", step)
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            fit.train(config, data, None, RunOptions(tmp_path / "parts"))
    shutil.copytree(backbones["bpe"], tmp_path / "elsewhere")  # the same backbone, so the same run
    config = settings("lora", backbone={"path": str(tmp_path / "elsewhere")}, **more)
    resumed = fit.train(config, data, None, RunOptions(tmp_path / "parts"))
    assert resumed.history == whole.history
    for a, b in zip(resumed.networks, whole.networks, strict=True):
        other = b.state_dict()
        assert all(torch.equal(value, other[name]) for name, value in a.state_dict().items())


def test_a_run_on_another_backbone_does_not_resume(settings, tmp_path, backbones):
    fit.train(settings("frozen"), task(40), None, RunOptions(tmp_path))
    other = settings("frozen", backbone={"path": str(backbones["kmer"])})
    with pytest.raises(InputError, match="holds a training run with other settings"):
        fit.train(other, task(40), None, RunOptions(tmp_path))


def test_settings_that_mean_nothing_are_refused(settings, tmp_path):
    for sections, error in (
        ({"augment": {"mask": 0.1}}, r"'augment\.mask' requires seqray's own tokenizers"),
        ({"backbone": {"rank": 4}}, r"'model\.backbone\.rank' requires 'tuning: lora'"),
    ):
        with pytest.raises(ConfigError, match=error):
            settings("frozen", **sections)
    for setting, value in (("d_model", 32), ("tokenizer", "kmer"), ("stem", {}), ("contexts", ["a"])):
        with pytest.raises(
            ConfigError, match=rf"'model\.{setting}' is settled by the backbone; leave it out"
        ):
            from_mapping(RunConfig, {"model": {"kind": "backbone", setting: value}})
    with pytest.raises(ConfigError, match=r"'model\.backbone' requires 'model\.kind: backbone'"):
        from_mapping(RunConfig, {"model": {"backbone": {"path": "x"}}})
    config = settings("frozen")
    start = InitialWeights(config.model, {}, {}, "")
    with pytest.raises(ConfigError, match="begins with weights of its own"):
        fit.train(config, task(40), None, RunOptions(tmp_path), start=start)


def test_a_window_with_too_many_tokens_names_its_record(settings, tmp_path):
    config = settings("frozen", model={"max_length": 200}, data={"window": 200})
    data = [*task(40), LabeledSequence("N" * 150, "promoter", "long")]
    with pytest.raises(InputError, match="record 'long': makes 152 tokens, the backbone reads at most 64"):
        fit.train(config, data, None, RunOptions(tmp_path))
