"""Where a genome is from, and cautions about a file."""

from dataclasses import replace
from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest
from Bio.Seq import Seq

from seqray.calibration.signature import ContextDistance, sketch_genome
from seqray.core.alphabet import DNA
from seqray.core.card_parts import CalibrationDomain
from seqray.core.errors import InputError
from seqray.core.records import SequenceRecord
from seqray.core.results import Prediction
from seqray.inference import origin as file_check
from seqray.inference.origin import FileCheck, Origin, choose_locator

RANDOM = np.random.default_rng(3)
GENOMES = {name: "".join(RANDOM.choice([*"ACGT"], 100_000)) for name in ("E. coli", "B. subtilis")}


@cache
def sketch_of(letters):
    return sketch_genome([letters])


def mutated(letters, share):
    """With this share of the letters changed."""
    codes = DNA.encode(letters)
    chosen = np.random.default_rng(5).random(len(codes)) < share
    return DNA.decode(np.where(chosen, (codes + 1) % 4, codes))


def origin_of(measured, held_out="species", kingdom=None, genomes=GENOMES):
    """For a locator that was measured on some species, with sketches of genomes."""
    expected = [SimpleNamespace(species=name, held_out=held_out) for name in measured]
    locator, model = SimpleNamespace(expected=expected, kingdom=kingdom), SimpleNamespace(contexts=())
    sketches = {name: sketch_of(letters) for name, letters in genomes.items()}
    domain = SimpleNamespace(genomes=sketches, signature=None, calibration=None)
    card = SimpleNamespace(model=model, locator=locator, domain=domain)
    return Origin(SimpleNamespace(card=card, context=None, is_locator=True, alphabet=DNA))


def findings(distances, measured, species=None, letters="", held_out="species"):
    """Of a file at these distances from species, for a locator that was measured on some."""
    origin = origin_of(measured, held_out)
    found = [ContextDistance(name, distance) for name, distance in distances.items()]
    origin._signature = SimpleNamespace(compare=lambda counts: found, is_mixture=lambda counts: False)
    list(origin.watch([SequenceRecord("r", letters)]))
    return origin, list(origin.findings(species))


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


@pytest.mark.parametrize(("share", "known"), [(0, True), (0.03, True), (0.1, False), (1, False)])
@pytest.mark.parametrize("held_out", ["region", "species"])
def test_a_species_is_recognized_by_its_words_alone(share, known, held_out):
    """Of 21 letters .97^21 = .53 of the words stay where 3 % of the letters change, and .9^21 = .11."""
    letters = str(Seq(mutated(GENOMES["E. coli"], share)).reverse_complement())
    origin, said = findings({"E. coli": 0.01}, [*GENOMES], letters=letters, held_out=held_out)
    assert origin.species == ("E. coli" if known else None)
    assert origin.is_foreign == (not known)
    assert bool(said) == (not known)
    if held_out == "region" and not known:
        assert said[0].startswith(
            "caution: no precision is stated: it was measured in B. subtilis, E. coli, "
        )
    for line in said if held_out == "species" else ():
        assert line.startswith("the nearest species that was measured is ")


def test_the_nearest_genome_has_to_be_one_that_was_measured():
    relative = mutated(GENOMES["E. coli"], 0.02)
    origin = origin_of(["E. coli"], "region", genomes=GENOMES | {"relative": relative})
    origin.add(SequenceRecord("r", relative))
    assert origin.species is None


@pytest.mark.parametrize(("species", "cautioned"), [("B. subtilis", True), ("E. coli", False)])
def test_another_species_than_the_one_that_is_named(species, cautioned):
    text = f"caution: species='{species}' is given, but "
    _, said = findings({"E. coli": 0.01, "B. subtilis": 0.2}, [*GENOMES], species)
    unlike = "this file is unlike it (B. subtilis at a distance of 0.20) and nearer to E. coli at"
    assert said == ([f"{text}{unlike} a distance of 0.01"] if cautioned else [])
    _, said = findings({}, [*GENOMES], species, GENOMES["E. coli"])
    assert said == ([text + "it shares 100% of its words with E. coli"] if cautioned else [])


def test_too_few_letters_do_not_promise_the_precision_of_the_one_species():
    part = GENOMES["E. coli"][:300]  # of 100,000, of which 2,000 words are kept: six of them
    origin, said = findings({}, ["E. coli"], letters=part, held_out="region")
    assert origin.is_foreign
    assert ["too short" in line for line in said] == [True]
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
        empty_sets=lambda *_: None, unclear_scores=lambda *_: None, has_few_calls=lambda *_: True
    )
    [line] = FileCheck(tiny_model)._score_cautions(held_out)  # pyright: ignore[reportArgumentType]
    assert line == (
        "the sites seem to lie at index 7 of the windows, not 12: shifted, 60 of 128 windows are called "
        "promoter, and 3 as they are; cut windows that begin 5 letters earlier"
    )


def test_alignments_have_no_windows_around_a_site(alignment_model):
    model = replace(alignment_model, card=replace(alignment_model.card, site=3))
    FileCheck(model).see([SimpleNamespace(id="a")])


def test_a_card_without_sketches_recognizes_nothing():
    origin = origin_of(["E. coli"], "region", genomes={})
    origin._signature = SimpleNamespace(compare=lambda counts: [ContextDistance("E. coli", 0.0)])
    origin._signature.is_mixture = lambda counts: False
    origin.add(SequenceRecord("r", GENOMES["E. coli"]))
    assert origin.species is None
    assert "no sketch of it" in next(origin.findings())
