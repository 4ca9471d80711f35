"""Settings chosen from the data: the rules, on made-up data sets."""

from dataclasses import replace
from operator import attrgetter
from typing import Any

import pytest
import yaml

from seqray.core.alphabet import DNA, PROTEIN, RNA
from seqray.core.model_config import ModelConfig, StemConfig
from seqray.core.run_config import AugmentConfig, CalibrationConfig, DataConfig, RunConfig
from seqray.training.data_facts import DataFacts
from seqray.training.settings_from_data import alternatives_of, choose_settings, fit_settings


def facts(**changes: Any) -> DataFacts:
    """5000 windows of 81 letters around a site, in two classes; keywords change it."""
    counts = {"background": 3000, "promoter": 2000}
    base = DataFacts(alphabet=DNA, counts=counts, shortest=81, longest=81, site=True)
    return replace(base, **changes)


def of_any_length(longest: int, **changes: Any) -> DataFacts:
    return facts(shortest=10, longest=longest, site=False, **changes)


MANY = {"a": 50_000, "promoter": 50_000}
FEW = {"a": 500, "promoter": 500}
RARE = {"a": 20_000, "b": 257, "c": 33}


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        # Windows around a site: letters by their position, no k-mers; 64 tokens or fewer (81 / 2 = 41).
        (
            facts(),
            "model.position_gain: shared, model.position_matrix: shared, model.words: 0, model.ends: 0, "
            "model.max_length: 81, model.stem.stride: 2, model.d_model: 64, data.window: 81, "
            "optimizer.class_weights: none, trainer: {max_epochs: 16}, members: 3",
        ),
        (facts(shortest=64, longest=64), "model.stem.stride: 1"),
        (facts(site=False), "model.position_gain: none, model.position_matrix: none, model.words: 4"),
        # Any length: the ends by the letter where no letters are merged, and k-mers.
        (of_any_length(200), "model.ends: 24, model.words: 4, model.stem.stride: 1, data.window: 200"),
        (of_any_length(200, alphabet=RNA), "model.alphabet: rna, model.dropout: 0.15"),
        (
            of_any_length(200, alphabet=PROTEIN),
            "model.ends: 12, model.words: 2, model.dropout: 0.4, model.stem.kernels: [3, 7]",
        ),
        (of_any_length(200, placed=True), "model.position_gain: none, model.position_matrix: shared"),
        # The floor, up to three million letters.
        (facts(), "floor: true"),
        (of_any_length(601), "floor: false"),
        (of_any_length(512), "model.pooling: [cls], data.truncate: ends"),
        (facts(), "data.truncate: none"),
        # Long: 1024 tokens or fewer (5000 / 5), and batches of 2^18 letters (52 x 5000); all tokens are read.
        (
            of_any_length(5000),
            "model.ends: 24, model.stem.stride: 5, optimizer.batch_size: 52, "
            "model.pooling: [mean, max, ends], trainer: {max_epochs: 14}, stopping.patience: 5, "
            "model.composition: []",
        ),
        # Long proteins: their composition beside 256 tokens or fewer (600 / 3, 5000 / 20).
        (
            of_any_length(600, alphabet=PROTEIN),
            "model.composition: [whole, ends, pairs], model.pooling: [cls], model.ends: 0, "
            "model.words: 0, model.stem.stride: 3",
        ),
        (of_any_length(512, alphabet=PROTEIN), "model.composition: [], model.ends: 12"),
        (of_any_length(100_000), "model.stem.stride: 64, optimizer.batch_size: 2"),
        (of_any_length(5001, alphabet=PROTEIN), "data.window: 5000, model.stem.stride: 20"),
        # The number of examples.
        (facts(counts=FEW), "optimizer.batch_size: 16, trainer: {max_epochs: 40}, data.validation: 0.2"),
        (
            facts(counts=MANY),
            "model.d_model: 128, model.layers: 3, model.dropout: 0.15, optimizer.batch_size: 128, "
            "optimizer.ema: 0.999, members: 1, stopping.patience: 4",
        ),
        # Classes.
        # Kinds of sites differ in their k-mers, and need more epochs.
        (
            facts(counts=RARE),
            "model.classes: 3, optimizer.class_weights: none, optimizer.logit_adjustment: 0.5, "
            "calibration.method: auto, data.positive: c, model.words: 4, model.position_gain: shared, "
            "trainer: {max_epochs: 30}",
        ),
        (facts(counts={"a": 9, "b": 1}), "optimizer.logit_adjustment: 0.0"),
        (facts(counts={"a": 9, "b": 1, "c": 1}), "optimizer.logit_adjustment: 0.0"),
        (facts(counts={"a": 96, "b": 4}), "optimizer.logit_adjustment: 0.5, calibration.method: auto"),
        # Contexts.
        (
            facts(contexts=("x", "y")),
            "model.contexts: [x, y], model.position_gain: context, model.position_matrix: none, "
            "augment.hide_context: 0.2",
        ),
        (of_any_length(200, contexts=("x", "y")), "model.contexts: [x, y], model.position_gain: none"),
        (facts(contexts=("x",)), "model.contexts: [], augment.hide_context: 0.0"),
    ],
)
def test_the_rules(data, expected):
    """Settings as YAML has them, by the names that ``--set`` takes."""
    config = choose_settings(data)
    for key, value in yaml.safe_load(f"{{{expected}}}").items():
        found = attrgetter(key)(config)
        assert (list(found) if isinstance(found, tuple) else found) == value, key


