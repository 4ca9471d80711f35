"""Composition of sequences, and samples of the training data."""

from collections import Counter
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from Bio.Seq import Seq
from hypothesis import given, strategies as st

import seqray
from seqray.calibration import signature as module
from seqray.calibration.domain import fit_domain
from seqray.calibration.signature import (
    MAX_SPECIES_DISTANCE,
    MIN_WORDS,
    SAMPLE,
    SIZE,
    GenomeSketcher,
    KmerCounter,
    Signature,
    count_in_sketch,
    fit_signature,
    make_sketch,
    sketch_genome,
)
from seqray.core.alphabet import DNA, RNA, CodeStack, reverse_complement, stack_codes, stack_sequences
from seqray.core.card import Card
from seqray.core.card_parts import Sketch
from seqray.core.errors import ConfigError
from seqray.core.model_config import ModelConfig
from seqray.core.records import SequenceRecord
from seqray.core.serialization import from_mapping
from seqray.inference.origin import recognize_context
from seqray.modelfile.file import build_network, load_model, save_model
from tables import body, changed_model, facts, fasta, write

LETTERS = {"rich": (0.15, 0.35, 0.35, 0.15), "poor": (0.35, 0.15, 0.15, 0.35), "even": (0.25,) * 4}


def drawn(kind, count, length=81, seed=0):
    """Codes of independent letters (count, length)."""
    return np.random.default_rng(seed).choice(4, p=LETTERS[kind], size=(count, length)).astype(np.uint8)


def texts(codes):
    return [DNA.decode(row) for row in codes]


def tallied(sequences, alphabet=DNA):
    tally = KmerCounter(alphabet)
    for sequence in sequences:
        tally.add(sequence)
    return tally.counts


@given(st.lists(st.text("ACGTN", max_size=40), max_size=6))
def test_words_are_counted_as_by_hand(sequences):
    expected = Counter(
        min(word, reverse_complement(word))
        for text in sequences
        for word in (text[i : i + 4] for i in range(len(text) - 3))
        if "N" not in word
    )
    names = sorted({min(w, reverse_complement(w)) for w in map("".join, product("ACGT", repeat=4))})
    assert len(names) == SIZE
    assert tallied(sequences).tolist() == [expected[name] for name in names]


@given(st.text("ACGTN", max_size=200), st.integers(4, 50))
def test_pieces_and_strands_do_not_matter(text, chunk):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_CHUNK", chunk)
        pieces = tallied([text])
    assert pieces.tolist() == tallied([text]).tolist() == tallied([reverse_complement(text)]).tolist()
    assert tallied([text.replace("T", "U")], RNA).tolist() == pieces.tolist()


def fitted(*kinds, names=None, per=2000):
    codes = np.concatenate([drawn(kind, per, seed=i) for i, kind in enumerate(kinds)])
    contexts = np.repeat(np.array(names or kinds), per)
    return Signature(fit_signature(stack_codes(codes), np.zeros(len(codes)), contexts.tolist()))


def test_the_distance_is_that_of_the_shares_themselves():
    """Of independent letters the share of a word is the product of those of its letters."""
    p = {kind: np.array(shares) for kind, shares in LETTERS.items()}
    words = list(product(range(4), repeat=4))
    word = {kind: np.array([np.prod(shares[list(w)]) for w in words]) for kind, shares in p.items()}
    expected = np.abs(word["rich"] - word["poor"]).sum() / 2  # these shares are the same on both strands
    found = fitted("rich", "poor").compare(tallied(texts(drawn("poor", 2000, seed=9))))
    assert [likeness.context for likeness in found] == ["poor", "rich"]
    assert found[0].distance < 0.005
    assert found[1].distance == pytest.approx(expected, abs=0.02)
    assert [likeness.is_foreign for likeness in found] == [False, True]


@pytest.mark.parametrize("n", [200, 1000])
def test_chance_is_taken_off(n):
    """The mean over draws of the distance of shares from themselves is nought, by a simulation of its own."""
    rng = np.random.default_rng(3)
    shares = rng.dirichlet(np.full(SIZE, 5.0))
    words = n * 78
    apart = [np.abs(rng.multinomial(words, shares) / words - shares).sum() / 2 for _ in range(300)]
    assert module._sampling_distance(shares, words, 10**12) == pytest.approx(np.mean(apart), rel=0.02)


