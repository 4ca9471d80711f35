"""``seqray train`` and ``pretrain``: from files to a model file, and what happens when it is stopped."""

import errno
import json
import random
import signal
import time
from pathlib import Path

import pytest
import torch

from commands import Run
from seqray.calibration.fit import calibration_shortfalls
from seqray.cli.train import FitOptions
from seqray.core.errors import ConfigError
from seqray.core.run_config import RunConfig
from seqray.modelfile.file import load_model
from seqray.modelfile.header import read_card
from seqray.modelfile.initial_weights import load_pretrained
from seqray.models.batches import trainer_device
from seqray.training.module import Classifier
from seqray.training.plan import override
from tables import fasta, letters, tsv, write

YAML = """
name: toy
model: {d_model: 16, layers: 1, heads: 2, max_length: 64}
data: {window: 40}
optimizer: {batch_size: 32, learning_rate: 3e-3}
trainer: {max_epochs: 2, accelerator: cpu}
"""


def made_examples() -> list[tuple[str, str]]:
    """Promoters, which carry TATAAT, and background."""
    rng, examples = random.Random(0), []
    for i in range(80):
        letters = "".join(rng.choices("ACGT", k=40))
        examples.append(
            (letters, "background") if i % 2 else (f"{letters[:17]}TATAAT{letters[23:]}", "promoter")
        )
    return sorted(examples, key=lambda row: row[1], reverse=True)


EXAMPLES = made_examples()


@pytest.fixture
def train(run, tmp_path) -> Run:
    """Run the verb with c.yaml where data.tsv is."""
    write(tmp_path / "c.yaml", YAML)
    write(tmp_path / "data.tsv", tsv("sequence label", EXAMPLES))
    return run.to("train --config c.yaml --threads 1")


DATA, OUT = "--train data.tsv", "--out m.safetensors"


def test_a_table_becomes_a_model_file_and_a_summary(train):
    ended = train(DATA, OUT)
    assert ended.out == ""
    card = load_model("m.safetensors").card
    facts = card.training
    n = {part: sum(counts.values()) for part, counts in facts["counts"].items()}
    assert sum(n.values()) == 80
    first, second, *cautions, wrote, _ = ended.err.splitlines()
    assert f"trained on {n['train']} sequences of 2 classes; networks: 1" in first
    assert f"best epochs: {facts['best_epochs'][0]}" in first
    assert second.startswith(f"validation on {n['validation']} sequences: mcc ")
    assert f"threshold {card.threshold:.3f}" in second
    assert cautions[0].startswith(f"caution: {n['validation']} held-out sequences are few")
    assert cautions[1:] == [f"caution: {text}" for text in calibration_shortfalls(facts["calibration"])]
    assert wrote == "wrote m.safetensors"
    assert Path("m.safetensors.training/member-1/finished.json").is_file()


def test_a_calibration_that_could_not_be_fitted_is_told():
    facts = {"log_loss_after": 0.7, "log_loss_of_shares": 0.693, "at_bounds": ["temperature", "shift"]}
    poor, cut = calibration_shortfalls(facts)
    assert "log loss is 0.693" in poor
    assert "temperature and shift" in cut
    assert not list(calibration_shortfalls(facts | {"log_loss_after": 0.6, "at_bounds": []}))


def test_all_members_hold_out_the_same_part(train):
    """Of 80 sequences both networks hold out the same tenth."""
    first, second, *_ = train(DATA, OUT, "--members 2 --set data.validation=0.1").err.splitlines()
    assert first.startswith("trained on 72 sequences of 2 classes; networks: 2; ")
    assert second.startswith("validation on 8 sequences: mcc ")


def test_the_last_lines_tell_what_the_floor_reaches(train):
    lines = train(DATA, OUT, "--set floor=true").err.splitlines()
    [told] = [line for line in lines if line.startswith("baseline, a linear model of k-mers and places")]
    floor = load_model("m.safetensors").card.training["floor"]
    assert f"mcc {floor['linear']['mcc']:.3f} auroc {floor['linear']['auroc']:.3f}; networks alone: " in told
    assert told.endswith(f"mcc {floor['together']['mcc']:.3f} auroc {floor['together']['auroc']:.3f}")


def test_one_fasta_a_class_gives_the_same_model_as_the_table(train, tmp_path):
    for label in ("promoter", "background"):
        records = [s for s, own in EXAMPLES if own == label]
        write(tmp_path / f"{label}.fa", fasta({f"{label}{i}": s for i, s in enumerate(records)}))
    train(DATA, OUT, "--work-dir a")
    first = Path("m.safetensors").read_bytes()
    train("--class=promoter=promoter.fa --class=background=background.fa --work-dir b", OUT)
    assert Path("m.safetensors").read_bytes() == first


def test_several_tables_are_put_together(train, tmp_path):
    write(tmp_path / "more.csv", "label,sequence,split\nbackground," + "ACGT" * 10 + ",train\n")
    train(DATA, OUT, "--train more.csv")
    counts = read_card("m.safetensors").training["counts"]
    assert sum(part["background"] for part in counts.values()) == 41


def test_the_command_line_overrides_the_file_and_figures_reach_the_card(train, tmp_path):
    figures = {"cv": {"mcc": {"value": 0.8, "low": 0.7, "high": 0.9}}}
    write(tmp_path / "cv.json", json.dumps(figures))
    words = "--set optimizer.ema=0.5 --set 'model.stem.kernels=[3, 5]' --set card.licence=CC0"
    more = "--seed 7 --members 2 --metrics cv.json --device cpu --quiet"
    assert train(DATA, OUT, words, more) == (0, "", "")
    card = read_card("m.safetensors")
    assert card.training["config"]["optimizer"]["ema"] == 0.5
    assert card.training["seeds"] == [7, 8]
    assert card.model.stem.kernels == (3, 5)
    assert card.metrics == figures
    assert card.info == {"licence": "CC0"}


