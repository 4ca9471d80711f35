"""Targets: model files, their cards, and weights to begin with.

Bytes changed at random only show that the checksum holds. So the header and the card are changed as JSON,
too, and signed anew.
"""

import json
import struct
import tempfile
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import torch

from fuzz.target import Target, write_beside
from networks import locator_config
from seqray.calibration.conformal import coverage_cutoffs, fit_ranks
from seqray.calibration.domain import fit_domain
from seqray.calibration.expected_precision import ExpectedPrecision
from seqray.calibration.fit import fit_isotonic
from seqray.core.alphabet import DNA
from seqray.core.card import Card, card_from_mapping, card_to_json, describe_card
from seqray.core.card_parts import LocatorFacts, PrefilterFacts
from seqray.core.errors import ConfigError, InputError
from seqray.core.model_config import ModelConfig
from seqray.core.text import headline_metric
from seqray.genome.genes import TRACKS
from seqray.inference.engines import open_with_engine
from seqray.inference.sequences import predict_records
from seqray.io.sequences import read_sequences
from seqray.modelfile.file import build_network, load_model, save_model
from seqray.modelfile.header import checksum, read_card
from seqray.modelfile.initial_weights import load_initial_weights, save_pretrained
from seqray.models.prefilter import Prefilter, prefilter_shapes
from seqray.scanning.options import ScanOptions
from seqray.scanning.scorers import make_scorer

CLASSES = ("promoter", "background")
CONFIG = ModelConfig(d_model=8, heads=2, layers=1, d_ff=8, dropout=0.0, max_length=20)
RECORDS = b">a\nACGTACGTACGTACGTACGT\n>b\nACGTNNNNACGTACGTACGT\n"


@cache
def _saved(kind: str) -> bytes:
    """The bytes of a model file with random weights."""
    with tempfile.TemporaryDirectory() as folder, torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        path = Path(folder) / "tiny.safetensors"
        if kind == "locator":
            _save_locator(path)
        elif kind == "pretrained":
            save_pretrained(path, build_network(CONFIG), {"records": 5})
        else:
            positions = "rotary" if kind == "sequence-rotary" else "sinusoidal"
            _save_classifier(path, replace(CONFIG, positions=positions), prefiltered=kind == "prefiltered")
        return path.read_bytes()


def _save_classifier(path: Path, config: ModelConfig, *, prefiltered: bool = False) -> None:
    rng = np.random.default_rng(1)
    shares, labels = rng.dirichlet((1, 1), 60), np.arange(60) % 2
    log_odds = np.log(shares[:, 0] / shares[:, 1])
    card = Card(
        format=2,
        name="tiny",
        summary="synthetic",
        classes=CLASSES,
        positive=CLASSES[0],
        window=20,
        site=12,
        model=config,
        isotonic=fit_isotonic(log_odds, shares[:, 0] > rng.random(60)),
        conformal=fit_ranks(shares, labels, CLASSES),
        domain=fit_domain(rng.integers(0, 4, (100, 20)).astype(np.uint8), DNA),
        metrics={"headline": {"metric": "mcc", "split": "test", "value": 0.8, "low": 0.7, "high": 0.9}},
        training={"config": {"data": {"flank": 0}}, "seeds": [1]},
        info={"licence": "MIT", "limits": ["none known"]},
    )
    prefilter = None
    if prefiltered:
        shapes = prefilter_shapes(card.window, len(DNA.letters), 0)  # of one network, as in files of format 3
        weights = {name: rng.normal(0, 0.3, shape).astype(np.float32) for name, shape in shapes.items()}
        prefilter = Prefilter(weights, card.window)
        card = replace(
            card,
            format=3,
            prefilter=PrefilterFacts(levels=np.array([[0.5, -1.5, 0.05], [0.8, 0.5, 0.01]]), lost=0.001),
        )
    save_model(path, [build_network(config)], card, prefilter)


