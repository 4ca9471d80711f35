"""``seqray train``: train a calibrated model on labeled sequences."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from seqray.cli.inputs import check_files
from seqray.cli.messages import Progress
from seqray.cli.options import Outcome
from seqray.cli.train_learn import learn, read_metrics, write_config
from seqray.cli.train_options import FitOptions, TrainRequest
from seqray.core.errors import Terminated, reset_termination
from seqray.modelfile.header import check_model_path


def run(request: TrainRequest) -> Outcome:
    """Train, save, and sum up on standard error."""
    check_model_path(request.out)
    beside = (request.config, request.like, request.labels.alignment_labels)
    beside += (request.teacher, request.init, request.metrics)
    outputs = [request.out, request.save_config]
    check_files(request.data.files() + request.genomes.files(), outputs, beside=beside)
    training = learn(request)
    metrics = read_metrics(request.metrics) if request.metrics else None
    from seqray.io.files import Staging, cannot_write
    from seqray.modelfile.initial_weights import load_initial_weights
    from seqray.modelfile.zoo import locate_model
    from seqray.training.trainer import is_main_process

    folder = request.fit.folder(request.out)
    more: dict[str, Any] = {"start": load_initial_weights(locate_model(request.init))} if request.init else {}
    try:
        with (
            Staging() as staging,
            Progress("train", "steps", quiet=request.quiet or not is_main_process()) as progress,
        ):
            out = Path(staging.path(request.out))
            config = Path(staging.path(request.save_config)) if request.save_config else None
            if training.finds_settings:
                more |= {"save_config": config}
            elif config:
                write_config(config, training.config)
            result = training.train(
                out=out,
                run=request.fit.run_options(folder, progress),
                metrics=metrics,
                **more,
            )
    except (KeyboardInterrupt, Terminated) as signal:
        return Outcome(records=training.records, status=report_interruption(signal, request.fit, folder))
    except OSError as error:
        if error.filename or isinstance(error, BrokenPipeError):
            raise
        raise cannot_write(error, str(folder)) from error  # PyTorch does not name what it can't write
    if is_main_process():
        request.say(*training.summary(result, request.out))
    return Outcome(records=training.records)


def report_interruption(signal: BaseException, fit: FitOptions, folder: Path) -> int:
    """Explain how to resume a training that a signal ended; the exit status. The signal is heard so."""
    reset_termination()
    word, status = ("terminated", 143) if isinstance(signal, Terminated) else ("interrupted", 130)
    again = " without --no-resume" if fit.no_resume else ""
    print(f"seqray: {word}; the same command{again} resumes from {folder}", file=sys.stderr)
    return status
