"""Settings: YAML in and out, and errors that name the key, what is allowed and the nearest name."""

import json
import math
from datetime import date
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, strategies as st

from seqray.core.errors import ConfigError
from seqray.core.model_config import BackboneConfig, ModelConfig, StemConfig
from seqray.core.run_config import (
    AugmentConfig,
    DataConfig,
    OptimizerConfig,
    RunConfig,
    load_named_config,
    load_run_config,
)
from seqray.core.serialization import from_mapping, to_mapping
from seqray.modelfile.file import build_network, count_parameters
from seqray.training.trainer import trainer_settings

CONFIGS = sorted((Path(__file__).parents[3] / "configs").glob("*.yaml"))


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.name)
def test_every_configuration_of_the_repository_parses_and_builds(path):
    config = load_run_config(path)
    assert count_parameters(build_network(config.model)) > 1000
    assert trainer_settings(config)["max_epochs"] >= 1
    assert from_mapping(RunConfig, to_mapping(config)) == config


def test_the_example_shows_every_section_and_setting():
    """So that a reader of the example needs no other list."""
    shown = yaml.safe_load((CONFIGS[0].parent / "example.yaml").read_text())
    assert set(shown) == set(to_mapping(RunConfig()))
    for section in ("data", "augment", "genomes", "optimizer", "stopping"):
        assert set(shown[section]) == set(to_mapping(RunConfig())[section])


def test_settings_of_a_file_are_named_but_for_those_left_to_the_data(tmp_path):
    path = tmp_path / "c.yaml"
    path.write_text(
        "name: x\nmodel: {classes: null, layers: 2, stem: null}\ndata: {window: 9, positive: null}\n"
    )
    config, named = load_named_config(path)
    assert (config.model.classes, config.data.positive, config.data.window) == (2, "promoter", 9)
    assert named == {"model.layers", "model.stem", "data.window"}
    path.write_text("{}")
    assert load_named_config(path) == (RunConfig(), frozenset())


def test_nothing_given_is_every_default():
    assert from_mapping(RunConfig, {}) == RunConfig()
    assert RunConfig().model == ModelConfig()


@given(
    st.builds(
        RunConfig,
        model=st.builds(
            ModelConfig,
            heads=st.sampled_from([1, 2, 4]),
            d_model=st.sampled_from([16, 64]),
            dropout=st.floats(0, 0.9),
            stem=st.none() | st.builds(StemConfig, kernels=st.sampled_from([(3,), (5, 9)])),
        ),
        optimizer=st.builds(OptimizerConfig, learning_rate=st.floats(1e-6, 1.0)),
        trainer=st.dictionaries(st.sampled_from(["max_epochs", "devices"]), st.integers(1, 9)),
        members=st.integers(1, 5),
    )
)
def test_settings_survive_yaml_and_json(config):
    mapping = to_mapping(config)
    assert from_mapping(RunConfig, yaml.safe_load(yaml.safe_dump(mapping))) == config
    assert from_mapping(RunConfig, json.loads(json.dumps(mapping))) == config


def bomb(levels: int) -> list[Any]:
    """A list of ten lists, each of the same ten lists, and so on: ten to the power of the levels."""
    return [bomb(levels - 1)] * 10 if levels else []


def own_member() -> list[Any]:
    """A list that holds itself, as YAML can say."""
    members: list[Any] = []
    members.append(members)
    return members


@pytest.mark.parametrize(
    ("mapping", "message"),
    [
        ({"modle": {}}, "unknown setting 'modle'; did you mean 'model'?"),
        ({"model": {"d_modell": 3}}, "unknown setting 'model.d_modell'; did you mean 'model.d_model'?"),
        ({"stopping": {"xyz": 1}}, "unknown setting 'stopping.xyz'; known are monitor, patience"),
        ({"model": {"layers": "two"}}, "'model.layers' is 'two'; give a whole number"),
        ({"model": {"stem": {"kernels": 3}}}, "'model.stem.kernels' is 3; give a list such as [3, 7]"),
        ({"trainer": 3}, "'trainer' is 3; give settings below it"),
        ({"optimizer": {"learning_rate": 10**400}}, "'optimizer.learning_rate' is 1000000000"),
        ({"optimizer": {"ema": float("inf")}}, "'optimizer.ema' is inf; give a finite number"),
        ({"name": [["x"] * 1000] * 1000}, "'name' is [['x', 'x', "),
        ([1], "'the file' is not a mapping of settings"),
    ],
)
def test_a_wrong_key_or_type_is_named(mapping, message):
    with pytest.raises(ConfigError) as error:
        from_mapping(RunConfig, mapping)
    assert message in str(error.value)
    assert error.value.exit_code == 2


