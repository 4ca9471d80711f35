"""Write motifs as text: MEME, JASPAR and a table. All appear whole or not at all."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from seqray.core import Alphabet, ConfigError, Floats, InputError
from seqray.core.results import Motif
from seqray.io.files import write_file
from seqray.io.tables.writing import comment_lines, one_line, write_table

MOTIF_COLUMNS = (
    *("motif", "consensus", "sites", "width", "information", "known", "similarity"),
    *("position_q25", "position_median", "position_q75"),
)


def motif_format(path: str | Path, alphabet: Alphabet) -> str:
    """``meme``, ``jaspar`` or ``tsv`` by the ending of a file's name; call it before the work begins.

    ConfigError is raised for another ending, InputError for JASPAR and letters that are not DNA.
    """
    form = Path(str(path).lower().removesuffix(".gz")).suffix.removeprefix(".")
    if form not in ("meme", "jaspar", "tsv"):
        raise ConfigError(
            f"'{path}' does not end in the suffix of a known motif format",
            remedy="use .meme, .jaspar or .tsv",
        )
    if form == "jaspar" and alphabet.name != "dna":
        raise InputError(
            f"JASPAR's format is for DNA, not {alphabet.name}", where=str(path), remedy="write .meme or .tsv"
        )
    return form


def write_motifs(
    path: str | Path,
    motifs: Sequence[Motif],
    alphabet: Alphabet,
    provenance: Sequence[str] = (),
    *,
    background: npt.ArrayLike | None = None,
) -> None:
    """Write motifs in the format that the name of the file ends in.

    Parameters
    ----------
    path
        ``.meme``: minimal MEME, version 4. ``.jaspar``: counts in JASPAR's text format, DNA only, which
        has no place for provenance. ``.tsv``: one row a motif. Each also with ``.gz``.
    provenance
        Written as ``#`` lines; in MEME after the version, where readers skip lines that they don't know.
    background
        (A,) probability of each letter in the records, for MEME; equal if not given.

    Raises
    ------
    ConfigError, InputError
        As `motif_format`, and where the file can't be written.
    """
    form = motif_format(path, alphabet)
    if form == "tsv":
        write_table(path, MOTIF_COLUMNS, map(_row, motifs), provenance)
        return
    meme = form == "meme"
    text = _meme(motifs, alphabet, background, provenance) if meme else _jaspar(motifs, alphabet)
    write_file(path, text)


def _meme(
    motifs: Sequence[Motif], alphabet: Alphabet, background: npt.ArrayLike | None, provenance: Sequence[str]
) -> str:
    size = len(alphabet.letters)
    shares = np.full(size, 1 / size) if background is None else np.asarray(background, dtype=np.float64)
    frequencies = " ".join(
        f"{letter} {share:.5f}" for letter, share in zip(alphabet.letters, shares, strict=True)
    )
    strands = ["strands: +", ""] if alphabet.is_nucleotide else []  # we read the given strand only
    head = [f"ALPHABET= {alphabet.letters}", "", *strands, "Background letter frequencies", frequencies, ""]
    blocks = [_meme_block(motif, shares) for motif in motifs]
    return f"MEME version 4\n\n{comment_lines(provenance).decode()}" + "\n".join([*head, *blocks, ""])


def _meme_block(motif: Motif, background: Floats) -> str:
    sums = motif.counts.sum(axis=1, keepdims=True)
    # Where every letter is unknown, the background keeps the row a distribution, as readers demand.
    shares = np.where(sums > 0, motif.counts / np.maximum(sums, 1), background)
    rows = [" ".join(f"{share:.6f}" for share in row) for row in shares]
    title = f"MOTIF {motif.name} {motif.consensus}"
    matrix = (
        f"letter-probability matrix: alength= {len(background)} w= {len(rows)} nsites= {motif.sites} E= 0"
    )
    return "\n".join([title, matrix, *rows, ""])


def _jaspar(motifs: Sequence[Motif], alphabet: Alphabet) -> str:
    lines = []
    for motif in motifs:
        lines.append(f">{motif.name}\t{motif.consensus}")
        for letter, counts in zip(alphabet.letters, np.rint(motif.counts).astype(int).T, strict=True):
            lines.append(f"{letter}  [{' '.join(f'{count:6d}' for count in counts)} ]")
    return "".join(f"{line}\n" for line in lines)


def _row(motif: Motif) -> list[object]:
    quartiles = np.quantile(motif.positions, [0.25, 0.5, 0.75]) if motif.sites else np.full(3, np.nan)
    known = one_line(motif.known) or None
    numbers = (float(motif.bits.sum()), known, float(motif.similarity), *quartiles.tolist())
    return [motif.name, motif.consensus, motif.sites, len(motif.counts), *numbers]
