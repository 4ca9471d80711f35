"""Explanations on a backbone, against transformers' own attention, plain loops and gradients by hand."""

import numpy as np
import pytest
import torch
from transformers import AutoModel, AutoTokenizer

from seqray.core.errors import ConfigError
from seqray.core.records import SequenceRecord
from seqray.explanations.methods import METHODS
from seqray.explanations.options import ExplainOptions, MethodSettings
from seqray.explanations.sequences import check, explain_records, heads
from seqray.explanations.targets import SequenceTarget

SEQUENCES = {"esm": "MKTAYIAKQRQISFVKSHFS", "kmer": "ACGTACGTACGTACCNGGTT", "bpe": "ACGTACGTACGTACCNGGTT"}
# Letters of each token, special ones left out: words of six letters and single ones around an N.
SPANS = {
    "esm": [(i, i + 1) for i in range(20)],
    "kmer": [(0, 6), (6, 12), *((i, i + 1) for i in range(12, 20))],
}


def scores(model, sequence, method, target=1, **knobs):
    codes = model.alphabet.encode(sequence)[None]
    question = SequenceTarget(model, model.networks[0], target)
    return METHODS[method].score(question, codes, MethodSettings(**knobs))[0]


def spans_of(kind, directory):
    if kind in SPANS:
        return SPANS[kind]
    words = AutoTokenizer.from_pretrained(directory)
    return words(SEQUENCES[kind], return_offsets_mapping=True)["offset_mapping"][1:-1]


def to_letters(row, spans):
    """Spread (L,) scores evenly, CLS in front and the end, if any, left out."""
    letters = np.zeros(20)
    for value, (start, end) in zip(row[1:], spans, strict=False):
        for place in range(start, end):
            letters[place] += value / (end - start)
    return letters


@pytest.mark.parametrize("kind", ["esm", "kmer", "bpe"])
@pytest.mark.parametrize("pooling", ["cls", "mean"])
def test_rollout_is_that_of_the_attention_that_transformers_gives(kind, pooling, on_backbone, backbones):
    model, path, sequence = on_backbone(kind, pooling=pooling), backbones[kind], SEQUENCES[kind]
    inputs = AutoTokenizer.from_pretrained(path)(sequence, return_tensors="pt")
    encoder = AutoModel.from_pretrained(path, attn_implementation="eager").eval()
    with torch.no_grad():
        layers = encoder(**inputs, output_attentions=True).attentions
    size, spans = inputs["input_ids"].shape[1], spans_of(kind, path)
    read = range(1) if pooling == "cls" else range(1, 1 + len(spans))
    passed = np.eye(size)
    for layer in layers:
        mixed = np.zeros((size, size))
        for q in range(size):
            for k in range(size):
                mean = sum(float(layer[0, h, q, k]) for h in range(2)) / 2
                mixed[q, k] = 0.3 * (q == k) + 0.7 * mean
        passed = mixed @ passed
    expected = to_letters(np.mean([passed[q] for q in read], axis=0), spans)
    np.testing.assert_allclose(
        scores(model, sequence, "rollout", residual=0.3), expected / expected.sum(), atol=1e-6
    )


def gradient_by_hand(model, path, sequence, start=None):
    """Ids, embedded tokens, and the slope of the log-odds of class 1, by autograd through transformers.

    The vectors are moved by adding zeros that ask for gradients behind the table.
    """
    inputs = AutoTokenizer.from_pretrained(path)(sequence, return_tensors="pt")
    encoder = AutoModel.from_pretrained(path).eval()
    table = encoder.get_input_embeddings()
    known = table(inputs["input_ids"]).detach()
    added = (torch.zeros_like(known) if start is None else start - known).requires_grad_(True)
    table.register_forward_hook(lambda module, arguments, output: output + added)
    logits = model.networks[0].head(encoder(**inputs).last_hidden_state[:, 0])[0]
    [slope] = torch.autograd.grad(logits[1] - logits[0], added)
    return inputs["input_ids"][0], known[0], slope[0], float((logits[1] - logits[0]).detach())


def mean_letter(model, path):
    letters = set(model.alphabet.letters)
    words = AutoTokenizer.from_pretrained(path).get_vocab()
    ids = [i for word, i in words.items() if set(word) <= letters]
    return AutoModel.from_pretrained(path).get_input_embeddings().weight[ids].mean(dim=0).detach(), set(ids)


