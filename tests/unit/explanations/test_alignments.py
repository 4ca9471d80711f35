"""Explanations of alignments against plain loops, products of matrices, and alignments changed by hand."""

import numpy as np
import pytest
import torch
from Bio.Align import MultipleSeqAlignment
from Bio.Seq import Seq
from Bio.SeqRecord import SeqRecord
from hypothesis import given, settings, strategies as st
from hypothesis.extra.numpy import arrays

from seqray.core.alphabet import RNA, encode_columns
from seqray.core.errors import InputError
from seqray.core.records import Alignment
from seqray.explanations.alignments import check_alignments, explain_alignments, hiding_curves
from seqray.explanations.checks import SHARES
from seqray.explanations.methods import leave_rows_out, occlude_columns
from seqray.explanations.options import AlignmentOptions
from seqray.explanations.targets import AlignmentTarget
from seqray.inference.alignments import predict_alignments
from seqray.models.tokenizers import MASK, AlignmentTokenizer

METHODS = ("rollout", "grad-rollout", "occlusion")
GAP, MISSING = 5, 6


def made(
    rows: int, columns: int, seed: int = 0, *, top: int = MISSING, ss_cons: str | None = None
) -> Alignment:
    codes = np.random.default_rng(seed).integers(0, top + 1, (rows, columns)).astype(np.uint8)
    codes[0, 0] = 0  # a letter of the query
    return Alignment(f"a{seed}", tuple(f"s{r}" for r in range(rows)), codes, RNA, ss_cons=ss_cons)


def log_odds(model, network, tokens, target):
    """Of one alignment of tokens, from the probabilities of one network."""
    with torch.no_grad():
        logits = network(torch.from_numpy(tokens)[None]).logits[0].double() / model.card.temperature
    p = torch.softmax(logits, dim=0)[target].item()
    return np.log(p / (1 - p))


def explain(model, *alignments, **options):
    return list(explain_alignments(model, alignments, AlignmentOptions(**options)))


def questions(model, alignment, target=1):
    tokens = AlignmentTokenizer(RNA).encode(alignment.codes)
    return [AlignmentTarget(model, network, target, tokens) for network in model.networks]


# --- the reference: columns hidden and rows left out ------------------------------------------------------


def test_occlusion_of_columns_is_a_plain_loop(alignment_model):
    alignment = made(4, 9)
    [explained] = explain(alignment_model, alignment, methods=("occlusion",), target="tRNA")
    expected = np.zeros(9)
    for network in alignment_model.networks:
        tokens = AlignmentTokenizer(RNA).encode(alignment.codes)
        before = log_odds(alignment_model, network, tokens, 0)
        for column in range(9):
            changed = tokens.copy()
            changed[:, 1 + column] = MASK
            expected[column] += (before - log_odds(alignment_model, network, changed, 0)) / 2
    assert explained.scores[0].columns == pytest.approx(expected, abs=1e-5)
    assert explained.scores[0].grid is None


def test_occlusion_of_rows_is_the_answer_without_them(alignment_model):
    alignment = made(5, 7, seed=3)
    [explained] = explain(alignment_model, alignment, methods=("occlusion",), target="miRNA")
    expected = np.zeros(5)
    for network in alignment_model.networks:
        tokens = AlignmentTokenizer(RNA).encode(alignment.codes)
        before = log_odds(alignment_model, network, tokens, 1)
        for row in range(1, 5):
            without = np.delete(tokens, row, axis=0)
            expected[row] += (before - log_odds(alignment_model, network, without, 1)) / 2
    assert np.isnan(explained.scores[0].rows[0])
    assert explained.scores[0].rows[1:] == pytest.approx(expected[1:], abs=1e-5)


def test_columns_of_a_row_alone_go_with_it(alignment_model):
    rows = ["ACGU----", "ACGU----", "AC-UGGCA"]
    codes = encode_columns([row.encode() for row in rows], ["a", "b", "c"], RNA, "x")
    alignment = Alignment("x", ("a", "b", "c"), codes, RNA)
    question = questions(alignment_model, alignment)[0]
    tokens = AlignmentTokenizer(RNA).encode(codes)
    before = log_odds(alignment_model, question.network, tokens, 1)
    without = log_odds(alignment_model, question.network, tokens[:2, :5], 1)  # CLS and four columns
    assert leave_rows_out(question)[2] == pytest.approx(before - without, abs=1e-5)


