"""Whether rankings are faithful, and p-values of scores."""

import itertools

import numpy as np
import pytest
import torch
from scipy.stats import false_discovery_control, kstest, spearmanr

import seqray
from seqray.core.alphabet import DNA, PROTEIN
from seqray.core.errors import ConfigError, InputError
from seqray.explanations import checks as faithfulness
from seqray.explanations.checks import (
    SHARES,
    Evidence,
    conclude,
    curves,
    p_values,
    q_values,
    random_ranks,
    rank_correlation,
    ranks_of,
    shuffled_copies,
    stability,
)
from seqray.explanations.methods import occlusion


def test_ranks_begin_with_the_highest_and_ties_keep_their_order():
    np.testing.assert_array_equal(ranks_of(np.array([[0.1, 0.9, 0.1, 0.5]])), [[2, 0, 3, 1]])


def test_rank_correlation_is_that_of_scipy():
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 5, (6, 20)).astype(float), rng.normal(size=(6, 20))
    expected = [spearmanr(x, y).statistic for x, y in zip(a, b, strict=True)]
    np.testing.assert_allclose(rank_correlation(a, b), expected)
    assert np.isnan(rank_correlation(np.zeros((1, 5)), rng.normal(size=(1, 5))))


def test_curves_replace_the_right_letters(monkeypatch):
    """The reference is made all T (3), the record all A (0): the score counts A among places ranked first."""
    monkeypatch.setattr(
        faithfulness, "shuffled_copies", lambda row, n, *_, **__: np.full((n, len(row)), 3, np.uint8)
    )
    monkeypatch.setattr(faithfulness, "AT_ONCE", 500)  # several pieces
    codes = np.zeros((3, 40), dtype=np.uint8)
    ranks = np.stack([np.arange(40), np.arange(40)[::-1], np.roll(np.arange(40), 7)])
    found = curves(codes, ranks, lambda c: (c == 0).sum(1).astype(float))
    np.testing.assert_allclose(found["deletion"], np.tile(40 - np.round(40 * SHARES), (3, 1)))
    np.testing.assert_allclose(found["insertion"], np.tile(np.round(40 * SHARES), (3, 1)))
    only_first = curves(codes, ranks, lambda c: (c[:, 0] == 0).astype(float))["deletion"]
    np.testing.assert_allclose(only_first[0], SHARES < 1 / 40)  # place 0 is ranked first, last, and 33rd
    np.testing.assert_allclose(only_first[1], SHARES < 1)
    np.testing.assert_allclose(only_first[2], SHARES * 40 < 33)


def test_random_ranks_belong_to_the_record():
    codes = np.random.default_rng(0).integers(0, 4, (4, 30)).astype(np.uint8)
    one = random_ranks(codes, 0)
    np.testing.assert_array_equal(one[2], random_ranks(codes[2:3], 0)[0])
    assert not np.array_equal(one, random_ranks(codes, 1))
    assert all(sorted(row) == list(range(30)) for row in one)


def test_stability_is_the_mean_over_pairs_of_members():
    scores = np.stack([np.arange(9.0), np.arange(9.0), -np.arange(9.0)])[:, None]
    np.testing.assert_allclose(stability(scores), [(1 - 1 - 1) / 3])