@pytest.mark.parametrize(
    ("cls", "settings", "message"),
    [
        (ModelConfig, {"classes": 1}, "'model.classes' must be 2 or more"),
        (ModelConfig, {"layers": 1_000_000}, "'model.layers' must be at most 256"),
        (ModelConfig, {"d_model": 1_000_000_000}, "'model.d_model' must be at most 65536"),
        (ModelConfig, {"d_model": 30, "heads": 4}, "'model.d_model' (30) must be a multiple"),
        (ModelConfig, {"d_model": 6, "heads": 2, "positions": "rotary"}, "heads of even width for rotary"),
        (ModelConfig, {"heads": 4, "kv_heads": 3}, "'model.kv_heads' (3) must divide 'model.heads' (4)"),
        (ModelConfig, {"dropout": 1.0}, "'model.dropout' must lie in [0, 1)"),
        (ModelConfig, {"k": 3}, "'model.k' must be 1 for the character tokenizer"),
        (ModelConfig, {"tokenizer": "kmer", "k": 3, "stem": StemConfig()}, "requires the character"),
        (ModelConfig, {"stem": StemConfig(kernels=(3, 5, 7))}, "must divide 'model.d_model'"),
        (ModelConfig, {"kind": "alignment", "tokenizer": "kmer", "k": 3}, "model.tokenizer"),
        (ModelConfig, {"kind": "alignment", "kv_heads": 1}, "model.kv_heads"),
        (ModelConfig, {"kind": "alignment", "contexts": ("a",)}, "model.contexts"),
        (ModelConfig, {"kind": "alignment", "position_gain": "shared"}, "model.position_gain"),
        (ModelConfig, {"kind": "alignment", "position_matrix": "shared"}, "model.position_matrix"),
        (ModelConfig, {"kind": "alignment", "max_rows": 0}, "model.max_rows"),
        (ModelConfig, {"kind": "alignment", "alphabet": "protein", "helices": True}, "model.helices"),
        (ModelConfig, {"helices": True}, "model.helices"),
        (ModelConfig, {"ends": -1}, "model.ends"),
        (ModelConfig, {"ends": 2, "tokenizer": "kmer", "k": 3}, "model.ends"),
        (ModelConfig, {"pooling": ()}, "names one or more parts"),
        (ModelConfig, {"pooling": ("mean", "mean")}, "each once"),
        (ModelConfig, {"pooling": ("ends",)}, "only with 'model.ends'"),
        (ModelConfig, {"pooling": ("mean",), "kind": "alignment"}, "requires 'model.kind: sequence'"),
        (ModelConfig, {"pooling": ("mean",), "kind": "locator"}, "is not for 'model.kind: locator'"),
        (ModelConfig, {"subclasses": (2,)}, "'model.subclasses' has one number for each class"),
        (ModelConfig, {"subclasses": (0, 1)}, "'model.subclasses' must be numbers of 1 and more"),
        (ModelConfig, {"subclasses": (1 << 16, 1)}, "'model.subclasses' must be at most 65536 together"),
        (ModelConfig, {"subclasses": (1, 1), "kind": "locator"}, "is not for 'model.kind: locator'"),
        (BackboneConfig, {"path": "a\0b"}, "'model.backbone.path' is no name of a directory"),
        (StemConfig, {"kernels": ()}, "'stem.kernels' needs at least one width"),
        (StemConfig, {"kernels": (4,)}, "'stem.kernels' takes odd widths"),
        (DataConfig, {"site": 81}, "'data.site' must lie within the window"),
        (DataConfig, {"positive": "a\x1b[2J"}, r"'data.positive' is 'a\x1b[2J', which holds a tab"),
        (RunConfig, {"name": "a\udc80"}, r"'name' is 'a\udc80'"),
        (RunConfig, {"card": {"made": date(2001, 1, 1)}}, "'card.made' is of the type date; give text or a"),
        (RunConfig, {"card": {"x": {"y": math.nan}}}, "'card.x.y' is nan; give text or a finite number"),
        (RunConfig, {"card": {1: "x"}}, "'card' has the key 1; put text in its place"),
        (RunConfig, {"card": {"x": bomb(9)}}, "'card' holds more than 100000 values, or lists in lists"),
        (RunConfig, {"trainer": {"x": own_member()}}, "'trainer' holds more than 100000 values, or lists"),
        (AugmentConfig, {"reverse_complement": 1.1}, "'augment.reverse_complement' must lie in [0, 1]"),
        (OptimizerConfig, {"learning_rate": 1e300}, "must be above 0 and at most 10"),
        (OptimizerConfig, {"ema": 1.0}, "'optimizer.ema' must lie in [0, 1)"),
        (RunConfig, {"members": 6}, "'members' must lie between 1 and 5"),
        (RunConfig, {"name": "two words"}, "'name' must be one word without slashes"),
        (RunConfig, {"data": DataConfig(window=2000)}, "'data.window' (2000) exceeds 'model.max_length'"),
        (
            RunConfig,
            {"data": DataConfig(window=81), "augment": AugmentConfig(shift=81)},
            "'augment.shift' (81) moves all letters out of 'data.window' (81)",
        ),
    ],
)
def test_a_value_out_of_range_is_refused(cls: Any, settings, message):
    with pytest.raises(ConfigError) as error:
        cls(**settings)
    assert message in str(error.value)


