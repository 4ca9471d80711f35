"""Model files on a backbone: head and adapters, and the checksums of what they stand on."""

import shutil

import numpy as np
import pytest
import torch
from safetensors import safe_open

from seqray.api.verbs import predict
from seqray.core.errors import ConfigError
from seqray.inference.engines import with_engine
from seqray.inference.onnx import export_onnx
from seqray.modelfile.file import load_model, save_model

CODES = np.random.default_rng(0).integers(0, 4, (6, 40)).astype(np.uint8)


@pytest.fixture
def moved(backbones, on_backbone, tmp_path, monkeypatch):
    """A model file whose backbone has since moved from ``before`` to ``after``."""
    monkeypatch.delenv("SEQRAY_BACKBONE", raising=False)
    shutil.copytree(backbones["bpe"], tmp_path / "before")
    model = on_backbone("bpe", "lora", path=str(tmp_path / "before"))
    save_model(tmp_path / "m.safetensors", model.networks, model.card)
    (tmp_path / "before").rename(tmp_path / "after")
    return tmp_path / "m.safetensors", tmp_path / "after"


@pytest.mark.parametrize(("kind", "tuning"), [("esm", "frozen"), ("kmer", "lora"), ("bpe", "full")])
def test_a_file_gives_the_model_that_was_saved(kind, tuning, on_backbone, tmp_path):
    model, path = on_backbone(kind, tuning), tmp_path / "m.safetensors"
    card = save_model(path, model.networks, model.card)
    state = torch.get_rng_state()
    loaded = load_model(path)
    assert torch.equal(torch.get_rng_state(), state)
    assert loaded.card == card
    assert len(card.self_test["sequences"]) == 4
    tokens = model.tokenizer.encode_codes(CODES)
    assert np.array_equal(loaded.logits(tokens), model.logits(tokens))
    with safe_open(path, "pt") as file:
        assert set(file.keys()) == {f"member.0.{name}" for name in model.networks[0].state_dict()}
    save_model(tmp_path / "again.safetensors", loaded.networks, card)
    assert (tmp_path / "again.safetensors").read_bytes() == path.read_bytes()


def test_a_directory_that_moved_is_named(moved, monkeypatch):
    path, place = moved
    with pytest.raises(
        ConfigError, match=r"before: the directory of the backbone does not exist; name .* by --back"
    ):
        load_model(path)
    loaded = load_model(path, place)
    assert loaded.card.model.backbone.path == str(place)
    assert len(predict(loaded, "ACGTACGT")) == 1
    monkeypatch.setenv("SEQRAY_BACKBONE", str(place))
    assert len(predict(path, "ACGTACGT")) == 1
    assert load_model(path, place).sha256 == loaded.sha256


def test_a_model_without_a_backbone_takes_no_directory(tiny_model_file, backbones):
    with pytest.raises(ConfigError, match="model 'tiny' has no backbone"):
        load_model(tiny_model_file, backbones["esm"])


def test_other_engines_have_no_graph(on_backbone, tmp_path):
    model = on_backbone("bpe")
    for use in (lambda: export_onnx(model, tmp_path / "m.onnx"), lambda: with_engine(model, "onnx")):
        with pytest.raises(ConfigError, match="model 'bpe' uses a backbone and cannot be converted to ONNX"):
            use()
    assert not (tmp_path / "m.onnx").exists()
