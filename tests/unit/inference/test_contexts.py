"""Models that know contexts, such as species: the first token names one, and nothing else changes."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from networks import random_network
from seqray.cli.main import main
from seqray.core.alphabet import DNA
from seqray.core.card import Card
from seqray.core.errors import ConfigError
from seqray.core.model_config import ModelConfig, StemConfig
from seqray.core.records import SequenceRecord
from seqray.explanations.options import ExplainOptions
from seqray.explanations.sequences import explain_records
from seqray.inference.sequences import predict_records, score_codes
from seqray.modelfile.file import load_model, save_model
from seqray.modelfile.model import TrainedModel
from seqray.modelfile.networks import build_model
from seqray.models.tokenizers import CLS, context_index, make_tokenizer

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
    plain = build_model(replace(CONFIG, contexts=()))
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
    network = build_model(CONFIG)
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
