"""Families of features: parents without end, or thousands of genes alike, take no more than others."""

import pytest

from seqray.genome.read import MAX_FAMILY_SIZE, families_of
from seqray.io.lines import Feature, Part


def feature(kind: str, number: int = 0, **attributes: str) -> Feature:
    return Feature("one", kind, (Part(number, number + 9, "+"),), attributes, "x: line 1")


@pytest.mark.parametrize("last", ["", "f0"])
def test_a_chain_of_parents_is_followed_for_a_few_only(last):
    chain = [feature("ncRNA", ID=f"f{i}", Parent=f"f{i + 1}") for i in range(99)]
    families = list(families_of([*chain, feature("ncRNA", ID="f99", Parent=last)]))
    assert len(families) == 100
    assert families[0] == chain[:MAX_FAMILY_SIZE]
    assert max(map(len, families)) == MAX_FAMILY_SIZE


def test_a_parent_of_itself_is_there_once():
    [family] = families_of([feature("tRNA", ID="a", Parent="a")])
    assert len(family) == 1


def test_genes_alike_all_belong_to_their_product_and_a_few_describe_it():
    genes = [feature("gene", i, gene="abcD") for i in range(100)]
    product = feature("tRNA", 500, gene="abcD")
    families = list(families_of([*genes, product, product]))
    assert families == [[product, *genes[:MAX_FAMILY_SIZE]]] * 2  # no gene is left to be one of its own
