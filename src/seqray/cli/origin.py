"""What ``predict`` and ``scan`` say of the origin of a whole file, judged by its short words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from seqray.modelfile import TrainedModel
    from seqray.records import SequenceRecord
    from seqray.signature import Likeness

NAMED = 4  # contexts that are named at most


class Origin:
    """Watches the records that a model is given, and compares them with its training data.

    A model whose card has no signature is compared with nothing.
    """

    def __init__(self, model: TrainedModel) -> None:
        from seqray.domain import Domain
        from seqray.signature import WordTally

        self._known, self._named = model.card.model.contexts, model.context
        self._signature = Domain.from_mapping(model.card.domain).signature if model.card.domain else None
        self._words = WordTally(model.alphabet)

    def watch(self, records: Iterable[SequenceRecord]) -> Iterable[SequenceRecord]:
        """Hand records on, and count their words."""
        return self._words.watch(records) if self._signature else records

    def remarks(self) -> Iterator[str]:
        """Yield what the records say against the model or the context that was named."""
        found = self._signature.compare(self._words.counts) if self._signature else []
        near = [likeness for likeness in found if not likeness.foreign]
        if found and not near:
            than = "any context that the model was" if found[0].context else "what the model was"
            yield (
                f"caution: this file is unlike {than} trained on, judged by words of four letters "
                f"({_told(found[:1])}); its probabilities may not hold, measure them on known sites "
                "(seqray evaluate)"
            )
        elif near and self._named and self._named not in [likeness.context for likeness in near]:
            named = [likeness for likeness in found if likeness.context == self._named]
            apart = f" ({_told(named)})" if named else ""
            yield (
                f"caution: --context says {self._named}, but this file is unlike it{apart} and like "
                f"{_told(near)}"
            )
        elif near and self._known and self._named is None:
            yield f"this file is like {_told(near)}; name what it is with --context for better probabilities"


def _told(found: list[Likeness]) -> str:
    told = [
        f"{likeness.context} at a distance of {likeness.distance:.2f}"
        if likeness.context
        else f"a distance of {likeness.distance:.2f}"
        for likeness in found[:NAMED]
    ]
    more = len(found) - len(told)
    return ", ".join(told) + (f" and {more} more" if more > 0 else "")