@pytest.mark.parametrize("kind", ["esm", "kmer", "bpe"])
def test_input_x_gradient_is_that_of_autograd(kind, on_backbone, backbones):
    model, path = on_backbone(kind), backbones[kind]
    ids, known, slope, _ = gradient_by_hand(model, path, SEQUENCES[kind])
    mean, letters = mean_letter(model, path)
    row = [
        float(((vector - mean) * s).sum()) if int(i) in letters else 0.0
        for i, vector, s in zip(ids, known, slope, strict=True)
    ]
    expected = to_letters(row, spans_of(kind, path))
    assert np.abs(expected).max() > 1e-3
    found = scores(model, SEQUENCES[kind], "input-x-gradient")
    np.testing.assert_allclose(found, expected, atol=1e-5 * max(1, np.abs(expected).max()))


@pytest.mark.parametrize("kind", ["esm", "kmer"])
def test_integrated_gradients_sum_to_the_difference(kind, on_backbone, backbones):
    model, path = on_backbone(kind), backbones[kind]
    mean, letters = mean_letter(model, path)
    ids, known, _, whole = gradient_by_hand(model, path, SEQUENCES[kind])
    start = torch.stack([mean if int(i) in letters else v for i, v in zip(ids, known, strict=True)])
    *_, without = gradient_by_hand(model, path, SEQUENCES[kind], start[None])
    found = scores(model, SEQUENCES[kind], "integrated-gradients", steps=100)
    assert found.sum() == pytest.approx(whole - without, rel=0.02, abs=0.01)


@pytest.mark.parametrize("kind", ["esm", "bpe"])
def test_grad_rollout_weighs_attention_by_its_slope(kind, on_backbone, backbones):
    model, path, sequence = on_backbone(kind), backbones[kind], SEQUENCES[kind]
    inputs = AutoTokenizer.from_pretrained(path)(sequence, return_tensors="pt")
    encoder = AutoModel.from_pretrained(path, attn_implementation="eager").eval()
    output = encoder(**inputs, output_attentions=True)
    logits = model.networks[0].head(output.last_hidden_state[:, 0])[0]
    slopes = torch.autograd.grad(logits[1] - logits[0], output.attentions)
    row = np.eye(inputs["input_ids"].shape[1])[0]
    for layer, slope in zip(reversed(output.attentions), reversed(slopes), strict=True):
        mixed = (layer[0] * slope[0]).clamp(min=0).mean(dim=0).detach().double().numpy()
        sums = mixed.sum(axis=1, keepdims=True)
        mixed = np.where(sums > 0, mixed / np.where(sums > 0, sums, 1), np.eye(len(row)))
        row = 0.5 * row + 0.5 * row @ mixed
    expected = to_letters(row, spans_of(kind, path))
    np.testing.assert_allclose(scores(model, sequence, "grad-rollout"), expected / expected.sum(), atol=1e-5)


def test_sequences_of_one_length_and_several_numbers_of_tokens(on_backbone):
    model = on_backbone("kmer", "lora")
    sequences = ["ACGTACGTACGTACGTACGT", "NACGTACGTNCGTACGTACG", "ACGTACNNGTACGTACGTAC"]
    codes = np.stack([model.alphabet.encode(s) for s in sequences])
    question = SequenceTarget(model, model.networks[0], 1)
    for method in ("rollout", "grad-rollout", "input-x-gradient", "integrated-gradients"):
        together = METHODS[method].score(question, codes, MethodSettings(steps=4))
        alone = [METHODS[method].score(question, row[None], MethodSettings(steps=4))[0] for row in codes]
        np.testing.assert_allclose(together, alone, atol=1e-5)
        if not METHODS[method].signed:
            np.testing.assert_allclose(together.sum(axis=1), 1, atol=1e-6)


def test_records_are_explained_and_checked(on_backbone):
    model = on_backbone("kmer")
    rng = np.random.default_rng(4)
    records = [SequenceRecord(f"r{i}", "".join(rng.choice(list("ACGT"), 14))) for i in range(6)]
    options = ExplainOptions(methods=("rollout", "occlusion"), shuffles=2, attention=True)
    found = list(explain_records(model, records, options))
    assert len(found) == 12
    for one in found:
        assert one.attention.shape == (2, 2, 14)
        assert one.method != "rollout" or one.scores.sum() == pytest.approx(1)
    faithfulness = check(model, records, options)
    assert set(faithfulness.verdicts) == {"rollout", "occlusion", "ism"}  # the last is the reference


def test_what_a_backbone_does_not_show_is_refused(on_backbone):
    model = on_backbone("bpe")
    records = [SequenceRecord("a", "ACGTACGT")]
    with pytest.raises(ConfigError, match="value-rollout needs the values of each head"):
        list(explain_records(model, records, ExplainOptions(methods=("value-rollout",))))
    with pytest.raises(ConfigError, match="whose heads can't be switched off"):
        heads(model, records)
