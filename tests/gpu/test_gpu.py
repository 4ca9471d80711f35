"""Results of a GPU beside those of the CPU. These tests run where torch sees a GPU."""

import numpy as np
import pandas as pd
import pytest
import torch

from seqray.cli.main import main
from seqray.explanations.rollout import rollout
from seqray.explanations.trace import trace
from seqray.genome.genes import TRACKS
from seqray.inference.locators import Strand, StrandScorer
from seqray.inference.sequences import compute_precision, score_codes
from seqray.modelfile.file import load_model

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize(("precision", "tolerance"), [("fp32", 1e-5), ("bf16", 0.05)])
@pytest.mark.parametrize("batch_size", ["auto", 7])
def test_windows_have_the_probabilities_of_the_cpu(tiny_model_file, precision, tolerance, batch_size):
    codes = np.random.default_rng(0).integers(0, 5, (300, 20)).astype(np.uint8)
    expected = score_codes(load_model(tiny_model_file), codes)
    model = load_model(tiny_model_file).to("cuda")
    found = score_codes(model, codes, batch_size=batch_size, dtype=precision)
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance)


@pytest.mark.parametrize("genes", [False, True])
@pytest.mark.parametrize(("precision", "tolerance"), [("fp32", 1e-5), ("bf16", 0.05)])
def test_a_locator_has_the_scores_of_the_cpu(locator_file, genes, precision, tolerance):
    rng = np.random.default_rng(1)
    codes = rng.integers(0, 4, 40_000).astype(np.uint8)
    tracks = rng.integers(0, 256, (len(TRACKS), len(codes))).astype(np.uint8) if genes else None
    scores = []
    for device, dtype in (("cpu", "fp32"), ("cuda", precision)):
        scorer = StrandScorer(load_model(locator_file).to(device), dtype)
        with scorer.running():
            scores.append(np.concatenate(scorer.chunks(Strand(codes, tracks), [0, 1, 2])))
    np.testing.assert_allclose(scores[1], scores[0], rtol=0, atol=tolerance)


def test_rollout_has_the_values_of_the_cpu(tiny_model_file):
    codes = np.random.default_rng(4).integers(0, 4, (20, 20)).astype(np.uint8)
    values = []
    for device in ("cpu", "cuda"):
        model = load_model(tiny_model_file).to(device)
        tokens = torch.from_numpy(model.tokenizer.encode_codes(codes)).to(device)
        with compute_precision(model.device, "fp32"), torch.inference_mode():
            values.append(rollout(trace(model.sequence_networks[0], tokens)).cpu().numpy())
    np.testing.assert_allclose(values[1], values[0], rtol=0, atol=1e-5)


@pytest.mark.parametrize(
    ("verb", "kind"),
    [
        ("predict", "windows"),
        ("scan", "windows"),
        ("explain", "windows"),
        ("scan", "locator"),
        ("explain", "locator"),
        ("predict", "alignments"),
        ("explain", "alignments"),
    ],
)
def test_verbs_write_the_tables_of_the_cpu(
    verb, kind, tiny_model_file, locator_file, alignment_model_file, tmp_path
):
    models = {"windows": tiny_model_file, "locator": locator_file, "alignments": alignment_model_file}
    words = ["--model", models[kind], "--quiet"]
    if kind == "alignments":
        words.append(write_alignment(tmp_path))
    else:
        words.append(write_fasta(tmp_path, 400 if verb == "scan" or kind == "locator" else 20))
    if kind == "locator":
        words += ["--genes", "none"]
    if (verb, kind) == ("explain", "locator"):
        calls = tmp_path / "calls.gff3"
        assert main([str(word) for word in ["scan", *words, "--device", "cpu", "--out", calls]]) == 0
        words += ["--calls", calls]
    tables = []
    for device in ("cpu", "cuda"):
        out = tmp_path / f"{device}.tsv"
        assert main([str(word) for word in [verb, *words, "--device", device, "--out", out]]) == 0
        tables.append(pd.read_csv(out, sep="\t", comment="#", na_values="."))
    assert len(tables[0])
    pd.testing.assert_frame_equal(*tables, rtol=1e-3, atol=1e-5)


def write_fasta(folder, length):
    rng, path = np.random.default_rng(2), folder / "in.fa"
    letters = ["".join(rng.choice(list("ACGT"), length)) for _ in range(8)]
    path.write_text("".join(f">r{i}\n{text}\n" for i, text in enumerate(letters)))
    return path


def write_alignment(folder):
    rng, path = np.random.default_rng(2), folder / "in.sto"
    rows = [f"r{i} {''.join(rng.choice(list('ACGU'), 20))}" for i in range(4)]
    path.write_text("\n".join(["# STOCKHOLM 1.0", *rows, "//", ""]))
    return path


def test_training_ends_with_a_model_of_the_cpu(tmp_path):
    rng, rows = np.random.default_rng(3), ["id\tsequence\tlabel"]
    for i in range(200):
        left, middle, right = ("".join(rng.choice(list("ACGT"), n)) for n in (8, 6, 6))
        rows.append(f"r{i}\t{left}{('TATAAT', middle)[i % 2]}{right}\t{('box', 'none')[i % 2]}")
    (tmp_path / "train.tsv").write_text("\n".join(rows) + "\n")
    words = ["train", "--train", tmp_path / "train.tsv", "--out", tmp_path / "m.safetensors"]
    words += ["--device", "cuda", "--set", "trainer.max_epochs=2", "--quiet"]
    assert main([str(word) for word in words]) == 0
    assert load_model(tmp_path / "m.safetensors").device == torch.device("cpu")


def test_training_of_a_locator_ends_with_a_model_of_the_cpu(tmp_path, genome_settings):
    rng = np.random.default_rng(0)
    (tmp_path / "c.yaml").write_text(genome_settings.replace("accelerator: cpu", "accelerator: cuda"))
    (tmp_path / "g.fa").write_text(">c\n" + "".join(rng.choice(list("ACGT"), 20_000)) + "\n")
    rows = "".join(f"c\t{at}\t{'+-'[at % 2]}\tpromoter\n" for at in range(101, 20_000, 333))
    (tmp_path / "s.tsv").write_text("contig\tposition\tstrand\tsite\n" + rows)
    words = ["train", "--config", tmp_path / "c.yaml", "--genome", tmp_path / "g.fa", "--genes", "none"]
    words += ["--sites", tmp_path / "s.tsv", "--out", tmp_path / "m.safetensors", "--quiet"]
    assert main([str(word) for word in words]) == 0
    assert load_model(tmp_path / "m.safetensors").device == torch.device("cpu")
