"""The audit as a whole: it finds planted traps, it is silent on random data, and its counts are right."""

import dataclasses
import random
from collections import Counter
from collections.abc import Iterable

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from sklearn.metrics import roc_auc_score

from seqray.core.alphabet import DNA, PROTEIN, RNA, Alphabet, reverse_complement
from seqray.core.records import LabeledSequence
from seqray.core.results import SEVERITIES, Audit
from seqray.datasets.audit.run import audit

TURNED = dict(zip("ACGT", "TGCA", strict=True))


def letters(rng: random.Random, length: int, alphabet: str = "ACGT") -> str:
    return "".join(rng.choices(alphabet, k=length))


def clean(count: int, length: int = 60, seed: int = 0, alphabet: str = "ACGT", classes=("neg", "pos")):
    """Random sequences of random classes: nothing to find."""
    rng = random.Random(seed)
    return [
        LabeledSequence(letters(rng, length, alphabet), rng.choice(classes), f"s{i}") for i in range(count)
    ]


def divided(examples):
    """Every fourth row is for testing."""
    parts = ("train", "train", "validation", "test")
    return [dataclasses.replace(e, split=parts[i % 4]) for i, e in enumerate(examples)]


def quick(examples, alphabet: Alphabet = DNA, **more) -> Audit:
    """Without baselines and with few resamples."""
    options: dict = {"baselines": False, "resamples": 100} | more
    return audit(examples, alphabet, **options)


def kinds(found: Audit) -> dict[str, str]:
    return {finding.kind: finding.severity for finding in found.findings}


def value(found: Audit, section: str, split: str, quantity: str, label: str = "*") -> float:
    figures = {(f.section, f.split, f.quantity, f.label): f.value for f in found.figures}
    return figures[section, split, quantity, label]


def what(found: Audit, kind: str) -> str:
    return {finding.kind: finding.what for finding in found.findings}[kind]


def labeled(**sequences: Iterable[str]) -> list[LabeledSequence]:
    """Examples of each label."""
    return [LabeledSequence(s, label, label[0]) for label, each in sequences.items() for s in each]


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(
    ("alphabet", "length", "count"),
    [(DNA, 81, 200), (DNA, 12, 150), (RNA, 40, 60), (PROTEIN, 30, 200), (PROTEIN, 8, 100)],
)
def test_random_data_raise_no_alarm(alphabet, length, count, seed):
    examples = clean(count, length, seed, alphabet.letters)
    for given_ in (examples, divided(examples)):
        found = quick(given_, alphabet, seed=seed, resamples=60)
        assert not found.alarming, found.findings


def test_random_data_raise_no_alarm_with_baselines():
    for examples in (clean(200, 40), divided(clean(240, 40, classes=("a", "b", "c")))):
        found = audit(examples, DNA, resamples=50)
        assert not found.alarming, found.findings
        assert kinds(found)["floor"] == "note"


def test_families_count_once_where_a_rule_might_hold_by_chance():
    """Four families a class, 25 copies each with a few changes: what they share says nothing of the class."""
    rng = np.random.default_rng(0)
    examples = []
    for number in range(8):
        first = "A" if number < 4 else "C"
        ancestor = rng.choice(list("ACGT"), 80)
        for copy in range(25):
            letters = ancestor.copy()
            letters[rng.integers(0, 80, 3)] = rng.choice(list("ACGT"), 3)
            label = "neg" if number < 4 else "pos"
            sequence = first + "".join(letters)
            examples.append(LabeledSequence(sequence, label, f"{number}.{copy}", group=f"family {number}"))
    assert "first_letter" not in kinds(quick(examples))
    alone = [
        dataclasses.replace(e, group=None, sequence=e.sequence[:1] + "".join(rng.choice(list("ACGT"), 80)))
        for e in examples
    ]
    assert kinds(quick(alone))["first_letter"] == "shortcut"


