"""Expected false calls: intervals from tables, thresholds by hand, a motif whose rate is known on paper."""

from collections import Counter

import numpy as np
import pytest

from seqray.core.alphabet import DNA
from seqray.core.records import Intervals
from seqray.genome.genes import Gene
from seqray.scanning.options import ScanOptions
from seqray.scanning.results import NullScores, poisson_interval
from seqray.scanning.scan import BLOCK_LETTERS, MAX_COPIES, BlockSampler, find_peaks
from seqray.scanning.scorers import WindowScorer


@pytest.mark.parametrize(
    ("count", "low", "high"),  # Garwood's limits as printed in tables of the Poisson distribution
    [(0, 0.0, 3.689), (1, 0.0253, 5.572), (3, 0.619, 8.767), (10, 4.795, 18.39), (100, 81.36, 121.6)],
)
def test_poisson_interval(count, low, high):
    assert poisson_interval(count) == pytest.approx((low, high), rel=1e-3)


def test_rates_of_known_scores():
    null = NullScores(np.array([0.9, 0.5, 0.7, 0.9]), positions=500_000)
    rate = null.at(0.7, positions=2_000_000)
    assert (rate.null_calls, rate.null_mb, rate.per_mb, rate.expected) == (3, 0.5, 6.0, 12.0)
    assert (rate.low, rate.high) == pytest.approx((0.619 / 0.5, 8.767 / 0.5), rel=1e-3)
    assert rate.expected_interval == pytest.approx((0.619 * 4, 8.767 * 4), rel=1e-3)


def test_threshold_for_an_fdr_by_hand():
    # Equal lengths, so counts compare directly, the null's with one added. At 0.2: (3+1)/8; 0.4: (2+1)/7;
    # 0.5 to 0.8: (1+1)/6 to 5, 4, 3; 0.9: (0+1)/2.
    null = NullScores(np.array([0.2, 0.45, 0.85]), positions=1000)
    scores = np.array([0.2, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95])
    assert null.threshold_for(0.5, scores, 1000) == 0.2
    assert null.threshold_for(0.43, scores, 1000) == 0.4
    assert null.threshold_for(0.34, scores, 1000) == 0.5
    assert null.threshold_for(0.3, scores, 1000) is None
    assert null.threshold_for(0.3, scores, 500) == 0.2
    assert null.threshold_for(0.5, np.empty(0), 1000) is None


def blocks_of(sampler):
    return [block for block, _ in sampler.shuffled()]


def whole(codes):
    return Intervals.merge([(0, len(codes))])


def iid(length, seed=1):
    return np.random.default_rng(seed).integers(0, 4, length).astype(np.uint8)


def pairs(codes):
    return Counter(zip(codes[:-1].tolist(), codes[1:].tolist(), strict=True))


def test_a_short_input_is_shuffled_several_times_and_keeps_its_dinucleotides():
    codes = iid(3000)
    sampler = BlockSampler(1_000_000, window=81, unknown=4, seed=0)
    sampler.offer(codes, whole(codes))
    shuffled = blocks_of(sampler)
    assert len(shuffled) == MAX_COPIES
    assert all(pairs(block) == pairs(codes) for block in shuffled)
    assert len({block.tobytes() for block in shuffled} | {codes.tobytes()}) == MAX_COPIES + 1


def test_no_more_letters_than_allowed_are_shuffled():
    codes = iid(10 * BLOCK_LETTERS)
    sampler = BlockSampler(3 * BLOCK_LETTERS + 10, window=81, unknown=4, seed=0)
    sampler.offer(codes, whole(codes))
    assert [len(block) for block in blocks_of(sampler)] == [BLOCK_LETTERS] * 3


def test_every_contig_is_as_likely_to_be_drawn():
    # Contigs are told apart by their only letter. 3 of 12 are held, each with chance 1/4: over 400 seeds
    # a contig comes 100 times, standard deviation sqrt(400 / 4 * 3 / 4) = 8.7.
    counts = Counter()
    for seed in range(400):
        sampler = BlockSampler(300, window=10, unknown=200, seed=seed)
        for letter in range(12):
            codes = np.full(100, letter, dtype=np.uint8)
            sampler.offer(codes, whole(codes))
        counts.update(int(block[0]) for block in blocks_of(sampler))
    assert set(counts) == set(range(12))
    assert all(abs(count - 100) < 4.5 * 8.7 for count in counts.values())


