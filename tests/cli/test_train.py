"""``seqray train``: from files to a model file, its errors, and Ctrl-C."""

from __future__ import annotations

import errno
import json
import random
import signal
import subprocess
import time
from pathlib import Path

import pytest

from seqray.cli.main import main
from seqray.cli.messages import calibration_cautions
from seqray.cli.train_learn import override
from seqray.core.errors import ConfigError
from seqray.core.run_config import RunConfig
from seqray.modelfile.file import load_model_file
from seqray.modelfile.header import read_card
from seqray.models.batches import trainer_device
from seqray.training.module import Classifier

YAML = """
name: toy
model: {d_model: 16, layers: 1, heads: 2, max_length: 64}
data: {window: 40}
optimizer: {batch_size: 32, learning_rate: 3e-3}
trainer: {max_epochs: 2, accelerator: cpu}
"""


@pytest.fixture
def files(tmp_path) -> Path:
    """A configuration, a table, and the same data as FASTA files."""
    rng = random.Random(0)
    examples = {"promoter": [], "background": []}
    for i in range(80):
        letters = "".join(rng.choices("ACGT", k=40))
        examples["background" if i % 2 else "promoter"].append(
            letters if i % 2 else letters[:17] + "TATAAT" + letters[23:]
        )
    rows = [f"{sequence}\t{label}" for label, all_ in examples.items() for sequence in all_]
    (tmp_path / "c.yaml").write_text(YAML)
    (tmp_path / "data.tsv").write_text("\n".join(["sequence\tlabel", *rows]) + "\n")
    for label, sequences in examples.items():
        fasta = "".join(f">{label}{i}\n{s}\n" for i, s in enumerate(sequences))
        (tmp_path / f"{label}.fa").write_text(fasta)
    (tmp_path / "nan.json").write_text('{"test": {"auroc": NaN}}')
    return tmp_path


def train(folder: Path, *words: str, data: tuple[str, ...] | None = None) -> int:
    given = ("--train", str(folder / "data.tsv")) if data is None else data
    out = () if "--out" in words else ("--out", str(folder / "m.safetensors"))
    return main(["train", "--config", str(folder / "c.yaml"), *given, *out, "--threads", "1", *words])


def test_a_table_becomes_a_model_file_and_a_summary(files, capsys):
    assert train(files) == 0
    printed = capsys.readouterr()
    assert printed.out == ""
    lines = printed.err.splitlines()
    model = load_model_file(files / "m.safetensors")
    facts = model.card.training
    n = {part: sum(counts.values()) for part, counts in facts["counts"].items()}
    assert sum(n.values()) == 80
    assert lines[0] == (
        f"trained on {n['train']} sequences of 2 classes; members: 1; parameters of each: "
        f"{facts['parameters']}; best epochs: {facts['best_epochs'][0]}"
    )
    assert lines[1].startswith(f"validation on {n['validation']} sequences: mcc ")
    assert f"threshold {model.card.threshold:.3f}" in lines[1]
    assert lines[2] == (
        f"caution: {n['validation']} held-out sequences are few: these figures may be far off; "
        "'seqray evaluate' gives intervals"
    )
    assert lines[3:-1] == [*calibration_cautions(facts["calibration"]), f"wrote {files / 'm.safetensors'}"]
    assert (files / "m.safetensors.training" / "member-1" / "finished.json").is_file()


def test_a_calibration_that_could_not_be_fitted_is_told():
    facts = {"log_loss_after": 0.7, "log_loss_of_shares": 0.693, "at_bounds": ["temperature", "shift"]}
    poor, cut = calibration_cautions(facts)
    assert "no better than the share of each class, whose log loss is 0.693" in poor
    assert "reached the limit of its range: temperature and shift;" in cut
    assert not list(calibration_cautions(facts | {"log_loss_after": 0.6, "at_bounds": []}))


def test_members_with_parts_of_their_own_are_told(files, capsys):
    """Of 80 sequences each of two networks holds out another tenth: 8, and together 16."""
    assert train(files, "--members", "2", "--set", "data.validation=0.1") == 0
    first, second, *_ = capsys.readouterr().err.splitlines()
    assert first.startswith("each network trained on about 72 sequences of 2 classes; members: 2; ")
    assert second.startswith("validation on 16 sequences (about 8 that each network held out): mcc ")
    rows = (files / "data.tsv").read_text().splitlines()[1:]
    parts = [f"{row}\t{'train' if i % 4 else 'validation'}" for i, row in enumerate(rows)]
    (files / "data.tsv").write_text("\n".join(["sequence\tlabel\tsplit", *parts]) + "\n")
    assert train(files, "--members", "2", "--no-resume") == 0
    first, second, *_ = capsys.readouterr().err.splitlines()
    assert first.startswith("trained on 60 sequences of 2 classes; members: 2; ")
    assert second.startswith("validation on 20 sequences: mcc ")


