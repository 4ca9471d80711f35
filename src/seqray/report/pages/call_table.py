"""All calls as compact data, which ``scan.js`` lays out, sorts and searches."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from markupsafe import Markup

from seqray.core.results import Box, Call, CallContext
from seqray.report.html import clean
from seqray.report.pages.call_figures import PLACES, place_index

_EMPTY = CallContext()


def table_data(calls: Sequence[Call], numbers: Sequence[int], with_genes: bool) -> Markup:
    """Write calls by column, with their numbers in the anchors of the page; names are written once."""
    contexts = [call.context or _EMPTY for call in calls]
    names = _Names()
    data: dict[str, Any] = {
        "first": _differences(numbers),
        "contig": names.indices(call.contig for call in calls),
        "site": _differences([call.site + 1 for call in calls]),
        "minus": "".join("01"[call.strand == "-"] for call in calls),
        "score": [round(call.score, 3) for call in calls],
    }
    for share in ("probability", "precision"):
        values = [getattr(context, share) for context in contexts]
        if any(value is not None for value in values):
            data[share] = list(map(_rounded, values))
    if with_genes:
        data |= {
            "gene": names.indices(context.gene for context in contexts),
            "locus": names.indices(context.locus for context in contexts),
            "distance": [-1 if c.distance is None else c.distance for c in contexts],
            "within": names.indices(context.within for context in contexts),
            "opposite": "".join("01"[context.within_strand == "opposite"] for context in contexts),
            "place": "".join(str(place_index(context)) for context in contexts),
            "places": PLACES,
        }
    if any(context.minus10 or context.minus35 for context in contexts):
        data |= {
            "minus35": names.indices(_letters(context.minus35) for context in contexts),
            "spacer": [-1 if c.spacer is None else c.spacer for c in contexts],
            "minus10": names.indices(_letters(context.minus10) for context in contexts),
        }
    data["names"] = names.all
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    safe = text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    return Markup(f"<script type=application/json id=data>{safe}</script>")


class _Names:
    """Texts that occur often, each written once."""

    def __init__(self) -> None:
        self._places: dict[str, int] = {}

    def indices(self, texts: Iterable[str]) -> list[int]:
        return [self._places.setdefault(clean(text), len(self._places)) for text in texts]

    @property
    def all(self) -> list[str]:
        return list(self._places)


def _differences(values: Sequence[int]) -> list[int]:
    """Each value minus the one before it, which takes fewer digits."""
    return np.diff(values, prepend=0).tolist()


def _rounded(value: float | None) -> float | int:
    """To the digits that are shown: a value that is rounded twice differs from that of the maps."""
    return -1 if value is None else round(value, 2)


def _letters(box: Box | None) -> str:
    return box.letters if box else ""
