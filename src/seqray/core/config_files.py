"""Settings of a run, read from YAML, and changed by the names of their keys."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from seqray.core.errors import ConfigError
from seqray.core.run_config import RunConfig
from seqray.core.serialization import from_mapping, parse_yaml, to_mapping

FROM_DATA = ("model.classes", "data.positive", "data.window")
"""Settings that labeled data state, too."""
MAX_TEXT = 1_000_000  # bytes of settings, or of figures for a card


def change_settings(config: RunConfig, changes: Mapping[str, Any]) -> RunConfig:
    """Return other settings: ``changes`` names them as in ``section.key``.

    Raises ConfigError for a setting that is unknown (the nearest is named) or doesn't fit the others.
    """
    mapping = to_mapping(config)
    for path, value in changes.items():
        *sections, key = path.split(".")
        place: dict[str, Any] = mapping
        for section in sections:
            if not isinstance(place.get(section), dict):
                place[section] = {}
            place = place[section]
        place[key] = value
    return from_mapping(RunConfig, mapping)


def read_small_text(path: str | Path) -> str:
    """Text of a file that people write, of 1 MB at most, so that a pipe without an end ends here.

    Raises `ConfigError` with the file's name in front, if the file can't be read, is larger, or is not UTF-8.
    """
    try:
        with open(path, "rb") as handle:
            data = handle.read(MAX_TEXT + 1)
    except OSError as error:
        raise ConfigError(f"can't be read ({error.strerror})", where=str(path)) from None
    if len(data) > MAX_TEXT:
        raise ConfigError(f"is larger than {MAX_TEXT} bytes", where=str(path), remedy="give a shorter file")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ConfigError("is not text in UTF-8", where=str(path), remedy="save it as UTF-8") from None


def load_run_config(path: str | Path) -> RunConfig:
    """Read a `RunConfig` from a YAML file.

    Raises `ConfigError` with the file's name in front, if the file can't be read, is no YAML or has a wrong
    setting.
    """
    return load_named_config(path)[0]


def load_named_config(path: str | Path) -> tuple[RunConfig, frozenset[str]]:
    """Read a `RunConfig` as `load_run_config` does, and name the settings of the file, as ``section.key``.

    Those of `FROM_DATA` may be null, as if the file did not hold them.
    """
    text = read_small_text(path)
    try:
        mapping = parse_yaml(text)
        if mapping is None:
            raise ConfigError("holds no settings", remedy="write some as 'section: {key: value}'")
        named = _named_settings(mapping)
        return from_mapping(RunConfig, mapping), named
    except ConfigError as error:
        raise ConfigError(error.what, where=str(path), remedy=error.remedy) from None


def _named_settings(mapping: Any) -> frozenset[str]:
    """Settings of a mapping, from which those that the data may state are removed where they are null."""
    sections = (
        {name: part for name, part in mapping.items() if isinstance(part, dict)}
        if isinstance(mapping, dict)
        else {}
    )
    for path in FROM_DATA:
        section, key = path.split(".")
        if sections.get(section, {}).get(key, "") is None:
            del sections[section][key]
    return frozenset(f"{name}.{key}" for name, part in sections.items() for key in part)