def test_one_fasta_a_class_gives_the_same_model_as_the_table(files):
    pairs = [f"--class={label}={files / label}.fa" for label in ("promoter", "background")]
    assert train(files, "--work-dir", str(files / "a")) == 0
    first = (files / "m.safetensors").read_bytes()
    assert train(files, "--work-dir", str(files / "b"), data=tuple(pairs)) == 0
    assert (files / "m.safetensors").read_bytes() == first


def test_several_tables_are_put_together(files):
    (files / "more.csv").write_text("label,sequence,split\nbackground," + "ACGT" * 10 + ",train\n")
    tables = ("--train", str(files / "data.tsv"), "--train", str(files / "more.csv"))
    assert train(files, data=tables) == 0
    counts = read_card(files / "m.safetensors").training["counts"]
    assert sum(part["background"] for part in counts.values()) == 41


def test_the_command_line_overrides_the_file_and_figures_reach_the_card(files, capsys):
    figures = {"cv": {"mcc": {"value": 0.8, "low": 0.7, "high": 0.9}}}
    (files / "cv.json").write_text(json.dumps(figures))
    words = [
        "--set",
        "optimizer.ema=0.5",
        "--set",
        "model.stem.kernels=[3, 5]",
        "--seed",
        "7",
        "--members",
        "2",
    ]
    words += ["--metrics", str(files / "cv.json"), "--set", "card.licence=CC0", "--device", "cpu", "--quiet"]
    assert train(files, *words) == 0
    assert capsys.readouterr() == ("", "")
    card = read_card(files / "m.safetensors")
    assert card.training["config"]["optimizer"]["ema"] == 0.5
    assert card.training["seeds"] == [7, 8]
    assert card.model.stem is not None
    assert card.model.stem.kernels == (3, 5)
    assert card.metrics == figures
    assert card.info == {"licence": "CC0"}


def test_overrides_are_read_as_yaml_and_checked():
    changed = override(RunConfig(), ["trainer.max_epochs=3", "stopping.monitor=loss", "data.site=null"])
    assert (changed.trainer, changed.stopping.monitor, changed.data.site) == ({"max_epochs": 3}, "loss", None)
    cases = {
        "optimizer.batchsize=3": "'optimizer.batchsize'; did you mean 'optimizer.batch_size'?",
        "seeds=3": "unknown setting 'seeds'; did you mean 'seed'?",
        "seed.x=3": "'seed' is {'x': 3}; give a whole number",
        "seed": "'--set seed' is not an assignment; write section.key=value",
        ".seed=1": "is not an assignment",
        "seed=[": "the value of '--set seed=[' is not valid YAML",
    }
    for assignment, message in cases.items():
        with pytest.raises(ConfigError) as error:
            override(RunConfig(), [assignment])
        assert message in str(error.value)


def test_devices(monkeypatch):
    with pytest.raises(ConfigError, match=r"the device is 'cuda:3', and [0-3] GPUs are seen here"):
        trainer_device("cuda:3")
    monkeypatch.setattr("torch.cuda.device_count", lambda: 4)
    assert trainer_device("auto") == {}
    assert trainer_device("cpu") == {"accelerator": "cpu", "devices": 1}
    assert trainer_device("cuda") == {"accelerator": "cuda", "devices": 1}
    assert trainer_device("cuda:3") == {"accelerator": "cuda", "devices": [3]}
    for name in ("gpu0", "cuda:", "cuda:x", "cpu:1"):
        with pytest.raises(ConfigError, match="unknown device"):
            trainer_device(name)


@pytest.mark.parametrize(
    ("words", "data", "message"),
    [
        ([], (), "no training data; give --train TABLE, or --class LABEL=FASTA for each class"),
        (["--class", "promoter=p.fa"], None, "both tables and --class are given"),
        ([], ("--class", "promoter"), "'--class promoter' has no file; write --class LABEL=FASTA"),
        ([], ("--class", "=p.fa"), "'--class =p.fa' has no label; write --class LABEL=FASTA"),
        ([], ("--class", "#a=p.fa"), "--class: the label '#a' begins with #, which means something else in"),
        ([], ("--class", "a=x.fa", "--class", "a=y.fa"), "class 'a' is given twice"),
        ([], ("--train", "none.tsv"), "none.tsv"),
        (["--set", "model.dmodel=3"], None, "did you mean 'model.d_model'?"),
        (["--set", "trainer.max_epoch=3"], None, "did you mean 'trainer.max_epochs'?"),
        (["--set", "data.positive=promotor"], None, "no example has the positive class 'promotor'"),
        (
            ["--set", "data.window=20"],
            None,
            "data.tsv: record 'row1': holds 40 letters, more than 'data.window' (20)",
        ),
        (["--members", "9"], None, "'members' must lie between 1 and 5"),
        (["--seed", "-1"], None, "'-1' is not a whole number of 0 or more"),
        (
            ["--set", "optimizer.ema=.inf"],
            None,
            "'optimizer.ema' is inf; give a finite number",
        ),
        (["--threads", "9" * 5000], None, "a number of 5000 digits is above 1024"),
        (["--threads", "0"], None, "'0' is not a whole number of 1 or more"),
        (["--device", "tpu"], None, "unknown device 'tpu'; give auto, cpu, cuda or cuda:N"),
        (["--metrics", "none.json"], None, "none.json: can't be read (No such file or directory)"),
        (["--metrics", "c.yaml"], None, "c.yaml: is not valid JSON"),
        (["--metrics", "nan.json"], None, "nan.json: 'metrics.test.auroc' is nan; give text or a finite"),
        (["--set", "card.made=2001-01-01"], None, "'card.made' is of the type date; give text or a finite"),
        (["--out", "m.pt"], ("--train", "none.tsv"), "error: m.pt: a model file ends in .safetensors; give"),
        (["--out", "no/m.safetensors"], None, "error: no/m.safetensors: can't be written: its folder does"),
    ],
)
def test_what_cannot_be_done_is_one_line_and_leaves_nothing(files, capsys, monkeypatch, words, data, message):
    monkeypatch.chdir(files)
    before = sorted(files.iterdir())
    assert train(files, *words, data=data) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert len(printed.err.splitlines()) == 1
    assert printed.err.startswith("seqray: error: ")
    assert message in printed.err
    assert sorted(files.iterdir()) == before


