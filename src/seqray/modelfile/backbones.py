"""Encoders of Hugging Face as backbones."""

from __future__ import annotations

import importlib
import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from safetensors import SafetensorError
from torch import nn

from seqray.core.alphabet import ALPHABETS, Alphabet
from seqray.core.arrays import Ints
from seqray.core.errors import ConfigError, InputError, missing_package
from seqray.core.host import OneAtATime
from seqray.core.model_config import BackboneConfig, ModelConfig
from seqray.io.files import sha256
from seqray.models.sequence import BackboneClassifier
from seqray.models.tokenizers import PAD, Tokenizer

# --- transformers and peft: imported only when a backbone is used, kept silent and away from the network


def _import_extra(name: str) -> Any:
    """Import transformers, peft or a module of theirs; raises ConfigError if it is not installed."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise missing_package(error.name or name, "hf") from None


_loading = OneAtATime()  # what is set of transformers is set for the process


@contextmanager
def transformers_offline(what: str, path: Path) -> Iterator[Any]:
    """Provide transformers, silent and without access to the network, to load something from a directory."""
    transformers = _import_extra("transformers")
    constants, log = _import_extra("huggingface_hub.constants"), _import_extra("transformers.utils.logging")
    with _loading.entered():
        offline, level, bar = constants.HF_HUB_OFFLINE, log.get_verbosity(), log.is_progress_bar_enabled()
        constants.HF_HUB_OFFLINE = True
        log.set_verbosity(logging.CRITICAL)
        log.disable_progress_bar()
        try:
            yield transformers
        except (
            OSError,
            ValueError,
            KeyError,
            TypeError,
            RuntimeError,
            ImportError,
            SafetensorError,
        ) as error:
            reason = str(error).strip().partition("\n")[0]
            raise ConfigError(
                f"transformers can't load {what} ({reason})",
                where=str(path),
                remedy="download its files again, all from one model",
            ) from None
        finally:
            # Other code in this process may use the packages as it likes.
            constants.HF_HUB_OFFLINE = offline
            log.set_verbosity(level)
            if bar:
                log.enable_progress_bar()


# --- The directory of a backbone: found, checked, and known again by the checksums of its files

SETTINGS, WEIGHTS, INDEX = "config.json", "model.safetensors", "model.safetensors.index.json"
TOKENIZER = (
    *("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json"),
    *("vocab.txt", "vocab.json", "merges.txt", "spiece.model", "sentencepiece.bpe.model", "tokenizer.model"),
)
_PICKLES = (".bin", ".pt", ".pth", ".ckpt", ".pkl")
BACKBONE_VARIABLE = "SEQRAY_BACKBONE"
_MOVED = f"name the directory where it lies now by --backbone DIR or the variable {BACKBONE_VARIABLE}"


def find_directory(config: BackboneConfig) -> Path:
    """Find the directory that the settings name, and check that it is the one that they record."""
    if not config.path:
        raise ConfigError("'model.backbone.path' names no directory", remedy="give it, or --backbone DIR")
    path = Path(config.path)
    if not path.is_dir():
        raise ConfigError("the directory of the backbone does not exist", where=config.path, remedy=_MOVED)
    check_directory(path)
    present = checksums(path) if config.files else {}
    for name in sorted(config.files.keys() | present.keys()):
        mine, theirs = config.files.get(name), present.get(name)
        if mine == theirs:
            continue
        if theirs is None:
            fault = f"lacks {name}, which the model was trained with"
        elif mine is None:
            fault = f"holds {name}, which the model was trained without"
        else:
            fault = f"{name} has the sha256 {theirs[:12]}…, the model was trained with {mine[:12]}…"
        raise ConfigError(f"is not the backbone of the model: {fault}", where=str(path), remedy=_MOVED)
    return path


def check_directory(path: Path) -> None:
    """Refuse what isn't an encoder with safetensors weights, or would run code."""
    if (path / "adapter_config.json").exists():
        raise ConfigError(
            "holds adapters of peft, not a whole encoder",
            where=str(path),
            remedy="merge them into their base",
        )
    if not (path / SETTINGS).is_file():
        raise ConfigError(
            f"holds no {SETTINGS}",
            where=str(path),
            remedy="give a directory that save_pretrained of transformers wrote",
        )
    for name in (SETTINGS, "tokenizer_config.json"):
        if (path / name).is_file() and "auto_map" in read_json(path / name):
            raise ConfigError(
                f"needs code of its own ('auto_map' in {name}), which seqray never runs",
                where=str(path),
                remedy="give an encoder that transformers itself knows",
            )
    if not (path / WEIGHTS).is_file() and not (path / INDEX).is_file():
        pickles = sorted(file.name for file in path.iterdir() if file.suffix in _PICKLES)
        if pickles:
            raise ConfigError(
                f"holds pickled weights only ({pickles[0]}), which can run code and are never read",
                where=str(path),
                remedy=f"convert them to {WEIGHTS} (docs/how-to/backbones.md)",
            )
        raise ConfigError(f"holds no {WEIGHTS}", where=str(path), remedy="give a directory with its weights")