def test_letter_case_is_found_before_it_is_folded():
    examples = clean(200)
    raw = [e.sequence.lower() if e.label == "pos" else e.sequence for e in examples]
    found = quick(examples, letters=raw)
    assert kinds(found)["letter_case"] == "shortcut"
    assert value(found, "rules", "given", "letter_case_auroc") == 1
    assert value(found, "case", "all", "all_lower", "pos") == 1
    assert value(found, "case", "all", "all_upper", "neg") == 1
    assert "first_capital" not in kinds(found)  # told once
    assert "letter_case" not in kinds(quick(examples))


def test_one_capital_letter_at_a_place_is_found():
    examples = clean(300)
    rng = random.Random(1)
    places = [40 if e.label == "pos" else rng.randrange(60) for e in examples]
    raw = [
        e.sequence[:p].lower() + e.sequence[p] + e.sequence[p + 1 :].lower()
        for e, p in zip(examples, places, strict=True)
    ]
    assert kinds(quick(examples, letters=raw))["first_capital"] == "shortcut"


def overlapping(step: int):
    """Positives at random; negatives cut from one stretch of DNA every ``step`` letters."""
    rng = random.Random(2)
    genome = letters(rng, 81 + 200 * step)
    negatives = [genome[i * step : i * step + 81] for i in range(200)]
    return labeled(neg=negatives, pos=[letters(rng, 81) for _ in range(200)])


def test_negatives_that_overlap_each_other_are_found():
    found = quick(overlapping(30))
    assert kinds(found)["overlap_within_class"] == "leak"
    assert "200 of 200 (100 %) of 'neg'" in what(found, "overlap_within_class")
    assert value(found, "relatives", "all", "sharing", "neg") == 200
    assert value(found, "relatives", "all", "sharing", "pos") == 0
    assert "overlap_within_class" not in kinds(quick(overlapping(81)))


def test_copies_across_splits_and_double_labels_are_found():
    examples = divided(clean(400))
    train = [e for e in examples if e.split == "train"]
    twins = [dataclasses.replace(e, split="test") for e in train[:5]]
    turned = [
        dataclasses.replace(e, split="test", sequence=reverse_complement(e.sequence, DNA)) for e in train[5:8]
    ]
    other = {"neg": "pos", "pos": "neg"}
    doubled = [dataclasses.replace(e, label=other[e.label]) for e in train[8:12]]
    found = quick([*examples, *twins, *turned, *doubled])
    expected = {"copies_across": "leak", "strand_copies_across": "leak", "contradicting_labels": "caution"}
    assert expected.items() <= kinds(found).items()
    assert "5 of 108 (4.6 %) of test also in train" in what(found, "copies_across")
    assert "3 of 108 (2.8 %) of test also on the other strand in train" in what(found, "strand_copies_across")
    assert what(found, "contradicting_labels").startswith("4 sequences (on either strand) in 8 rows")
    assert value(found, "copies", "train", "duplicates") == 4


def test_relatives_without_an_exact_copy_are_found():
    rng = random.Random(3)
    examples = divided(clean(300, 80))
    train = [e for e in examples if e.split == "train"]
    shifted = [e.sequence[30:] + letters(rng, 30) for e in train[:20]]
    spaced = ["".join(c if i % 12 else TURNED[c] for i, c in enumerate(e.sequence)) for e in train[20:40]]
    relatives = [
        dataclasses.replace(e, split="test", sequence=s)
        for e, s in zip(train, shifted + spaced, strict=False)
    ]
    found = quick([*examples, *relatives])
    assert kinds(found)["relatives_across"] == "leak"
    # of the shifted 50 letters of 80; the others share 11
    assert value(found, "relatives", "test to train", "sharing") == 20
    assert kinds(found)["similar_across"] == "leak"  # 73 of 80 letters
    assert value(found, "identity", "test to train", "at_least_0.9") == pytest.approx(20 / 115)
    assert "copies_across" not in kinds(found)


