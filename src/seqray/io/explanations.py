"""Tables, motifs and tracks of explanations."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path

import numpy as np
import numpy.typing as npt

from seqray.core.alphabet import Alphabet
from seqray.core.arrays import Floats, Ints
from seqray.core.errors import ConfigError, InputError
from seqray.core.explanation import AlignmentExplanation, Check, Explanation, HeadFigures, InputShares, Motif
from seqray.core.records import conservation, occupancy
from seqray.io.files import write_file
from seqray.io.scores import TrackWriter
from seqray.io.tables import comment_lines, one_line, write_table

# ------------------------------------- of sequences: positions, figures of faithfulness, heads and inputs

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
    return np.argsort(np.argsort(-scores, kind="stable")) + 1


def _ranked(scores: Floats, signed: bool) -> Iterator[tuple[float | None, int | None, str]]:
    """Score, rank and sign of each position; None and ``.`` if there is no score."""
    scored = np.isfinite(scores)
    rank = iter(ranks(scores[scored]).tolist())
    for score, is_scored in zip(scores.tolist(), scored.tolist(), strict=True):
        sign = "+" if score > 0 else "-" if score < 0 else "0"
        yield (score, next(rank), sign if signed else ".") if is_scored else (None, None, ".")


def explanation_rows(explanation: Explanation, top: int | None = None) -> Iterator[tuple[object, ...]]:
    """Cells of the table for one explanation, by position; ``top``: of that many of the best ranks."""
    e = explanation
    none = [None] * len(e.scores)
    places = [p if p >= 0 else None for p in e.place.positions().tolist()] if e.place else none
    contig, strand = (e.place.contig, e.place.strand) if e.place else (None, None)
    deltas = none if e.effects is None else (e.effects.sum(axis=1) / (e.effects.shape[1] - 1)).tolist()
    p_values, q_values = (none if values is None else values.tolist() for values in (e.p, e.q))
    ranked = _ranked(e.scores, e.signed)
    columns = zip(places, e.sequence, ranked, deltas, p_values, q_values, strict=True)
    for i, (place, letter, (score, rank, sign), delta, p, q) in enumerate(columns):
        if top is None or (rank is not None and rank <= top):
            record = (e.id, i, contig, place, strand, letter, e.method, e.member, e.target)
            yield (*record, score, rank, sign, delta, p, q)


def write_fields(
    path: str | Path,
    columns: Sequence[str],
    figures: Iterable[Check | HeadFigures],
    provenance: Sequence[str],
) -> None:
    """Write a row per figure, a column per field."""
    write_table(path, columns, ([getattr(one, name) for name in columns] for one in figures), provenance)


def write_shares(path: str | Path, shares: Iterable[InputShares], provenance: Sequence[str] = ()) -> None:
    """Write one row per call: what its letters and genes add to its score."""

    def cells(s: InputShares) -> tuple[object, ...]:
        site = int(s.place.positions()[(s.place.end - s.place.start) // 2])
        track, effect = max(s.tracks.items(), key=lambda pair: abs(pair[1]), default=(None, None))
        first = (track, effect) if effect else (None, None)
        record = (s.id, s.place.contig, site, s.place.strand, s.target, s.probability, s.score)
        return (*record, s.letters, 1 - s.letters, s.without_genes, s.shuffled, *first)

    write_table(path, SHARE_COLUMNS, map(cells, shares), provenance)


# ------------------------------------------------------- of alignments: a line for each column or each row

COLUMN_COLUMNS = (
    *("record", "column", "query_position", "letter", "method", "class", "score", "rank", "sign"),
    *("occupancy", "conservation"),
)
ROW_COLUMNS = ("record", "row", "name", "method", "class", "score", "rank", "sign", "read")


def column_lines(explanation: AlignmentExplanation, top: int | None = None) -> Iterator[tuple[object, ...]]:
    """Cells of the table of columns, method by method; ``top``: of that many of the best ranks."""
    e, alignment = explanation, explanation.alignment
    positions = [place + 1 if place >= 0 else None for place in alignment.query_positions().tolist()]
    occupied = occupancy(alignment.codes, alignment.alphabet).tolist()
    conserved = conservation(alignment.codes, alignment.alphabet).tolist()
    letters = alignment.text(0)
    for scores in e.scores:
        for c, ranked in enumerate(_ranked(e.by_column(scores), scores.signed)):
            if top is None or (ranked[1] is not None and ranked[1] <= top):
                cells = (e.id, c + 1, positions[c], letters[c], scores.method, e.target)
                yield (*cells, *ranked, occupied[c], conserved[c])


def row_lines(explanation: AlignmentExplanation) -> Iterator[tuple[object, ...]]:
    """Cells of the table of rows, in the order of the rows, method by method."""
    e = explanation
    read = set(e.rows.tolist())
    for scores in e.scores:
        for r, ranked in enumerate(_ranked(e.by_row(scores), scores.signed)):
            name = one_line(e.alignment.names[r]) or None
            yield (e.id, r + 1, name, scores.method, e.target, *ranked, r in read)


# ------------------------------------------------------------------- motifs: MEME, JASPAR and a table

MOTIF_COLUMNS = (
    *("motif", "consensus", "sites", "width", "information", "known", "similarity"),
    *("position_q25", "position_median", "position_q75"),
)


def motif_format(path: str | Path, alphabet: Alphabet) -> str:
    """``meme``, ``jaspar`` or ``tsv`` by the ending of a file's name; call it before the work begins."""
    form = Path(str(path).lower().removesuffix(".gz")).suffix.removeprefix(".")
    if form not in ("meme", "jaspar", "tsv"):
        raise ConfigError(
            f"'{path}' does not end in the suffix of a known motif format",
            remedy="use .meme, .jaspar or .tsv",
        )
    if form == "jaspar" and alphabet.name != "dna":
        what = f"JASPAR's format is for DNA, not {alphabet.name}"
        raise InputError(what, where=str(path), remedy="write .meme or .tsv")
    return form