def read_json(path: Path) -> Mapping[str, Any]:
    """Read a JSON object. Raises ConfigError for another content, or a file that can't be read."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, RecursionError, ValueError) as error:
        raise ConfigError(f"can't be read ({' '.join(str(error).split())})", where=str(path)) from None
    if not isinstance(content, Mapping):
        raise ConfigError("holds no JSON object", where=str(path))
    return content


def checksums(path: Path) -> dict[str, str]:
    """Sha256 of each file that decides what the encoder computes, by name: settings, tokenizer, weights."""
    weights = [WEIGHTS]
    if not (path / WEIGHTS).is_file():
        places = read_json(path / INDEX).get("weight_map")
        shards = set(places.values()) if isinstance(places, Mapping) else set()
        if not shards or not all(isinstance(name, str) and Path(name).name == name for name in shards):
            what, remedy = "names no files of weights", "copy the whole directory"
            raise ConfigError(what, where=str(path / INDEX), remedy=remedy)
        weights = [INDEX, *sorted(shards)]
    names = [SETTINGS, *(name for name in TOKENIZER if (path / name).is_file()), *weights]
    return {name: _checksum(path / name) for name in names}


def _checksum(path: Path) -> str:
    try:
        facts = path.stat()
    except OSError:
        raise ConfigError("is missing", where=str(path), remedy="copy the whole directory") from None
    return _sum_of_state(path, facts.st_size, facts.st_mtime_ns)


@lru_cache(maxsize=64)
def _sum_of_state(path: Path, size: int, changed: int) -> str:
    """Cache checksums of large files; a changed file is read again."""
    return sha256(path)


# --- The tokenizer of a backbone's own directory, behind the face of seqray's tokenizers

_PROBE = 12  # letters: two words of six
_MAX_LENGTH = 1 << 20  # transformers writes 1e30 for no limit
# Kinds whose positions are counted from behind the padding token's id.
_COUNT_FROM_PADDING = frozenset({"camembert", "esm", "longformer", "mpnet", "roberta", "xlm-roberta"})
_SWAP = {"T": "U", "U": "T"}


class BackboneTokenizer(Tokenizer):
    """Letters to tokens as the backbone was trained to read them, by a tokenizer of transformers.

    Where its vocabulary knows T and not U, or the other way round, one is written for the other.
    """

    def __init__(self, tokenizer: Any, alphabet: Alphabet, limit: int | None, where: str) -> None:
        self.alphabet = alphabet
        self._tokenizer, self._limit, self._where = tokenizer, limit, where
        self.pad: int = tokenizer.pad_token_id or 0  # what is masked may be anything
        unknown = {tokenizer.unk_token_id} - {None}
        self.special_tokens = np.array(sorted(set(tokenizer.all_special_ids) - unknown), dtype=np.int64) + 1
        # Letters are written as they are, or with T and U exchanged.
        missing = [letter for letter in alphabet.letters if not self._knows(letter)]
        swaps = {letter: _SWAP[letter] for letter in missing if letter in _SWAP and alphabet.is_nucleotide}
        for letter in missing:
            if letter not in swaps or not self._knows(swaps[letter]):
                raise ConfigError(
                    f"the tokenizer does not know the letter {letter} of 'model.alphabet: {alphabet.name}'",
                    where=where,
                    remedy="set the alphabet that the backbone reads; words that need spaces can't be read",
                )
        self._fold = str.maketrans(swaps)
        letters = set(alphabet.letters.translate(self._fold))
        words = [i + 1 for word, i in tokenizer.get_vocab().items() if word and set(word) <= letters]
        self.letter_tokens = np.array(sorted(words), dtype=np.int64)
        first = self._ids([alphabet.letters[0] * _PROBE])[0][0]
        self.starts_with_cls = first == tokenizer.cls_token_id

    def _knows(self, letter: str) -> bool:
        [ids] = self._ids([letter * _PROBE])
        if None in ids:  # its vocabulary is empty
            return False
        body = [i for i in ids if i + 1 not in self.special_tokens]
        return bool(body) and self._tokenizer.unk_token_id not in body

    def _ids(self, texts: Sequence[str]) -> list[list[int]]:
        answer = self._tokenizer(
            list(texts),
            truncation=False,
            padding=False,
            return_attention_mask=False,
            return_token_type_ids=False,
            verbose=False,
        )
        return answer["input_ids"]

    def _text(self, codes: npt.NDArray[np.uint8]) -> str:
        return self.alphabet.decode(codes).translate(self._fold)

    def encode_codes(
        self, codes: npt.NDArray[np.uint8], lengths: npt.NDArray[np.integer] | None = None
    ) -> Ints:
        rows = codes.reshape(-1, codes.shape[-1])
        sizes = np.full(len(rows), codes.shape[-1]) if lengths is None else np.ravel(lengths)
        encoded = self._ids([self._text(row[:n]) for row, n in zip(rows, sizes, strict=True)])
        tokens = np.full((len(rows), max(map(len, encoded), default=0)), PAD, dtype=np.int64)
        for row, ids in zip(tokens, encoded, strict=True):
            self._check_count(len(ids))
            row[: len(ids)] = ids
            row[: len(ids)] += 1
        return tokens.reshape(*codes.shape[:-1], tokens.shape[1])

    def _check_count(self, count: int) -> None:
        if self._limit is not None and count > self._limit:
            raise InputError(
                f"makes {count} tokens, the backbone reads at most {self._limit}",
                remedy="cut the sequences, or lower 'data.window'",
            )

    def check(self, sequence: str) -> None:
        # No tokenizer makes more tokens than letters and special ones, so most sequences need no look.
        if self._limit is not None and len(sequence) + len(self.special_tokens) > self._limit:
            self._check_count(len(self.encode(sequence)))

    def mask(self, tokens: Ints, lengths: npt.NDArray[np.integer]) -> npt.NDArray[np.bool_]:
        return tokens != PAD

    def spans(self, codes: npt.NDArray[np.uint8]) -> Ints:
        """Half-open letter interval of each token of letter codes (n,): (L, 2); special ones cover none."""
        text = self._text(codes)
        if self._tokenizer.is_fast:
            answer = self._tokenizer(text, truncation=False, return_offsets_mapping=True, verbose=False)
            return np.array(answer["offset_mapping"], dtype=np.int64).reshape(-1, 2)
        words = self._tokenizer.tokenize(text)
        if "".join(words) != text:
            raise ConfigError(
                "the tokenizer does not define which letters a token represents",
                where=self._where,
                remedy="use the methods ism and occlusion with --no-check and without a page",
            )
        ends = np.cumsum([len(word) for word in words])
        [ids] = self._ids([text])
        spans = np.zeros((len(ids), 2), dtype=np.int64)
        real = ~np.isin(np.array(ids) + 1, self.special_tokens)
        spans[real] = np.stack([ends - [len(word) for word in words], ends], axis=1)
        return spans


def load_tokenizer(config: BackboneConfig, alphabet: str) -> BackboneTokenizer:
    """Load the tokenizer of a backbone's directory."""
    path = find_directory(config)
    return _load(path, alphabet, tuple(checksums(path).items()))


