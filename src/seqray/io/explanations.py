"""Tables, motifs and tracks of explanations."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from seqray.core.alignment import conservation, occupancy
from seqray.core.alphabet import Alphabet
from seqray.core.arrays import Floats, Ints
from seqray.core.errors import ConfigError, InputError
from seqray.core.explanation import (
    AlignmentExplanation,
    Check,
    Explanation,
    HeadFigures,
    InputShares,
    Motif,
)
from seqray.io.files import write_file
from seqray.io.scores import TrackWriter
from seqray.io.tables import comment_lines, one_line, write_table

# --- Tables of explained sequences: scores of positions, figures of faithfulness, of heads and of inputs

EXPLANATION_COLUMNS = (
    *("record", "position", "contig", "genomic_position", "strand", "base", "method", "member", "class"),
    *("score", "rank", "sign", "ism_delta", "p", "q"),
)
SHARE_COLUMNS = (
    *("record", "contig", "site", "strand", "class", "score", "log_odds", "letters", "genes"),
    *("without_genes", "letters_shuffled", "first_track", "first_effect"),
)
CHECK_COLUMNS = ("method", "measure", "against", "value", "low", "high", "records")
HEAD_COLUMNS = ("member", "layer", "head", "entropy", "distance", "cls_mass", "importance")


def ranks(scores: Floats) -> Ints:
    """Rank of each position (n,), 1 for the highest score; ties in the order of the sequence."""
    order = np.argsort(-scores, kind="stable")
    result = np.empty(len(scores), dtype=np.int64)
    result[order] = np.arange(1, len(scores) + 1)
    return result


def ranked_scores(scores: Floats, signed: bool) -> Iterator[tuple[float | None, int | None, str]]:
    """Score, rank and sign of each position; None and ``.`` if there is no score."""
    known = np.isfinite(scores)
    rank = iter(ranks(scores[known]).tolist())
    for score, scored in zip(scores.tolist(), known.tolist(), strict=True):
        sign = "+" if score > 0 else "-" if score < 0 else "0"
        yield (score, next(rank), sign if signed else ".") if scored else (None, None, ".")


def explanation_rows(explanation: Explanation, top: int | None = None) -> Iterator[tuple[object, ...]]:
    """Cells of the table for one explanation, in the order of the positions.

    ``top`` limits them to that many of the best ranks.
    """
    e = explanation
    none = [None] * len(e.scores)
    places = [p if p >= 0 else None for p in e.place.positions().tolist()] if e.place else none
    contig, strand = (e.place.contig, e.place.strand) if e.place else (None, None)
    deltas = none if e.effects is None else (e.effects.sum(axis=1) / (e.effects.shape[1] - 1)).tolist()
    p_values, q_values = (none if values is None else values.tolist() for values in (e.p, e.q))
    ranked = ranked_scores(e.scores, e.signed)
    columns = zip(places, e.sequence, ranked, deltas, p_values, q_values, strict=True)
    for i, (place, letter, (score, rank, sign), delta, p, q) in enumerate(columns):
        if top is None or (rank is not None and rank <= top):
            record = (e.id, i, contig, place, strand, letter, e.method, e.member, e.target)
            yield (*record, score, rank, sign, delta, p, q)


def write_checks(path: str | Path, checks: Iterable[Check], provenance: Sequence[str] = ()) -> None:
    """Write one row per faithfulness figure.

    Parameters
    ----------
    path
        File to write.
    checks
        Rows of the table.
    provenance
        Comment lines of the file.
    """
    write_table(path, CHECK_COLUMNS, _cells(checks, CHECK_COLUMNS), provenance)


def write_shares(path: str | Path, shares: Iterable[InputShares], provenance: Sequence[str] = ()) -> None:
    """Write one row per call: what its letters and genes add to its score.

    Parameters
    ----------
    path, provenance
        See `write_checks`.
    shares
        Rows of the table.
    """
    write_table(path, SHARE_COLUMNS, map(_share_cells, shares), provenance)


def _share_cells(s: InputShares) -> tuple[object, ...]:
    site = int(s.place.positions()[(s.place.end - s.place.start) // 2])
    track, effect = max(s.tracks.items(), key=lambda pair: abs(pair[1]), default=(None, None))
    first = (track, effect) if effect else (None, None)
    record = (s.id, s.place.contig, site, s.place.strand, s.target, s.probability, s.score)
    return (*record, s.letters, 1 - s.letters, s.without_genes, s.shuffled, *first)


def write_heads(path: str | Path, heads: Iterable[HeadFigures], provenance: Sequence[str] = ()) -> None:
    """Write one row per attention head.

    Parameters
    ----------
    path, provenance
        See `write_checks`.
    heads
        Rows of the table.
    """
    write_table(path, HEAD_COLUMNS, _cells(heads, HEAD_COLUMNS), provenance)


def _cells(results: Iterable[object], columns: Sequence[str]) -> Iterator[list[object]]:
    """The attributes of results that are named like the columns."""
    return ([getattr(result, name) for name in columns] for result in results)


# --- Explanations of alignments as tables: a line for each column or each row

COLUMN_COLUMNS = (
    *("record", "column", "query_position", "letter", "method", "class", "score", "rank", "sign"),
    *("occupancy", "conservation"),
)
ROW_COLUMNS = ("record", "row", "name", "method", "class", "score", "rank", "sign", "read")


def column_lines(explanation: AlignmentExplanation, top: int | None = None) -> Iterator[tuple[object, ...]]:
    """Cells of the table of columns, in the order of the columns, method by method.

    ``top`` limits them to that many of the best ranks; columns that the model did not read have no rank.
    """
    e, alignment = explanation, explanation.alignment
    positions = _query_positions(e)
    occupied = occupancy(alignment.codes, alignment.alphabet).tolist()
    conserved = conservation(alignment.codes, alignment.alphabet).tolist()
    letters = alignment.text(0)
    for found in e.scores:
        for c, ranked in enumerate(ranked_scores(e.by_column(found), found.signed)):
            if top is None or (ranked[1] is not None and ranked[1] <= top):
                cells = (e.id, c + 1, positions[c], letters[c], found.method, e.target)
                yield (*cells, *ranked, occupied[c], conserved[c])


def row_lines(explanation: AlignmentExplanation) -> Iterator[tuple[object, ...]]:
    """Cells of the table of rows, in the order of the rows, method by method."""
    e = explanation
    read = set(e.rows.tolist())
    for found in e.scores:
        for r, ranked in enumerate(ranked_scores(e.by_row(found), found.signed)):
            name = one_line(e.alignment.names[r]) or None
            yield (e.id, r + 1, name, found.method, e.target, *ranked, r in read)


def _query_positions(explanation: AlignmentExplanation) -> list[int | None]:
    """Position in the query of each column, from 1."""
    return [place + 1 if place >= 0 else None for place in explanation.alignment.query_positions().tolist()]


# --- Write motifs as text: MEME, JASPAR and a table

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


# --- Scores of explanations along contigs, as a track

Values = dict[str, tuple[int, dict[int, float]]]
"""By contig: its length, and the score of each position."""


class ScoreTrack:
    """Scores of one method along contigs, collected from explanations and written at the end.

    A record without a location is a contig of its own. If calls overlap, a position keeps the highest score.
    """

    def __init__(self) -> None:
        self._strands: dict[str, Values] = {"+": {}, "-": {}}

    def add(self, explanation: Explanation) -> None:
        """Add the scores of one explanation."""
        place, size = explanation.place, len(explanation.sequence)
        contig, length = (place.contig, place.length) if place else (explanation.id, size)
        positions = place.positions().tolist() if place else range(length)
        for values in self._strands.values():
            values.setdefault(contig, (length, {}))
        _, known = self._strands[place.strand if place else "+"][contig]
        for position, score in zip(positions, explanation.scores.tolist(), strict=True):
            if position >= 0 and math.isfinite(score):  # within the contig, and read
                known[position] = max(score, known.get(position, score))

    def write(
        self,
        path: str | Path,
        provenance: Sequence[str],
        name: str,
        place: Callable[[Path], str | Path] = Path,
    ) -> None:
        """Write one file per strand.

        Parameters
        ----------
        path, provenance, name, place
            See `TrackWriter`.
        """
        with TrackWriter(path, provenance, name, place) as track:
            for contig, (length, _) in self._strands["+"].items():
                track.begin(contig, length)
                for strand, contigs in self._strands.items():
                    for start, values in _runs(contigs[contig][1]):
                        track.add(contig, strand, start, values)


def _runs(scores: Mapping[int, float]) -> Iterator[tuple[int, list[float]]]:
    """Runs of adjacent positions: start and values."""
    run: list[float] = []
    first = 0
    for position in sorted(scores):
        if run and position != first + len(run):
            yield first, run
            run = []
        if not run:
            first = position
        run.append(scores[position])
    if run:
        yield first, run
