"""``seqray train --budget``: look for better settings, and report what was tried."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seqray.cli.common import Request
from seqray.cli.train.settings import set_by_words, write_config
from seqray.cli.train.summary import summary
from seqray.core import ALPHABETS, ConfigError, RunConfig, counted

if TYPE_CHECKING:
    from seqray.cli.train.arguments import TrainRequest
    from seqray.training import Budget, SearchResult, Trial, TriedResult

Changes = Mapping[str, Any]
"""Settings by ``section.key``, as in ``--set``."""

_STATUS = {"done": 0, "interrupted": 130, "terminated": 143}


def search_path(out: str) -> str:
    """Where the table of a search is written."""
    return f"{out}.search.tsv"


def check_search(beside: Mapping[str, str | None], config: RunConfig) -> None:
    """Refuse what a search can't be combined with: ``beside`` holds other options and their values.

    ConfigError is raised for a teacher, initial weights, and models of other kinds than single sequences.
    """
    for option, value in beside.items():
        if value:
            remedy = f"search without {option}, and train with the settings of --save-config"
            raise ConfigError(f"--budget and {option} don't go together", remedy=remedy)
    if config.model.kind != "sequence":
        raise ConfigError(
            f"--budget is for models of single sequences, but 'model.kind' is {config.model.kind}",
            remedy="leave it out",
        )


def search_examples(
    request: TrainRequest,
    budget: Budget,
    config: RunConfig,
    data: Sequence[Any],
    *,
    out: Path,
    table: Path,
    save_config: Path | None,
    **training: Any,
) -> SearchResult:
    """Search, and write the table of what was tried, and the settings if they are asked for.

    ``table`` and ``save_config`` are where the table and the settings that are found go until all files are
    complete. The other parameters are those of `seqray.training.search_settings`.
    """
    from seqray.training import search_settings

    request.note(f"searching from these settings; all that is tried is listed in {search_path(request.out)}")
    result = search_settings(
        config,
        data,
        out,
        budget=budget,
        fixed=set_by_words(request.fit),
        on_trial=lambda trial: report_trial(request, trial),
        **training,
    )
    write_trials(request, table, result)
    if result.ended == "done" and result.config.members < config.members:
        request.note(
            f"the budget left time for {result.config.members} of {config.members} networks, and several are "
            "better than one: the same command with a larger budget goes on from here"
        )
    if save_config:
        write_config(save_config, result.config)
    return result


def try_examples(
    request: Request,
    config: RunConfig,
    alternatives: Sequence[Mapping[str, Any]],
    data: Sequence[Any],
    *,
    out: Path,
    save_config: Path | None = None,
    **training: Any,
) -> TriedResult:
    """Try alternatives, train with the best, and write its settings if they are asked for.

    Without ``save_config`` the settings are not written. The other parameters are those of
    `seqray.training.train_best`.
    """
    from seqray.training import train_best

    result = train_best(
        config,
        alternatives,
        data,
        out,
        on_trial=lambda trial: report_trial(request, trial),
        **training,
    )
    if save_config:
        write_config(save_config, result.chosen.config)
    return result


def tried_summary(result: TriedResult, out: str) -> list[str]:
    """State what was tried, and summarize the model."""
    name = result.chosen.config.stopping.monitor
    tried = ", ".join(f"{trial.figures[name]:.4f} with {trial.title}" for trial in result.trials)
    return [
        f"{name} of the first network on its held-out part: {tried}; chosen: {result.chosen.title}",
        *summary(result.trained, out),
    ]


def report_trial(request: Request, trial: Trial) -> None:
    """Write a line about a training of the search."""
    if request.quiet:
        return
    line = f"seqray: {trial_line(trial)}"
    if sys.stderr.isatty():
        from tqdm import tqdm

        tqdm.write(line, file=sys.stderr)  # above the bar of progress
    else:
        print(line, file=sys.stderr, flush=True)


def trial_line(trial: Trial) -> str:
    """What was tried, and what it reached."""
    names = dict.fromkeys([trial.config.stopping.monitor, "mcc"])
    figures = ", ".join(f"{name} {trial.figures[name]:.4f}" for name in names if name in trial.figures)
    took = "cut" if trial.cut else f"{trial.seconds:.0f} s"
    of_round = f", round {trial.round}" if trial.round else ""
    return (
        f"trial {trial.number}{of_round}: {trial.title}: epochs {trial.epochs}, "
        f"steps {trial.steps}, {took}: {figures}"
    )


def write_trials(request: TrainRequest, path: Path, result: SearchResult) -> None:
    """Write the table of all trainings of a search."""
    from seqray.io.tables import describe_alphabet, provenance_lines, write_table
    from seqray.training import TRIAL_COLUMNS, trial_row

    card = result.trained.card
    held_out = sum(card.training["counts"]["validation"].values())
    meaning = f"of one network on {held_out} examples held out; they chose the settings: slightly too good"
    policy = describe_alphabet(ALPHABETS[card.model.alphabet])
    lines = provenance_lines(request.command, "", "", policy, {"figures": meaning})
    rows = (trial_row(trial, trial is result.chosen) for trial in result.trials)
    write_table(path, TRIAL_COLUMNS, rows, lines)


def search_summary(request: TrainRequest, result: SearchResult, out: str) -> list[str]:
    """Summarize a search, and the model that it ended with."""
    facts = result.trained.card.training["search"]
    lines = [
        f"search: {counted(facts['trainings'], 'training')} of "
        f"{counted(facts['configurations'], 'configuration')}; "
        f"{facts['figure']} on the held-out part {facts['first']:.4f} as begun, {facts['best']:.4f} with "
        f"{result.chosen.title} (these figures chose the settings: slightly too good)"
    ]
    if result.ended != "done":
        lines.append(f"{result.ended}: the model is the best so far, one network; the same command goes on")
    return [*lines, f"wrote {search_path(request.out)}", *summary(result.trained, out)]


def search_status(result: SearchResult) -> int:
    """Exit status: that of the signal that ended the search."""
    return _STATUS[result.ended]
