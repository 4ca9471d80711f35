"""Scans with a locator: scores against one pass over a contig, and calls that no way of work alters."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st

import seqray.inference.locators
from seqray.core.alphabet import DNA, reverse_complement
from seqray.core.card_parts import LocatorFacts
from seqray.core.errors import ConfigError
from seqray.core.records import SequenceRecord, parse_region
from seqray.core.serialization import from_mapping
from seqray.genome.find import choose_genes
from seqray.genome.genes import Annotation, Gene, gene_tracks
from seqray.inference.locators import Strand, StrandScorer
from seqray.modelfile.model import TrainedModel
from seqray.scanning.options import ScanCallbacks, ScanOptions, ShardNumber
from seqray.scanning.scan import scan_sequences
from seqray.scanning.scorers import make_scorer
from seqray.scanning.shards import ShardFile, gather_shards, scan_shard, write_shard
from tables import letters

CHUNK = 64  # small, so that a short contig has several


@pytest.fixture(autouse=True, scope="module")
def small_chunks():
    threads = torch.get_num_threads()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(seqray.inference.locators, "CHUNK", CHUNK)
        yield
    torch.set_num_threads(threads)


GENES = (Gene(30, 120, "+", "a"), Gene(100, 190, "-", "b"), Gene(200, 260, "+", "rna", coding=False))


def source_of(records, genes):
    return Annotation({record.id: genes for record in records}, "test")


def scan(model, text, genes=None, *, circular=False, profiles=None, threads=1, callbacks=None, **options):
    records = [SequenceRecord("c", text, circular=circular)] if isinstance(text, str) else text
    heard = callbacks or ScanCallbacks(on_profile=profiles.append if profiles is not None else None)
    source = None if genes is None else source_of(records, genes)
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        chosen = ScanOptions(**{"min_distance": 5, **options})
        result = scan_sequences(make_scorer(model, chosen, genes=source), records, heard)
        assert torch.get_num_threads() == threads
        return result
    finally:
        torch.set_num_threads(before)


def rows(result):
    return [(c.contig, c.start, c.end, c.strand, c.site, c.score) for c in result.calls]


def track(profiles):
    return {
        (p.strand, site): score
        for p in profiles
        for site, score in zip(p.sites.tolist(), p.scores.tolist(), strict=True)
        if score == score
    }


@pytest.mark.parametrize("circular", [False, True])
def test_chunks_of_one_pass_have_the_scores_of_one_at_a_time(locator, circular, monkeypatch):
    """As a GPU computes them: five whole chunks and 30 letters."""
    strand = Strand(DNA.encode(letters(5 * CHUNK + 30, 3)), circular=circular)
    by_size = []
    for size in (1, 4):
        scorer = StrandScorer(locator)
        monkeypatch.setattr(scorer, "_chunks_of_a_pass", size)
        by_size.append(scorer.chunks(strand, range(6)))
    assert [len(scores) for scores in by_size[1]] == [CHUNK] * 5 + [30]
    np.testing.assert_allclose(np.concatenate(by_size[1]), np.concatenate(by_size[0]), rtol=0, atol=1e-6)


def brute(model, text, genes, strand, circular):
    """One pass over the whole strand, with unknown letters or the other end of the circle on both sides."""
    margin, length = 100, len(text)
    read = text if strand == "+" else reverse_complement(text)
    codes = DNA.encode(read)
    tracks = gene_tracks(genes, length, strand, circular=circular)
    around = np.arange(-margin, -(-length // 4) * 4 + margin)
    inside = (around >= 0) & (around < length)
    padded, rows_ = codes[around % length], tracks[:, around % length]
    if not circular:
        padded, rows_ = np.where(inside, padded, 4), np.where(inside, rows_, 0)
    given_tracks = None if genes is None else torch.from_numpy(rows_.astype(np.uint8))[None]
    logits = model.locate(torch.from_numpy(padded.astype(np.int64))[None], given_tracks)[0, :, 0]
    scores = torch.sigmoid(logits.double()).numpy()[margin : margin + length]
    return scores if strand == "+" else scores[::-1]


@pytest.mark.parametrize("genes", [None, (), GENES])
@pytest.mark.parametrize("circular", [False, True])
def test_scores_are_those_of_one_pass_over_the_contig(locator, genes, circular):
    text, profiles = letters(333), []
    scan(locator, text, genes, circular=circular, profiles=profiles)
    found = track(profiles)
    for strand in "+-":
        expected = brute(locator, text, genes, strand, circular)
        own = [found[strand, site] for site in range(333)]
        np.testing.assert_allclose(own, expected, atol=1e-5)


def test_a_call_spans_what_the_card_says_and_ends_with_the_contig(locator):
    everywhere = scan(locator, letters(40), min_distance=1, threshold=0)
    for call in everywhere.calls:
        before, after = (3, 1) if call.strand == "+" else (1, 3)
        assert (call.start, call.end) == (max(call.site - before, 0), min(call.site + after + 1, 40))
    ring = scan(locator, letters(40), min_distance=1, threshold=0, circular=True)
    assert {call.end - call.start for call in ring.calls} == {5}
    assert all(0 <= call.start < 40 for call in ring.calls)


def test_a_call_keeps_the_letters_around_it(locator):
    text = letters(300, seed=9)
    for circular in (False, True):
        result = scan(locator, text, threshold=0.3, circular=circular)
        assert len(result.calls) == len(result.calls.letters) > 5
        for call, codes in zip(result.calls, result.calls.letters, strict=True):
            long = text * 3 if circular else "N" * 300 + text + "N" * 300
            site = 300 + call.site
            around = long[site - 60 : site + 21]
            if call.strand == "-":
                around = reverse_complement(long[site - 20 : site + 61])
            assert DNA.decode(codes) == around


# --- no way of work changes a bit ---------------------------------------------------------------------------


@st.composite
def genomes(draw):
    length = draw(st.integers(1, 400))
    text = letters(length, draw(st.integers(0, 1 << 20)), "ACGTACGTACGTN")
    circular = draw(st.booleans())
    genes = []
    for _ in range(draw(st.integers(0, 4))):
        start = draw(st.integers(0, length - 1))
        most = 2 * length - 1 if circular else length
        end = draw(st.integers(start + 1, min(most, start + length)))
        genes.append(Gene(start, end, draw(st.sampled_from("+-")), "g", coding=draw(st.booleans())))
    return text, circular, draw(st.sampled_from([None, tuple(genes)]))


@settings(max_examples=25)
@given(genomes(), st.integers(1, 500), st.integers(1, 3), st.integers(1, 4))
def test_pieces_threads_and_shards_change_nothing(locator, tmp_path_factory, genome, piece, threads, total):
    text, circular, genes = genome
    records = [SequenceRecord("c", text, circular=circular), SequenceRecord("d", letters(90, seed=2))]
    options = {"threshold": 0.3, "min_distance": 7}
    whole_track, cut_track, gathered_track = [], [], []

    def run(profiles, **more):
        found = None if genes is None else source_of(records[:1], genes)
        chosen = ScanOptions(**options, **more)
        return make_scorer(locator, chosen, genes=found), ScanCallbacks(on_profile=profiles.append)

    scorer, heard = run(whole_track)
    whole = scan_sequences(scorer, records, heard)
    torch.set_num_threads(threads)
    scorer, heard = run(cut_track, piece=piece)
    cut = scan_sequences(scorer, records, heard)
    assert rows(cut) == rows(whole)
    assert track(cut_track) == track(whole_track)
    assert (cut.positions, cut.calls.letters.tolist()) == (whole.positions, whole.calls.letters.tolist())

    folder = tmp_path_factory.mktemp("shards")
    files = []
    for number in range(1, total + 1):
        header, arrays = scan_shard(scorer, records, ScanCallbacks(), ShardNumber(number, total))
        described = {
            "skipped": [],
            "card": ["tiny"],
            "findings": [],
            "command": [],
            "model": ["tiny", "0"],
            "facts": {},
            "options": options,
        }
        texts = {"version": "1", "alphabet": "dna", "engine": "PyTorch", "track name": "x"}
        figures = {"species": None, "foreign": False, "expected": {}}
        write_shard(folder / f"{number}.shard", header | described | texts | figures, arrays)
        files.append(ShardFile(folder / f"{number}.shard"))
    gathered = gather_shards(files, ScanCallbacks(on_profile=gathered_track.append))
    assert rows(gathered) == rows(whole)
    assert gathered.calls.letters.tolist() == whole.calls.letters.tolist()
    assert {key: np.float32(score) for key, score in track(whole_track).items()} == track(gathered_track)
    if whole.genes is None:
        assert gathered.genes is None
    else:
        assert gathered.genes is not None
        assert gathered.genes.genes == whole.genes.genes


@settings(max_examples=20)
@given(genomes(), st.integers(0, 399), st.integers(1, 120))
def test_a_region_gives_the_calls_of_the_whole_scan_within_it(locator, genome, start, size):
    text, circular, genes = genome
    start = start % len(text)
    end = min(start + size, len(text))
    whole = scan(locator, text, genes, circular=circular, threshold=0.4)
    region = (parse_region(f"c:{start + 1}-{end}"),)
    part = scan(locator, text, genes, circular=circular, threshold=0.4, regions=region)
    assert rows(part) == [row for row in rows(whole) if start <= row[4] < end]


@given(st.integers(0, 1 << 20), st.integers(1, 300))
def test_the_other_strand_read_from_the_other_side(locator, seed, length):
    text = letters(length, seed)
    turned = tuple(
        Gene(length - g.end, length - g.start, {"+": "-", "-": "+"}[g.strand], g.name, coding=g.coding)
        for g in GENES
        if g.end <= length
    )
    kept = tuple(g for g in GENES if g.end <= length)
    there = scan(locator, text, kept or None, threshold=0.4)
    back = scan(locator, reverse_complement(text), turned or None, threshold=0.4)
    flipped = sorted((length - 1 - c.site, {"+": "-", "-": "+"}[c.strand], c.score) for c in back.calls)
    assert flipped == sorted((c.site, c.strand, c.score) for c in there.calls)


# --- odd contigs --------------------------------------------------------------------------------------------


def test_unknown_letters_have_no_score(locator):
    profiles = []
    result = scan(locator, letters(100) + "N" * 200 + letters(100, 1), profiles=profiles, threshold=0)
    assert result.positions == 200
    assert {site for _, site in track(profiles)} == {*range(100), *range(300, 400)}
    nothing = scan(locator, "N" * 500, threshold=0)
    assert (nothing.positions, len(nothing.calls)) == (0, 0)


def test_the_best_calls_per_kilobase(locator):
    records = [SequenceRecord(name, letters(3000, seed)) for seed, name in enumerate("ab")]
    everything = scan(locator, records, threshold=0.001, min_distance=10)
    best = sorted((c.score for c in everything.calls), reverse=True)[:12]
    found = scan(locator, records, per_kb=2, min_distance=10)
    assert sorted((c.score for c in found.calls), reverse=True) == best
    assert found.threshold == best[-1]


def row(threshold, precision):
    return [threshold, 1.0, 0.5, precision, precision, precision]


def test_the_threshold_of_an_expected_precision(locator):
    tables = [
        {"species": name, "held_out": held_out, "genes": True, "rows": [row(0.9, high), row(0.1, low)]}
        for name, held_out, high, low in (
            ("E. coli", "region", 0.9, 0.1),
            ("B. subtilis", "species", 0.8, 0.0),
            ("H. pylori", "species", 0.6, 0.2),
        )
    ]
    facts = from_mapping(LocatorFacts, {"tolerance": 25, "expected": tables})
    card = replace(locator.card, locator=facts)
    changed = TrainedModel(card, locator.networks)

    def threshold(**options):
        return make_scorer(changed, ScanOptions(**options), genes=source_of([], ())).threshold

    assert threshold() == 0.6
    # From .1 to .9 the precision of E. coli rises by .8, and the median of the other two from .1 to .7.
    assert threshold(precision=0.5, species="E. coli") == pytest.approx(0.5)
    assert threshold(precision=0.4) == pytest.approx(0.5)
    with pytest.raises(ConfigError, match=r"the highest is 0.70, the median over species"):
        threshold(precision=0.75)


def test_the_threshold_follows_from_genes(locator):
    assert scan(locator, letters(100), ()).threshold == 0.6
    assert scan(locator, letters(100)).threshold == 0.55


def test_genes_of_a_contig_that_is_not_named_are_not_known(locator):
    records = [SequenceRecord("c", letters(300)), SequenceRecord("d", letters(300, 1))]
    source, _ = choose_genes(Annotation({"c": GENES}, "x.gff"), records, lambda record: False)
    chosen = ScanOptions(threshold=0.4)
    result = scan_sequences(make_scorer(locator, chosen, genes=source), records, ScanCallbacks())
    alone = scan(locator, records[1:], threshold=0.4, min_distance=25)
    assert [row for row in rows(result) if row[0] == "d"] == rows(alone)
    assert result.genes is not None
    assert dict(result.genes.genes) == {"c": GENES}
