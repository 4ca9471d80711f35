"""What is said of the calls of a locator: the precision to expect."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from seqray.calibration import Expectation
    from seqray.scanning import ScanResult


def expected_precision(expectation: Expectation, species: str | None) -> str:
    """The precision to expect in one phrase.

    The spread over other species is reported if ``species`` was not measured.
    """
    own = expectation.of(species)
    if own is not None:
        return f"{own.precision:.2f} ({own.low:.2f} to {own.high:.2f}, {own.species})"
    others = "species that training did not see" if expectation.left_out else "species"
    if len(expectation.spread) == 1:
        [row] = expectation.spread
        return f"{row.precision:.2f} ({row.low:.2f} to {row.high:.2f}) as in {row.species}"
    of = f"median, lowest and highest of {len(expectation.spread)} {others}"
    return f"{expectation.median:.2f} ({expectation.low:.2f} to {expectation.high:.2f}, {of})"


def stated_precision(result: ScanResult) -> str:
    """The precision to expect of the calls of a locator, or why none is stated."""
    if not len(result.calls):
        return "not stated without calls"
    if result.expectation is not None:
        return expected_precision(result.expectation, result.species)
    lowest = result.lowest_measured
    return "not known" if lowest is None else f"not measured below a score of {lowest:.2g}"


def expected_precision_fact(result: ScanResult) -> str:
    """The same with its meaning, for the headers of outputs."""
    meaning = ": share of calls near a mapped site in held-out sequence; others count as false"
    return stated_precision(result) + (meaning if result.expectation and len(result.calls) else "")
