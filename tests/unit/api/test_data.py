"""The verbs of labeled data give what the commands give, from data in memory; networks of users."""

import json
import warnings
from functools import partial

import lightning
import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

import seqray
from seqray.cli.main import main
from seqray.core.errors import InputError
from seqray.explanations.sequences import check
from seqray.modelfile import file

QUICK = {
    "trainer.max_epochs": 2,
    "data.positive": "yes",
    "model.d_model": 8,
    "model.d_ff": 8,
    "model.heads": 2,
}
HOW = {"members": 1, "device": "cpu", "threads": 1, "seed": 3}


@pytest.fixture(scope="module")
def data():
    """Sequences of which the positive ones have more T, in runs that differ."""
    letters = ("ACGCAGGCCA", "TTGTTATTCT")
    return [
        seqray.LabeledSequence(
            letters[i % 2] * 2 + "ACGT"[i % 4] * (i // 4 + 1), ("no", "yes")[i % 2], str(i)
        )
        for i in range(60)
    ]


def weights(model) -> dict[str, torch.Tensor]:
    return model.networks[0].state_dict()


def test_frames_tables_and_examples_give_the_model_of_the_command(data, tmp_path):
    frame = pd.DataFrame([[one.sequence, one.label] for one in data], columns=["Seq", "class"])
    table, names = tmp_path / "t.csv", {"sequence": "seq", "label": "class"}
    frame.to_csv(table, index=False)
    out, sets = tmp_path / "by-command.safetensors", [f"--set={key}={value}" for key, value in QUICK.items()]
    words = f"train --train {table} --columns sequence=seq,label=class --out {out} --members 1 --seed 3"
    assert main([*words.split(), *sets, "--device", "cpu", "--threads", "1", "-q"]) == 0
    expected = weights(seqray.load_model(out))
    for given, columns in ((frame, names), (table, names), (data, None)):
        model = seqray.train(given, tmp_path / "m.safetensors", columns=columns, set=QUICK, **HOW)
        found = weights(model)
        assert all(torch.equal(value, found[name]) for name, value in expected.items())
        assert model.sha256 == seqray.load_model(tmp_path / "m.safetensors").sha256


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """Random sequences with a copy, each of a gene that two share, as a frame and as a file.

    The promoters are in lower case, and some cells have spaces around them.
    """
    rng = np.random.default_rng(0)
    texts = ["".join(rng.choice(list("ACGT" if i % 2 else "acgt"), 81)) for i in range(60)]
    texts[-1] = f"{texts[0].upper()} "
    frame = pd.DataFrame({"seq": texts, "class": ["promoter", "background"] * 30})
    frame["gene"] = [f" g{i // 2}" for i in range(60)]
    path = tmp_path_factory.mktemp("data") / "t.csv"
    frame.to_csv(path, index=False)
    return frame, path


COLUMNS = {"sequence": "seq", "label": "class"}
NAMED = "--columns sequence=seq,label=class"


def command(words: str, out) -> pd.DataFrame:
    assert main([*f"{words} --out {out}".split(), "-q"]) == 0
    return pd.read_csv(out, sep="\t", comment="#", dtype=str, keep_default_na=False)


def test_a_split_is_that_of_the_command(table, tmp_path):
    frame, path = table
    written = command(f"split {path} {NAMED} --group-by gene --seed 1", tmp_path / "s.tsv")
    for data in (frame, path):
        divided = seqray.split(data, columns=COLUMNS, group_by=["gene"], seed=1)
        for name in ("sequence", "label", "id", "group", "split"):
            assert divided[name].tolist() == written[name].tolist()
    assert divided.attrs["proof"][0]["above"] == 0
    written = command(f"split {path} {NAMED} --folds 3", tmp_path / "f.tsv")
    assert seqray.split(frame, columns=COLUMNS, folds=3).fold.astype(str).tolist() == written.fold.tolist()
    named = seqray.split(frame.set_index(frame.index + 100), columns=COLUMNS, seed=1)
    assert named.index.tolist() == [*range(100, 160)]
    assert named.gene.tolist() == frame.gene.tolist()
    assert not {"seq", "class"} & {*named.columns}


def test_all_records_of_other_letters_are_named_at_once():
    data = [("MKTAYIAKQRQISFVKWW" * 3, "ab"[i % 2]) for i in range(6)] + [("ACGTACGTTTGACCA" * 3, "a")] * 3
    with pytest.raises(
        InputError, match=r"record 'row7': looks like nucleotides.*so do 'row8', 'row9'; most"
    ):
        seqray.audit(pd.DataFrame(data, columns=["sequence", "label"]))


def test_an_audit_is_that_of_the_command(table, tmp_path):
    written = command(f"audit {table[1]} {NAMED} --no-baselines", tmp_path / "a.tsv")
    found = [seqray.audit(data, columns=COLUMNS, baselines=False) for data in table]
    assert found[0].findings == found[1].findings
    assert any(
        "lower-case letters alone predicts the class: AUROC 1.000" in f.what for f in found[0].findings
    )
    kinds = [f"{one.severity} {one.kind}" for one in found[0].findings]
    assert repr(found[0]).startswith(f"Audit({len(kinds)} findings: {kinds[0]}, {kinds[1]}")
    assert len(repr(found[0])) < 200
    assert len(written)


def test_negatives_are_those_of_the_command(table, tmp_path):
    positives = {f"p{i}": text for i, text in enumerate(table[0].seq[:9])}
    (tmp_path / "p.fa").write_text("".join(f">{name}\n{text}\n" for name, text in positives.items()))
    words = f"negatives {tmp_path / 'p.fa'} --recipe shuffle --recipe substitution --ratio 2 --seed 4"
    written = command(words, tmp_path / "n.tsv")
    made = seqray.negatives(positives, ["shuffle", "substitution"], ratio=2, seed=4)
    for name in ("sequence", "label", "id", "group", "subclass"):
        assert made[name].fillna("").tolist() == written[name].tolist()


def test_negatives_are_made_for_the_rows_of_the_positive_label_as_by_the_command(table, tmp_path):
    frame, path = table
    words = (
        f"negatives {path} {NAMED} --recipe shuffle --label-positive background --label-negative no --seed 2"
    )
    written = command(words, tmp_path / "n.tsv")
    for data in (frame, path):
        with pytest.warns(UserWarning, match="caution: rows of other labels .* left out: 30 'promoter'"):
            made = seqray.negatives(data, positive="background", label="no", columns=COLUMNS, seed=2)
        assert made.label.value_counts().to_dict() == {"background": 30, "no": 30}
        for name in ("sequence", "label", "id", "group"):
            assert made[name].tolist() == written[name].tolist()
        with pytest.raises(
            InputError, match=r"no row labeled 'yes'.*with positive=...: background, promoter"
        ):
            seqray.negatives(data, positive="yes", columns=COLUMNS)
    unlabeled = seqray.negatives(frame[["seq"]].head(3), columns={"sequence": "seq"})
    assert unlabeled.label.tolist() == ["promoter"] * 3 + ["background"] * 3
    with pytest.raises(seqray.ConfigError, match="'label' must not be that of the positives"):
        seqray.negatives(frame, label="promoter", columns=COLUMNS)


@pytest.mark.parametrize("group", [{}, {"group": "gene"}])
def test_figures_and_intervals_are_those_of_the_command(table, tmp_path, group):
    frame, path = table
    words = f"evaluate --model ecoli-promoter --test {path} {NAMED}{',group=gene' if group else ''}"
    written = command(f"{words} --bootstrap 20 --seed 2", tmp_path / "e.tsv").query("subset == 'all'")
    how = {"bootstrap": 20, "seed": 2}
    found = seqray.evaluate("ecoli-promoter", frame, columns=COLUMNS | group, baseline=True, **how)
    joined = found.merge(written, on=["source", "class", "metric"], suffixes=("", "_written"))
    assert len(joined) == len(found)
    for name in ("value", "low", "high", "groups"):
        shown = pd.to_numeric(joined[f"{name}_written"], errors="coerce")
        assert joined[name].tolist() == pytest.approx(shown.tolist(), rel=1e-5, nan_ok=True)
    labels, own = frame["class"].tolist(), frame.gene.tolist() if group else None
    plain = seqray.evaluate("ecoli-promoter", frame.seq.tolist(), labels, groups=own, **how)
    for name in ("value", "low", "high"):
        assert plain[name].tolist() == pytest.approx(found[name][: len(plain)].tolist(), nan_ok=True)


def test_an_evaluation_warns_of_records_that_training_used(data, tmp_path):
    model = seqray.train(data, tmp_path / "m.safetensors", set=QUICK, **HOW)
    pd.DataFrame([[one.sequence, one.label] for one in data], columns=["sequence", "label"]).to_csv(
        tmp_path / "t.csv", index=False
    )
    words = f"evaluate --model {tmp_path / 'm.safetensors'} --test {tmp_path / 't.csv'} --bootstrap 0"
    assert (
        main([*words.split(), "--json", str(tmp_path / "e.json"), "-o", str(tmp_path / "e.tsv"), "-q"]) == 0
    )
    [note] = [one for one in json.loads((tmp_path / "e.json").read_text())["notes"] if "training used" in one]
    texts, labels = [one.sequence for one in data], [one.label for one in data]
    with pytest.warns(UserWarning, match="caution: the model's training used these data: the figures show"):
        seqray.evaluate(model, data, bootstrap=0)
    with pytest.warns(UserWarning, match="caution: against: the model's training used"):
        figures = seqray.evaluate(model, texts, labels, bootstrap=0, against=model)
    assert f"caution: {note}" in figures.attrs["findings"]
    new = [text[::-1] + "GATTACA" for text in texts]
    assert "training used" not in str(seqray.evaluate(model, new, labels, bootstrap=0).attrs["findings"])


def test_baselines_learn_from_the_part_train_of_the_data_given(table):
    """A frame that names its parts must not teach them the records that are measured."""
    frame, _ = table
    frame = frame.assign(split=["train", "train", "test"] * (len(frame) // 3) + ["train"] * (len(frame) % 3))
    own, part = (
        seqray.evaluate("ecoli-promoter", frame, columns=COLUMNS, bootstrap=0, train=given)
        for given in (frame, frame[frame.split == "train"])
    )
    assert own.source.nunique() > 1
    pd.testing.assert_frame_equal(own, part)
    # In any order, and from the frame itself: a forest must not depend on where its rows stand.
    turned = frame[frame.split == "train"].iloc[::-1].reset_index(drop=True)
    for how in ({"train": turned}, {"baseline": True}):
        found = seqray.evaluate("ecoli-promoter", frame, columns=COLUMNS, bootstrap=0, **how)
        pd.testing.assert_frame_equal(own, found)


def test_an_evaluation_is_shown_in_a_line():
    scores = [0.9, 0.2, 0.6, 0.8] * 500
    found = seqray.evaluate_scores(["a", "b", "b", "a"] * 500, scores, ["a", "b"], "a", draws=0)
    assert repr(found).startswith(f"Evaluation(2000 records, {len(found.figures)} figures: ")
    assert len(repr(found)) < 200


def test_a_part_is_measured_against_other_predictions_as_by_the_command(table, tmp_path):
    frame, _ = table
    frame = frame.assign(
        split=["test" if i % 4 < 2 else "train" for i in range(len(frame))],
        id=range(len(frame)),
        context=["Escherichia coli K-12 MG1655", "Bacillus subtilis 168"] * (len(frame) // 2),
    )
    frame.to_csv(tmp_path / "parts.tsv", sep="\t", index=False)
    words = f"evaluate --model bacteria-promoter --train {tmp_path / 'parts.tsv'} {NAMED} --bootstrap 0"
    written = command(f"{words} --no-floor --against ecoli-promoter", tmp_path / "e.tsv")
    key = ["source", "subset", "class", "metric"]
    expected = written.set_index(key).value
    other = seqray.predict("ecoli-promoter", dict(zip(frame.id.astype(str), frame.seq, strict=True)))
    for against in ("ecoli-promoter", other, other.sample(frac=1, random_state=1)):
        found = seqray.evaluate("bacteria-promoter", frame, columns=COLUMNS, bootstrap=0, against=against)
        figures = found.set_index(key).value
        assert len(figures) == len(expected)
        shown = pd.to_numeric(expected.loc[figures.index], errors="coerce")
        assert figures.tolist() == pytest.approx(shown.tolist(), rel=1e-5, nan_ok=True)
    with pytest.raises(InputError, match="no row of '1'"):
        seqray.evaluate("bacteria-promoter", frame, columns=COLUMNS, against=other.iloc[::2])
    with pytest.raises(InputError, match="no column 'p_background'"):
        seqray.evaluate("bacteria-promoter", frame, columns=COLUMNS, against=other[["id", "label"]])


def test_callbacks_see_each_epoch_and_a_run_is_kept_where_asked(data, tmp_path):
    class Epochs(lightning.Callback):
        seen = 0

        def on_train_epoch_end(self, trainer, pl_module):
            self.seen += 1

    epochs = Epochs()
    more = {"trainer.callbacks": {"LearningRateMonitor": {"logging_interval": "epoch"}}}
    seqray.train(data, set=QUICK | more, callbacks=[epochs], work_dir=tmp_path / "run", **HOW)
    with pytest.raises(seqray.ConfigError, match="'LearningRateMonitor' is no callback"):
        seqray.train(data, set=QUICK, callbacks=["LearningRateMonitor"], **HOW)
    assert epochs.seen == 2
    log = pd.read_csv(next((tmp_path / "run").glob("member-1/log/*/metrics.csv")))
    assert any(name.startswith("lr-") for name in log.columns)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, "the positive class is not known; give set={'data.positive': 'a or b'}"),
        ({"config": "x.yaml", "like": "y"}, "both config=... and like=... are given"),
        ({"like": "bacteria-genome"}, "no genome with sites is given; give genome=... and sites=..."),
    ],
)
def test_remedies_name_arguments(settings, message):
    data = [seqray.LabeledSequence("ACGT" * (i + 1), "ab"[i % 2], str(i)) for i in range(8)]
    with pytest.raises((seqray.ConfigError, seqray.InputError)) as error:
        seqray.train(data, **settings)
    assert message in str(error.value)


class Small(nn.Module):
    """A network that seqray does not know."""

    def __init__(self, config, tokens: int) -> None:
        super().__init__()
        self.letters = nn.Embedding(tokens, 8)
        layer = nn.TransformerEncoderLayer(8, 2, 8, batch_first=True, dropout=0.0)
        self.encoder = nn.TransformerEncoder(layer, 1)
        self.out = nn.Linear(8, config.classes)

    def forward(self, tokens):
        return self.out(self.encoder(self.letters(tokens), src_key_padding_mask=tokens == 0)[:, 0])


class Mean(Small):
    """The same, which reads the mean of the tokens."""

    def forward(self, tokens):
        states = self.encoder(self.letters(tokens), src_key_padding_mask=tokens == 0)
        real = (tokens != 0).float()
        return self.out((states * real[..., None]).sum(1) / real.sum(1, keepdim=True))


class Stating(Mean):
    """The same, which says so."""

    def tokens_read(self, tokens):
        return tokens != 0


def test_rollout_explains_the_tokens_that_an_own_network_reads_or_warns(data):
    explained = {}
    for network in (Mean, Stating):
        seqray.register_network("mean", network)
        own = {"model.kind": "own", "model.network": "mean", "trainer.max_epochs": 1, "data.positive": "yes"}
        own["trainer.precision"] = "bf16-mixed"  # in which the nested tensors of torch fail
        model = seqray.train(data[:20], set=own, **HOW)
        record = {"x": data[1].sequence}
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            frame = seqray.explain(model, record, "rollout", shuffles=0)
            seqray.explain(model, record, "grad-rollout", shuffles=0)
        assert [str(one.message) for one in caught] == frame.attrs["findings"]
        assert ["method 'tokens_read'" in one for one in frame.attrs["findings"]] == [True] * (
            network is Mean
        )
        explained[network] = frame.sort_values("position").score.to_numpy()
    tokens = torch.from_numpy(model.tokenizer.encode(data[1].sequence))[None]
    traced = seqray.trace(model.networks[0].module, tokens)
    by_token = seqray.rollout(traced, query=torch.ones(tokens.shape[1]))[0, 1:].numpy()
    assert explained[Stating] == pytest.approx(by_token / by_token.sum(), rel=1e-4)
    assert explained[Mean] != pytest.approx(explained[Stating], rel=1e-2)
    unstated = type("Unstated", (Mean,), {})(model.card.model, 9)
    model.networks[0].module = unstated
    with pytest.warns(UserWarning, match="reads other tokens"):
        check(model, [seqray.SequenceRecord("x", data[1].sequence)], seqray.ExplainOptions(effects=False))


class Counting(nn.Module):
    """Shares of the tokens: no attention, and an embedding on request."""

    def __init__(self, config, tokens: int, embeds: bool) -> None:
        super().__init__()
        self.tokens = tokens
        self.letters = nn.Embedding(tokens, tokens) if embeds else None
        self.out = nn.Linear(tokens, config.classes)

    def forward(self, tokens):
        table = self.letters or partial(nn.functional.one_hot, num_classes=self.tokens)
        return self.out((table(tokens) * (tokens > 0)[..., None]).float().mean(1))


@pytest.mark.parametrize(
    ("embeds", "refused", "words"),
    [
        (True, ("rollout", "grad-rollout"), "no attention was seen in network 'counting'; use ism or in"),
        (False, ("rollout", "input-x-gradient", "integrated-gradients"), "network 'counting' has no nn.Emb"),
    ],
)
def test_what_an_own_network_lacks_for_a_method_is_said_in_one_line(data, embeds, refused, words):
    seqray.register_network("counting", partial(Counting, embeds=embeds))
    own = {"model.kind": "own", "model.network": "counting", "trainer.max_epochs": 1}
    model = seqray.train(data[:20], set=own | {"data.positive": "yes"}, **HOW)
    for method in refused:
        with pytest.raises(seqray.ConfigError, match=words):
            seqray.explain(model, {"x": data[1].sequence}, method, shuffles=0)
    allowed = ["ism", "occlusion", *["input-x-gradient"] * embeds]
    assert seqray.explain(model, {"x": data[1].sequence}, allowed, shuffles=0).score.abs().sum() > 0


def test_a_training_warns_as_the_command_cautions(data, tmp_path, capsys):
    sets = {"trainer.max_epochs": 1, "data.positive": "yes"}
    frame = pd.DataFrame([[one.sequence, one.label] for one in data], columns=["sequence", "label"])
    frame.to_csv(tmp_path / "t.csv", index=False)
    words = f"train --train {tmp_path / 't.csv'} --out {tmp_path / 'm.safetensors'} --members 1 --seed 3"
    words += " --device cpu --threads 1" + "".join(f" --set {key}={value}" for key, value in sets.items())
    assert main(words.split()) == 0
    said = [line.partition("caution: ")[2] for line in capsys.readouterr().err.splitlines()]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = seqray.train(frame, set=sets, **HOW)
    warned = [str(one.message).partition("caution: ")[2] for one in caught]
    in_python = [line.replace("'seqray evaluate'", "seqray.evaluate") for line in said if line]
    assert [line.replace("'seqray split'", "seqray.split") for line in in_python] == list(
        filter(None, warned)
    )
    assert "held-out sequences are few" in warned[0]
    assert "networks add nothing to the baseline" in warned[-1]  # the share of T tells the class
    auroc = model.card.training["floor"]["linear"]["auroc"]
    assert f"(its linear baseline alone: {auroc:.2f})" in repr(model)
    linear = seqray.explain(model, {"x": data[0].sequence}, ["rollout", "linear"], shuffles=0)
    [finding] = linear.attrs["findings"]
    assert "by a linear part (method='linear'), and rollout can't show that part" in finding


def test_an_own_network_is_trained_loaded_and_explained(data, tmp_path):
    seqray.register_network("small", Small)
    own = {"model.kind": "own", "model.network": "small", "trainer.max_epochs": 20, "data.positive": "yes"}
    path = tmp_path / "own.safetensors"
    model = seqray.train(data, path, set=own | {"optimizer.learning_rate": 0.02}, **HOW)
    frame = seqray.predict(path, [one.sequence for one in data])
    assert (frame.label == [one.label for one in data]).mean() > 0.9
    alone = seqray.predict(model, [data[0].sequence])  # padding beside others changes nothing
    assert alone.p_yes[0] == pytest.approx(frame.p_yes[0], abs=1e-6)
    record = {"x": data[1].sequence}
    tokens = torch.from_numpy(model.tokenizer.encode(data[1].sequence))[None]
    traced = seqray.trace(model.networks[0].module, tokens)
    by_token = seqray.rollout(traced)[0, 1:]
    letters = seqray.explain(model, record, "rollout", shuffles=0).sort_values("position")
    assert letters.score.tolist() == pytest.approx((by_token / by_token.sum()).tolist(), rel=1e-4)
    module = model.networks[0].module
    vectors = module.letters(tokens).detach().requires_grad_()
    logits = module.out(module.encoder(vectors)[:, 0])[0] / model.card.temperature
    [slope] = torch.autograd.grad(logits[1] - logits[0], vectors)
    of_letters = ((vectors - module.letters.weight[4:].mean(dim=0)) * slope)[0, 1:].sum(dim=-1)
    found = seqray.explain(model, record, "input-x-gradient", shuffles=0).sort_values("position")
    assert found.score.tolist() == pytest.approx(of_letters.tolist(), rel=1e-3, abs=1e-5)

    del file._OWN["small"]
    with pytest.raises(seqray.ConfigError, match=r"no network 'small' is registered; call seqray\.register_"):
        seqray.load_model(path)
