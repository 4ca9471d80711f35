"""Scores of pairs of columns of an alignment, by mutual information or attention, and their truth."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from seqray.core.arrays import Codes, Floats, Ints

_Words = npt.NDArray[np.uint64]
_Counts = npt.NDArray[np.uint32]

IDENTITY = 0.8
_ROUNDING = 1e-6  # 0.8 times a whole number may come out a little too high
_CELLS_AT_ONCE = 1 << 23  # pair counts in memory at a time
_BRACKETS = {"(": ")", "<": ">", "[": "]", "{": "}"}


def row_weights(codes: Codes, letters: int) -> npt.NDArray[np.float64]:
    """One over the number of rows that are nearly the same, the row itself counted.

    `codes`: (R, C); `letters`: number of codes that are letters, the ambiguity letter included:
    ``alphabet.unknown + 1``. All above are gaps or missing data. Gives shape (R,): Their sum is the effective
    number of rows.

    Notes
    -----
    Rows are nearly the same where at least the share `IDENTITY` of the columns in which either of them has a
    letter have the same letter in both. Columns of gaps thus don't increase the identity.

    Codes are compared 64 columns at a time, as bits; two rows cost C/8 operations or so. 10,000 rows of 300
    columns take seconds and some megabytes. A fragment is the same as another row only where the two cover
    nearly the same columns.
    """
    rows = len(codes)
    real = _words(codes < letters)  # (W, R)
    planes = [_words(codes >> bit & 1) for bit in range(int(codes.max()).bit_length())]
    alike = np.ones(rows, dtype=np.int64)  # each row is like itself
    for row in range(rows - 1):
        same, either = _shared(real, planes, row)
        near = same >= IDENTITY * either - _ROUNDING
        alike[row] += np.count_nonzero(near)
        alike[row + 1 :] += near
    return 1 / alike


def _shared(real: _Words, planes: list[_Words], row: int) -> tuple[_Counts, _Counts]:
    """Columns in which a row and each one below it have the same letter, and in which either has one."""
    same = np.zeros(real.shape[1] - row - 1, dtype=np.uint32)
    either = np.zeros_like(same)
    differs, scratch = np.empty((2, len(same)), dtype=np.uint64)
    for word, mine in enumerate(real):
        others = mine[row + 1 :]
        np.bitwise_xor(others, mine[row], out=differs)  # a letter against none
        for plane in planes:
            np.bitwise_xor(plane[word, row + 1 :], plane[word, row], out=scratch)
            np.bitwise_or(differs, scratch, out=differs)
        np.bitwise_or(others, mine[row], out=scratch)
        either += np.bitwise_count(scratch)
        np.bitwise_and(scratch, ~differs, out=scratch)
        same += np.bitwise_count(scratch)
    return same, either


def _words(bits: npt.NDArray[np.generic]) -> npt.NDArray[np.uint64]:
    """(R, C) bits, 64 columns in a word: (W, R)."""
    rows, columns = bits.shape
    packed = np.zeros((rows, -(-columns // 64) * 8), dtype=np.uint8)
    packed[:, : -(-columns // 8)] = np.packbits(bits.astype(bool), axis=1)
    return np.ascontiguousarray(packed.view(np.uint64).T)


def average_product_correction(scores: npt.ArrayLike) -> Floats:
    """Take out of a symmetric score what the two columns have with all others: S_ij - S_i· S_·j / S_··."""
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

    `maps`: (M, C, C), one for each layer and head, without CLS.

    array of float64, shape (C, C)
    """
    array = np.asarray(maps, dtype=np.float64)
    return average_product_correction(array + array.swapaxes(-2, -1)).mean(axis=0)


def mutual_information(codes: Codes, letters: int, weights: npt.ArrayLike | None = None) -> Floats:
    """Mutual information of each pair of columns, in nats.

    `codes`: (R, C); `letters`: number K of canonical letters; a row counts for a pair of columns only where
    it has one in both; `weights`: (R,) how much each row counts; 1 by default. See
    `row_weights`. Gives shape (C, C): Symmetric; 0 on the diagonal, and where no row counts.
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
    """Paired columns of a consensus structure in WUSS notation, pseudoknots (``A`` with ``a``) among them.

    Raises `ValueError` for a bracket without its partner.

    Gives shape (P, 2): 0-based columns, the left one first, in ascending order.
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

    `scores`: (C, C), symmetric.
    """
    left, right = np.triu_indices(len(scores), k=max(1, separation))
    order = np.argsort(-scores[left, right], kind="stable")[:count]
    return np.stack([left[order], right[order]], axis=1).astype(np.int64)


def pair_precision(scores: Floats, truth: Ints, count: int, separation: int = 1) -> float:
    """Share of the `best_pairs` that are true pairs; nan if there are no pairs.

    `scores`: (C, C), symmetric; `truth`: (P, 2) columns of the true pairs.
    """
    best = best_pairs(scores, count, separation)
    true = {(min(pair), max(pair)) for pair in np.asarray(truth).tolist()}
    return float(np.mean([tuple(pair) in true for pair in best.tolist()])) if len(best) else float("nan")
