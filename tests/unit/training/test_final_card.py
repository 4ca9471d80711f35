"""What training writes of its calibration: figures that are fair, a map where asked for, ranks for sets."""

from dataclasses import replace

import numpy as np
import pytest

from seqray.calibration.fit import Calibration, cross_fitted
from seqray.core.alphabet import DNA
from seqray.modelfile.file import load_model
from seqray.training import fit
from seqray.training.final_card import held_out_logits
from seqray.training.members import RunOptions
from seqray.training.partitions import partition, related_groups
from slow_metrics import calibration_error


@pytest.mark.parametrize("members", [1, 2])
def test_the_card_tells_the_error_before_and_after(motif_task, make_config, tmp_path, members):
    data, config = motif_task(300), make_config(members=members, trainer={"max_epochs": 4})
    result = fit.train(config, data, None, RunOptions(tmp_path))
    card, facts = result.card, result.card.training["calibration"]
    part = partition(data, config)
    raw = held_out_logits(replace(card, temperature=1.0), result.networks, data, part, config)
    rows, labels = part.validation, part.labels[part.validation]
    assert (facts["method"], facts["examples"]) == ("temperature", len(rows))
    fair = cross_fitted(raw, labels, related_groups([data[i] for i in rows], DNA), 1, "temperature")
    assert fair is not None
    assert card.ece == pytest.approx(calibration_error(fair[:, 1], labels))
    assert result.validation["ece"] == card.ece
    p = np.exp(raw) / np.exp(raw).sum(axis=1, keepdims=True)
    assert facts["ece_before"] == pytest.approx(calibration_error(p[:, 1], labels), rel=1e-4)
    assert [ranks.n for ranks in card.conformal.values()] == np.bincount(labels).tolist()
    assert card.domain.chain.order >= 3


def test_isotonic_on_request_with_the_weights_of_the_same_run(motif_task, make_config, tmp_path):
    data, config = motif_task(300), make_config(trainer={"max_epochs": 4})
    plain = fit.train(config, data, tmp_path / "a.safetensors", RunOptions(tmp_path / "w"))
    config = replace(config, calibration=replace(config.calibration, method="isotonic"))
    bent = fit.train(
        config, data, tmp_path / "b.safetensors", RunOptions(tmp_path / "w")
    )  # not trained again
    card = load_model(tmp_path / "b.safetensors").card
    assert card == bent.card
    assert card.format == 2
    assert card.training["calibration"]["method"] == "isotonic"
    assert card.temperature == plain.card.temperature
    found = Calibration.of(card)
    assert found.isotonic is not None
    assert bent.validation["auroc"] == pytest.approx(plain.validation["auroc"])  # order is kept
