"""What must hold for every network, every set of sequences and every sequence, drawn at random."""

import bz2
import functools
import gzip
import lzma
from collections import Counter
from itertools import combinations

import numpy as np
import torch
from hypothesis import given, settings, strategies as st
from torch import Tensor

from networks import random_network
from seqray.core.alphabet import (
    DNA,
    PROTEIN,
    RNA,
    dinucleotide_shuffle,
    reverse_complement,
    reverse_complement_codes,
)
from seqray.core.model_config import ModelConfig, StemConfig
from seqray.homology.kmers import kmer_groups, kmer_table, position_groups
from seqray.homology.split import grouped_folds
from seqray.io.records import read_fasta
from seqray.models.sequence import SequenceTransformer
from seqray.models.tokenizers import CharacterTokenizer, KmerTokenizer
from tables import bgzip

TOLERANCE = 1e-5
LONGEST = 70  # letters: on both sides of the length at which the operators of inference change

stems = st.sampled_from(
    [None, StemConfig(kernels=(3, 5), stride=2, depth=1), StemConfig(kernels=(9,), stride=5, depth=0)]
)
positions = st.sampled_from(["sinusoidal", "learned", "rotary"])
configs = st.builds(
    lambda stem, ends, **rest: ModelConfig(stem=stem, ends=0 if stem else ends, **rest),
    ends=st.sampled_from([0, 3]),
    d_model=st.sampled_from([8, 24]),
    heads=st.sampled_from([2, 4]),
    kv_heads=st.sampled_from([None, 1, 2]),
    layers=st.integers(1, 3),
    positions=positions,
    position_gain=st.sampled_from(["none", "shared"]),
    position_matrix=st.sampled_from(["none", "shared"]),
    composition=st.sampled_from([(), ("whole", "ends", "pairs")]),
    activation=st.sampled_from(["relu", "gelu"]),
    max_length=st.just(LONGEST),
    stem=stems,
)
lengths = st.lists(st.integers(1, LONGEST), min_size=1, max_size=6)
seeds = st.integers(0, 1000)


@functools.cache
def network(config: ModelConfig) -> SequenceTransformer:
    return random_network(config, seed=5).requires_grad_(False)


def draw(batch: int, letters: int, seed: int) -> Tensor:
    """Tokens (batch, 1 + letters), CLS first."""
    tokens = torch.randint(2, 8, (batch, 1 + letters), generator=torch.Generator().manual_seed(seed))
    tokens[:, 0] = 1
    return tokens


