"""The graph is the network, for any shape, batch and calibration; engines answer as torch does."""

import json
import sys
from dataclasses import replace

import numpy as np
import onnx
import onnxruntime
import pytest
import torch

from seqray.core.card import Card
from seqray.core.card_parts import RisingMap
from seqray.core.errors import ConfigError, ModelFileError
from seqray.core.model_config import LinearConfig, LocatorConfig, ModelConfig, StemConfig
from seqray.core.records import SequenceRecord
from seqray.genome.genes import TRACKS
from seqray.inference import engines, onnx_networks
from seqray.inference.engines import choose_engine, export_onnx, open_with_engine, with_engine
from seqray.inference.sequences import predict_records, score_codes
from seqray.modelfile.file import build_network, load_model, save_model
from seqray.modelfile.model import TrainedModel
from seqray.scanning.options import ScanCallbacks, ScanOptions
from seqray.scanning.scan import scan_records

WINDOW = 23
RNG = np.random.default_rng(5)


def random_model(members=1, context=None, **settings) -> TrainedModel:
    sizes = {"d_model": 8, "layers": 2, "heads": 2, "max_length": WINDOW, "dropout": 0.0}
    config = ModelConfig(**sizes | settings)
    networks = []
    with torch.random.fork_rng():
        torch.manual_seed(3)
        for _ in range(members):
            networks.append(build_network(config))
            with torch.no_grad():
                for name, parameter in networks[-1].named_parameters():
                    parameter.normal_(1.0 if "norm.weight" in name else 0.0, 0.6)
    classes = tuple("abc"[: config.classes])
    card = Card(
        name="m", classes=classes, positive="a", window=WINDOW, model=config, members=members, temperature=1.7
    )
    return TrainedModel(card, tuple(networks)).with_context(context)


def session(model: TrainedModel, **settings) -> onnxruntime.InferenceSession:
    graph = onnx_networks.make_graph(model, **settings)
    onnx.checker.check_model(graph, full_check=True)
    return onnxruntime.InferenceSession(graph.SerializeToString(), providers=["CPUExecutionProvider"])


def padded(model: TrainedModel, lengths: list[int]) -> tuple[torch.Tensor, torch.Tensor]:
    """Tokens and mask of random sequences; what is padded holds random tokens, which must not count."""
    rng = np.random.default_rng(0)  # of its own: the same sequences in any order of tests
    tokens = torch.from_numpy(rng.integers(0, model.tokenizer.vocab_size, (len(lengths), 1 + max(lengths))))
    tokens[:, 0] = model.tokenizer.first
    return tokens, torch.arange(1 + max(lengths)) <= torch.tensor(lengths)[:, None]


SHAPES = {  # one layer where the others are the same
    "plain": {"layers": 2},
    "relu, three classes": {"activation": "relu", "classes": 3},
    "two members": {"members": 2},
    "words": {"tokenizer": "kmer", "k": 3},
    "protein": {"alphabet": "protein"},
    "learned": {"positions": "learned"},
    "rotary": {"positions": "rotary", "layers": 2},
    "rotary, shared keys": {"positions": "rotary", "kv_heads": 1},
    "wide": {"d_ff": 20},
    "stem": {"stem": StemConfig(kernels=(3, 5), stride=3, depth=2)},
    "stem of stride 1": {"stem": StemConfig(kernels=(7,), stride=1, depth=0)},
    "stem, rotary": {"stem": StemConfig(kernels=(3,), stride=4, depth=1), "positions": "rotary"},
    "pooled": {"pooling": ("cls", "mean", "max"), "layers": 2},
    "stem, pooled ends": {"pooling": ("mean", "ends"), "ends": 5, "stem": StemConfig(kernels=(3,), stride=2)},
    "contexts": {"contexts": ("x", "y"), "context": "y"},
    "contexts, none given": {"contexts": ("x", "y")},
    "gain": {"position_gain": "shared"},
    "gain by context": {"position_gain": "context", "contexts": ("x", "y"), "context": "x"},
    "matrix": {"position_matrix": "shared"},
    "matrix by context": {"position_matrix": "context", "contexts": ("x", "y"), "context": "x"},
    "matrix in a stem": {
        "position_matrix": "context",
        "contexts": ("x",),
        "stem": StemConfig(kernels=(3,), stride=3, depth=1),
    },
    "ends": {"ends": 4},
    "ends in a stem": {"ends": WINDOW, "stem": StemConfig(kernels=(3,), stride=1)},
    "words of up to four": {"words": 4},
    "words of proteins": {"words": 2, "alphabet": "protein"},
    "words in a stem": {"words": 3, "stem": StemConfig(kernels=(3,), stride=3)},
    "composition": {"composition": ("whole", "ends", "pairs")},
    "composition of proteins": {
        "composition": ("pairs", "whole"),
        "alphabet": "protein",
        "pooling": ("mean", "cls"),
        "stem": StemConfig(kernels=(3,), stride=3),
    },
    "linear part": {"linear": LinearConfig(words=3, reach=6, sides=2, steps=5)},
    "linear part of three classes": {
        "linear": LinearConfig(words=2, placed=(1, 3), reach=WINDOW),
        "classes": 3,
        "stem": StemConfig(kernels=(3,), stride=3),
    },
    "gain in a stem": {
        "position_gain": "context",
        "contexts": ("x",),
        "context": "x",
        "stem": StemConfig(kernels=(3,), stride=2, depth=1),
    },
    "subclasses of three classes": {"classes": 3, "subclasses": (2, 1, 3)},
}


