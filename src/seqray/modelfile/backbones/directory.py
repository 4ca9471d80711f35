"""The directory of a backbone: found, checked, and known again by the checksums of its files.

Only settings, vocabularies and safetensors weights are used. Pickled weights and directories that bring
code of their own are refused: both would run whatever their maker wrote.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from seqray.core import BackboneConfig, ConfigError
from seqray.io import sha256

SETTINGS, WEIGHTS, INDEX = "config.json", "model.safetensors", "model.safetensors.index.json"
TOKENIZER = (
    *("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json"),
    *("vocab.txt", "vocab.json", "merges.txt", "spiece.model", "sentencepiece.bpe.model", "tokenizer.model"),
)
_PICKLES = (".bin", ".pt", ".pth", ".ckpt", ".pkl")
BACKBONE_VARIABLE = "SEQRAY_BACKBONE"
_MOVED = f"name the directory where it lies now by --backbone DIR or the variable {BACKBONE_VARIABLE}"


def find_directory(config: BackboneConfig) -> Path:
    """Find the directory that the settings name, and check that it is the one that they record.

    Raises ConfigError for a directory that is missing, holds no encoder, pickled weights alone or code of its
    own, or one in which a file is not the recorded one.
    """
    if not config.path:
        raise ConfigError("'model.backbone.path' names no directory", remedy="give it, or --backbone DIR")
    path = Path(config.path)
    if not path.is_dir():
        raise ConfigError("the directory of the backbone does not exist", where=config.path, remedy=_MOVED)
    check_directory(path)
    if config.files:
        _compare(config.files, checksums(path), path)
    return path


def check_directory(path: Path) -> None:
    """Refuse what isn't an encoder with safetensors weights, or would run code.

    Raises ConfigError, saying what to do instead.
    """
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
        weights = [INDEX, *_shards(path / INDEX)]
    names = [SETTINGS, *(name for name in TOKENIZER if (path / name).is_file()), *weights]
    return {name: _checksum(path / name) for name in names}


def _shards(index: Path) -> list[str]:
    """Files of weights that an index names, all of them within the directory."""
    places = read_json(index).get("weight_map")
    names = set(places.values()) if isinstance(places, Mapping) else set()
    if not names or not all(isinstance(name, str) and Path(name).name == name for name in names):
        raise ConfigError("names no files of weights", where=str(index), remedy="copy the whole directory")
    return sorted(names)


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


def _compare(recorded: Mapping[str, str], found: Mapping[str, str], path: Path) -> None:
    for name in sorted(recorded.keys() | found.keys()):
        mine, theirs = recorded.get(name), found.get(name)
        if mine == theirs:
            continue
        if theirs is None:
            fault = f"lacks {name}, which the model was trained with"
        elif mine is None:
            fault = f"holds {name}, which the model was trained without"
        else:
            fault = f"{name} has the sha256 {theirs[:12]}…, the model was trained with {mine[:12]}…"
        raise ConfigError(f"is not the backbone of the model: {fault}", where=str(path), remedy=_MOVED)
