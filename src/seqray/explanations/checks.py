"""Whether a ranking of letters is faithful."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple, TypeVar

import numpy as np
import torch
from torch import Tensor

from seqray.core.alphabet import dinucleotide_shuffle
from seqray.core.arrays import Codes, Floats, Ints
from seqray.core.errors import ConfigError, InputError
from seqray.core.explanation import Check, Curve, Faithfulness
from seqray.core.text import INTERVAL_DRAWS, counted, format_interval
from seqray.explanations.options import SHUFFLES
from seqray.explanations.targets import CALLED
from seqray.metrics.classification import bootstrap_samples, percentile_interval, ratio

# --- Shuffled copies that belong to a record: the same letters give the same copies, in any batch

MOST_PAIRED = 5  # different tokens, as four bases and N; with more, few orders have the same pairs
Score = Callable[[Codes], Floats]


def generator_for(codes: Codes, *keys: int) -> np.random.Generator:
    """Generator of random numbers that depends on the letters (n,) and the keys alone."""
    digest = hashlib.blake2b(codes.tobytes(), digest_size=16).digest()
    return np.random.default_rng([int.from_bytes(digest, "little"), *keys])


def shuffled_copies(codes: Codes, copies: int, *keys: int, paired: bool = True) -> Codes:
    """Shuffle a record (n,), the dinucleotides of bases kept, of residues only the counts: (copies, n)."""
    if not paired:
        return np.stack([generator_for(codes, *keys, draw).permutation(codes) for draw in range(copies)])
    rng = generator_for(codes, *keys)
    return np.stack([dinucleotide_shuffle(codes, rng) for _ in range(copies)])


# --- Ranks of scores


def mean_ranks(values: Floats) -> Floats:
    """As `scipy.stats.rankdata` along the last axis; its import takes longer than an explanation."""
    ranks = np.empty(values.shape)
    for row in np.ndindex(values.shape[:-1]):
        ordered = np.sort(values[row])
        below, up_to = (np.searchsorted(ordered, values[row], side) for side in ("left", "right"))
        ranks[row] = (below + up_to + 1) / 2
    return ranks


# --- Faithfulness of a ranking: replace letters in its order and measure the log-odds

SHARES = np.array([0, 0.025, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0])
RANDOM_RANKINGS, RANKINGS_OF_FEW, REFERENCES = 5, 19, 2
# Fewer records have no verdict and no interval: with all on one side a sign test would still say chance. They
# are compared with more random rankings instead, the fewest with which p can be .05.
MIN_RECORDS = 6
KINDS = ("deletion", "insertion")
Key = TypeVar("Key")
_REFERENCE_KEY, _RANDOM_KEY = 101, 102  # of the records' random draws, apart from those of the p-values
AT_ONCE = 1 << 22  # letters of changed sequences held at a time


def ranks_of(scores: Floats) -> Ints:
    """Rank of each letter, 0 for the highest score; ties in the order of the sequence: (..., n)."""
    order = np.argsort(-scores, axis=-1, kind="stable")
    return np.argsort(order, axis=-1, kind="stable")


def rank_correlation(a: Floats, b: Floats) -> Floats:
    """Spearman correlation of each row: (N, n) and (N, n) to (N,); nan where a row is constant."""
    x, y = mean_ranks(a), mean_ranks(b)
    x, y = x - x.mean(axis=-1, keepdims=True), y - y.mean(axis=-1, keepdims=True)
    spread = np.sqrt((x**2).sum(axis=-1) * (y**2).sum(axis=-1))
    return np.where(spread > 0, (x * y).sum(axis=-1) / np.where(spread > 0, spread, 1), np.nan)


def curves(
    codes: Codes, ranks: Ints, score: Score, references: Ints | None = None, paired: bool = True
) -> dict[str, Floats]:
    """Log-odds (N, S) at `SHARES` while letters are replaced, and put back, in the order of ranks (N, n).

    Means over references (N, R, n), or over shuffled copies. ``score`` maps codes (M, n) to log-odds (M,).
    """
    count, length = codes.shape
    limits = np.round(SHARES * length)  # letters replaced at each step
    first = ranks[:, None, :] < limits[:, None]  # (N, S, n)
    total = {kind: np.zeros((count, len(SHARES))) for kind in KINDS}
    copies = (shuffled_copies(row, REFERENCES, _REFERENCE_KEY, paired=paired) for row in codes)
    others = np.stack([*copies]) if references is None else references  # (N, R, n)
    rows = max(1, AT_ONCE // (length * len(SHARES)))
    for start in range(0, count, rows):
        part = slice(start, start + rows)
        record, chosen = codes[part, None, :], first[part]
        for reference in range(others.shape[1]):
            other = others[part, reference, None, :]
            for kind, changed in (("deletion", chosen), ("insertion", ~chosen)):
                sequences = np.where(changed, other, record)  # (rows, S, n)
                values = score(sequences.reshape(-1, length)).reshape(-1, len(SHARES))
                total[kind][part] += values / others.shape[1]
    return total


def random_ranks(codes: Codes, draw: int) -> Ints:
    """Random ranks of each record's letters, or of each alignment's columns: (N, ..., n) to (N, n)."""
    return np.stack([generator_for(row, _RANDOM_KEY, draw).permutation(row.shape[-1]) for row in codes])


def areas(values: Floats) -> Floats:
    """Area under curves (N, S) over `SHARES`: (N,), in log-odds."""
    return np.asarray(np.trapezoid(values, SHARES, axis=-1))


@dataclass
class Evidence:
    """Measurements of each record, by method; arrays grow as groups of records are added."""

    records: int  # that there will be, or any number from `MIN_RECORDS` for more
    curves: dict[tuple[str, str], Floats] = field(default_factory=dict)  # (method, kind) to (N, S)
    # (method, measure, against) to (N,)
    agreement: dict[tuple[str, str, str], Floats] = field(default_factory=dict)
    chance: dict[int, Floats] = field(default_factory=dict)  # both gains of each random ranking, (N,)
    distinct: set[bytes] = field(default_factory=set)  # the records, to count copies
    flat: dict[str, bool] = field(default_factory=dict)  # methods whose scores of each record are all equal

    @property
    def methods(self) -> list[str]:
        """Methods that curves were measured for, the random one left out."""
        return [method for method, kind in self.curves if kind == "deletion" and method != "random"]

    def add(
        self,
        codes: Codes,
        by_member: dict[str, Floats],
        by_chance: dict[str, Floats],
        curves_of: Callable[[Ints], dict[str, Floats]],
    ) -> None:
        """Measure rankings of codes (N, n) or (N, R, n), by members' scores (M, N, n) and by chance (N, n).

        ``curves_of`` maps ranks (N, n) to curves (N, S) of each kind; chance is networks of random weights.
        """
        means = {method: scores.mean(axis=0) for method, scores in by_member.items()}
        for method, scores in means.items():
            self.flat[method] = self.flat.get(method, True) and not np.ptp(scores, axis=-1).any()
            for kind, values in curves_of(ranks_of(scores)).items():
                _append(self.curves, (method, kind), values)
        draws = RANDOM_RANKINGS if self.records >= MIN_RECORDS else RANKINGS_OF_FEW
        chance = [curves_of(random_ranks(codes, draw)) for draw in range(draws)]
        for draw, both in enumerate(chance):
            _append(self.chance, draw, areas(both["insertion"] - both["deletion"]))
        for kind in KINDS:
            _append(self.curves, ("random", kind), np.mean([c[kind] for c in chance], axis=0))
        for method, scores in means.items():
            for other in means:
                if other != method:
                    values = rank_correlation(scores, means[other])
                    _append(self.agreement, (method, "rank_correlation", other), values)
            if len(by_member[method]) > 1:
                _append(self.agreement, (method, "stability", "members"), stability(by_member[method]))
            if method in by_chance:
                alike = rank_correlation(scores, by_chance[method])
                _append(self.agreement, (method, "randomised_weights", "random weights"), alike)

    def p_value(self, method: str) -> float:
        """Share of random rankings, this one among them, with at least the mean gain of the method."""
        own = areas(self.curves[method, "insertion"] - self.curves[method, "deletion"]).mean()
        by_chance = np.array([both.mean() for both in self.chance.values()])
        return float((1 + (by_chance >= own - 1e-5 * abs(own)).sum()) / (1 + len(by_chance)))


def faithfulness(
    score: Callable[[Any], Any],
    ranking: Any,
    tokens: Sequence[Any],
    *,
    replacement: Any = None,
    seed: int = 0,
) -> Faithfulness:
    """Measure whether a ranking of tokens is faithful to a score, whatever computes it.

    Tokens are replaced, and put back, in the order of their ranks, and in five random orders for comparison,
    or in 19 with fewer than six records, which get no verdict. Ties are in the order of the record. The
    interval is a bootstrap over records: of fewer than about 20 it is too narrow, and so it is of copies.

    Parameters
    ----------
    score
        Maps M changed records of one length to their scores (M,), such as log-odds. It gets texts where
        ``tokens`` are texts, a tensor (M, n) where they are tensors, else an array (M, n).
    ranking
        (N, n), or N arrays: high where a token is important, nan where it is never replaced, such as CLS and
        padding. Or a mapping from names to rankings, none of them named ``random``; others are
        compared with the first.
    tokens
        N texts, or N arrays (n,).
    replacement
        A token to put in place of others, such as the mask. Default is those of shuffled copies of a record,
        which keep the pairs of neighbors where it has no more than five different tokens.
    seed
        Of the bootstrap over records.

    Returns
    -------
    Faithfulness
        ``verdicts``, a sentence for each ranking by its name; ``checks``, a tuple of `Check`, figures with
        their intervals; ``curves``, a tuple of the curves behind them.

    Examples
    --------
    >>> import numpy as np
    >>> from seqray import faithfulness
    >>> texts = ["GCATATAAGGCCTA", "TTGACATTTACCGG"] * 10
    >>> by_hand = [[float(letter in "AT") for letter in text] for text in texts]
    >>> at = lambda changed: [sum(map(text.count, "AT")) for text in changed]
    >>> faithfulness(at, by_hand, texts, replacement="G").verdicts["ranking"].split(":")[0]
    'ranking beats random rankings on 20 records'
    """
    rankings = ranking if isinstance(ranking, Mapping) else {"ranking": ranking}
    if "random" in rankings:
        raise ConfigError("'random' is the name of the random order", remedy="name the ranking otherwise")
    of_texts = isinstance(replacement, str) and any(isinstance(record, str) for record in tokens)
    if np.ndim(replacement) or (of_texts and len(replacement) != 1):
        raise ConfigError(f"'replacement' is {replacement!r}", remedy="give one token")
    if not rankings:
        raise InputError("no ranking was given", remedy="give one, or a mapping from names to rankings")
    for name, values in rankings.items():
        if len(values) != len(tokens):
            what = f"'{name}' ranks {counted(len(values), 'record')}, and there are {len(tokens)}"
            raise InputError(what, remedy="give a row of numbers for each record")
    evidence = Evidence(len(tokens))
    for number, record in enumerate(tokens):
        letters = np.array(list(record)) if isinstance(record, str) else np.asarray(record)
        where = f"record {number + 1}"
        scores = {name: _numbers(values[number]) for name, values in rankings.items()}
        places = np.flatnonzero(np.isfinite(sum(scores.values())))
        if any(values.shape != (len(letters),) for values in scores.values()) or not len(places):
            remedy = "give one number for each token, or nan for some"
            raise InputError("the ranking doesn't fit", where=where, remedy=remedy)
        words, numbers = np.unique(letters[places], return_inverse=True)
        codes: Any = numbers[None]
        by_member = {name: values[None, None, places] for name, values in scores.items()}
        others, paired = None, len(words) <= MOST_PAIRED
        if replacement is not None:
            words, others = np.append(words, replacement), np.full((1, 1, len(places)), len(words))

        def of_codes(some: Codes) -> Floats:
            kind = np.result_type(letters, words)  # noqa: B023 - called within this round
            changed = np.tile(letters.astype(kind), (len(some), 1))  # noqa: B023
            changed[:, places] = words[some]  # noqa: B023
            return _scores(score, changed, record, where)  # noqa: B023

        evidence.distinct.add(letters.tobytes())
        curves_of = partial(curves, codes, score=of_codes, references=others, paired=paired)
        evidence.add(codes, by_member, {}, curves_of)
    return conclude(evidence, next(iter(rankings)), None, seed, deed="replacing the tokens")


def _scores(score: Callable[[Any], Any], changed: np.ndarray, like: Any, where: str) -> Floats:
    """Scores of changed records (M, n), which are handed over in the form that the record has."""
    records: Any = changed
    if isinstance(like, str):
        records = ["".join(row) for row in changed]
    elif isinstance(like, Tensor):
        records = torch.from_numpy(changed).to(like)
    scores = _numbers(score(records))
    if scores.shape != (len(changed),) or not np.isfinite(scores).all():
        what = "nan" if scores.shape == (len(changed),) else f"the shape {scores.shape}"
        remedy = f"let it give a finite number for each, here {len(changed)}"
        raise InputError(f"the scores of changed records have {what}", where=where, remedy=remedy)
    return scores


def _numbers(values: Any) -> Floats:
    values = values.detach().cpu().double() if isinstance(values, Tensor) else values
    return np.asarray(values, np.float64)


def _append(figures: dict[Key, Floats], key: Key, values: Floats) -> None:
    figures[key] = np.concatenate([figures[key], values]) if key in figures else values


def stability(scores: Floats) -> Floats:
    """Mean rank correlation over the pairs of two members or more: (M, N, n) to (N,)."""
    pairs = [(i, j) for i in range(len(scores)) for j in range(i)]
    return np.mean([rank_correlation(scores[i], scores[j]) for i, j in pairs], axis=0)


# --- Empirical p-values of scores from shuffled sequence, and their false discovery rate


def p_values(
    codes: Codes, scores: Floats, score: Score, copies: int = SHUFFLES, seed: int = 0, paired: bool = True
) -> Floats:
    """Empirical p-values (N, n) of scores (N, n), by those of shuffled copies of the record at any place.

    p = (1 + as high) / (1 + copies n) (Phipson and Smyth 2010). ``score`` maps codes (M, n) to scores (M, n).
    """
    count, length = codes.shape
    # (N·copies, n)
    copied = np.concatenate([shuffled_copies(row, copies, seed, paired=paired) for row in codes])
    chance = np.sort(score(copied).reshape(count, copies * length), axis=1)
    # Copies that are the record itself must tie with it, whatever batch they were computed in.
    slack = 1e-5 * np.abs(scores) + 1e-6 * np.abs(scores).max(axis=1, keepdims=True)
    at_least = [
        copies * length - np.searchsorted(by_chance, row, "left")
        for by_chance, row in zip(chance, scores - slack, strict=True)
    ]
    return (1 + np.array(at_least)) / (1 + copies * length)


def q_values(p: Floats) -> Floats:
    """Smallest false discovery rate at which each of (..., n) p-values counts (Benjamini, Hochberg 1995)."""
    order = np.argsort(p, axis=-1)[..., ::-1]
    count = p.shape[-1]
    rates = np.take_along_axis(p, order, axis=-1) * count / np.arange(count, 0, -1)
    q = np.empty(p.shape)
    np.put_along_axis(q, order, np.minimum.accumulate(rates, axis=-1).clip(max=1), axis=-1)
    return q


# --- From the evidence to figures with intervals, and to a sentence that says what they mean

_SHARE, _P_RANDOM = "share_of_reference", "p_random_rankings"
MIN_RELIABLE_RECORDS = 20
# The lowest rank correlation of members that each word is for; below all they disagree.
AGREEMENT = {"agree": 0.7, "agree in part": 0.5, "agree little": 0.3}
MAX_RANDOM_CORRELATION = 0.5  # if random weights rank as alike as this, the ranking shows the architecture


def conclude(
    evidence: Evidence,
    reference: str,
    target: str | None,
    seed: int = 0,
    *,
    deed: str = "changing the positions",
) -> Faithfulness:
    """Figures of all records beside a ``reference`` method; ``deed`` is what was done by the ranks."""
    if not evidence.curves:
        return Faithfulness((), (), {})
    count = len(evidence.curves["random", "deletion"])
    ratios = _ratios_of_checks(evidence, reference)
    steps = {
        (*key, str(step)): _mean_of(column)
        for key, values in evidence.curves.items()
        for step, column in enumerate(values.T)
    }
    figures = {**ratios, **steps}
    samples = bootstrap_samples(
        lambda w: {key: ratio(w @ r.above, np.maximum(w @ r.below, 0)) for key, r in figures.items()},
        np.arange(count),
        INTERVAL_DRAWS,
        seed,
        one_by_one=True,
    )
    estimates: dict[tuple[str, str, str], tuple[float, float, float]] = {}
    for key, (value, draws) in samples.items():
        low, high = percentile_interval(draws) if count >= MIN_RECORDS else (np.nan, np.nan)
        undefined = key[1] == _SHARE and np.isnan(draws).any()  # a share of gains that may be 0 or less
        estimates[key] = (np.nan, np.nan, np.nan) if undefined else (value, low, high)
    checks = [Check(*key, *estimates[key], ratio.records) for key, ratio in ratios.items()]
    for method in evidence.methods if count < MIN_RECORDS else ():
        checks.append(Check(method, _P_RANDOM, "random", evidence.p_value(method), np.nan, np.nan, count))
    curves = [
        Curve(*key, SHARES, *np.array([estimates[*key, str(step)] for step in range(len(SHARES))]).T)
        for key in evidence.curves
    ]
    name = "the called class" if target == CALLED else target
    what = "the score" if name is None else f"the log-odds of {name}"
    pairs = ((values, evidence.curves["random", kind]) for (_, kind), values in evidence.curves.items())
    every = f"{deed} changes {what} equally in every order, or not at all"
    alike = every if all(np.allclose(*pair, 1e-6, 1e-9) for pair in pairs) else ""
    verdicts = {method: _verdict(method, checks, what, count, deed) for method in evidence.methods}
    for method in verdicts:
        if alike or evidence.flat.get(method):
            why = alike or "all its numbers of each record are equal"
            verdicts[method] = f"{method} can't be judged on {counted(count, 'record')}: {why}."
    if evidence.distinct and (copies := count - len(evidence.distinct)):
        note = f"Caution: {copies} of them are copies of others, which the intervals take for new records."
        verdicts = {method: f"{text} {note}" for method, text in verdicts.items()}
    return Faithfulness(tuple(checks), tuple(curves), verdicts)


class _Ratio(NamedTuple):
    """A figure over records as the ratio of two sums: what each record adds to them, (N,)."""

    above: Floats
    below: Floats
    records: int


def _mean_of(values: Floats) -> _Ratio:
    """The mean over records (N,), those without a figure left out."""
    has_figure = np.isfinite(values)
    return _Ratio(np.where(has_figure, values, 0.0), has_figure.astype(np.float64), int(has_figure.sum()))


def _ratios_of_checks(evidence: Evidence, reference: str) -> dict[tuple[str, str, str], _Ratio]:
    """(method, measure, against) to the figure."""
    gains = {}  # area between the method's curve and the random one, positive where the method does better
    for method in evidence.methods:
        above = {k: areas(evidence.curves[method, k] - evidence.curves["random", k]) for k in KINDS}
        gains[method] = {"deletion": -above["deletion"], "insertion": above["insertion"]}
    ratios = {}
    for method, by_kind in gains.items():
        for kind in KINDS:
            ratios[method, f"{kind}_gain", "random"] = _mean_of(by_kind[kind])
        if method != reference:
            both, best = (gains[m]["deletion"] + gains[m]["insertion"] for m in (method, reference))
            ratios[method, _SHARE, reference] = _Ratio(both, best, len(both))
    return ratios | {key: _mean_of(values) for key, values in evidence.agreement.items()}


def _verdict(method: str, checks: list[Check], what: str, count: int, deed: str) -> str:
    figures = {(c.measure, c.against): c for c in checks if c.method == method}
    deletion, insertion = (figures[f"{kind}_gain", "random"] for kind in KINDS)
    wins = [check.low > 0 for check in (deletion, insertion)]
    if few := count < MIN_RECORDS:
        judgment = "is not judged"
    elif all(wins):
        judgment = "beats random rankings"
    elif any(wins):
        judgment = f"beats random rankings in {'deletion' if wins[0] else 'insertion'} only"
    elif max(deletion.high, insertion.high) < 0:
        judgment = "is worse than random rankings"
    else:
        judgment = "does not beat random rankings"
    falls, rises = map(_beside_random, (deletion, insertion))
    text = (
        f"{method} {judgment} on {counted(count, 'record')}: {deed} that it ranks first lowers {what} "
        f"by {falls} than random order does, putting them back first raises it "
        f"by {rises} (mean over the curve{'' if few else ', 95 % interval'})."
    )
    return " ".join([text, *_remarks(figures, count)])


def _beside_random(gain: Check) -> str:
    """A gain over random order with its interval; one below 0 is less."""
    if gain.value < 0:
        return f"{-gain.value:.2f}{format_interval(-gain.high, -gain.low, '.2f')} less"
    return f"{gain.value:.2f}{format_interval(gain.low, gain.high, '.2f')} more"


def _remarks(figures: dict[tuple[str, str], Check], count: int) -> Iterator[str]:
    for (name, against), check in figures.items():
        if name == _SHARE and np.isfinite(check.value):
            yield f"That is {100 * check.value:.0f} % of what {against} gains."
        if name == "stability" and np.isfinite(check.value):
            how = next((word for word, least in AGREEMENT.items() if check.value >= least), "disagree")
            yield f"Networks {how}: their rankings have a correlation of {check.value:.2f}."
        if name == "randomised_weights" and check.value >= MAX_RANDOM_CORRELATION:
            yield (
                "Caution: with random weights the ranking stays much the same (rank correlation "
                f"{check.value:.2f}), so it owes more to the network's shape than to what was learned."
            )
    if count < MIN_RECORDS:
        p, orders = figures[_P_RANDOM, "random"].value, RANKINGS_OF_FEW
        yield f"Here {round(p * (1 + orders)) - 1} of {orders} random orders do as much (p {p:.2g})."
        yield f"A verdict on the method takes at least {MIN_RECORDS} records."
    elif count < MIN_RELIABLE_RECORDS:
        yield f"Caution: {count} records are few for a verdict."