def assert_near(found: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(found, expected, rtol=0, atol=TOLERANCE)


@settings(max_examples=60)
@given(config=configs, lengths=lengths, seed=seeds, extra=st.integers(0, 9))
@torch.inference_mode()
def test_padding_and_neighbours_change_nothing(config, lengths, seed, extra):
    model = network(config)
    width = min(LONGEST, max(lengths) + extra)
    tokens = draw(len(lengths), width, seed)
    mask = torch.arange(1 + width) <= torch.tensor(lengths)[:, None]
    together = model(tokens, mask).logits
    for i, n in enumerate(lengths):
        assert_near(together[i : i + 1], model(tokens[i : i + 1, : 1 + n]).logits)


@settings(max_examples=60)
@given(config=configs, lengths=lengths, seed=seeds)
def test_inference_training_and_explicit_paths_agree(config, lengths, seed):
    """The operators of inference, those that record gradients, and attention by its formula."""
    model, tokens = network(config), draw(len(lengths), max(lengths), seed)
    mask = torch.arange(1 + max(lengths)) <= torch.tensor(lengths)[:, None]
    recorded = model(tokens, mask).logits
    with torch.inference_mode():
        assert_near(model(tokens, mask).logits, recorded)
    assert_near(model(tokens, mask, return_attention=True).logits, recorded)


unstemmed = st.builds(
    ModelConfig,
    d_model=st.just(24),
    heads=st.just(4),
    layers=st.integers(1, 2),
    positions=st.sampled_from(["sinusoidal", "rotary"]),
)


@settings(max_examples=40)
@given(config=unstemmed, letters=st.integers(1, 20), seed=seeds, data=st.data())
@torch.inference_mode()
def test_order_is_told_by_the_coordinates_alone(config, letters, seed, data):
    """Sites in any order, each with its coordinate, are the same set of sites."""
    model, tokens = network(config), draw(2, letters, seed)
    coordinates = torch.rand(2, 1 + letters, generator=torch.Generator().manual_seed(seed)) * 30
    order = [0, *(1 + i for i in data.draw(st.permutations(range(letters))))]  # CLS stays first
    expected = model(tokens, None, coordinates).logits
    assert_near(model(tokens[:, order], None, coordinates[:, order]).logits, expected)


@settings(max_examples=40)
@given(letters=st.integers(1, 20), seed=seeds, shift=st.floats(-100, 100, width=32))
@torch.inference_mode()
def test_rotary_answers_depend_on_distances_only(letters, seed, shift):
    model, tokens = network(ModelConfig(d_model=24, heads=4, positions="rotary")), draw(2, letters, seed)
    coordinates = torch.rand(2, 1 + letters, generator=torch.Generator().manual_seed(seed)) * 30
    expected = model(tokens, None, coordinates).logits
    torch.testing.assert_close(model(tokens, None, coordinates + shift).logits, expected, rtol=0, atol=2e-4)


sequence_sets = st.lists(st.text("ACGTN", min_size=0, max_size=24), min_size=1, max_size=12)
word_lengths = st.integers(3, 12)


def pairs(groups):
    """The pairs of examples that are together: a partition without its numbers."""
    return {(a, b) for a, b in combinations(range(len(groups)), 2) if groups[a] == groups[b]}


@settings(deadline=None, max_examples=60)
@given(sequence_sets, word_lengths, st.randoms(use_true_random=False))
def test_order_and_strand_of_the_sequences_do_not_matter(sequences, k, random):
    order = list(range(len(sequences)))
    random.shuffle(order)
    turned = [reverse_complement(sequences[i], DNA) if random.random() < 0.5 else sequences[i] for i in order]
    shuffled = kmer_groups(turned, k)
    restored = np.empty(len(order), dtype=int)
    restored[order] = shuffled
    assert pairs(restored) == pairs(kmer_groups(sequences, k))


@settings(deadline=None, max_examples=60)
@given(st.lists(st.text("ACGT", min_size=13, max_size=24), min_size=1, max_size=12), word_lengths)
def test_longer_words_only_divide_groups(sequences, k):
    assert pairs(kmer_groups(sequences, k + 1)) <= pairs(kmer_groups(sequences, k))


@settings(deadline=None, max_examples=60)
@given(sequence_sets, word_lengths)
def test_groups_are_numbered_by_first_appearance(sequences, k):
    groups = kmer_groups(sequences, k).tolist()
    first_seen = list(dict.fromkeys(groups))
    assert first_seen == list(range(len(first_seen)))


@settings(deadline=None, max_examples=40)
@given(st.lists(st.text("ACGT", min_size=6, max_size=20), min_size=6, max_size=20), st.integers(0, 10))
def test_folds_of_groups_never_leak(sequences, seed):
    groups = kmer_groups(sequences, 6)
    if groups.max() < 2:
        return
    labels = np.arange(len(sequences)) % 2
    folds = grouped_folds(labels, groups, 2, seed)
    one, other = (np.flatnonzero(folds == fold) for fold in (0, 1))
    assert not kmer_table(sequences, 6).sharing_across(one, other).any()


@settings(deadline=None, max_examples=100)
@given(
    st.lists(st.tuples(st.sampled_from(["a", "b"]), st.integers(0, 500)), min_size=1, max_size=30),
    st.integers(1, 200),
    st.integers(0, 90),
)
def test_near_neighbours_are_never_parted(sites, block, gap):
    contigs, positions = zip(*sites, strict=True)
    groups = position_groups(contigs, positions, block, gap)
    for a, b in combinations(range(len(sites)), 2):
        same_block = positions[a] // block == positions[b] // block
        if contigs[a] == contigs[b] and (abs(positions[a] - positions[b]) < gap or same_block):
            assert groups[a] == groups[b]
        if contigs[a] != contigs[b]:
            assert groups[a] != groups[b]


ALPHABET = st.sampled_from([DNA, RNA, PROTEIN])
CODES = st.lists(st.integers(0, 4), max_size=200).map(lambda codes: np.array(codes, dtype=np.uint8))


def text_of(letters: str, **sizes: int) -> st.SearchStrategy[str]:
    return st.text(st.sampled_from(letters), **sizes)


@given(ALPHABET.flatmap(lambda a: st.tuples(st.just(a), text_of(a.letters))))
def test_encoding_and_decoding_gives_the_sequence_back(case):
    alphabet, sequence = case
    assert alphabet.decode(alphabet.encode(sequence)) == sequence


@given(ALPHABET.flatmap(lambda a: st.tuples(st.just(a), text_of(a.letters + a.ambiguous))))
def test_ambiguous_letters_are_those_of_the_unknown_code(case):
    alphabet, sequence = case
    codes = alphabet.encode(sequence)
    ambiguous = sum(letter not in alphabet.letters for letter in sequence)
    assert ambiguous == np.count_nonzero(codes == alphabet.unknown)
    assert codes.shape == (len(sequence),)


@given(CODES)
def test_reverse_complement_of_codes_is_that_of_letters(codes):
    assert DNA.decode(reverse_complement_codes(codes)) == reverse_complement(DNA.decode(codes))
    assert reverse_complement_codes(reverse_complement_codes(codes)).tolist() == codes.tolist()


@given(text_of(DNA.letters, min_size=6), st.integers(1, 6))
def test_tokens_of_plain_letters_decode_to_them(sequence, k):
    tokenizer = KmerTokenizer(DNA, k)
    assert tokenizer.decode(tokenizer.encode(sequence)) == sequence


@given(text_of(DNA.letters + "N", min_size=6), st.integers(1, 6))
def test_decoded_words_may_lack_a_letter_but_never_invent_one(sequence, k):
    tokenizer = KmerTokenizer(DNA, k)
    decoded = tokenizer.decode(tokenizer.encode(sequence))
    assert len(decoded) == len(sequence)
    assert all(got in (letter, "N") for got, letter in zip(decoded, sequence, strict=True))


@given(CODES)
def test_words_of_one_letter_are_characters(codes):
    assert KmerTokenizer(DNA, 1).encode_codes(codes[:, None]).tolist() == (
        CharacterTokenizer(DNA).encode_codes(codes[:, None]).tolist()
    )


@given(CODES, st.integers(0, 2**32))
def test_shuffle_keeps_every_dinucleotide_and_both_ends(codes, seed):
    shuffled = dinucleotide_shuffle(codes, np.random.default_rng(seed))
    pairs, shuffled_pairs = (
        Counter(zip(c[:-1].tolist(), c[1:].tolist(), strict=True)) for c in (codes, shuffled)
    )
    assert shuffled_pairs == pairs
    assert shuffled[:1].tolist() == codes[:1].tolist()
    assert shuffled[-1:].tolist() == codes[-1:].tolist()


RECORDS = st.lists(
    st.tuples(st.text(st.sampled_from("ab1_|σ."), min_size=1, max_size=8), text_of("ACGTN", min_size=1)),
    min_size=1,
    max_size=8,
    unique_by=lambda record: record[0],
)


@settings(max_examples=150, deadline=None)
@given(
    records=RECORDS,
    width=st.integers(1, 100),
    line_end=st.sampled_from(["\n", "\r\n", "\r"]),
    last_line_end=st.booleans(),
    preamble=st.sampled_from(["", "; a comment", "# one\n\n;two\n", "\n"]),
    lower=st.booleans(),
    compress=st.sampled_from([bytes, gzip.compress, bgzip, bz2.compress, lzma.compress]),
)
def test_fasta_reads_the_same_however_it_is_written(
    tmp_path_factory, records, width, line_end, last_line_end, preamble, lower, compress
):
    lines = preamble.splitlines()
    for identifier, sequence in records:
        body = sequence.lower() if lower else sequence
        lines += [f">{identifier} text", *(body[i : i + width] for i in range(0, len(body), width))]
    text = line_end.join(lines) + (line_end if last_line_end else "")
    path = tmp_path_factory.getbasetemp() / "any.fa"
    path.write_bytes(compress(text.encode()))
    read = [(record.id, record.description, record.sequence) for record in read_fasta(path, DNA)]
    assert read == [(identifier, "text", sequence) for identifier, sequence in records]
