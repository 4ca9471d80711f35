"""Labels and weights by hand, and the tracks of a stretch against those of the whole contig."""

import math

import numpy as np
import pytest
from hypothesis import example, given, strategies as st

from seqray.core.alphabet import DNA, reverse_complement_codes
from seqray.genome.genes import TRACKS, Gene, flip_genes, gene_tracks
from seqray.training.genomes.chunks import GAP, INSIDE, MASKED, PLAIN, SITES, LabeledStrand

AT_2 = math.exp(-0.5 * (2 / 2.5) ** 2)  # two letters from a site


def nothing(length):
    return np.zeros(length, dtype=bool)


def plain(length, *sites):
    """A strand without genes."""
    return LabeledStrand(
        DNA.encode("A" * length), np.array(list(sites), dtype=SITES), np.full(length, PLAIN, np.uint8)
    )


def labels_of(strand, classes=1, gap=0.3):
    return strand.targets(0, len(strand), classes, 2.5, gap)


def test_a_site_is_soft_and_weighs_what_it_is_sure(make_genome):
    """60 letters, a site at index 20 of the plus strand and one at index 49 of the minus strand."""
    genome = make_genome({"c": "A" * 60}, {"c": [(20, "+", 0, 0.5), (49, "-", 0, 1.0)]})
    [contig] = genome.contigs
    labels, weights = labels_of(LabeledStrand.of(genome, contig, "+", nothing(60)))
    assert labels[0, 20] == 1
    assert labels[0, [18, 22]] == pytest.approx([AT_2, AT_2])
    assert not labels[0, :10].any() and not labels[0, 31:].any()  # noqa: PT018
    assert weights[0].tolist() == [1.0] * 10 + [0.5] * 21 + [1.0] * 29
    labels, weights = labels_of(LabeledStrand.of(genome, contig, "-", nothing(60)))
    assert labels[0].argmax() == 10  # 60 - 1 - 49
    assert weights[0].tolist() == [1.0] * 60


def test_near_sites_share_their_surroundings():
    """Sites 4 apart: each letter has the higher label, and the weight of the nearer site."""
    strand = plain(40, (15, 0, 1.0), (19, 0, 0.2))
    labels, weights = labels_of(strand)
    assert labels[0, [15, 19]].tolist() == [1, 1]
    assert labels[0, 17] == pytest.approx(AT_2)
    assert weights[0, [14, 16, 18, 20]].tolist() == pytest.approx([1, 1, 0.2, 0.2])


def test_other_classes_are_not_asked_near_a_site():
    strand = plain(50, (20, 0, 1.0), (26, 1, 1.0))
    labels, weights = labels_of(strand, classes=2)
    assert labels.argmax(axis=1).tolist() == [20, 26]
    assert weights[0].tolist() == [1.0] * 31 + [0.0] * 6 + [1.0] * 13
    assert weights[1].tolist() == [1.0] * 10 + [0.0] * 6 + [1.0] * 34


def test_a_site_of_weight_zero_is_neither_site_nor_background():
    strand = plain(40, (20, 0, 0.0))
    _, weights = labels_of(strand)
    assert weights[0].tolist() == [1.0] * 10 + [0.0] * 21 + [1.0] * 9


def test_a_chunk_sees_the_sites_just_outside():
    strand = plain(100, (50, 0, 1.0))
    whole, _ = labels_of(strand)
    for start, end in ((0, 48), (52, 100), (45, 55)):
        part, _ = strand.targets(start, end, 1, 2.5, 0.3)
        assert part.tolist() == whole[:, start:end].tolist()


def test_levels_follow_the_genes_of_either_strand(make_genome):
    """A gene at 1000 to 1600: inside on both strands; the 300 letters before its start wait for a site."""
    gene = Gene(1000, 1600, "+", "g")
    genome = make_genome({"c": "A" * 3000}, genes={"c": [gene]}, inside=0.1)
    [contig] = genome.contigs
    strand = LabeledStrand.of(genome, contig, "+", nothing(3000))
    gap = np.flatnonzero(strand.level == GAP)
    # nearness is kept as a whole number of 255ths, about two letters
    assert abs(gap[0] - 700) <= 2 and gap[-1] == 999  # noqa: PT018
    assert np.flatnonzero(strand.level == INSIDE).tolist() == list(range(1000, 1600))
    _, weights = strand.targets(0, 3000, 1, 2.5, 0.3)
    assert weights[0, [500, 900, 1200, 2000]].tolist() == pytest.approx([1, 0.3, 0.1, 1])
    other = LabeledStrand.of(genome, contig, "-", nothing(3000))
    assert np.flatnonzero(other.level == INSIDE).tolist() == list(range(1400, 2000))
    assert not (other.level == GAP).any()


def test_a_known_site_explains_the_gap_before_its_gene(make_genome):
    genome = make_genome(
        {"c": "A" * 3000}, {"c": [(900, "+", 0, 1.0)]}, genes={"c": [Gene(1000, 1600, "+", "g")]}
    )
    level = LabeledStrand.of(genome, genome.contigs[0], "+", nothing(3000)).level
    assert (level[750:1000] == PLAIN).all()  # 150 before the site, 300 after it
    assert (level[702:750] == GAP).all()


def test_what_is_masked_has_no_weight_on_either_strand(make_genome):
    genome = make_genome({"c": "A" * 100}, {"c": [(50, "+", 0, 1.0), (50, "-", 0, 1.0)]})
    masked = nothing(100)
    masked[45:60] = True
    for name, span in (("+", slice(45, 60)), ("-", slice(40, 55))):
        strand = LabeledStrand.of(genome, genome.contigs[0], name, masked)
        assert (strand.level[span] == MASKED).all()
        _, weights = labels_of(strand)
        assert not weights[0, span].any()
        assert weights[0].sum() == 85


genes = st.builds(
    lambda start, length, strand, coding, cut: Gene(
        start, start + length, strand, "g", coding=coding, partial_start=cut
    ),
    st.integers(0, 1999), st.integers(1, 1500), st.sampled_from("+-"), st.booleans(), st.booleans(),
)  # fmt: skip


@example([Gene(1795, 3295, "+", "g", coding=False)], True, "+", -196)  # its end, two turns before, is near
@given(st.lists(genes, max_size=6), st.booleans(), st.sampled_from("+-"), st.integers(-600, 2400))
def test_tracks_of_a_stretch_are_those_of_the_contig(found, circular, strand, start):
    length, size = 2000, 300
    found = [gene for gene in found if circular or gene.end <= length]
    known = tuple(found) if strand == "+" else flip_genes(found, length)
    codes = DNA.encode("ACGTT" * 400)
    codes = codes if strand == "+" else reverse_complement_codes(codes)
    part = LabeledStrand(codes, np.array([], dtype=SITES), np.ones(length, np.uint8), known, circular)
    whole = gene_tracks(found, length, strand, circular=circular)
    places = np.arange(start, start + size)
    inside = (places >= 0) & (places < length)
    expected = whole[:, places % length]
    if not circular:
        expected = np.where(inside, expected, 0)
    assert np.array_equal(part.tracks(start, start + size), expected)
    assert len(expected) == len(TRACKS)
