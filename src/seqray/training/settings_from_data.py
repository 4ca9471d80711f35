"""Choose the settings of a training from its data, by the rules in docs/concepts/training.md."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from seqray.core.labels import choose_positive
from seqray.core.model_config import ModelConfig, StemConfig
from seqray.core.run_config import (
    AugmentConfig,
    CalibrationConfig,
    DataConfig,
    OptimizerConfig,
    RunConfig,
    StoppingConfig,
)
from seqray.core.text import first_and_more
from seqray.training.data_facts import DataFacts, has_rare_class

MAX_WINDOW, MAX_PROTEIN = 100_000, 5_000  # letters; of longer sequences both ends are read
MAX_CONTEXTS = 256
MAX_SITE_TOKENS, MAX_TOKENS = 64, 1024  # of windows of one length, and of longer sequences of any length
MAX_PROTEIN_TOKENS = 256  # of longer proteins, of which the composition is read beside the tokens
MAX_UNMERGED_LETTERS = 512  # in longer sequences letters are merged, and not only CLS is read
MAX_LONG_EPOCHS = 14  # of longer ones, which are learned in fewer
MAX_FLOOR_LETTERS = 3_000_000  # with more, a linear part takes minutes and gigabytes
BATCH_LETTERS = 1 << 18  # about 64 MB for each array of 64 channels


@dataclass(frozen=True, kw_only=True)
class Scale:
    """Settings for fewer than ``below`` examples; ``average`` is the decay of the weight average."""

    below: float = 2000
    width: int = 64
    layers: int = 2
    heads: int = 2
    epochs: int = 40
    epochs_around_site: int = 40
    validation: float = 0.2
    learning_rate: float = 2e-3
    warmup: float = 0.1
    batch: int = 16
    smoothing: float = 0.05
    average: float = 0.99
    members: int = 3


_SMALL_DATA = Scale()
_MEDIUM_DATA = Scale(below=30_000, epochs=30, epochs_around_site=16, validation=0.12, batch=64)
_LARGE_DATA = Scale(
    below=np.inf,
    width=128,
    layers=3,
    heads=4,
    epochs=10,
    epochs_around_site=10,
    validation=0.1,
    learning_rate=1.5e-3,
    warmup=0.05,
    batch=128,
    smoothing=0.02,
    average=0.999,
    members=1,
)


def choose_settings(facts: DataFacts) -> RunConfig:
    """Choose all settings of a training by the rules."""
    scale = next(scale for scale in (_SMALL_DATA, _MEDIUM_DATA, _LARGE_DATA) if facts.total < scale.below)
    protein, rare = facts.alphabet.name == "protein", has_rare_class(facts.counts)
    epochs = scale.epochs_around_site if facts.site_or_not else scale.epochs
    epochs = min(epochs, MAX_LONG_EPOCHS) if _is_long(facts) else epochs
    model, window = _choose_model(facts, scale), _window(facts)
    return RunConfig(
        model=model,
        data=DataConfig(
            window=window,
            positive=choose_positive(facts.counts) or DataConfig().positive,
            validation=scale.validation,
            truncate="none" if facts.one_length else "ends",
            subclasses=facts.subclasses,
        ),
        augment=AugmentConfig(mask=0.15 if protein else 0.1, hide_context=0.2 if model.contexts else 0.0),
        optimizer=OptimizerConfig(
            learning_rate=1.5e-3 if protein else scale.learning_rate,
            weight_decay=0.05,
            warmup=scale.warmup,
            batch_size=max(1, min(scale.batch, BATCH_LETTERS // window)),
            logit_adjustment=0.5 if rare else 0.0,
            label_smoothing=0.1 if protein else scale.smoothing,
            ema=scale.average,
        ),
        stopping=StoppingConfig(monitor="auprc", patience=2 * epochs // 5),
        calibration=CalibrationConfig(method="auto"),
        trainer={"max_epochs": epochs},
        members=scale.members,
        floor=facts.letters <= MAX_FLOOR_LETTERS,
    )


def alternatives_of(
    config: RunConfig, facts: DataFacts, fixed: Set[str] = frozenset()
) -> list[dict[str, Any]]:
    """Changes of chosen settings, but for ``fixed`` ones, among which the data decide: few examples can't."""
    setting = "model.position_matrix"
    few_or_many = facts.total < _SMALL_DATA.below or facts.total >= _MEDIUM_DATA.below
    if config.model.position_matrix != "shared" or few_or_many or setting in fixed:
        return []
    return [{setting: "shared"}, {setting: "none"}]


def _window(facts: DataFacts) -> int:
    most = MAX_PROTEIN if facts.alphabet.name == "protein" and not facts.one_length else MAX_WINDOW
    return max(1, min(facts.longest, most))


