"""What the page shows, and how the explanations of a record belong together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from seqray.core import Alphabet, Card
from seqray.core.results import Explanation, Faithfulness, HeadFigures, Motif

SAME_FOR_EVERY_CLASS = ("rollout", "value-rollout")


@dataclass(frozen=True, slots=True, eq=False)
class ReportData:
    """All that stands on the page.

    Attributes
    ----------
    title
        Heading of the page.
    explanations
        Those of one record are adjacent and share ``record``: several methods, several members.
    alphabet
        Its letters are the columns of ``effects``.
    card
        Of the model explained.
    site
        Index of the transcription start in each record; None if unknown.
    provenance
        Lines that say how the page came about.
    faithfulness
        Checks of the rankings; None if there were none.
    heads, motifs
        For the whole set; empty where not computed.
    omitted
        Records left out of the page because there are too many.
    """

    title: str
    explanations: Sequence[Explanation]
    alphabet: Alphabet
    card: Card
    site: int | None
    provenance: Sequence[str]
    faithfulness: Faithfulness | None = None
    heads: Sequence[HeadFigures] = ()
    motifs: Sequence[Motif] = ()
    omitted: int = 0


@dataclass(frozen=True, slots=True)
class Series:
    """A method and the members it was computed from: one track of every record."""

    number: int
    method: str
    member: str
    signed: bool

    @property
    def label(self) -> str:
        """Name on the page."""
        return self.method if self.member == "mean" else f"{self.method}, member {self.member}"

    @property
    def mark(self) -> str:
        """Class of all elements that belong to it."""
        return f"m{self.number}"

    @property
    def note(self) -> str:
        """What its scores are."""
        if self.signed:
            return "signed: a score above 0 speaks for the class explained, one below 0 against it"
        if self.method in SAME_FOR_EVERY_CLASS:
            return (
                "shares of attention-based relevance: unsigned, and the same for every class "
                "(rollout, value-rollout)"
            )
        return "shares of relevance: unsigned, so they don't tell letters that support from those that oppose"


def series_of(explanations: Sequence[Explanation]) -> dict[tuple[str, str], Series]:
    """Number the methods and members in the order of their first appearance."""
    found: dict[tuple[str, str], Series] = {}
    for item in explanations:
        key = (item.method, item.member)
        if key not in found:
            found[key] = Series(len(found), item.method, item.member, item.signed)
    return found


def by_record(explanations: Sequence[Explanation]) -> list[list[Explanation]]:
    """Gather the explanations of each record."""
    return [list(group) for _, group in groupby(explanations, key=lambda item: item.record)]
