"""What is measured of the data, and the settings that are chosen from it, by rules and by trials."""

from dataclasses import replace
from operator import attrgetter
from typing import Any

import numpy as np
import pytest
import torch
import yaml

from seqray.core.alphabet import DNA, PROTEIN, RNA
from seqray.core.errors import ConfigError
from seqray.core.model_config import ModelConfig, StemConfig
from seqray.core.records import LabeledSequence
from seqray.core.run_config import AugmentConfig, CalibrationConfig, DataConfig, RunConfig, StoppingConfig
from seqray.training.data_facts import DataFacts, data_cautions, has_site, measure_data
from seqray.training.fit import train, train_best
from seqray.training.members import RunOptions
from seqray.training.settings_from_data import alternatives_of, choose_settings, fit_settings


def facts(**changes: Any) -> DataFacts:
    """5000 windows of 81 letters around a site, in two classes; keywords change it."""
    counts = {"background": 3000, "promoter": 2000}
    base = DataFacts(alphabet=DNA, counts=counts, shortest=81, longest=81, letters=405_000, site=True)
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
        (of_any_length(60_000, letters=3_000_000), "floor: true"),
        (of_any_length(601, letters=3_000_001), "floor: false"),
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
            "model.composition: [whole, ends, pairs], model.pooling: [cls, mean, max], model.ends: 0, "
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


def random_windows(count: int, length: int, seed: int, letters: str = "ACGT") -> list[str]:
    codes = np.random.default_rng(seed).integers(len(letters), size=(count, length))
    return ["".join(letters[code] for code in row) for row in codes]


def test_windows_around_a_site_are_told_by_their_letters():
    background, others = random_windows(200, 30, 1), random_windows(200, 30, 2)
    sites = [window[:12] + "TATAAT" + window[18:] for window in others]
    assert has_site([background, sites], DNA)
    assert not has_site([background, others], DNA)
    moved = [window[i % 24 :] + window[: i % 24] for i, window in enumerate(sites)]
    assert not has_site([background, moved], DNA)  # the same letters in all windows, at any place
    # Other shares of letters are no site.
    assert not has_site([background, random_windows(200, 30, 3, "AACGT")], DNA)


def test_too_few_windows_show_no_site():
    assert not has_site([["ACGT"], ["TTTT"]], DNA)


def examples(*rows: tuple[str, str], **more: Any) -> list[LabeledSequence]:
    return [LabeledSequence(sequence, label, f"s{i}", **more) for i, (sequence, label) in enumerate(rows)]


def test_data_are_measured_without_their_test_part():
    data = examples(("ACGT", "a"), ("ACG", "b"), ("ACG", "b"))
    data += examples(("ACGTACGT", "a"), ("A", "c"), split="test", context="yeast")
    found = measure_data(data, DNA)
    assert (found.counts, found.shortest, found.longest, found.site) == ({"a": 1, "b": 2}, 3, 4, False)
    assert (found.total, found.one_length, found.contexts) == (3, False, ("yeast",))


def test_places_count_where_nine_in_ten_lengths_are_alike():
    rows = [(window, "a") for window in random_windows(200, 30, 1)]
    rows += [
        (window[:12] + "TATAAT" + window[18:] + "A" * (i % 5), "b") for i, (window, _) in enumerate(rows)
    ]
    found = measure_data(examples(*rows, ("ACG", "a")), DNA)
    assert (found.site, found.placed, found.longest) == (False, True, 34)
    unlike = [("A" * (i % 20) + sequence, label) for i, (sequence, label) in enumerate(rows)]
    assert not measure_data(examples(*unlike), DNA).placed


def test_copies_do_not_make_a_site():
    data = examples(*[("ACGTTGCA" * 4, "a"), ("TTGACCGA" * 4, "b")] * 100)
    assert not measure_data(data, DNA).site


def test_no_data_are_no_example():
    assert measure_data(examples(("ACGT", "a"), split="test"), DNA).total == 0


@pytest.mark.parametrize(("odd", "told"), [(0, False), (1, True), (2, True), (3, False)])
def test_a_few_sequences_of_another_length_are_told(odd, told):
    data = [
        LabeledSequence(f"{i:07b}".replace("0", "A").replace("1", "C"), "ab"[i % 2], f"r{i}")
        for i in range(100)
    ]
    data[:odd] = [replace(one, sequence=one.sequence[:3], label="a") for one in data[:odd]]
    said = [text for text in data_cautions(data) if "another length" in text]
    what = f"{odd} sequence{'s' * (odd > 1)} of another length than the 7 letters of all others"
    assert [text.partition(":")[0] for text in said] == [f"{what}, such as 'r0' (3)"] * told