def test_the_only_row_with_letters_is_not_left_out(alignment_model):
    rows = ["--------", "ACGUGGCA", "----~~--"]
    codes = encode_columns([row.encode() for row in rows], ["a", "b", "c"], RNA, "x")
    question = questions(alignment_model, Alignment("x", ("a", "b", "c"), codes, RNA))[0]
    falls = leave_rows_out(question)
    assert np.isnan(falls[:2]).all()
    before = log_odds(alignment_model, question.network, question.tokens, 1)
    without = log_odds(alignment_model, question.network, question.tokens[:2], 1)
    assert falls[2] == pytest.approx(before - without, abs=1e-5)


def test_a_query_alone_has_columns_and_no_row_to_leave_out(alignment_model):
    [explained] = explain(alignment_model, made(1, 6), methods=METHODS)
    assert [s.rows.shape for s in explained.scores] == [(1,)] * 3
    assert np.isnan(explained.scores[2].rows).all()
    assert explained.scores[0].rows == pytest.approx([1.0])


def test_blocks_are_means_over_the_stretches_that_hold_a_column(alignment_model):
    alignment = made(3, 7, seed=1)
    question = questions(alignment_model, alignment)[0]
    tokens = question.tokens
    before = log_odds(alignment_model, question.network, tokens, 1)
    falls = {}
    for start in (0, 2, 3):  # stretches of 4, half of it apart, and the last that fits
        changed = tokens.copy()
        changed[:, 1 + start : 5 + start] = MASK
        falls[start] = before - log_odds(alignment_model, question.network, changed, 1)
    expected = [np.mean([f for s, f in falls.items() if s <= c < s + 4]) for c in range(7)]
    assert occlude_columns(question, 4) == pytest.approx(expected, abs=1e-5)
    assert np.ptp(occlude_columns(question, 99)) == 0  # one stretch of all columns


def test_few_at_a_time_is_the_same(alignment_model, monkeypatch):
    question = questions(alignment_model, made(5, 12))[0]
    expected = occlude_columns(question), leave_rows_out(question)
    monkeypatch.setattr("seqray.explanations.targets.TOKENS_AT_ONCE", 1)
    assert occlude_columns(question) == pytest.approx(expected[0], abs=1e-5)
    assert leave_rows_out(question)[1:] == pytest.approx(expected[1][1:], abs=1e-5)


# --- rollouts ---------------------------------------------------------------------------------------------


def test_only_rollout_is_the_same_for_every_class(alignment_model):
    alignment = made(4, 8, seed=5)
    one, two = (
        explain(alignment_model, alignment, methods=METHODS, target=name)[0] for name in ("tRNA", "miRNA")
    )
    same = [np.allclose(a.columns, b.columns) for a, b in zip(one.scores, two.scores, strict=True)]
    assert same == [True, False, False]


def test_neighbours_change_nothing(alignment_model):
    alignments = [made(*shape, seed=seed) for seed, shape in enumerate([(2, 5), (5, 20), (1, 9)])]
    together = explain(alignment_model, *alignments, methods=METHODS)
    for number, (alignment, one) in enumerate(zip(alignments, together, strict=True)):
        [alone] = explain(alignment_model, alignment, methods=METHODS)
        assert (one.record, one.id) == (number, alignment.id)
        assert one.probabilities == pytest.approx(alone.probabilities, abs=1e-6)
        for a, b in zip(one.scores, alone.scores, strict=True):
            np.testing.assert_allclose(a.columns, b.columns, atol=1e-6)


def test_the_call_is_that_of_predict(alignment_model):
    alignments = [made(3, 12, seed) for seed in range(4)]
    explained = explain(alignment_model, *alignments, target="called")
    for e, prediction in zip(explained, predict_alignments(alignment_model, alignments), strict=True):
        assert (e.label, e.target) == (prediction.label, prediction.label)
        assert e.probabilities == pytest.approx(prediction.probabilities, abs=1e-5)
        assert e.probability == max(e.probabilities)


# --- coordinates ------------------------------------------------------------------------------------------


