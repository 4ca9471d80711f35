"""The nearest gene and the gene around a site, against a search of every gene."""

from __future__ import annotations

from hypothesis import given, strategies as st

from seqray.genome.genes import Gene, GeneIndex

LENGTH = 60


@st.composite
def genes(draw, circular):
    start = draw(st.integers(0, LENGTH - 1))
    most = 40 if circular else LENGTH - start
    return Gene(
        start,
        start + draw(st.integers(1, most)),
        draw(st.sampled_from("+-")),
        draw(st.sampled_from("abc")),
        partial_start=draw(st.booleans()),
    )


@st.composite
def contigs(draw):
    circular = draw(st.booleans())
    return draw(st.lists(genes(circular), max_size=8)), circular


def distance(gene, site, circular):
    """Letters from the site to the start in reading direction; None where it lies behind."""
    ahead = (gene.start_codon - site) * (1 if gene.strand == "+" else -1)
    if circular:
        return ahead % LENGTH
    return ahead if ahead >= 0 else None


def covers(gene, site, circular):
    return any(gene.start <= place < gene.end for place in (site, site + LENGTH * circular))


@given(contigs(), st.integers(0, LENGTH - 1), st.sampled_from("+-"), st.integers(0, LENGTH))
def test_the_next_start_downstream(contig, site, strand, reach):
    known, circular = contig
    ahead = {
        distance(gene, site, circular) for gene in known if gene.strand == strand and not gene.partial_start
    } - {None}
    expected = min((value for value in ahead if value <= reach), default=None)
    found = GeneIndex(known, LENGTH, circular=circular).downstream(site, strand, reach)
    assert (found[1] if found else None) == expected
    if found:
        assert found[0] in known
        assert distance(found[0], site, circular) == found[1]


@given(contigs(), st.integers(0, LENGTH - 1))
def test_the_gene_around_a_site(contig, site):
    known, circular = contig
    index = GeneIndex(known, LENGTH, circular=circular)
    for strand in (None, "+", "-"):
        around = [g for g in known if strand in (None, g.strand) and covers(g, site, circular)]
        found = index.containing(site, strand)
        assert (found is None) == (not around)
        if found:
            assert found in around
            assert (site - found.start) % LENGTH == min((site - gene.start) % LENGTH for gene in around)
    assert index.antisense(site, "+") == index.containing(site, "-")
    assert index.antisense(site, "-") == index.containing(site, "+")
