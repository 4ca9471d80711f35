"""Calibrate a trained model on labeled sequences that it has not seen; its weights do not change."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from scipy.stats import mannwhitneyu

from seqray.calibration.domain import describe_calibration
from seqray.calibration.fit import Calibration, calibrated_card
from seqray.calibration.signature import SketchCount, count_in_sketch, make_sketch
from seqray.core.arrays import log_probabilities
from seqray.core.card import Card
from seqray.core.errors import ConfigError, InputError
from seqray.core.records import Example, LabeledSequence, files_of
from seqray.core.run_config import CalibrationMethod
from seqray.core.text import describe_learned, round_number, truncate
from seqray.core.version import __version__
from seqray.inference.sequences import BatchSize
from seqray.kinds.kinds import model_probabilities
from seqray.metrics.classification import auroc
from seqray.modelfile.model import TrainedModel
from seqray.training.partitions import content_sha256, data_sha256, learned_keys, related_groups

REVERSED_P_VALUE = 1e-3  # a model that knows nothing ranks as badly with this chance; below: swapped labels
MAX_KNOWN_SHARE = 0.1  # of records that training used: up to it, figures are nearly those of new records
MIN_EXAMPLES = 20  # examples of each class below which a calibration says next to nothing


def recalibrate(
    model: TrainedModel,
    data: Sequence[LabeledSequence],
    method: CalibrationMethod = "auto",
    *,
    batch_size: BatchSize = "auto",
) -> Card:
    """Fit temperature, shift or isotonic map, threshold, prevalence and conformal ranks to held-out examples.

    Examples of split ``train`` are left out, and those of none where others name one.
    """
    card = model.card
    if method not in ("temperature", "auto") and len(card.classes) != 2:
        raise ConfigError(
            f"{method} calibration is for two classes, model '{card.name}' has {len(card.classes)}",
            remedy="use the method temperature",
        )
    refuse_training_data(card, data)
    used = held_out_part(data)
    if not used:
        remedy = "give sequences that the model was not trained on"
        raise InputError("all examples are of split 'train'", remedy=remedy)
    labels = _labels(used, card)
    texts = [_window(example, model) for example in used]
    # Without temperature and map a model gives the softmax of its mean log-probabilities, and no flags
    # without a domain.
    plain = replace(model, card=replace(card, temperature=1.0, isotonic=None, domain=None), context=None)
    windows = [replace(example, sequence=text) for example, text in zip(used, texts, strict=True)]
    raw = log_probabilities(model_probabilities(plain, windows, batch_size=batch_size))
    _check_ranking(raw, labels, card)
    before = Calibration.of(card)
    fitted, facts = calibrated_card(
        card, raw, labels, related_groups(used, model.alphabet), method, before=before
    )
    learned = count_training_data(card, used)
    counts = np.bincount(labels, minlength=len(card.classes)).tolist()
    provenance = facts | {
        "classes": dict(zip(card.classes, counts, strict=True)),
        "sha256": data_sha256(used),
        "model_sha256": model.sha256,
        **({"in_training": {"known": learned.known, "checked": learned.checked}} if learned else {}),
        "note": "figures under 'metrics' and 'validation' were measured before, at the threshold of then",
    }
    info, domain = fitted.info, card.domain
    threshold = info.get("scan_threshold")
    if isinstance(threshold, int | float) and len(card.classes) == 2:
        # moved to where the same windows are called
        moved = Calibration.of(fitted).convert(float(threshold), before)
        info = info | {"scan_threshold": round_number(moved)}
    if domain is not None:
        codes = [model.alphabet.encode(text) for text in texts]
        calibration = describe_calibration(domain, codes, labels, [example.context for example in used])
        domain = replace(domain, calibration=calibration, calibrated=make_sketch(learned_keys(card, used)))
    return replace(
        fitted,
        seqray_version=__version__,
        info=info,
        domain=domain,
        training=card.training | {"calibrated_on": provenance},
    )


def held_out_part(data: Sequence[LabeledSequence]) -> list[LabeledSequence]:
    """Examples of split ``validation`` or ``test``; all examples if none has a split."""
    names_parts = any(example.split for example in data)
    return [example for example in data if example.split != "train" and (example.split or not names_parts)]


def is_training_data(card: Card, data: Sequence[Example]) -> bool:
    """Whether these are the very data that the card's checksums are of, of whatever order and split."""
    versions = [data, *([replace(e, split=split) for e in data] for split in (None, "train"))]
    in_order = any(data_sha256(version) == card.training.get("data_sha256") for version in versions)
    return len(data) > 0 and (in_order or content_sha256(data) == card.training.get("content_sha256"))


