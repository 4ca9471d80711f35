"""A classifier on a backbone computes what transformers and a head by hand compute."""

import copy

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModel, AutoTokenizer

from seqray.core.records import SequenceRecord
from seqray.inference.sequences import predict_records

KINDS = ("esm", "kmer", "bpe")
SEQUENCES = {
    "esm": ["MKTAYIAKQRQISFVKSHFSRQLEERLGLIEVQAPILSRV", "GSHMXWW", "ACDEFGHIKLMNPQRSTVWY"],
    "kmer": ["ACGTACGTNACGTACCCGGGTTTAAACGATCGATTAGGCA", "ACGTA", "TTTTTTAAAAAACC"],
    "bpe": ["ACGTACGTNACGTACCCGGGTTTAAACGATCGATTAGGCA", "ACGTA", "TTTTTTAAAAAACC"],
}


def by_hand(model, directory, sequence, encoder=None, pooling="cls"):
    """Probabilities (K,) by the directory's own tokenizer and encoder and a head in numpy."""
    encoder = encoder or AutoModel.from_pretrained(directory)
    encoder.eval()
    inputs = AutoTokenizer.from_pretrained(directory)(sequence, return_tensors="pt")
    with torch.no_grad():
        states = encoder(**inputs).last_hidden_state[0].double().numpy()
    special = AutoTokenizer.from_pretrained(directory).get_special_tokens_mask(
        inputs["input_ids"][0].tolist(), already_has_special_tokens=True
    )
    pooled = states[0] if pooling == "cls" else states[np.array(special) == 0].mean(axis=0)
    head = {name: value.double().numpy() for name, value in model.networks[0].head.state_dict().items()}
    x = (pooled - pooled.mean()) / np.sqrt(pooled.var() + 1e-5) * head["norm.weight"] + head["norm.bias"]
    logits = head["linear.weight"] @ x + head["linear.bias"]
    return np.exp(logits) / np.exp(logits).sum()


def predict(model, sequences, **settings):
    records = [SequenceRecord(str(i), s) for i, s in enumerate(sequences)]
    return np.array([p.probabilities for p in predict_records(model, records, **settings)])


@pytest.mark.parametrize("kind", KINDS)
def test_a_frozen_backbone_gives_what_transformers_gives(kind, on_backbone, backbones):
    model = on_backbone(kind)
    expected = [by_hand(model, backbones[kind], sequence) for sequence in SEQUENCES[kind]]
    assert np.ptp(np.array(expected)[:, 0]) > 0.01
    np.testing.assert_allclose(predict(model, SEQUENCES[kind]), expected, atol=1e-5)


@pytest.mark.parametrize("kind", ["esm", "bpe"])
def test_the_mean_is_over_letters(kind, on_backbone, backbones):
    model, sequences = on_backbone(kind, pooling="mean"), [s.replace("X", "A") for s in SEQUENCES[kind]]
    sequences = [s.replace("N", "A") for s in sequences] if kind == "bpe" else sequences
    expected = [by_hand(model, backbones[kind], s, pooling="mean") for s in sequences]
    np.testing.assert_allclose(predict(model, sequences), expected, atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_adapters_are_a_change_of_query_and_value_matrices(kind, on_backbone, backbones):
    model = on_backbone(kind, "lora", rank=3, alpha=6.0)
    merged = AutoModel.from_pretrained(backbones[kind])
    added = {name.replace("/", "."): value for name, value in model.networks[0].adapters.items()}
    with torch.no_grad():
        for layer in range(2):
            for which in ("query", "value"):
                place = f"encoder.layer.{layer}.attention.self.{which}"
                a, b = (added.pop(f"{place}.lora_{m}.default.weight") for m in "AB")
                merged.get_submodule(place).weight += 6.0 / 3 * b @ a
    assert not added
    expected = [by_hand(model, backbones[kind], sequence, merged) for sequence in SEQUENCES[kind]]
    plain = [by_hand(model, backbones[kind], sequence) for sequence in SEQUENCES[kind]]
    assert np.abs(np.array(expected) - plain).max() > 0.01
    np.testing.assert_allclose(predict(model, SEQUENCES[kind]), expected, atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_padding_and_order_change_nothing(kind, on_backbone):
    model, sequences = on_backbone(kind), SEQUENCES[kind] * 7
    alone = np.concatenate([predict(model, [s]) for s in SEQUENCES[kind]])
    np.testing.assert_allclose(predict(model, sequences, batch_size=16), np.tile(alone, (7, 1)), atol=1e-5)
    turned = predict(model, sequences[::-1], batch_size=5)[::-1]
    np.testing.assert_allclose(turned, np.tile(alone, (7, 1)), atol=1e-5)


@pytest.mark.parametrize("tuning", ["frozen", "lora", "full"])
def test_what_is_trained_is_what_is_saved(tuning, on_backbone, backbones):
    network = on_backbone("bpe", tuning).networks[0]
    trained = {name for name, _ in network.named_parameters()}
    assert trained == set(network.state_dict())
    heads = {"head.norm.weight", "head.norm.bias", "head.linear.weight", "head.linear.bias"}
    whole = {name for name in load_file(backbones["bpe"] / "model.safetensors") if "pooler" not in name}
    expected = {
        "frozen": set(),
        "lora": {
            f"adapters.encoder/layer/{i}/attention/self/{which}/lora_{m}/default/weight"
            for i in range(2)
            for which in ("query", "value")
            for m in "AB"
        },
        "full": {f"adapters.{name.replace('.', '/')}" for name in whole},
    }
    assert trained == heads | expected[tuning]


def test_a_frozen_encoder_records_no_graph(on_backbone):
    network = copy.deepcopy(on_backbone("bpe").networks[0])
    seen = []
    network.encoder.register_forward_hook(lambda *arguments: seen.append(arguments[2].last_hidden_state))
    network(torch.tensor([[2, 21, 14, 3]]))
    assert not seen[0].requires_grad


@pytest.mark.parametrize("tuning", ["frozen", "lora"])
def test_dropout_within_the_encoder_is_for_training_it(tuning, on_backbone):
    network = copy.deepcopy(on_backbone("bpe", tuning).networks[0])
    assert network.encoder.config.hidden_dropout_prob == 0.1
    tokens = torch.tensor([[2, 21, 14, 3]])
    with torch.no_grad():
        quiet = network.encode(tokens)[0]
        network.training = True  # as Lightning puts a part back after validation
        first, second = (network.encode(tokens)[0] for _ in range(2))
        network.training = False
        again = network.encode(tokens)[0]
    assert torch.equal(again, quiet)
    assert torch.equal(first, second) == (tuning == "frozen")
    assert torch.equal(first, quiet) == (tuning == "frozen")
