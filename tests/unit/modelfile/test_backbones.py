"""Encoders: their directories, their files, and the networks on them."""

import copy
import hashlib
import json
import shutil

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from transformers import AutoModel, AutoTokenizer

from seqray.api.verbs import predict
from seqray.core.alphabet import DNA, PROTEIN, RNA
from seqray.core.errors import ConfigError, InputError
from seqray.core.model_config import BackboneConfig, ModelConfig
from seqray.core.records import SequenceRecord
from seqray.inference.engines import export_onnx, with_engine
from seqray.inference.sequences import predict_records
from seqray.modelfile.backbones import (
    build_backbone,
    checksums,
    find_directory,
    load_encoder,
    load_tokenizer,
    resolve_backbone,
)
from seqray.modelfile.file import load_model, save_model


@pytest.fixture
def copied(backbones, tmp_path):
    """A directory of its own to spoil."""
    path = tmp_path / "bpe"
    shutil.copytree(backbones["bpe"], path)
    return path


def on(path, **settings):
    return ModelConfig(kind="backbone", backbone=BackboneConfig(path=str(path), **settings))


def edit(path, **values):
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))


def test_the_card_gets_the_facts_of_the_directory(copied):
    (copied / "README.md").write_text("decides nothing")
    known = resolve_backbone(on(copied)).backbone
    assert (known.path, known.name, known.width, known.pooling) == (str(copied), "bpe", 16, "cls")
    assert known.files == {
        name: hashlib.sha256((copied / name).read_bytes()).hexdigest()
        for name in ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json")
    }


def test_another_place_is_the_same_backbone_and_another_file_is_not(copied, tmp_path):
    known = resolve_backbone(on(copied)).backbone
    copied.rename(tmp_path / "moved")
    with pytest.raises(
        ConfigError, match=r"bpe: the directory of the backbone does not exist; name .*--backbone"
    ):
        find_directory(known)
    moved = BackboneConfig(path=str(tmp_path / "moved"), files=known.files)
    assert find_directory(moved) == tmp_path / "moved"
    edit(tmp_path / "moved" / "tokenizer_config.json", model_max_length=20)
    with pytest.raises(
        ConfigError, match=r"is not the backbone of the model: tokenizer_config\.json has the sha256"
    ):
        find_directory(moved)
    (tmp_path / "moved" / "tokenizer_config.json").unlink()
    with pytest.raises(ConfigError, match=r"lacks tokenizer_config\.json, which the model was trained with"):
        find_directory(moved)


def test_shards_are_weights(copied):
    tensors = load_file(copied / "model.safetensors")
    names = sorted(tensors)
    halves = {"a.safetensors": names[::2], "b.safetensors": names[1::2]}
    for file, part in halves.items():
        save_file({name: tensors[name] for name in part}, copied / file, {"format": "pt"})
    (copied / "model.safetensors").unlink()
    index = {"metadata": {}, "weight_map": {name: file for file, part in halves.items() for name in part}}
    (copied / "model.safetensors.index.json").write_text(json.dumps(index))
    assert {"a.safetensors", "b.safetensors", "model.safetensors.index.json"} < checksums(copied).keys()
    loaded = dict(load_encoder(copied).named_parameters())
    assert (loaded["embeddings.word_embeddings.weight"] == tensors["embeddings.word_embeddings.weight"]).all()
    (copied / "b.safetensors").unlink()
    with pytest.raises(ConfigError, match=r"b\.safetensors: is missing; copy the whole directory"):
        find_directory(on(copied, files={"config.json": ""}).backbone)


def test_what_could_run_code_is_refused(copied):
    edit(copied / "config.json", auto_map={"AutoModel": "modeling.Model"})
    (copied / "modeling.py").write_text("raise RuntimeError('must never run')")
    with pytest.raises(
        ConfigError, match=r"needs code of its own \('auto_map' in config\.json\), which seqray never"
    ):
        resolve_backbone(on(copied))
    edit(copied / "config.json", auto_map=None)


