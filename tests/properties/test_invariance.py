"""The score of a record, or of an alignment and its rows as a set, is a function of it alone, to 1e-5."""

import functools

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st

from networks import random_network
from seqray.core.alphabet import RNA
from seqray.core.card import Card
from seqray.core.model_config import ModelConfig, StemConfig
from seqray.core.records import SequenceRecord
from seqray.explanations.methods import GENERAL_METHODS
from seqray.explanations.options import ExplainOptions
from seqray.explanations.sequences import explain_records
from seqray.inference.engines import with_engine
from seqray.inference.sequences import ACTIVATION_BYTES, predict_records, score_codes
from seqray.modelfile.model import TrainedModel
from seqray.models.alignment import AxialTransformer
from seqray.models.batches import collate
from seqray.models.tokenizers import AlignmentTokenizer

TOLERANCE = 1e-5
SHORTEST, WINDOW = 3, 40  # no fewer than a word of the k-mer model

SHAPES = {
    "sinusoidal": ModelConfig(d_model=16, heads=4, layers=2),
    "learned": ModelConfig(d_model=16, heads=4, layers=2, positions="learned"),
    "rotary, grouped": ModelConfig(d_model=16, heads=4, kv_heads=2, layers=2, positions="rotary"),
    "stem": ModelConfig(d_model=16, heads=4, layers=2, stem=StemConfig(kernels=(3, 9), stride=3, depth=2)),
    "words": ModelConfig(d_model=16, heads=4, layers=2, tokenizer="kmer", k=3),
    "pooled": ModelConfig(
        d_model=16, heads=4, layers=2, ends=7, pooling=("mean", "max", "ends"), stem=StemConfig(stride=3)
    ),
}


def build(config: ModelConfig) -> TrainedModel:
    """A random model whose probabilities spread over the whole range."""
    card = Card(name="m", classes=("a", "b"), positive="a", window=WINDOW, model=config)
    return TrainedModel(card, (random_network(config, seed=11),))


MODELS = {name: build(config) for name, config in SHAPES.items()}


def score(model: TrainedModel, sequences: list[str], **settings: object) -> np.ndarray:
    records = [SequenceRecord(f"r{i}", letters) for i, letters in enumerate(sequences)]
    predictions = list(predict_records(model, records, **settings))  # pyright: ignore[reportArgumentType]
    assert [p.id for p in predictions] == [r.id for r in records]
    return np.array([p.probabilities for p in predictions]).reshape(len(records), 2)


def alone(model: TrainedModel, sequences: list[str]) -> np.ndarray:
    """Each sequence by itself: the score that all others are held against."""
    return np.concatenate([score(model, [letters]) for letters in sequences])


sequences = st.lists(st.text("ACGTN", min_size=SHORTEST, max_size=WINDOW), min_size=1, max_size=30)


@pytest.mark.parametrize("name", SHAPES)
@settings(max_examples=25)
@given(batch=sequences, size=st.one_of(st.just("auto"), st.integers(1, 40)), data=st.data())
def test_neighbours_padding_order_and_batch_size_change_nothing(name, batch, size, data):
    model = MODELS[name]
    expected = alone(model, batch)
    np.testing.assert_allclose(score(model, batch, batch_size=size), expected, rtol=0, atol=TOLERANCE)
    order = data.draw(st.permutations(range(len(batch))))
    shuffled = score(model, [batch[i] for i in order], batch_size=size)
    np.testing.assert_allclose(shuffled, expected[list(order)], rtol=0, atol=TOLERANCE)


@pytest.fixture
def set_threads():
    """Set torch's number of threads; it is put back."""
    threads = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(threads)


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize("name", SHAPES)
def test_neither_threads_nor_a_batch_size_change_a_bit(name, precision, set_threads, monkeypatch):
    monkeypatch.setitem(ACTIVATION_BYTES, "cpu", 1 << 18)  # several batches
    rng = np.random.default_rng(5)
    codes = rng.integers(0, 5, (60, WINDOW)).astype(np.uint8)
    batch = ["".join(rng.choice(list("ACGTN"), n)) for n in rng.integers(SHORTEST, WINDOW + 1, 60)]
    results = []
    for threads, size in ((1, "auto"), (1, 1), (2, 7), (3, 64), (8, "auto")):
        set_threads(threads)
        windows = score_codes(MODELS[name], codes, batch_size=size, dtype=precision)
        results.append((windows, score(MODELS[name], batch, batch_size=size, dtype=precision)))
        assert torch.get_num_threads() == threads
    for windows, records in results[1:]:
        np.testing.assert_array_equal(windows, results[0][0])
        np.testing.assert_array_equal(records, results[0][1])


def test_a_batch_is_computed_by_one_thread(set_threads, monkeypatch):
    """Small networks rarely show how many threads shared a sum, so that they are counted here."""
    monkeypatch.setitem(ACTIVATION_BYTES, "cpu", 1 << 18)
    model, counts = MODELS["stem"], []
    hook = model.networks[0].register_forward_hook(lambda *_: counts.append(torch.get_num_threads()))
    set_threads(3)
    score_codes(model, np.zeros((60, WINDOW), dtype=np.uint8))
    score(model, ["A" * n for n in range(10, WINDOW)])
    records = [SequenceRecord("r", "ACGTTGCA" * 4)]
    list(explain_records(model, records, ExplainOptions(methods=("rollout", "integrated-gradients", "ism"))))
    hook.remove()
    assert set(counts) == {1}
    assert torch.get_num_threads() == 3


