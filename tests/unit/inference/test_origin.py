"""Where a genome or a record is from, sites that lie elsewhere, and cautions about a file."""

from dataclasses import replace
from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from Bio.Seq import Seq

from networks import random_network
from seqray.calibration.signature import ContextDistance, sketch_genome
from seqray.cli.main import main
from seqray.core.alphabet import DNA
from seqray.core.card import Card
from seqray.core.card_parts import CalibrationDomain
from seqray.core.errors import ConfigError, InputError
from seqray.core.model_config import ModelConfig, StemConfig
from seqray.core.records import SequenceRecord
from seqray.core.results import Prediction
from seqray.explanations.options import ExplainOptions
from seqray.explanations.sequences import explain_records
from seqray.inference import origin as file_check, origin as site_place
from seqray.inference.origin import FileCheck, Origin, choose_locator, find_shifted_site
from seqray.inference.sequences import predict_records, score_codes
from seqray.modelfile.file import build_network, load_model, save_model
from seqray.modelfile.model import TrainedModel
from seqray.models.tokenizers import CLS, context_index, make_tokenizer

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
        unlike = "caution: this file has no ribosomal RNA, and the model knows no genome like it: with "
        assert line.startswith("the nearest species that was measured is " if share < 1 else unlike)


@pytest.mark.parametrize(
    ("share", "length", "told"),  # of 100,000 bases 2,000 words are kept, so 5,000 bases have about 100
    [
        (0.1, 100_000, "which shares 1"),
        (0.1, 2_000, "too short to compare it with the species that were measured: "),
        (1, 100_000, "no species that was measured shares 5% of its words of 21 bases: "),
    ],
)
def test_a_share_of_words_is_told_if_a_hundred_can_be_compared(share, length, told):
    letters = RIBOSOMAL["bacteria"] + mutated(GENOMES["E. coli"], share)[:length]
    _, [line] = findings({"E. coli": 0.01}, [*GENOMES], letters=letters)
    assert told in line
    assert line.endswith("give species='E. coli'") == ("which shares 1" in told)
    assert "precision to expect is the median over species" in line


def test_the_model_that_knows_a_genome_is_named(monkeypatch):
    yeast = "".join(RANDOM.choice([*"ACGT"], 100_000))
    others = {"S. cerevisiae": ("fungi-genome", sketch_of(yeast))}
    monkeypatch.setattr(file_check, "_genomes_of_models", lambda: others)
    _, said = findings({"E. coli": 0.06}, [*GENOMES], letters=mutated(yeast, 0.02)[:20_000])
    what = f"caution: this file shares words of 21 bases with {next(iter(others))}, so take fungi-genome; "
    assert said == [f"{what}precision and trust do not hold for these calls"]


@pytest.mark.parametrize(
    ("length", "may_be"), [(499_000, "0.5 Mb it may be a virus"), (510_000, "0.51 Mb it may be a draft")]
)
def test_without_ribosomal_rna_the_length_tells_what_a_file_may_be(length, may_be):
    letters = "".join(RANDOM.choice([*"ACGT"], length))
    _, [line] = findings({"E. coli": 0.06}, [*GENOMES], letters=letters)
    assert f"with {may_be}" in line


def test_a_genome_unlike_all_others_is_told_how_unlike():
    letters = RIBOSOMAL["bacteria"] + "".join(RANDOM.choice([*"ACGT"], 50_000))
    _, [line] = findings({"E. coli": 0.08}, [*GENOMES], letters=letters)
    assert "nearest is E. coli, 8% of the words of 4 bases differ, and within a species at most 5%: " in line


def test_the_nearest_genome_has_to_be_one_that_was_measured():
    relative = mutated(GENOMES["E. coli"], 0.02)
    origin = origin_of(["E. coli"], "region", genomes=GENOMES | {"relative": relative})
    origin.add(SequenceRecord("r", relative))
    assert origin.species is None


@pytest.mark.parametrize(("species", "cautioned"), [("B. subtilis", True), ("E. coli", False)])
def test_another_species_than_the_one_that_is_named(species, cautioned):
    text = f"caution: species='{species}' is given, but "
    _, said = findings({"E. coli": 0.01, "B. subtilis": 0.2}, [*GENOMES], species)
    differ = "of the words of 4 bases differ"
    unlike = f"this file is unlike it (B. subtilis, 20% {differ}) and nearer to E. coli, 1% {differ}"
    assert said == ([f"{text}{unlike}"] if cautioned else [])
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
    monkeypatch.setattr(file_check, "find_shifted_site", lambda *_: None)
    held_out.unclear_scores = lambda *_: 0.14
    [line] = FileCheck(tiny_model)._score_cautions(held_out)  # pyright: ignore[reportArgumentType]
    assert "by 14% of the records" in line
    assert all(f"'{name}'" in line for name in tiny_model.card.classes)


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


