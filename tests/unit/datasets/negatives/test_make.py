"""Positives in, negatives out: counts, names, groups and places, each checked by other means."""

import re
from collections import Counter
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, strategies as st

from seqray.core.alphabet import DNA, PROTEIN, RNA, reverse_complement
from seqray.core.records import Intervals, LabeledSequence, SequenceRecord
from seqray.datasets.negatives.genome import GeneIntervals, GenomeContext, JoinedGenome, near_starts
from seqray.datasets.negatives.make import Member, assign_groups, assign_recipes, make_negatives
from seqray.datasets.negatives.recipes import NegativeOptions, allot, parse_mix
from seqray.io.lines import Feature, Part
from tables import letters as random_letters

WINDOW_ID = re.compile(r"(\w+):(chr\d):(\d+)-(\d+):([+-])")
DISTANCE = 100


TEXTS = {"chr1": random_letters(40_000, 1), "chr2": random_letters(10_000, 2)}
# A gene of 1,400 letters every 2,000, strands ++-- in turn, so that every fourth gap is convergent.
GENES = [
    Feature(contig, kind, (Part(start, start + 1400, "++--"[(start // 2000) % 4]),))
    for contig, text in TEXTS.items()
    for start in range(300, len(text), 2000)
    for kind in ("gene", "CDS")
]


def positives(n: int = 40) -> list[LabeledSequence]:
    """Windows of 61 letters upstream of genes, on both strands."""
    found = []
    for i in range(n):
        contig = "chr2" if i % 8 == 7 else "chr1"
        start = 200 + (i * 977) % (len(TEXTS[contig]) - 300)
        letters = TEXTS[contig][start : start + 61]
        found.append(LabeledSequence(letters if i % 2 else reverse_complement(letters), "promoter", f"p{i}"))
    return found


@pytest.fixture(scope="module")
def ground() -> GenomeContext:
    genome = JoinedGenome.of([SequenceRecord(name, text) for name, text in TEXTS.items()], DNA)
    near = near_starts([g for g in GENES if g.kind == "gene"], genome, DISTANCE)
    return GenomeContext(genome, GeneIntervals.of(GENES, genome), near)


def options(*recipes: str, **settings) -> NegativeOptions:
    return NegativeOptions(parse_mix(recipes), **settings)


def places(negatives):
    """Recipe, contig, start, end, strand of each window, from its id."""
    for example in negatives:
        recipe, contig, start, end, strand = WINDOW_ID.fullmatch(example.id).groups()
        yield example, recipe, contig, int(start), int(end), strand


def test_ids_say_where_the_letters_stand(ground):
    made = make_negatives(positives(), options("genome", "coding", "antisense"), DNA, ground)
    assert len(made.negatives) == 40
    for example, _, contig, start, end, strand in places(made.negatives):
        cut = TEXTS[contig][start:end]
        backwards = "".join({"A": "T", "C": "G", "G": "C", "T": "A"}[letter] for letter in reversed(cut))
        assert example.sequence == (cut if strand == "+" else backwards)
        assert example.label == "background"


def test_no_window_touches_a_positive_a_start_or_another_window(ground):
    given = positives()
    made = make_negatives(given, options("genome", ratio=Fraction(3)), DNA, ground)
    used = Counter()
    for _, _, contig, start, end, _ in places(made.negatives):
        used.update((contig, i) for i in range(start, end))
    taken = set()
    for example in given:
        for contig, text in TEXTS.items():
            for letters in (example.sequence, reverse_complement(example.sequence)):
                at = text.find(letters)
                taken |= {(contig, i) for i in range(at, at + 61) if at >= 0}
    assert len(taken) > 40 * 50
    near = set()
    for gene in GENES:
        first = gene.start if gene.strand == "+" else gene.end - 1
        near |= {(gene.contig, i) for i in range(first - DISTANCE, first + DISTANCE + 1)}
    assert max(used.values()) == 1
    assert not set(used) & taken
    assert not set(used) & near
    assert made.placed == 40


def test_recipes_lie_where_they_say(ground):
    recipes = ("coding", "antisense", "convergent")
    made = make_negatives(positives(), options(*recipes, gc_bins=0), DNA, ground)
    kinds = Counter()
    coding = [g for g in GENES if g.kind == "CDS"]
    for _, recipe, contig, start, end, strand in places(made.negatives):
        kinds[recipe] += 1
        holding = [g.strand for g in coding if g.contig == contig and g.start <= start and end <= g.end]
        if recipe == "coding":
            assert holding == [strand]
        elif recipe == "antisense":
            assert holding == ["-" if strand == "+" else "+"]
        else:
            left = max((g for g in coding if g.contig == contig and g.end <= start), key=lambda g: g.end)
            right = min((g for g in coding if g.contig == contig and g.start >= end), key=lambda g: g.start)
            assert (left.strand, right.strand) == ("+", "-")
    assert kinds == {"coding": 14, "antisense": 13, "convergent": 13}


def test_counts_follow_shares_and_every_positive_serves_equally(ground):
    mix = ("shuffle=0.5", "substitution=0.3", "genome=0.2")
    made = make_negatives(positives(30), options(*mix, ratio=Fraction(5, 2)), DNA, ground)
    assert made.wanted == made.made == {"shuffle": 38, "substitution": 22, "genome": 15}  # of 75
    assert len({e.id for e in [*made.positives, *made.negatives]}) == 30 + 75
    dealt = assign_recipes(30, made.wanted, np.random.default_rng(0))
    assert {name: len(rows) for name, rows in dealt.items()} == made.wanted
    times = Counter(row for rows in dealt.values() for row in rows)
    assert sorted(times.values()) == [2] * 15 + [3] * 15


def test_shuffles_keep_pairs_and_are_named_after_their_positive():
    given = positives(10)
    made = make_negatives(given, options("shuffle", ratio=Fraction(2)), DNA)
    assert [e.id for e in made.negatives[:4]] == [f"shuffle:p{i}:{k}" for i in (0, 1) for k in (1, 2)]
    by_id = {e.id: e for e in made.positives}
    for example in made.negatives:
        parent = by_id[example.id.split(":")[1]]
        assert Counter(pairwise(example.sequence)) == Counter(pairwise(parent.sequence))
        assert example.group == parent.group
        assert example.sequence != parent.sequence
    assert len({e.sequence for e in made.negatives}) == 20
    assert len({e.group for e in made.positives}) == 10


def test_a_group_is_a_block_of_the_genome(ground):
    made = make_negatives(positives(), options("genome", block=10_000), DNA, ground)
    spots = [(e, contig, start) for e, _, contig, start, _, _ in places(made.negatives)]
    for one, contig, start in spots:
        for other, contig2, start2 in spots:
            same = contig == contig2 and start // 10_000 == start2 // 10_000
            near = contig == contig2 and abs(start - start2) < 61
            assert (one.group == other.group) or not (same or near)
    assert len({e.group for e in made.negatives}) >= 4


def test_splits_and_contexts_pass_on_and_windows_of_two_splits_share_no_block(ground):
    given = [
        LabeledSequence(e.sequence, e.label, e.id, None, ("train", "test", None)[i % 3], f"s{i % 2}")
        for i, e in enumerate(positives())
    ]
    made = make_negatives(given, options("genome", "shuffle", block=2_000), DNA, ground)
    assert Counter((e.split, e.context) for e in made.negatives).keys() <= {
        (e.split, e.context) for e in given
    }
    shuffles = [e for e in made.negatives if e.id.startswith("shuffle")]
    parents = {e.id: e for e in given}
    assert all(e.split == parents[e.id.split(":")[1]].split for e in shuffles)
    blocks: dict[tuple[str, int], set] = {}
    windows = [e for e in made.negatives if e.id.startswith("genome")]
    for example, _, contig, start, end, _ in places(windows):
        if example.split:
            for block in {start // 2000, (end - 1) // 2000}:
                blocks.setdefault((contig, block), set()).add(example.split)
    assert {len(splits) for splits in blocks.values()} == {1}
    assert {s for splits in blocks.values() for s in splits} == {"train", "test"}


def test_starts_are_avoided_by_the_recipes_named_only(ground):
    near = Intervals.merge(ground.genome.contigs())  # everything is near a start
    everywhere = GenomeContext(ground.genome, ground.annotation, near, frozenset(("genome",)))
    made = make_negatives(positives(), options("genome", "coding"), DNA, everywhere)
    assert made.made == {"genome": 0, "coding": 20}
    assert made.wanted["genome"] == 20
    both = GenomeContext(ground.genome, ground.annotation, near, frozenset(("genome", "coding")))
    assert make_negatives(positives(), options("genome", "coding"), DNA, both).made["coding"] == 0


def test_what_has_no_other_order_gives_no_shuffle():
    given = [
        LabeledSequence("A" * 30, "promoter", "run"),
        LabeledSequence("ACGTTGCATTGACCATG", "promoter", "p"),
    ]
    made = make_negatives(given, options("shuffle"), DNA)
    assert made.made == {"shuffle": 1}
    assert made.negatives[0].id == "shuffle:p:1"


def test_protein_and_rna():
    peptides = [LabeledSequence("GIGKFLHSAKKFGKAFVGEIMNS", "amp", "magainin")]
    made = make_negatives(peptides, options("shuffle", label="other"), PROTEIN)
    [negative] = made.negatives
    assert Counter(negative.sequence) == Counter(peptides[0].sequence)
    assert Counter(pairwise(negative.sequence)) != Counter(pairwise(peptides[0].sequence))
    assert negative.label == "other"
    rna = [LabeledSequence("GGCUAACGUUAGCAUCCGAU" * 2, "x", "r")]
    made = make_negatives(rna, options("substitution", "shuffle", ratio=Fraction(4)), RNA)
    assert set("".join(e.sequence for e in made.negatives)) <= set("ACGU")


def test_ambiguity_letters_stay_themselves():
    """Negatives in which B, R and others became X or N would be known by these."""
    peptide = [LabeledSequence("MKXXBZUOJLAVGIGKFLHSAKKF", "amp", "p")]
    [negative] = make_negatives(peptide, options("shuffle"), PROTEIN).negatives
    assert Counter(negative.sequence) == Counter(peptide[0].sequence)
    letters = "ACGTRYSWKMBDHVNACGGTTNNRYACGATTCAGGA"
    [negative] = make_negatives([LabeledSequence(letters, "x", "d")], options("shuffle"), DNA).negatives
    assert Counter(pairwise(negative.sequence)) == Counter(pairwise(letters))
    kept = make_negatives([LabeledSequence("R" * 40, "x", "d")], options("substitution"), DNA)
    assert Counter(kept.negatives[0].sequence)["R"] == 16  # 8 of 20 segments of two letters


def test_children_blocks_and_shared_words_are_tied():
    text = random_letters(1000, 0)
    members = [
        Member(text[:81]),
        Member(random_letters(81, 1), parent=0),
        Member(reverse_complement(text[40:121])),  # 41 letters in common with the first
        Member(random_letters(81, 2)),
        Member(random_letters(81, 3), contig="a", position=10),
        Member(random_letters(81, 4), contig="a", position=900),
        Member(random_letters(81, 5), contig="a", position=1100),
        Member(random_letters(81, 6), contig="b", position=10),
    ]
    assert assign_groups(members, 1000, DNA) == ["g1", "g1", "g1", "g2", "g3", "g3", "g4", "g5"]


def test_given_groups_stay_and_pass_to_children():
    text = random_letters(81, 0)
    members = [
        Member(text, given="x"),
        Member(text, given="y"),  # the user knows better
        Member(random_letters(81, 1), parent=1),
        Member(random_letters(81, 2)),
        Member(random_letters(81, 3), given="g1"),
    ]
    assert assign_groups(members, 1000, DNA) == ["x", "y", "y", "g2", "g1"]


def test_shares_are_relative_and_sum_to_one():
    assert parse_mix(["shuffle"]) == {"shuffle": 1}
    assert parse_mix(["shuffle=0.5", "genome=0.5"]) == {"shuffle": Fraction(1, 2), "genome": Fraction(1, 2)}
    assert parse_mix(["coding=1", "shuffle=3"]) == {"coding": Fraction(1, 4), "shuffle": Fraction(3, 4)}
    assert parse_mix(["coding", "shuffle", "genome"])["genome"] == Fraction(1, 3)
    assert list(parse_mix(["genome=1", "coding=2"])) == ["genome", "coding"]


@given(st.integers(0, 10_000), st.lists(st.integers(1, 1000), min_size=1, max_size=6))
def test_counts_sum_up_and_are_less_than_one_off(total, weights):
    shares = {str(i): Fraction(w, sum(weights)) for i, w in enumerate(weights)}
    counts = allot(total, shares)
    assert sum(counts.values()) == total
    assert all(abs(counts[name] - total * share) < 1 for name, share in shares.items())
