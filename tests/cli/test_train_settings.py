"""``seqray train`` without ``--config``: settings from the data or from a model, and their file."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest
from safetensors.numpy import load_file

from attack.test_forged_models import parts, sign
from seqray.cli.main import main
from seqray.cli.train_learn import model_name, settings_of, write_config
from seqray.core.run_config import DataConfig, RunConfig, load_run_config
from seqray.core.serialization import to_mapping
from seqray.modelfile.header import read_card

FAST = ("--members", "1", "--set", "trainer.max_epochs=1", "--device", "cpu", "--threads", "1")


@pytest.fixture
def table(tmp_path) -> Path:
    """48 windows of 30 letters; promoters carry TATAAT at one place."""
    rng = random.Random(0)
    rows = ["sequence\tlabel"]
    for i in range(48):
        letters = "".join(rng.choices("ACGT", k=30))
        rows.append(f"{letters[:12]}TATAAT{letters[18:]}\tpromoter" if i % 2 else f"{letters}\tbackground")
    path = tmp_path / "my table.tsv"
    path.write_text("\n".join(rows) + "\n")
    return path


def train(table: Path, out: str, *words: str) -> tuple[int, Path]:
    path = table.parent / out
    return main(["train", "--train", str(table), "--out", str(path), *FAST, *words]), path


def test_a_table_alone_becomes_a_model(table, capsys):
    status, path = train(table, "my model.safetensors")
    assert status == 0
    assert capsys.readouterr().err.splitlines()[:2] == [
        "seqray: settings chosen from the data: dna, 30 letters, cut around a site; "
        "classes background, promoter (positive: promoter)",
        "seqray: 48 examples: 64 channels, 2 layers, at most 1 epochs, networks: 1; write the settings with "
        "--save-config FILE to change them",
    ]
    card = read_card(path)
    assert (card.name, card.classes, card.positive, card.window) == (
        "my-model",
        ("background", "promoter"),
        "promoter",
        30,
    )
    assert (card.model.position_gain, card.model.max_length) == ("shared", 30)


def test_longer_sequences_are_learned_from_as_if_they_were_cut_by_hand(table, capsys):
    cut = table.with_name("cut.tsv")
    header, *rows = table.read_text().splitlines()
    cut.write_text("\n".join([header, *(row[:18] + row[30:] for row in rows)]) + "\n")
    settings = str(table.with_name("settings.yaml"))
    assert train(cut, "by hand.safetensors", "--save-config", settings)[0] == 0
    assert "longer than" not in capsys.readouterr().err
    status, path = train(table, "by rule.safetensors", "--config", settings, "--truncate", "start")
    assert status == 0
    told = "seqray: 48 of 48 sequences are longer than 18 letters: their first 18 are read\n"
    assert told in capsys.readouterr().err
    weights = [load_file(table.with_name(f"by {how}.safetensors")) for how in ("hand", "rule")]
    assert weights[0].keys() == weights[1].keys()
    assert all((weights[0][name] == weights[1][name]).all() for name in weights[0])
    assert read_card(path).training["config"]["data"]["truncate"] == "start"
    status, path = train(table, "none.safetensors", "--config", settings, "--truncate", "none")
    assert status == 2
    assert (
        "holds 30 letters, more than 'data.window' (18), and so do 47 others; give --truncate"
        in capsys.readouterr().err
    )
    assert not path.exists()


def test_one_fasta_a_class_of_proteins_becomes_a_model(tmp_path, capsys):
    rng = random.Random(1)
    words = []
    for label, letters in {"in": "ACDEFGHIKL", "out": "MNPQRSTVWY", "none": "ACDEFGHIKLMNPQRSTVWY"}.items():
        records = (f">{i}\n{''.join(rng.choices(letters, k=rng.randint(5, 20)))}*\n" for i in range(12))
        (tmp_path / f"{label}.fa").write_text("".join(records))
        words += ["--class", f"{label}={tmp_path / label}.fa"]
    out = tmp_path / "m.safetensors"
    assert main(["train", *words, "--out", str(out), *FAST]) == 0
    first, *told = capsys.readouterr().err.splitlines()
    [figures] = [line for line in told if line.startswith("validation on ")]
    assert first.endswith("; classes in, none, out (positive: in)")
    assert " sequences: mean of classes: mcc " in figures
    assert "threshold" not in figures
    assert first.startswith("seqray: settings chosen from the data: protein, ")
    card = read_card(out)
    assert (card.model.alphabet, card.model.ends, card.model.words) == ("protein", 12, 2)
    assert card.window <= 20  # the star at the end of a protein is no letter


def test_saved_settings_train_the_same_model(table):
    settings = table.parent / "settings.yaml"
    status, first = train(table, "m.safetensors", "--save-config", str(settings), "--seed", "5")
    assert status == 0
    assert load_run_config(settings).seed == 5
    out = table.parent / "again.safetensors"
    words = ["--train", str(table), "--config", str(settings), "--out", str(out), "--threads", "1", "--quiet"]
    assert main(["train", *words]) == 0
    assert out.read_bytes() == first.read_bytes()


@pytest.mark.parametrize(
    "name", ["ecoli-sigma", "antimicrobial-peptide", "rna-family-type", "bacteria-genome"]
)
def test_settings_come_back_from_their_file(tmp_path, name):
    config, path = settings_of(name), str(tmp_path / "c.yaml")
    write_config(path, config)
    assert load_run_config(path) == config


def test_labels_that_yaml_reads_as_others_come_back(tmp_path):
    for positive in ("1", "no", "1e3", "0x1F", "2001-01-01", "ja: nein"):
        config = RunConfig(name="7", data=DataConfig(positive=positive))
        write_config(str(tmp_path / "c.yaml"), config)
        assert load_run_config(tmp_path / "c.yaml") == config


def test_settings_of_a_shipped_model_are_taken(table, capsys):
    status, path = train(table, "m.safetensors", "--like", "mouse-tata-promoter", "--set", "model.d_model=16")
    assert status == 0
    assert capsys.readouterr().err.startswith(
        "seqray: settings chosen from mouse-tata-promoter: dna, 30 letters, cut around a site; classes "
    )
    card, other = read_card(path), settings_of("mouse-tata-promoter")
    assert card.training["config"]["optimizer"] == to_mapping(other)["optimizer"]
    assert (card.model.d_model, card.model.stem, card.window) == (16, other.model.stem, 30)


def test_a_model_that_says_nothing_of_its_training_has_settings(tiny_model_file):
    settings = settings_of(str(tiny_model_file))
    assert (settings.data.window, settings.model.d_model) == (20, 8)  # of the fixture


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (
            lambda data: data[:-9] + bytes([data[-9] ^ 4]) + data[-8:],
            "is damaged: its checksum does not match",
        ),
        (lambda data: forged(data, {"config": "x"}), "model card: 'training.config' is no mapping"),
        (lambda data: forged(data, {"config": {"optimizer": {"x": 1}}}), "unknown setting 'optimizer.x'"),
    ],
)
def test_settings_of_a_damaged_model_are_refused(tiny_model_file, tmp_path, table, capsys, damage, message):
    model = tmp_path / "like.safetensors"
    model.write_bytes(damage(tiny_model_file.read_bytes()))
    assert train(table, "m.safetensors", "--like", str(model))[0] == 2
    assert capsys.readouterr().err.startswith(f"seqray: error: {model}: {message}")


def forged(content, training):
    """The same model with another record of its training, signed anew."""
    header, card, data = parts(content)
    return sign(header, card | {"training": training}, data)


def test_the_command_line_decides_on_the_alphabet(table, capsys):
    status, path = train(table, "m.safetensors", "--set", "model.alphabet=rna")
    assert status == 0
    assert read_card(path).model.alphabet == "rna"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["--like", "ecoli-promoter", "--config", "c.yaml"],
            "both --config and --like are given; give one of",
        ),
        (["--like", "ecoli-promotor"], "did you mean 'ecoli-promoter'?"),
        (["--like", "antimicrobial-peptide"], "looks like nucleotides, but protein is expected"),
        (
            ["--like", "bacteria-genome"],
            "bacteria-genome: is a locator, which learns from genomes; give --genome and --sites",
        ),
        (["--genome", "g.fa"], "--genome needs settings of a locator; give --like bacteria-genome, or"),
        (["--alignment-labels", "l.tsv"], "needs settings for alignments; give --like rna-family-type or"),
        (["--backbone", "."], "--backbone is given, but 'model.kind' is sequence"),
        (["--save-config", "none/c.yaml"], "none/c.yaml: can't be written"),
    ],
)
def test_what_does_not_fit_is_refused_in_one_line(table, capsys, monkeypatch, words, message):
    monkeypatch.chdir(table.parent)
    for name in ("g.fa", "l.tsv", "c.yaml"):
        Path(name).write_text("")
    long = [f"{'ACGT' * 20}\tpromoter\n{'AACCGGTT' * 10}\tbackground\n"] * 4
    table.write_text("sequence\tlabel\n" + "".join(long))
    assert train(table, "m.safetensors", *words)[0] == 2
    error = capsys.readouterr().err.splitlines()[-1]
    assert error.startswith("seqray: ")
    assert message in error


def test_the_example_file_trains_any_number_of_classes(tmp_path):
    rng = random.Random(2)
    rows = [(rng.choices("ACGT", k=rng.randint(60, 200)), f"type{i % 3}") for i in range(36)]
    text = "".join(f"{''.join(letters)}\t{label}\n" for letters, label in rows)
    (tmp_path / "t.tsv").write_text("sequence\tlabel\n" + text + "ACGT\ttype0\n")
    example, out = Path(__file__).parents[2] / "configs/example.yaml", tmp_path / "m.safetensors"
    words = ["train", "--config", str(example), "--train", str(tmp_path / "t.tsv"), "--out", str(out)]
    assert main([*words, *FAST, "--set", "trainer.precision=32-true"]) == 0
    card = read_card(out)
    assert card.classes == ("type0", "type2", "type1")  # the rarest that comes first is the positive one
    assert card.window == max(len(letters) for letters, _ in rows)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["model.classes=2"],
            "'model.classes' is 2, but the data have 3 labels: b, c, a; give --set model.classes=3",
        ),
        (["data.positive=x"], "no example has the positive class 'x'"),
        (["data.window=20"], "holds 30 letters, more than 'data.window' (20)"),
    ],
)
def test_what_somebody_has_set_is_not_taken_from_the_data(tmp_path, capsys, words, message):
    letters = ["ACGTTGCAAT" * 3, "AACCGGTTAC" * 3, "ATATATGCGC" * 3] * 2
    rows = "".join(f"{one}\t{'abc'[i % 3]}\n" for i, one in enumerate(letters))
    (tmp_path / "t.tsv").write_text("sequence\tlabel\n" + rows)
    (tmp_path / "c.yaml").write_text("model: {classes: 3}\ndata: {positive: null, window: 30}\n")
    out = tmp_path / "m.safetensors"
    words = ["--config", str(tmp_path / "c.yaml"), "--train", str(tmp_path / "t.tsv"), "--set", *words]
    assert main(["train", *words, "--out", str(out), *FAST]) == 2
    assert message in capsys.readouterr().err


def test_one_class_is_refused(table, capsys):
    table.write_text("sequence\tlabel\n" + "ACGT\ta\n" * 4)
    assert train(table, "m.safetensors")[0] == 2
    message = f"seqray: error: {table}: all examples have the label 'a'; a classifier needs two classes"
    assert message in capsys.readouterr().err


def test_a_model_is_named_after_its_file():
    assert model_name("x/my model.safetensors") == "my-model"
    assert model_name("a\\b\t.safetensors") == "a-b"
    assert model_name(".safetensors") == "model"


def test_settings_that_the_data_decide_on_are_tried_and_stated(tmp_path, capsys, monkeypatch):
    """2,000 windows are enough to try them; a network of 8 channels for one epoch is enough to see it."""
    rng = random.Random(0)
    rows = ["sequence\tlabel"]
    for i in range(2000):
        letters = "".join(rng.choices("ACGT", k=12))
        rows.append(f"{letters[:4]}TATA{letters[8:]}\tpromoter" if i % 2 else f"{letters}\tbackground")
    (tmp_path / "t.tsv").write_text("\n".join(rows) + "\n")
    monkeypatch.chdir(tmp_path)
    words = ["--train", "t.tsv", "--out", "m.safetensors", "--save-config", "c.yaml", *FAST]
    small = ["--set", "model.d_model=8", "--set", "model.layers=1", "--set", "optimizer.batch_size=500"]
    assert main(["train", *words, *small]) == 0
    text = capsys.readouterr().err
    first, second = re.findall(r"trial \d: model.position_matrix=(\w+): .*?: auprc ([\d.]+)", text)
    assert (first[0], second[0]) == ("shared", "none")
    best = max(first, second, key=lambda one: float(one[1]))[0]
    assert f"chosen: model.position_matrix={best}" in text
    assert read_card(Path("m.safetensors")).model.position_matrix == best
    assert load_run_config("c.yaml").model.position_matrix == best
