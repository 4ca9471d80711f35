"""``seqray predict`` of the tiny random model."""

from __future__ import annotations

import pytest
import torch

from cli.predict.records import fasta
from seqray.cli.main import main


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "in.fa"
    path.write_text(fasta())
    return path


@pytest.fixture
def predict(tiny_model_file, capfd):
    """Run the verb; gives exit status, standard output and standard error."""
    threads = torch.get_num_threads()

    def run(*words, model=tiny_model_file):
        status = main(["predict", *map(str, words), "--model", str(model)])
        return status, *capfd.readouterr()

    yield run
    torch.set_num_threads(threads)
