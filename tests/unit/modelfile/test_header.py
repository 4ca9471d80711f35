"""Finding models: shipped names, paths, and a hint for a slip of the pen."""

from dataclasses import replace

import pytest
import torch

from seqray.core.card import Card
from seqray.core.errors import ModelFileError
from seqray.core.model_config import ModelConfig
from seqray.modelfile import header
from seqray.modelfile.file import load_model, save_model
from seqray.modelfile.networks import build_model


@pytest.fixture
def shelf(tmp_path, monkeypatch):
    """A zoo of two models."""
    folder = tmp_path / "zoo"
    folder.mkdir()
    config = ModelConfig(d_model=8, heads=2, layers=1, max_length=16)
    torch.manual_seed(0)
    for name in ("yeast-promoter", "ecoli-promoter"):
        card = Card(
            name=name, classes=("background", "promoter"), positive="promoter", window=9, model=config
        )
        save_model(folder / f"{name}.safetensors", [build_model(config)], card)
    (folder / "README.md").write_text("not a model")
    monkeypatch.setattr(header, "FOLDER", folder)
    monkeypatch.chdir(tmp_path)
    return folder


def test_a_name_and_its_path_are_the_same_model(shelf):
    by_name = load_model("ecoli-promoter")
    by_path = load_model(shelf / "ecoli-promoter.safetensors")
    assert by_name.card.name == "ecoli-promoter"
    assert by_name.sha256 == by_path.sha256


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [
        ("ecoli-promotor", "did you mean 'ecoli-promoter'?"),
        ("zzz", "shipped are ecoli-promoter, yeast-promoter"),
    ],
)
def test_a_wrong_name_gets_a_hint(shelf, wrong, hint):
    with pytest.raises(ModelFileError, match=f"no shipped model is called '{wrong}'") as caught:
        header.locate_model(wrong)
    assert caught.value.remedy.startswith(hint)


@pytest.mark.parametrize("path", ["models/mine", "mine.safetensors", "./mine"])
def test_what_looks_like_a_path_is_one(shelf, path):
    with pytest.raises(ModelFileError, match=f"{path}: no such file"):
        header.locate_model(path)


def test_a_file_without_a_suffix_is_found(shelf, tmp_path):
    (tmp_path / "mine").write_bytes((shelf / "yeast-promoter.safetensors").read_bytes())
    assert load_model("mine").card.name == "yeast-promoter"


def test_a_shipped_name_goes_before_a_file_of_that_name(shelf, tmp_path):
    (tmp_path / "ecoli-promoter").write_text("not a model")
    assert header.locate_model("ecoli-promoter").parent == shelf


def test_every_shipped_model_is_sound():
    for name in header.available_models():
        model = load_model(name)
        assert model.card.name == name
        assert model.card.info.keys() >= {"licence", "data", "limits"}
        if model.card.site is not None and not model.is_locator:  # a whole window is nothing unusual
            assert model.card.domain.length[1] >= model.card.window


@pytest.mark.parametrize("name", ["ecoli-promoter", "bacteria-genome", "rna-family-type"])
def test_a_model_shows_itself_in_three_lines_and_a_small_table(name):
    model = load_model(name)
    lines = repr(model).splitlines()
    assert lines[0] == f"TrainedModel '{name}': {model.card.summary}"
    assert len(lines) == 3
    assert f"{model.card.members} networks of {model.card.training['parameters']:,} weights" in lines[1]
    page = model._repr_html_()
    assert len(page) < 1000
    assert page.count("<tr>") == 7
    strange = replace(model, card=replace(model.card, summary="<b>&"))
    assert "&lt;b&gt;&amp;" in strange._repr_html_()