def test_any_mixture_of_the_classes_is_at_home():
    codes = np.concatenate([drawn("rich", 2000, seed=1), drawn("poor", 2000, seed=2)])
    signature = Signature(fit_signature(stack_codes(codes), np.repeat([0, 1], 2000), [None] * 4000))
    assert signature.contexts == (None,)
    for rich in (0, 300, 900):
        mixed = texts(np.concatenate([drawn("rich", rich, seed=5), drawn("poor", 900 - rich, seed=6)]))
        assert not signature.compare(tallied(mixed))[0].is_foreign
    pooled = Signature(fit_signature(stack_codes(codes), np.zeros(4000), [None] * 4000))
    assert pooled.compare(tallied(texts(drawn("rich", 900, seed=5))))[0].is_foreign


def test_contexts_alike_are_no_clear_home():
    codes = np.concatenate([drawn("rich", 2000), drawn("poor", 2000)])
    entries = fit_signature(stack_codes(codes), np.zeros(4000), np.repeat(["rich", "poor"], 2000).tolist())
    assert entries
    twice = Signature((*entries, replace(entries[1], context="another strain")))
    counts = tallied(texts(drawn("rich", 900, seed=5)))
    assert twice.nearest_context(counts) is None
    assert Signature(entries).nearest_context(counts) == "rich"


