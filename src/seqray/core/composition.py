"""What a network counts in a sequence as its composition, see `ModelConfig.composition`."""

from __future__ import annotations

from collections.abc import Sequence

COMPOSITION_ENDS = (15, 30, 60)  # letters of the ends
COMPOSITION_GAPS = (1, 2, 3)  # from the first letter of a pair to the second
# Factors that make the features of each part vary by about 1 between proteins. Sampling alone makes the root
# of A p, for a share p of one of A letters in n, vary by √A / 2√n, so that whole sequences vary least.
WHOLE_FACTOR, END_FACTORS, PAIR_FACTOR = 5.0, (1.5, 1.9, 2.5), 1.6


def composition_size(letters: int, parts: Sequence[str]) -> int:
    """Number of features of an alphabet of so many letters."""
    sizes = {
        "whole": letters,
        "ends": 2 * len(COMPOSITION_ENDS) * letters,
        "pairs": len(COMPOSITION_GAPS) * letters**2,
    }
    return sum(sizes[part] for part in parts)