def count_training_data(card: Card, data: Sequence[Example]) -> SketchCount | None:
    """Count examples that the model was trained on, of whatever label; None for a card without a sample."""
    sample = card.domain.learned if card.domain else None
    return count_in_sketch(sample, learned_keys(card, data)) if sample else None


def seen_in_training(
    card: Card, data: Sequence[Example], split: str, examples: Sequence[Example]
) -> Iterator[str]:
    """Notes where the model has learned from, or was calibrated on, all or some of the records evaluated.

    The checksum of a card is of all data given to training, of which the split ``test`` was left out.
    """
    sample = card.domain.calibrated if card.domain else None
    fitted = count_in_sketch(sample, learned_keys(card, examples)) if sample else None
    if fitted and fitted.known:
        which = describe_learned(fitted.known, fitted.checked, len(examples))
        yield (
            f"the model was calibrated on {which}: brier, log_loss, ece and the figures at its threshold are "
            "too good; evaluate records that neither training nor calibration used"
        )
    learned = [example for example in data if example.split != "test"]
    remedy = "evaluate a part that training left out (seqray split)"
    evaluates_learned = split != "test" or not learned  # all were called test, but hardly for training
    count = count_training_data(card, examples)
    if evaluates_learned and (is_training_data(card, data) or is_training_data(card, learned)):
        which = "these data"
    elif count and count.known:
        which = describe_learned(count.known, count.checked, len(examples))
        if count.known <= MAX_KNOWN_SHARE * count.checked:
            yield f"the model's training used {which}: the figures may be slightly too good; {remedy}"
            return
    else:
        return
    yield (
        f"the model's training used {which}: the figures show what it remembers, not how well it "
        f"classifies new records; {remedy}"
    )


def refuse_training_data(
    card: Card, data: Sequence[LabeledSequence], *, parts_are_left_out: bool = True
) -> None:
    """Refuse the very data that the card's checksums are of: they say nothing of the errors of the model."""
    if parts_are_left_out and 0 < len(held_out_part(data)) < len(data):
        return
    if is_training_data(card, data):
        raise InputError(
            f"these are the data that model '{card.name}' was trained on",
            remedy="give labeled sequences that it has not seen",
        )


def _labels(used: Sequence[LabeledSequence], card: Card) -> np.ndarray:
    index = {name: i for i, name in enumerate(card.classes)}
    for example in used:
        if example.label not in index:
            raise InputError(
                f"has the label '{example.label}'",
                where=example.where,
                remedy=f"the classes of model '{card.name}' are {', '.join(card.classes)}; rename it or "
                "leave it out",
            )
    counts = Counter(example.label for example in used)
    for name in card.classes:
        if counts[name] < MIN_EXAMPLES:
            raise InputError(
                f"{counts[name]} held-out examples of class '{name}'",
                where=files_of(used),
                remedy=f"calibration needs {MIN_EXAMPLES} or more of each class: give more labeled sequences",
            )
    return np.array([index[example.label] for example in used], dtype=np.int64)


def _check_ranking(raw: np.ndarray, labels: np.ndarray, card: Card) -> None:
    """Refuse a model that ranks the positive class below the other: no method corrects that."""
    if len(card.classes) != 2:
        return
    positive = card.positive_index
    log_odds, truth = raw[:, positive] - raw[:, 1 - positive], labels == positive
    if mannwhitneyu(log_odds[truth], log_odds[~truth], alternative="less").pvalue < REVERSED_P_VALUE:
        found = auroc(truth, log_odds)
        raise InputError(
            f"model '{card.name}' ranks '{card.positive}' below the rest (AUROC {found:.3f})",
            remedy="see that the labels are not swapped, and that the model is meant for such sequences",
        )


def _window(example: LabeledSequence, model: TrainedModel) -> str:
    """Letters of the window, without the flanks of training sequences, which the model can read."""
    card = model.card
    letters = card.trim_flanks(example.sequence)
    if len(letters) > card.window and card.truncate == "none":
        raise InputError(
            f"{len(letters)} letters, and the window of model '{card.name}' holds {card.window}",
            where=example.where,
            remedy="cut the sequences",
        )
    text = truncate(letters, card.window, card.truncate)
    try:
        model.tokenizer.check(text)
    except InputError as error:
        raise InputError(error.what, where=example.where) from None
    return text
