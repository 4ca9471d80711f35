"""Settings in messages, as Python and as the command line write them."""

import pytest

from seqray.core.errors import ConfigError, field_name, require, setting, settings_as_options


@pytest.mark.parametrize(
    ("arguments", "in_python", "as_option"),
    [
        (("duplicates", "rename"), "duplicates='rename'", "--duplicates rename"),
        (("genes", None), "genes=None", "--genes none"),
        (("species", "E. coli"), "species='E. coli'", "--species 'E. coli'"),
        (("prior", 0.7, ".2f"), "prior=0.70", "--prior 0.70"),
        (("codon_table", 4), "codon_table=4", "--codon-table 4"),
        (("threshold",), "threshold=...", "--threshold"),
    ],
)
def test_settings_are_written_as_their_user_knows_them(arguments, in_python, as_option):
    assert setting(*arguments) == in_python
    with settings_as_options({}):
        assert setting(*arguments) == as_option
    assert setting(*arguments) == in_python


def test_a_setting_whose_option_has_another_name():
    with settings_as_options({"circular_ids": "--circular-id"}):
        assert field_name("circular_ids") == "--circular-id"
    with pytest.raises(ConfigError, match="'circular_ids' must be"):
        require(False, "circular_ids", "must be")
