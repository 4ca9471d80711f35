"""Where a genome is from, and cautions about a file."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest
from Bio.Seq import Seq

from seqray.calibration.signature import ContextDistance
from seqray.core.alphabet import DNA
from seqray.core.card_parts import CalibrationDomain
from seqray.core.errors import InputError
from seqray.core.records import SequenceRecord
from seqray.core.results import Prediction
from seqray.inference import origin as file_check
from seqray.inference.origin import FileCheck, Origin, choose_locator


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


@pytest.mark.parametrize(
    ("of", "length", "expected"),
    [
        (["bacteria"], 0, "bacteria-genome"),
        (["archaea"], 0, "archaea-genome"),
        (["bacteria", "eukaryotes"], 0, "fungi-genome"),  # with its mitochondrion
        ([], 0, "no ribosomal RNA"),
        (["archaea", "bacteria"], 0, "ribosomal RNA of archaea and bacteria"),
        (["eukaryotes"], 60_000_000, "a genome of 60 Mb or more"),
    ],
)
def test_the_locator_of_a_kingdom_is_chosen(of, length, expected):
    texts = ["ACGT" * 9 + RIBOSOMAL[kingdom] for kingdom in of] + ["ACGT" + "N" * length]
    records = [SequenceRecord(str(i), text) for i, text in enumerate(texts)]
    if expected.endswith("-genome"):
        name, why = choose_locator(records)
        assert name == expected
        assert f"{name} is taken" in why
        return
    with pytest.raises(InputError, match=f"no model fits.*{expected}.*name one: bacteria-genome, "):
        choose_locator(records)


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


@pytest.mark.parametrize(("odd", "count", "told"), [(5, 99, True), (5, 100, False), (4, 10, False)])
def test_many_odd_records_are_told(tiny_model, odd, count, told):
    assert len(FileCheck(tiny_model)._out_of_domain(odd, count)) == told


def test_flags_as_common_as_in_a_later_calibration_are_no_caution(tiny_model):
    flags = {"out-of-domain": 0.1}
    domain = replace(tiny_model.card.domain, calibration=CalibrationDomain(flags))
    card = replace(tiny_model.card, domain=domain)
    check = FileCheck(replace(tiny_model, card=card))
    assert not check._out_of_domain(20, 100)
    [line] = check._out_of_domain(21, 100)
    assert "of which about 1 % are, and 10% of the data of its calibration;" in line


def test_few_lines_and_the_coverage_in_the_first(tiny_model, monkeypatch):
    known = replace(tiny_model.card, model=replace(tiny_model.card.model, contexts=("A", "B")))
    check = FileCheck(replace(tiny_model, card=known), coverage=0.9)
    rows = [Prediction(str(i), 3, "promoter", (0.5, 0.5), ("short", "out-of-domain")) for i in range(20)]
    check.see(predictions=rows)
    assert check.labels == {"promoter": 20}
    first, second = check.cautions()
    assert "out-of-domain" in first
    assert first.endswith("; coverage=0.9 can't be promised for this file")
    assert "whose context was known" in second
    monkeypatch.setattr(file_check, "MAX_CAUTIONS", 1)
    assert len(check.cautions()) == 1


def test_sets_without_the_context_are_cautioned(tiny_model):
    known = replace(tiny_model.card, model=replace(tiny_model.card.model, contexts=("A", "B")))
    model = replace(tiny_model, card=known)
    [line] = FileCheck(model, coverage=0.9).cautions()
    assert "were calibrated on records whose context was known" in line
    assert line.endswith("give context=...; coverage=0.9 can't be promised for this file")
    assert not FileCheck(model).cautions()
    assert not FileCheck(replace(model, context="A"), coverage=0.9).cautions()


def test_sites_that_lie_elsewhere_are_told(monkeypatch, tiny_model):
    found = SimpleNamespace(site=7, windows=128, before=3, after=60)
    monkeypatch.setattr(file_check, "find_shifted_site", lambda model, windows: found)
    held_out = SimpleNamespace(
        empty_sets=lambda *_: None,
        unclear_scores=lambda *_: None,
        has_few_calls=lambda *_: True,
    )
    [line] = FileCheck(tiny_model)._score_cautions(held_out)  # pyright: ignore[reportArgumentType]
    assert line == (
        "the sites seem to lie at index 7 of the windows, not 12: shifted, 60 of 128 windows are called "
        "promoter, and 3 as they are; cut windows that begin 5 letters earlier"
    )


def test_alignments_have_no_windows_around_a_site(alignment_model):
    model = replace(alignment_model, card=replace(alignment_model.card, site=3))
    FileCheck(model).see([SimpleNamespace(id="a")])
