"""The page of a scan: figures first, genes and calls where they belong, small, and deaf to hostile names."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest

from seqray.core.boxes import BOXES
from seqray.core.records import Contig, Intervals
from seqray.core.results import Box, Call, CallContext
from seqray.genome.genes import Gene
from seqray.report.html import ModelText
from seqray.report.pages.scan import (
    PLACES,
    ScanReport,
    call_card,
    place_index,
    render_scan,
    short_names,
    shown_calls,
)
from seqray.report.svg.genome import CALL_REACH, arrow_path


def embedded(page):
    """The data of the table, as the page's script reads them."""
    return json.loads(re.search(r"<script type=application/json id=data>(.*?)</script>", page)[1])


def card_of(call, circle=None, **parts):
    contigs = [Contig("c", circle or 1000, circular=circle is not None)]
    settings = {"threshold": 0.5, "provenance": (), "model": ModelText("m")}
    return call_card(ScanReport(title="", calls=[call], contigs=contigs, **settings, **parts), 0)


def test_the_page_holds_every_section(made_scan):
    sections = ["genome", "best", "doubtful", "where", "expected", "all", "card", "provenance"]
    assert re.findall(r"<section id=(\w+)", render_scan(made_scan())) == sections


def test_the_figures_come_first_and_cautions_before_the_maps(made_scan):
    page = render_scan(made_scan())
    figures = dict(re.findall(r"<dt>([^<]+)<dd><b[^>]*>([^<]+)</b>", page))
    assert figures == {
        "Calls": "60",
        "Calls per kb": "0.60",  # 60 in 100 kb
        "Calls per gene": "0.75",  # 60 for 80 genes
        "Precision to expect": "0.44",
        "Model": "made-up",
    }
    assert page.index("Calls per kb") < page.index("unlike the training data") < page.index("<section")


def test_a_scan_of_parts_counts_the_letters_of_the_parts(made_scan):
    page = render_scan(made_scan(searched=20_000))
    assert "<b>3.00</b><small>in 20 kb of 100 kb, 1 sequence</small>" in page  # 60 calls in 20 kb
    assert "Calls per gene" not in page


def test_parts_are_named_shaded_and_have_the_genes_in_them(made_scan):
    # 80 genes of 600 letters, 1250 apart: those from 10,000 to 12,500 are partly or wholly in the first part,
    # and that from 50,000 in the second.
    parts = [(10_500, 13_000), (50_599, 50_700)]
    report = made_scan(contigs=[Contig("chromosome", 100_000, parts=Intervals.merge(parts))], searched=2601)
    page = render_scan(report)
    assert "in 2.6 kb of 100 kb, 1 sequence; searched: chromosome:10,501-13,000, chromosome:50,600-" in page
    assert "<dt>Genes in the parts<dd><b>4</b><small>or partly in them; the whole: 80," in page
    assert "Calls per gene" not in page
    assert "Only the shaded parts were searched." in page
    # The parts span less than half of the contig, so lines of 12,500 letters on 1080 px begin at 10,500, at
    # 74 px; the fourth begins at 48,000, and 2599 letters on are 298.6 px, 2700 are 307.3.
    assert "M74 14H290V" in page
    assert "M298 14H308V" in page
    assert page.count("<path class=searched") == 2
    assert "shaded" not in render_scan(made_scan())


def test_a_bacterium_with_five_thousand_calls_stays_below_five_megabytes(made_scan):
    page = render_scan(made_scan(calls=5000, length=5_000_000, genes=5000, names="a_rather_long_name_{}"))
    assert len(page.encode()) < 5_000_000
    assert page.count("<article") == 48


def test_the_table_has_all_calls_as_they_are(made_scan):
    report = made_scan(calls=300)
    data = embedded(render_scan(report))
    assert np.cumsum(data["site"]).tolist() == [call.site + 1 for call in report.calls]
    assert [data["names"][i] for i in data["gene"]] == [call.context.gene for call in report.calls]
    assert ["+-"[int(c)] for c in data["minus"]] == [call.strand for call in report.calls]
    assert data["score"] == [round(call.score, 3) for call in report.calls]
    assert data["distance"] == [call.context.distance for call in report.calls]
    boxes = {box["name"]: {data["names"][i] for i in box["letters"]} for box in data["boxes"]}
    assert boxes == {"−35": {"TTGACA"}, "−10": {"TATAAT"}}


