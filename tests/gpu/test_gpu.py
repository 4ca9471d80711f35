"""Results of a GPU beside those of the CPU. These tests run where torch sees a GPU."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch

from seqray.cli import main
from seqray.inference import Strand, StrandScorer, score_codes
from seqray.modelfile import load_model_file

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize(("precision", "tolerance"), [("fp32", 1e-5), ("bf16", 0.05)])
@pytest.mark.parametrize("batch_size", ["auto", 7])
def test_windows_have_the_probabilities_of_the_cpu(tiny_model_file, precision, tolerance, batch_size):
    codes = np.random.default_rng(0).integers(0, 5, (300, 20)).astype(np.uint8)
    expected = score_codes(load_model_file(tiny_model_file), codes)
    model = load_model_file(tiny_model_file).to("cuda")
    found = score_codes(model, codes, batch_size=batch_size, dtype=precision)
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance)


def test_a_locator_has_the_scores_of_the_cpu(locator_file):
    codes = np.random.default_rng(1).integers(0, 4, 3000).astype(np.uint8)
    scores = []
    for device in ("cpu", "cuda"):
        scorer = StrandScorer(load_model_file(locator_file).to(device))
        with scorer.running():
            scores.append(scorer.chunks(Strand(codes), [0])[0])
    np.testing.assert_allclose(scores[1], scores[0], rtol=0, atol=1e-5)


@pytest.mark.parametrize("verb", ["predict", "scan", "explain"])
def test_verbs_write_the_tables_of_the_cpu(verb, tiny_model_file, tmp_path):
    rng = np.random.default_rng(2)
    length = 400 if verb == "scan" else 20
    letters = ["".join(rng.choice(list("ACGT"), length)) for _ in range(8)]
    (tmp_path / "in.fa").write_text("".join(f">r{i}\n{text}\n" for i, text in enumerate(letters)))
    tables = []
    for device in ("cpu", "cuda"):
        out = tmp_path / f"{device}.tsv"
        words = [verb, tmp_path / "in.fa", "--model", tiny_model_file, "--device", device, "-q", "-o", out]
        assert main([str(word) for word in words]) == 0
        tables.append(pd.read_csv(out, sep="\t", comment="#"))
    assert len(tables[0])
    pd.testing.assert_frame_equal(*tables, rtol=1e-3)


def test_training_ends_with_a_model_of_the_cpu(tmp_path):
    rng, rows = np.random.default_rng(3), ["id\tsequence\tlabel"]
    for i in range(200):
        left, middle, right = ("".join(rng.choice(list("ACGT"), n)) for n in (8, 6, 6))
        rows.append(f"r{i}\t{left}{('TATAAT', middle)[i % 2]}{right}\t{('box', 'none')[i % 2]}")
    (tmp_path / "train.tsv").write_text("\n".join(rows) + "\n")
    words = ["train", "--train", tmp_path / "train.tsv", "--out", tmp_path / "m.safetensors"]
    words += ["--device", "cuda", "--set", "trainer.max_epochs=2", "--quiet"]
    assert main([str(word) for word in words]) == 0
    assert load_model_file(tmp_path / "m.safetensors").device == torch.device("cpu")
