"""How long a search may take: a time, or a number of training steps."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, Self

_SECONDS = {"s": 1, "m": 60, "h": 3600}


@dataclass(frozen=True)
class Budget:
    """What a search, with the training of all members, may take.

    Attributes
    ----------
    amount
        Seconds, or steps of the optimizer.
    unit
        Steps give the same search on every machine, seconds as good a model as that machine can make in them.
    """

    amount: float
    unit: Literal["seconds", "steps"] = "seconds"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read ``90s``, ``10m``, ``1.5h`` or ``5000steps``.

        Raises ValueError for other text, and for no time.
        """
        found = re.fullmatch(r"(\d{1,9}(?:\.\d{1,9})?)(s|m|h)|(\d{1,12})steps", text, re.ASCII)
        budget = None
        if found and found[3]:
            budget = cls(int(found[3]), "steps")
        elif found:
            budget = cls(float(found[1]) * _SECONDS[found[2]])
        if budget is None or not budget.amount:
            raise ValueError(f"'{text}' is not a budget such as 90s, 10m, 1h or 5000steps")
        return budget