def test_ambiguous_and_masked_letters_and_other_parts_are_left_out():
    codes = np.repeat(np.array([0, 1, 4, 2, 3], dtype=np.uint8), 50)
    sampler = BlockSampler(1000, window=10, unknown=4, seed=0)
    sampler.offer(codes, Intervals.merge([(0, 100), (120, 250)]), Intervals.merge([(40, 60), (230, 250)]))
    first, second = blocks_of(sampler)[:2]
    assert Counter(first.tolist()) == {0: 40, 1: 40}
    assert Counter(second.tolist()) == {2: 50, 3: 30}


def test_the_rate_of_an_exact_motif_is_that_of_paper():
    # ACGTT doesn't overlap itself or its reverse complement's copies on the same strand, so in random
    # sequence each position of each strand holds it with chance 1/4^5: 2 * 976.6 calls per Mb. The null
    # holds 0.4 Mb, so 781 calls with a standard deviation of 28.
    motif = DNA.encode("ACGTT")

    def score(codes):
        return (codes == motif).all(axis=1).astype(float)

    options = ScanOptions(stride=1, min_distance=1)
    model = {"window": 5, "site": 0, "threshold": 0.5, "label": "x", "alphabet": DNA}
    scorer = WindowScorer(options, score=score, **model)
    codes = iid(400_000, seed=11)
    sampler = BlockSampler(400_000, window=5, unknown=4, seed=5)
    sampler.offer(codes, whole(codes))
    scores, positions = [], 0
    for block, _ in sampler.shuffled():
        windows = scorer.open(block)
        whole_block = range(windows.points)
        scores += [find_peaks(scorer, windows, strand, whole_block, 1.0)[2].scores for strand in "+-"]
        positions += len(block) - 4
    rate = NullScores(np.concatenate(scores), positions).at(0.5, positions=1_000_000)
    expected = 2 * 1e6 / 4**5
    assert abs(rate.per_mb - expected) < 4 * np.sqrt(expected / rate.null_mb)
    assert rate.low < expected < rate.high


def test_genes_stay_where_letters_between_them_are_shuffled():
    rng = np.random.default_rng(3)
    codes = rng.integers(0, 4, 3000).astype(np.uint8)
    codes[2000:2010] = 4
    genes = (Gene(300, 900, "+", "a"), Gene(850, 1200, "-", "b"), Gene(2800, 3000, "+", "c"))
    sampler = BlockSampler(3000, window=1, unknown=4, seed=1)
    sampler.offer(codes, Intervals.merge([(0, 3000)]), genes=genes)
    [(shuffled, own)] = sampler.shuffled()
    assert own == genes
    kept = [slice(300, 1200), slice(2000, 2010), slice(2800, 3000)]
    between = [slice(0, 300), slice(1200, 2000), slice(2010, 2800)]
    assert all((shuffled[part] == codes[part]).all() for part in kept)
    for part in between:
        assert (shuffled[part] != codes[part]).any()
        pairs = [np.bincount(4 * c[part][:-1] + c[part][1:], minlength=16) for c in (shuffled, codes)]
        assert (pairs[0] == pairs[1]).all()


def test_a_gene_across_the_origin_is_also_at_the_begin_of_its_contig():
    ring = Gene(290, 320, "+", "ring")  # of 300 letters: the last 10 and the first 20
    sampler = BlockSampler(200, window=10, unknown=4, seed=0)
    sampler.offer(iid(300), Intervals.merge([(0, 15)]), genes=(ring,))
    [(_, _, _, genes)] = sampler._held
    assert genes is not None
    [gene] = genes
    assert (gene.start, gene.end, gene.partial_start, gene.partial_end) == (2, 15, True, True)
