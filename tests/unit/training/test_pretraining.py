"""Pre-training on sequences whose hidden letters can be known, and training that begins with it."""

import random
from dataclasses import replace

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from seqray.core.errors import ConfigError, InputError, ModelFileError
from seqray.core.model_config import LocatorConfig, ModelConfig, StemConfig
from seqray.core.records import LabeledSequence
from seqray.core.run_config import OptimizerConfig, RunConfig
from seqray.modelfile.file import build_network
from seqray.modelfile.initial_weights import (
    InitialWeights,
    apply_initial_weights,
    check_initial_weights,
    load_initial_weights,
    load_pretrained,
    save_pretrained,
)
from seqray.training.fit import train
from seqray.training.members import RunOptions
from seqray.training.pretraining import pretrain, split_windows


def settings(**model):
    shape = {"d_model": 32, "layers": 1, "heads": 2, "max_length": 24, "dropout": 0.0, **model}
    return RunConfig(
        model=ModelConfig(**shape),
        data=replace(RunConfig().data, window=24),
        optimizer=OptimizerConfig(learning_rate=3e-3, batch_size=32),
        trainer={"max_epochs": 6, "accelerator": "cpu"},
    )


def repeats(count, rng):
    """Each a word of six letters over and over: any hidden letter stands elsewhere, too."""
    return ["".join(rng.choices("ACGT", k=6)) * 4 for _ in range(count)]


@pytest.mark.parametrize("stem", [None, StemConfig(kernels=(13,), stride=3)], ids=["letters", "stem"])
def test_it_learns_what_repeats_tell_and_the_floor_does_not(tmp_path, stem):
    config = settings(stem=stem)
    config = replace(config, trainer=config.trainer | {"max_epochs": 15})
    result = pretrain(config, repeats(600, random.Random(0)), None, RunOptions(tmp_path, threads=1))
    facts = result.facts
    assert facts["floor_loss"] == pytest.approx(np.log(4), abs=0.02)  # four letters, equally often
    assert facts["floor_accuracy"] == pytest.approx(0.25, abs=0.05)
    assert facts["accuracy"] > 0.4
    assert facts["loss"] < 1.3


def test_an_interrupted_run_goes_on_and_ends_the_same(tmp_path):
    sequences = repeats(80, random.Random(1))
    whole = pretrain(settings(), sequences, None, RunOptions(tmp_path / "a", threads=1))
    short = settings()
    again = pretrain(short, sequences, None, RunOptions(tmp_path / "a", threads=1))
    assert again.facts == whole.facts
    with pytest.raises(InputError, match="other data"):
        pretrain(short, sequences[1:], None, RunOptions(tmp_path / "a", threads=1))


def test_weights_survive_the_file_and_the_head_begins_anew(tmp_path):
    torch.manual_seed(0)
    config = ModelConfig(
        d_model=16, layers=2, heads=2, contexts=("a",), position_gain="context", position_matrix="context"
    )
    network, other = build_network(config), build_network(replace(config, contexts=("a", "b"), classes=3))
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.add_(torch.randn_like(parameter))
    before = {name: value.clone() for name, value in other.state_dict().items()}
    path = tmp_path / "weights.safetensors"
    save_pretrained(path, network, {"loss": 1.0})
    start = load_pretrained(path)
    assert start.facts == {"loss": 1.0}
    check_initial_weights(start, other.config)
    apply_initial_weights(other, start)
    for name, value in other.state_dict().items():
        own = name.startswith(("head.", "contexts", "gain.", "matrix."))
        assert torch.equal(value, before[name] if own else network.state_dict()[name]), name


def test_a_locator_begins_with_weights_of_one_whose_scores_are_corrected():
    def shape(*correction: float) -> ModelConfig:
        genes = LocatorConfig(tracks=("known", "to-start"), no_gene_ahead=correction)
        return ModelConfig(
            kind="locator", classes=1, d_model=8, layers=1, heads=2, positions="rotary", locator=genes
        )

    given, network = build_network(shape(-1.5)), build_network(shape())
    start = InitialWeights(shape(-1.5), given.state_dict(), {}, "")
    check_initial_weights(start, network.config)
    apply_initial_weights(network, start)
    assert all(torch.equal(value, network.state_dict()[name]) for name, value in start.tensors.items())


