"""The search itself, over trainings whose figures follow from their settings by a formula."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from seqray.core.errors import ConfigError, Terminated
from seqray.core.run_config import RunConfig
from seqray.training import halving as successive_halving
from seqray.training.budget import Budget
from seqray.training.halving import search_settings
from seqray.training.members import RunOptions
from seqray.training.search import trial_row


@dataclass
class Bench:
    """Trainings that take a second an epoch and no time, and what was asked of them."""

    figure: Callable[[RunConfig, int], float] = lambda config, epochs: 0.5
    trained: list[tuple[RunConfig, int]] = field(default_factory=list)
    final: dict[str, Any] = field(default_factory=dict)
    raises: dict[int, BaseException] = field(default_factory=dict)
    raises_last: list[BaseException] = field(default_factory=list)
    clock: float = 0.0
    processes: int = 1

    def pool(self, work: Any, shared: Any, **settings: Any) -> Bench:
        return self

    def __enter__(self) -> Bench:
        return self

    def __exit__(self, *reason: object) -> None:
        pass

    def stop(self) -> None:
        pass

    def run(self, calls: Any, phase: str, stop_at: float | None = None) -> None:
        for call in calls:
            config, folder = call["config"], call["folder"]
            if error := self.raises.get(len(self.trained)):
                raise error
            epochs = config.trainer["max_epochs"]
            self.trained.append((config, epochs))
            self.clock += epochs
            figures = {"auprc": self.figure(config, epochs), "mcc": 0.1, "loss": 1.0}
            history = [{"epoch": i + 1, **figures} for i in range(epochs)]
            folder.finish(1, {"seed": 1, "best_epoch": epochs, "history": history, "seconds": epochs})

    def train(self, config: RunConfig, **more: Any) -> Any:
        if self.raises_last:
            raise self.raises_last.pop()
        self.final = {"config": config, **more}


@pytest.fixture
def bench(monkeypatch) -> Bench:
    bench = Bench()
    monkeypatch.setattr(successive_halving, "WorkerPool", bench.pool)
    monkeypatch.setattr(successive_halving, "train", bench.train)
    monkeypatch.setattr(successive_halving, "close_trial", lambda trial: None)
    monkeypatch.setattr("seqray.training.halving.time.time", lambda: bench.clock)
    return bench


@pytest.fixture
def find(motif_task, make_config, tmp_path):
    """Search in 9 epochs with 64 examples of 40 letters, 27 steps an epoch at most."""

    def call(budget: str, folder: str = "w", **sections: Any) -> successive_halving.SearchResult:
        settings = {"stopping": {"monitor": "auprc"}, "trainer": {"max_epochs": 9}} | sections
        return search_settings(
            make_config(**settings),
            motif_task(64),
            None,
            RunOptions(tmp_path / folder, threads=1),
            budget=Budget.parse(budget),
        )

    return call


def by_width(config: RunConfig, epochs: int) -> float:
    """More layers are better, and longer training."""
    return config.model.layers / 10 + epochs / 100


def test_the_first_configuration_comes_first_and_a_round_is_halved(bench, find):
    bench.figure = by_width
    result = find("49s")  # 1 + 9 of the first, 9 x 1 + 3 x 3 + 9 of a round, and 9 remain for another
    epochs = [epochs for _, epochs in bench.trained]
    assert epochs[:14] == [1, 9] + [1] * 9 + [3] * 3
    assert epochs[14] == 9
    first = result.trials[1]
    assert (first.changes, first.round, first.title) == ({}, 0, "as begun")
    assert result.chosen.score >= first.score
    shorts, middles = result.trials[2:11], result.trials[11:14]
    best = sorted((one.score for one in shorts), reverse=True)[:3]
    assert sorted(one.score - 0.02 for one in middles) == pytest.approx(sorted(best))
    assert bench.final["config"] == result.config
    assert bench.final["run"].work_dir == result.chosen.folder.path


def test_nothing_better_leaves_the_first_and_ends_the_search(bench, find):
    begun = {}

    def figure(config: RunConfig, epochs: int) -> float:
        begun.setdefault("config", config)
        same = config.model == begun["config"].model and config.optimizer == begun["config"].optimizer
        return (0.9 if same and config.augment == begun["config"].augment else 0.5) + epochs / 1000

    bench.figure = figure
    result = find("9h")
    assert (result.chosen.number, result.chosen.changes, result.ended) == (2, {}, "done")
    assert max(trial.round for trial in result.trials) == 3  # three rounds without a gain
    assert trial_row(result.chosen, True)[:5] == [2, 0, 9, 18, "9"]


@pytest.mark.parametrize(
    ("budget", "members", "epochs", "final"),
    [
        ("1s", 3, [1], 1),  # a ninth of the first is always trained
        ("6s", 1, [1, 5], 1),  # what fits of it
        ("10s", 3, [1, 7], 1),  # 9 remain, of which the short one's other members would take 2
        ("29s", 3, [1, 9], 3),  # the members need 18 and leave nothing for a round
        ("22s", 3, [1, 9], 2),
    ],
)
def test_what_does_not_fit_into_the_budget_is_not_begun(bench, find, budget, members, epochs, final):
    bench.figure = by_width
    result = find(budget, members=members)
    assert [epochs for _, epochs in bench.trained] == epochs
    assert bench.final["config"].members == final
    assert result.config.trainer["max_epochs"] == epochs[-1]


def test_a_budget_in_steps_gives_the_same_search(bench, find):
    bench.figure = by_width
    one = find("120steps", "a")
    bench.clock = 1e6  # another machine
    two = find("120steps", "b")
    assert [(t.changes, t.epochs, t.score) for t in one.trials] == [
        (t.changes, t.epochs, t.score) for t in two.trials
    ]
    assert sum(trial.steps for trial in one.trials) <= 120


def test_what_was_trained_before_is_not_trained_again(bench, find):
    bench.figure = by_width
    one = find("120steps")
    count = len(bench.trained)
    assert [t.score for t in find("120steps").trials] == [t.score for t in one.trials]
    assert len(bench.trained) == count


@pytest.mark.parametrize(
    ("error", "ended"), [(KeyboardInterrupt(), "interrupted"), (Terminated(), "terminated")]
)
def test_signals_end_with_the_best_so_far_and_one_member(bench, find, error, ended):
    bench.raises = {4: error}
    result = find("9h", members=3)
    assert result.ended == ended
    assert [trial.number for trial in result.trials] == [1, 2, 3, 4]
    assert bench.final["config"].members == 1


@pytest.mark.parametrize(
    ("error", "ended"), [(KeyboardInterrupt(), "interrupted"), (Terminated(), "terminated")]
)
def test_signals_while_the_members_are_trained_leave_the_first(bench, find, error, ended):
    bench.raises_last = [error]
    result = find("29s", members=3)
    assert (result.ended, result.config.members) == (ended, 1)
    assert bench.final["config"] == result.config


@pytest.mark.parametrize("error", [KeyboardInterrupt(), Terminated()])
def test_a_signal_before_the_first_epoch_leaves_no_model(bench, find, error):
    bench.raises = {0: error}
    with pytest.raises(type(error)):
        find("9h")
    assert not bench.final


def test_only_models_of_single_sequences_are_searched(find):
    model = {"kind": "alignment", "d_model": 16, "layers": 1, "heads": 2, "max_length": 64}
    with pytest.raises(ConfigError, match="a search is for models of single sequences"):
        find("10m", model=model)


def test_settings_that_are_refused_remove_nothing(motif_task, make_config, tmp_path):
    kept = tmp_path / "settings-a"
    kept.mkdir()
    config = make_config(trainer={"max_epochs": 9, "no_such_setting": 1})
    with pytest.raises(ConfigError, match="no_such_setting"):
        search_settings(
            config, motif_task(64), None, RunOptions(tmp_path, resume=False), budget=Budget.parse("9s")
        )
    assert kept.is_dir()
