"""Settings that the data decide on: the first member is trained with each, and the best go on."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from seqray.core.records import LabeledSequence
from seqray.core.run_config import RunConfig, change_settings
from seqray.modelfile.header import check_model_path
from seqray.training.fit import count_letters, open_folder, train, train_member
from seqray.training.members import RunOptions, TrainResult, call_side_by_side
from seqray.training.partitions import data_sha256, partition
from seqray.training.trainer import BEST, LAST, fingerprint, make_trainer, quiet


def train_best(
    config: RunConfig,
    alternatives: Sequence[Mapping[str, Any]],
    data: Sequence[LabeledSequence],
    out: Path | None,
    run: RunOptions,
    *,
    classes: Sequence[str] | None = None,
    metrics: Mapping[str, Any] | None = None,
    on_trial: Callable[[str], None] = lambda _: None,
) -> tuple[TrainResult, RunConfig]:
    """Train the first member with each alternative, and the others with the best of them; also its settings.

    Each of ``alternatives`` is settings by ``section.key``; of equally good ones the first is taken.
    ``on_trial`` receives a line about each when all are trained. The rest is as in
    `seqray.training.fit.train`; each training has a folder of its own in ``run.work_dir``.
    """
    if out is not None:
        check_model_path(out)
    part, sha256 = partition(data, config, classes), data_sha256(data)
    with quiet(config):
        make_trainer(config, run.work_dir, progress=False)  # settings that Lightning refuses, before any work
        if not run.resume:
            for folder in run.work_dir.glob("settings-*"):
                shutil.rmtree(folder)
        run = replace(run, threads=run.use_threads(), resume=True)
        calls: list[dict[str, Any]] = []
        for changes in alternatives:
            changed = change_settings(config, changes)
            path = run.work_dir / f"settings-{fingerprint(changed, part.classes)[:12]}"
            folder = open_folder(replace(run, work_dir=path), changed, part, sha256)
            folder.claim()
            calls.append({"config": changed, "number": 1, "part": part, "folder": folder})
        processes, threads = run.plan(config, len(calls), count_letters(data, part.train))
        call_side_by_side(
            train_member,
            [call for call in calls if call["folder"].result(1) is None],
            {"data": data},
            "try settings",
            processes=processes,
            threads=threads,
            on_progress=run.on_progress,
        )

    monitor = config.stopping.monitor
    steps = -(-len(part.train) // config.optimizer.batch_size)
    titles = [" ".join(f"{key}={value}" for key, value in changes.items()) for changes in alternatives]
    scores: list[float] = []
    for number, (title, call) in enumerate(zip(titles, calls, strict=True), start=1):
        result = call["folder"].result(1)
        epochs = len(result["history"])
        figures = next(row for row in result["history"] if row["epoch"] == result["best_epoch"])
        scores.append(-figures[monitor] if monitor == "loss" else figures[monitor])
        shown = [f"{name} {figures[name]:.4f}" for name in dict.fromkeys((monitor, "mcc")) if name in figures]
        on_trial(
            f"trial {number}: {title}: epochs {epochs}, steps {epochs * steps}, {result['seconds']:.0f} s: "
            + ", ".join(shown)
        )
    best = scores.index(max(scores))
    trained = train(
        calls[best]["config"],
        data,
        out,
        replace(run, work_dir=calls[best]["folder"].path),
        classes=classes,
        metrics=metrics,
        search={
            "figure": monitor,
            "tried": dict(zip(titles, scores, strict=True)),
            "changes": dict(alternatives[best]),
        },
    )
    for call in calls[:best] + calls[best + 1 :]:  # the results stay, the weights go
        for name in (BEST, LAST):
            if path := call["folder"].checkpoint(1, name):
                path.unlink()
    return trained, calls[best]["config"]
