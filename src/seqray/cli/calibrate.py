"""``seqray calibrate``: recalibrate a model on labeled sequences that it was not trained on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from seqray.cli.inputs import check_files
from seqray.cli.labeled import UNKNOWN_LABELS, DataOptions, UnknownLabels, drop_unknown_labels
from seqray.cli.model import (
    BACKBONE,
    MODEL_HELP,
    BatchOptions,
    ModelOptions,
    check_new_model,
    naming_other_models,
    open_model,
)
from seqray.cli.options import Outcome, Request, option
from seqray.core.errors import InputError
from seqray.core.run_config import CalibrationMethod
from seqray.core.text import class_counts, describe_learned
from seqray.kinds.kinds import read_parts, with_named_splits

if TYPE_CHECKING:
    from seqray.core.card import Card


class CalibrateRequest(Request):
    """Options of ``seqray calibrate``."""

    epilog: ClassVar[str] = (
        "Examples whose table says split 'train' are left out: give held-out sequences, by --test or one "
        "FASTA file per class. The weights of the model do not change."
    )

    model: str = option("MODEL", MODEL_HELP)
    backbone: str | None = BACKBONE
    data: DataOptions
    out: str = option("--out -o FILE", "new model file, ends in .safetensors")
    method: CalibrationMethod = option(
        "--method",
        "temperature divides the logits by one number; for two classes, platt also shifts them, and isotonic "
        "maps them by a rising function, which requires several hundred examples; auto is platt where the "
        "data show that a shift is needed, else temperature",
        "auto",
    )
    unknown_labels: UnknownLabels = UNKNOWN_LABELS
    computing: BatchOptions


def run(request: CalibrateRequest) -> Outcome:
    """Read, calibrate, write."""
    from seqray.modelfile.header import locate_model

    check_new_model(request.out, str(locate_model(request.model)))
    files = request.data.files()
    if not files:
        remedy = "give --test TABLE, or --class LABEL=FASTA for each class"
        raise InputError("no sequences to calibrate on", remedy=remedy)
    check_files(files, [request.out])
    chosen = ModelOptions(model=request.model, backbone=request.backbone)
    model = open_model(chosen, request.computing, verbose=request.verbose)
    notes: list[str] = []
    with naming_other_models():
        parts = read_parts(request.data.located(request), model.alphabet)
    if request.unknown_labels == "drop":
        classes = model.card.classes
        drop_unknown_labels([one for _, examples in parts for one in examples], classes, notes)
        parts = [(split, [one for one in examples if one.label in classes]) for split, examples in parts]
    from seqray.modelfile.file import save_model
    from seqray.training.recalibration import recalibrate, refuse_training_data

    data = with_named_splits(parts)
    as_filed = [example for _, examples in parts for example in examples]
    if data != as_filed:  # an option says that what the files call training may be used
        refuse_training_data(model.card, as_filed, parts_are_left_out=False)
    card = recalibrate(model, data, request.method, batch_size=request.computing.batch_size)
    save_model(request.out, model.networks, card)
    if model.prefilter is not None:
        notes.append(
            "the prefilter fits the old probabilities and is left out; make one by 'seqray prefilter'"
        )
    request.say(*notes, *summary(card, request.out))
    return Outcome(records=len(data))


def _training_data_among(facts: Mapping[str, Any]) -> Iterator[str]:
    """What is known of training sequences among those of the calibration."""
    found, count = facts.get("in_training"), facts["examples"]
    if found is None:
        yield (
            "the model has no sample of its training sequences: seqray can't check whether any of these are "
            "among them; if so, the probabilities are overconfident"
        )
    elif found["known"]:
        which = describe_learned(found["known"], found["checked"], count)
        yield f"caution: the model's training used {which}: the probabilities are overconfident"
    elif found["checked"] < count:
        yield (
            f"the model was not trained on {found['checked']} of these sequences, by the sample in its file; "
            "the others can't be checked"
        )


def summary(card: Card, out: str) -> list[str]:
    """Figures before and after, and cautions."""
    from seqray.calibration.fit import calibration_shortfalls

    facts = card.training["calibrated_on"]
    lines = [
        f"calibrated on {facts['examples']} sequences ({class_counts(facts['classes'])}) "
        f"by {facts['method']}: "
        f"ece {facts['ece_before']:.3f} before, {facts['ece_after']:.3f} after; "
        f"log loss {facts['log_loss_before']:.3f} before, {facts['log_loss_after']:.3f} after "
        f"(after: {facts['figures']})",
        f"threshold {card.threshold:.3f}, temperature {card.temperature:.3f}, "
        f"prevalence {card.prevalence:.3f}",
        *_training_data_among(facts),
    ]
    domain = card.domain
    if domain and domain.signature and not (domain.calibration and domain.calibration.signature):
        lines.append(
            "there is too little sequence to describe where they come from (10,000 of one class are "
            "needed): later cautions still compare sequences with the training data"
        )
    if facts["log_loss_after"] > facts["log_loss_before"]:
        lines.append("caution: the new probabilities are no better than the old ones: keep the old model")
    lines += (f"caution: {text}" for text in calibration_shortfalls(facts))
    return [*lines, f"wrote {out}"]
