"""Helices of an alignment against plain loops over all runs of stacked pairs, and by hand."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st
from torch import Tensor

from seqray.core.alphabet import RNA
from seqray.core.model_config import ModelConfig
from seqray.modelfile.file import build_network
from seqray.models.alignment import (
    CLOSING,
    COVARIATION,
    GAP,
    GROWTH,
    KERNEL,
    KT,
    MIN_PAIR_DISTANCE,
    MISMATCH,
    PLACES,
    AxialTransformer,
    HelixEmbedding,
    helix_profile,
    pair_probabilities,
)
from seqray.models.tokenizers import CLS, FIRST_LETTER, MASK, UNK, AlignmentTokenizer

PAIRS = {"GC", "CG", "AU", "UA", "GU", "UG"}
# Turner's stacks as they stand in tables: 5'-XY-3' above 3'-X'Y'-5', both readings of each.
WATSON_CRICK = {
    ("AU", "AU"): -0.93,
    ("AU", "UA"): -1.10,
    ("UA", "AU"): -1.33,
    ("CG", "UA"): -2.08,
    ("CG", "AU"): -2.11,
    ("GC", "UA"): -2.24,
    ("GC", "AU"): -2.35,
    ("CG", "GC"): -2.36,
    ("GC", "GC"): -3.26,
    ("GC", "CG"): -3.42,
}
STRENGTH = {"GC": -1.5, "CG": -1.5, "AU": -0.9, "UA": -0.9, "GU": -0.3, "UG": -0.3}


def stack(outer: str, inner: str) -> float:
    if "-" in outer + inner:
        return GAP
    if outer not in PAIRS or inner not in PAIRS:
        return MISMATCH
    for pairs in ((outer, inner), (inner[::-1], outer[::-1])):
        if pairs in WATSON_CRICK:
            return WATSON_CRICK[pairs]
    return (STRENGTH[outer] + STRENGTH[inner]) / 2 - 0.3


def log_weights(rows: list[str]) -> np.ndarray:
    """Sum over every run of stacked pairs that holds (i, j), one term each."""
    n, count = len(rows[0]), len(rows)

    def pairing(i: int, j: int) -> float:
        return sum(r[i] + r[j] in PAIRS for r in rows) / count

    def expected(i: int, j: int) -> float:
        return sum(a[i] + b[j] in PAIRS for a in rows for b in rows) / count**2

    def gain(i: int, j: int) -> float:  # of (i, j) on (i + 1, j - 1)
        energy = sum(stack(r[i] + r[j], r[i + 1] + r[j - 1]) for r in rows) / count
        return (COVARIATION * (pairing(i, j) - expected(i, j)) - energy) / KT

    def possible(i: int, j: int) -> bool:
        return i >= 0 and j < n and j - i >= MIN_PAIR_DISTANCE and pairing(i, j) >= 0.5

    weights = np.full((n, n), -np.inf)
    for i in range(n):
        for j in range(i, n):
            if not possible(i, j):
                continue
            inside, outside = [0.0], [0.0]
            while possible(i + len(inside), j - len(inside)):
                k = len(inside)
                inside.append(inside[-1] + gain(i + k - 1, j - k + 1))
            while possible(i - len(outside), j + len(outside)):
                k = len(outside)
                outside.append(outside[-1] + gain(i - k, j + k))
            runs = [a + b for a in inside for b in outside]
            closing = CLOSING + GROWTH * math.log((j - i) / MIN_PAIR_DISTANCE)
            weights[i, j] = np.logaddexp.reduce(runs) - closing
    return weights


def letters_of(rows: list[str]) -> Tensor:
    codes = [[RNA.gap if c == "-" else int(RNA.encode(c)[0]) for c in row] for row in rows]
    return (
        torch.from_numpy(AlignmentTokenizer(RNA).encode(np.array(codes, dtype=np.uint8)))[None, :, 1:]
        - FIRST_LETTER
    )


def drawn(rows: int, columns: int, seed: int, letters: str = "ACGU") -> list[str]:
    rng = np.random.default_rng(seed)
    one = "".join(rng.choice(list(letters), columns))
    return ["".join(c if rng.random() < 0.8 else rng.choice(list(letters)) for c in one) for _ in range(rows)]


@pytest.mark.parametrize(
    ("rows", "unsettled"),  # helices of equal weight are told apart slowly
    [
        (["GGGGAAAACCCC"], 1e-4),
        (["GGGGAAAACCCC", "GAGGAAAACCUC", "GUGGAAAACCAC"], 1e-4),
        (["GGCUAGAAACUAGUCAAGGCAAAGCC", "GG-UAGAAACUA-UCAAGGCAAAGUC"], 1e-4),
        (drawn(4, 24, 0), 1e-4),
        (drawn(1, 30, 2, "GCU"), 1e-2),
        (drawn(3, 30, 1, "GC"), 2e-2),
    ],
)
def test_probabilities_solve_the_equations_of_all_runs(rows, unsettled):
    weights = np.exp(log_weights(rows))
    weights += weights.T
    free = np.full(len(weights), 0.5)
    for _ in range(20000):
        free += 0.05 * (1 / (1 + weights @ free) - free)
    expected = weights * free[:, None] * free
    found = pair_probabilities(letters_of(rows))[0].numpy()
    assert expected.max() > 0.02
    np.testing.assert_allclose(found, expected, atol=unsettled)
    assert (found.sum(axis=0) <= 1 + 1e-6).all()


def test_a_hairpin_by_hand():
    """GGG AAAA CCC: the outer pair is in runs of one, two and three pairs, each stack worth -3.26."""
    e = math.exp(3.26 / KT)
    runs = 1 + e + e * e
    weight = runs * math.exp(-CLOSING - GROWTH * math.log(9 / MIN_PAIR_DISTANCE))
    assert math.exp(log_weights(["GGGAAAACCC"])[0, 9]) == pytest.approx(weight)
    paired = pair_probabilities(letters_of(["GGGAAAACCC"]))[0]
    assert int(paired[0].argmax()) == 9
    assert int(paired[1].argmax()) == 8
    right, left, right_far, left_far = helix_profile(letters_of(["GGGAAAACCC"]))[0].T
    assert right[:3].min() > right[3:].max()
    assert left[7:].min() > left[:7].max()
    assert float(right[0]) == pytest.approx(float(paired[0].sum()))
    spans = np.log(np.maximum(np.arange(10), 1)) / math.log(100)
    assert float(right_far[0]) == pytest.approx(float((paired[0].numpy() * spans).sum()), rel=1e-5)
    assert float(left_far[0]) == 0


@settings(max_examples=25)
@given(st.integers(1, 6), st.integers(1, 25), st.integers(0, 99), st.integers(0, 3), st.integers(0, 8))
def test_padding_order_and_columns_of_gaps_change_nothing(rows, columns, seed, more_rows, more_columns):
    one = drawn(rows, columns, seed, "GCU-")
    expected = pair_probabilities(letters_of(one))
    wide = torch.full((1, rows + more_rows, columns + more_columns), 5)
    wide[:, :rows, :columns] = letters_of(one)
    masks = [
        torch.arange(size)[None] < real for size, real in zip(wide.shape[1:], (rows, columns), strict=True)
    ]
    padded = pair_probabilities(wide, *masks)
    torch.testing.assert_close(padded[:, :columns, :columns], expected, rtol=0, atol=1e-5)
    assert not padded[:, columns:].any()
    turned = pair_probabilities(letters_of(one[::-1]))
    torch.testing.assert_close(turned, expected, rtol=0, atol=1e-5)
    at = seed % (columns + 1)
    gapped = pair_probabilities(letters_of([row[:at] + "-" + row[at:] for row in one]))
    kept = [*range(at), *range(at + 1, columns + 1)]
    torch.testing.assert_close(gapped[:, kept][:, :, kept], expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("letter", ["N", "*"])
def test_a_letter_that_is_unknown_or_hidden_holds_its_column(letter):
    def probabilities(text: str) -> Tensor:
        given = letters_of([text.replace("*", "N")])
        return pair_probabilities(
            torch.where(given == UNK - FIRST_LETTER, MASK - FIRST_LETTER, given) if letter == "*" else given
        )[0]

    stem = [(i, 12 - i) for i in range(5)]
    whole, in_loop = (probabilities(text) for text in ("GGGGCAAAGCCCC", f"GGGGCA{letter}AGCCCC"))
    assert all(abs(float(whole[pair] - in_loop[pair])) < 1e-6 for pair in stem)
    in_stem = probabilities(f"GG{letter}GCAAAGCCCC")
    assert not in_stem[2].any()
    assert float(in_stem[0, 12]) < float(whole[0, 12])


@torch.no_grad()
def test_what_the_network_is_told_by_its_definition():
    """A convolution over the profile, and straight lines between the vectors of twelve places."""
    torch.manual_seed(0)
    layer = HelixEmbedding(6, "relu")
    layer.table.copy_(torch.randn_like(layer.table))
    one = letters_of(drawn(3, 30, 1, "GC"))
    wide = torch.cat((one, torch.full((1, 3, 7), 4)), dim=2)
    mask = torch.arange(37)[None] < 30
    profile = helix_profile(one)[0]
    kernel = layer.detector.weight  # (D, 4, 15)
    found = layer(helix_profile(wide, None, mask), mask)[0]
    for c in range(30):
        x = layer.detector.bias.clone()
        for k in range(KERNEL):
            at = c + k - KERNEL // 2
            if 0 <= at < 30:
                x += kernel[:, :, k] @ profile[at]
        place = c / 30 * (PLACES - 1)
        low = int(place)
        between = (1 - place + low) * layer.table[low] + (place - low) * layer.table[min(low + 1, PLACES - 1)]
        expected = layer.out(x.relu()) + profile[c] @ between
        torch.testing.assert_close(found[c], expected)


@torch.no_grad()
def test_what_is_added_to_each_cell():
    config = ModelConfig(
        kind="alignment", alphabet="rna", d_model=8, heads=2, layers=1, ends=3, words=3, helices=True
    )
    torch.manual_seed(0)
    network = build_network(config).eval()
    assert isinstance(network, AxialTransformer)
    assert network.ends
    assert network.words
    assert network.helices
    for parameter in (
        p for part in (network.ends, network.words, network.helices) for p in part.parameters()
    ):
        parameter.copy_(torch.randn_like(parameter))
    letters = letters_of(["-GGACAAAAGUCC--", "GGGACAAAAGUCCC-", "--GACAA-AGUCCCA"])
    tokens, cls = letters + FIRST_LETTER, torch.full((1, 3, 1), CLS)
    given = torch.cat((cls, tokens, torch.full((1, 3, 4), 5)), dim=2)
    mask = torch.arange(20)[None] < 16
    whole = network.embed(given, None, mask)[0][0]
    profile = network.helices(helix_profile(letters), None)[0]
    ends, words = network.ends, network.words.tables
    network.ends = network.words = network.helices = None
    added = whole - network.embed(given, None, mask)[0][0]
    assert not added[:, 0].any()  # CLS
    assert profile.abs().max() > 0.1
    gap = AlignmentTokenizer(RNA).gap
    for r in range(3):
        places = [c for c in range(15) if int(tokens[0, r, c]) != gap]
        for c in range(15):
            expected = profile[c].clone()
            if c in places:
                word = letters[0, r, [p for p in places if p >= c]].tolist()
                for table, length in zip(words, (2, 3), strict=True):
                    if len(word) >= length:
                        number = int("".join(map(str, word[:length])), 4)
                        expected += 2**length * table[number]
                for side, distance in enumerate((places.index(c), len(places) - 1 - places.index(c))):
                    if distance < 3:
                        expected += ends.table[side, distance * network.vocabulary + tokens[0, r, c]]
            torch.testing.assert_close(added[r, 1 + c], expected, rtol=1e-4, atol=1e-5)


def test_half_precision_around_it_changes_nothing():
    one = letters_of(drawn(3, 30, 1, "GC"))
    with torch.autocast("cpu", torch.bfloat16):
        found = pair_probabilities(one)
    assert found.dtype == torch.float32
    torch.testing.assert_close(found, pair_probabilities(one))
