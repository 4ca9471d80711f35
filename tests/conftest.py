"""Fixtures for all tests: a random model so small that it answers at once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import settings

from seqray.alphabet import DNA
from seqray.calibrate import Domain
from seqray.card import Card
from seqray.config import ModelConfig
from seqray.modelfile import TrainedModel, load_model, save_model
from seqray.models.build import build_model, build_network
from seqray.tokens import CharacterTokenizer

# A busy machine must not fail a test; nothing is left on the disk.
settings.register_profile("seqray", deadline=None, database=None)
settings.load_profile("seqray")

WINDOW, SITE = 20, 12


def random_codes(count: int, length: int = WINDOW, seed: int = 0) -> np.ndarray:
    """(count, length) codes of unambiguous DNA."""
    return np.random.default_rng(seed).integers(0, 4, (count, length)).astype(np.uint8)


@pytest.fixture(scope="session")
def tiny_model_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model file: one layer, 8 wide, windows of 20 letters, random weights large enough to disagree."""
    config = ModelConfig(d_model=8, heads=2, layers=1, dropout=0.0, max_length=WINDOW)
    with torch.random.fork_rng():
        torch.manual_seed(7)
        network = build_model(config)
        with torch.no_grad():
            for parameter in network.parameters():
                parameter.normal_(0, 0.5)
            # Centre it: of random windows one half is called.
            tokens = torch.from_numpy(CharacterTokenizer(DNA).encode_codes(random_codes(500)))
            network.head.linear.bias -= network(tokens).logits.median(dim=0).values
    card = Card(
        name="tiny",
        classes=("promoter", "background"),
        positive="promoter",
        window=WINDOW,
        site=SITE,
        model=config,
        threshold=0.5,
        prevalence=0.2,
        domain=Domain.fit(random_codes(500), DNA).to_mapping(),
    )
    path = tmp_path_factory.mktemp("models") / "tiny.safetensors"
    save_model(path, [network], card)
    return path


ALIGNED_COLUMNS, ALIGNED_ROWS = 24, 5


@pytest.fixture(scope="session")
def alignment_model_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two members that read 5 rows and 24 columns of RNA at most; random weights large enough to disagree."""
    config = ModelConfig(
        kind="alignment",
        alphabet="rna",
        d_model=12,
        heads=3,
        layers=2,
        classes=3,
        dropout=0.0,
        max_rows=ALIGNED_ROWS,
        max_length=ALIGNED_COLUMNS,
    )
    with torch.random.fork_rng():
        torch.manual_seed(11)
        networks = [build_network(config) for _ in range(2)]
        with torch.no_grad():
            for parameter in (p for network in networks for p in network.parameters()):
                parameter.add_(0.4 * torch.randn_like(parameter))
    card = Card(
        name="tiny-alignments",
        classes=("tRNA", "miRNA", "riboswitch"),
        positive="miRNA",
        window=ALIGNED_COLUMNS,
        model=config,
        members=2,
        temperature=1.5,
    )
    path = tmp_path_factory.mktemp("alignment-models") / "tiny.safetensors"
    save_model(path, networks, card)
    return path


@pytest.fixture(scope="session")
def alignment_model(alignment_model_file: Path) -> TrainedModel:
    """The model of `alignment_model_file`."""
    return load_model(alignment_model_file)


@pytest.fixture(scope="session")
def tiny_model(tiny_model_file: Path) -> TrainedModel:
    """The model of `tiny_model_file`."""
    return load_model(tiny_model_file)