@lru_cache(maxsize=4)
def _load(path: Path, alphabet: str, checksums: tuple[tuple[str, str], ...]) -> BackboneTokenizer:
    """Load once for all members; changed files are loaded again."""
    local = {"local_files_only": True, "trust_remote_code": False}
    with transformers_offline("its tokenizer", path) as transformers:
        settings = transformers.AutoConfig.from_pretrained(path, **local)
        tokenizer = transformers.AutoTokenizer.from_pretrained(path, **local)
    limits = [tokenizer.model_max_length] if tokenizer.model_max_length < _MAX_LENGTH else []
    positions = getattr(settings, "max_position_embeddings", None)
    if positions:
        padding = getattr(settings, "pad_token_id", None) or tokenizer.pad_token_id or 0
        used = padding + 1 if settings.model_type in _COUNT_FROM_PADDING else 0
        limits.append(positions - used)
    return BackboneTokenizer(tokenizer, ALPHABETS[alphabet], min(limits, default=None), str(path))


# --- Load the encoder of a backbone's directory, ready for the chosen tuning

# Names of the linear maps of query and value in the encoders of transformers; apart, or with the key in one.
_QUERY_AND_VALUE = (
    ("query", "value"),
    ("q_proj", "v_proj"),
    ("q_lin", "v_lin"),
    ("query_proj", "value_proj"),
    ("Wqkv",),
    ("qkv",),
    ("query_key_value",),
)
_NOT_NEEDED = "pooler."  # a layer of other tasks


