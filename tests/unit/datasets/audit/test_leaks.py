"""When a lower score counts as a leak."""

import pytest

from seqray.core.results import AuditFigure
from seqray.datasets.audit.findings import is_lower


@pytest.mark.parametrize(("value", "lower"), [(0.61, False), (0.59, True)])
def test_other_folds_are_lower_by_three_standard_errors(value, lower):
    """Errors of .08 and .06 make one of .1: .9 is higher than what is below .6."""
    given, other = (
        AuditFigure("baselines", "x", "*", "mcc", center, center - 1.96 * error, center + 1.96 * error)
        for center, error in ((0.9, 0.08), (value, 0.06))
    )
    assert is_lower(given, other) is lower
