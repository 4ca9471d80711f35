"""Which columns of an alignment go together: mutual information, and scores of any kind corrected.

Columns that pair (two strands of a stem, two residues in contact) change together. Raw scores are drowned by
columns that score high with every other one; the average-product correction takes that out.

Sources: Dunn, Wahl and Gloor 2008, "Mutual information without the influence of phylogeny or entropy" (MIp,
the correction); WUSS notation of structures: Infernal user's guide.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from seqray.core.arrays import Codes, Floats, Ints

_CELLS_AT_ONCE = 1 << 23  # pair counts in memory at a time
_BRACKETS = {"(": ")", "<": ">", "[": "]", "{": "}"}


def average_product_correction(scores: npt.ArrayLike) -> Floats:
    """Take out of a symmetric score what the two columns have with all others: S_ij - S_i· S_·j / S_··.

    Parameters
    ----------
    scores
        (..., C, C); the diagonal isn't read.

    Returns
    -------
    array of float64, shape (..., C, C)
        0 on the diagonal. Means are over the other columns; where they are 0, nothing is taken out.
    """
    matrix = np.array(scores, dtype=np.float64)
    columns = matrix.shape[-1]
    diagonal = np.arange(columns)
    matrix[..., diagonal, diagonal] = 0.0
    if columns < 2:
        return matrix
    means = matrix.sum(axis=-1) / (columns - 1)  # (..., C)
    overall = means.mean(axis=-1)[..., None, None]
    product = means[..., :, None] * means[..., None, :]
    matrix -= np.divide(product, overall, out=np.zeros_like(matrix), where=overall != 0)
    matrix[..., diagonal, diagonal] = 0.0
    return matrix


def pairs_from_maps(maps: npt.ArrayLike) -> Floats:
    """Scores of column pairs from maps of row attention: made symmetric, corrected one by one, and averaged.

    Parameters
    ----------
    maps
        (M, C, C), one for each layer and head, without CLS.

    Returns
    -------
    array of float64, shape (C, C)
    """
    array = np.asarray(maps, dtype=np.float64)
    return average_product_correction(array + array.swapaxes(-2, -1)).mean(axis=0)


def mutual_information(codes: Codes, letters: int, weights: npt.ArrayLike | None = None) -> Floats:
    """Mutual information of each pair of columns, in nats.

    Parameters
    ----------
    codes
        (R, C).
    letters
        Number K of canonical letters; a row counts for a pair of columns only where it has one in both.
    weights
        (R,) how much each row counts; 1 by default. See `seqray.core.msa.row_weights`.

    Returns
    -------
    array of float64, shape (C, C)
        Symmetric; 0 on the diagonal, and where no row counts.
    """
    rows, columns = codes.shape
    counted = np.ones(rows) if weights is None else np.asarray(weights, dtype=np.float64)
    present = codes[:, :, None] == np.arange(letters, dtype=np.uint8)  # (R, C, K)
    flat = present.reshape(rows, columns * letters).astype(np.float64)
    result = np.zeros((columns, columns))
    step = max(1, _CELLS_AT_ONCE // (letters * letters * columns))
    for start in range(0, columns, step):
        part = (present[:, start : start + step] * counted[:, None, None]).reshape(rows, -1)
        joint = (part.T @ flat).reshape(-1, letters, columns, letters).swapaxes(1, 2)  # (c, C, K, K)
        result[start : start + step] = _information(joint)
    np.fill_diagonal(result, 0.0)
    return (result + result.T) / 2  # equal but for rounding


def coverage(codes: Codes, letters: int, weights: npt.ArrayLike | None = None) -> Floats:
    """Weighted share of rows with a canonical letter in both columns of a pair: (C, C).

    ``codes`` are (R, C), the weights of the rows (R,), 1 by default; ``letters`` is the number of canonical
    letters.
    """
    counted = np.ones(len(codes)) if weights is None else np.asarray(weights, dtype=np.float64)
    present = (codes < letters).astype(np.float64)
    return (present * counted[:, None]).T @ present / counted.sum()


def covariation(codes: Codes, letters: int, weights: npt.ArrayLike | None = None) -> Floats:
    """Score each pair of columns by mutual information times `coverage`, corrected: (C, C).

    The factor lowers the score of pairs that few rows have letters in, which is high by chance.

    Parameters
    ----------
    codes, letters, weights
        See `coverage`.
    """
    information = mutual_information(codes, letters, weights) * coverage(codes, letters, weights)
    return average_product_correction(information)


def _information(joint: Floats) -> Floats:
    """Σ p(a, b) log(p(a, b) / (p(a) p(b))) of counts (..., K, K)."""
    total = joint.sum(axis=(-2, -1), keepdims=True)
    p = np.divide(joint, total, out=np.zeros_like(joint), where=total > 0)
    apart = p.sum(axis=-1, keepdims=True) * p.sum(axis=-2, keepdims=True)
    ratio = np.divide(p, apart, out=np.ones_like(p), where=p > 0)
    return np.maximum((p * np.log(ratio)).sum(axis=(-2, -1)), 0.0)


def base_pairs(structure: str) -> Ints:
    """Paired columns of a consensus structure in WUSS notation.

    Raises `ValueError` for a bracket without its partner.

    Parameters
    ----------
    structure
        ``()``, ``<>``, ``[]`` and ``{}`` pair, and so do ``A`` and ``a`` to ``Z`` and ``z`` (pseudoknots);
        every other sign is unpaired.

    Returns
    -------
    array of int64, shape (P, 2)
        0-based columns, the left one first, in ascending order.
    """
    pairs: list[tuple[int, int]] = []
    open_: dict[str, list[int]] = {}
    closes = {right: left for left, right in _BRACKETS.items()}
    for column, sign in enumerate(structure):
        if sign in _BRACKETS or (sign.isalpha() and sign.isupper()):
            open_.setdefault(sign, []).append(column)
        elif sign in closes or sign.isalpha():
            left = open_.get(closes.get(sign, sign.upper()), [])
            if not left:
                raise ValueError(f"{sign!r} at column {column + 1} closes nothing")
            pairs.append((left.pop(), column))
    for sign, left in open_.items():
        if left:
            raise ValueError(f"{sign!r} at column {left[-1] + 1} is never closed")
    return np.array(sorted(pairs), dtype=np.int64).reshape(-1, 2)


def best_pairs(scores: Floats, count: int, separation: int = 1) -> Ints:
    """Pairs of columns with the highest scores: (n, 2), best first; equal scores from left to right.

    Parameters
    ----------
    scores
        (C, C), symmetric.
    count
        Largest number of pairs.
    separation
        Smallest distance of a pair, in columns.
    """
    left, right = np.triu_indices(len(scores), k=max(1, separation))
    order = np.argsort(-scores[left, right], kind="stable")[:count]
    return np.stack([left[order], right[order]], axis=1).astype(np.int64)


def pair_precision(scores: Floats, truth: Ints, count: int, separation: int = 1) -> float:
    """Share of the `best_pairs` that are true pairs; nan if there are no pairs.

    Parameters
    ----------
    scores
        (C, C), symmetric.
    truth
        (P, 2) columns of the true pairs.
    count
        Largest number of pairs.
    separation
        Smallest distance of a pair, in columns.
    """
    best = best_pairs(scores, count, separation)
    true = {(min(pair), max(pair)) for pair in np.asarray(truth).tolist()}
    return float(np.mean([tuple(pair) in true for pair in best.tolist()])) if len(best) else float("nan")
