"""Explanations made up for the page: promoters with two boxes, scores that favor the boxes."""

import base64
import io
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from PIL import Image

from seqray.core.alphabet import DNA, RNA, Alphabet
from seqray.core.boxes import BOXES
from seqray.core.card import Card
from seqray.core.explanation import (
    AlignmentExplanation,
    AlignmentScores,
    Check,
    Curve,
    Explanation,
    Faithfulness,
    HeadFigures,
    Motif,
    Place,
)
from seqray.core.model_config import ModelConfig
from seqray.core.records import Alignment, Contig
from seqray.core.results import (
    Audit,
    AuditFigure,
    Box,
    Call,
    CallContext,
    Evaluation,
    Finding,
    Histogram,
    SpeciesRow,
)
from seqray.evaluation.floor import answers_from_probabilities
from seqray.evaluation.run import evaluate_scores
from seqray.genome.genes import Gene
from seqray.report.html import ModelText
from seqray.report.pages.alignments import AlignmentReport
from seqray.report.pages.scan import ScanReport, shown_calls
from seqray.report.pages.sequences import SequenceReport
from seqray.report.svg.genome import CALL_REACH, STRIP_END, STRIP_START


def made_card(**more: Any) -> Card:
    """Card of a model that doesn't exist."""
    settings: dict[str, Any] = {
        "name": "made-up",
        "summary": "Transcription starts of nothing in particular, 80 bp",
        "classes": ("background", "promoter"),
        "positive": "promoter",
        "window": 80,
        "site": 60,
        "model": ModelConfig(layers=2, heads=4, max_length=512),
        "info": {"licence": "MIT", "limits": ["Made up for a test.", "Knows nothing."]},
    }
    return Card(**{**settings, **more})


def made_record(rng: np.random.Generator, record: int, length: int, alphabet: Alphabet) -> list[Explanation]:
    """Three methods on one record, whose scores favor two boxes; p and q belong to those with a sign."""
    size, codes = np.full(length, 0.12), rng.integers(0, len(alphabet.letters), length)
    size[25:31], size[48:54] = 0.9, 1.5
    effects = -np.abs(rng.normal(0.6, 0.7, (length, len(alphabet.letters)))) * size[:, None]
    effects *= np.where(rng.random(length) < 0.25, -0.5, 1.0)[:, None]
    effects[np.arange(length), codes] = 0.0
    signed = -effects.sum(axis=1) / (effects.shape[1] - 1)
    attention = rng.gamma(0.3, size=(2, 4, length)) * (1 + 4 * np.abs(signed))
    shares = np.abs(signed) + rng.gamma(0.5, 0.2, length)
    p = np.clip(np.exp(-3 * signed) * 0.2, 0.001, 1)
    own = {
        "ism": {"scores": signed, "effects": effects, "p": p, "q": np.minimum(1, 2 * p)},
        "rollout": {
            "scores": shares / shares.sum(),
            "attention": attention / attention.sum(axis=2, keepdims=True),
        },
        "integrated-gradients": {
            "scores": signed + rng.normal(0, 0.1, length), "p": p, "q": np.minimum(1, 2 * p),
        },
    }  # fmt: skip
    probability = float(rng.beta(6, 2))
    known: dict[str, Any] = {
        "record": record,
        "id": f"promoter_{record + 1:03d}",
        "sequence": alphabet.decode(codes.astype(np.uint8)),
        "label": "promoter" if probability >= 0.5 else "background",
        "target": "promoter",
        "probability": probability,
        "member": "mean",
        "place": Place("NC_000913.3", 999 * record, 999 * record + length, "-+"[record % 2], 4_641_652),
    }
    return [Explanation(method=name, signed=name != "rollout", **known, **more) for name, more in own.items()]


def made_faithfulness(rng: np.random.Generator) -> Faithfulness:
    """Curves and checks: ism good, rollout middling."""
    shares, curves = np.linspace(0, 1, 11), []
    for kind in ("deletion", "insertion"):
        for method, steep in (("ism", 9.0), ("integrated-gradients", 6.0), ("rollout", 3.0), ("random", 1.6)):
            mean = np.exp(-steep * shares) if kind == "deletion" else -np.exp(-steep * shares)
            band = 0.3 + 0.1 * rng.random(11)
            curves.append(Curve(method, kind, shares, mean, mean - band, mean + band))
    checks = (
        Check("ism", "deletion_gain", "random", 1.62, 1.4, 1.83, 81),
        Check("integrated-gradients", "rank_correlation", "ism", 0.84, 0.8, 0.87, 81),
        Check("rollout", "share_of_reference", "ism", 0.13, -0.02, 0.28, 81),
        Check("rollout", "stability", "other members", np.nan, np.nan, np.nan, 81),
    )
    verdicts = {"ism": "Faithful: far more than random.", "rollout": "Not told apart from random."}
    return Faithfulness(checks, tuple(curves), verdicts)


