"""Whole runs on made tasks: they learn, resume exactly, and leave an honest model file."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.metrics import matthews_corrcoef

from seqray.calibration.fit import Calibration, cross_fitted
from seqray.core.alphabet import DNA
from seqray.core.errors import SeqrayError
from seqray.core.records import LabeledSequence
from seqray.core.serialization import to_mapping
from seqray.modelfile.file import count_parameters, load_model
from seqray.training import fit
from seqray.training.final_card import held_out_logits
from seqray.training.members import RunOptions, TrainResult
from seqray.training.module import Classifier
from seqray.training.partitions import data_sha256, partition, related_groups
from slow_metrics import calibration_error


def weights_of(result: TrainResult) -> list[dict[str, torch.Tensor]]:
    return [network.state_dict() for network in result.networks]


def same_weights(a: TrainResult, b: TrainResult) -> bool:
    pairs = zip(weights_of(a), weights_of(b), strict=True)
    return all(torch.equal(x[name], y[name]) for x, y in pairs for name in x)


@pytest.fixture
def interrupt(monkeypatch):
    """Make the training steps of these numbers, counted over all runs, raise as Ctrl-C does."""
    original, count = Classifier.training_step, [0]

    def at(*steps: int) -> None:
        def step(self, batch, number):
            count[0] += 1
            if count[0] in steps:
                raise KeyboardInterrupt
            return original(self, batch, number)

        monkeypatch.setattr(Classifier, "training_step", step)

    return at


def test_a_planted_motif_is_learned_and_generalizes(motif_task, make_config, tmp_path):
    config = make_config(
        model={"d_model": 32, "dropout": 0.0, "stem": {"kernels": [7]}},
        trainer={"max_epochs": 6},
        augment={"shift": 2, "mask": 0.02},
        optimizer={"ema": 0.9},
        members=2,
    )
    out = tmp_path / "m.safetensors"
    result = fit.train(config, motif_task(800), out, RunOptions(tmp_path / "w"))
    losses = [row["train_loss"] for row in result.history[0]]
    assert losses[-1] < losses[0] / 3
    fresh = motif_task(300, seed=77)
    model = load_model(out)
    tokens = np.stack([model.tokenizer.encode(e.sequence) for e in fresh])
    p = torch.softmax(torch.from_numpy(model.logits(tokens)), dim=1)[:, model.card.positive_index].numpy()
    truth = np.array([e.label == "promoter" for e in fresh])
    assert matthews_corrcoef(truth, p >= model.card.threshold) > 0.9
    assert result.validation["mcc"] > 0.9


def test_the_card_says_what_was_done(motif_task, make_config, tmp_path):
    config = make_config(
        name="toy", summary="a toy", card={"licence": "MIT"}, data={"site": 20}, seed=5, members=2
    )
    data, out = motif_task(100), tmp_path / "m.safetensors"
    result = fit.train(config, data, out, RunOptions(tmp_path / "w"), metrics={"cv": {"mcc": 0.5}})
    card = load_model(out).card
    assert card == result.card
    assert (card.name, card.summary, card.info, card.site) == ("toy", "a toy", {"licence": "MIT"}, 20)
    assert (card.classes, card.positive, card.members) == (("background", "promoter"), "promoter", 2)
    assert card.metrics == {"cv": {"mcc": 0.5}}
    assert card.domain.length == (40, 40)
    facts = card.training
    assert facts["seeds"] == [5, 6]
    assert facts["config"]["optimizer"] == to_mapping(config)["optimizer"]
    assert facts["data_sha256"] == data_sha256(data)
    assert facts["parameters"] == count_parameters(result.networks[0])
    assert facts["counts"] == partition(data, config).counts()
    assert set(facts["versions"]) == {"seqray", "torch", "lightning"}
    assert facts["validation"]["mcc"] == pytest.approx(result.validation["mcc"], rel=1e-5)


def test_calibration_is_that_of_the_averaged_members(motif_task, make_config, tmp_path):
    """Where the data name the validation part, so that all members share it."""
    data = [replace(e, split="train" if i < 400 else "validation") for i, e in enumerate(motif_task(600))]
    config = make_config(
        model={"d_model": 32, "stem": {"kernels": [7]}}, trainer={"max_epochs": 4}, members=2
    )
    result = fit.train(config, data, None, RunOptions(tmp_path))
    rows = partition(data, config).validation
    tokens = torch.tensor([[1] + ["ACGT".index(x) + 4 for x in data[i].sequence] for i in rows])
    with torch.inference_mode():
        mean = sum(torch.log_softmax(n(tokens).logits, 1) for n in result.networks) / 2
    labels = torch.tensor([data[i].label == "promoter" for i in rows]).long()

    targets = torch.tensor([[401 / 402, 1 / 402], [1 / 402, 401 / 402]])[labels]  # of 100 and a quarter

    def nll(temperature, truth=labels):
        return torch.nn.functional.cross_entropy(mean / temperature, truth).item()

    best = result.card.temperature
    assert nll(best, targets) <= min(nll(best * 1.02, targets), nll(best / 1.02, targets)) + 1e-7
    assert result.validation["loss"] == pytest.approx(nll(best), rel=1e-4)
    assert result.card.prevalence == pytest.approx(labels.float().mean().item())


@pytest.mark.parametrize("precision", ["32-true", "bf16-mixed"])
def test_an_interrupted_run_resumes_to_the_same_model(
    motif_task, make_config, tmp_path, interrupt, precision
):
    """Interrupted in the first epoch, in the second, and in the second member; asked for 1 and 2 threads."""
    config = make_config(
        trainer={"max_epochs": 3, "precision": precision},
        augment={"shift": 2, "mask": 0.05},
        optimizer={"ema": 0.9},
        members=2,
    )
    data = motif_task(110)  # 94 in training: three steps an epoch
    whole = fit.train(config, data, None, RunOptions(tmp_path / "whole", threads=1))
    interrupt(2, 2 + 5, 2 + 5 + 6 + 5)
    notes: list[str] = []
    for threads in (1, 2, 1):
        with pytest.raises(KeyboardInterrupt):
            fit.train(config, data, None, RunOptions(tmp_path / "parts", threads=threads, note=notes.append))
    resumed = fit.train(config, data, None, RunOptions(tmp_path / "parts", threads=2, note=notes.append))
    parts = tmp_path / "parts"
    began = (
        f"the training in {parts} began with 1 thread and goes on so, not with 2: others give other weights"
    )
    resumes = [
        f"resumes from {parts}: {n - 1} of 2 networks finished, network {n} goes on from epoch 2"
        for n in (1, 2)
    ]
    assert notes == [began, resumes[0], began, resumes[1]]
    assert [len(history) for history in resumed.history] == [3, 3]
    assert resumed.history == whole.history
    assert same_weights(resumed, whole)
    assert resumed.card == whole.card


def test_a_run_that_stopped_early_stays_stopped(motif_task, make_config, tmp_path, interrupt):
    """The process may die between the last epoch and the mark that the member is finished."""
    config = make_config(
        trainer={"max_epochs": 50}, stopping={"patience": 1}, optimizer={"learning_rate": 1e-7}
    )
    data = motif_task(60)
    first = fit.train(config, data, None, RunOptions(tmp_path))
    assert len(first.history[0]) < 10
    (tmp_path / "member-1" / "finished.json").unlink()
    interrupt(1)
    again = fit.train(config, data, None, RunOptions(tmp_path))
    assert again.history == first.history
    assert same_weights(first, again)


def test_the_best_epoch_is_kept(motif_task, make_config, tmp_path):
    data = motif_task(150)
    for monitor, sign in (("loss", -1), ("auprc", 1)):
        config = make_config(stopping={"monitor": monitor}, trainer={"max_epochs": 5})
        result = fit.train(config, data, None, RunOptions(tmp_path / monitor))
        history = result.history[0]
        best = max(history, key=lambda row: (sign * row[monitor], -row["loss"]))
        assert result.card.training["best_epochs"] == [best["epoch"]]
        # Undo the temperature: one member's own loss on validation is that of the best epoch.
        model_loss = _uncalibrated_loss(result, data, config)
        assert model_loss == pytest.approx(best["loss"], rel=1e-4)


def test_of_epochs_that_rank_perfectly_the_surest_is_kept(make_config, tmp_path):
    rng = np.random.default_rng(0)
    data = [
        LabeledSequence("AC"[i % 2] * 20 + "".join(rng.choice(list("ACGT"), 20)), label, f"s{i}")
        for i, label in enumerate(["promoter", "background"] * 60)
    ]
    config = make_config(stopping={"monitor": "auprc", "patience": 9}, trainer={"max_epochs": 6})
    result = fit.train(config, data, None, RunOptions(tmp_path))
    perfect = [row for row in result.history[0] if row["auprc"] == 1]
    assert len(perfect) > 1
    surest = min(perfect, key=lambda row: row["loss"])
    assert result.card.training["best_epochs"] == [surest["epoch"]] != [perfect[0]["epoch"]]
    assert _uncalibrated_loss(result, data, config) == pytest.approx(surest["loss"], rel=1e-4)


def _uncalibrated_loss(result, data, config) -> float:
    rows = partition(data, config).validation
    tokens = torch.tensor([[1] + ["ACGT".index(x) + 4 for x in data[i].sequence] for i in rows])
    labels = torch.tensor([data[i].label == "promoter" for i in rows]).long()
    with torch.inference_mode():
        return torch.nn.functional.cross_entropy(result.networks[0](tokens).logits, labels).item()


def test_balanced_weights_undo_the_share_of_a_class(make_config):
    balanced = make_config(optimizer={"class_weights": "balanced"})
    labels = np.array([0] * 30 + [1] * 10)
    weights = fit.class_weights(labels, balanced)
    assert weights is not None
    assert weights == pytest.approx([40 / 60, 2.0])
    assert weights[labels].mean() == pytest.approx(1.0)
    half = fit.class_weights(labels, make_config(optimizer={"class_weights": "root"}))
    assert half is not None
    assert half[1] / half[0] == pytest.approx(3**0.5)
    assert half[labels].mean() == pytest.approx(1.0)
    assert fit.class_weights(labels, make_config()) is None


def test_margins_are_logs_of_shares(motif_task, make_config, monkeypatch):
    modules = []
    monkeypatch.setattr(fit, "fit_member", lambda *args, **more: modules.append(args[3](1)[0]))
    data = [replace(one, split="train") for one in [*motif_task(40), *motif_task(40)[::2]]]
    data += [replace(one, split="validation") for one in motif_task(10, seed=1)]
    for share in (2.0, 0.0):
        config = make_config(optimizer={"logit_adjustment": share})
        fit.train_member(config, 1, data, partition(data, config), None)
    assert modules[0].margins.exp().tolist() == pytest.approx([(2 / 3) ** 2, (1 / 3) ** 2])
    assert modules[1].margins is None


def test_divergence_is_an_error_that_names_a_remedy(motif_task, make_config, tmp_path, monkeypatch):
    monkeypatch.setattr(
        Classifier, "training_step", lambda self, batch, _: self.network(batch.tokens).logits.sum() * math.nan
    )
    with pytest.raises(SeqrayError, match="training diverged in epoch 1; lower"):
        fit.train(make_config(), motif_task(40), tmp_path / "m.safetensors", RunOptions(tmp_path / "w"))
    assert not (tmp_path / "m.safetensors").exists()


def test_a_run_is_silent_and_its_files_are_plain(motif_task, make_config, tmp_path, capfd, recwarn):
    fit.train(make_config(), motif_task(40), None, RunOptions(tmp_path))
    assert capfd.readouterr() == ("", "")
    assert [str(w.message) for w in recwarn if issubclass(w.category, UserWarning)] == []
    mark = json.loads((tmp_path / "member-1" / "finished.json").read_text())
    assert set(mark) == {"seed", "best_epoch", "history", "seconds"}
    torch.load(tmp_path / "member-1" / "last.ckpt", weights_only=True)
    table = next((tmp_path / "member-1" / "log").rglob("metrics.csv")).read_text()
    assert "validation_mcc" in table.splitlines()[0]


def test_the_card_tells_the_error_before_and_after(motif_task, make_config, tmp_path):
    data, config = motif_task(300), make_config(members=2, trainer={"max_epochs": 4})
    result = fit.train(config, data, None, RunOptions(tmp_path))
    card, facts = result.card, result.card.training["calibration"]
    part = partition(data, config)
    raw = held_out_logits(replace(card, temperature=1.0), result.networks, data, part, config)
    rows, labels = part.validation, part.labels[part.validation]
    assert (facts["method"], facts["examples"]) == ("temperature", len(rows))
    fair = cross_fitted(raw, labels, related_groups([data[i] for i in rows], DNA), 1, "temperature")
    assert fair is not None
    assert card.ece == pytest.approx(calibration_error(fair[:, 1], labels))
    assert result.validation["ece"] == card.ece
    p = np.exp(raw) / np.exp(raw).sum(axis=1, keepdims=True)
    assert facts["ece_before"] == pytest.approx(calibration_error(p[:, 1], labels), rel=1e-4)
    assert [ranks.n for ranks in card.conformal.values()] == np.bincount(labels).tolist()
    assert card.domain.chain.order >= 3


def test_isotonic_on_request_with_the_weights_of_the_same_run(motif_task, make_config, tmp_path):
    data, config = motif_task(300), make_config(trainer={"max_epochs": 4})
    plain = fit.train(config, data, tmp_path / "a.safetensors", RunOptions(tmp_path / "w"))
    config = replace(config, calibration=replace(config.calibration, method="isotonic"))
    bent = fit.train(
        config, data, tmp_path / "b.safetensors", RunOptions(tmp_path / "w")
    )  # not trained again
    card = load_model(tmp_path / "b.safetensors").card
    assert card == bent.card
    assert card.format == 2
    assert card.training["calibration"]["method"] == "isotonic"
    assert card.temperature == plain.card.temperature
    found = Calibration.of(card)
    assert found.isotonic is not None
    assert bent.validation["auroc"] == pytest.approx(plain.validation["auroc"])  # order is kept
