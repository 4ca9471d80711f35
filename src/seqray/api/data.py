"""The verbs of labeled data as functions: train."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Unpack

import pandas as pd

from seqray.api.estimator import restored_state
from seqray.core.alphabet import ANY_LETTERS
from seqray.core.host import as_guest
from seqray.inference.origin import CAUTION
from seqray.io.labeled import labeled_sequence
from seqray.io.tables import Columns, column_places
from seqray.kinds.kinds import LabeledFiles
from seqray.modelfile.file import load_model
from seqray.modelfile.header import SUFFIX
from seqray.modelfile.model import TrainedModel
from seqray.training.members import RunOptions
from seqray.training.plan import TrainSettings, model_name, plan_training


def labeled_files(data: Any, columns: Columns | None = None, keep: Sequence[str] = ()) -> LabeledFiles:
    """Labeled examples in any form: see `train`. ``keep`` names further columns of tables and frames."""
    kept: dict[str, list[str]] = {name.lower(): [] for name in keep}
    if isinstance(data, pd.DataFrame):
        remedy = "name the columns sequence and label"
        header = [str(name) for name in data.columns]
        at = column_places(header, ("sequence", "label", *kept), columns or {}, "the frame", remedy)
        cells = data.astype(object).where(data.notna(), "").astype(str)
        rows = [{name: row[i] for name, i in at.items()} for row in cells.itertuples(index=False)]
        for name, values in kept.items():
            values += [row[name] for row in rows]
        examples = [
            labeled_sequence(
                row, row.get("id") or f"row{n}", ANY_LETTERS, where=f"the frame: row {n}", file=""
            )
            for n, row in enumerate(rows, start=1)
        ]
        return LabeledFiles(examples=examples, keep=kept)
    if isinstance(data, Mapping):
        return LabeledFiles(fastas={None: data})
    things = [data] if isinstance(data, str | Path) else list(() if data is None else data)
    if all(isinstance(one, str | Path) for one in things):
        return LabeledFiles(tables=[(None, str(one)) for one in things], keep=kept, columns=columns)
    return LabeledFiles(examples=things)


@as_guest
def train(
    data: Any = None,
    out: str | Path | None = None,
    *,
    columns: Columns | None = None,
    metrics: Mapping[str, Any] | None = None,
    work_dir: str | Path | None = None,
    resume: bool = True,
    restart_if_changed: bool = False,
    threads: int | None = None,
    callbacks: Sequence[Any] = (),
    progress: bool = False,
    **settings: Unpack[TrainSettings],
) -> TrainedModel:
    """Train a calibrated model on labeled sequences, alignments or genomes, as ``seqray train`` does.

    Parameters
    ----------
    data
        The path of a table, or several; a pandas frame; a mapping of class to FASTA file; or a list of
        `LabeledSequence` or labeled `Alignment`. Their ``split`` is respected. None for a locator.
    out
        Model file to write, ends in ``.safetensors``; None writes none.
    columns
        How tables and frames call their columns, as in ``{"sequence": "seq", "label": "class"}``.
    metrics
        Figures measured elsewhere, for the card.
    work_dir, resume, restart_if_changed
        Where checkpoints and logs are kept, so that the same call goes on after an interruption; they are
        not kept by default. See `seqray.training.members.RunOptions`.
    threads
        Processor threads; torch's own choice where None.
    callbacks
        Callbacks of Lightning, called in the training of each network, one after the other.
    progress
        Show a bar.
    **settings
        ``config`` is a `RunConfig` or the path of a YAML file, ``like`` a model whose settings are taken;
        without both the data choose the settings. ``set`` overrides single ones, as in
        ``{"trainer.max_epochs": 10}``. ``seed``, ``members``, ``device``, ``truncate``, ``teacher``, ``init``
        and ``backbone`` are the options of the command; so are ``genome``, ``sites``, ``genes``, ``species``,
        ``sheet``, ``site_class``, ``hold_out`` and ``fold``, for a locator.

    Returns
    -------
    TrainedModel
        For `predict`, `scan` and `explain`. Its card holds the settings and the figures.

    Warns
    -----
    UserWarning
        For what speaks against the data, such as copies with several labels.

    Examples
    --------
    >>> import seqray
    >>> texts = ["ACGT" * 5 + "ACGT"[i % 4] * (i + 1) for i in range(40)]
    >>> data = [seqray.LabeledSequence(text, ("no", "yes")[i % 2], str(i)) for i, text in enumerate(texts)]
    >>> model = seqray.train(data, set={"trainer.max_epochs": 1}, members=1, device="cpu", threads=1)
    >>> model.card.classes
    ('no', 'yes')
    """

    def note(line: str) -> None:
        if line.startswith(CAUTION):
            warnings.warn(line, stacklevel=2)

    plan = plan_training(model_name(str(out or "model")), labeled_files(data, columns), settings, note=note)
    with tempfile.TemporaryDirectory(prefix="seqray-") as folder, restored_state(threads):
        path = Path(out or Path(folder) / f"model{SUFFIX}")
        run = RunOptions(
            Path(work_dir or Path(folder) / "work"),
            resume,
            restart_if_changed,
            progress,
            threads,
            callbacks=tuple(callbacks),
        )
        plan.train(out=path, run=run, metrics=metrics)
        return load_model(path)
