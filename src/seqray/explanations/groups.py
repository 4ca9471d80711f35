"""Records explained together: of one length and class, with what computes their scores."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from seqray.core.alphabet import Alphabet
from seqray.core.arrays import Codes, Floats, Ints
from seqray.core.explanation import Explanation, Place
from seqray.core.records import SequenceRecord
from seqray.explanations.checks import Evidence, curves, p_values, q_values
from seqray.explanations.methods import METHODS, member_effects, member_scores
from seqray.explanations.options import ExplainOptions
from seqray.explanations.targets import LetterTarget, ensemble_score

MAX_MUTATED = 500  # letters; every substitution of a longer record would cost too much to be a reference
MAX_SUBSTITUTIONS = 4_000  # of a record, so of 210 residues, each of which has 19


@dataclass(frozen=True, slots=True, eq=False)
class Item:
    """A record to explain.

    Attributes
    ----------
    number, record, place
        Its number in the input, its letters, and where it lies in a longer sequence, if known.
    codes
        (n,) letter codes of what the model reads.
    kept
        (n,) indices of these letters in the record, which may be longer.
    label, target, probability
        The class called, the index of the class explained, and the probability of that.
    """

    number: int
    record: SequenceRecord
    codes: Codes
    kept: Ints
    label: str
    target: int
    probability: float
    place: Place | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """N records, at least one, of one length and class, with the target of each.

    ``attention`` is (N, layers, heads, n), see `Explanation`; None if not requested.
    """

    items: Sequence[Item]
    targets: Sequence[LetterTarget]
    attention: Floats | None = None

    @property
    def codes(self) -> Codes:
        """Letter codes (N, n)."""
        return np.stack([item.codes for item in self.items])

    def scores(self, codes: Codes, method: str, options: ExplainOptions) -> Floats:
        """Scores (N, n) of other letters by a method, the mean over the members."""
        return member_scores(self.targets, codes, method, options.settings).mean(axis=0)


def explain_group(group: Group, options: ExplainOptions) -> Iterator[Explanation]:
    """Explain the records of a group, each by each method in turn."""
    codes, settings = group.codes, options.settings
    wanted = "ism" in options.methods or (
        options.effects and is_mutated(codes.shape[1], group.targets[0].model.alphabet)
    )
    known = member_effects(group.targets, codes) if wanted else None
    scores = {m: member_scores(group.targets, codes, m, settings, known) for m in options.methods}
    means = {method: one.mean(axis=0) for method, one in scores.items()}
    tests = {method: _tests(group, method, one, options) for method, one in means.items()}
    mean_effects = None if known is None else known.mean(axis=0)
    for row, item in enumerate(group.items):
        for method in options.methods:
            p, q = tests[method]
            common = Explanation(
                record=item.number,
                id=item.record.id,
                sequence=item.record.sequence,
                label=item.label,
                target=group.targets[0].class_name,
                probability=item.probability,
                method=method,
                member="mean",
                signed=METHODS[method].signed,
                scores=means[method][row].copy(),  # a view would keep the whole group in memory
                effects=None if mean_effects is None else mean_effects[row].copy(),
                p=None if p is None else p[row],
                q=None if q is None else q[row],
                attention=None if group.attention is None else group.attention[row].copy(),
                place=item.place,
            )
            found = [common]
            if options.members == "each":
                found += _by_member(common, scores[method][:, row], None if known is None else known[:, row])
            yield from (one.spread_over(item.kept) for one in found)


def is_mutated(letters: int, alphabet: Alphabet) -> bool:
    """Whether a record of so many letters gets every substitution unasked."""
    return letters <= MAX_MUTATED and letters * (len(alphabet.letters) - 1) <= MAX_SUBSTITUTIONS


def reference_method(letters: int, alphabet: Alphabet) -> str:
    """The method that others are compared with: mutagenesis of short records, else occlusion."""
    return "ism" if is_mutated(letters, alphabet) else "occlusion"


def _by_member(common: Explanation, scores: Floats, effects: Floats | None) -> Iterator[Explanation]:
    for number, one in enumerate(scores, start=1):
        own = None if effects is None else effects[number - 1]
        yield replace(common, member=str(number), scores=one, effects=own, p=None, q=None)


def _tests(
    group: Group, method: str, scores: Floats, options: ExplainOptions
) -> tuple[Floats | None, Floats | None]:
    """p- and q-values (N, n), if requested."""
    if options.shuffles == 0:
        return None, None
    p = p_values(
        group.codes,
        scores,
        lambda shuffled: group.scores(shuffled, method, options),
        options.shuffles,
        options.seed,
    )
    return p, q_values(p)


def measure_group(
    evidence: Evidence, group: Group, chance: LetterTarget, reference: str, options: ExplainOptions
) -> None:
    """Add what the checks measure on a group to the evidence.

    Either all records of the group are called as the class explained, or none. ``chance`` is the same
    question to a network of random weights, ``reference`` the method that others are compared with.
    """
    codes, methods = group.codes, dict.fromkeys([*options.methods, reference])
    by_member = {m: member_scores(group.targets, codes, m, options.settings) for m in methods}
    by_chance = {m: member_scores([chance], codes, m, options.settings)[0] for m in methods}
    evidence.add(
        codes,
        by_member,
        by_chance,
        lambda ranks: curves(codes, ranks, lambda changed: ensemble_score(group.targets, changed)),
    )
