"""A genome is recognized by its words; contigs around sites describe no genome."""

from __future__ import annotations

import numpy as np

from seqray.calibration.signature import KmerCounter, Signature
from seqray.core.alphabet import DNA
from seqray.training.genomes.fit import PIECE, species_domain


def letters(gc, length, seed):
    shares = [(1 - gc) / 2, gc / 2, gc / 2, (1 - gc) / 2]
    return "".join(np.random.default_rng(seed).choice(list("ACGT"), length, p=shares))


def test_a_new_part_of_a_genome_is_known_by_its_species(make_genome):
    genomes = [
        make_genome({"a": letters(0.3, 60_000, 0), "b": letters(0.3, 50_000, 1)}, species="Poor"),
        make_genome({"c": letters(0.6, 90_000, 2)}, species="Rich"),
        make_genome({"d": letters(0.3, PIECE - 1, 3)}, species="Contexts"),
    ]
    domain = species_domain(genomes)
    assert domain is not None
    assert domain.signature is not None
    assert tuple(entry.context for entry in domain.signature) == ("Poor", "Rich")
    for gc, species in ((0.3, "Poor"), (0.6, "Rich"), (0.45, None)):
        counter = KmerCounter(DNA)
        counter.add(letters(gc, 50_000, 9))
        assert Signature(domain.signature).nearest_context(counter.counts) == species


def test_contigs_around_sites_alone_say_nothing_of_a_genome(make_genome):
    assert species_domain([make_genome({"d": letters(0.3, 300, 3)})]) is None
