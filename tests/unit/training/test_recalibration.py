"""Recalibration of random models: the scores that it fits to, windows, contexts, and what it refuses."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from seqray.calibration.fit import Calibration, fit_temperature
from seqray.core.alphabet import DNA
from seqray.core.card import Card
from seqray.core.errors import InputError
from seqray.core.model_config import ModelConfig
from seqray.core.records import LabeledSequence, SequenceRecord
from seqray.inference.sequences import predict_records
from seqray.modelfile.file import build_network
from seqray.modelfile.model import TrainedModel
from seqray.training.partitions import data_sha256
from seqray.training.recalibration import held_out_part, recalibrate, refuse_training_data


def make_model(contexts=(), members=2, **card):
    config = ModelConfig(d_model=8, heads=2, layers=1, dropout=0.0, max_length=20, contexts=contexts)
    networks = []
    with torch.random.fork_rng():
        for seed in range(members):
            torch.manual_seed(seed)
            network = build_network(config)
            with torch.no_grad():
                for parameter in network.parameters():
                    parameter.normal_(0, 0.4)
            networks.append(network)
    names = {"name": "m", "classes": ("a", "b"), "positive": "b", "window": 20}
    return TrainedModel(Card(**names, model=config, members=members, **card), tuple(networks))


def examples(count, seed=0, length=20, **fields):
    rng = np.random.default_rng(seed)
    letters = [DNA.decode(rng.integers(0, 4, length).astype(np.uint8)) for _ in range(count)]
    return [
        LabeledSequence(s, "ab"[int(rng.random() < 0.3)], f"s{i}", **fields) for i, s in enumerate(letters)
    ]


def raw_scores(model, data):
    """Mean log-probabilities of the members, from the networks themselves."""
    tokens = torch.tensor([[1, *(4 + "ACGT".index(x) for x in e.sequence)] for e in data])
    with torch.inference_mode():
        members = [torch.log_softmax(network(tokens).logits.double(), dim=1) for network in model.networks]
    return torch.stack(members).mean(dim=0).numpy()


@pytest.mark.parametrize("start", [{}, {"temperature": 3.0}])
def test_it_fits_to_the_mean_log_probabilities_whatever_the_card_said_before(start):
    model, data = make_model(**start), examples(300)
    labels = np.array([e.label == "b" for e in data]).astype(int)
    card = recalibrate(model, data)
    assert card.temperature == pytest.approx(fit_temperature(raw_scores(model, data), labels), rel=1e-4)
    assert card.prevalence == pytest.approx(labels.mean())
    assert model.card.temperature == start.get("temperature", 1.0)  # the model is as it was


def test_from_isotonic_to_isotonic_is_the_same_as_from_nothing():
    model, data = make_model(), examples(400)
    once = recalibrate(model, data, "isotonic")
    twice = recalibrate(replace(model, card=once), data, "isotonic")
    assert twice.isotonic == once.isotonic
    assert twice.temperature == pytest.approx(once.temperature)
    before = twice.training["calibrated_on"]["log_loss_before"]
    assert before < once.training["calibrated_on"]["log_loss_before"]


def test_predictions_are_what_the_card_promises():
    model, data = make_model(), examples(400)
    card = recalibrate(model, data, "isotonic")
    records = [SequenceRecord(e.id, e.sequence) for e in data]
    predicted = [p.probabilities for p in predict_records(replace(model, card=card), records)]
    np.testing.assert_allclose(
        predicted,
        Calibration.of(card).probabilities(raw_scores(model, data)),
        atol=1e-4,  # a steep step of the map makes rounding larger
    )


def test_flanks_that_training_sequences_carried_are_cut_off():
    model = make_model(training={"config": {"data": {"flank": 3}}})
    plain = examples(200)
    wide = [replace(e, sequence="AAA" + e.sequence + "TTT") for e in plain]
    assert recalibrate(model, wide).temperature == recalibrate(model, plain).temperature
    odd = [*plain[:50], replace(plain[50], sequence="A" * 25)]
    with pytest.raises(InputError, match="record 's50': 25 letters"):
        recalibrate(model, odd)


def test_each_example_is_answered_in_its_context():
    model = make_model(contexts=("x", "y"))
    data = examples(300)
    mixed = [replace(e, context=(None, "x", "y")[i % 3]) for i, e in enumerate(data)]
    labels = np.array([e.label == "b" for e in data]).astype(int)
    p = np.empty((len(data), 2))
    for number, name in enumerate((None, "x", "y")):
        rows = [SequenceRecord(e.id, e.sequence) for e in mixed[number::3]]
        p[number::3] = [a.probabilities for a in predict_records(model.with_context(name), rows)]
    assert recalibrate(model, mixed).temperature == pytest.approx(
        fit_temperature(np.log(p), labels), rel=1e-4
    )
    assert recalibrate(model, data).temperature != recalibrate(model, mixed).temperature
    plain = make_model()
    assert recalibrate(plain, mixed).temperature == recalibrate(plain, data).temperature  # it knows of none


def test_a_window_that_makes_no_token_is_named_with_its_file():
    model, data = make_model(), examples(300, file="a.fa")
    kmers = replace(model, card=replace(model.card, model=replace(model.card.model, tokenizer="kmer", k=3)))
    with pytest.raises(InputError, match=r"b\.fa: record 'odd': 2 letters are too few for 3-mers"):
        recalibrate(kmers, [*data, replace(data[0], id="odd", sequence="AC", file="b.fa")])


def test_held_out_is_what_is_not_marked_as_training():
    data = [
        replace(e, split=s) for e, s in zip(examples(4), ("train", "validation", "test", None), strict=True)
    ]
    assert held_out_part(data) == data[1:3]  # one without a split counts as training beside others
    unmarked = [replace(e, split=None) for e in data]
    assert held_out_part(unmarked) == unmarked
    assert held_out_part(data[:1]) == []


@pytest.mark.parametrize("split", [None, "train", "validation", "test"])
def test_the_training_data_are_known_under_any_split(split):
    data = examples(50)
    card = make_model(training={"data_sha256": data_sha256(data)}).card
    with pytest.raises(InputError, match="trained on"):
        refuse_training_data(card, [replace(e, split=split) for e in data])
    refuse_training_data(card, data[:-1])


def test_the_table_that_names_its_own_parts_is_taken_without_its_training_part():
    data = [replace(e, split="test" if i >= 100 else "train") for i, e in enumerate(examples(300))]
    model = make_model(training={"data_sha256": data_sha256(data)})
    assert recalibrate(model, data).training["calibrated_on"]["examples"] == 200