def test_calls_where_no_genes_are_known_are_not_called_far_from_genes(made_scan):
    report = made_scan()
    [name] = report.genes
    other = [replace(call, contig="other", context=CallContext()) for call in report.calls]
    contigs = [*report.contigs, Contig("other", 50_000)]
    page = render_scan(replace(report, calls=[*report.calls, *other], contigs=contigs))
    text = re.sub("<[^>]*>", " ", page)
    assert name != "other"
    assert "Calls per gene" not in text
    assert re.search(r"no gene follows\s+0\s+0 %", text)


def test_the_table_shows_the_digits_of_the_maps(made_scan):
    """0.4951 is 0.50, though 0.495, as a number of the machine, is below it and would be 0.49."""
    calls = [
        replace(call, context=CallContext(trust="medium", precision=0.4951)) for call in made_scan().calls
    ]
    page = render_scan(replace(made_scan(), calls=calls))
    assert "trust medium, precision 0.50" in re.sub("<[^>]*>", "", page)
    assert {f"{value:.2f}" for value in embedded(page)["precision"]} == {"0.50"}


def test_a_map_shows_the_precision_in_the_species_of_the_input(made_scan):
    context = CallContext(trust="doubtful", precision=0.25)
    calls = [replace(call, context=context) for call in made_scan().calls]
    expected = {"expected_precision": "0.37", "expected_note": "0.31 to 0.42 in X", "trust": "high in X"}
    page = render_scan(replace(made_scan(), calls=calls, **expected))
    text = re.sub("<[^>]*>", "", page)
    assert "precision 0.25" in text
    assert set(embedded(page)["precision"]) == {0.25}
    assert "Trust: high in X. Starts that nobody mapped count as false." in text
    assert "A share of 0.37 is expected to be near a mapped start: 0.31 to 0.42 in X." in text


def test_lines_of_several_contigs_name_the_one_that_goes_on(made_scan):
    contigs = [Contig("chromosome", 90_000), Contig("plasmid", 10_000)]
    page = render_scan(replace(made_scan(), contigs=contigs))
    labels = re.findall("<text class=contig[^>]*>([^<]*)<", page)
    assert labels[:2] == ["chromosome", "12.5 kb of chromosome"]
    assert labels[-2:] == ["87.5 kb of chromosome", "plasmid"]
    assert "12.5 kb</text>" in render_scan(made_scan())


def test_predicted_genes_are_named_after_the_accession(made_scan):
    report = made_scan()
    contig = "gi|9626243|ref|NC_001416.1|"
    [genes] = report.genes.values()
    named = [replace(gene, name=f"{contig}_{n}") for n, gene in enumerate(genes, start=1)]
    context = CallContext(gene=f"{contig}_3", within=f"{contig}_2")
    calls = [replace(call, contig=contig, context=context) for call in report.calls]
    contigs = [replace(report.contigs[0], name=contig)]
    page = render_scan(replace(report, contigs=contigs, genes={contig: named}, calls=calls))
    assert f"{contig}_" not in page
    assert {"NC_001416.1_3", "NC_001416.1_2"} <= set(embedded(page)["names"])


def test_names_that_would_be_equal_stay_long():
    gene = Gene(0, 9, "+", "")
    long = {f"{bank}|A.1|": [replace(gene, name=f"{bank}|A.1|_1")] for bank in ("gb", "ref")}
    assert short_names(long) == {}


@pytest.mark.parametrize(("shown", "best", "doubtful"), [(2, [1, 3], [2, 4]), (4, [1, 3, 5, 0], [2, 4])])
def test_best_and_doubtful_calls_are_those_at_either_end(monkeypatch, shown, best, doubtful):
    monkeypatch.setattr("seqray.report.pages.scan.MAX_CALL_MAPS", shown)
    assert shown_calls(np.array([0.5, 0.9, 0.2, 0.9, 0.3, 0.7])) == (best, doubtful)
    assert shown_calls(np.empty(0)) == ([], [])


def test_without_genes_a_page_has_calls_and_profiles_only(made_scan):
    calls = [replace(call, context=None) for call in made_scan(genes=0).calls]
    page = render_scan(made_scan(genes=0, calls=len(calls), gene_source=""))
    page_of_windows = render_scan(replace(made_scan(genes=0), calls=calls, letters={}, shares={}))
    for text in (page, page_of_windows):
        assert "Calls per gene" not in text
        assert "<h3>1. " in text
        assert 'class=own d="M' in text
        assert "gene" not in embedded(text)