def write_motifs(
    path: str | Path,
    motifs: Sequence[Motif],
    alphabet: Alphabet,
    provenance: Sequence[str] = (),
    *,
    background: npt.ArrayLike | None = None,
) -> None:
    """Write motifs as the file's name says: minimal MEME version 4, JASPAR's counts, or a row each (TSV)."""
    form = motif_format(path, alphabet)
    if form == "tsv":
        write_table(path, MOTIF_COLUMNS, map(_motif_cells, motifs), provenance)
    elif form == "meme":
        write_file(path, _meme(motifs, alphabet, background, provenance))
    else:
        write_file(path, _jaspar(motifs, alphabet))


def _meme(
    motifs: Sequence[Motif], alphabet: Alphabet, background: npt.ArrayLike | None, provenance: Sequence[str]
) -> str:
    size = len(alphabet.letters)
    shares = np.full(size, 1 / size) if background is None else np.asarray(background, dtype=np.float64)
    frequencies = " ".join(
        f"{letter} {share:.5f}" for letter, share in zip(alphabet.letters, shares, strict=True)
    )
    lines = ["MEME version 4", "", f"{comment_lines(provenance).decode()}ALPHABET= {alphabet.letters}", ""]
    lines += ["strands: +", ""] if alphabet.is_nucleotide else []  # we read the given strand only
    lines += ["Background letter frequencies", frequencies, ""]
    for motif in motifs:
        sums = motif.counts.sum(axis=1, keepdims=True)
        # Where every letter is unknown, the background keeps the row a distribution, as readers demand.
        rows = np.where(sums > 0, motif.counts / np.maximum(sums, 1), shares)
        width = f"alength= {size} w= {len(rows)} nsites= {motif.sites} E= 0"
        lines += [f"MOTIF {motif.name} {motif.consensus}", f"letter-probability matrix: {width}"]
        lines += [*(" ".join(f"{share:.6f}" for share in row) for row in rows), ""]
    return "\n".join([*lines, ""])


def _jaspar(motifs: Sequence[Motif], alphabet: Alphabet) -> str:
    lines = []
    for motif in motifs:
        lines.append(f">{motif.name}\t{motif.consensus}")
        for letter, counts in zip(alphabet.letters, np.rint(motif.counts).astype(int).T, strict=True):
            lines.append(f"{letter}  [{' '.join(f'{count:6d}' for count in counts)} ]")
    return "".join(f"{line}\n" for line in lines)


def _motif_cells(motif: Motif) -> list[object]:
    quartiles = np.quantile(motif.positions, [0.25, 0.5, 0.75]) if motif.sites else np.full(3, np.nan)
    known = one_line(motif.known) or None
    numbers = (float(motif.bits.sum()), known, float(motif.similarity), *quartiles.tolist())
    return [motif.name, motif.consensus, motif.sites, len(motif.counts), *numbers]


# ------------------------------------------------------------------------------- along contigs, as a track


class ScoreTrack:
    """Scores of one method along contigs, or records; where calls overlap, the highest counts."""

    def __init__(self) -> None:
        self._lengths: dict[str, int] = {}
        self._scores: dict[str, dict[str, dict[int, float]]] = {"+": {}, "-": {}}  # by strand and contig

    def add(self, explanation: Explanation) -> None:
        """Add the scores of one explanation."""
        place, size = explanation.place, len(explanation.sequence)
        contig, length = (place.contig, place.length) if place else (explanation.id, size)
        self._lengths.setdefault(contig, length)
        highest = self._scores[place.strand if place else "+"].setdefault(contig, {})
        positions = place.positions().tolist() if place else range(length)
        for position, score in zip(positions, explanation.scores.tolist(), strict=True):
            if position >= 0 and math.isfinite(score):  # within the contig, and read
                highest[position] = max(score, highest.get(position, score))

    def write(
        self,
        path: str | Path,
        provenance: Sequence[str],
        name: str,
        place: Callable[[Path], str | Path] = Path,
    ) -> None:
        """Write one file per strand; the parameters are those of `TrackWriter`."""
        with TrackWriter(path, provenance, name, place) as track:
            for contig, length in self._lengths.items():
                track.begin(contig, length)
                for strand, contigs in self._scores.items():
                    scores = contigs.get(contig, {})
                    # Positions in one run have one distance from their rank.
                    ranked = enumerate(sorted(scores))
                    for _, run in groupby(ranked, key=lambda pair: pair[1] - pair[0]):
                        positions = [position for _, position in run]
                        track.add(contig, strand, positions[0], [scores[at] for at in positions])
