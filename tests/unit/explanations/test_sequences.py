"""Explanations of records: what comes out, in what order, and that a record's depends on itself alone."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st

import seqray
from seqray.core.alphabet import DNA, PROTEIN
from seqray.core.records import SequenceRecord
from seqray.explanations import sequences
from seqray.explanations.methods import GENERAL_METHODS, METHODS, OF_ALIGNMENTS
from seqray.explanations.options import SHUFFLES, AlignmentOptions, ExplainOptions
from seqray.explanations.sequences import check, explain_records, heads
from seqray.explanations.targets import CALLED, randomized_network, wanted_class
from seqray.modelfile.file import build_network
from seqray.modelfile.model import TrainedModel


def record(letters, name="r"):
    return SequenceRecord(name, letters)


def random_records(lengths, seed=0):
    rng = np.random.default_rng(seed)
    return [record("".join(rng.choice(list("ACGT"), n)), f"r{i}") for i, n in enumerate(lengths)]


ALL = ExplainOptions(methods=GENERAL_METHODS, shuffles=2, attention=True)


def test_options_name_every_method():
    assert ExplainOptions.known == tuple(METHODS)
    assert set(AlignmentOptions.known) == set(OF_ALIGNMENTS)


@pytest.fixture(scope="module")
def pair(tiny_model):
    """The tiny model with a second member."""
    torch.manual_seed(5)
    other = build_network(tiny_model.card.model)
    return TrainedModel(replace(tiny_model.card, members=2), (*tiny_model.networks, other))


def test_each_record_by_each_method_in_order(tiny_model):
    records = random_records([20, 13, 20, 5])
    found = list(explain_records(tiny_model, records, ALL))
    assert [(e.record, e.id, e.method) for e in found] == [
        (i, f"r{i}", method) for i in range(4) for method in GENERAL_METHODS
    ]
    predictions = list(seqray.predict_records(tiny_model, records))
    for e in found:
        length = len(records[e.record])
        assert e.scores.shape == e.p.shape == e.q.shape == (length,)
        assert e.effects.shape == (length, 4)
        assert e.attention.shape == (1, 2, length)
        assert e.sequence == records[e.record].sequence
        assert e.label == predictions[e.record].label
        assert e.probability == pytest.approx(predictions[e.record].probabilities[0], abs=1e-6)
        assert (e.target, e.member, e.signed) == ("promoter", "mean", METHODS[e.method].signed)
        assert ((e.p > 0) & (e.p <= 1)).all()
        if not e.signed:
            assert e.scores.sum() == pytest.approx(1)
            assert (e.scores >= 0).all()


def test_letters_that_are_not_read_have_no_values(tiny_model):
    """The window holds 20 letters: of 33 the first and the last 10 are read."""
    model = TrainedModel(replace(tiny_model.card, site=None, truncate="ends"), tiny_model.networks)
    [whole] = random_records([33])
    kept = [*range(10), *range(23, 33)]
    part = record("".join(whole.sequence[i] for i in kept), whole.id)
    pairs = zip(explain_records(model, [whole], ALL), explain_records(model, [part], ALL), strict=True)
    for found, read in pairs:
        assert found.sequence == whole.sequence
        for name in ("scores", "effects", "p", "q"):
            values = getattr(found, name)
            np.testing.assert_array_equal(values[kept], getattr(read, name))
            assert np.isnan(values[10:23]).all()
        np.testing.assert_array_equal(found.attention[:, :, kept], read.attention)
        assert (found.attention[:, :, 10:23] == 0).all()


@settings(max_examples=10, deadline=None)
@given(st.lists(st.integers(4, 20), min_size=2, max_size=6), st.randoms(use_true_random=False))
def test_a_record_is_explained_alike_in_any_company_and_order(tiny_model, lengths, random):
    records = random_records(lengths)
    alone = {e.id: e for r in records for e in explain_records(tiny_model, [r], ExplainOptions(shuffles=3))}
    shuffled = random.sample(records, len(records))
    for e in explain_records(tiny_model, shuffled, ExplainOptions(shuffles=3)):
        np.testing.assert_allclose(e.scores, alone[e.id].scores, atol=1e-6)
        np.testing.assert_allclose(e.effects, alone[e.id].effects, atol=1e-4)


def test_ism_is_the_loss_of_the_models_own_log_odds(pair):
    [r] = random_records([20])
    [e] = explain_records(pair, [r], ExplainOptions(methods=("ism",), shuffles=0))

    def log_odds(letters):
        [p] = seqray.predict_records(pair, [record(letters)])
        return np.log(p.probabilities[0] / p.probabilities[1])

    before = log_odds(r.sequence)
    for i in (0, 7, 19):
        effects = [log_odds(r.sequence[:i] + x + r.sequence[i + 1 :]) - before for x in "ACGT"]
        np.testing.assert_allclose(e.effects[i], effects, atol=1e-4)
        assert e.scores[i] == pytest.approx(-sum(effects) / 3, abs=1e-4)


def test_the_other_class_of_two_is_the_negative(tiny_model):
    records = random_records([20, 11])
    for method in ("ism", "input-x-gradient", "integrated-gradients"):
        one, other = (
            list(
                explain_records(tiny_model, records, ExplainOptions(methods=(method,), target=t, shuffles=0))
            )
            for t in ("promoter", "background")
        )
        for a, b in zip(one, other, strict=True):
            np.testing.assert_allclose(a.scores, -b.scores, atol=1e-5)
            assert a.probability + b.probability == pytest.approx(1)


def test_called_explains_each_record_for_its_own_class(tiny_model):
    found = list(explain_records(tiny_model, random_records([20] * 12), ExplainOptions(target="called")))
    assert {e.target for e in found} == {"promoter", "background"}
    assert all(e.target == e.label for e in found)


@pytest.mark.parametrize(
    ("classes", "asked", "explained"),
    [
        (("a", "b"), None, "b"),
        (("a", "b", "c"), None, CALLED),
        (("a", "b", "c"), "a", "a"),
        (("a", "b"), CALLED, CALLED),
    ],
)
def test_without_a_name_the_positive_class_of_two_is_explained_else_that_called(
    tiny_model, classes, asked, explained
):
    config = replace(tiny_model.card.model, classes=len(classes))
    card = replace(tiny_model.card, classes=classes, positive="b", model=config)
    assert wanted_class(card, asked) == explained


def test_members_beside_their_mean(pair):
    options = ExplainOptions(members="each", shuffles=0)
    mean, one, two = explain_records(pair, random_records([20]), options)
    assert [e.member for e in (mean, one, two)] == ["mean", "1", "2"]
    np.testing.assert_allclose((one.scores + two.scores) / 2, mean.scores)
    np.testing.assert_allclose(np.mean([one.effects, two.effects], axis=0), mean.effects)


def test_what_is_not_asked_for_is_left_out(tiny_model):
    options = ExplainOptions(shuffles=0, effects=False)
    [e] = explain_records(tiny_model, random_records([20]), options)
    assert (e.p, e.q, e.effects, e.attention, e.place) == (None,) * 5


def test_attention_is_read_a_few_records_at_a_time(tiny_model, monkeypatch):
    options = ExplainOptions(shuffles=0, effects=False, attention=True)
    whole = [e.attention for e in explain_records(tiny_model, random_records([20] * 7), options)]
    monkeypatch.setattr("seqray.explanations.targets.micro_batch", lambda *_: 3)
    parts = [e.attention for e in explain_records(tiny_model, random_records([20] * 7), options)]
    np.testing.assert_allclose(parts, whole, atol=1e-6)


def test_no_explanation_holds_its_whole_group_in_memory(tiny_model):
    for e in explain_records(tiny_model, random_records([20] * 5), ExplainOptions(attention=True)):
        arrays = [a for a in (e.scores, e.effects, e.p, e.q, e.attention) if a is not None]
        assert all(a.base is None or a.base.size <= a.size for a in arrays if a.ndim > 1), e.method
        assert e.scores.base is None


@pytest.mark.parametrize("letters", ["A" * 20, "AT" * 10, "A"])
def test_letters_that_no_shuffling_moves_are_never_significant(tiny_model, letters):
    """Every shuffled copy is the record: each of its letters ties with itself, whatever the rounding."""
    [e] = explain_records(tiny_model, [record(letters)], ExplainOptions(methods=("ism",)))
    best = np.argmax(e.scores)
    assert e.p[best] >= (1 + SHUFFLES) / (1 + SHUFFLES * len(letters)) - 1e-12


def test_long_records_are_not_mutated(tiny_model, monkeypatch):
    monkeypatch.setattr(sequences, "MAX_MUTATED", 15)
    found = list(explain_records(tiny_model, random_records([20, 15]), ExplainOptions(shuffles=0)))
    assert [e.effects is None for e in found] == [True, False]
    verdict = check(tiny_model, random_records([20, 15]), ExplainOptions(shuffles=0))
    assert {c.against for c in verdict.checks if c.measure == "share_of_reference"} == {"occlusion"}


@pytest.mark.parametrize(
    ("letters", "alphabet", "is_mutated"),
    [(500, DNA, True), (501, DNA, False), (210, PROTEIN, True), (211, PROTEIN, False)],
)
def test_the_reference_costs_at_most_4000_predictions(letters, alphabet, is_mutated):
    assert letters * (len(alphabet.letters) - 1) <= 4_000 or not is_mutated
    assert sequences.is_mutated(letters, alphabet) == is_mutated


def test_ambiguous_letters_are_explained_around(tiny_model):
    found = list(explain_records(tiny_model, [record("ACGTNNACGTACGTACGTAC")], ALL))
    for e in found:
        assert np.isfinite(e.scores).all()
        if e.signed:
            assert (e.scores[4:6] == 0).all()


def test_many_records_come_in_chunks(tiny_model, monkeypatch):
    monkeypatch.setattr(sequences, "CHUNK_RECORDS", 3)
    records = random_records([20, 9] * 4)
    found = [e.record for e in explain_records(tiny_model, records, ExplainOptions(shuffles=0))]
    assert found == list(range(8))


def test_the_model_is_left_as_it_was_found(tiny_model):
    before = [p.clone() for p in tiny_model.networks[0].parameters()]
    state = torch.get_rng_state()
    list(explain_records(tiny_model, random_records([20]), ALL))
    check(tiny_model, random_records([20]), ALL)
    heads(tiny_model, random_records([20]), ALL)
    assert not tiny_model.networks[0].training
    assert all(torch.equal(a, b) for a, b in zip(before, tiny_model.networks[0].parameters(), strict=True))
    assert not any(p.requires_grad for p in tiny_model.networks[0].parameters())
    assert torch.equal(state, torch.get_rng_state())


def test_the_network_of_the_control_is_made_without_touching_other_generators(tiny_model, monkeypatch):
    def refuse(*_):
        raise AssertionError("torch.manual_seed seeds every GPU too")

    monkeypatch.setattr(torch, "manual_seed", refuse)
    one, two = (randomized_network(tiny_model).state_dict() for _ in range(2))
    assert all(torch.equal(one[name], two[name]) for name in one)


def test_checks_name_every_method_and_the_reference(tiny_model):
    found = check(tiny_model, random_records([20, 12] * 3), ExplainOptions(methods=("rollout", "occlusion")))
    assert set(found.verdicts) == {"rollout", "occlusion", "ism"}
    assert {c.method for c in found.checks} == {"rollout", "occlusion", "ism"}
    assert check(tiny_model, []).verdicts == {}