def test_pickles_are_refused_with_the_remedy(copied):
    (copied / "model.safetensors").rename(copied / "pytorch_model.bin")
    with pytest.raises(
        ConfigError, match=r"pickled weights only \(pytorch_model\.bin\).*; convert them to model"
    ):
        resolve_backbone(on(copied))
    (copied / "pytorch_model.bin").unlink()
    with pytest.raises(ConfigError, match=r"holds no model\.safetensors; give"):
        resolve_backbone(on(copied))


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"is_decoder": True}, "is no encoder but holds a decoder"),
        ({"hidden_size": None}, r"config\.json has no 'hidden_size'"),
        ({"model_type": "no-such-type"}, "transformers can't load"),
        ({"num_hidden_layers": 3}, "the weights lack 16 tensors of the encoder, such as 'encoder.layer.2."),
        ({"vocab_size": 61}, r"word_embeddings\.weight' is \(\d+, \d+\) where config\.json asks for \(61, "),
    ],
)
def test_settings_that_fit_no_encoder_are_refused(change, error, copied):
    edit(copied / "config.json", **change)
    with pytest.raises(ConfigError, match=error) as caught:
        build_backbone(resolve_backbone(on(copied)))
    assert "\n" not in str(caught.value)


def test_a_damaged_file_of_weights_is_refused(copied):
    weights = copied / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:1000])
    with pytest.raises(
        ConfigError, match=r"transformers can't load the encoder .*; download its files again"
    ):
        build_backbone(resolve_backbone(on(copied)))


def test_other_directories_are_refused(copied, tmp_path):
    with pytest.raises(ConfigError, match=r"'model\.backbone\.path' names no directory"):
        resolve_backbone(ModelConfig(kind="backbone"))
    with pytest.raises(ConfigError, match=r"holds no config\.json"):
        resolve_backbone(on(tmp_path))
    (copied / "adapter_config.json").write_text("{}")
    with pytest.raises(ConfigError, match="holds adapters of peft, not a whole encoder"):
        resolve_backbone(on(copied))
    (copied / "adapter_config.json").unlink()
    for text in ("no json", "[" * 100_000):
        (copied / "config.json").write_text(text)
        with pytest.raises(ConfigError, match=r"config\.json: can't be read"):
            resolve_backbone(on(copied))


def test_targets_of_lora_are_linear_maps(copied):
    with pytest.raises(
        ConfigError, match=r"names 'q_proj', and the encoder has no such linear map; it has dense"
    ):
        build_backbone(resolve_backbone(on(copied, tuning="lora", targets=("q_proj",))))
    network = build_backbone(resolve_backbone(on(copied, tuning="lora", rank=2, targets=("key",))))
    assert sorted(network.adapters) == [
        f"encoder/layer/{i}/attention/self/key/lora_{m}/default/weight" for i in range(2) for m in "AB"
    ]


def test_without_cls_the_mean_is_read(copied):
    edit(copied / "tokenizer.json", post_processor=None)
    assert resolve_backbone(on(copied)).backbone.pooling == "mean"
    with pytest.raises(ConfigError, match="pooling' is cls, and the tokenizer puts no CLS in front"):
        resolve_backbone(on(copied, pooling="cls"))


@pytest.fixture
def load(backbones):
    return lambda kind, alphabet: load_tokenizer(BackboneConfig(path=str(backbones[kind])), alphabet)


@pytest.mark.parametrize(
    ("kind", "alphabet", "sequence"),
    [("esm", "protein", "MKTAYIAX"), ("kmer", "dna", "ACGTACGTNACGTA"), ("bpe", "dna", "ACGTTACGNACG")],
)
def test_tokens_are_the_ids_of_the_directory_plus_one(kind, alphabet, sequence, load, backbones):
    ids = AutoTokenizer.from_pretrained(backbones[kind])(sequence)["input_ids"]
    tokens = load(kind, alphabet).encode(sequence)
    assert tokens.tolist() == [i + 1 for i in ids]


def test_rows_are_filled_up_and_cut_to_their_lengths(load):
    tokenizer = load("kmer", "dna")
    codes = np.stack([DNA.encode("ACGTACACGTAC"), DNA.encode("ACGTACNNNNNN"), DNA.encode("NACGTACACGTA")])
    tokens = tokenizer.encode_codes(codes, np.array([12, 6, 12]))
    rows = [tokenizer.encode(s) for s in ("ACGTACACGTAC", "ACGTAC", "NACGTACACGTA")]
    assert [len(row) for row in rows] == [3, 2, 8]  # words of six, then single letters
    assert tokens.shape == (3, 8)
    for found, row in zip(tokens, rows, strict=True):
        assert found.tolist() == [*row, *[0] * (8 - len(row))]
    assert tokenizer.mask(tokens, np.array([12, 6, 12])).sum(axis=1).tolist() == [3, 2, 8]


