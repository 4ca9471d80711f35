"""``seqray models``: what it prints, what it finds, how it fails."""

import hashlib
import json
import subprocess
import sys

import pytest
import torch

from seqray.cli.main import main
from seqray.core.card import Card
from seqray.core.model_config import ModelConfig
from seqray.modelfile import zoo
from seqray.modelfile.file import save_model
from seqray.models.build import build_model

CONFIG = ModelConfig(d_model=8, heads=2, layers=1, max_length=16)
FIGURE = {"metric": "mcc", "split": "grouped", "value": 0.815, "low": 0.79, "high": 0.841}


def write_model(path, name, **changes):
    torch.manual_seed(0)
    settings = {"classes": ("background", "promoter"), "positive": "promoter", "window": 9, "model": CONFIG}
    return save_model(path, [build_model(CONFIG)], Card(**(settings | {"name": name} | changes)))


@pytest.fixture
def shelf(tmp_path, monkeypatch):
    """A zoo of two models."""
    write_model(tmp_path / "ecoli.safetensors", "ecoli", summary="E. coli", metrics={"headline": FIGURE})
    write_model(tmp_path / "arabidopsis.safetensors", "arabidopsis", window=15, summary="A. thaliana")
    monkeypatch.setattr(zoo, "FOLDER", tmp_path)
    return tmp_path


def damage(path):
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(bytes(content))


@pytest.mark.parametrize("command", [["models"], ["models", "list"]])
def test_the_list_is_a_table(shelf, capsys, command):
    assert main(command) == 0
    head, first, second = capsys.readouterr().out.splitlines()
    assert head.split() == ["name", "window", "classes", "members", "size", "measured", "summary"]
    assert first.split("  ")[0] == "arabidopsis"
    assert second.endswith("MCC 0.81 (0.79 to 0.84), grouped  E. coli")
    assert second.split()[1:5] == ["9", "background,promoter", "1", "0.0"]
    columns = [
        line.index(word) for line, word in ((head, "summary"), (first, "A. thal"), (second, "E. coli"))
    ]
    assert len(set(columns)) == 1


@pytest.mark.parametrize("command", [["models", "--json"], ["models", "list", "--json"]])
def test_the_list_as_json(shelf, capsys, command):
    assert main(command) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [(row["name"], row["window"]) for row in rows] == [("arabidopsis", 15), ("ecoli", 9)]
    assert rows[0]["size"] == (shelf / "arabidopsis.safetensors").stat().st_size


def test_an_empty_zoo_is_an_empty_table(shelf, capsys, monkeypatch):
    monkeypatch.setattr(zoo, "FOLDER", shelf / "none")
    assert main(["models"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 1


@pytest.mark.parametrize("by_path", [False, True])
def test_a_card_is_shown_to_people(shelf, capsys, by_path):
    path = shelf / "ecoli.safetensors"
    assert main(["models", "show", str(path) if by_path else "ecoli"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "name: ecoli" in lines
    assert "window: 9" in lines
    assert lines[-1] == f"sha256: {hashlib.sha256(path.read_bytes()).hexdigest()}"


@pytest.mark.parametrize("place", [2, 3])
def test_a_card_is_shown_as_json(shelf, capsys, place):
    command = ["models", "show", "ecoli"]
    command.insert(place, "--json")
    assert main(command) == 0
    card = json.loads(capsys.readouterr().out)
    assert card["classes"] == ["background", "promoter"]
    assert card["sha256"] == hashlib.sha256((shelf / "ecoli.safetensors").read_bytes()).hexdigest()
    assert len(card["self_test"]["logits"]) == len(card["self_test"]["sequences"])


def test_all_shipped_models_are_verified(shelf, capsys):
    assert main(["models", "verify"]) == 0
    rows = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert [row[:2] for row in rows] == [["arabidopsis", "ok"], ["ecoli", "ok"]]
    assert rows[1][2] == hashlib.sha256((shelf / "ecoli.safetensors").read_bytes()).hexdigest()


def test_a_damaged_model_fails_and_the_others_are_still_checked(shelf, capsys):
    damage(shelf / "arabidopsis.safetensors")
    assert main(["models", "verify"]) == 2
    captured = capsys.readouterr()
    assert [line.split("\t")[1] for line in captured.out.splitlines()] == ["failed", "ok"]
    assert captured.out.splitlines()[0].count("arabidopsis") == 1
    assert captured.err.startswith("seqray: error: ")
    assert "its checksum does not match" in captured.err
    assert captured.err.count("\n") == 1


def test_several_damaged_models_are_counted(shelf, capsys):
    damage(shelf / "arabidopsis.safetensors")
    damage(shelf / "ecoli.safetensors")
    assert main(["models", "verify"]) == 2
    assert "2 of 2 models failed" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (["show", "ecolli"], "did you mean 'ecoli'?"),
        (["show", "none.safetensors"], "none.safetensors: no such file"),
        (["verify", "ecolli", "ecoli"], "did you mean 'ecoli'?"),
        (["verify", "--backbone", "dir"], "'--backbone' is given without a model; name the model that"),
        (["--json", "verify"], "'verify' has no JSON output"),
    ],
)
def test_a_mistake_is_one_line_and_exit_2(shelf, capsys, command, words):
    assert main(["models", *command]) == 2
    error = capsys.readouterr().err
    assert words in error
    assert error.count("\n") == 1


def test_verifying_nothing_is_not_ok(shelf, capsys, monkeypatch):
    monkeypatch.setattr(zoo, "FOLDER", shelf / "none")
    assert main(["models", "verify"]) == 2
    assert "this installation ships no model" in capsys.readouterr().err


def test_looking_at_cards_loads_no_torch(shelf):
    path = str(shelf / "ecoli.safetensors")
    program = (
        "import sys; from seqray.cli.main import main; "
        f"main(['models', 'list']); main(['models', 'show', {path!r}]); print('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "False"
