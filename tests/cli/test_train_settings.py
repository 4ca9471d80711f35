"""``seqray train`` without ``--config``: settings from the data or from a model, and their file."""

import random
import re
import subprocess
import sys
from pathlib import Path

import pytest
from safetensors.numpy import load_file

from commands import Run
from seqray.core.run_config import DataConfig, RunConfig, load_run_config
from seqray.core.serialization import to_mapping
from seqray.modelfile.header import read_card
from seqray.training.plan import settings_of, write_config
from tables import changed_model, fasta, letters, tsv, write

FAST = "--members 1 --set trainer.max_epochs=1 --device cpu --threads 1"
EXAMPLE = Path(__file__).parents[2] / "configs/example.yaml"


def examples(count: int, length: int, at: int, site: str) -> list[tuple[str, str]]:
    """Windows; promoters carry letters at one place."""
    rows = []
    for i in range(count):
        text = letters(length, i)
        rows.append(
            (text[:at] + site + text[at + len(site) :], "promoter") if i % 2 else (text, "background")
        )
    return rows


@pytest.fixture
def train(run, tmp_path) -> Run:
    """Run the verb where table.tsv has 48 windows of 30 letters."""
    write(tmp_path / "table.tsv", tsv("sequence label", examples(48, 30, 12, "TATAAT")))
    return run.to("train", FAST)


def test_a_table_alone_becomes_a_model(train):
    told = train("--train table.tsv --out", ["my model.safetensors"]).err.splitlines()
    assert "dna, 30 letters, cut around a site; classes background, promoter (positive: promoter)" in told[0]
    assert "48 examples: 64 channels, 2 layers, at most 1 epochs, networks: 1" in told[1]
    card = read_card("my model.safetensors")
    assert (card.name, card.classes, card.positive) == ("my-model", ("background", "promoter"), "promoter")
    assert (card.window, card.model.position_gain, card.model.max_length) == (30, "shared", 30)


def test_longer_sequences_are_learned_from_as_if_they_were_cut_by_hand(train, tmp_path):
    rows = [(text[:18], label) for text, label in examples(48, 30, 12, "TATAAT")]
    write(tmp_path / "cut.tsv", tsv("sequence label", rows))
    said = train("--train cut.tsv --out hand.safetensors --save-config settings.yaml").err
    assert "longer than" not in said
    by_rule = train.to("--train table.tsv --config settings.yaml --truncate")
    assert "48 of 48 sequences are longer than 18 letters" in by_rule("start --out rule.safetensors").err
    hand, rule = (load_file(f"{name}.safetensors") for name in ("hand", "rule"))
    assert hand.keys() == rule.keys()
    assert all((hand[name] == rule[name]).all() for name in hand)
    assert read_card("rule.safetensors").training["config"]["data"]["truncate"] == "start"
    told = by_rule("none --out none.safetensors", status=2).err
    assert all(word in told for word in ("30 letters", "(18)", "47 others", "--truncate"))
    assert not Path("none.safetensors").exists()


def test_one_fasta_a_class_of_proteins_becomes_a_model(train, tmp_path):
    rng = random.Random(1)
    alphabets = {"in": "ACDEFGHIKL", "out": "MNPQRSTVWY", "none": "ACDEFGHIKLMNPQRSTVWY"}
    for label, alphabet in alphabets.items():
        records = {str(i): "".join(rng.choices(alphabet, k=rng.randint(5, 20))) + "*" for i in range(12)}
        write(tmp_path / f"{label}.fa", fasta(records))
    words = "--class in=in.fa --class out=out.fa --class none=none.fa --out m.safetensors"
    first, *told = train(words).err.splitlines()
    assert first.startswith("seqray: settings chosen from the data: protein, ")
    assert first.endswith("; classes in, none, out (positive: in)")
    [figures] = [line for line in told if line.startswith("validation on ")]
    assert "mean of classes: mcc " in figures
    assert "threshold" not in figures
    card = read_card("m.safetensors")
    assert (card.model.alphabet, card.model.ends, card.model.words) == ("protein", 12, 2)
    assert card.window <= 20  # the star at the end of a protein is no letter


def test_the_example_file_trains_any_number_of_classes(train, tmp_path):
    rows = [(letters(60 + 4 * i, i), f"type{i % 3}") for i in range(36)]
    write(tmp_path / "t.tsv", tsv("sequence label", [*rows, ("ACGT", "type0")]))
    train("--train t.tsv --out m.safetensors --set trainer.precision=32-true --config", EXAMPLE)
    card = read_card("m.safetensors")
    assert card.classes == ("type0", "type2", "type1")  # the rarest that comes first is the positive one
    assert card.window == max(len(text) for text, _ in rows)


# --- files of settings ----------------------------------------------------------------------------


