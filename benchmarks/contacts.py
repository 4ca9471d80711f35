"""Pairs of columns: base pairs of Rfam's consensus structures, contacts of Pfam domains, and who finds them.

    python benchmarks/contacts.py
    python benchmarks/contacts.py --only "base pairs"    # the rows of contacts stay

Rows of the table:

- base pairs: the seed alignments with a consensus structure (``SS_cons``) of ten pairs or more. Scores: the
  row-attention maps of a model (symmetrised, average-product corrected), here the shipped rna-family-type,
  which learned types and no structure; mutual information with the same correction; the same with columns
  weighted by how many rows have letters in both, `seqray.core.records`; helices, which is what
  ``model.helices`` tells a network (`seqray.models.alignment`), of all rows and of the first one; and chance.
- contacts: 20 domains whose alignment and structure are known; residues are in contact where their C-beta
  atoms (C-alpha of glycine) are at most 8 Å apart. Scores: as above; the maps are those of a network that
  ``seqray pretrain`` taught to guess hidden residues of these alignments (``--weights``), where one is named.

Pairs lie at least 4 (base pairs) or 6 (contacts) columns apart. Precision is that of the L/5 and L best
pairs, L the letters of the query; figures are means over alignments with 95 % intervals by bootstrap.

Source of the measure: Rao et al. 2021, "MSA Transformer", section 4.1; of 8 Å: CASP.
"""

from __future__ import annotations

import csv
import gzip
import sys
from collections.abc import Iterator, Sequence
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from Bio.Align import PairwiseAligner
from Bio.PDB.PDBParser import PDBParser
from Bio.PDB.Polypeptide import is_aa
from Bio.SeqUtils import seq1

from covariation import (
    average_product_correction,
    base_pairs,
    covariation,
    mutual_information,
    pair_precision,
    pairs_from_maps,
    row_weights,
)
from machine import add_data, describe, script_parser
from seqray.core.alphabet import PROTEIN, RNA
from seqray.core.records import Alignment, choose_cells
from seqray.core.run_config import load_run_config
from seqray.io.alignments import read_alignments
from seqray.io.tables import write_table
from seqray.modelfile.file import build_network, load_model
from seqray.modelfile.initial_weights import apply_initial_weights, load_initial_weights
from seqray.models.alignment import AxialTransformer, pair_probabilities
from seqray.models.tokenizers import FIRST_LETTER, AlignmentTokenizer

CONTACT, APART = 8.0, 6  # Å, columns
STEM_APART, MIN_PAIRS = 4, 10
TASKS = ("base pairs", "contacts")
MAX_ROWS, MAX_COLUMNS = 2000, 400  # rows that covariation reads, and columns of the largest alignment


class Known(NamedTuple):
    """An alignment, its true pairs of columns (P, 2), and how far apart pairs are looked for."""

    alignment: Alignment
    pairs: np.ndarray
    apart: int


def families(path: Path) -> Iterator[Known]:
    """Seed alignments with a consensus structure of enough pairs."""
    for alignment in read_alignments(path, RNA):
        if not alignment.ss_cons or alignment.columns > MAX_COLUMNS:
            continue
        pairs = base_pairs(alignment.ss_cons)
        pairs = pairs[pairs[:, 1] - pairs[:, 0] >= STEM_APART]
        if len(pairs) >= MIN_PAIRS:
            yield Known(alignment, pairs, STEM_APART)


def domains(folder: Path) -> Iterator[Known]:
    """Protein families whose first rows are brought together with the chain of a structure."""
    with open(folder / "domains.csv", encoding="utf-8") as handle:
        rows = list(csv.reader(line for line in handle if line.strip() and not line.startswith("#")))
    for accession, _, _, structure, *_ in rows:
        files = list(folder.glob(f"{accession}.align*.fa.gz"))
        chains = list((folder / "structures").glob(f"{structure.upper()}_*.pdb.gz"))
        if files and chains:
            alignment = next(iter(read_alignments(files[0], PROTEIN)))
            yield on_structure(alignment, chains[0])


def on_structure(alignment: Alignment, chain: Path) -> Known:
    """Cut an alignment to the row that fits the chain best, its columns, and their contacts."""
    with gzip.open(chain, "rt") as handle:
        structure = PDBParser(QUIET=True).get_structure(chain.name, handle)
    assert structure is not None
    residues = [
        r for r in next(structure.get_chains()) if is_aa(r, standard=True) and ("CB" in r or "CA" in r)
    ]
    letters = "".join(seq1(r.get_resname()) for r in residues)
    atoms = np.array([(r["CB"] if "CB" in r else r["CA"]).coord for r in residues])
    aligner = PairwiseAligner(mode="local", match_score=2, mismatch_score=-1, gap_score=-2)
    rows = [PROTEIN.decode(row[row < PROTEIN.unknown]) for row in alignment.codes]
    best = max(range(len(rows)), key=lambda i: aligner.score(rows[i], letters) if rows[i] else 0)
    matched = aligner.align(rows[best], letters)[0]
    columns_of_row = np.flatnonzero(alignment.codes[best] < PROTEIN.unknown)
    columns, places = [], []
    for (a, b), (c, _) in zip(*matched.aligned, strict=True):
        columns += columns_of_row[a:b].tolist()
        places += range(c, c + b - a)
    order = np.array([best, *(i for i in range(alignment.rows) if i != best)])
    names = tuple(alignment.names[i] for i in order)
    cut = Alignment(alignment.id, names, alignment.codes[order][:, columns], PROTEIN)
    distance = np.linalg.norm(atoms[places][:, None] - atoms[places][None], axis=-1)
    apart = np.subtract.outer(np.arange(len(places)), np.arange(len(places))).T  # column j - column i
    return Known(cut, np.argwhere((distance <= CONTACT) & (apart >= APART)), APART)