@pytest.mark.parametrize("shape", SHAPES)
def test_the_graph_gives_the_logits_of_torch(shape):
    model = random_model(**{"layers": 1} | SHAPES[shape])
    run, unmasked = session(model), session(model, masked=False)
    for lengths in ([WINDOW - 2] * 3, [9, 3, 21, 4], [5], [1], [2, 1]):
        tokens, mask = padded(model, lengths)
        expected = model.logits(tokens.numpy(), mask.numpy())
        logits, p = run.run(["logits", "probabilities"], {"tokens": tokens.numpy(), "mask": mask.numpy()})
        assert len(lengths) == 1 or expected.std(axis=0).max() > 0.003  # the sequences do matter
        np.testing.assert_allclose(logits, expected, atol=1e-5, rtol=1e-5)
        np.testing.assert_allclose(p, torch.softmax(torch.from_numpy(expected), -1).numpy(), atol=1e-6)
        if mask.all():
            [logits] = unmasked.run(["logits"], {"tokens": tokens.numpy()})
            np.testing.assert_allclose(logits, expected, atol=1e-5, rtol=1e-5)


LOCATORS = {
    "letters alone": {"locator": LocatorConfig(window=3, stem=6)},
    "tracks, two classes": {"classes": 2, "locator": LocatorConfig(tracks=TRACKS, window=5, stem=6)},
    "smoothed, relu, two members": {
        "activation": "relu",
        "members": 2,
        "locator": LocatorConfig(tracks=TRACKS, window=4, smoothing=7, no_gene_ahead=(-2.0,)),
    },
    "region": {"classes": 2, "locator": LocatorConfig(window=4, smoothing=3, region=30)},
    "region, not smoothed": {"locator": LocatorConfig(window=4, region=9)},
}


