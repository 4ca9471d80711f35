"""Motif discovery: planted truth, closed forms and what has no motif."""

from dataclasses import replace

import numpy as np
import pytest

from seqray.core.alphabet import DNA, PROTEIN, RNA
from seqray.core.explanation import Explanation
from seqray.explanations.motifs import (
    PROMOTER_ELEMENTS,
    consensus_letters,
    extract_seqlets,
    find_motifs,
    information,
    informative_places,
    motif_of_sites,
    similarity,
    window_peaks,
)

EVEN = np.full(4, 0.25)


def explanation(sequence, scores, number=0):
    return Explanation(
        record=number,
        id=f"r{number}",
        sequence=sequence,
        label="promoter",
        target="promoter",
        probability=0.9,
        method="ism",
        member="mean",
        signed=True,
        scores=np.asarray(scores, dtype=float),
    )


def planted(count, length, plants, seed, letters="ACGT", high=3.0):
    """Records with words planted at ``word: (first, last)`` and high scores there; and the positions."""
    rng = np.random.default_rng(seed)
    records, truth = [], {word: [] for word in plants}
    for number in range(count):
        sequence = rng.choice(list(letters), length)
        scores = rng.normal(0, 1, length)
        for word, (first, last) in plants.items():
            place = int(rng.integers(first, last + 1))
            sequence[place : place + len(word)] = list(word)
            scores[place : place + len(word)] += high
            truth[word].append(place)
        records.append(explanation("".join(sequence), scores, number))
    return records, truth


def test_explanation_shows_its_best_letters_not_its_arrays():
    shown = repr(explanation("ACGTA", [0.1, -0.9, np.nan, 0.5, 0.0]))
    assert shown == "Explanation('r0', promoter 0.9, ism of 5 letters: C2 -0.9, T4 0.5, A1 0.1, ...)"
    assert repr(explanation("AC", [1.0, 0.0]).part(1, 2)).endswith("ism of 1 letter: C2 0, ...)")


def one_hot_counts(word, sites=10.0, letters="ACGT"):
    return sites * np.array([[letter == other for other in letters] for letter in word], dtype=float)


def found_at(motif, word):
    """Positions of the word's first letter, given that the consensus holds the word."""
    return motif.positions + motif.consensus.index(word)


# --- planted motifs ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_planted_word_is_the_motif_and_lies_where_it_was_planted(seed):
    records, truth = planted(100, 81, {"TATAAT": (10, 65)}, seed)
    first, *others = find_motifs(records, DNA)
    assert others == []
    assert "TATAAT" in first.consensus
    assert (first.name, first.known) == ("motif_1", "-10 box")
    assert first.similarity > 0.95
    assert first.sites >= 90
    true = set(truth["TATAAT"])
    assert np.mean([place in true for place in found_at(first, "TATAAT")]) > 0.95


def test_two_boxes_that_share_letters_stay_apart():
    records, truth = planted(150, 81, {"TTGACA": (10, 25), "TATAAT": (40, 60)}, 3)
    motifs = find_motifs(records, DNA)
    assert {motif.known for motif in motifs} == {"-35 box", "-10 box"}
    for motif in motifs:
        word = PROMOTER_ELEMENTS[motif.known]
        assert abs(np.median(found_at(motif, word)) - np.median(truth[word])) <= 1
        assert motif.sites >= 135


def test_a_protein_motif_is_found_and_not_compared_with_promoters():
    records, _ = planted(100, 120, {"KDELWW": (0, 110)}, 4, letters=PROTEIN.letters)
    (motif,) = find_motifs(records, PROTEIN)
    assert "KDELWW" in motif.consensus
    assert motif.known == ""
    assert np.isnan(motif.similarity)
    assert motif.letters == PROTEIN.letters


def test_rna_is_compared_with_known_elements_written_in_dna():
    records, _ = planted(60, 81, {"UAUAAU": (10, 65)}, 5, letters="ACGU")
    motif = find_motifs(records, RNA)[0]
    assert "UAUAAU" in motif.consensus
    assert motif.known == "-10 box"


def test_unequal_lengths_unknown_letters_and_motifs_at_the_ends():
    rng = np.random.default_rng(6)
    records = []
    for number in range(60):
        length = int(rng.integers(30, 90))
        sequence = rng.choice(list("ACGT"), length)
        sequence[rng.integers(10, length - 10)] = "N"
        scores = np.zeros(length)
        place = 0 if number % 2 else length - 6
        sequence[place : place + 6] = list("TATAAT")
        scores[place : place + 6] = 1.0
        records.append(explanation("".join(sequence), scores, number))
    records.append(explanation("ACG", np.ones(3), 60))  # shorter than any window
    motif = find_motifs(records, DNA)[0]
    assert motif.consensus == "TATAAT"
    assert motif.sites >= 55
    assert np.mean(motif.positions == 0) == pytest.approx(0.5, abs=0.05)


# --- where there is none -----------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(6))
def test_random_letters_give_no_motif(seed):
    records, _ = planted(80, 81, {}, seed, letters="AAACGTTT")
    assert find_motifs(records, DNA) == ()


def test_a_word_that_is_frequent_but_not_preferred_by_the_scores_is_no_motif():
    records, _ = planted(150, 81, {"TATAAT": (10, 65)}, 7, high=0.0)
    assert find_motifs(records, DNA) == ()


def test_letters_that_speak_against_the_class_make_no_motif():
    records, _ = planted(100, 81, {"TATAAT": (10, 65)}, 8, high=-9.0)
    assert find_motifs(records, DNA) == ()


def test_fewer_than_ten_records_give_none():
    records, _ = planted(9, 81, {"TATAAT": (40, 50)}, 9)
    assert find_motifs(records, DNA) == ()
    assert find_motifs([], DNA) == ()


