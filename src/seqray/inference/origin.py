"""Where records are from, judged by their k-mers, and what is said of that."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from seqray.calibration import MIN_WORDS, ContextDistance, Domain, KmerCounter, Signature
from seqray.core import Ints, SequenceRecord
from seqray.modelfile import TrainedModel

CAUTION = "caution: "
"""Begins those findings that speak against the results."""
MAX_NAMED_CONTEXTS = 4


def read_as(model: TrainedModel) -> str:
    """What to tell the user of a context that was recognized."""
    return (
        f"this file is read as {model.context}, which its first records are like; context='NAME' or "
        "context=None reads it otherwise"
    )


class Origin:
    """Watches the records that a model is given, and compares them with its training data.

    A model whose card has no signature is compared with nothing.

    Parameters
    ----------
    model
        With the context in which it reads the records.
    recognized
        Whether that context, if there is one, was recognized by the records (`recognize_context`).
    """

    def __init__(self, model: TrainedModel, *, recognized: bool = False) -> None:
        self._known, self._named = model.card.model.contexts, model.context
        self._recognized = [read_as(model)] if recognized and model.context else []
        self._locator = model.is_locator
        measured = model.card.locator.get("expected", ())
        self._new_species = any(row["held_out"] == "species" for row in measured)
        self._species = {row["species"] for row in measured}
        domain = Domain.of(model.card)
        later = domain.calibration if domain else None
        self._signature = domain.signature if domain else None
        self._calibrated_on = later.signature if later else None
        self._words = KmerCounter(model.alphabet)

    def watch(self, records: Iterable[SequenceRecord]) -> Iterable[SequenceRecord]:
        """Hand records on, and count their words."""
        return self._words.watch(records) if self._signature or self._calibrated_on else records

    @property
    def species(self) -> str | None:
        """The context that the file is as near to as pieces of its genome are; None if there is none."""
        return self._signature.nearest_context(self._words.counts) if self._signature else None

    @property
    def is_foreign(self) -> bool:
        """Whether the file is unlike everything that the model was trained on."""
        return self._signature is not None and self._signature.is_foreign(self._words.counts)

    def findings(self, species: str | None = None) -> Iterator[str]:
        """Yield the context that was recognized, cautions about it or the model, or what to name.

        ``species`` is the one that the user says the file is of.
        """
        yield from self._recognized
        counts = self._words.counts
        found = self._signature.compare(counts) if self._signature else []
        near = [likeness for likeness in found if not likeness.is_foreign]
        if self._calibrated_on:  # the probabilities hold for what is like these data, and for nothing else
            yield from _unlike_calibration(self._calibrated_on, counts)
        elif found and not near and self._signature and self._signature.is_mixture(counts):
            yield "this file is like the contexts of the training data together; give each its own file"
        elif found and not near:
            yield self._foreign(found[0])
        elif self._signature and not found and not species and len(self._species) == 1 and counts.any():
            yield (
                f"{CAUTION}fewer than {MIN_WORDS:,} letters are too few to tell whether this is "
                f"{min(self._species)}; for anything else the precision to expect is not known"
            )
        if near and self._named:
            named = f"context='{self._named}' is given"
            said = f"the first records are like {self._named}" if self._recognized else named
            yield from _against(said, self._named, found, near)
        elif near and near[0].context and self._known:
            yield _advice(near)
        if near and species:
            yield from _against(f"species='{species}' is given", species, found, near)
        elif near and self._locator:
            yield from self._nearest_species(near[0])

    def _nearest_species(self, nearest: ContextDistance) -> Iterator[str]:
        """Name the species if the file is near it, but not as near as pieces of its genome are."""
        if not nearest.is_close and nearest.context in self._species and len(self._species) > 1:
            yield (
                f"the nearest species that was measured is {_distances([nearest])}; this may be another: "
                "the precision to expect is the median over species; if the genome is of it, give "
                f"species='{nearest.context}'"
            )

    def _foreign(self, nearest: ContextDistance) -> str:
        if self._locator:
            then = "expect the precision of a species that is new, and"
            if not self._new_species:
                then = "the precision was not measured in such a genome:"
            return (
                f"{CAUTION}no genome of the training data is like this one ({_distances([nearest])}); "
                f"{then} compare calls with known sites"
            )
        both = self._signature.closest_pair(self._words.counts) if self._signature else None
        if both and both[0].is_close:
            names = f"{both[0].context} and {both[1].context}"
            return f"{CAUTION}this file is like a mixture of {names}; give each its own file and context=..."
        than = "what the model was trained on"
        if nearest.context:  # of a context with few training sequences nothing is known
            whole = self._signature is not None and set(self._known) <= set(self._signature.contexts)
            than = f"any context {'' if whole else 'with a signature '}that the model was trained on"
        return (
            f"{CAUTION}this file is unlike {than}, judged by its 4-mers "
            f"({_distances([nearest])}); its probabilities may not hold, measure them on known sites "
            "(seqray evaluate)"
        )


def _unlike_calibration(data: Signature, counts: Ints) -> Iterator[str]:
    """A caution if 4-mer counts (136,) are unlike each context of a later calibration, and all together."""
    found, pair = data.compare(counts), data.closest_pair(counts)
    if found and found[0].is_foreign and not data.is_mixture(counts) and not (pair and pair[0].is_close):
        yield (
            f"{CAUTION}this file is unlike the data that the model was calibrated on, judged by its "
            f"4-mers ({_distances(found[:1])}); its probabilities may not hold, measure them on known "
            "sites (seqray evaluate), or calibrate it on such data"
        )


def _against(
    said: str, name: str, found: list[ContextDistance], near: list[ContextDistance]
) -> Iterator[str]:
    """A caution if the file is unlike the context that it is read in and like another one."""
    named = [likeness for likeness in found if likeness.context == name]
    if named and named[0].is_foreign:
        unlike = f"this file is unlike it ({_distances(named)}) and nearer to {_distances(near)}"
        yield f"{CAUTION}{said}, but {unlike}"


def _advice(near: list[ContextDistance]) -> str:
    home = [likeness for likeness in near if likeness.is_close]
    if home:
        return (
            f"this file is like {_distances(home)}; name what it is with context=... for better probabilities"
        )
    return f"the nearest that the model was trained on is {_distances(near[:1])}; this may be another species"


def _distances(found: list[ContextDistance]) -> str:
    named = [
        f"{likeness.context} at a distance of {likeness.distance:.2f}"
        if likeness.context
        else f"a distance of {likeness.distance:.2f}"
        for likeness in found[:MAX_NAMED_CONTEXTS]
    ]
    more = len(found) - len(named)
    return ", ".join(named) + (f" and {more} more" if more > 0 else "")
