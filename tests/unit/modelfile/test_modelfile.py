"""Model files and their headers."""

import json
import struct
from dataclasses import replace

import numpy as np
import pytest
import torch
from safetensors.torch import load as load_tensors, save as serialize

import tables
from seqray.core.card import Card, card_from_mapping, card_to_json
from seqray.core.errors import ModelFileError
from seqray.core.model_config import ModelConfig, StemConfig
from seqray.core.text import counted
from seqray.modelfile import header
from seqray.modelfile.file import build_network, load_model, save_model
from seqray.modelfile.header import checksum, read_card
from seqray.modelfile.model import check_self_test, make_self_test

CONFIG = ModelConfig(d_model=8, heads=2, layers=1, max_length=32, stem=StemConfig(kernels=(3,), stride=2))


def make_networks(n=2, config=CONFIG):
    torch.manual_seed(11)
    return [build_network(config) for _ in range(n)]


def make_card(members=2, **changes):
    settings = {"name": "toy", "classes": ("background", "promoter"), "positive": "promoter", "window": 21}
    return Card(**(settings | {"model": CONFIG, "members": members, "temperature": 1.7} | changes))


@pytest.fixture(scope="module")
def content(tmp_path_factory):
    """The bytes of a sound model file."""
    path = tmp_path_factory.mktemp("model") / "toy.safetensors"
    save_model(path, make_networks(), make_card())
    return path.read_bytes()


@pytest.fixture
def write(tmp_path):
    return lambda data: tables.write(tmp_path / "toy.safetensors", data)


def rebuilt(content, change_card=lambda card: None, change_tensors=lambda tensors: None):
    """The file with another card or other tensors, signed anew: damage that a checksum can't see."""
    tensors = load_tensors(content)
    length = struct.unpack("<Q", content[:8])[0]
    card = json.loads(json.loads(content[8 : 8 + length])["__metadata__"]["seqray_card"])
    card.pop("checksum")
    change_card(card)
    change_tensors(tensors)
    draft = serialize(tensors)
    data = draft[8 + struct.unpack("<Q", draft[:8])[0] :]
    card["checksum"] = checksum(json.dumps(card, sort_keys=True, separators=(",", ":")), data)
    return serialize(tensors, {"seqray_card": json.dumps(card)})


# --- writing and reading ---------------------------------------------------------------------------------


def test_what_was_saved_is_loaded(tmp_path):
    networks, path = make_networks(), tmp_path / "toy.safetensors"
    written = save_model(path, networks, make_card())
    model = load_model(path)
    assert model.card == written == read_card(path)
    for saved, loaded in zip(networks, model.networks, strict=True):
        state = loaded.state_dict()
        assert all(torch.equal(value, state[name]) for name, value in saved.state_dict().items())


def test_logits_are_the_mean_log_probability_over_the_temperature(write, content):
    model = load_model(write(content))
    tokens = torch.randint(4, 8, (3, 22), generator=torch.Generator().manual_seed(0))
    tokens[:, 0] = 1
    members = [network(tokens).logits.double().numpy() for network in model.networks]
    log_p = [z - np.log(np.exp(z).sum(axis=1, keepdims=True)) for z in members]
    expected = (log_p[0] + log_p[1]) / 2 / 1.7
    assert model.logits(tokens.numpy()).dtype == np.float32
    assert model.logits(tokens.numpy()) == pytest.approx(expected, abs=1e-6)


def test_the_same_content_gives_the_same_bytes(tmp_path, content):
    for name in ("a", "b"):
        save_model(tmp_path / f"{name}.safetensors", make_networks(), make_card())
        assert (tmp_path / f"{name}.safetensors").read_bytes() == content
    loaded = load_model(tmp_path / "a.safetensors")
    save_model(tmp_path / "again.safetensors", loaded.networks, loaded.card)
    assert (tmp_path / "again.safetensors").read_bytes() == content


@pytest.mark.parametrize(
    ("networks", "card", "name", "words"),
    [
        (lambda: make_networks(1), lambda: make_card(2), "m.safetensors", "2 networks, 1 were given"),
        (make_networks, make_card, "m.pt", "ends in .safetensors"),
        (lambda: spoiled(float("nan")), make_card, "m.safetensors", "'head.* not finite"),
        (lambda: spoiled(float("inf")), make_card, "m.safetensors", "'head.* not finite"),
    ],
)
def test_what_is_no_model_is_not_written(tmp_path, networks, card, name, words):
    with pytest.raises(ModelFileError, match=words):
        save_model(tmp_path / name, networks(), card())
    assert list(tmp_path.iterdir()) == []


def spoiled(value):
    networks = make_networks()
    with torch.no_grad():
        next(networks[1].head.parameters()).view(-1)[0] = value
    return networks