# --- promises ----------------------------------------------------------------------------------------------


def test_order_and_scale_play_no_part_and_runs_repeat():
    records, _ = planted(60, 81, {"TTGACA": (10, 25), "TATAAT": (40, 60)}, 11)
    halved = [replace(e, scores=e.scores * 0.5) for e in records]
    first = find_motifs(records, DNA)
    assert first
    for others in (find_motifs(records[::-1], DNA), find_motifs(records, DNA), find_motifs(halved, DNA)):
        assert [m.consensus for m in others] == [m.consensus for m in first]
        for one, other in zip(first, others, strict=True):
            np.testing.assert_array_equal(one.counts, other.counts)
            np.testing.assert_array_equal(one.positions, other.positions)


def test_information_by_hand():
    counts = [[8, 0, 0, 0], [4, 4, 0, 0], [2, 2, 2, 2], [0, 0, 0, 0]]
    np.testing.assert_allclose(information(counts, EVEN), [2.0, 1.0, 0.0, 0.0])
    # log2(1 / 0.125) = 3; 0.5 log2(0.5 / 0.125) + 0.5 log2(0.5 / 0.25) = 1.5
    np.testing.assert_allclose(
        information([[8, 0, 0, 0], [4, 4, 0, 0]], [0.125, 0.25, 0.5, 0.125]), [3.0, 1.5]
    )
    np.testing.assert_allclose(information(8 * np.eye(20)[:1], np.full(20, 0.05)), [np.log2(20)])


def test_uninformative_ends_are_cut_and_gaps_are_kept():
    flat, sharp = [25.0, 25, 25, 25], [100.0, 0, 0, 0]
    kept = informative_places(np.array([flat, sharp, flat, sharp, flat, flat]), EVEN)
    assert (kept.start, kept.stop) == (1, 4)
    kept = informative_places(np.array([flat, flat]), EVEN)
    assert kept.start == kept.stop


def test_a_place_that_chance_explains_is_cut_with_few_sites_only():
    # 0.29 bits: 2 n ln 2 bits = 4.1 for 10 sites and 41 for 100, where 1 % lies above 11.3.
    place = np.array([[6.0, 2, 1, 1]])
    assert information(place, EVEN)[0] == pytest.approx(
        2 + 0.6 * np.log2(0.6) + 0.2 * np.log2(0.2) - 0.2 * np.log2(10)
    )
    assert informative_places(place, EVEN) == slice(0, 0)
    assert informative_places(10 * place, EVEN) == slice(0, 1)


@pytest.mark.parametrize(
    ("row", "letter"),
    [
        ([6, 2, 1, 1], "A"),
        ([5, 5, 0, 0], "A"),
        ([4, 1, 1, 4], "W"),
        ([4, 0, 4, 2], "R"),
        ([3, 3, 2, 2], "N"),
        ([0, 0, 0, 0], "N"),
    ],
)
def test_consensus_letters(row, letter):
    assert consensus_letters(np.array([row], dtype=float), DNA) == letter


def test_similarity_by_hand():
    assert similarity(one_hot_counts("GGTATAATCC"), EVEN, "TATAAT", DNA) == 1.0
    assert similarity(one_hot_counts("TATATAA"), EVEN, "TATAWAW", DNA) == 1.0
    # Five of six places agree; the sixth lies beyond the motif and counts as chance, a quarter.
    assert similarity(one_hot_counts("TATAA"), EVEN, "TATAAT", DNA) == pytest.approx(5.25 / 6)
    # Half of the sites have another last letter.
    half = one_hot_counts("TATAAT") + one_hot_counts("TATAAG")
    assert similarity(half, EVEN, "TATAAT", DNA) == pytest.approx(5.5 / 6)
    assert np.isnan(similarity(one_hot_counts("TATA"), EVEN, "TATAAT", DNA))
    assert similarity(one_hot_counts("UAUAAU", letters="ACGU"), EVEN, "TATAAT", RNA) == 1.0


def test_a_motif_moves_its_positions_by_what_is_cut():
    flat = np.full((2, 4), 25.0)
    counts = np.vstack([flat, one_hot_counts("TTGACA", 100)])
    motif = motif_of_sites(counts, np.array([30, 10]), EVEN, DNA)
    assert motif is not None
    assert (motif.consensus, motif.known, motif.similarity) == ("TTGACA", "-35 box", 1.0)
    assert motif.positions.tolist() == [12, 32]
    assert motif_of_sites(flat, np.array([0, 0]), EVEN, DNA) is None


def test_peaks_are_the_highest_windows_and_keep_their_distance():
    scores = np.zeros(60)
    scores[10:14], scores[16:20], scores[40:44], scores[50:54] = 3.0, 2.0, 4.0, -9.0
    assert window_peaks(scores, 4, apart=10) == [40, 10]
    assert window_peaks(np.ones(60) / 60, 4, apart=10) == []
    assert window_peaks(np.ones(3), 4, apart=10) == []


def test_letters_that_were_not_read_are_no_peak():
    scores = np.zeros(40)
    scores[30:34] = 1.0
    scores[10:20] = np.nan
    assert window_peaks(scores, 4, apart=10) == window_peaks(np.nan_to_num(scores), 4, apart=10) == [30]


def test_seqlets_at_an_end_are_filled_with_unknown_letters():
    scores = np.zeros(20)
    scores[:6] = 1.0
    seqlets = extract_seqlets([explanation("ACGTAC" + "G" * 14, scores)], DNA, 6)
    assert seqlets.starts.tolist() == [-2]
    assert seqlets.codes.tolist() == [[4, 4, 0, 1, 2, 3, 0, 1, 2, 2]]
