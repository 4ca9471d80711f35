"""How scores of locators are smoothed, and how near two calls may lie: what it is worth in genera left out.

    python benchmarks/smoothing.py --genomes GENOMES/genomes.tsv --models runs/folds/folds.tsv

Writes ``smoothing.tsv``: for each choice of ``smoothing``, ``region`` and distance, with genes predicted and
without, the AUPRC of strong and of experimental starts of *E. coli* outside the test region of
``scan_ecoli.py``, and the mean recall of the genomes that ``scan_species.py`` counts (its truths ``genes``
and ``kuo``). Each genome is scored by the model that has not seen its genus. ``--profiles`` names a folder
that keeps the probabilities at all letters, and serves again.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "data"))

import numpy as np
import torch

import machine
from ecoli_split import LENGTH, TEST
from ecoli_truth import Truth, load_truth
from evaluation import Section, depth_rows, measure_depths
from genome_truth import KnownGenome, read_genome
from matching import Calls, rank_calls
from scan_ecoli import make_sections, write_rows
from scan_species import MIN_WEIGHT, make_section, read_models
from seqray.core.alphabet import DNA, reverse_complement_codes
from seqray.core.arrays import MIN_CALL_SCORE, local_maxima, suppress_neighbors
from seqray.core.records import SequenceRecord
from seqray.genome.find import predict_all
from seqray.genome.genes import gene_tracks
from seqray.inference.locators import CHUNK, Strand, StrandScorer
from seqray.modelfile.file import load_model
from seqray.models.locator import Smoothing

PARTS = ((0, TEST[0]), (TEST[1], LENGTH))
"""Of *E. coli*: all but the test region."""
NO_RESAMPLES = 1
TRUTHS = ("genes", "kuo")
Strands = Mapping[str, np.ndarray]
"""Probabilities at the letters of both strands, (L,) each, by position on the plus strand."""


@dataclass(frozen=True)
class Choice:
    """Letters of `seqray.models.locator.Smoothing`, and the smallest distance between two calls."""

    smoothing: int
    region: int
    distance: int


CHOICES = (
    Choice(0, 0, 50),
    Choice(0, 0, 25),
    Choice(8, 0, 50),
    Choice(4, 0, 25),
    Choice(8, 0, 25),
    Choice(12, 0, 25),
    Choice(8, 0, 15),
    Choice(8, 60, 25),
    Choice(8, 80, 25),
    Choice(8, 100, 25),
)


def score_genome(genome: KnownGenome, model_path: str, *, genes: bool) -> Strands:
    """Probabilities of a locator, without smoothing, contigs end to end."""
    model = load_model(model_path)
    for network in model.locators:
        network.smoothing = Smoothing(0)
    scorer, found = StrandScorer(model), predict_all([SequenceRecord(*one) for one in genome.contigs.items()])
    parts: dict[str, list[np.ndarray]] = {"+": [], "-": []}
    with scorer.running():
        for name, letters in genome.contigs.items():
            codes = DNA.encode(letters)
            for strand in "+-":
                tracks = gene_tracks(found.of(name), len(codes), strand) if genes else None
                read = Strand(codes if strand == "+" else reverse_complement_codes(codes), tracks)
                scores = np.concatenate(scorer.chunks(read, range(-(-len(codes) // CHUNK))))
                parts[strand].append(scores if strand == "+" else scores[::-1])
    return {strand: np.concatenate(scores).astype(np.float32) for strand, scores in parts.items()}


def known_scores(genome: KnownGenome, model: str, folder: Path | None, *, genes: bool) -> Strands:
    """Score a genome, or read what an earlier run kept."""
    if folder is None:
        return score_genome(genome, model, genes=genes)
    kept = folder / f"{genome.name}{'' if genes else '.no-genes'}.npz"
    if not kept.exists():
        folder.mkdir(parents=True, exist_ok=True)
        scores = score_genome(genome, model, genes=genes)
        np.savez(kept, plus=scores["+"], minus=scores["-"])
    with np.load(kept) as arrays:
        return {"+": arrays["plus"], "-": arrays["minus"]}


def call(scores: Strands, choice: Choice) -> Calls:
    """Rank the calls of both strands."""
    smooth = Smoothing(choice.smoothing, choice.region)
    position, strand, score = [], [], []
    for name, values in scores.items():
        p = np.clip(values.astype(np.float64), 1e-9, 1 - 1e-7)
        logits = torch.from_numpy(np.log(p / (1 - p)))[None, :, None]
        found = torch.sigmoid(smooth(logits))[0, :, 0].numpy()
        peaks = np.flatnonzero(local_maxima(found) & (found >= MIN_CALL_SCORE))
        peaks = peaks[suppress_neighbors(peaks, found[peaks], choice.distance)]
        position.append(peaks)
        score.append(found[peaks])
        strand += [name] * len(peaks)
    return rank_calls(np.concatenate(position).tolist(), strand, np.concatenate(score).tolist())


def ecoli_figures(calls: Calls, truth: Truth) -> dict[str, float]:
    """Mean AUPRC of the parts, weighted by their starts."""
    figures: dict[str, float] = {}
    rows = []
    for part in PARTS:
        section = make_sections(truth, part)[0]
        inside = calls.take((calls.position >= part[0]) & (calls.position < part[1]))
        rows.append((section, depth_rows(section, "", inside, section.weights(NO_RESAMPLES, seed=0))[0]))
    for name in ("strong", "experimental"):
        weights = [len(section.pairs[name][0]) for section, _ in rows]
        values = [float(row[f"auprc_{name}"]) for _, row in rows]
        figures[f"ecoli_auprc_{name}"] = float(np.average(values, weights=weights))
    return figures


def recalls(calls: Calls, section: Section) -> dict[str, float]:
    """Recall of both truths at 0.5 and 1 call per kb, and within 5 letters."""
    weights, found = section.weights(NO_RESAMPLES, seed=0), {}
    for tolerance, per_kb in ((25, 0.5), (25, 1.0), (5, 1.0)):
        [measured] = measure_depths(section, calls, weights, (per_kb,), tolerance).values()
        for truth in TRUTHS:
            if truth in section.pairs:
                found[f"{truth}_{per_kb:g}_within_{tolerance}"] = float(measured.values[f"recall_{truth}"][0])
    return found


def measure(args: argparse.Namespace, *, genes: bool) -> Iterator[dict[str, str | float | int]]:
    """Yield a row for each choice."""
    models, truth = read_models(args.models), load_truth(args.data)
    found: dict[Choice, dict[str, list[float]]] = {choice: {} for choice in CHOICES}
    for row in machine.read_table(args.genomes):
        if row["domain"] != "bacteria" or float(row["weight"]) < MIN_WEIGHT:
            continue
        genome = read_genome(args.genomes.parent, row)
        scores = known_scores(genome, models.get(genome.genus, models["*"]), args.profiles, genes=genes)
        section = make_section(genome)
        for choice, figures in found.items():
            calls = call(scores, choice)
            new = recalls(calls, section) | (ecoli_figures(calls, truth) if row["name"] == "ecoli" else {})
            for name, value in new.items():
                figures.setdefault(name, []).append(value)
        print(row["species"], file=sys.stderr)
    for choice, figures in found.items():
        means = {name: float(np.mean(values)) for name, values in sorted(figures.items())}
        yield {"genes": "predicted" if genes else "none", **vars(choice), **means}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the benchmark."""
    parser = machine.script_parser(__doc__, "smoothing.tsv")
    machine.add_data(parser)
    parser.add_argument("--genomes", type=Path, required=True, help="sheet of data/prepare_genomes.py")
    parser.add_argument("--models", type=Path, required=True, help="TSV with the columns 'genus' and 'model'")
    parser.add_argument("--profiles", type=Path, help="folder that keeps the scores, and serves again")
    args = parser.parse_args(argv)
    lines = machine.describe([Path(__file__).name, *(sys.argv[1:] if argv is None else argv)])
    rows = [row for genes in (True, False) for row in measure(args, genes=genes)]
    write_rows(args.out, rows, lines)
    return 0


if __name__ == "__main__":
    sys.exit(main())