SPECIES = ("Bacillus subtilis 168", "Escherichia coli K-12", "Escherichia fergusonii")
CONFIG = ModelConfig(
    d_model=8, heads=2, layers=2, max_length=24, stem=StemConfig(kernels=(3,), stride=2), contexts=SPECIES
)


@pytest.fixture(scope="module")
def model_file(tmp_path_factory):
    network = random_network(CONFIG, 3, noise=0.5)
    card = Card(name="ctx", classes=("no", "yes"), positive="yes", window=24, model=CONFIG, prevalence=0.5)
    path = tmp_path_factory.mktemp("m") / "ctx.safetensors"
    save_model(path, [network], card)
    return path


@pytest.fixture(scope="module")
def model(model_file):
    return load_model(model_file)


def random_codes(count=5, length=24):
    return np.random.default_rng(0).integers(0, 4, (count, length)).astype(np.uint8)


def test_the_first_token_names_the_context():
    codes = DNA.encode("ACGT")
    plain, second = make_tokenizer(CONFIG), make_tokenizer(CONFIG, SPECIES[1])
    assert plain.encode_codes(codes).tolist() == [CLS, 4, 5, 6, 7]
    assert second.encode_codes(codes).tolist() == [plain.vocab_size + 1, 4, 5, 6, 7]
    assert second.decode(second.encode_codes(codes)) == "ACGT"
    words = replace(CONFIG, tokenizer="kmer", k=3, stem=None)
    tokenizer = make_tokenizer(words, SPECIES[2])
    assert tokenizer.encode("ACGT")[0] == tokenizer.vocab_size + 2
    assert tokenizer.decode(tokenizer.encode("ACGTT")) == "ACGTT"


@pytest.mark.parametrize(
    ("name", "index"), [("Escherichia coli K-12", 1), ("bacillus", 0), ("ESCHERICHIA C", 1)]
)
def test_a_context_is_found_by_the_beginning_of_its_name(name, index):
    assert context_index(CONFIG, name) == index


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("Escherichia", "may be Escherichia coli K-12, Escherichia fergusonii; give more of its name"),
        ("Escherischia coli", "unknown context 'Escherischia coli'; did you mean 'Escherichia coli K-12'"),
        ("", "unknown context ''"),
        ("Homo sapiens", "unknown context 'Homo sapiens'"),
    ],
)
def test_what_is_not_found_is_said(name, message):
    with pytest.raises(ConfigError) as error:
        context_index(CONFIG, name)
    assert message in str(error.value)


def test_a_model_without_contexts_says_so():
    with pytest.raises(ConfigError, match="the model has no contexts"):
        context_index(replace(CONFIG, contexts=()), "Escherichia coli")
    for names in (("a", "a"), ("a", "")):
        with pytest.raises(ConfigError, match="contexts"):
            replace(CONFIG, contexts=names)


def test_the_vector_of_the_context_is_added_to_every_token(model):
    """By hand: a network without contexts, whose CLS and stem bias carry the vector, answers alike."""
    network = model.networks[0]
    plain = build_network(replace(CONFIG, contexts=()))
    state = {k: v.clone() for k, v in network.state_dict().items() if k != "contexts"}
    plain.load_state_dict(state)
    plain.eval()
    vector = network.contexts[1]
    tokens = torch.from_numpy(model.with_context(SPECIES[1]).tokenizer.encode_codes(random_codes()))
    embed = plain.embed
    plain.embed = lambda *a: (embed(*a)[0] + vector, *embed(*a)[1:])
    bare = tokens.clone()
    bare[:, 0] = CLS
    with torch.no_grad():
        torch.testing.assert_close(network(tokens).logits, plain(bare).logits, atol=1e-5, rtol=1e-5)


def test_without_a_context_the_table_plays_no_part(model):
    network = build_network(CONFIG)
    network.load_state_dict(model.networks[0].state_dict())
    with torch.no_grad():
        network.contexts.add_(5.0)
    other = TrainedModel(model.card, (network,))
    codes = random_codes()
    np.testing.assert_array_equal(score_codes(model, codes), score_codes(other, codes))
    known = score_codes(model.with_context("Bacillus"), codes)
    assert np.abs(known - score_codes(model, codes)).max() > 1e-3


