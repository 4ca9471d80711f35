"""Words for a budget."""

from __future__ import annotations

import pytest

from seqray.training.budget import Budget


@pytest.mark.parametrize(
    ("text", "amount", "unit"),
    [
        ("90s", 90, "seconds"),
        ("10m", 600, "seconds"),
        ("1.5h", 5400, "seconds"),
        ("5000steps", 5000, "steps"),
    ],
)
def test_times_and_steps_are_read(text, amount, unit):
    assert Budget.parse(text) == Budget(amount, unit)


@pytest.mark.parametrize(
    "text", ["", "10", "m", "-1m", "1d", "0m", "0steps", "1.5steps", "1e3s", "9" * 20 + "h"]
)
def test_other_words_are_refused(text):
    with pytest.raises(ValueError, match="is not a budget such as 90s, 10m, 1h or 5000steps"):
        Budget.parse(text)