def test_the_initial_m_of_whole_proteins_is_found():
    rng = random.Random(4)
    whole = ["M" * (i % 2) + letters(rng, 30 - i % 2, PROTEIN.letters) for i in range(300)]
    pieces = [letters(rng, 30, PROTEIN.letters.replace("M", "")) for _ in range(300)]
    found = quick(labeled(whole=whole, piece=pieces), PROTEIN)
    assert kinds(found)["initial_m"] == "shortcut"
    share = sum(s.startswith("M") for s in whole) / 300
    assert value(found, "ends", "all", "first_M", "whole") == pytest.approx(share)
    assert value(found, "rules", "given", "initial_m_auroc") == pytest.approx(0.5 + share / 2)
    assert f"M in 0 % of 'piece', {100 * share:.0f} % of 'whole'" in what(found, "initial_m")


def test_composition_length_and_ambiguity_are_found():
    rng = random.Random(5)
    rich, poor = ([letters(rng, 60, kind) for _ in range(200)] for kind in ("GGCCAT", "AATTGC"))
    assert kinds(quick(labeled(rich=rich, poor=poor)))["gc"] == "shortcut"
    longer = [dataclasses.replace(e, sequence=e.sequence + "ACGTACG"[: rng.randrange(7)]) for e in clean(200)]
    masked = [
        dataclasses.replace(e, sequence=e.sequence[: 70 if e.label == "pos" else 50].ljust(60, "N"))
        for e in longer
    ]
    found = quick(masked)
    assert {kinds(found)[k] for k in ("ambiguous", "last_letter")} == {"shortcut"}
    by_length = [
        dataclasses.replace(e, sequence=e.sequence[: 60 if e.label == "pos" else 55]) for e in clean(200)
    ]
    assert kinds(quick(by_length))["length"] == "shortcut"


@pytest.mark.parametrize("seed", range(4))
def test_folds_of_few_sequences_give_the_auroc_of_all(seed):
    rng = np.random.default_rng(3)
    shares = [("rich", s) for s in rng.normal(0.53, 0.07, 150)] + [
        ("poor", s) for s in rng.normal(0.45, 0.07, 150)
    ]
    sequences = ["".join(rng.choice(list("ATGC"), 60, p=[(1 - s) / 2] * 2 + [s / 2] * 2)) for _, s in shares]
    examples = [LabeledSequence(one, label, "") for one, (label, _) in zip(sequences, shares, strict=True)]
    content = [one.count("G") + one.count("C") for one in sequences]
    expected = roc_auc_score([label == "rich" for label, _ in shares], content)
    assert value(quick(examples, seed=seed), "rules", "given", "gc_auroc") == pytest.approx(expected)


def test_named_groups_that_leak_are_found():
    examples = divided(clean(200))
    grouped = [dataclasses.replace(e, group=f"g{i}") for i, e in enumerate(examples)]
    assert "groups_across" not in kinds(quick(grouped))
    leaking = [dataclasses.replace(e, group="g0") if i in (0, 1, 3, 7) else e for i, e in enumerate(grouped)]
    found = quick(leaking)
    assert kinds(found)["groups_across"] == "leak"
    assert "1 of train with 2 sequences of test" in what(found, "groups_across")
    related = [*grouped, dataclasses.replace(grouped[0], group="another")]
    found = quick(related)
    assert kinds(found)["groups_related"] == "caution"
    assert what(found, "groups_related").startswith("2 sequences share")


def test_a_context_that_tells_the_class_is_found():
    examples = [dataclasses.replace(e, context="mouse" if e.label == "pos" else "human") for e in clean(100)]
    assert kinds(quick(examples))["context"] == "shortcut"


def test_rows_sorted_by_class_are_told_for_tables_alone():
    examples = sorted(clean(200), key=lambda e: e.label)
    assert kinds(quick(examples))["row_order"] == "note"
    assert value(quick(examples), "order", "all", "runs") == 2
    assert "row_order" not in kinds(quick(examples, in_file_order=False))