@pytest.mark.parametrize(
    ("kind", "alphabet", "sequence", "spans"),
    [
        ("esm", PROTEIN, "MKX", [(0, 0), (0, 1), (1, 2), (2, 3), (0, 0)]),
        ("kmer", DNA, "ACGTACGTNAC", [(0, 0), (0, 6), (6, 7), (7, 8), (8, 9), (9, 10), (10, 11)]),
    ],
)
def test_spans_of_words_that_spell_the_sequence(kind, alphabet, sequence, spans, load):
    found = load(kind, alphabet.name).spans(alphabet.encode(sequence))
    assert found.tolist() == [list(span) for span in spans]


def test_spans_of_a_learned_vocabulary_are_where_its_words_stand(load, backbones):
    words = AutoTokenizer.from_pretrained(backbones["bpe"])
    sequence = "ACGTTGCANGGATATCC"
    spans = load("bpe", "dna").spans(DNA.encode(sequence))
    ids = words(sequence)["input_ids"]
    assert spans[0].tolist() == spans[-1].tolist() == [0, 0]
    covered = 0
    for i, (start, end) in zip(ids[1:-1], spans[1:-1].tolist(), strict=True):
        assert start == covered
        assert words.convert_ids_to_tokens(i) == (
            "[UNK]" if sequence[start:end] == "N" else sequence[start:end]
        )
        covered = end
    assert covered == len(sequence)
    assert (np.diff(spans[1:-1], axis=1) > 1).any()


def test_u_is_written_as_t_for_a_vocabulary_of_dna(load):
    dna, rna = load("bpe", "dna"), load("bpe", "rna")
    assert rna.encode("ACGUUGCA").tolist() == dna.encode("ACGTTGCA").tolist()
    assert rna.spans(RNA.encode("ACGUUGCA")).tolist() == dna.spans(DNA.encode("ACGTTGCA")).tolist()


def test_letters_and_special_tokens_are_told_apart(load, backbones):
    tokenizer = load("esm", "protein")
    lines = (backbones["esm"] / "vocab.txt").read_text().splitlines()
    assert tokenizer.letter_tokens.tolist() == sorted(1 + lines.index(letter) for letter in PROTEIN.letters)
    names = ("<cls>", "<pad>", "<eos>", "<mask>")
    assert tokenizer.special_tokens.tolist() == sorted(1 + lines.index(name) for name in names)
    assert tokenizer.starts_with_cls


def test_an_alphabet_that_the_vocabulary_lacks_is_refused(load):
    with pytest.raises(ConfigError, match=r"does not know the letter D of 'model\.alphabet: protein'; set"):
        load("bpe", "protein")


def test_the_limit_of_positions_is_checked(load):
    esm, bpe = load("esm", "protein"), load("bpe", "dna")
    esm.check("A" * 60)  # with CLS and the end 62 tokens: positions 2 to 63 of 64
    with pytest.raises(InputError, match="makes 63 tokens, the backbone reads at most 62; cut"):
        esm.check("A" * 61)
    with pytest.raises(InputError, match="makes 63 tokens"):
        esm.encode("A" * 61)
    bpe.check("ACGT" * 20)  # 80 letters, but fewer tokens
    with pytest.raises(InputError, match="makes 102 tokens, the backbone reads at most 64"):
        bpe.check("N" * 100)


CODES = np.random.default_rng(0).integers(0, 4, (6, 40)).astype(np.uint8)


@pytest.fixture
def moved(backbones, on_backbone, tmp_path, monkeypatch):
    """A model file whose backbone has since moved from ``before`` to ``after``."""
    monkeypatch.delenv("SEQRAY_BACKBONE", raising=False)
    shutil.copytree(backbones["bpe"], tmp_path / "before")
    model = on_backbone("bpe", "lora", path=str(tmp_path / "before"))
    save_model(tmp_path / "m.safetensors", model.networks, model.card)
    (tmp_path / "before").rename(tmp_path / "after")
    return tmp_path / "m.safetensors", tmp_path / "after"