ROWS = [LabeledSequence(letters, "a", letters) for letters in ("ACGT", "AAAA", "CCCC")]
COPIES = [
    replace(row, id=f"t{i}", split="test", context="x" if i == 2 else None) for i, row in enumerate(ROWS)
]


def labels(*names):
    return [replace(ROWS[i], label=name) for i, name in enumerate(names)]


@pytest.mark.parametrize(
    ("data", "told"),
    [
        ([*ROWS, *ROWS[:2]], "2 rows with the id, letters and label of an earlier one"),
        ([*ROWS, replace(ROWS[0], id="another")], None),
        (labels("nan", "none", "nan"), "the label 'nan' is a class like the others; if it stands for"),
        ([*ROWS, *COPIES], "2 test sequences of 3, such as 't0', with the letters of one that is learned"),
        ([ROWS[0], replace(ROWS[0], id="x", label="b")], "1 sequence with several labels, such as that of"),
        ([replace(ROWS[0], context="y"), replace(ROWS[0], label="b", context="x")], None),
    ],
)
def test_what_looks_like_a_mistake_is_told_and_nothing_else(data, told):
    said = list(data_cautions(data))
    assert len(said) == (told is not None)
    assert not said or told in said[0]


RNG = np.random.default_rng(8)
WIDTHS = ({"model.d_model": 4}, {"model.d_model": 8})
CONFIG = RunConfig(
    model=ModelConfig(d_model=4, heads=1, layers=1, max_length=12),
    data=DataConfig(window=12, positive="a", validation=0.25),
    stopping=StoppingConfig(monitor="loss"),
    trainer={"max_epochs": 2},
    members=2,
)


def windows_without_g() -> list[LabeledSequence]:
    """60 random sequences; those of class ``a`` hold no G."""
    letters = {"a": list("ACT"), "b": list("ACGT")}
    labels = ["a", "b"] * 30
    return [
        LabeledSequence("".join(RNG.choice(letters[label], 12)), label, f"s{i}")
        for i, label in enumerate(labels)
    ]


@pytest.fixture(scope="module")
def best(tmp_path_factory):
    data, folder, lines = windows_without_g(), tmp_path_factory.mktemp("tried"), []
    result, config = train_best(
        CONFIG, WIDTHS, data, None, RunOptions(folder, threads=1), on_trial=lines.append
    )
    return data, folder, result, config, lines


def test_the_best_first_member_decides(best, tmp_path):
    data, _, result, config, lines = best
    losses = []
    for number, changes in enumerate(WIDTHS):
        one = replace(CONFIG, members=1, model=replace(CONFIG.model, d_model=changes["model.d_model"]))
        [history] = train(one, data, None, RunOptions(tmp_path / str(number), threads=1)).history
        losses.append(min(row["loss"] for row in history))
    assert [line.partition(": epochs")[0] for line in lines] == [
        "trial 1: model.d_model=4",
        "trial 2: model.d_model=8",
    ]
    facts = result.card.training["search"]
    assert [-score for score in facts["tried"].values()] == pytest.approx(losses, abs=0)
    assert facts["changes"] == WIDTHS[int(np.argmin(losses))]
    assert config.model.d_model == facts["changes"]["model.d_model"]
    assert (result.card.members, result.card.model) == (2, config.model)  # the others have its settings


def test_the_same_run_trains_nothing_again(best):
    data, folder, result, _, lines = best
    again = []
    repeated, _ = train_best(CONFIG, WIDTHS, data, None, RunOptions(folder, threads=1), on_trial=again.append)
    assert again == lines  # with the seconds that they took
    for old, new in zip(result.networks, repeated.networks, strict=True):
        assert all(map(torch.equal, old.parameters(), new.parameters()))


def test_a_fresh_start_removes_what_was_there(best):
    data, folder, *_ = best
    stale = folder / "settings-000000000000"
    stale.mkdir()
    train_best(CONFIG, WIDTHS, data, None, RunOptions(folder, resume=False, threads=1))
    assert not stale.exists()


def test_settings_that_are_refused_remove_nothing(tmp_path):
    kept = tmp_path / "settings-a"
    kept.mkdir()
    wrong = replace(CONFIG, trainer={**CONFIG.trainer, "no_such_setting": 1})
    with pytest.raises(ConfigError, match="no_such_setting"):
        train_best(wrong, WIDTHS, windows_without_g(), None, RunOptions(tmp_path, resume=False))
    assert kept.is_dir()