@pytest.mark.parametrize("option", ["--teacher", "--init"])
def test_a_model_that_is_read_is_not_overwritten(files, capsys, option):
    model = files / "m.safetensors"
    model.write_bytes(b"a model")
    assert train(files, option, str(model)) == 2
    assert "m.safetensors: is an input and would be overwritten" in capsys.readouterr().err
    assert model.read_bytes() == b"a model"


def test_metrics_must_be_an_object(files, capsys):
    (files / "list.json").write_text("[1]")
    assert train(files, "--metrics", str(files / "list.json")) == 2
    assert "list.json: is not a JSON object" in capsys.readouterr().err


def test_relatives_across_a_given_split_are_told(files, capsys):
    rows = (files / "data.tsv").read_text().splitlines()[1:]
    parts = [f"{row}\t{'validation' if i % 4 == 0 else 'train'}" for i, row in enumerate(rows)]
    twins = [rows[0] + "\ttrain", rows[-1] + "\tvalidation"]
    (files / "data.tsv").write_text("\n".join(["sequence\tlabel\tsplit", *parts, *twins]) + "\n")
    assert train(files) == 0
    assert "caution: 2 validation sequences have a relative in training" in capsys.readouterr().err


def test_ctrl_c_says_how_to_resume(files, capsys, monkeypatch):
    before = signal.getsignal(signal.SIGINT)
    with monkeypatch.context() as patch:
        patch.setattr(Classifier, "training_step", _press_ctrl_c)
        assert train(files) == 130
        work_dir = files / "m.safetensors.training"
        message = f"seqray: interrupted; the same command resumes from {work_dir}\n"
        assert capsys.readouterr().err.startswith(message)
        assert train(files, "--no-resume") == 130
        assert "the same command without --no-resume resumes" in capsys.readouterr().err
    assert not (files / "m.safetensors").exists()
    assert train(files) == 0
    assert signal.getsignal(signal.SIGINT) is before


def test_a_full_disk_names_the_folder(files, capsys, monkeypatch):
    """PyTorch raises the error without the name of the file."""

    def fill_disk(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Classifier, "training_step", fill_disk)
    assert train(files) == 2
    folder = files / "m.safetensors.training"
    assert f"error: {folder}: can't be written (No space left on device)\n" in capsys.readouterr().err
    assert not (files / "m.safetensors").exists()


def _press_ctrl_c(*_):
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("number", "status", "word"), [(signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, "terminated")]
)
def test_a_killed_run_resumes_to_the_bytes_of_an_uninterrupted_one(seqray_forks, files, number, status, word):
    """A real signal to a real process, after its first epoch."""
    settings = ["--set", "trainer.max_epochs=40", "--set", "stopping.patience=40", "--quiet"]
    assert train(files, *settings, "--out", str(files / "whole.safetensors")) == 0
    words = ["--config", files / "c.yaml", "--train", files / "data.tsv", "--out", files / "m.safetensors"]
    command = [seqray_forks.folder / "seqray", "train", *map(str, words), "--threads", "1", *settings]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    checkpoint = files / "m.safetensors.training" / "member-1" / "last.ckpt"
    while process.poll() is None and not checkpoint.exists():
        time.sleep(0.01)
    process.send_signal(number)
    _, err = process.communicate(timeout=600)
    assert process.returncode in (status, -number)  # the same to a shell; see test_bad_input.py
    where = files / "m.safetensors.training"
    assert err.startswith(f"seqray: {word}; the same command resumes from {where}\n")
    assert not (files / "m.safetensors").exists()
    assert train(files, *settings) == 0
    assert (files / "m.safetensors").read_bytes() == (files / "whole.safetensors").read_bytes()
