"""How the parameters of `seqray.SequenceClassifier` become the settings of a training."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from seqray.core import (
    ConfigError,
    InputError,
    LabeledSequence,
    RunConfig,
    SequenceRecord,
    from_mapping,
    load_run_config,
    require,
    require_number,
    to_mapping,
)
from seqray.kinds import kind_of
from seqray.modelfile import available_models, locate_model, read_card
from seqray.models import trainer_device

NAME = "sequence-classifier"  # of models without settings
_SECTIONS = {
    "model": ("alphabet", "d_model", "layers", "heads", "dropout"),
    "data": ("window", "validation"),
    "optimizer": ("learning_rate", "weight_decay", "batch_size"),
}

_PARAMETERS = {
    "cut all that are longer by truncate='ends'": "shorten it",
    "'data.positive'": "'positive'",
    "give truncate='ends' or truncate='start'": "shorten it",
    **{f"'{section}.{name}'": f"'{name}'" for section, names in _SECTIONS.items() for name in names},
}
"""Words of errors, and what they are for a user of the classifier."""


@contextmanager
def named_as_parameters() -> Iterator[None]:
    """Name parameters of the classifier in errors, in place of settings and options of the command line."""
    try:
        yield
    except (ConfigError, InputError) as error:
        what, remedy = error.what, error.remedy
        for word, parameter in _PARAMETERS.items():
            what, remedy = what.replace(word, parameter), remedy.replace(word, parameter)
        raise type(error)(what, where=error.where, remedy=remedy) from None


def lay_parameters(parameters: Mapping[str, Any], chosen: RunConfig | None = None) -> RunConfig:
    """Lay parameters that are not None over the settings, or over those chosen from the data.

    ``chosen`` are settings to take in place of the parameter ``config``. ConfigError is raised for settings
    that are wrong, or of a model that does not read sequences.
    """
    given = {name: _plain(value) for name, value in parameters.items() if value is not None}
    require_number(given.get("epochs"), "epochs", whole=True, least=1)
    base = _base_settings(parameters["config"]) if chosen is None else replace(chosen, name=NAME)
    mapping = to_mapping(base)
    if chosen is not None and "d_model" in given:
        mapping["model"]["d_ff"] = 2 * given["d_model"]  # as the rules have it
    for section, names in _SECTIONS.items():
        mapping[section] |= {name: given[name] for name in names if name in given}
    if "window" in given:
        mapping["model"]["max_length"] = max(mapping["model"]["max_length"], given["window"])
    if "epochs" in given:
        mapping["trainer"]["max_epochs"] = given["epochs"]
    mapping |= {name: given[name] for name in ("members", "seed") if name in given}
    mapping["trainer"] |= trainer_device(parameters["device"])
    settings = from_mapping(RunConfig, mapping)
    if kind_of(settings).example is not LabeledSequence:
        raise ConfigError(f"'model.kind' is {settings.model.kind}", remedy="X are sequences")
    return settings


def fit_to_data(
    settings: RunConfig, records: Sequence[SequenceRecord], names: Sequence[str], positive: object
) -> RunConfig:
    """Take from the data what the settings leave open: classes and flanks.

    ``settings`` are those after `lay_parameters`. ``positive`` None takes that of the settings if it is a
    class, else the last class.
    """
    data, model = settings.data, settings.model
    longest = max((len(record) for record in records), default=1)
    if longest <= data.window:
        data = replace(data, flank=0)  # the sequences come without flanks
    if positive is None:
        positive = data.positive if data.positive in names else names[-1]
    data = replace(data, positive=str(positive))
    return replace(settings, data=data, model=replace(model, classes=len(names)))


def _base_settings(config: str | Path | RunConfig | None) -> RunConfig:
    if config is None:
        return RunConfig(name=NAME)
    if isinstance(config, RunConfig):
        return config
    known = isinstance(config, str | Path)
    require(known, "config", "must be a RunConfig, a path, the name of a shipped model or None")
    if str(config) not in available_models():
        return load_run_config(config)
    card = read_card(locate_model(config))
    mapping = {**card.training["config"], "name": card.name, "model": to_mapping(card.model)}
    return from_mapping(RunConfig, mapping)


def _plain(value: Any) -> Any:
    """Python's own number for one of numpy, as grids of parameters hold them."""
    return value.item() if isinstance(value, np.generic) else value