def evidence_of(by_member, weights, count=60, seed=2):
    """Evidence about rankings of an additive score: what a letter adds is known."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 4, (count, len(weights))).astype(np.uint8)

    def score(c):
        return (weights[:, None] * np.array([1.0, 0.5, -0.5, -1.0]))[np.arange(len(weights)), c].sum(1)

    own = (weights[:, None] * np.array([1.0, 0.5, -0.5, -1.0]))[np.arange(len(weights)), codes]
    found = Evidence(count)
    scores = {name: make(own, rng) for name, make in by_member.items()}
    chance = {name: rng.normal(size=own.shape) for name in by_member}
    found.add(codes, scores, chance, lambda ranks: curves(codes, ranks, score))
    return found


BY_MEMBER = {
    "good": lambda own, _: np.stack([own, own]),
    "bad": lambda own, _: -np.stack([own, own]),
    "noise": lambda own, rng: rng.normal(size=(2, *own.shape)),
    "ism": lambda own, _: np.stack([own, own]),
}


@pytest.fixture(scope="module")
def verdicts():
    return conclude(evidence_of(BY_MEMBER, np.linspace(0, 2, 40) ** 2), "ism", "promoter")


def test_a_true_ranking_beats_random_a_false_one_is_worse_and_noise_is_neither(verdicts):
    checks = {(c.method, c.measure, c.against): c for c in verdicts.checks}
    for kind in ("deletion_gain", "insertion_gain"):
        assert checks["good", kind, "random"].low > 0
        assert checks["bad", kind, "random"].high < 0
        assert checks["noise", kind, "random"].low < 0 < checks["noise", kind, "random"].high
    assert checks["good", "share_of_reference", "ism"].value == pytest.approx(1)
    assert checks["good", "rank_correlation", "ism"].value == pytest.approx(1)
    assert checks["bad", "rank_correlation", "ism"].value == pytest.approx(-1)
    assert checks["good", "stability", "members"].value == pytest.approx(1)
    assert abs(checks["good", "randomised_weights", "random weights"].value) < 0.1
    assert "beats random rankings on 60 records" in verdicts.verdicts["good"]
    assert "Networks agree: their rankings have a correlation of 1.00." in verdicts.verdicts["good"]
    assert "Networks disagree: their rankings have" in verdicts.verdicts["noise"]
    assert "worse than random" in verdicts.verdicts["bad"]
    assert "does not beat random" in verdicts.verdicts["noise"]


def test_curves_of_all_methods_and_of_random_order_come_with_intervals(verdicts):
    assert {(c.method, c.kind) for c in verdicts.curves} == {
        (m, k) for m in (*BY_MEMBER, "random") for k in ("deletion", "insertion")
    }
    for curve in verdicts.curves:
        assert (curve.low <= curve.mean + 1e-12).all()
        assert (curve.mean <= curve.high + 1e-12).all()


def test_few_records_and_a_ranking_that_needs_no_training_are_told():
    found = evidence_of(BY_MEMBER, np.linspace(0, 2, 30), count=7)
    found.agreement["good", "randomised_weights", "random weights"][:] = 0.9
    text = conclude(found, "ism", "promoter").verdicts["good"]
    assert "7 records are few" in text
    assert "random weights the ranking stays much the same" in text


@pytest.mark.parametrize(
    ("correlation", "words"),
    [(0.7, "agree:"), (0.55, "agree in part:"), (0.42, "agree little:"), (0.2, "disagree:")],
)
def test_networks_that_agree_little_are_not_said_to_agree(correlation, words):
    found = evidence_of(BY_MEMBER, np.linspace(0, 2, 30), count=7)
    found.agreement["good", "stability", "members"][:] = correlation
    assert f"Networks {words}" in conclude(found, "ism", "promoter").verdicts["good"]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(("count", "judged"), [(1, False), (5, False), (6, True)])
def test_too_few_records_for_a_sign_test_get_no_verdict(count, judged):
    """All of five on one side happens by chance once in sixteen times, both sides counted; of six in 32."""
    assert (2 * 0.5**count <= 0.05) == judged
    found = conclude(evidence_of(BY_MEMBER, np.linspace(0, 2, 30), count=count), "ism", "promoter")
    text = found.verdicts["good"]
    assert ("beats random" in text) == judged
    assert ("is not judged" in text) != judged
    assert ("95 % interval" in text) == judged
    for check in found.checks:
        assert np.isfinite(check.value) or check.records == 0
        if not judged:
            assert np.isnan((check.low, check.high)).all()
    assert all(np.isnan(c.low).all() == (not judged) for c in found.curves)


@pytest.mark.filterwarnings("error")
def test_records_without_a_figure_are_left_out_in_silence():
    found = evidence_of(BY_MEMBER, np.zeros(30), count=4)  # a score that nothing changes: no gain at all
    found.agreement["good", "stability", "members"][:3] = np.nan
    checks = {(c.method, c.measure, c.against): c for c in conclude(found, "ism", "promoter").checks}
    assert np.isnan(checks["good", "share_of_reference", "ism"].value)
    assert checks["good", "stability", "members"].records <= 1


@pytest.mark.parametrize("rank", [0, 3, 19])
def test_p_of_one_record_counts_the_random_orders_that_find_what_matters_as_early(rank):
    """One of 20 tokens decides the score, and the ranking has it at this rank: the curve is a step."""
    tokens = np.arange(20)[None]
    found = seqray.faithfulness(lambda rows: (rows == rank).sum(1), -1.0 * tokens, tokens, replacement=77)

    def step(place):
        return int(np.argmax(np.round(20 * SHARES) > place))

    orders = [random_ranks(tokens, draw)[0, rank] for draw in range(19)]
    as_early = sum(step(order) <= step(rank) for order in orders)
    [p] = [check for check in found.checks if check.measure == "p_random_rankings"]
    assert (p.value, p.records) == ((1 + as_early) / 20, 1)
    assert f"{as_early} of 19 random orders" in found.verdicts["ranking"]


# --- Faithfulness of any score: sums of what each token is worth, whose curves are arithmetic


def added_worth(seed=0, count=8, length=20):
    """Tokens 1 to length of each record in random order, and what each is worth."""
    rng = np.random.default_rng(seed)
    tokens = np.stack([rng.permutation(length) + 1 for _ in range(count)])
    return tokens, rng.exponential(size=length + 1) * (np.arange(length + 1) > 0)


def mean_curves(found, method):
    return {curve.kind: curve.mean for curve in found.curves if curve.method == method}


def test_curves_of_a_sum_are_its_partial_sums():
    tokens, worth = added_worth()
    found = seqray.faithfulness(lambda rows: worth[rows].sum(1), worth[tokens], tokens, replacement=0)
    best = np.concatenate([[0], np.cumsum(np.sort(worth[1:])[::-1])])[np.round(SHARES * 20).astype(int)]
    curve = mean_curves(found, "ranking")
    np.testing.assert_allclose(curve["insertion"], best, atol=1e-9)
    np.testing.assert_allclose(curve["deletion"], worth.sum() - best, atol=1e-9)
    by_chance = mean_curves(found, "random")
    gain = np.trapezoid(by_chance["deletion"] - curve["deletion"], SHARES)
    figures = {(check.measure, check.against): check.value for check in found.checks}
    assert figures["deletion_gain", "random"] == pytest.approx(gain)
    assert figures["deletion_gain", "random"] == pytest.approx(figures["insertion_gain", "random"], abs=1e-9)
    assert found.verdicts["ranking"].startswith("ranking beats random rankings on 8 records")
    assert "lowers the score by" in found.verdicts["ranking"]
    assert repr(found) == "Faithfulness(ranking beats random rankings on 8 records)"


def test_a_ranking_with_equal_numbers_in_each_record_judges_nothing():
    tokens, worth = added_worth()
    rankings = {"even": np.repeat(worth[tokens][:, :1], 20, axis=1), "true": worth[tokens]}
    found = seqray.faithfulness(lambda rows: worth[rows].sum(1), rankings, tokens, replacement=0)
    assert found.verdicts["even"].startswith("even can't be judged on 8 records: all its numbers of each")
    assert found.verdicts["true"].startswith("true beats random rankings")


@pytest.mark.parametrize(
    ("score", "judged"),
    [
        (lambda rows: np.full(len(rows), 7.5), False),
        (lambda rows: (rows == 0).sum(1), False),  # how many are replaced, whichever
        (lambda rows: 1e3 + 0.01 * (rows == 3).sum(1), True),  # one token counts, and little
    ],
)
def test_a_score_that_each_order_changes_equally_judges_nothing(score, judged):
    tokens, worth = added_worth()
    found = seqray.faithfulness(score, {"one": worth[tokens], "other": -worth[tokens]}, tokens, replacement=0)
    assert all(("can't be judged on 8 records" in text) != judged for text in found.verdicts.values())
    assert not any(check.measure == "stability" for check in found.checks)  # of networks, and there are none


def test_the_reverse_ranking_is_worse():
    tokens, worth = added_worth()
    rankings = {"good": worth[tokens], "bad": -worth[tokens]}
    verdicts = seqray.faithfulness(lambda rows: worth[rows].sum(1), rankings, tokens, replacement=0).verdicts
    assert verdicts["bad"].startswith("bad is worse than random rankings")
    with pytest.raises(ConfigError, match="'random' is the name"):
        seqray.faithfulness(len, {"random": worth[tokens]}, tokens)


def test_texts_arrays_and_tensors_are_judged_alike_and_handed_over_as_they_are():
    rng = np.random.default_rng(1)
    arrays = rng.integers(0, 4, (7, 24))
    texts = ["".join("ACGT"[code] for code in row) for row in arrays]
    ranking = (arrays == 0) + 0.01 * rng.random(arrays.shape)
    tensor = torch.from_numpy(arrays)
    answers = [
        seqray.faithfulness(
            lambda rows: torch.tensor([1.0 * r.count("A") for r in rows], requires_grad=True), ranking, texts
        ),
        seqray.faithfulness(lambda rows: (rows == 0).sum(1), list(ranking), list(arrays)),
        seqray.faithfulness(lambda rows: torch.eq(rows, 0).sum(1), torch.from_numpy(ranking), tensor),
    ]
    for answer in answers[1:]:
        assert answer.verdicts == answers[0].verdicts
        found, expected = ([check.value for check in one.checks] for one in (answer, answers[0]))
        assert found == pytest.approx(expected, nan_ok=True)


def test_it_is_the_check_of_the_explanations():
    codes = np.random.default_rng(2).integers(0, 4, (9, 30))
    scores = np.random.default_rng(3).normal(size=codes.shape)
    score = lambda rows: (rows == 1).sum(1) - 0.5 * (rows[:, ::2] == 2).sum(1)  # noqa: E731
    evidence = Evidence(len(codes))
    evidence.add(codes, {"ranking": scores[None]}, {}, lambda ranks: curves(codes, ranks, score))
    expected = conclude(evidence, "ranking", None, deed="replacing the tokens")
    found = seqray.faithfulness(score, scores, codes)
    assert found.verdicts == expected.verdicts
    for one, other in zip(found.curves, expected.curves, strict=True):
        np.testing.assert_allclose(one.mean, other.mean, atol=1e-9)


def test_tokens_that_all_differ_are_shuffled_too():
    """With the same pairs of neighbors, a copy would be the record itself, and no ranking would win."""
    tokens, worth = added_worth(length=40)

    def score(rows):  # what the tokens are worth that stand where they stood
        return np.array([((tokens == row) * worth[row]).sum(1).max() for row in rows])

    found = seqray.faithfulness(score, worth[tokens], tokens)
    assert found.verdicts["ranking"].startswith("ranking beats random rankings on 8 records")
    ends = mean_curves(found, "ranking")["deletion"]
    assert ends[0] == pytest.approx(worth.sum())
    assert ends[-1] < 0.3 * worth.sum()


def test_tokens_without_a_rank_are_never_replaced():
    tokens, worth = added_worth()
    tokens[:, 0], tokens[3:, -4:] = 77, 99
    ranking = worth[np.where(tokens > 20, 0, tokens)]
    ranking[tokens > 20] = np.nan
    seen = []

    def score(rows):
        seen.append(((rows == 77).sum(1), (rows == 99).sum(1)))
        return (rows == 5).sum(1)

    seqray.faithfulness(score, ranking, tokens, replacement=0)
    assert all((special == 1).all() for special, _ in seen)
    assert {count for _, padding in seen for count in padding} == {0, 4}


def test_a_replacement_may_be_longer_than_any_token():
    seen = set()

    def score(rows):
        seen.update(rows.ravel().tolist())
        return (rows == "TATA").sum(1)

    words = np.array([["ACGT", "TATA", "GGCC"]] * 6)
    seqray.faithfulness(score, (words == "TATA").astype(float), words, replacement="[MASK]")
    assert seen == {"ACGT", "TATA", "GGCC", "[MASK]"}
    with pytest.raises(ConfigError, match="'replacement' is 'NN'; give one token"):
        seqray.faithfulness(len, [[1.0, 2.0]] * 6, ["AC"] * 6, replacement="NN")


def test_a_worse_ranking_gains_less_and_copies_are_counted():
    ranking = -np.eye(4)[[0, 1, 2, 3, 0, 0, 0]]  # the last token is ranked as the least important
    score = lambda rows: (rows == 1).sum(1).astype(float)  # noqa: E731
    words = np.eye(4, dtype=int)[[0, 1, 2, 3, 0, 0, 0]]
    verdict = seqray.faithfulness(score, ranking, words, replacement=0).verdicts["ranking"]
    assert " by -" not in verdict
    assert verdict.count(" less") == 2
    assert "3 of them are copies of others" in verdict


@pytest.mark.parametrize(
    ("score", "ranking", "words"),
    [
        (lambda rows: rows.sum(1), [[1.0, 2.0], [1.0]], "record 2: the ranking doesn't fit"),
        (lambda rows: rows.sum(1), [[1.0, 2.0], [np.nan, np.nan]], "record 2: the ranking doesn't fit"),
        (lambda rows: rows.sum(1), {}, "no ranking was given"),
        (lambda rows: rows.sum(1), np.ones((1, 2)), "'ranking' ranks 1 record, and there are 2"),
        (lambda rows: rows.sum(1), np.ones((3, 2)), "'ranking' ranks 3 records, and there are 2"),
        (lambda rows: rows, np.ones((2, 2)), r"record 1: .* the shape \(11, 2\)"),
        (lambda rows: rows.sum(1)[1:], np.ones((2, 2)), r"record 1: .* the shape \(10,\)"),
        (lambda rows: None, np.ones((2, 2)), r"record 1: .* the shape \(\)"),
        (lambda rows: rows.sum(1) * np.nan, np.ones((2, 2)), "record 1: .* nan; let it give a finite number"),
    ],
)
def test_a_ranking_or_score_that_does_not_fit_is_refused(score, ranking, words):
    with pytest.raises(InputError, match=words):
        seqray.faithfulness(score, ranking, np.zeros((2, 2)))


def test_copies_keep_the_dinucleotides_and_belong_to_the_record():
    codes = DNA.encode("ACGGTTACAGGATATATCCGCGAT")
    copies = shuffled_copies(codes, 6)
    words = sorted(itertools.pairwise(codes))
    assert all(sorted(itertools.pairwise(c)) == words for c in copies)
    np.testing.assert_array_equal(copies, shuffled_copies(codes.copy(), 6))
    assert not np.array_equal(copies, shuffled_copies(codes, 6, 1))


@pytest.mark.parametrize("text", ["GIGKFLHS", "KWKLFKKIEKVGQNIR", "DDEE"])
def test_copies_of_peptides_differ_and_keep_the_counts_of_residues(text):
    codes = PROTEIN.encode(text)
    copies = shuffled_copies(codes, 20, paired=False)
    assert all(sorted(copy) == sorted(codes) for copy in copies)
    assert (copies != codes).any(axis=1).sum() > 10


def test_a_short_peptide_has_effects_of_occlusion_and_p_of_its_own():
    codes = PROTEIN.encode("GIGKFLHS")[None]

    def score(rows):
        return 1.0 * (rows[:, 3] == codes[0, 3])

    assert occlusion(codes, PROTEIN, score, block=2)[0, 3] > 0
    worth = np.zeros((1, 8))
    worth[0, 3] = 1
    by_place = lambda rows: np.eye(8)[3] * (rows[:, 3:4] == codes[0, 3])  # noqa: E731
    assert p_values(codes, worth, by_place, paired=False)[0, 3] < 0.1


def test_p_counts_the_letters_of_shuffled_copies_that_score_as_high():
    codes = DNA.encode("ACGGTTACAGGA")[None]
    scores = np.arange(12.0)[None]

    def score(copied):  # every letter of every copy scores the number of its place
        assert copied.shape == (3, 12)
        return np.tile(np.arange(12.0), (3, 1))

    found = p_values(codes, scores, score, copies=3)
    np.testing.assert_allclose(found[0], (1 + 3 * np.arange(12, 0, -1)) / 37)


def test_p_values_are_even_where_nothing_is_real():
    """Records that are shuffled themselves, scored by their letters: every p-value is as likely."""
    rng = np.random.default_rng(5)
    codes = rng.integers(0, 4, (400, 30)).astype(np.uint8)
    weights = rng.normal(size=(5, 4, 4, 4))

    def score(c):
        padded = np.pad(c, ((0, 0), (1, 1)), mode="wrap")
        noise = np.sin(1e3 * (np.cumsum(c, 1) + c)) * 1e-6
        return weights[0, padded[:, :-2], padded[:, 1:-1], padded[:, 2:]] + noise

    p = p_values(codes, score(codes), score)
    assert kstest(p[:, 10], "uniform").pvalue > 1e-3


def test_q_is_that_of_scipy():
    p = np.random.default_rng(1).integers(1, 9, (3, 2, 20)) / 8
    np.testing.assert_allclose(q_values(p), false_discovery_control(p, axis=-1))