@settings(max_examples=25)
@given(
    arrays(
        np.uint8, st.tuples(st.integers(1, 9), st.integers(1, 34)), elements=st.sampled_from([0, 3, 4, 5, 6])
    )
)
def test_scores_stand_in_the_columns_of_the_file(alignment_model, codes):
    codes[0, 0] = 2
    alignment = Alignment("a", tuple(f"s{r}" for r in range(len(codes))), codes, RNA)
    [explained] = explain(alignment_model, alignment, methods=("rollout",))
    scores = explained.by_column(explained.scores[0])
    lettered = (codes[explained.rows] <= 4).any(axis=0)
    assert len(explained.rows) == min(5, len(codes))
    assert explained.rows[0] == 0
    assert np.isfinite(scores).sum() == min(24, lettered.sum())
    assert not np.isfinite(scores[~lettered]).any()
    # What was read, put together as an alignment of its own, has the same scores in the same order.
    own = alignment.take_rows(explained.rows).take_columns(explained.columns)
    [again] = explain(alignment_model, own, methods=("rollout",))
    assert again.columns.tolist() == list(range(own.columns))
    np.testing.assert_allclose(scores[np.isfinite(scores)], again.scores[0].columns, atol=1e-6)
    rows = explained.by_row(explained.scores[0])
    assert np.flatnonzero(np.isfinite(rows)).tolist() == explained.rows.tolist()


def test_columns_without_letters_in_the_rows_read_move_nothing(alignment_model):
    alignment = made(4, 10, top=3)
    wide = np.full((4, 13), GAP, dtype=np.uint8)
    kept = [0, 1, 3, 4, 5, 7, 8, 9, 10, 12]
    wide[:, kept] = alignment.codes
    [narrow] = explain(alignment_model, alignment, methods=METHODS)
    [broad] = explain(alignment_model, Alignment("w", alignment.names, wide, RNA), methods=METHODS)
    for a, b in zip(narrow.scores, broad.scores, strict=True):
        np.testing.assert_allclose(broad.by_column(b)[kept], a.columns, atol=1e-6)
        assert np.isnan(np.delete(broad.by_column(b), kept)).all()


def test_alignments_of_biopython_are_explained_as_the_same_of_seqray(alignment_model):
    rows = {"q": "GG-CUAGC", "s": "GGACU-GC"}
    records = MultipleSeqAlignment([SeqRecord(Seq(text), id=name) for name, text in rows.items()])
    codes = encode_columns([text.encode() for text in rows.values()], tuple(rows), RNA, "")
    [expected] = explain(alignment_model, Alignment("alignment_1", tuple(rows), codes, RNA))
    for form in (records, records.alignment):
        [found] = explain(alignment_model, form)
        assert (found.id, found.alignment.names) == ("alignment_1", ("q", "s"))
        assert found.scores[0].columns.tolist() == expected.scores[0].columns.tolist()
    assert check_alignments(alignment_model, [records] * 2).verdicts
    with pytest.raises(InputError, match="alignment_1: got str, not an alignment; give"):
        explain(alignment_model, "GGCUAGC")


# --- checks -----------------------------------------------------------------------------------------------


def test_curves_hide_and_show_columns_in_the_order_of_the_ranks(alignment_model):
    alignment = made(3, 8, seed=9)
    asked = questions(alignment_model, alignment)
    ranks = np.array([3, 0, 1, 2, 7, 6, 5, 4])
    found = hiding_curves(asked, ranks[None])
    for kind in ("deletion", "insertion"):
        for step, share in enumerate(SHARES):
            first = ranks < round(share * 8)
            hidden = first if kind == "deletion" else ~first
            values = []
            for question in asked:
                tokens = question.tokens.copy()
                tokens[:, 1:][:, hidden] = MASK
                values.append(log_odds(alignment_model, question.network, tokens, 1))
            assert found[kind][0, step] == pytest.approx(np.mean(values), abs=1e-5)


def test_occlusion_beats_random_and_is_what_rollout_is_held_against(alignment_model):
    options = AlignmentOptions(methods=("rollout",))
    found = check_alignments(alignment_model, [made(4, 20, seed) for seed in range(6)], options)
    figures = {(c.method, c.measure, c.against): c for c in found.checks}
    assert figures["occlusion", "deletion_gain", "random"].low > 0
    assert figures["rollout", "share_of_reference", "occlusion"].records == 6
    assert np.isfinite(figures["rollout", "stability", "members"].value)
    assert "hiding the columns" in found.verdicts["rollout"]
    assert {c.method for c in found.curves} == {"rollout", "occlusion", "random"}


# --- what can't be done -----------------------------------------------------------------------------------


def test_rows_without_letters_are_an_error_that_names_the_alignment(alignment_model):
    codes = np.array([[GAP, MISSING], [0, 1]], dtype=np.uint8)
    with pytest.raises(InputError, match="alignment 'empty': the rows that are read") as caught:
        explain(alignment_model, Alignment("empty", ("q", "s"), codes, RNA), rows=1)
    assert "(1 of 2) have no letters" in str(caught.value)