@pytest.mark.parametrize("theirs", [{}, {"ends": 3}, {"ends": 5}, {"ends": 3, "words": 3, "helices": True}])
@pytest.mark.parametrize("ours", [{}, {"ends": 3, "words": 2}, {"ends": 3, "helices": True}])
def test_ends_words_and_helices_are_taken_over_where_both_have_them(tmp_path, theirs, ours):
    config = ModelConfig(kind="alignment", alphabet="rna", d_model=8, layers=1, heads=2)
    given, network = (build_network(replace(config, **more)) for more in (theirs, ours))
    with torch.no_grad():
        for parameter in given.parameters():
            parameter.add_(torch.randn_like(parameter))
    before = {name: value.clone() for name, value in network.state_dict().items()}
    save_pretrained(tmp_path / "w.safetensors", given, {})
    start = load_initial_weights(tmp_path / "w.safetensors")
    check_initial_weights(start, network.config)
    apply_initial_weights(network, start)
    had = given.state_dict()
    for name, value in network.state_dict().items():
        own = name.startswith("head.") or name not in had or had[name].shape != value.shape
        assert torch.equal(value, before[name] if own else had[name]), name
    assert ("ends.table" in before) == bool(ours)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"d_model": 32}, "'model.d_model' 16, the settings 32"),
        ({"stem": StemConfig()}, "'model.stem' None"),
        ({"positions": "rotary"}, "'model.positions' sinusoidal"),
        ({"kv_heads": 1}, "'model.kv_heads' None, the settings 1"),
    ],
)
def test_weights_of_another_shape_are_refused(tmp_path, change, message):
    config = ModelConfig(d_model=16, layers=1, heads=2)
    path = tmp_path / "weights.safetensors"
    save_pretrained(path, build_network(config), {})
    with pytest.raises(ConfigError, match=message):
        check_initial_weights(load_initial_weights(path), replace(config, **change))


def test_a_file_of_another_kind_is_refused(tmp_path):
    path = tmp_path / "weights.safetensors"
    with pytest.raises(ModelFileError, match="does not exist"):
        load_pretrained(path)
    path.write_bytes(b"nothing")
    with pytest.raises(ModelFileError, match="can't be read"):
        load_pretrained(path)


@pytest.mark.parametrize(
    "header",
    ["[]", '{"format": "x"}', '{"model": {"layers": 1000000}, "facts": {}}', '{"model": {}, "facts": 3}'],
)
def test_a_damaged_header_is_refused(tmp_path, header):
    path = tmp_path / "weights.safetensors"
    save_file({"cls": torch.zeros(2)}, path, {"seqray_pretrained": header})
    with pytest.raises(ModelFileError, match="has a damaged header"):
        load_pretrained(path)


def test_weights_of_other_settings_than_they_claim_are_refused(tmp_path):
    path, config = tmp_path / "weights.safetensors", ModelConfig(d_model=16, layers=1, heads=2)
    save_pretrained(path, build_network(config), {})
    wider = replace(config, d_model=32)
    claimed = replace(load_initial_weights(path), config=wider)
    with pytest.raises(ModelFileError, match="don't fit the settings beside them"):
        apply_initial_weights(build_network(wider), claimed)


def test_training_begins_with_the_weights(tmp_path):
    """With a learning rate of next to nothing, they are what it ends with, too."""
    torch.manual_seed(1)
    config = settings()
    network = build_network(config.model)
    path = tmp_path / "weights.safetensors"
    save_pretrained(path, network, {})
    rng = random.Random(3)
    data = [
        LabeledSequence("".join(rng.choices(letters, k=24)), label, f"{label}{i}")
        for label, letters in (("promoter", "AACGT"), ("background", "ACGGT"))
        for i in range(12)
    ]
    slow = replace(
        config, optimizer=replace(config.optimizer, learning_rate=1e-12), trainer={"max_epochs": 1}
    )
    result = train(
        slow, data, None, RunOptions(tmp_path / "run", threads=1), start=load_initial_weights(path)
    )
    torch.testing.assert_close(result.networks[0].blocks.state_dict(), network.blocks.state_dict())
    with pytest.raises(InputError, match="other start"):
        train(slow, data, None, RunOptions(tmp_path / "run", threads=1))


def test_windows_share_no_letter_and_a_short_rest_is_left_out():
    assert split_windows("ACGTACGTAC", 4) == ["ACGT", "ACGT", "AC"]
    assert split_windows("ACGTACGTA", 5) == ["ACGTA", "CGTA"]
    assert split_windows("ACGTACGTA", 8) == ["ACGTACGT"]  # the last is less than a quarter of a window
    assert split_windows("ACG", 8) == ["ACG"]


def test_windows_without_a_known_letter_are_left_out(tmp_path):
    rng = random.Random(3)
    known = ["".join(rng.choices("ACGT", k=24)) for _ in range(20)]
    short = replace(settings(), trainer={"max_epochs": 1, "accelerator": "cpu"})
    result = pretrain(short, [*known, "N" * 24], None, RunOptions(tmp_path))
    assert result.facts["examples"] == 20
    assert result.facts["letters"] == 480
