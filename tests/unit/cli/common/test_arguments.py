"""Settings that the library advises, as options of the command line."""

from __future__ import annotations

import pytest

from seqray.cli.options import name_options


@pytest.mark.parametrize(
    ("advised", "expected"),
    [
        ("read the file with duplicates='rename'", "read the file with --duplicates rename"),
        ("give truncate='ends'", "give --truncate ends"),
        ("genes='predict' or genes=None", "--genes predict or --genes none"),
        ("'circular_ids': the input has no sequence", "--circular-id: the input has no sequence"),
        ("species='E. coli' is given", "--species 'E. coli' is given"),
        ("give prior=0.70; if not, threshold=...", "give --prior 0.70; if not, --threshold"),
        ("genes='predict' with codon_table=4 or 11", "--genes predict with --codon-table 4 or 11"),
        ("context=None. A context='x'.", "--context none. A --context x."),
        ("runs/prior=0.3/a.fa: no such file", "runs/prior=0.3/a.fa: no such file"),
        ("threshold=0.5/a.fa: no such file", "threshold=0.5/a.fa: no such file"),
        ("prior=0.3.tsv: is empty", "prior=0.3.tsv: is empty"),
        ("record 'genes' has no letters; others='x'", "record 'genes' has no letters; others='x'"),
    ],
)
def test_settings_are_written_as_options(advised, expected):
    assert name_options(advised) == expected
