"""``seqray pretrain``: learn from sequences or alignments without labels, for ``seqray train --init``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from seqray.cli.inputs import SkipLog, check_files
from seqray.cli.messages import Progress
from seqray.cli.options import Outcome, Probability, Request, option
from seqray.cli.train import CONFIG, FitOptions, report_interruption
from seqray.core.alphabet import ALPHABETS
from seqray.core.errors import Terminated
from seqray.core.run_config import load_run_config
from seqray.modelfile.header import check_model_path


class PretrainRequest(Request):
    """Options of ``seqray pretrain``."""

    input: tuple[str, ...] = option(
        "FILE+", "FASTA, or alignments for a model that reads them; plain or compressed; files are joined"
    )
    config: str = CONFIG
    out: str = option("--out -o FILE", "weights, end in .safetensors")
    share: Probability = option("--share P", "share of positions to hide", 0.15)
    fit: FitOptions


def run(request: PretrainRequest) -> Outcome:
    """Pre-train, save, and sum up on standard error."""
    check_model_path(request.out)
    from seqray.training.plan import configure

    config = configure(
        load_run_config(request.config), request.fit.set, request.fit.device, seed=request.fit.seed
    )
    out = Path(request.out)
    check_files(request.input, [request.out])
    from seqray.kinds.kinds import kind_of

    kind, alphabet = kind_of(config), ALPHABETS[config.model.alphabet]
    with SkipLog(None, [], quiet=request.quiet) as skipped:  # records without letters are left out
        data: Any = [
            kind.unlabeled(record)
            for source in request.input
            for record in kind.read(source, alphabet, duplicates="keep", on_skip=skipped)
        ]
    from seqray.training.pretraining import pretrain
    from seqray.training.trainer import is_main_process

    folder = request.fit.folder(request.out)
    try:
        with Progress("pretrain", "steps", quiet=request.quiet or not is_main_process(config)) as progress:
            result = pretrain(
                config,
                data,
                out,
                request.fit.run_options(folder, progress, request.note),
                share=request.share,
            )
    except (KeyboardInterrupt, Terminated) as signal:
        return Outcome(status=report_interruption(signal, request.fit, folder))
    if is_main_process(config):
        request.say(*summary(result.facts, request.out, kind.pretraining_unit))
    return Outcome()


def summary(facts: dict[str, Any], out: str, unit: str) -> list[str]:
    """Summarize what was learned (losses in nats), compared with the letter frequencies alone."""
    ours, floor = (
        f"loss {facts[prefix + 'loss']:.4f} nats, accuracy {facts[prefix + 'accuracy']:.3f}"
        for prefix in ("", "floor_")
    )
    return [
        f"learned from {facts['examples']} {unit}, {facts['letters']} letters; best epoch: {facts['epochs']}",
        f"hidden positions of held-out {unit}: {ours} (shares of the letters alone: {floor})",
        f"wrote {out}; use it with seqray train --init {out}",
    ]