def _is_long(facts: DataFacts) -> bool:
    return not facts.one_length and facts.longest > MAX_UNMERGED_LETTERS


def _choose_model(facts: DataFacts, scale: Scale) -> ModelConfig:
    window, protein = _window(facts), facts.alphabet.name == "protein"
    contexts = facts.contexts if 2 <= len(facts.contexts) <= MAX_CONTEXTS else ()
    long = _is_long(facts)
    composed = long and protein
    ends = 0 if facts.one_length or composed else 12 if protein else 24
    if protein:
        dropout, kernels, words = 0.4, (3, 7), 2
    else:
        dropout = 0.15 if facts.total >= 100_000 or not facts.one_length else 0.3
        kernels, words = (7, 15) if facts.site and scale is not _LARGE_DATA else (5, 9, 15, 21), 4
    most = MAX_PROTEIN_TOKENS if composed else MAX_TOKENS if long else MAX_UNMERGED_LETTERS
    most = MAX_SITE_TOKENS if facts.one_length else most
    return ModelConfig(
        alphabet=cast(Any, facts.alphabet.name),
        classes=max(len(facts.counts), 2),
        d_model=scale.width,
        layers=scale.layers,
        heads=scale.heads,
        d_ff=2 * scale.width,
        dropout=dropout,
        position_gain=("context" if contexts else "shared") if facts.site else "none",
        position_matrix="shared" if (facts.site or facts.placed) and not contexts else "none",
        max_length=window,
        ends=min(ends, window),
        words=0 if facts.site_or_not or scale is _LARGE_DATA or composed else words,
        pooling=("cls", "mean", "max") if composed else ("mean", "max", "ends") if long else ("cls",),
        composition=("whole", "ends", "pairs") if composed else (),
        contexts=contexts,
        stem=StemConfig(kernels=kernels, stride=min(-(-window // most), 64)),
    )


def fit_settings(config: RunConfig, facts: DataFacts) -> RunConfig:
    """Fit the settings of another training to the data: classes, window, contexts; not the machine."""
    classes = max(len(facts.counts), 2)
    hardware = ("accelerator", "devices", "num_nodes", "strategy")
    config = replace(
        config,
        model=replace(config.model, classes=classes, subclasses=()),
        data=replace(
            config.data,
            positive=choose_positive(facts.counts) or config.data.positive,
            subclasses=facts.subclasses,
        ),
        calibration=config.calibration if classes == 2 else CalibrationConfig(),
        trainer={name: value for name, value in config.trainer.items() if name not in hardware},
    )
    if not config.model.is_plain:
        return config
    config = _fit_contexts(config, facts)
    data, window = config.data, _window(facts)
    if facts.one_length and facts.longest == data.window + 2 * data.flank:
        return config  # windows that come with the flanks of the settings keep both
    site = data.site if facts.one_length and window == data.window else None
    rule = "none" if facts.one_length else "ends"
    data = replace(data, window=window, flank=0, site=site, truncate=rule)
    model = replace(config.model, max_length=window, ends=min(config.model.ends, window))
    return replace(config, data=data, model=model)


def _fit_contexts(config: RunConfig, facts: DataFacts) -> RunConfig:
    """The contexts of the data; without any, settings for contexts are changed to those for all."""
    model, augment = config.model, config.augment
    contexts = facts.contexts if len(facts.contexts) <= MAX_CONTEXTS else ()
    if contexts and set(contexts) <= set(model.contexts):
        return config
    if not contexts:
        shared = {"context": "shared"}
        model = replace(
            model,
            position_gain=shared.get(model.position_gain, model.position_gain),
            position_matrix=shared.get(model.position_matrix, model.position_matrix),
        )
        augment = replace(augment, hide_context=0.0)
    return replace(config, model=replace(model, contexts=contexts), augment=augment)


def describe_settings(config: RunConfig, facts: DataFacts, source: str) -> list[str]:
    """State in two lines what was chosen, and from which source."""
    model, window = config.model, config.data.window
    cut = "" if model.position_gain == model.position_matrix == "none" else ", cut around a site"
    letters = f"{window} letters" if facts.one_length else f"{facts.shortest} to {window} letters"
    apart = ", and the subclasses that the column 'subclass' names" if config.data.subclasses else ""
    return [
        f"settings chosen from {source}: {model.alphabet}, {letters}{cut}; "
        f"classes {first_and_more(sorted(facts.counts), 10)} (positive: {config.data.positive}){apart}",
        f"{facts.total} examples: {model.d_model} channels, {model.layers} layers, at most "
        f"{config.max_epochs} epochs, networks: {config.members}; "
        "write the settings with --save-config FILE to change them",
    ]