def test_overrides_are_read_as_yaml():
    changed = override(RunConfig(), ["trainer.max_epochs=3", "stopping.monitor=loss", "data.site=null"])
    assert (changed.trainer, changed.stopping.monitor, changed.data.site) == ({"max_epochs": 3}, "loss", None)


def test_devices(monkeypatch):
    with pytest.raises(ConfigError, match="cuda:3"):
        trainer_device("cuda:3")
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 4)
    assert trainer_device("auto") == {}
    assert trainer_device("cpu") == {"accelerator": "cpu", "devices": 1}
    assert trainer_device("cuda") == {"accelerator": "cuda", "devices": 1}
    assert trainer_device("cuda:3") == {"accelerator": "cuda", "devices": [3]}
    for name in ("gpu0", "cuda:", "cuda:x", "cpu:1"):
        with pytest.raises(ConfigError, match="unknown device"):
            trainer_device(name)


def test_relatives_across_a_given_split_are_told(train, tmp_path):
    parts = [(*row, "train" if i % 4 else "validation") for i, row in enumerate(EXAMPLES)]
    twins = [(*EXAMPLES[0], "train"), (*EXAMPLES[-1], "validation")]
    write(tmp_path / "data.tsv", tsv("sequence label split", [*parts, *twins]))
    assert "caution: 2 validation sequences have a relative" in train(DATA, OUT).err


# --- stopped half-way -----------------------------------------------------------------------------


def test_ctrl_c_says_how_to_resume(train, monkeypatch):
    def press_ctrl_c(*_):
        raise KeyboardInterrupt

    before = signal.getsignal(signal.SIGINT)
    with monkeypatch.context() as patch:
        patch.setattr(Classifier, "training_step", press_ctrl_c)
        message = "seqray: interrupted; the same command resumes from m.safetensors.training\n"
        assert train(DATA, OUT, status=130).err.startswith(message)
        assert "without --no-resume" in train(DATA, OUT, "--no-resume", status=130).err
        patch.setattr(FitOptions, "run_options", press_ctrl_c)  # before there is a folder to resume from
        assert train(DATA, "--out other.safetensors", status=130).err.startswith("seqray: interrupted\n")
    assert not Path("m.safetensors").exists()
    train(DATA, OUT)
    assert signal.getsignal(signal.SIGINT) is before


def test_a_full_disk_names_the_folder(train, monkeypatch):
    """PyTorch raises the error without the name of the file."""

    def fill_disk(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Classifier, "training_step", fill_disk)
    told = train(DATA, OUT, status=2).err
    assert "m.safetensors.training" in told
    assert "No space left on device" in told
    assert not Path("m.safetensors").exists()


def test_a_run_that_is_killed_twice_ends_with_the_bytes_of_an_uninterrupted_one(train, process):
    """Real signals to real processes, each after one more epoch."""
    words = f"{DATA} --set trainer.max_epochs=30 --set stopping.patience=30 --quiet"
    train(words, "--out whole.safetensors")
    checkpoint = Path("m.safetensors.training/member-1/last.ckpt")
    for number, status, word in ((signal.SIGINT, 130, b"interrupted"), (signal.SIGTERM, 143, b"terminated")):
        before = checkpoint.stat().st_mtime_ns if checkpoint.exists() else 0
        running = process.begin("train --config c.yaml --threads 1", words, OUT)
        while running.poll() is None and not (checkpoint.exists() and checkpoint.stat().st_mtime_ns > before):
            time.sleep(0.01)
        running.send_signal(number)
        _, err = running.communicate(timeout=600)
        assert running.returncode in (status, -number)  # the same to a shell; see test_endings.py
        assert err.startswith(
            b"seqray: " + word + b"; the same command resumes from m.safetensors.training\n"
        )
        assert not Path("m.safetensors").exists()
    train(words, OUT)
    assert Path("m.safetensors").read_bytes() == Path("whole.safetensors").read_bytes()


def test_weights_are_written_and_begun_with(run, tmp_path):
    write(tmp_path / "c.yaml", YAML.replace("max_epochs: 2", "max_epochs: 1"))
    write(tmp_path / "a.fa", fasta({f"r{i}": letters(400, i) for i in range(5)} | {"empty": ""}))
    rows = [(letters(40, 10 + i), ("promoter", "other")[i % 2]) for i in range(40)]
    write(tmp_path / "data.tsv", tsv("sequence label", rows))
    err = run("pretrain a.fa --config c.yaml --threads 1 --out w.safetensors").err
    assert "'empty'" in err
    assert "50 windows, 2000 letters" in err
    assert load_pretrained(tmp_path / "w.safetensors").facts["examples"] == 50

    train = run.to("train --config c.yaml --train data.tsv")
    line = train("--set model.d_model=32 --init w.safetensors --out x.safetensors", status=2).err
    assert all(word in line for word in ("'model.d_model'", "16", "32"))
    assert "used all 40" not in train("--init w.safetensors --out m.safetensors").err
    assert load_model(tmp_path / "m.safetensors").card.members == 1
    # A model is a start, too: fine-tuning.
    assert "used all 40 of these records" in train("--init m.safetensors --out n.safetensors").err
