"""The script that writes the text, the site and the figures of model cards anew."""

from __future__ import annotations

import json

from safetensors.numpy import load_file

import restate_cards
from seqray.modelfile.file import load_model, save_model


def test_text_site_and_figures_change_and_nothing_else(tiny_model_file, tmp_path, monkeypatch):
    model = load_model(tiny_model_file)
    shipped = tmp_path / "src" / "tiny.safetensors"
    shipped.parent.mkdir()
    save_model(shipped, model.networks, model.card)
    (tmp_path / "configs").mkdir()
    (tmp_path / "configs/tiny.yaml").write_text(
        "data: {site: 3}\ncard: {use: as a test, limits: [it knows nothing]}\n"
    )
    (tmp_path / "benchmarks/results").mkdir(parents=True)
    figures = {"headline": {"metric": "mcc", "value": 0.5, "low": 0.4, "high": 0.6}}
    (tmp_path / "benchmarks/results/tiny.card.json").write_text(json.dumps(figures))
    monkeypatch.setattr(restate_cards, "ROOT", tmp_path)
    monkeypatch.setattr(restate_cards, "locate_model", lambda name: shipped)
    monkeypatch.setattr(restate_cards, "load_model", lambda name: load_model(shipped))
    before = load_file(shipped)
    restate_cards.restate("tiny")
    after, card = load_file(shipped), load_model(shipped).card
    assert card.info == {"use": "as a test", "limits": ["it knows nothing"]}
    assert card.site == 3
    assert card.metrics == figures
    assert before.keys() == after.keys()
    assert all((before[name] == after[name]).all() for name in before)
    kept = ("threshold", "temperature", "training")
    assert all(getattr(card, name) == getattr(model.card, name) for name in kept)