def test_few_words_tell_nothing():
    signature = fitted("rich", "poor")
    assert signature.compare(np.full(SIZE, (MIN_WORDS - 1) // SIZE)) == []
    few = drawn("rich", 50)
    assert fit_signature(stack_codes(few), np.zeros(50), [None] * 50) is None
    assert fit_signature(CodeStack(np.zeros(0, np.uint8), np.zeros(0, np.int64)), np.zeros(0), []) is None


def test_sequences_of_no_known_context_are_left_out():
    named = fitted("rich", "poor", names=("rich", "")).contexts
    assert named == ("rich",)


def test_two_genomes_in_one_file_are_a_mixture():
    signature = fitted("rich", "poor", "even")
    both = tallied(texts(np.concatenate([drawn("rich", 500, seed=5), drawn("poor", 500, seed=6)])))
    pair = signature.closest_pair(both)
    assert pair is not None
    assert sorted(one.context for one in pair) == ["poor", "rich"]
    assert pair[0].distance == pair[1].distance < 0.01
    skewed = np.random.default_rng(4).choice(4, p=(0.5, 0.1, 0.3, 0.1), size=(1000, 81)).astype(np.uint8)
    assert not signature.closest_pair(tallied(texts(skewed)))[0].is_close
    assert signature.closest_pair(np.zeros(SIZE, dtype=np.int64)) is None
    assert fitted("rich").closest_pair(both) is None


def test_all_contexts_in_one_file_are_a_blend():
    signature = fitted("rich", "poor", "even")
    parts = [drawn(kind, 500, seed=5 + i) for i, kind in enumerate(("rich", "poor", "even"))]
    assert signature.is_mixture(tallied(texts(np.concatenate(parts))))
    assert not any(signature.is_mixture(tallied(texts(part))) for part in parts)
    assert not signature.is_mixture(np.zeros(SIZE, dtype=np.int64))
    assert not fitted("rich", "poor").is_mixture(tallied(texts(np.concatenate(parts[:2]))))


# What people are told.

SPECIES = ("Rich in GC", "Poor in GC")


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """One model that knows two contexts, and one without contexts, trained on sequence rich in GC."""
    folder = tmp_path_factory.mktemp("models")
    codes = np.concatenate([drawn("rich", 500, seed=1), drawn("poor", 500, seed=2)])
    config = ModelConfig(d_model=8, heads=2, layers=1, max_length=81, contexts=SPECIES)
    names = {"classes": ("no", "yes"), "positive": "yes", "window": 81, "site": 40}
    for name, count, contexts in (("two", 1000, SPECIES), ("one", 500, ())):
        shape = replace(config, contexts=contexts)
        said = [SPECIES[i // 500] if contexts else None for i in range(count)]
        card = Card(name=name, **names, model=shape, domain=fit_domain(codes[:count], DNA, contexts=said))
        save_model(folder / f"{name}.safetensors", [build_network(shape)], card)
    return folder


@pytest.fixture
def told(run, models, tmp_path):
    """Predict or scan windows, and give what is said of the file."""

    def tell(*parts, model="two", verb="predict"):
        sequences = [text for part in parts for text in texts(part)]
        path = write(tmp_path / "in.fa", fasta({str(i): text for i, text in enumerate(sequences)}))
        path_of_model = model if isinstance(model, Path) else models / f"{model}.safetensors"

        def say(options=""):
            ended = run(f"{verb} -o o.tsv -m", path_of_model, path, options)
            return [line for line in ended.err.splitlines() if "this file is" in line]

        return say

    return tell


@pytest.mark.parametrize("verb", ["predict", "scan"])
@pytest.mark.parametrize(
    ("model", "kind", "options", "said"),
    [
        ("two", "rich", "", "this file is read as Rich in GC, which its first records are like; --context"),
        (
            "two",
            "rich",
            "--context none",
            "this file is like Rich in GC, 0% of the words of 4 bases differ; name",
        ),
        ("two", "rich", "--context Rich", None),
        ("two", "rich", "--context Poor", "caution: --context 'Poor in GC' is given, but this file is"),
        ("two", "even", "", "caution: this file is unlike any context that the model was trained on"),
        ("two", "even", "--context Rich", "caution: this file is unlike any context"),
        ("one", "rich", "", None),
        ("one", "even", "", "caution: this file is unlike what the model was trained on"),
    ],
)
def test_what_is_said_of_a_file(told, verb, model, kind, options, said):
    windows = drawn(kind, 3, 8100, 8) if verb == "scan" else drawn(kind, 300, seed=8)
    say = told(windows, model=model, verb=verb)
    options += " --null-mb 0 --stride 40" if verb == "scan" else ""
    lines = say(options)
    assert len(lines) == (said is not None)
    assert not lines or lines[0].startswith(f"seqray: {said}")
    assert say(f"{options} --quiet") == []


def test_a_mixture_of_two_contexts_is_told(told):
    [line] = told(drawn("rich", 300, seed=8), drawn("poor", 300, seed=9))()
    assert "this file is like a mixture of" in line
    assert all(name in line for name in SPECIES)


@pytest.mark.parametrize(("kind", "name"), [("rich", "Rich in GC"), ("poor", "Poor in GC")])
def test_a_recognized_file_is_read_as_if_its_context_were_named(models, told, tmp_path, kind, name):
    model = load_model(models / "two.safetensors")
    with torch.random.fork_rng():
        torch.manual_seed(1)
        for parameter in model.networks[0].parameters():  # before training contexts add nothing
            parameter.detach().normal_(0, 0.5)
    say = told(drawn(kind, 300, seed=8), model=changed_model(tmp_path / "m.safetensors", model, self_test={}))
    read = {}
    for context in ("auto", name, "none", ""):
        say(f"--context '{context}' --quiet" if context else "--quiet")
        text = (tmp_path / "o.tsv").read_text()
        read[context] = facts(text)["context"], body(text)
    assert read[""] == read["auto"] == (f"{name}, recognized by the first records", read[name][1])
    assert read[name][0] == f"{name}, as asked"
    assert read["none"][0] == "none"
    assert read["none"][1] != read["auto"][1]


def test_no_more_than_the_first_records_are_held(models):
    """1,235 windows of 81 letters hold 100,000; a pipe is not read to its end before the first row."""
    taken = 0

    def records():
        nonlocal taken
        for i, text in enumerate(texts(drawn("poor", 1500))):
            taken += 1
            yield SequenceRecord(str(i), text)

    model, read = recognize_context(load_model(models / "two.safetensors"), records())
    assert (model.context, taken) == ("Poor in GC", 1235)
    assert [record.id for record in read] == [str(i) for i in range(1500)]
    named = model.with_context("Rich")
    assert recognize_context(named, records())[0] is named


def test_a_file_that_is_not_what_its_first_records_are_like_is_told(told):
    first, second = told(drawn("rich", 1300, seed=8), drawn("poor", 3000, seed=9))()
    assert first.startswith("seqray: this file is read as Rich in GC, ")
    assert second.startswith("seqray: caution: ")


def test_a_neighbour_is_no_home(run, models, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "MAX_GENOME_DISTANCE", -1.0)
    path = write(tmp_path / "in.fa", fasta({str(i): t for i, t in enumerate(texts(drawn("rich", 300)))}))
    ended = run("predict -o o.tsv -m", models / "two.safetensors", path)
    assert "the nearest that the model was trained on is Rich in GC" in ended.err


def changed(models, path, **changes):
    """The model of two contexts with the signature of the second alone, which may be changed."""
    model = load_model(models / "two.safetensors")
    entries = tuple(replace(entry, **changes) for entry in model.card.domain.signature[1:])
    return changed_model(path, model, domain=replace(model.card.domain, signature=entries))


def test_a_context_without_a_signature_is_neither_judged_nor_advised(models, told, tmp_path):
    model = changed(models, tmp_path / "alone.safetensors")
    assert told(drawn("rich", 300, seed=8), model=model)("--context Poor") == []  # it can't be compared
    [line] = told(drawn("even", 300, seed=8), model=model)()
    assert "unlike any context with a signature that the model was" in line
    nameless = changed(models, tmp_path / "none.safetensors", context=None)
    assert told(drawn("rich", 300, seed=8), model=nameless)() == []


def test_the_library_compares_too(models):
    found = seqray.origin(models / "two.safetensors", texts(drawn("poor", 300, seed=8)))
    assert found.context.tolist() == ["Poor in GC", "Rich in GC"]
    assert found.foreign.tolist() == [False, True]
    assert found.distance[0] < MAX_SPECIES_DISTANCE < found.distance[1]
    nothing = seqray.origin(load_model(models / "two.safetensors"), ["ACGT" * 20])
    assert isinstance(nothing, pd.DataFrame)
    assert nothing.empty
    assert list(nothing.columns) == ["context", "distance", "foreign"]


def test_windows_of_a_stack_and_of_texts_count_alike():
    codes = drawn("rich", 30)
    direct = module.strandless_counts(stack_sequences(texts(codes), DNA))
    assert direct.tolist() == tallied(texts(codes)).tolist()


def words(first: int, last: int) -> list[str]:
    return [f"sequence {i}" for i in range(first, last)]


def test_of_few_training_sequences_every_one_is_recognized():
    count = count_in_sketch(make_sketch(words(0, SAMPLE) * 2), words(SAMPLE - 60, SAMPLE + 140))
    assert (count.known, count.checked) == (60, 200)


def test_of_many_a_tenth_shows_the_share_of_them():
    sample = make_sketch(words(0, 10 * SAMPLE))
    assert len(sample.hashes) < 6000
    count = count_in_sketch(sample, words(8 * SAMPLE, 14 * SAMPLE))  # a third of them are training sequences
    assert abs(count.checked - 600) < 5 * 600**0.5
    assert abs(count.known - 200) < 5 * 200**0.5
    assert count_in_sketch(sample, words(10 * SAMPLE, 14 * SAMPLE)).known == 0
    whole = count_in_sketch(sample, words(0, 10 * SAMPLE))
    assert whole.known == whole.checked == SAMPLE


@pytest.mark.parametrize(
    "facts",
    [
        {"limit": 3, "hashes": "?"},
        {"limit": 3, "hashes": "AAA="},
        {"limit": 3, "hashes": "AwAAAA=="},
        {"limit": "3", "hashes": ""},
    ],
)
def test_a_damaged_sample_is_refused(facts):
    with pytest.raises(ConfigError):
        from_mapping(Sketch, facts)


def test_the_sketch_of_a_genome_is_the_same_for_strands_orders_and_pieces():
    rng = np.random.default_rng(4)
    first, second = ("".join(rng.choice([*"ACGT"], size)) for size in (300_000, 5_000))
    sketch = sketch_genome([first, second])
    assert sketch == sketch_genome([str(Seq(second).reverse_complement()), first.lower()])
    shared = {text[i : i + 21] for text in (first, second) for i in range(len(text) - 20)}
    shared = {min(word, str(Seq(word).reverse_complement())) for word in shared}
    assert len(sketch.numbers) == 2000
    assert sketch.limit / 2**32 == pytest.approx(2000 / len(shared), rel=0.1)


def test_words_do_not_cross_contigs_or_unknown_letters():
    left, right = "ACGTTGCATGTCGCATGATG", "TTGACGCTAGGCTAACGTGC"
    assert not len(sketch_genome([left, right, f"{left}N{right}"]).numbers)
    assert len(sketch_genome([left + right]).numbers) == 20


def test_a_file_of_any_size_is_compared_by_its_lowest_hashes():
    rng = np.random.default_rng(6)
    letters = "".join(rng.choice([*"ACGT"], 50_000))
    sketcher = GenomeSketcher(DNA, most=500)
    sketcher.add(letters)
    [(name, count)] = sketcher.compare({"own": sketch_genome([letters])})
    assert (name, count.known, count.checked, count.share) == ("own", 500, 500, 1)
