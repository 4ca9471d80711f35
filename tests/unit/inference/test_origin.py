"""What a scan says of the species that its input is near to."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from Bio.Seq import Seq

from seqray.calibration.signature import ContextDistance
from seqray.core.alphabet import DNA
from seqray.core.records import SequenceRecord
from seqray.inference.origin import Origin


def origin_of(measured, held_out="species", kingdom=None):
    """For a locator that was measured on some species."""
    expected = [SimpleNamespace(species=name, held_out=held_out) for name in measured]
    locator, model = SimpleNamespace(expected=expected, kingdom=kingdom), SimpleNamespace(contexts=())
    card = SimpleNamespace(model=model, locator=locator, domain=None)
    return Origin(SimpleNamespace(card=card, context=None, is_locator=True, alphabet=DNA))


def findings(distances, measured, species=None):
    """Of a file at these distances from species, for a locator that was measured on some."""
    origin = origin_of(measured)
    found = [ContextDistance(name, distance) for name, distance in distances.items()]
    origin._signature = SimpleNamespace(compare=lambda counts: found, is_mixture=lambda counts: False)
    return list(origin.findings(species))


# Positions 330 to 360 of the 16S ribosomal RNA of E. coli, and what the probes of the other kingdoms bind.
RIBOSOMAL = {
    "bacteria": "GGTCCAGACTCCTACGGGAGGCAGCAGTGGGG",
    "archaea": "CTTAAAGGAATTGGCGGGGGAGCACCACAA",
    "eukaryotes": "AATTGGAGGGCAAGTCTGGTGCCAGCAG",
}


@pytest.mark.parametrize("kingdom", [None, "archaea", "eukaryotes"])
@pytest.mark.parametrize("turn", [str, str.lower, lambda text: str(Seq(text).reverse_complement())])
@pytest.mark.parametrize("of", RIBOSOMAL)
def test_ribosomal_rna_of_another_kingdom_is_cautioned_about(kingdom, turn, of):
    origin = origin_of([], kingdom=kingdom)
    origin.add(SequenceRecord("c", turn("ACGT" * 9 + RIBOSOMAL[of] + "ACGT" * 9)))
    said = [line for line in origin.findings() if "ribosomal" in line]
    assert bool(said) == (of != (kingdom or "bacteria"))
    for line in said:
        assert line.startswith(f"caution: this file has ribosomal RNA of {of}, and the model is for")


def test_a_plastid_beside_a_genome_of_a_eukaryote_says_nothing():
    origin = origin_of([], kingdom="eukaryotes")
    for of in ("eukaryotes", "bacteria"):
        origin.add(SequenceRecord(of, RIBOSOMAL[of]))
    assert not [*origin.findings()]
    origin.add(SequenceRecord("archaea", RIBOSOMAL["archaea"]))
    assert "of archaea" in next(origin.findings())


@pytest.mark.parametrize("distance", [0.02, 0.04, 0.06])
def test_a_species_that_is_near_but_not_close_is_named(distance):
    said = findings({"E. coli": distance, "B. subtilis": 0.2}, ["E. coli", "B. subtilis"])
    near = [line for line in said if "nearest species" in line]
    assert bool(near) == (distance == 0.04)
    for line in near:
        assert "E. coli at a distance of 0.04" in line
        assert "is the median over species; if the genome is of it, give species='E. coli'" in line


def test_one_species_alone_has_no_median():
    assert not findings({"E. coli": 0.04}, ["E. coli"])


@pytest.mark.parametrize(("species", "cautioned"), [("B. subtilis", True), ("E. coli", False)])
def test_another_species_than_the_one_that_is_named(species, cautioned):
    said = findings({"E. coli": 0.01, "B. subtilis": 0.2}, ["E. coli", "B. subtilis"], species)
    text = (
        "caution: species='B. subtilis' is given, but this file is unlike it (B. subtilis at a distance of "
        "0.20) and nearer to E. coli at a distance of 0.01"
    )
    assert said == ([text] if cautioned else [])


@pytest.mark.parametrize(
    ("measured", "cautioned"), [(["E. coli"], True), (["E. coli", "B. subtilis"], False)]
)
def test_too_few_letters_do_not_promise_the_precision_of_the_one_species(measured, cautioned):
    origin = origin_of(measured, "region")
    origin._signature = SimpleNamespace(compare=lambda counts: [])
    list(origin.watch([SequenceRecord("r", "ACGT" * 9)]))
    said = [line for line in origin.findings() if "are too few to tell whether this is E. coli" in line]
    assert len(said) == cautioned
    assert not list(origin.findings("E. coli"))