def made_motif(rng: np.random.Generator, number: int, box: str, start: int) -> Motif:
    """A motif of DNA around a box."""
    counts = rng.integers(2, 12, (len(box), 4)).astype(float)
    counts[np.arange(len(box)), DNA.encode(box)] = rng.integers(35, 70, len(box))
    shares = counts / counts.sum(axis=1, keepdims=True)
    bits = 2 + (shares * np.log2(shares)).sum(axis=1)
    positions = np.clip(np.rint(rng.normal(start, 4, 71)), 0, 70).astype(np.int64)
    known = ("-10 box TATAAT", 0.81) if box == "TATAAT" else ("", np.nan)
    return Motif(f"motif_{number}", "ACGT", counts, bits, 71, positions, box, *known)


@pytest.fixture(scope="session")
def make_report() -> Callable[..., SequenceReport]:
    """Make the data of a page of so many records of some length; keywords replace what is made."""

    def make(records: int = 3, length: int = 80, alphabet: Alphabet = DNA, **more: Any) -> SequenceReport:
        rng = np.random.default_rng(5)
        explanations = [e for r in range(records) for e in made_record(rng, r, length, alphabet)]
        heads = [
            HeadFigures(*place, rng.random(), 40 * rng.random(), rng.random(), rng.normal())
            for place in itertools.product((1, 2), (1, 2), (1, 2, 3, 4))
        ]
        boxes = (("TATAAT", 48), ("TTGACA", 25)) if alphabet is DNA else ()
        motifs = [made_motif(rng, i, box, at) for i, (box, at) in enumerate(boxes, start=1)]
        settings: dict[str, Any] = {
            "title": "Explanations of 81 promoters",
            "explanations": explanations,
            "alphabet": alphabet,
            "card": made_card(),
            "site": 60,
            "provenance": ["seqray 0.1.0", "model made-up, sha256 0123", "seqray explain --html report.html"],
            "faithfulness": made_faithfulness(rng),
            "heads": heads,
            "motifs": motifs,
        }
        return SequenceReport(**{**settings, **more})

    return make