# --- what is refused -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "is empty"),
        (b"\x89HDF\r\n\x1a\n" + b"\0" * 100, "is an HDF5 file"),
        (b"PK\x03\x04" + b"\0" * 100, r"is a zip archive .* with a pickle inside"),
        (b">record\nACGT\n", "is a FASTA file"),
        (b"no model at all", "is not a safetensors file"),
        (b"\xff" * 8 + b"{}", "is not a safetensors file"),
        (struct.pack("<Q", 4) + b"{}  ", "without a seqray card"),
        (struct.pack("<Q", 4) + b"{[] ", "has a damaged header"),
        (struct.pack("<Q", 90_000) + b'{"a":' * 18_000, "has a damaged header"),
        (serialize({"w": torch.zeros(2)}, {"seqray_card": "[]"}), "has a damaged card"),
        (serialize({"w": torch.zeros(2)}, {"seqray_card": "{}"}), "has a damaged card"),
    ],
)
def test_a_foreign_file_is_called_by_its_name(write, data, words):
    for read in (load_model, read_card):
        with pytest.raises(ModelFileError, match=words) as caught:
            read(write(data))
        assert "\n" not in str(caught.value)


def test_a_newer_format_names_the_version_to_install(write, content):
    newer = rebuilt(
        content, lambda card: card.update(format=5, seqray_version="9.4.0", wings=1, classes="odd")
    )
    for read in (load_model, read_card):
        with pytest.raises(ModelFileError, match=r"format 5, .*install seqray 9\.4\.0 or later"):
            read(write(newer))


@pytest.mark.parametrize(
    "settings",
    [{"layers": 256, "d_model": 4096}, {"d_model": 65536, "d_ff": 65536}, {"heads": 1, "d_ff": 60000}],
)
def test_a_card_that_asks_for_more_than_the_file_holds_takes_no_memory(write, content, settings):
    with pytest.raises(ModelFileError, match="weights, fewer than its description asks for"):
        load_model(write(rebuilt(content, lambda card: card["model"].update(settings))))


# --- the self-test ---------------------------------------------------------------------------------------


def test_the_self_test_has_whole_short_and_ambiguous_sequences(write, content):
    model = load_model(write(content))
    sequences = model.card.self_test["sequences"]
    assert sorted(map(len, sequences)) == [11, 21, 21, 21]
    assert any("N" in s for s in sequences)
    assert make_self_test(model) == model.card.self_test
    assert check_self_test(model) < 1e-6


@pytest.mark.parametrize("part", ["card", "tensors"])
def test_logits_that_differ_fail(write, content, part):
    def change_card(card):
        card["self_test"]["logits"][2][1] += 0.001 if part == "card" else 0

    def change_tensors(tensors):
        tensors["member.1.cls"] *= 1.5 if part == "tensors" else 1

    with pytest.raises(ModelFileError, match="fails its self-test: answers differ"):
        load_model(write(rebuilt(content, change_card, change_tensors)))


def test_logits_that_differ_by_rounding_pass(write, content):
    def nudge(card):
        card["self_test"]["logits"][0][0] += 2e-5

    assert check_self_test(load_model(write(rebuilt(content, nudge)))) == pytest.approx(2e-5, rel=0.1)


@pytest.mark.parametrize(
    "damage",
    [
        lambda card: card.update(self_test={}),
        lambda card: card["self_test"]["logits"][0].pop(),
        lambda card: card["self_test"]["logits"][0].append("x"),
        lambda card: card["self_test"]["logits"][0].__setitem__(0, 10**400),
        lambda card: card["self_test"]["sequences"].__setitem__(0, "A" * 1_000_000),
        lambda card: card["self_test"].update(sequences=["A"] * 1000, logits=[[0, 0]] * 1000),
        lambda card: card["self_test"]["sequences"].__setitem__(0, "!?"),
        lambda card: card["self_test"].update(contexts=["unknown"] * 4),
    ],
)
def test_a_file_without_a_usable_self_test_is_refused(write, content, damage):
    with pytest.raises(ModelFileError, match="no usable self-test"):
        load_model(write(rebuilt(content, damage)))


def test_a_card_written_now_stays_readable():
    """The text of a card of format 1, kept here: reading it must go on working."""
    text = (
        '{"classes":["background","promoter"],"domain":{},"ece":0.0,"format":1,"info":{},"members":1,"metrics":{},'
        '"model":{"activation":"gelu","alphabet":"dna","classes":2,"d_ff":null,"d_model":8,"dropout":0.1,"heads":2,'
        '"k":1,"kv_heads":null,"layers":1,"max_length":32,"positions":"sinusoidal","stem":{"depth":0,"kernels":[3],'
        '"stride":2},"tokenizer":"character"},"name":"toy","positive":"promoter","prevalence":0.5,'
        '"self_test":{},"seqray_version":"0.1.0","site":null,"summary":"","temperature":1.7,"threshold":0.5,'
        '"training":{},"window":21}'
    )
    card = card_from_mapping(json.loads(text))
    assert card == make_card(1, seqray_version="0.1.0")
    assert json.loads(card_to_json(card))["temperature"] == 1.7


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
        save_model(folder / f"{name}.safetensors", [build_network(config)], card)
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
    networks = counted(model.card.members, "network")
    assert f"{networks} of {model.card.training['parameters']:,} weights" in lines[1]
    page = model._repr_html_()
    assert len(page) < 1000
    assert page.count("<tr>") == 7
    strange = replace(model, card=replace(model.card, summary="<b>&"))
    assert "&lt;b&gt;&amp;" in strange._repr_html_()
