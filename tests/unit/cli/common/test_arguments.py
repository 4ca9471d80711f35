"""Settings that errors of the library advise, as options of the command line."""

from __future__ import annotations

import pytest

from seqray.cli.common import name_options


@pytest.mark.parametrize(
    ("advised", "expected"),
    [
        ("read the file with duplicates='rename'", "read the file with --duplicates rename"),
        ("give truncate='ends'", "give --truncate ends"),
        ("genes='predict' or genes=None", "--genes predict or --genes none"),
        ("'circular_ids': the input has no sequence", "--circular-id: the input has no sequence"),
        ("record 'genes' has no letters; others='x'", "record 'genes' has no letters; others='x'"),
    ],
)
def test_settings_are_written_as_options(advised, expected):
    assert name_options(advised) == expected
