"""Explained calls: letters and stretches in their places, scores of the whole strand, shares."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st

from networks import locator_config
from seqray.core.alphabet import DNA, reverse_complement, reverse_complement_codes
from seqray.core.card import Card
from seqray.core.card_parts import LocatorFacts
from seqray.core.errors import InputError
from seqray.core.explanation import InputShares, Place
from seqray.core.records import SequenceRecord
from seqray.core.results import Box, Call, CallContext
from seqray.explanations.calls import (
    best_calls,
    calls_of_gene,
    check_calls,
    cut_stretches,
    explain_calls,
    extract_call_windows,
    input_shares,
)
from seqray.explanations.methods import GENERAL_METHODS
from seqray.explanations.options import ExplainOptions, MethodSettings
from seqray.io.explanations import ScoreTrack, explanation_rows, write_shares
from seqray.modelfile.model import TrainedModel
from seqray.models.locator import LocatorTransformer

RADIUS = 26  # 4 letters x 4 tokens, 7 letters of the stem, and 3 of the token of the site
CONFIG = locator_config(("known", "start"), classes=2)
CARD = Card(
    name="tiny",
    classes=("start", "stop"),
    positive="start",
    window=2 * RADIUS + 1,
    site=RADIUS,
    model=CONFIG,
    members=2,
    temperature=1.5,
    locator=LocatorFacts(extent=(3, 1)),
)
SIZES = {"long": 203, "short": 30}
CONTIGS = [
    SequenceRecord(name, "".join(np.random.default_rng(size).choice(list("ACGT"), size)))
    for name, size in SIZES.items()
]


def network(seed: int) -> LocatorTransformer:
    torch.manual_seed(seed)
    net = LocatorTransformer(CONFIG)
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.mul_(2.0)
    return net


MODEL = TrainedModel(CARD, (network(0), network(1)))


def tracks_of(contig: SequenceRecord, strand: str, circular: bool):
    """Random, but those of one strand are those of the other in reverse, as if the genome were turned."""
    plus = np.random.default_rng(7).integers(0, 256, (2, len(contig))).astype(np.uint8)
    return plus if strand == "+" else plus[:, ::-1]


def call(site: int, strand: str = "+", contig: str = "long", label: str = "start", score: float = 0.9):
    start, end = (site - 3, site + 2) if strand == "+" else (site - 1, site + 4)
    length = SIZES[contig]
    return Call(contig, max(0, start), min(end, length), strand, site, score, label)


def whole_strand(contig: SequenceRecord, strand: str, tracks, *, circular: bool = False):
    """Scores of all letters of a strand, which is continued on both sides as the rules say."""
    codes = DNA.encode(contig.sequence)
    codes = codes if strand == "+" else reverse_complement_codes(codes)
    margin, length = 400, len(codes)
    places = np.arange(-margin, length + margin + -(length + 2 * margin) % 4)
    letters, beside = codes[places % length], tracks[:, places % length]
    if not circular:
        outside = (places < 0) | (places >= length)
        letters[outside], beside[:, outside] = 4, 0
    logits = MODEL.locate(torch.tensor(letters)[None], torch.tensor(beside.copy())[None])[0]
    return logits[margin : margin + length].numpy()  # (L, K)


def explained(site, strand="+", contig="long", circular=False, **options):
    chosen = ExplainOptions(**({"shuffles": 0, "effects": False} | options))
    names = [contig] if circular else []
    calls = [call(site, strand, contig)]
    stretches = cut_stretches(MODEL, CONTIGS, calls, tracks_of, circular=names)
    return list(explain_calls(MODEL, stretches, chosen))


@settings(max_examples=25)
@given(
    st.sampled_from(["long", "short"]),
    st.integers(0, 202),
    st.sampled_from("+-"),
    st.booleans(),
    st.sampled_from(["start", "stop"]),
)
def test_the_score_is_that_of_the_site_in_the_whole_strand(contig, site, strand, circular, target):
    site %= SIZES[contig]
    record = next(one for one in CONTIGS if one.id == contig)
    scores = whole_strand(record, strand, tracks_of(record, strand, circular), circular=circular)
    [found] = explained(site, strand, contig, circular, target=target)
    in_strand = site if strand == "+" else SIZES[contig] - 1 - site
    expected = 1 / (1 + np.exp(-scores[in_strand, CARD.classes.index(target)]))
    assert found.probability == pytest.approx(expected, abs=1e-5)


@given(st.integers(0, 202), st.sampled_from("+-"), st.booleans(), st.sampled_from(["long", "short"]))
def test_each_letter_lies_where_its_position_says(site, strand, circular, contig):
    site %= SIZES[contig]
    [stretch] = cut_stretches(
        MODEL, CONTIGS, [call(site, strand, contig)], tracks_of, circular=[contig] if circular else []
    )
    record = next(one for one in CONTIGS if one.id == contig)
    places = stretch.place.positions()
    assert places[RADIUS] == site
    letters = [record.sequence[p] if p >= 0 else "N" for p in places]
    if strand == "-":
        letters = [reverse_complement(x) for x in letters]
    assert "".join(letters) == DNA.decode(stretch.codes)
    known = np.arange(site - RADIUS, site + RADIUS + 1)
    inside = len(known) if circular else np.count_nonzero((known >= 0) & (known < SIZES[contig]))
    assert np.count_nonzero(places >= 0) == inside


@pytest.mark.parametrize("site", [0, 5, 100, 202])
@pytest.mark.parametrize("circular", [False, True])
@pytest.mark.parametrize("method", GENERAL_METHODS)
def test_a_call_is_explained_alike_on_the_reverse_complement(site, circular, method):
    """Contig lengths are no multiple of 4, so the two strands have tokens of their own."""
    length = SIZES["long"]
    turned = [SequenceRecord("long", reverse_complement(CONTIGS[0].sequence))]
    names = ["long"] if circular else []

    def tracks_of_turned(contig, strand, circle):
        return tracks_of(contig, "-" if strand == "+" else "+", circle)

    there = cut_stretches(MODEL, CONTIGS, [call(site, "-")], tracks_of, circular=names)
    back = cut_stretches(MODEL, turned, [call(length - 1 - site)], tracks_of_turned, circular=names)
    options = ExplainOptions(methods=(method,), shuffles=2, settings=MethodSettings(steps=3))
    [one], [other] = explain_calls(MODEL, there, options), explain_calls(MODEL, back, options)
    assert one.sequence == other.sequence
    np.testing.assert_array_equal(one.scores, other.scores)
    np.testing.assert_array_equal(one.p, other.p)
    np.testing.assert_array_equal(
        np.where(one.place.positions() < 0, -1, length - 1 - one.place.positions()), other.place.positions()
    )


def test_every_method_and_member_is_given():
    found = explained(60, methods=GENERAL_METHODS, members="each", effects=True)
    assert [(e.method, e.member) for e in found] == [
        (method, member) for method in GENERAL_METHODS for member in ("mean", "1", "2")
    ]
    for e in found:
        assert e.scores.shape == (2 * RADIUS + 1,)
        assert e.effects.shape == (2 * RADIUS + 1, 4)
        assert (e.id, e.label, e.target) == ("start_1", "start", "start")
    for mean, one, two in zip(found[::3], found[1::3], found[2::3], strict=True):
        np.testing.assert_allclose(mean.scores, (one.scores + two.scores) / 2, atol=1e-12)


def test_best_calls_come_first_and_the_class_may_be_that_called():
    calls = [call(50, score=0.5), call(60, label="stop", score=0.9), call(10, contig="short", score=0.7)]
    stretches = cut_stretches(MODEL, iter(CONTIGS), best_calls(calls, 2), tracks_of)
    assert [one.id for one in stretches] == ["stop_2", "start_3"]
    options = ExplainOptions(target="called", shuffles=0)
    assert [e.target for e in explain_calls(MODEL, stretches, options)] == ["stop", "start"]


def test_a_call_in_words():
    boxes = (Box("-10", 35, "TATAAT"), Box("-35", 12, "TTGACA"))
    known = {
        "precision": 0.788,
        "trust": "high",
        "gene": "ompC",
        "locus": "b2215",
        "distance": 79,
        "boxes": boxes,
    }
    whole = replace(call(50, score=0.4776), context=CallContext(**known))
    assert whole.summary == (
        "ompC (b2215), 79 bases before the gene, trust high (precision 0.79), score 0.478, "
        "-35 TTGACA, -10 TATAAT"
    )
    inside = CallContext(gene="g1", locus="g1", distance=0, within="g2", within_strand="opposite")
    assert replace(whole, context=inside).summary == (
        "g1, at the first bases of the gene, antisense to g2, score 0.478"
    )
    assert replace(whole, context=None).summary == "score 0.478"


def test_calls_of_a_gene_by_its_name_or_locus_tag():
    named = [("a", "b1"), ("c", "b2"), ("a", "b3"), ("", "")]
    calls = [
        replace(call(50), id=str(i), context=CallContext(gene=g, locus=t)) for i, (g, t) in enumerate(named)
    ]
    for gene, expected in (("a", "02"), ("b2", "1"), ("b3", "2")):
        assert [one.id for one in calls_of_gene(calls, gene, "x.gff3")] == list(expected)
    with pytest.raises(InputError, match=r"x\.gff3: has no call of the gene 'b22'; did you mean 'b2'"):
        calls_of_gene(calls, "b22", "x.gff3")
    with pytest.raises(InputError, match="no call of the gene ''; 'seqray scan --genes-out"):
        calls_of_gene(calls, "", "x.gff3")


def test_input_shares_by_hand():
    [stretch] = cut_stretches(MODEL, CONTIGS, [call(80)], tracks_of)
    found = input_shares(MODEL, 3, stretch)
    plus = tracks_of(CONTIGS[0], "+", False)
    with_genes = whole_strand(CONTIGS[0], "+", plus)[80, 0]
    without = whole_strand(CONTIGS[0], "+", np.zeros_like(plus))[80, 0]
    assert (found.record, found.id, found.target) == (3, "start_1", "start")
    assert found.score == pytest.approx(with_genes, abs=1e-5)
    assert found.without_genes == pytest.approx(without - with_genes, abs=1e-5)
    assert 0 < found.letters < 1
    assert list(found.tracks) == ["known", "start"]
    assert found.shuffled != 0


def test_without_genes_the_letters_have_it_all():
    [stretch] = cut_stretches(MODEL, CONTIGS, [call(80)], lambda *_: None)
    found = input_shares(MODEL, 0, stretch)
    assert (found.letters, found.without_genes) == (1.0, 0.0)
    assert set(found.tracks.values()) == {0.0}


def test_rankings_of_calls_are_checked():
    calls = [call(site, strand) for site in (20, 100, 202) for strand in "+-"]
    stretches = cut_stretches(MODEL, CONTIGS, calls, tracks_of)
    found = check_calls(MODEL, stretches, ExplainOptions(methods=("rollout", "input-x-gradient")))
    assert list(found.verdicts) == ["rollout", "input-x-gradient"]
    gains = {c.method: c for c in found.checks if c.measure == "deletion_gain"}
    assert gains["input-x-gradient"].value > 0
    assert gains["input-x-gradient"].records == len(calls)
    assert {c.against for c in found.checks if c.measure == "share_of_reference"} == {"input-x-gradient"}


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (Call("long", 10, 60, "+", 30, 0.9, "start"), "has 50 bases, but those of the model have 5"),
        (call(60, label="enhancer"), "is a enhancer; the model knows start, stop"),
        (Call("other", 10, 15, "+", 13, 0.9, "start"), "lies on 'other', the genome has"),
        (Call("short", 28, 30, "+", 31, 0.9, "start"), "has its site at 32, beyond the end of 'short'"),
        (Call("long", 10, 15, ".", 13, 0.9, "start"), "has the strand '.'"),
    ],
)
def test_calls_that_are_not_of_this_genome_and_model_are_refused(wrong, message):
    with pytest.raises(InputError, match=message):
        cut_stretches(MODEL, CONTIGS, [wrong], tracks_of, source="calls.gff3")


@given(st.integers(-9, 9), st.integers(1, 25), st.sampled_from("+-"), st.booleans(), st.data())
def test_a_part_of_a_place_has_its_positions(start, size, strand, circular, data):
    place = Place("c", start % 10 if circular else start, 0, strand, 10, circular)
    place = replace(place, end=place.start + size)
    first = data.draw(st.integers(0, size - 1))
    stop = data.draw(st.integers(first + 1, size))
    part = place.part(first, stop)
    assert part.positions().tolist() == place.positions()[first:stop].tolist()
    assert not circular or 0 <= part.start < 10


def test_a_part_of_an_explanation():
    [whole] = explained(60, "-", methods=("ism",), effects=True, shuffles=2)
    part = whole.part(RADIUS - 5, RADIUS + 5)
    assert part.sequence == whole.sequence[RADIUS - 5 : RADIUS + 5]
    assert part.place.positions()[5] == whole.place.positions()[RADIUS] == 60
    for name in ("scores", "effects", "p", "q"):
        np.testing.assert_array_equal(getattr(part, name), getattr(whole, name)[RADIUS - 5 : RADIUS + 5])


def test_letters_beyond_the_end_have_no_place_in_tables_and_tracks(tmp_path):
    [e] = explained(2)
    rows = list(explanation_rows(e))
    assert [row[3] for row in rows] == [None] * (RADIUS - 2) + list(range(RADIUS + 3))
    track = ScoreTrack()
    track.add(e)
    track.write(tmp_path / "x.bedgraph", [], "x")
    lines = (tmp_path / "x.plus.bedgraph").read_text().splitlines()
    found = [line.split("\t") for line in lines if line.startswith("long\t")]
    assert {int(start) for _, start, *_ in found} <= set(range(RADIUS + 3))
    assert len(found) >= 1


def test_the_table_of_inputs(tmp_path):
    shares = InputShares(
        *(0, "start_1", Place("long", 30, 35, "-", 90), "start", 0.75, 1.1, 0.25, -2.0, -3.0),
        {"known": 0.5, "start": -0.75},
    )
    write_shares(tmp_path / "x.tsv", [shares])
    header, row = (line.split("\t") for line in (tmp_path / "x.tsv").read_text().splitlines()[-2:])
    assert dict(zip(header, row, strict=True)) == {
        **{"record": "start_1", "contig": "long", "site": "32", "strand": "-", "class": "start"},
        **{"score": "0.75", "log_odds": "1.1", "letters": "0.25", "genes": "0.75"},
        **{"without_genes": "-2", "letters_shuffled": "-3", "first_track": "start", "first_effect": "-0.75"},
    }


GENOME = "".join(np.random.default_rng(0).choice(list("ACGT"), 100))


def window_call(start, strand="+", contig="chr", length=20):
    return Call(contig, start, start + length, strand, start + 12, 0.9, "promoter")


@given(st.integers(0, 99), st.sampled_from("+-"))
def test_each_letter_of_a_window_lies_where_its_position_says(start, strand):
    [record], [place] = extract_call_windows(
        [SequenceRecord("chr", GENOME)], [window_call(start, strand)], DNA, 20
    )
    assert record.id == "promoter_1"
    letters = [GENOME[p] for p in place.positions()]
    if strand == "-":
        letters = [reverse_complement(x) for x in letters]
    assert "".join(letters) == record.sequence
    assert place.length == 100


def test_order_and_names_are_those_of_the_calls():
    contigs = [SequenceRecord("a", GENOME), SequenceRecord("b", GENOME[::-1])]
    calls = [window_call(5, contig="b"), window_call(3, contig="a"), window_call(1, "-", contig="b")]
    records, places = extract_call_windows(iter(contigs), calls, DNA, 20)
    assert [r.id for r in records] == ["promoter_1", "promoter_2", "promoter_3"]
    assert [(p.contig, p.start, p.strand) for p in places] == [("b", 5, "+"), ("a", 3, "+"), ("b", 1, "-")]
    assert records[1].sequence == GENOME[3:23]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (window_call(5, length=30), "call 'promoter_1' has 30 bases, but those of the model have 20"),
        (window_call(5, contig="plasmid"), "lies on 'plasmid', the genome has"),
        (window_call(100), "at 101-120 lies beyond the end of 'chr'"),
        (window_call(-1), "lies beyond the end of 'chr'"),
        (window_call(5, strand="."), "has the strand '.'; use + or -"),
    ],
)
def test_calls_that_do_not_fit_are_refused(wrong, message):
    with pytest.raises(InputError, match=r"x\.gff3") as error:
        extract_call_windows([SequenceRecord("chr", GENOME)], [wrong], DNA, 20, "x.gff3")
    assert message in str(error.value)