def attention(network: AxialTransformer, alignment: Alignment) -> np.ndarray:
    """Scores of pairs (C, C) by the maps of row attention; columns that the model doesn't read get none."""
    rows, columns = choose_cells(alignment, network.config.max_rows, network.config.max_length)
    codes = alignment.codes[np.ix_(rows, columns)]
    tokens = torch.from_numpy(AlignmentTokenizer(alignment.alphabet).encode(codes)[None])
    steps = [step for step in network(tokens, return_attention=True).attention if step.axis == "row"]
    maps = torch.cat([step.weights[0].mean(dim=1)[:, 1:, 1:] for step in steps])  # (layers * heads, C, C)
    scores = np.full((alignment.columns,) * 2, -np.inf)
    scores[np.ix_(columns, columns)] = pairs_from_maps(maps.numpy())
    return scores


def measured(known: Known, network: AxialTransformer | None, seed: int) -> dict[str, tuple[float, ...]]:
    """Precision of the L/5 and L best pairs of each way to score."""
    alignment, letters = known.alignment, known.alignment.alphabet.unknown
    codes = alignment.codes[:MAX_ROWS]
    weights = row_weights(codes, letters + 1)
    scores = {
        "mutual information, corrected": average_product_correction(
            mutual_information(codes, letters, weights)
        ),
        "covariation (weighted by rows)": covariation(codes, letters, weights),
        "chance": np.random.default_rng(seed).random((alignment.columns,) * 2),
    }
    if alignment.alphabet.is_nucleotide:
        for name, rows in (("helices", codes), ("helices of the first row", codes[:1])):
            tokens = AlignmentTokenizer(alignment.alphabet).encode(rows)[:, 1:]  # without CLS
            paired = pair_probabilities(torch.from_numpy(tokens - FIRST_LETTER)[None])[0]
            scores[name] = paired.double().numpy()
    if network is not None:
        scores["row attention"] = attention(network, alignment)
    length = len(alignment.sequence)
    return {
        name: tuple(
            pair_precision(matrix, known.pairs, max(1, n), known.apart) for n in (length // 5, length)
        )
        for name, matrix in scores.items()
    }


def table(task: str, found: Sequence[dict[str, tuple[float, ...]]]) -> list[list[str]]:
    """Means over alignments, with intervals."""
    rng = np.random.default_rng(0)
    draws = rng.integers(len(found), size=(1000, len(found)))
    rows = []
    for name in found[0]:
        cells = [task, name, str(len(found))]
        for column in (0, 1):
            values = np.array([one[name][column] for one in found])
            low, high = np.percentile(values[draws].mean(axis=1), (2.5, 97.5))
            cells += [f"{figure:.4f}" for figure in (values.mean(), low, high)]
        rows.append(cells)
    return rows


def protein_network(weights: Path, config: Path) -> AxialTransformer:
    """The network that ``seqray pretrain`` wrote, with the settings that it had."""
    network = build_network(load_run_config(config).model)
    assert isinstance(network, AxialTransformer)
    apply_initial_weights(network, load_initial_weights(weights))
    return network.eval()


def main() -> None:
    parser = script_parser(__doc__, "contacts.tsv")
    add = parser.add_argument
    add_data(parser)
    add("--model", default="rna-family-type", help="model of RNA alignments")
    add("--weights", type=Path, help="of seqray pretrain on the alignments of the domains")
    add("--config", type=Path, default=Path("configs/pfam-pretraining.yaml"), help="settings of the weights")
    add("--only", choices=TASKS, help="measure these; the other rows of the file stay")
    args = parser.parse_args()
    torch.set_num_threads(1)
    rows: list[list[str]] = []
    if args.only != "contacts":
        (reader,) = load_model(args.model).networks[:1]
        assert isinstance(reader, AxialTransformer)
        known = families(args.data / "rfam_seed" / "seed.sto.gz")
        rows += table("base pairs", [measured(one, reader, i) for i, one in enumerate(known)])
    if args.only != "base pairs":
        learned = protein_network(args.weights, args.config) if args.weights else None
        known = domains(args.data / "pfam_domains")
        rows += table("contacts", [measured(one, learned, i) for i, one in enumerate(known)])
    if args.only:
        kept = [line.split("\t") for line in Path(args.out).read_text(encoding="utf-8").splitlines()]
        rows += [cells for cells in kept if cells[0] in TASKS and cells[0] != args.only]
    columns = [f"{name}{part}" for name in ("top_l5", "top_l") for part in ("", "_low", "_high")]
    head = [*describe(sys.argv), f"base pairs: {args.model}; contacts: {args.weights or 'no network'}"]
    if args.only:
        head[-1] = f"{args.only} alone; the other rows are of an earlier run"
    rows.sort(key=itemgetter(0))
    write_table(args.out, ("task", "scores", "alignments", *columns), rows, head)


if __name__ == "__main__":
    main()
