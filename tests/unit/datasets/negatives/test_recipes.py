"""Shares and counts of recipes, by arithmetic on paper."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, strategies as st

from seqray.core.errors import ConfigError
from seqray.datasets.negatives.regions import RECIPES, allot, parse_mix


def test_shares_are_relative_and_sum_to_one():
    assert parse_mix(["shuffle"]) == {"shuffle": 1}
    assert parse_mix(["shuffle=0.5", "genome=0.5"]) == {"shuffle": Fraction(1, 2), "genome": Fraction(1, 2)}
    assert parse_mix(["coding=1", "shuffle=3"]) == {"coding": Fraction(1, 4), "shuffle": Fraction(3, 4)}
    assert parse_mix(["coding", "shuffle", "genome"])["genome"] == Fraction(1, 3)
    assert list(parse_mix(["genome=1", "coding=2"])) == ["genome", "coding"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["shufle"], "unknown recipe 'shufle'; did you mean 'shuffle'?"),
        (["zzz"], "known are shuffle, genome, antisense, convergent, coding, substitution"),
        (["shuffle=0"], "the share of 'shuffle' is '0'; give a number above 0"),
        (["shuffle=-1"], "the share of 'shuffle' is '-1'"),
        (["shuffle=half"], "the share of 'shuffle' is 'half'"),
        (["shuffle=1/0"], "the share of 'shuffle' is '1/0'"),
        (["shuffle", "shuffle"], "recipe 'shuffle' is given twice"),
        (["shuffle=0.5", "genome"], "some recipes have a share and some have none"),
    ],
)
def test_wrong_mixes(words, message):
    with pytest.raises(ConfigError) as error:
        parse_mix(words)
    assert message in str(error.value)


def test_counts_by_largest_remainder():
    assert allot(10, {"a": Fraction(1, 2), "b": Fraction(1, 2)}) == {"a": 5, "b": 5}
    # 7 in three parts: 2 1/3 each, the first of equal remainders is rounded up.
    assert allot(7, dict.fromkeys("abc", Fraction(1, 3))) == {"a": 3, "b": 2, "c": 2}
    # 5 by 0.15, 0.35, 0.5: 0.75, 1.75, 2.5.
    shares = {"a": Fraction(3, 20), "b": Fraction(7, 20), "c": Fraction(1, 2)}
    assert allot(5, shares) == {"a": 1, "b": 2, "c": 2}
    assert allot(0, shares) == {"a": 0, "b": 0, "c": 0}


@given(st.integers(0, 10_000), st.lists(st.integers(1, 1000), min_size=1, max_size=6))
def test_counts_sum_up_and_are_less_than_one_off(total, weights):
    shares = {str(i): Fraction(w, sum(weights)) for i, w in enumerate(weights)}
    counts = allot(total, shares)
    assert sum(counts.values()) == total
    assert all(abs(counts[name] - total * share) < 1 for name, share in shares.items())


def test_every_recipe_says_what_it_teaches_in_a_line():
    for recipe in RECIPES.values():
        assert recipe.makes
        assert recipe.teaches
        assert "\n" not in recipe.makes + recipe.teaches
        assert recipe.genome or not recipe.annotation