def strands(model: TrainedModel, batch: int, length: int) -> dict[str, np.ndarray]:
    """Random letters, unknown ones among them, and tracks of which some are 0 along half the strands."""
    rng, count = np.random.default_rng(length), len(model.card.model.tracks)
    tracks = rng.integers(0, 256, (batch, count, length))
    tracks[:, :, : length // 2] *= rng.integers(0, 2, (batch, count, 1))
    given = {"tracks": tracks.astype(np.uint8)} if count else {}
    return {"letters": rng.integers(0, 5, (batch, length)).astype(np.uint8), **given}


@pytest.mark.parametrize("shape", LOCATORS)
@pytest.mark.parametrize("engine", ["onnx", "openvino"])
def test_the_graph_of_a_locator_gives_the_scores_of_torch(shape, engine):
    settings = {"classes": 1, "positions": "rotary"} | LOCATORS[shape]
    model = random_model(kind="locator", **settings)
    changed = with_engine(model, engine)
    for batch, tokens in ((1, 1), (2, 4), (1, 9), (3, 50), (1, 700)):
        inputs = strands(model, batch, 4 * tokens)
        expected = model.site_logits(*inputs.values())
        assert expected.std() > 0.003
        np.testing.assert_allclose(changed.site_logits(*inputs.values()), expected, atol=2e-5, rtol=2e-5)
    unknown = model.site_logits(inputs["letters"])
    np.testing.assert_allclose(changed.site_logits(inputs["letters"]), unknown, atol=2e-5, rtol=2e-5)


@pytest.mark.parametrize("name", ["bacteria-genome", "fungi-genome"])
def test_an_exported_locator_scores_a_strand_without_seqray(name, tmp_path):
    model = load_model(name)
    assert export_onnx(model, tmp_path / "m.onnx") < 1e-4
    session = onnxruntime.InferenceSession(tmp_path / "m.onnx", providers=["CPUExecutionProvider"])
    rules = json.loads(session.get_modelmeta().custom_metadata_map["seqray_tokens"])
    text = "".join(RNG.choice([*"ACGTN"], 4001 // rules["multiple"] * rules["multiple"]))
    letters = [rules["letters"].index(c) if c in rules["letters"] else rules["unknown"] for c in text]
    tracks = np.zeros((1, len(rules["tracks"]), len(text)), dtype=np.uint8)  # genes are not known
    inputs = {"letters": np.array([letters], dtype=np.uint8), "tracks": tracks}
    [scores] = session.run(["probabilities"], inputs)
    radius = rules["radius"]  # what lies beyond the strand is unknown, not absent
    profiles = []
    scan_records(
        model,
        [SequenceRecord("r", text)],
        ScanOptions(strand="plus"),
        ScanCallbacks(on_profile=profiles.append),
    )
    expected = np.concatenate([profile.scores for profile in profiles])
    known = ~np.isnan(expected)
    known[:radius] = known[-radius:] = False
    assert known.sum() > 1000
    np.testing.assert_allclose(scores[0, known, 0], expected[known], atol=1e-5)


@pytest.mark.parametrize(("shares", "after"), [([0.2, 0.5, 0.8], [-3.0, 0.0, 0.4]), ([0.5], [1.1])])
@pytest.mark.parametrize("positive", ["a", "b"])
def test_the_isotonic_map_is_part_of_the_graph(shares, after, positive):
    model = random_model()
    codes = RNG.integers(0, 4, (200, WINDOW)).astype(np.uint8)
    tokens = model.tokenizer.encode_codes(codes)
    plain = model.logits(tokens)
    index = "ab".index(positive)
    bend = RisingMap(np.array(after), np.quantile(plain[:, index] - plain[:, 1 - index], shares))
    card = replace(model.card, format=2, isotonic=bend, positive=positive)
    model = TrainedModel(card, model.networks)
    inputs = {"tokens": tokens, "mask": np.ones(tokens.shape, dtype=bool)}
    logits, p = session(model).run(["logits", "probabilities"], inputs)
    odds = logits[:, index] - logits[:, 1 - index]
    np.testing.assert_allclose(p[:, index], 1 / (1 + np.exp(-bend(odds))), atol=1e-5)
    np.testing.assert_allclose(p, score_codes(model, codes), atol=1e-4)  # steep between close knots


# --- files ----------------------------------------------------------------------------------------


@pytest.fixture
def stored(tmp_path) -> TrainedModel:
    model = random_model(members=2, contexts=("x", "y"))
    path = tmp_path / "m.safetensors"
    save_model(path, model.networks, model.card)
    return load_model(path)


def test_a_file_carries_what_a_user_of_it_needs(stored, tmp_path):
    out = tmp_path / "m.onnx"
    assert export_onnx(stored, out) < 1e-4
    facts = {entry.key: entry.value for entry in onnx.load(out).metadata_props}
    card = json.loads(facts["seqray_card"])
    assert (card["classes"], card["window"]) == (["a", "b"], WINDOW)
    assert facts["seqray_model_sha256"] == stored.sha256
    rules = json.loads(facts["seqray_tokens"])
    run = onnxruntime.InferenceSession(out, providers=["CPUExecutionProvider"])
    letters = "ACGTTGNACGTA"
    tokens = [
        rules["first_letter"] + rules["letters"].index(c) if c != "N" else rules["UNK"] for c in letters
    ]
    for context in (None, "x", "y"):
        row = np.array([[rules["contexts"].get(context, rules["CLS"]), *tokens]])
        [p] = run.run(["probabilities"], {"tokens": row, "mask": np.ones(row.shape, dtype=bool)})
        [expected] = predict_records(stored.with_context(context), [SequenceRecord("r", letters)])
        np.testing.assert_allclose(p[0], expected.probabilities, atol=1e-6)


def test_the_same_model_gives_the_same_bytes(stored, tmp_path):
    paths = [tmp_path / name for name in ("a.onnx", "b.onnx")]
    for path in paths:
        export_onnx(stored, path)
    assert paths[0].read_bytes() == paths[1].read_bytes()


def test_a_graph_that_answers_differently_is_not_written(stored, tmp_path, monkeypatch):
    other = random_model(members=2, contexts=("x", "y"))
    with torch.no_grad():
        other.networks[1].head.linear.bias[0] += 0.01
    graph = onnx_networks.make_graph(other)
    monkeypatch.setattr(onnx_networks, "make_graph", lambda *_, **__: graph)
    with pytest.raises(ModelFileError, match="can't be exported: the graph differs by"):
        export_onnx(stored, tmp_path / "m.onnx")
    assert not (tmp_path / "m.onnx").exists()


# --- engines --------------------------------------------------------------------------------------


# Shapes that have every operator of all shapes between them.
OPENVINO = (
    *("relu, three classes", "words", "learned", "rotary, shared keys", "stem, pooled ends"),
    *("contexts", "matrix in a stem", "words in a stem", "composition of proteins"),
    *("linear part", "gain in a stem", "subclasses of three classes"),
)


def operators(shapes):
    graphs = (onnx_networks.make_graph(random_model(**{"layers": 1} | SHAPES[shape])) for shape in shapes)
    return {node.op_type for graph in graphs for node in graph.graph.node}


def test_openvino_is_given_every_operator():
    assert operators(OPENVINO) == operators(SHAPES)


@pytest.mark.parametrize("shape", OPENVINO)
def test_openvino_gives_the_logits_of_torch(shape):
    model = random_model(**{"layers": 1} | SHAPES[shape])
    changed = with_engine(model, "openvino")
    for lengths in ([WINDOW - 2] * 3, [9, 3, 21, 4]):
        tokens, mask = padded(model, lengths)
        expected = model.logits(tokens.numpy(), mask.numpy())
        np.testing.assert_allclose(
            changed.logits(tokens.numpy(), mask.numpy()), expected, atol=1e-4, rtol=1e-4
        )


def test_an_engine_that_mixes_the_rows_of_a_batch_fails_its_self_test(tiny_model, monkeypatch):
    original = engines.EngineModel.logits

    def mixed(self, tokens, mask=None):
        return np.broadcast_to(original(self, tokens, mask).sum(axis=0), (len(tokens), 2))

    monkeypatch.setattr(engines.EngineModel, "logits", mixed)
    with pytest.raises(ModelFileError, match="engine 'openvino': fails its self-test"):
        with_engine(tiny_model, "openvino")


@pytest.mark.parametrize(
    ("installed", "precision", "expected"),
    [
        (("onnx", "onnxruntime", "openvino"), "fp32", "onnx"),
        (("onnx", "openvino"), "fp32", "openvino"),
        (("onnxruntime", "openvino"), "fp32", "torch"),  # nothing makes the graph
        ((), "fp32", "torch"),
        (("onnx", "onnxruntime", "openvino"), "bf16", "openvino"),
        (("onnx", "onnxruntime"), "bf16", "torch"),
    ],
)
def test_the_fastest_engine_that_is_installed_is_chosen(
    installed, precision, expected, tiny_model, alignment_model, locator, monkeypatch
):
    monkeypatch.setattr(engines, "find_spec", lambda name: name if name in installed else None)
    assert choose_engine(tiny_model.card, precision) == expected
    assert choose_engine(alignment_model.card, precision) == "torch"
    assert choose_engine(locator.card, precision) == "torch"


@pytest.mark.parametrize("engine", ["onnx", "openvino"])
def test_a_file_opened_without_torch_gives_the_same_bits(engine, stored, tmp_path):
    codes = RNG.integers(0, 5, (50, WINDOW)).astype(np.uint8)
    opened = open_with_engine(tmp_path / "m.safetensors", engine, "fp32", 2)
    assert (opened.networks, opened.sha256, opened.device.type) == ((), stored.sha256, "cpu")
    found = score_codes(opened.with_context("y"), codes)
    expected = score_codes(with_engine(stored, engine), codes, batch_size=3)
    np.testing.assert_array_equal(found, score_codes(with_engine(stored, engine).with_context("y"), codes))
    assert (found != expected).any()


def test_inputs_too_long_for_a_graph_are_refused(stored):
    endless = replace(stored.card, model=replace(stored.card.model, max_length=1 << 24))
    with pytest.raises(ConfigError, match="reads inputs too long for a graph"):
        with_engine(TrainedModel(endless, stored.networks), "onnx")


@pytest.mark.parametrize(
    ("engine", "package", "extra"),
    [("onnx", "onnxruntime", "onnx"), ("onnx", "onnx", "onnx"), ("openvino", "openvino", "openvino")],
)
def test_a_missing_package_is_named_with_its_extra(engine, package, extra, tiny_model, monkeypatch):
    for name in [
        n for n in sys.modules if n.startswith("seqray.inference.onnx_") or n.split(".")[0] == package
    ]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.delattr("seqray.inference.onnx_networks", raising=False)
    with pytest.raises(
        ConfigError, match=rf"'{package}' is not installed.*pip install {package}, .* '{extra}'"
    ):
        with_engine(tiny_model, engine)