def made_alignment(
    rows: int = 6,
    columns: int = 30,
    *,
    read_rows: int | None = None,
    read_columns: int | None = None,
    alphabet: Alphabet = RNA,
    seed: int = 0,
    **more: Any,
) -> AlignmentExplanation:
    """An alignment explained by two methods; the first rows and columns are read, all if not said."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, alphabet.unknown + 3, (rows, columns)).astype(np.uint8)
    codes[0] = rng.integers(0, 4, columns)
    ss_cons = ("(" * (columns // 3)).ljust(columns - columns // 3, ".") + ")" * (columns // 3)
    names = tuple(f"row{r}" for r in range(rows))
    alignment = Alignment("RF1", names, codes, alphabet, ss_cons=ss_cons, metadata={"DE": "made up"})
    kept = np.arange(rows)[:read_rows], np.arange(columns)[:read_columns]
    grid = rng.random(tuple(map(len, kept)))
    signed, of_rows = rng.normal(size=grid.shape[1]), rng.normal(size=len(grid))
    of_rows[0] = np.nan
    scores = (
        AlignmentScores("rollout", False, grid.sum(axis=0), grid.sum(axis=1), grid),
        AlignmentScores("occlusion", True, signed, of_rows),
    )
    settings: dict[str, Any] = {
        "record": 0,
        "alignment": alignment,
        "label": "tRNA",
        "target": "tRNA",
        "probabilities": (0.1, 0.7, 0.2),
        "probability": 0.7,
        "rows": kept[0],
        "columns": kept[1],
        "scores": scores,
    }
    return AlignmentExplanation(**{**settings, **more})


@pytest.fixture(scope="session")
def explained() -> Callable[..., AlignmentExplanation]:
    """Make the explanation of an alignment; see `made_alignment`."""
    return made_alignment


@pytest.fixture(scope="session")
def report() -> Callable[..., AlignmentReport]:
    """Make the data of a page of explained alignments; keywords replace what is made."""
    card = Card(
        name="made-up",
        classes=("miRNA", "tRNA", "<i>x</i>"),
        positive="tRNA",
        window=500,
        model=ModelConfig(kind="alignment", alphabet="rna", classes=3),
    )

    def make(*explanations: AlignmentExplanation, **more: Any) -> AlignmentReport:
        settings: dict[str, Any] = {"title": "Alignments", "card": card, "provenance": ["seqray explain x"]}
        return AlignmentReport(shown=explanations, **{**settings, **more})

    return make


@pytest.fixture(scope="session")
def decoded() -> Callable[[str], tuple[np.ndarray, list[tuple[int, ...]]]]:
    """Read the cells and the palette of a picture from its address."""

    def read(address: str) -> tuple[np.ndarray, list[tuple[int, ...]]]:
        image = Image.open(io.BytesIO(base64.b64decode(address.partition("base64,")[2])))
        palette = image.getpalette() or []
        return np.array(image), [tuple(palette[i : i + 3]) for i in range(0, len(palette), 3)]

    return read


def made_call_report(
    calls: int = 60,
    length: int = 100_000,
    genes: int = 80,
    names: str = "g{}",
    contig: str = "chromosome",
    **more: Any,
) -> ScanReport:
    """A scan of one sequence: genes of 600 letters at equal distances, calls at random."""
    rng = np.random.default_rng(1)
    starts = np.arange(genes) * (length // max(1, genes))
    annotated = [Gene(int(s), int(s) + 600, "+-"[i % 2], names.format(i)) for i, s in enumerate(starts)]
    sites = np.sort(rng.choice(length, calls, replace=False))
    found = []
    for i, site in enumerate(sites.tolist()):
        strand = "+-"[int(rng.integers(2))]
        context = CallContext(
            trust="medium",
            precision=float(rng.random()),
            gene=names.format(i % max(1, genes)) if genes else "",
            locus=f"b{i:04d}" if genes else "",
            distance=int(rng.integers(300)) if genes else None,
            boxes=(Box("-10", site - 12, "TATAAT"), Box("-35", site - 35, "TTGACA")),
            spacer=17,
        )
        found.append(Call(contig, site, site + 1, strand, site, float(rng.uniform(0.1, 1)), "start", context))
    best, doubtful = shown_calls(np.array([call.score for call in found]))
    profiles = {i: tuple(rng.random((2, 2 * CALL_REACH + 1))) for i in [*best, *doubtful]}
    settings: dict[str, Any] = {
        "title": "Scan of a genome",
        "calls": found,
        "boxes": BOXES["bacteria"],
        "contigs": [Contig(contig, length, circular=True)],
        "genes": {contig: annotated} if genes else {},
        "gene_source": "read from genome.gbk",
        "profiles": profiles,
        "letters": dict.fromkeys(profiles, "A" * (STRIP_END - STRIP_START)),
        "shares": {i: rng.normal(size=STRIP_END - STRIP_START) for i in profiles},
        "threshold": 0.1,
        "expected_precision": "0.44",
        "expected_note": "0.38 to 0.51 in a species",
        "expected": [SpeciesRow("a species", "region", 1.0, 0.5, 0.44, 0.38, 0.51)],
        "cautions": ["unlike the training data"],
        "provenance": ["seqray 0"],
        "model": ModelText.of(made_card()),
    }
    return ScanReport(**{**settings, **more})


def made_up_audit(label: str = "pos", findings: Sequence[Finding] | None = None) -> Audit:
    """An audit with a figure for each table of the page."""
    figures = [
        AuditFigure("counts", "all", "*", "sequences", 30),
        AuditFigure("counts", "all", label, "sequences", 12),
        AuditFigure("copies", "all", label, "duplicates", 7),
        AuditFigure("copies", "all", label, "strand_duplicates", 0),
        AuditFigure("rules", "given", label, "gc_auroc", 0.8765, 0.8, 0.91),
        AuditFigure("rules", "given", label, "gc_mcc", 0.4321, 0.3, 0.5),
        AuditFigure("baselines", "grouped", label, "kmer_logistic_auroc", 0.912, 0.9, 0.93),
    ]
    histograms = [
        Histogram("gc", "all", label, (0.0, 0.5, 1.0), (3, 9)),
        Histogram("identity", "test to train", label, (0.0, 0.5, 1.0), (1, 0)),
    ]
    leak = Finding("leak", "copies_across", f"copies of {label}", f"effect on {label}", f"drop {label}")
    settings = {"given": "5 random folds", "grouped": "5 folds that keep relatives together", "word": "40"}
    return Audit(figures, histograms, [leak] if findings is None else findings, settings)


def made_up_evaluation(classes: Sequence[str] = ("background", "promoter"), context: str = "c") -> Evaluation:
    """An evaluation of random scores, compared with three others, with subsets of each kind."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, len(classes), 60)

    def scores() -> np.ndarray:
        table = rng.dirichlet(np.ones(len(classes)), 60) + 0.5 * np.eye(len(classes))[truth]
        return table / table.sum(axis=1, keepdims=True)

    beside = [
        answers_from_probabilities(name, f"the {name}", scores(), classes, classes[-1])
        for name in ("against", "floor", "majority")
    ]
    parts = {"similarity:0.0-0.5": np.arange(30), "similarity:1.0": np.arange(30, 60)}
    parts[f"context:{context}"] = np.arange(9)
    labels = [classes[k] for k in truth]
    return evaluate_scores(labels, scores(), classes, classes[-1], beside=beside, subsets=parts, draws=20)


@pytest.fixture(scope="session")
def made_scan() -> Callable[..., ScanReport]:
    return made_call_report


@pytest.fixture(scope="session")
def made_audit() -> Callable[..., Audit]:
    return made_up_audit


@pytest.fixture(scope="session")
def made_evaluation() -> Callable[..., Evaluation]:
    return made_up_evaluation