SPECIES = RunConfig(
    model=ModelConfig(
        max_length=81, position_gain="context", contexts=("x", "y"), stem=StemConfig(stride=3), d_model=32
    ),
    data=DataConfig(window=81, site=60, flank=3),
    augment=AugmentConfig(hide_context=0.2),
    calibration=CalibrationConfig(method="platt"),
    trainer={"max_epochs": 7, "accelerator": "cuda", "devices": 2},
)


def test_settings_of_a_model_fit_other_data():
    config = fit_settings(SPECIES, facts(shortest=50, longest=70, site=False, counts=RARE))
    assert (config.model.d_model, config.model.stem, config.optimizer) == (
        32,
        StemConfig(stride=3),
        SPECIES.optimizer,
    )
    assert (config.model.classes, config.data.positive, config.calibration.method) == (3, "c", "temperature")
    assert config.data == DataConfig(window=70, positive="c", truncate="ends")  # no flanks, no known site
    assert config.model.max_length == 70
    assert (config.model.contexts, config.model.position_gain, config.augment.hide_context) == (
        (),
        "shared",
        0,
    )
    assert config.trainer == {"max_epochs": 7}  # not the machine of the other training


def test_settings_of_a_model_keep_what_the_data_have():
    config = fit_settings(SPECIES, facts(shortest=87, longest=87, contexts=("y",)))
    assert config == replace(SPECIES, trainer={"max_epochs": 7})  # 87 = 81 + 2 x 3 letters of the flanks
    config = fit_settings(SPECIES, facts(contexts=("z",)))
    assert (config.data.flank, config.data.site, config.model.contexts) == (0, 60, ("z",))
    assert (config.model.position_gain, config.augment.hide_context) == ("context", 0.2)


@pytest.mark.parametrize(
    ("data", "fixed", "tried"),
    [
        (facts(), (), True),
        (facts(), ("model.position_matrix",), False),
        (facts(), ("model.dropout",), True),
        (facts(site=False), (), False),
        (facts(contexts=("x", "y")), (), False),
        (facts(counts=FEW), (), False),
        (facts(counts=MANY), (), False),
    ],
)
def test_the_matrix_is_tried_where_enough_is_held_out_and_few_are_learned_from(data, fixed, tried):
    found = alternatives_of(choose_settings(data), data, frozenset(fixed))
    assert found == (
        [{"model.position_matrix": "shared"}, {"model.position_matrix": "none"}] if tried else []
    )