def test_a_file_keeps_its_contexts_and_tests_them(model, model_file, tmp_path):
    assert model.card.model.contexts == SPECIES
    assert model.card.self_test["contexts"] == [None, None, None, None, SPECIES[2]]
    assert model.with_context("bacillus").with_context(None).context is None
    again = tmp_path / "again.safetensors"
    save_model(again, model.networks, model.card)
    assert again.read_bytes() == model_file.read_bytes()


def test_explanations_are_of_the_answer_in_the_context(model):
    """The effects of all substitutions, added to the log-odds, are the log-odds of the mutants there."""
    named = model.with_context("bacillus")
    [record] = [SequenceRecord("r", "ACGTTGCATTACGGATTACAGGTA")]
    [e] = explain_records(named, [record], ExplainOptions(methods=("ism",), shuffles=0))
    mutant = SequenceRecord("m", "T" + record.sequence[1:])
    before, after = (p.probabilities[1] for p in predict_records(named, [record, mutant]))
    odds = np.log(after / (1 - after)) - np.log(before / (1 - before))
    assert e.effects[0, 3] == pytest.approx(odds, abs=1e-4)


def test_the_command_line_takes_a_context(model_file, tmp_path, capsys):
    fasta = tmp_path / "x.fa"
    fasta.write_text(">a\nACGTTGCATTACGGATTACAGGTA\n")
    rows = {}
    for words in ((), ("--context", "bacillus"), ("--context", "Bacillus subtilis 168")):
        assert main(["predict", str(fasta), "--model", str(model_file), *words]) == 0
        rows[words] = capsys.readouterr().out.splitlines()[-1]
    assert len({rows[()], rows["--context", "bacillus"]}) == 2
    assert len(set(rows.values())) == 2
    assert main(["predict", str(fasta), "--model", str(model_file), "--context", "Escherichia"]) == 2
    assert "may be Escherichia coli K-12" in capsys.readouterr().err
    for verb in ("scan", "explain"):
        out = tmp_path / f"{verb}.tsv"
        words = [verb, str(fasta), "--model", str(model_file), "--context", "bacillus", "--out", str(out)]
        assert main([*words, *(["--no-check"] if verb == "explain" else [])]) == 0


WIDTH, SITE, WORD = 60, 30, np.array([3, 0, 3, 0, 0, 3, 2, 1])


@pytest.fixture
def shifted_model(monkeypatch):
    """A model that calls windows with a word at its site, and some others."""

    def score(shifted_model, rows, batch_size, precision):
        found = [(row[SITE : SITE + len(WORD)] == WORD).all() for row in rows]
        p = np.where(found, 0.9, 0.1 + 0.1 * np.array([row[0] for row in rows]) / 3)
        return np.stack((1 - p, p), axis=1)

    monkeypatch.setattr("seqray.inference.sequences.score_ragged", score)
    card = SimpleNamespace(window=WIDTH, site=SITE, positive_index=1, threshold=0.5)
    return SimpleNamespace(card=card, is_locator=False)


def windows(site, count=200, share=0.4, seed=0):
    rng = np.random.default_rng(seed)
    rows = rng.integers(0, 4, (count, WIDTH)).astype(np.uint8)
    rows[: round(share * count), site : site + len(WORD)] = WORD
    return list(rows)


@pytest.mark.parametrize("site", [18, 29, 37, 45])
def test_the_place_is_found(shifted_model, site, monkeypatch):
    monkeypatch.setattr(site_place, "STEP", 1)  # the word has no neighbors
    found = find_shifted_site(shifted_model, windows(site))
    assert found is not None
    assert (found.site, found.windows, found.before) == (site, 128, 0)
    assert found.after == pytest.approx(0.4 * 128, abs=15)


@pytest.mark.parametrize("rows", [windows(SITE), windows(0, share=0), windows(37, count=49)])
def test_nothing_is_found_where_nothing_is(shifted_model, rows):
    assert find_shifted_site(shifted_model, rows) is None


def test_records_of_other_lengths_and_models_without_a_site_are_left_alone(shifted_model):
    assert find_shifted_site(shifted_model, [row[:-1] for row in windows(35)]) is None
    shifted_model.card.site = None
    assert find_shifted_site(shifted_model, windows(35)) is None