def build_backbone(config: ModelConfig) -> BackboneClassifier:
    """Make a classifier on the encoder of the settings' directory; head and adapters are fresh."""
    assert isinstance(config.backbone, BackboneConfig)
    tokenizer = load_tokenizer(config.backbone, config.alphabet)
    encoder = load_encoder(find_directory(config.backbone))
    encoder.requires_grad_(config.backbone.tuning == "full")
    if config.backbone.tuning == "lora":
        _add_adapters(encoder, config.backbone)
    return BackboneClassifier(config, encoder, tokenizer.pad, tokenizer.special_tokens.tolist())


def load_encoder(path: Path) -> Any:
    """Load the weights of a directory that was checked before, in float32, in evaluation mode."""
    with transformers_offline("the encoder", path) as transformers:
        encoder, report = transformers.AutoModel.from_pretrained(
            path,
            local_files_only=True,
            trust_remote_code=False,
            use_safetensors=True,
            dtype=torch.float32,
            output_loading_info=True,
            ignore_mismatched_sizes=True,  # whose message names no tensor
        )
    missing = sorted(name for name in report["missing_keys"] if not name.startswith(_NOT_NEEDED))
    fault = ""
    if missing:
        fault = f"the weights lack {len(missing)} tensors of the encoder, such as '{missing[0]}'"
    elif report["mismatched_keys"]:
        name, given, asked = min(report["mismatched_keys"])
        fault = f"tensor '{name}' is {tuple(given)} where config.json asks for {tuple(asked)}"
    if fault:
        remedy = "give a directory whose config.json describes its weights"
        raise ConfigError(fault, where=str(path), remedy=remedy)
    if isinstance(getattr(encoder, "pooler", None), nn.Module):
        encoder.pooler = None
    return encoder.eval()


def _add_adapters(encoder: Any, config: BackboneConfig) -> None:
    """Add LoRA matrices to linear maps of the encoder, by default those that make queries and values.

    Source: Hu et al. 2022, LoRA: Low-Rank Adaptation of Large Language Models.
    """
    peft = _import_extra("peft")
    linear = (name for name, module in encoder.named_modules() if isinstance(module, nn.Linear))
    names = {name.rpartition(".")[2] for name in linear}
    targets = config.targets or next((usual for usual in _QUERY_AND_VALUE if names.issuperset(usual)), ())
    if not targets:
        raise ConfigError(
            "the encoder's maps of query and value have unusual names",
            remedy=f"name those to adapt in 'model.backbone.targets', of {', '.join(sorted(names))}",
        )
    for target in targets:
        if target not in names:
            raise ConfigError(
                f"'model.backbone.targets' names '{target}', and the encoder has no such linear map",
                remedy=f"it has {', '.join(sorted(names))}",
            )
    settings = peft.LoraConfig(r=config.rank, lora_alpha=config.alpha, target_modules=list(targets))
    peft.inject_adapter_in_model(settings, encoder)


# --- What settings leave to the directory of a backbone: its files, its width, and what the head reads


def resolve_backbone(config: ModelConfig) -> ModelConfig:
    """Fill in what a backbone's directory settles, for the card; other models are returned as they are."""
    if config.backbone is None:
        return config
    path = find_directory(config.backbone).resolve()
    settings = read_json(path / SETTINGS)
    if settings.get("is_encoder_decoder") or settings.get("is_decoder"):
        raise ConfigError("is no encoder but holds a decoder", where=str(path), remedy="give an encoder")
    width = settings.get("hidden_size", settings.get("dim"))
    if not isinstance(width, int):
        raise ConfigError(f"{SETTINGS} has no 'hidden_size'", where=str(path), remedy="give an encoder")
    tokenizer = load_tokenizer(config.backbone, config.alphabet)
    pooling = config.backbone.pooling
    if pooling == "cls" and not tokenizer.starts_with_cls:
        raise ConfigError("'model.backbone.pooling' is cls, and the tokenizer puts no CLS in front")
    if pooling == "auto":
        pooling = "cls" if tokenizer.starts_with_cls else "mean"
    known = replace(
        config.backbone, path=str(path), name=path.name, files=checksums(path), width=width, pooling=pooling
    )
    return replace(config, backbone=known)