@pytest.mark.parametrize("splits", [("train", "train"), ("train", None)])
def test_data_with_nothing_held_out_are_one_whole(splits):
    examples = clean(80)
    divided = [dataclasses.replace(e, split=splits[i % 2]) for i, e in enumerate(examples)]
    assert quick(divided) == quick(examples)


def test_a_split_by_relatives_shows_the_gap_that_a_random_one_hides():
    rng = random.Random(6)
    families = [(letters(rng, 60), rng.choice(("neg", "pos"))) for _ in range(40)]
    examples = [
        LabeledSequence(mutated(rng, parent, 3), label, "m") for parent, label in families for _ in range(8)
    ]
    found = audit(examples, DNA, resamples=100)
    assert kinds(found)["score_gap"] == "leak"
    assert value(found, "baselines", "given", "kmer_logistic_mcc") > 0.9
    assert value(found, "baselines", "grouped", "kmer_logistic_mcc") < 0.6


def test_a_lower_score_without_a_relative_is_chance():
    """Of 400 random rows: .19 (.04 to .35) on the split, -.06 (-.16 to .05) on folds."""
    rng = random.Random(1016)
    rows = [(letters(rng, 80), "test" if rng.random() < 0.25 else "train") for _ in range(400)]
    examples = [
        LabeledSequence(sequence, ("neg", "pos")[i % 2], f"r{i}", split=split)
        for i, (sequence, split) in enumerate(rows)
    ]
    found = audit(examples, DNA, resamples=100)
    gap = [value(found, "baselines", split, "position_weights_mcc") for split in ("given", "grouped")]
    assert gap[0] - gap[1] > 0.2
    assert "score_gap" not in kinds(found)


def mutated(rng: random.Random, sequence: str, changes: int) -> str:
    out = list(sequence)
    for place in rng.sample(range(len(out)), changes):
        out[place] = rng.choice("ACGT")
    return "".join(out)


def test_counts_lengths_and_letters_are_those_of_the_data():
    examples = divided(clean(101, seed=8))
    examples[0] = dataclasses.replace(examples[0], sequence="ACGN" * 5)
    found = quick(examples)
    for split in ("train", "validation", "test"):
        for label in ("neg", "pos"):
            chosen = [e.sequence for e in examples if (e.split, e.label) == (split, label)]
            assert value(found, "counts", split, "sequences", label) == len(chosen)
            assert value(found, "length", split, "median", label) == np.median([len(s) for s in chosen])
            assert value(found, "ends", split, "first_A", label) == np.mean([s[0] == "A" for s in chosen])
            everything = Counter("".join(chosen))
            known = sum(everything[c] for c in "ACGT")
            assert value(found, "composition", split, "letter_G", label) == everything["G"] / known
            by_row = [(s.count("G") + s.count("C")) / (len(s) - s.count("N")) for s in chosen]
            assert value(found, "composition", split, "gc_mean", label) == pytest.approx(np.mean(by_row))
            share = np.mean(["N" in s for s in chosen])
            assert value(found, "ambiguity", split, "with_ambiguous", label) == share


def test_histograms_hold_every_sequence_once():
    examples = divided(clean(101, seed=9))
    found = quick(examples)
    for quantity in ("length", "gc"):
        drawn = [h for h in found.histograms if h.quantity == quantity]
        assert sum(sum(h.counts) for h in drawn) == 101
        assert len({h.edges for h in drawn}) == 1
    tested = sum(e.split == "test" for e in examples)
    assert sum(sum(h.counts) for h in found.histograms if h.quantity == "identity") == tested


TEXTS = st.sampled_from(["ACGTACGG", "CCGTACGT", "ACGTTGCA", "AAAATTTT", "GGGGATCC"])
COPIES = st.lists(st.tuples(TEXTS, st.sampled_from("ab")), min_size=2, max_size=14).filter(
    lambda rows: len({label for _, label in rows}) == 2
)