@pytest.mark.parametrize("engine", ["onnx", "openvino"])
def test_neither_threads_nor_a_batch_size_change_a_bit_of_another_engine(engine, set_threads, monkeypatch):
    monkeypatch.setitem(ACTIVATION_BYTES, "cpu", 1 << 18)
    codes = np.random.default_rng(6).integers(0, 5, (60, WINDOW)).astype(np.uint8)
    results = []
    for threads, size in ((1, "auto"), (2, 7), (3, 1)):
        set_threads(threads)
        results.append(score_codes(with_engine(MODELS["rotary, grouped"], engine), codes, batch_size=size))
    for result in results[1:]:
        np.testing.assert_array_equal(result, results[0])


@pytest.mark.parametrize("method", GENERAL_METHODS)
def test_threads_change_no_bit_of_an_explanation(method, set_threads, monkeypatch):
    monkeypatch.setitem(ACTIVATION_BYTES, "cpu", 1 << 18)
    record = SequenceRecord("r", "".join(np.random.default_rng(7).choice(list("ACGT"), WINDOW)))
    options = ExplainOptions(methods=(method,), shuffles=0)
    found = []
    for threads in (1, 3):
        set_threads(threads)
        [explanation] = explain_records(MODELS["stem"], [record], options)
        found.append((explanation.probability, explanation.scores.tolist()))
    assert found[0] == found[1]


@pytest.mark.parametrize("name", SHAPES)
def test_the_models_of_these_tests_have_something_to_say(name):
    """Invariance of a constant would prove nothing."""
    codes = np.random.default_rng(5).integers(0, 5, (60, WINDOW)).astype(np.uint8)
    assert score_codes(MODELS[name], codes)[:, 0].std() > 0.01


TOKENIZER = AlignmentTokenizer(RNA)


@functools.cache
def network(tied: bool, positions: str = "sinusoidal") -> AxialTransformer:
    stem = StemConfig(kernels=(3, 5), depth=1) if tied else None  # with and without
    shape = {"d_model": 16, "layers": 2, "heads": 2, "stem": stem, "positions": positions}
    shape |= {"ends": 3, "helices": True} if tied else {}
    config = ModelConfig(kind="alignment", alphabet="rna", tied=tied, **shape)
    return random_network(config, seed=3)


def tokens(rows: int, columns: int, seed: int) -> np.ndarray:
    return TOKENIZER.encode(np.random.default_rng(seed).integers(0, 7, (rows, columns)).astype(np.uint8))


shapes = st.tuples(st.integers(1, 9), st.integers(1, 12), st.integers(0, 99))


@pytest.mark.parametrize("gradients", [True, False])
@pytest.mark.parametrize("tied", [True, False])
@settings(max_examples=25)
@given(shapes, st.lists(shapes, min_size=1, max_size=3))
def test_others_in_the_batch_and_padding_change_nothing(gradients, tied, shape, others):
    one = tokens(*shape)
    alone, together = (collate(batch) for batch in ([one], [one, *(tokens(*s) for s in others)]))
    with torch.set_grad_enabled(gradients):
        expected = network(tied)(alone.tokens, *alone.masks).logits
        logits = network(tied)(together.tokens, *together.masks).logits
    torch.testing.assert_close(logits[:1], expected, rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize("positions", ["sinusoidal", "rotary", "learned"])
@pytest.mark.parametrize("tied", [True, False])
@settings(max_examples=15)
@given(shapes, st.integers(0, 5), st.integers(0, 6), st.integers(0, 9))
def test_what_stands_in_padding_changes_nothing(positions, tied, shape, rows, columns, fill):
    one = torch.from_numpy(tokens(*shape))[None]
    wide = torch.full((1, one.shape[1] + rows, one.shape[2] + columns), fill)
    wide[:, : one.shape[1], : one.shape[2]] = one
    real = [torch.arange(n)[None] < real for n, real in zip(wide.shape[1:], one.shape[1:], strict=True)]
    with torch.no_grad():
        expected = network(tied, positions)(one).logits
        logits = network(tied, positions)(wide, *real).logits
        explicit = network(tied, positions)(wide, *real, return_attention=True).logits
    torch.testing.assert_close(logits, expected, rtol=0, atol=TOLERANCE)
    torch.testing.assert_close(explicit, expected, rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize("tied", [True, False])
@settings(max_examples=25)
@given(shapes, st.randoms(use_true_random=False))
def test_rows_below_the_query_have_no_order(tied, shape, random):
    one = tokens(*shape)
    order = list(range(1, len(one)))
    random.shuffle(order)
    with torch.no_grad():
        expected = network(tied)(torch.from_numpy(one)[None]).logits
        logits = network(tied)(torch.from_numpy(one[[0, *order]])[None]).logits
    torch.testing.assert_close(logits, expected, rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize("tied", [True, False])
def test_the_query_and_the_columns_have_an_order(tied):
    one = torch.from_numpy(tokens(4, 9, 0))[None]
    with torch.no_grad():
        expected = network(tied)(one).logits
        other_query = network(tied)(one[:, [1, 0, 2, 3]]).logits
        other_columns = network(tied)(one[:, :, [0, 2, 1, *range(3, 10)]]).logits
    assert (other_query - expected).abs().max() > 1e-3
    assert (other_columns - expected).abs().max() > 1e-3


@pytest.mark.parametrize("tied", [True, False])
def test_gaps_missing_data_and_unknown_letters_are_told_apart(tied):
    codes = np.random.default_rng(0).integers(0, 4, (3, 6)).astype(np.uint8)
    logits = []
    for code in (0, 4, 5, 6):
        codes[1, 2] = code
        with torch.no_grad():
            logits.append(network(tied)(torch.from_numpy(TOKENIZER.encode(codes))[None]).logits)
    assert all((a - b).abs().max() > 1e-4 for i, a in enumerate(logits) for b in logits[:i])
