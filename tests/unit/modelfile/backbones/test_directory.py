"""Directories of encoders, and their tokenizers."""

import hashlib
import json
import shutil

import numpy as np
import pytest
from safetensors.torch import load_file, save_file
from transformers import AutoTokenizer

from seqray.core.alphabet import DNA, PROTEIN, RNA
from seqray.core.errors import ConfigError, InputError
from seqray.core.model_config import BackboneConfig, ModelConfig
from seqray.modelfile.backbones import (
    build_backbone,
    checksums,
    find_directory,
    load_encoder,
    load_tokenizer,
    resolve_backbone,
)


@pytest.fixture
def copy(backbones, tmp_path):
    """A directory of its own to spoil."""
    path = tmp_path / "bpe"
    shutil.copytree(backbones["bpe"], path)
    return path


def on(path, **settings):
    return ModelConfig(kind="backbone", backbone=BackboneConfig(path=str(path), **settings))


def edit(path, **values):
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))


def test_the_card_gets_the_facts_of_the_directory(copy):
    (copy / "README.md").write_text("decides nothing")
    known = resolve_backbone(on(copy)).backbone
    assert (known.path, known.name, known.width, known.pooling) == (str(copy), "bpe", 16, "cls")
    assert known.files == {
        name: hashlib.sha256((copy / name).read_bytes()).hexdigest()
        for name in ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json")
    }


def test_another_place_is_the_same_backbone_and_another_file_is_not(copy, tmp_path):
    known = resolve_backbone(on(copy)).backbone
    copy.rename(tmp_path / "moved")
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


def test_shards_are_weights(copy):
    tensors = load_file(copy / "model.safetensors")
    names = sorted(tensors)
    halves = {"a.safetensors": names[::2], "b.safetensors": names[1::2]}
    for file, part in halves.items():
        save_file({name: tensors[name] for name in part}, copy / file, {"format": "pt"})
    (copy / "model.safetensors").unlink()
    index = {"metadata": {}, "weight_map": {name: file for file, part in halves.items() for name in part}}
    (copy / "model.safetensors.index.json").write_text(json.dumps(index))
    assert {"a.safetensors", "b.safetensors", "model.safetensors.index.json"} < checksums(copy).keys()
    loaded = dict(load_encoder(copy).named_parameters())
    assert (loaded["embeddings.word_embeddings.weight"] == tensors["embeddings.word_embeddings.weight"]).all()
    (copy / "b.safetensors").unlink()
    with pytest.raises(ConfigError, match=r"b\.safetensors: is missing; copy the whole directory"):
        find_directory(on(copy, files={"config.json": ""}).backbone)


def test_what_could_run_code_is_refused(copy):
    edit(copy / "config.json", auto_map={"AutoModel": "modeling.Model"})
    (copy / "modeling.py").write_text("raise RuntimeError('must never run')")
    with pytest.raises(
        ConfigError, match=r"needs code of its own \('auto_map' in config\.json\), which seqray never"
    ):
        resolve_backbone(on(copy))
    edit(copy / "config.json", auto_map=None)


def test_pickles_are_refused_with_the_remedy(copy):
    (copy / "model.safetensors").rename(copy / "pytorch_model.bin")
    with pytest.raises(
        ConfigError, match=r"pickled weights only \(pytorch_model\.bin\).*; convert them to model"
    ):
        resolve_backbone(on(copy))
    (copy / "pytorch_model.bin").unlink()
    with pytest.raises(ConfigError, match=r"holds no model\.safetensors; give"):
        resolve_backbone(on(copy))


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
def test_settings_that_fit_no_encoder_are_refused(change, error, copy):
    edit(copy / "config.json", **change)
    with pytest.raises(ConfigError, match=error) as caught:
        build_backbone(resolve_backbone(on(copy)))
    assert "\n" not in str(caught.value)


def test_a_damaged_file_of_weights_is_refused(copy):
    weights = copy / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:1000])
    with pytest.raises(
        ConfigError, match=r"transformers can't load the encoder .*; download its files again"
    ):
        build_backbone(resolve_backbone(on(copy)))


def test_other_directories_are_refused(copy, tmp_path):
    with pytest.raises(ConfigError, match=r"'model\.backbone\.path' names no directory"):
        resolve_backbone(ModelConfig(kind="backbone"))
    with pytest.raises(ConfigError, match=r"holds no config\.json"):
        resolve_backbone(on(tmp_path))
    (copy / "adapter_config.json").write_text("{}")
    with pytest.raises(ConfigError, match="holds adapters of peft, not a whole encoder"):
        resolve_backbone(on(copy))
    (copy / "adapter_config.json").unlink()
    for text in ("no json", "[" * 100_000):
        (copy / "config.json").write_text(text)
        with pytest.raises(ConfigError, match=r"config\.json: can't be read"):
            resolve_backbone(on(copy))


def test_targets_of_lora_are_linear_maps(copy):
    with pytest.raises(
        ConfigError, match=r"names 'q_proj', and the encoder has no such linear map; it has dense"
    ):
        build_backbone(resolve_backbone(on(copy, tuning="lora", targets=("q_proj",))))
    network = build_backbone(resolve_backbone(on(copy, tuning="lora", rank=2, targets=("key",))))
    assert sorted(network.adapters) == [
        f"encoder/layer/{i}/attention/self/key/lora_{m}/default/weight" for i in range(2) for m in "AB"
    ]


def test_without_cls_the_mean_is_read(copy):
    edit(copy / "tokenizer.json", post_processor=None)
    assert resolve_backbone(on(copy)).backbone.pooling == "mean"
    with pytest.raises(ConfigError, match="pooling' is cls, and the tokenizer puts no CLS in front"):
        resolve_backbone(on(copy, pooling="cls"))


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