@given(COPIES, st.randoms(use_true_random=False))
@settings(max_examples=8)
def test_order_and_strand_of_the_rows_change_no_count(rows, rng):
    splits = [rng.choice(("train", "test")) for _ in rows]
    splits[:2] = ["train", "test"]
    examples = [LabeledSequence(s, label, "x", split=p) for (s, label), p in zip(rows, splits, strict=True)]
    turned = [dataclasses.replace(e, sequence=reverse_complement(e.sequence, DNA)) for e in examples]
    shuffled = rng.sample(turned, len(turned))
    counts, of_shuffled = (
        [f for f in quick(e, resamples=0).figures if f.section in ("copies", "relatives", "counts")]
        for e in (examples, shuffled)
    )
    assert counts == of_shuffled


def test_findings_come_worst_first_and_rest_on_figures():
    examples = overlapping(30)
    raw = [e.sequence.lower() if e.label == "pos" else e.sequence for e in examples]
    found = quick(examples, letters=raw)
    ranks = [SEVERITIES.index(finding.severity) for finding in found.findings]
    assert ranks == sorted(ranks)
    assert len(set(ranks)) > 2
    assert all(finding.what and finding.effect and finding.remedy for finding in found.findings)


def test_a_sample_bounds_what_the_baselines_see():
    found = audit(clean(120, 30), DNA, sample=60, resamples=10)
    assert value(found, "baselines", "given", "kmer_logistic_n") == 60


def test_rare_classes_and_many_classes():
    examples = [*clean(40), LabeledSequence("ACGT" * 15, "rare", "r")]
    found = audit(examples, DNA, resamples=10)
    assert found.settings["given"] == "5 random folds, without classes of fewer than 5"
    assert {f.label for f in found.figures if f.section == "rules"} == {"neg", "pos"}
    alone = [LabeledSequence("ACGT" * 15, "a", "x"), LabeledSequence("ACCT" * 15, "b", "y")]
    assert audit(alone, DNA).settings["given"].startswith("none")
    three = audit(clean(90, 30, classes=("a", "b", "c")), DNA, resamples=10)
    labels = {f.label for f in three.figures if f.section == "baselines"}
    assert labels == {"*", "a", "b", "c"}
    names = [f"c{i:02}" for i in range(60)]
    uneven = [*clean(300, 30, classes=names), *clean(200, 30, seed=1, classes=names[:20])]
    many = audit(uneven, DNA, resamples=10)
    assert {f.label for f in many.figures if f.section == "rules"} <= set(names[:20])
    assert not any(f.section == "baselines" for f in many.figures)
    assert {f.label for f in many.figures if f.section == "counts"} == {"*", *names}


def test_one_limit_for_copies_relatives_and_groups():
    """One of 200 held-out sequences is half a percent: a caution, whatever it shares with training."""
    examples = [dataclasses.replace(e, split=("train", "test")[i < 199]) for i, e in enumerate(clean(500))]
    first, second = (dataclasses.replace(e, split="test") for e in examples[300:302])
    one = kinds(quick([*examples, first]))
    assert (one["copies_across"], one["relatives_across"]) == ("caution", "caution")
    three = quick([*examples, first, second, dataclasses.replace(examples[302], split="test")])
    assert (kinds(three)["copies_across"], kinds(three)["relatives_across"]) == ("leak", "leak")
    grouped = [dataclasses.replace(e, group="g" if i in (0, 400) else None) for i, e in enumerate(examples)]
    assert kinds(quick(grouped))["groups_across"] == "caution"


def test_proteins_have_one_strand_in_words_too():
    examples = clean(40, alphabet=PROTEIN.letters)
    other = {"neg": "pos", "pos": "neg"}[examples[0].label]
    found = quick([*examples, dataclasses.replace(examples[0], label=other)], PROTEIN)
    assert what(found, "contradicting_labels") == "1 sequence in 2 rows carries more than one label"