def test_saved_settings_train_the_same_model(train, run):
    train("--train table.tsv --out m.safetensors --save-config settings.yaml --seed 5")
    assert load_run_config("settings.yaml").seed == 5
    run("train --train table.tsv --config settings.yaml --out again.safetensors --threads 1 --quiet")
    assert Path("again.safetensors").read_bytes() == Path("m.safetensors").read_bytes()


@pytest.mark.parametrize(
    "config",
    [
        *map(settings_of, ("ecoli-sigma", "antimicrobial-peptide", "rna-family-type", "bacteria-genome")),
        *(
            RunConfig(name="7", data=DataConfig(positive=positive))
            for positive in ("1", "no", "1e3", "0x1F", "2001-01-01", "ja: nein")  # which YAML reads as others
        ),
    ],
    ids=lambda config: f"{config.name} {config.data.positive}",
)
def test_settings_come_back_from_their_file(tmp_path, config):
    write_config(str(tmp_path / "c.yaml"), config)
    assert load_run_config(tmp_path / "c.yaml") == config


# --- settings of a model --------------------------------------------------------------------------


def test_settings_of_a_shipped_model_are_taken(train):
    told = train(
        "--train table.tsv --out m.safetensors --like mouse-tata-promoter --set model.d_model=16"
    ).err
    assert told.startswith("seqray: settings chosen from mouse-tata-promoter: dna, 30 letters")
    card, other = read_card("m.safetensors"), settings_of("mouse-tata-promoter")
    assert card.training["config"]["optimizer"] == to_mapping(other)["optimizer"]
    assert (card.model.d_model, card.model.stem, card.window) == (16, other.model.stem, 30)


def test_a_model_that_says_nothing_of_its_training_has_settings(tiny_model_file):
    settings = settings_of(str(tiny_model_file))
    assert (settings.data.window, settings.model.d_model) == (20, 8)  # of the fixture


def test_settings_of_a_damaged_model_are_refused(tiny_model, tmp_path, train):
    model = changed_model(
        tmp_path / "m.safetensors", tiny_model, training={"config": {"optimizer": {"x": 1}}}
    )
    words = "--train table.tsv --out x.safetensors --like m.safetensors"
    train.refused(words, names="'optimizer.x'")
    content = model.read_bytes()
    write(model, content[:-9] + bytes([content[-9] ^ 4]) + content[-8:])
    train.refused(words, names=("m.safetensors", "checksum"))


def test_the_command_line_decides_on_the_alphabet(train):
    train("--train table.tsv --out m.safetensors --set model.alphabet=rna")
    assert read_card("m.safetensors").model.alphabet == "rna"


def test_settings_that_the_data_decide_on_are_tried_and_stated(train, tmp_path):
    """2,000 windows are enough to try them; a network of 8 channels for one epoch is enough to see it."""
    write(tmp_path / "t.tsv", tsv("sequence label", examples(2000, 12, 4, "TATA")))
    small = "--set model.d_model=8 --set model.layers=1 --set optimizer.batch_size=500"
    text = train("--train t.tsv --out m.safetensors --save-config c.yaml", small).err
    first, second = re.findall(r"trial \d: model.position_matrix=(\w+): .*?: auprc ([\d.]+)", text)
    assert (first[0], second[0]) == ("shared", "none")
    best = max(first, second, key=lambda one: float(one[1]))[0]
    assert f"chosen: model.position_matrix={best}" in text
    assert read_card("m.safetensors").model.position_matrix == best
    assert load_run_config("c.yaml").model.position_matrix == best


def test_a_class_that_names_do_not_tell_is_asked_for_and_a_word_of_yaml_is_its_name(train, tmp_path, run):
    for name, classes in {"unknown": ("coil", "helix"), "pair": ("no", "yes")}.items():
        rows = [(s, classes[label == "promoter"]) for s, label in examples(48, 30, 12, "TATAAT")]
        write(tmp_path / f"{name}.tsv", tsv("sequence label", rows))
    asked = "the positive class is not known; give --set data.positive=coil or helix"
    run.to("train").refused("--train unknown.tsv --out m.safetensors", names=asked)
    code = """
import sys
from seqray.cli.main import main
words = "train --train unknown.tsv --out m.safetensors".split()
print(main(words), main([*words, "--set", "data.positive=motif"]), "lightning" in sys.modules)
"""
    refused = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert refused.stdout == "2 2 False\n"  # found before what takes long is loaded
    assert refused.stderr.count("positive class") == 2
    train("--train pair.tsv --set data.positive=no --out no.safetensors")
    assert read_card("no.safetensors").positive == "no"


def test_several_labels_of_a_sequence_are_refused(train, tmp_path):
    rows = [(s, ("a", "b", "a;b")[i % 3]) for i, (s, _) in enumerate(examples(48, 30, 12, "TATAAT"))]
    write(tmp_path / "several.tsv", tsv("sequence label", rows))
    train.refused("--train several.tsv --out m.safetensors", names="the label 'a;b' names several classes")
