"""What must hold for every set of sequences: groups depend on content alone."""

from itertools import combinations

import numpy as np
from hypothesis import given, settings, strategies as st

from seqray.core.alphabet import DNA, reverse_complement
from seqray.homology.kmers import kmer_groups, kmer_table, position_groups
from seqray.homology.split import grouped_folds

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
