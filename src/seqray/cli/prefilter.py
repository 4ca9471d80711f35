"""``seqray prefilter``: give a model of windows a prefilter, with which it scans far faster."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar

from seqray.cli.inputs import SkipLog, check_files
from seqray.cli.messages import Progress
from seqray.cli.model import BACKBONE, MODEL_HELP, BatchOptions, ModelOptions, check_new_model, open_model
from seqray.cli.options import Outcome, PositiveInt, Probability, Request, WholeNumber, option
from seqray.core.errors import InputError

if TYPE_CHECKING:
    from seqray.core.card import Card


class PrefilterRequest(Request):
    """Options of ``seqray prefilter``."""

    epilog: ClassVar[str] = (
        "The model scores windows of the genomes, and two small networks learn from it which windows can "
        "reach a threshold. 'seqray scan' then lets the model score those alone. A model of several networks "
        "goes on with a window only while its first networks score it high. Probabilities do not change."
    )

    model: str = option("MODEL", MODEL_HELP)
    input: tuple[str, ...] = option(
        "GENOME+", "FASTA or GenBank, like what will be scanned; plain or compressed; files are joined"
    )
    backbone: str | None = BACKBONE
    out: str = option("--out -o FILE", "new model file, ends in .safetensors")
    windows: PositiveInt = option(
        "--windows N", "windows that the model scores; more take longer, and fewer pass in a scan", 400_000
    )
    lost: Probability = option(
        "--lost SHARE",
        "share of the windows at or above a threshold that scans may miss, 0.1 at most; a larger share "
        "lets fewer windows pass",
        0.001,
    )
    measure_only: bool = option(
        "--measure-only",
        "keep the prefilter that the model has, and only measure what scans lose and let pass",
    )
    seed: WholeNumber = option("--seed N", "seed of the windows and the first weights", 0)
    computing: BatchOptions


def run(request: PrefilterRequest) -> Outcome:
    """Read, teach, write."""
    from seqray.modelfile.header import locate_model

    check_new_model(request.out, str(locate_model(request.model)))
    check_files(request.input, [request.out])
    chosen = ModelOptions(model=request.model, backbone=request.backbone)
    model = open_model(chosen, request.computing, verbose=request.verbose)
    from seqray.io.sequences import read_sequences
    from seqray.modelfile.file import save_model
    from seqray.training.prefilter import teach_prefilter

    with SkipLog(None, [], quiet=request.quiet) as skipped:
        records = [
            record
            for source in request.input
            for record in read_sequences(source, alphabet=model.alphabet, duplicates="keep", on_skip=skipped)
        ]
    with Progress("prefilter", "windows", quiet=request.quiet) as progress:
        try:
            taught = teach_prefilter(
                model,
                records,
                windows=request.windows,
                lost=request.lost,
                batch_size=request.computing.batch_size,
                seed=request.seed,
                measure_only=request.measure_only,
                on_progress=progress.update,
            )
        except InputError as error:  # about what the files hold in all
            raise InputError(error.what, where=", ".join(request.input), remedy=error.remedy) from None
    save_model(request.out, taught.networks, taught.card, taught.prefilter)
    request.say(*summary(taught.card), f"wrote {request.out}")
    return Outcome(records=len(records))


def summary(card: Card) -> Iterator[str]:
    """What the prefilter learned from, and what it lets pass at the threshold of scans."""
    from seqray.scanning.scorers import Cutoffs

    facts, threshold = card.prefilter, card.scan_threshold
    assert facts is not None
    yield f"the prefilter learned from {facts.learned_from} windows of {facts.letters} bases"
    found = Cutoffs.at(facts, threshold)
    if not found.is_selective:
        yield (
            f"caution: at the threshold of scans, {threshold:g}, {found.passed:.1%} of the windows would "
            "pass: scans leave the prefilter out; give more genomes, or more --windows"
        )
    else:
        yield (
            f"at the threshold of scans, {threshold:g}, {found.passed:.1%} of the windows pass; of those "
            f"that reach it {facts.lost:.1%} are lost, on {facts.measured_on} windows that it has not "
            "seen"
        )
