"""What ``predict`` and ``scan`` report about the origin of a whole file, judged by its k-mers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from seqray.calibration import ContextDistance
    from seqray.core import SequenceRecord
    from seqray.modelfile import TrainedModel

NAMED = 4  # contexts that are named at most


class Origin:
    """Watches the records that a model is given, and compares them with its training data.

    A model whose card has no signature is compared with nothing.
    """

    def __init__(self, model: TrainedModel) -> None:
        from seqray.calibration import Domain, KmerCounter

        self._known, self._named = model.card.model.contexts, model.context
        self._locator = model.is_locator
        self._signature = Domain.from_mapping(model.card.domain).signature if model.card.domain else None
        self._words = KmerCounter(model.alphabet)

    def watch(self, records: Iterable[SequenceRecord]) -> Iterable[SequenceRecord]:
        """Hand records on, and count their words."""
        return self._words.watch(records) if self._signature else records

    @property
    def species(self) -> str | None:
        """The context that the file is as near to as pieces of its genome are; None if there is none."""
        return self._signature.home(self._words.counts) if self._signature else None

    def findings(self) -> Iterator[str]:
        """Yield cautions about the model or the context that was named, or which context to name."""
        found = self._signature.compare(self._words.counts) if self._signature else []
        if not found:
            return
        near = [likeness for likeness in found if not likeness.is_foreign]
        if not near:
            yield self._foreign(found[0])
        elif self._named:
            yield from _against(self._named, found, near)
        elif found[0].context and self._known:
            yield _advice(near)

    def _foreign(self, nearest: ContextDistance) -> str:
        if self._locator:
            return (
                f"caution: no genome of the training data is like this one ({_distances([nearest])}); "
                "expect the precision of a species that is new, and compare calls with known sites"
            )
        both = self._signature.closest_pair(self._words.counts) if self._signature else None
        if both and both[0].is_close:
            names = f"{both[0].context} and {both[1].context}"
            return f"caution: this file is like a mixture of {names}; give each its own file and --context"
        than = "what the model was trained on"
        if nearest.context:  # of a context with few training sequences nothing is known
            whole = self._signature is not None and set(self._known) <= set(self._signature.contexts)
            than = f"any context {'' if whole else 'with a signature '}that the model was trained on"
        return (
            f"caution: this file is unlike {than}, judged by words of four letters "
            f"({_distances([nearest])}); its probabilities may not hold, measure them on known sites "
            "(seqray evaluate)"
        )


def _against(name: str, found: list[ContextDistance], near: list[ContextDistance]) -> Iterator[str]:
    """A caution if the file is unlike the given context and like another one."""
    named = [likeness for likeness in found if likeness.context == name]
    if named and named[0].is_foreign:
        unlike = f"this file is unlike it ({_distances(named)}) and nearer to {_distances(near)}"
        yield f"caution: --context says {name}, but {unlike}"


def _advice(near: list[ContextDistance]) -> str:
    home = [likeness for likeness in near if likeness.is_close]
    if home:
        return (
            f"this file is like {_distances(home)}; name what it is with --context for better probabilities"
        )
    return f"the nearest that the model was trained on is {_distances(near[:1])}; this may be another species"


def _distances(found: list[ContextDistance]) -> str:
    named = [
        f"{likeness.context} at a distance of {likeness.distance:.2f}"
        if likeness.context
        else f"a distance of {likeness.distance:.2f}"
        for likeness in found[:NAMED]
    ]
    more = len(found) - len(named)
    return ", ".join(named) + (f" and {more} more" if more > 0 else "")