@pytest.mark.parametrize(("kind", "tuning"), [("esm", "frozen"), ("kmer", "lora"), ("bpe", "full")])
def test_a_file_gives_the_model_that_was_saved(kind, tuning, on_backbone, tmp_path):
    model, path = on_backbone(kind, tuning), tmp_path / "m.safetensors"
    card = save_model(path, model.networks, model.card)
    state = torch.get_rng_state()
    loaded = load_model(path)
    assert torch.equal(torch.get_rng_state(), state)
    assert loaded.card == card
    assert len(card.self_test["sequences"]) == 4
    tokens = model.tokenizer.encode_codes(CODES)
    assert np.array_equal(loaded.logits(tokens), model.logits(tokens))
    with safe_open(path, "pt") as file:
        assert set(file.keys()) == {f"member.0.{name}" for name in model.networks[0].state_dict()}
    save_model(tmp_path / "again.safetensors", loaded.networks, card)
    assert (tmp_path / "again.safetensors").read_bytes() == path.read_bytes()


def test_a_directory_that_moved_is_named(moved, monkeypatch):
    path, place = moved
    with pytest.raises(
        ConfigError, match=r"before: the directory of the backbone does not exist; name .* by --back"
    ):
        load_model(path)
    loaded = load_model(path, place)
    assert loaded.card.model.backbone.path == str(place)
    assert len(predict(loaded, "ACGTACGT")) == 1
    monkeypatch.setenv("SEQRAY_BACKBONE", str(place))
    assert len(predict(path, "ACGTACGT")) == 1
    assert load_model(path, place).sha256 == loaded.sha256


def test_a_model_without_a_backbone_takes_no_directory(tiny_model_file, backbones):
    with pytest.raises(ConfigError, match="model 'tiny' has no backbone"):
        load_model(tiny_model_file, backbones["esm"])


def test_other_engines_have_no_graph(on_backbone, tmp_path):
    model = on_backbone("bpe")
    for use in (lambda: export_onnx(model, tmp_path / "m.onnx"), lambda: with_engine(model, "onnx")):
        with pytest.raises(ConfigError, match="model 'bpe' uses a backbone and cannot be converted to ONNX"):
            use()
    assert not (tmp_path / "m.onnx").exists()


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


def predicted(model, sequences, **settings):
    records = [SequenceRecord(str(i), s) for i, s in enumerate(sequences)]
    return np.array([p.probabilities for p in predict_records(model, records, **settings)])


@pytest.mark.parametrize("kind", KINDS)
def test_a_frozen_backbone_gives_what_transformers_gives(kind, on_backbone, backbones):
    model = on_backbone(kind)
    expected = [by_hand(model, backbones[kind], sequence) for sequence in SEQUENCES[kind]]
    assert np.ptp(np.array(expected)[:, 0]) > 0.01
    np.testing.assert_allclose(predicted(model, SEQUENCES[kind]), expected, atol=1e-5)


@pytest.mark.parametrize("kind", ["esm", "bpe"])
def test_the_mean_is_over_letters(kind, on_backbone, backbones):
    model, sequences = on_backbone(kind, pooling="mean"), [s.replace("X", "A") for s in SEQUENCES[kind]]
    sequences = [s.replace("N", "A") for s in sequences] if kind == "bpe" else sequences
    expected = [by_hand(model, backbones[kind], s, pooling="mean") for s in sequences]
    np.testing.assert_allclose(predicted(model, sequences), expected, atol=1e-5)


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
    np.testing.assert_allclose(predicted(model, SEQUENCES[kind]), expected, atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_padding_and_order_change_nothing(kind, on_backbone):
    model, sequences = on_backbone(kind), SEQUENCES[kind] * 7
    alone = np.concatenate([predicted(model, [s]) for s in SEQUENCES[kind]])
    np.testing.assert_allclose(predicted(model, sequences, batch_size=16), np.tile(alone, (7, 1)), atol=1e-5)
    turned = predicted(model, sequences[::-1], batch_size=5)[::-1]
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
