"""``seqray scan`` with a locator: the page of a scan with a locator."""

from __future__ import annotations

import numpy as np
import pytest

from seqray.core.alphabet import DNA, reverse_complement_codes
from seqray.explanations.locator_scores import input_effects
from seqray.explanations.targets import LocatorTarget
from seqray.genome.read import read_genes
from seqray.genome.tracks import gene_tracks
from tables import letters


def test_the_page_shows_genes_letters_and_scores_around_each_call(
    scan, genome, annotation, tmp_path, monkeypatch
):
    kept = []
    monkeypatch.setattr("seqray.cli.scan_page.render_scan", lambda report: kept.append(report) or "")
    page = tmp_path / "page.html"
    scan(genome, "--genes", annotation, "--threshold", "0.5", "--out", tmp_path / "calls.tsv", "--html", page)
    (report,) = kept
    assert [gene.start for gene in report.genes["one"]] == [300, 1000]
    assert report.gene_source == "GFF3 genes.gff3"
    whole = {"one": letters(3000), "two": letters(700, 1), "tiny": letters(40, 2)}
    turned = str.maketrans("ACGT", "TGCA")
    for i, text in report.letters.items():
        call = report.calls[i]
        padded = "N" * 60 + whole[call.contig] + "N" * 60
        around = padded[call.site + 14 : call.site + 66]
        if call.strand == "-":
            around = padded[call.site + 55 : call.site + 107].translate(turned)[::-1]
        assert text == around  # from 46 letters before the site to 5 behind it
    for i, (plus, minus) in report.profiles.items():
        own = plus if report.calls[i].strand == "+" else minus
        assert own[400] == pytest.approx(report.calls[i].score, abs=1e-3)
    assert len(report.letters) == len(report.profiles) == min(48, len(report.calls)) > 5


def test_letters_on_the_page_have_the_bars_that_explain_gives(
    scan, genome, annotation, locator, tmp_path, monkeypatch
):
    kept = []
    monkeypatch.setattr("seqray.cli.scan_page.render_scan", lambda report: kept.append(report) or "")
    monkeypatch.setattr("seqray.cli.scan_page.STRIP_START", -20)
    page = tmp_path / "page.html"
    scan(genome, "--genes", annotation, "--threshold", "0.5", "--out", tmp_path / "calls.tsv", "--html", page)
    (report,) = kept
    assert set(report.shares) == set(report.profiles)
    radius = locator.locators[0].radius
    index, shares = next((i, s) for i, s in report.shares.items() if 500 < report.calls[i].site < 2500)
    call = report.calls[index]
    codes, genes = DNA.encode(letters(3000)), read_genes(annotation).of("one")
    tracks = gene_tracks(genes, 3000, call.strand)
    if call.strand == "-":
        codes = reverse_complement_codes(codes)
    site = call.site if call.strand == "+" else 2999 - call.site
    first = site - radius
    effects = [
        input_effects(
            LocatorTarget(
                locator,
                network,
                0,
                tracks[:, first : site + radius + 1],
                first % network.stem.stride,
            ),
            codes[first : site + radius + 1],
        )[0]
        for network in locator.locators
    ]
    assert shares == pytest.approx(np.mean(effects, axis=0)[radius - 20 : radius + 6], abs=1e-6)