def test_values_that_yaml_reads_as_text_or_whole_numbers_are_taken_as_fractions():
    config = from_mapping(RunConfig, yaml.safe_load("optimizer: {learning_rate: 1e-3, weight_decay: 0}"))
    assert config.optimizer.learning_rate == 0.001
    assert isinstance(config.optimizer.weight_decay, float)
    assert from_mapping(RunConfig, {"model": {"kv_heads": None, "stem": None}}) == RunConfig()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"model: {layers: 0}", "c.yaml: 'model.layers' must be 1 or more"),
        (b"model: [", "c.yaml: is not valid YAML"),
        (
            b"model: {layers: 1\nseed: 2\n",
            "c.yaml: is not valid YAML (line 2: expected ',' or '}', but got ':'); check brackets,",
        ),
        (
            b"seed: 1\nname: x\nseed: 2\n",
            "c.yaml: is not valid YAML (line 3: 'seed' is given twice: remove one)",
        ),
        (b"\xff\xfe\x00", "c.yaml: is not text in UTF-8"),
        (b"name: 2001-99-99", "c.yaml: is not valid YAML (month must be in 1..12)"),
        (b"name: !!int ''", "c.yaml: is not valid YAML ("),
        (b"name: &a [*a]", "c.yaml: is not valid YAML ('*a' is an alias: write its value out)"),
        (b"seed: 0x" + b"f" * 5000, "c.yaml: is not valid YAML (a whole number has more than 64 bits)"),
        (b"name: " + b"[" * 5000, "c.yaml: is not valid YAML ("),
    ],
)
def test_errors_in_a_file_name_it_in_one_line(tmp_path, content, message):
    path = tmp_path / "c.yaml"
    path.write_bytes(content)
    with pytest.raises(ConfigError) as error:
        load_run_config(path)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_a_file_without_an_end_is_refused():
    with pytest.raises(ConfigError, match="/dev/zero: is larger than 1000000 bytes"):
        load_run_config("/dev/zero")


def test_a_byte_order_mark_is_no_setting(tmp_path):
    (tmp_path / "c.yaml").write_bytes(b"\xef\xbb\xbfseed: 7\r\n")
    assert load_run_config(tmp_path / "c.yaml").seed == 7


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    with pytest.raises(ConfigError, match=r"none\.yaml: can't be read \(No such file"):
        load_run_config(tmp_path / "none.yaml")
    (tmp_path / "empty.yaml").touch()
    with pytest.raises(ConfigError, match=r"empty\.yaml: holds no settings"):
        load_run_config(tmp_path / "empty.yaml")
    (tmp_path / "twice.yaml").write_text("model: {layers: 1, layers: 3}")
    with pytest.raises(ConfigError, match="'layers' is given twice"):
        load_run_config(tmp_path / "twice.yaml")


def test_settings_of_before_are_read_at_the_value_that_is_still_computed():
    model = {"d_model": 32, "matrix_rank": 8, "row_choice": "diverse"}
    read = from_mapping(RunConfig, {"model": model, "optimizer": {"mixup": 0}, "augment": {"rows": None}})
    assert read == RunConfig(model=ModelConfig(d_model=32))
    with pytest.raises(ConfigError, match="unknown setting"):
        from_mapping(ModelConfig, {"matrix_rank": 4}, "model")