def _save_locator(path: Path) -> None:
    config = locator_config(TRACKS)
    card = Card(
        name="site",
        classes=("promoter",),
        positive="promoter",
        window=101,
        site=50,
        model=config,
        locator=LocatorFacts(extent=(3, 1), threshold_without_genes=0.5),
    )
    save_model(path, [build_network(config)], card)


def split_file(content: bytes, key: str) -> bytes:
    """An input: header and card in one line of JSON, then the numbers."""
    [length] = struct.unpack("<Q", content[:8])
    header = json.loads(content[8 : 8 + length])
    card = json.loads(header.pop("__metadata__")[key])
    card.pop("checksum", None)
    return json.dumps({"header": header, "card": card}).encode() + b"\n" + content[8 + length :]


def join_file(data: bytes, key: str) -> bytes:
    """The file of an input, with a checksum that holds."""
    line, _, numbers = data.partition(b"\n")
    try:
        parts = json.loads(line)
        header, card = dict(parts["header"]), parts["card"]
        if isinstance(card, dict):
            card["checksum"] = checksum(json.dumps(card, sort_keys=True, separators=(",", ":")), numbers)
        text = json.dumps(header | {"__metadata__": {key: json.dumps(card)}}).encode()
    except (ValueError, KeyError, TypeError, RecursionError, OverflowError):
        return data
    return struct.pack("<Q", len(text)) + text + numbers


def use_without_torch(path: Path) -> None:
    """Open a model as ONNX Runtime does, which needs no networks, and classify two sequences."""
    model = open_with_engine(path, "onnx", "fp32", 1)
    records = write_beside(path.with_name("records.fa"), RECORDS)
    for prediction in predict_records(model, read_sequences(records, model.alphabet)):
        str(prediction)


def use_model(path: Path) -> None:
    """Load a model, and classify two sequences."""
    describe_card(read_card(path))
    model = load_model(path)
    headline_metric(model.card.metrics)
    ExpectedPrecision(model.card.locator)
    with suppress(ConfigError):  # of a model without what it needs
        coverage_cutoffs(model.card, 0.5)
    if model.card.model.kind == "sequence":
        records = write_beside(path.with_name("records.fa"), RECORDS)
        for prediction in predict_records(model, read_sequences(records, model.alphabet)):
            str(prediction)
        with suppress(ConfigError, InputError):  # of a model that is not scanned
            make_scorer(model, ScanOptions()).facts()


def use_card(path: Path) -> None:
    """Read a card as a model file holds it."""
    try:
        mapping = json.loads(path.read_bytes())
    except (ValueError, RecursionError):
        return
    if isinstance(mapping, dict):
        card = card_from_mapping(mapping)
        describe_card(card)
        headline_metric(card.metrics)
        card_to_json(card)


def use_weights(path: Path) -> None:
    """Begin with the weights of a file."""
    load_initial_weights(path)


def cards() -> list[bytes]:
    """Cards of one line of JSON."""
    made = (split_file(_saved(kind), "seqray_card") for kind in ("sequence", "locator", "prefiltered"))
    return [json.dumps(json.loads(one.partition(b"\n")[0])["card"]).encode() for one in made]


def signed(*kinds: str) -> list[bytes]:
    return [split_file(_saved(kind), "seqray_card") for kind in kinds]


TARGETS = (
    Target("model-bytes", use_model, lambda: [_saved("sequence")], suffix=".safetensors"),
    Target(
        "model-signed",
        use_model,
        lambda: signed("sequence", "locator", "prefiltered"),
        build=lambda data: join_file(data, "seqray_card"),
        suffix=".safetensors",
        is_json=True,
    ),
    Target(
        "engine-signed",
        use_without_torch,
        lambda: signed("sequence", "sequence-rotary", "prefiltered"),
        build=lambda data: join_file(data, "seqray_card"),
        suffix=".safetensors",
        is_json=True,
    ),
    Target("card", use_card, cards, suffix=".json", is_json=True),
    Target(
        "pretrained",
        use_weights,
        lambda: [split_file(_saved("pretrained"), "seqray_pretrained")],
        build=lambda data: join_file(data, "seqray_pretrained"),
        suffix=".safetensors",
        is_json=True,
    ),
)