def test_only_the_name_of_a_contig_may_be_written_right_to_left(made_scan):
    report = made_scan(calls=1, contig="\u05d0")
    [call] = report.calls
    strand = {"+": "+", "-": "\u2212"}[call.strand]
    assert f"<bdi>\u05d0</bdi>:{call.site + 1:,} ({strand})<" in render_scan(report)


def test_a_scan_without_calls_says_so(made_scan):
    page = render_scan(made_scan(calls=0))
    assert page.count("There are no calls.") == 2
    assert "id=data" not in page


def test_a_gene_across_the_origin_is_drawn_on_both_sides():
    call = Call("c", 10, 11, "-", 10, 0.9, "start", CallContext(gene="ori"))
    gene = Gene(950, 1020, "-", "ori")  # on a circle of 1000: 950 to 999 and 0 to 19
    drawn = card_of(call, 1000, genes={"c": [gene]}).map
    # reading direction of "-": offsets from 10 - 19 = -9 to 10 - (-50) = 60, so 70 letters right of -9
    left, right = 28 + (400 - 9) / 801 * 400, 28 + (400 + 61) / 801 * 400
    found = re.findall(r'<path d="M([\d.]+) [\d.]+H([\d.]+)', drawn)
    assert len(found) == 1
    assert float(found[0][0]) == pytest.approx(left, abs=0.06)
    assert float(found[0][1]) + 6 == pytest.approx(right, abs=0.12)  # the head is 6 px long


@pytest.mark.parametrize(("strand", "site", "box"), [("+", 500, 488), ("-", 500, 507)])
def test_boxes_are_drawn_where_they_are_in_reading_direction(strand, site, box):
    context = CallContext(boxes=(Box("-10", box, "TATAAT"),))
    call = Call("c", site, site + 1, strand, site, 0.9, "start", context)
    marked = card_of(call, boxes=BOXES["bacteria"]).boxes
    assert [(b.name, b.start, b.letters) for b in marked] == [("-10", -12, "TATAAT")]


def test_profiles_turn_with_the_call():
    plus, minus = np.zeros((2, 2 * CALL_REACH + 1))
    minus[CALL_REACH] = 1.0  # the call itself, on the minus strand
    plus[0] = 1.0  # the leftmost letter, which is 400 downstream of the call
    call = Call("c", 500, 501, "-", 500, 1.0, "start")
    drawn = card_of(call, profiles={0: (plus, minus)}).map
    own = re.search(r'class=own d="([^"]+)"', drawn)[1]
    other = re.search(r'class=other d="([^"]+)"', drawn)[1]
    assert own == "M28 62h200v-46h1v46h199V62z"  # 801 letters in 400 columns: 200 begins with letter 400
    assert other == "M28 106h399v46h1V106z"


def test_arrows_point_where_the_gene_is_read():
    assert arrow_path(0, 20, 0, 10, ">") == "M0 0H14l6 5 -6 5H0z"
    assert arrow_path(0, 20, 0, 10, "<") == "M20 0H6l-6 5 6 5H20z"
    assert arrow_path(0, 20, 0, 10, "") == "M0 0H20v10H0z"


@pytest.mark.parametrize(
    ("context", "place"),
    [
        (CallContext(gene="a", distance=30), "upstream of a gene, between genes"),
        (CallContext(gene="a", distance=0, within="a", within_strand="same"), "at the first bases of a gene"),
        (
            CallContext(gene="a", distance=30, within="b", within_strand="same"),
            "upstream of a gene, inside another gene",
        ),
        (CallContext(within="b", within_strand="same"), "inside a gene, on its strand"),
        (CallContext(within="b", within_strand="opposite"), "inside a gene, antisense"),
        (CallContext(), "between genes, no gene follows"),
    ],
)
def test_where_a_call_lies(context, place):
    assert PLACES[place_index(context)] == place


def test_nothing_searched_is_0_calls_per_kb_as_on_the_terminal(made_scan):
    figures = re.findall(r"<dt>([^<]+)<dd><b[^>]*>([^<]+)</b>", render_scan(made_scan(searched=0)))
    assert dict(figures)["Calls per kb"] == "0"
