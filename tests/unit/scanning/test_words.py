"""What a scan says of its calls: their boxes, their surroundings, and when not to trust them."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from seqray.calibration.expected_precision import Expectation, ExpectedPrecision
from seqray.core.alphabet import DNA, reverse_complement_codes
from seqray.core.boxes import BOXES, NO_BOX, BoxPattern, find_boxes
from seqray.core.card_parts import LocatorFacts
from seqray.core.records import Contig, Intervals
from seqray.core.results import Box, SpeciesRow
from seqray.core.serialization import from_mapping
from seqray.genome.genes import Annotation, Gene
from seqray.inference.origin import NO_FIGURES
from seqray.io.records import read_fasta
from seqray.modelfile.model import TrainedModel
from seqray.scanning.options import ScanOptions
from seqray.scanning.results import CallTable, FalseCalls, ScanCounts, ScanResult
from seqray.scanning.scorers import LETTERS_AFTER as AFTER, LETTERS_BEFORE as BEFORE, make_scorer
from seqray.scanning.words import call_cautions, genome_cautions, judge, stated_precision, summary

SITE = 60
SIGMA70 = BOXES["bacteria"]

# Boxes and spacers as in Hawley and McClure 1983, or the papers that the headers of the file name.
LITERATURE = {
    "lacP1": ("TTTACA", 18, "TATGTT"),
    "lacUV5": ("TTTACA", 18, "TATAAT"),
    "trp": ("TTGACA", 17, "TTAACT"),
    "recA": ("TTGATA", 16, "TATAAT"),
    "rrnB_P1": ("TTGTCA", 16, "TATAAT"),
    "tyrT": ("TTTACA", 16, "TATGAT"),
    "lambda_PR": ("TTGACT", 17, "GATAAT"),
    "lambda_PL": ("TTGACA", 17, "GATACT"),
    "lambda_PRM": ("TAGATA", 17, "TAGATT"),
    "T7_A1": ("TTGACT", 17, "GATACT"),
    "bla_P3": ("TTCAAA", 17, "GACAAT"),
}


def one(sequence, site=SITE):
    """Offsets and letters of the boxes of one sequence."""
    places, extended = find_boxes(DNA.encode(sequence)[None], site, SIGMA70)
    ten, thirty_five = places[0].tolist()
    letters = [sequence[site + first : site + first + 6] if first else None for first in (thirty_five, ten)]
    return thirty_five, ten, *letters, bool(extended[0])


@pytest.fixture(scope="module")
def known(request):
    path = request.config.rootpath / "data" / "example" / "promoters.fa"
    return {record.id: record.sequence for record in read_fasta(path, DNA)}


@pytest.mark.parametrize("name", LITERATURE)
def test_boxes_of_known_promoters(known, name):
    thirty_five, ten, first, last, _ = one(known[name])
    assert (first, ten - thirty_five - 6, last) == LITERATURE[name]
    assert known[name].count(first) == 1 or first == "TTTACA"  # the place is as certain as the letters


def test_an_extended_box_without_a_partner(known):
    # galP1 works without a -35 box, by TG one letter before TATGGT (Keilty and Rosenberg 1987).
    assert one(known["galP1"])[2:] == (None, "TATGGT", True)


def test_promoters_that_need_activators_show_no_boxes(known):
    assert one(known["araBAD"]) == (NO_BOX, NO_BOX, None, None, False)


def planted(distance, spacer, minus35="TTGACA", minus10="TATAAT", gap="C"):
    """A site at index 60 whose -10 box ends so many letters before; the rest is C."""
    before = minus35 + gap * spacer + minus10 + gap * (distance - 1)
    return (gap * SITE + before)[-SITE:] + gap * 21


@pytest.mark.parametrize("distance", range(2, 13))
@pytest.mark.parametrize("spacer", range(13, 22))
def test_boxes_are_found_at_the_distances_stated(distance, spacer):
    thirty_five, ten, *_ = one(planted(distance, spacer))
    inside = 4 <= distance <= 10
    assert ten == (-distance - 5 if inside else NO_BOX)
    paired = inside and 15 <= spacer <= 19
    assert thirty_five == (ten - spacer - 6 if paired else NO_BOX)


@pytest.mark.parametrize("first", range(-36, -20))
@pytest.mark.parametrize("spacer", range(6))
def test_boxes_of_archaea_are_found_at_the_distances_stated(first, spacer):
    """The TATA box begins 31 to 27 letters before the start, and 1 to 3 lie between it and the other."""
    before = "AGTAAT" + "C" * spacer + "TTTATA" + "C" * (-first - 6)
    codes = DNA.encode(("C" * SITE + before)[-SITE:] + "C" * 21)[None]
    places, extended = find_boxes(codes, SITE, BOXES["archaea"])
    inside = -31 <= first <= -27
    other = first - spacer - 6 if inside and 1 <= spacer <= 3 else NO_BOX
    assert places.tolist() == [[first if inside else NO_BOX, other]]
    assert not extended


def test_a_box_is_found_where_it_says():
    """Three letters of 2 bits each; 2 letters between it and the start cost 1 bit, 3 cost 2, 4 cost 3."""
    weights = np.where(np.eye(4)[[0, 2, 1]] > 0, 2.0, -2.0)  # AGC
    box = BoxPattern(name="BOX1", weights=weights, nearest=2, costs=np.array([1.0, 2.0, 3.0]))
    for between, first in ((1, NO_BOX), (2, -5), (3, -6), (4, NO_BOX)):  # 6 - 3 bits are too few
        codes = DNA.encode("T" * (SITE - 3 - between) + "AGC" + "T" * (between + 21))[None]
        assert find_boxes(codes, SITE, (box,))[0][0, 0] == first


def test_a_usual_arrangement_beats_an_unusual_one():
    # Two equal -10 boxes, ending 7 and 13 letters before the site: the usual one is taken.
    sequence = ("C" * SITE + "TATAATTATAAT" + "C" * 6)[-SITE:] + "C" * 21
    assert one(sequence)[1] == -12


def test_unknown_letters_make_no_box():
    assert one(planted(7, 17, minus10="TATANT"))[1] == NO_BOX
    assert one(planted(7, 17, minus35="TTNACA"))[:2] == (NO_BOX, -12)
    assert one("N" * 81) == (NO_BOX, NO_BOX, None, None, False)


@pytest.mark.parametrize("kingdom", ["bacteria", "archaea"])
def test_the_reach_is_all_that_is_read(kingdom):
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 4, (500, 81), dtype=np.uint8)
    other = codes.copy()
    reach = sum(len(box.weights) + box.nearest + len(box.costs) - 1 for box in BOXES[kingdom])
    other[:, : SITE - reach] = rng.integers(0, 4, (500, SITE - reach), dtype=np.uint8)
    other[:, SITE:] = 4
    both = (find_boxes(table, SITE, BOXES[kingdom]) for table in (codes, other))
    for one_way, other_way in zip(*both, strict=True):
        assert np.array_equal(one_way, other_way)


@pytest.mark.parametrize(("gc", "pair", "alone"), [(0.3, 0.16, 0.09), (0.5, 0.04, 0.03), (0.7, 0.005, 0.005)])
def test_chance_shows_boxes_as_often_as_stated(gc, pair, alone):
    rng = np.random.default_rng(1)
    shares = [(1 - gc) / 2, gc / 2, gc / 2, (1 - gc) / 2]
    found, _ = find_boxes(rng.choice(4, (20_000, 81), p=shares).astype(np.uint8), SITE, SIGMA70)
    ten, two = (found != NO_BOX).T
    assert two.mean() == pytest.approx(pair, abs=0.01)
    assert (ten & ~two).mean() == pytest.approx(alone, abs=0.01)
    assert not (two & ~ten).any()


LENGTH = 1000
# On plus abc 200-500 and xyz 400-800; on minus rev 600-900, which begins at 899.
GENES = (Gene(200, 500, "+", "abc", "b1"), Gene(400, 800, "+", "xyz"), Gene(600, 900, "-", "rev", "b3"))


def describe(*calls, letters=None, circular=False, label="promoter", genes=GENES, expected=None):
    """Contexts of calls: site, and strand, score and contig."""
    table = CallTable(label, (0, 0))
    for i, call in enumerate(calls):
        site, strand, score, contig = (*call, *("+", 0.5, "c")[len(call) - 1 :])
        codes = np.full((1, BEFORE + 1 + AFTER), 4, dtype=np.uint8) if letters is None else letters[i : i + 1]
        found = strand, np.array([site]), np.array([score]), codes
        table.add(Contig(contig, LENGTH, circular), [found])
    genome = genes if genes is None or isinstance(genes, Annotation) else Annotation({"c": genes}, "test")
    table.describe(genome, expected)
    return [call.context for call in table]


def test_calls_outside_the_parts_of_a_contig_are_left_out():
    table, parts = CallTable("promoter", (2, 1)), Intervals.merge([(10, 20)])
    found = np.array([9, 10, 19, 20]), np.array([0.5, 0.6, 0.7, 0.8]), np.empty((4, 0), np.uint8)
    table.add(Contig("c", LENGTH, False, parts), [("-", *found)])
    assert [(call.start, call.site, call.end, call.strand) for call in table] == [
        (9, 10, 13, "-"),
        (18, 19, 22, "-"),
    ]
    assert [call.site for call in table.reaching(0.65)] == [19]


@pytest.mark.parametrize(
    ("site", "strand", "gene", "locus", "distance", "within", "within_strand"),
    [
        (150, "+", "abc", "b1", 50, "", ""),
        (200, "+", "abc", "b1", 0, "abc", "same"),  # a transcript without a leader
        (202, "+", "abc", "b1", 0, "abc", "same"),  # it may begin two bases inside
        (203, "+", "xyz", "", 197, "abc", "same"),
        (700, "+", "", "", None, "xyz", "same"),  # in rev as well, on the other strand
        (850, "+", "", "", None, "rev", "opposite"),
        (950, "-", "rev", "b3", 51, "", ""),
        (899, "-", "rev", "b3", 0, "rev", "same"),
        (300, "-", "", "", None, "abc", "opposite"),
        (999, "+", "", "", None, "", ""),
    ],
)
def test_genes_around_a_site(site, strand, gene, locus, distance, within, within_strand):
    [found] = describe((site, strand))
    assert (found.gene, found.locus, found.distance) == (gene, locus, distance)
    assert (found.within, found.within_strand) == (within, within_strand)


def test_without_genes_nothing_is_said_of_them():
    for genes in (None, Annotation({"other": GENES}, "test")):
        [found] = describe((150,), genes=genes)
        assert (found.gene, found.distance, found.within) == ("", None, "")


def entry(genes, precision):
    return {
        "species": "a",
        "held_out": "region",
        "genes": genes,
        "rows": [[0.8, 1, 0.5, precision, 0, 1], [0.4, 2, 0.5, precision / 2, 0, 1]],
    }


def test_the_worth_of_a_score_depends_on_whether_the_genes_of_its_contig_are_known():
    expected = ExpectedPrecision(
        from_mapping(LocatorFacts, {"tolerance": 25, "expected": [entry(True, 0.9), entry(False, 0.2)]})
    )
    calls = [(1, "+", 0.9), (1, "+", 0.7), (1, "+", 0.3), (1, "+", 0.9, "d")]
    high, lower, unmeasured, other = describe(*calls, expected=expected)
    assert (high.precision, high.trust) == (pytest.approx(0.9), "high")
    assert (lower.precision, lower.trust) == (pytest.approx(0.45), "medium")  # halfway from .9 to 0
    assert (unmeasured.precision, unmeasured.trust) == (None, "doubtful")  # for it is below those measured
    assert (other.precision, other.trust) == (pytest.approx(0.2), "doubtful")
    assert (describe((1,))[0].precision, describe((1,))[0].trust) == (None, "")


def promoter(before=7, spacer=17):
    """Letters around a site, with boxes; the -10 box ends so many letters before it."""
    upstream = "TTGACA" + "C" * spacer + "TATAAT" + "C" * (before - 1)
    return DNA.encode("C" * (BEFORE - len(upstream)) + upstream + "C" * (1 + AFTER))


def test_places_of_boxes_on_either_strand():
    genome = np.full(LENGTH, 1, dtype=np.uint8)
    window = promoter()
    genome[500 - BEFORE : 500 + AFTER + 1] = window
    [found] = describe((500,), letters=window[None])
    # Of the -10 box the last letter is 7 before the site, and the first 5 before that.
    assert found.boxes == (Box("-10", 488, "TATAAT"), Box("-35", 465, "TTGACA"))
    assert (found.spacer, found.extended) == (17, False)
    assert DNA.decode(genome[488:494]) == "TATAAT"
    other = DNA.encode("C" * (BEFORE - 37) + "AGTAATCCTTTATA" + "C" * (24 + AFTER))
    tables = np.stack([window, other])
    for kingdom, names in (("bacteria", ("-10", "-35")), ("archaea", ("TATA", "BRE")), ("eukaryotes", ())):
        expected = ExpectedPrecision(LocatorFacts(kingdom=kingdom))
        contexts = describe((500,), (500,), letters=tables, expected=expected)
        for context, bacterial in zip(contexts, (True, False), strict=True):
            own = bacterial == (kingdom == "bacteria")
            assert tuple(box.name for box in context.boxes) == (names if own else ())
            assert (context.spacer is not None) == bool(context.boxes)
        if kingdom == "archaea":
            assert contexts[1].boxes == (Box("TATA", 471, "TTTATA"), Box("BRE", 463, "AGTAAT"))
            assert (contexts[1].spacer, contexts[1].extended) == (2, None)

    [turned] = describe((499, "-"), letters=window[None])
    other = reverse_complement_codes(genome)
    for box in turned.boxes:
        piece = other[box.start : box.start + 6]
        assert DNA.decode(reverse_complement_codes(piece)) == box.letters
    assert [box.start for box in turned.boxes] == [506, 529]


def test_boxes_across_the_origin_of_a_circle():
    letters = np.stack([promoter()] * 2)
    forward, backward = describe((10,), (LENGTH - 11, "-"), letters=letters, circular=True)
    assert [box.start for box in forward.boxes] == [LENGTH - 2, LENGTH - 25]
    assert [box.start for box in backward.boxes] == [LENGTH - 4, 19]


def test_sites_of_other_classes_have_no_boxes():
    [found] = describe((500,), letters=promoter()[None], label="terminator")
    assert (found.boxes, found.spacer, found.extended) == ((), None, None)


def scanned(*, letters=10_000, calls=0, positions=None, genes=0, parts=None, **more) -> ScanResult:
    """A scan of one sequence, on one strand, with so many calls and genes; None for unknown genes."""
    table, contig = CallTable("promoter", (0, 0)), Contig("c", letters, False, parts)
    sites = np.arange(calls)
    table.add(
        replace(contig, parts=None), [("+", sites, np.full(calls, 0.6), np.empty((calls, 0), np.uint8))]
    )
    genome = Annotation({"c": tuple(Gene(i, i + 9, "+", f"g{i}") for i in range(genes or 0))}, "a file")
    rest = {"threshold": 0.5, "genes": genome if more.get("from_positions") and genes is not None else None}
    positions = letters if positions is None else positions
    counts = ScanCounts(contigs=1, letters=letters, positions=2 * positions)
    return ScanResult(calls=table, counts=counts, scanned=[contig], **rest, **more)


DEFAULT = ScanOptions()


def said(options=DEFAULT, **more) -> list[str]:
    return list(call_cautions(scanned(options=options, **more)))


def located(options=DEFAULT, **more) -> list[str]:
    """What is said of a scan with a locator, in which ten genes of 10,000 letters are known."""
    return said(options, **{"from_positions": True, "genes": more.get("letters", 10_000) // 1000, **more})


def rows_of(*rows, left_out=True):
    spread = [row.precision for row in rows if (row.held_out == "species") == left_out]
    return Expectation(rows, left_out, min(spread), sum(spread) / len(spread), max(spread))


@pytest.mark.parametrize(("calls", "cautioned"), [(9, True), (20, True), (21, False), (0, False)])
def test_calls_as_frequent_as_chance_are_cautioned(calls, cautioned):
    chance = FalseCalls(1000, 600, 2000, 0.01, 10, 0.01)  # 10 (6 to 20) in the input
    line = (
        f"caution: shuffled sequence gives 10 calls (6 to 20) where the input has {calls}: by their number, "
    )
    assert said(calls=calls, false_calls=chance) == [line + "the calls can't be told from chance"] * cautioned


def test_a_scan_that_searched_nothing_is_cautioned():
    [line] = said(positions=0)
    assert line.startswith("caution: no position was searched")


def limits(tiny, options=DEFAULT, **card):
    return make_scorer(TrainedModel(replace(tiny.card, **card), tiny.networks), options).limits


def test_a_model_without_a_threshold_for_scans_is_cautioned(tiny_model):
    card = {"prevalence": 0.4, "threshold": 0.45, "info": {}, "site": 3}
    [line] = limits(tiny_model, **card)
    assert "the threshold 0.45 is that for single windows, of which 40% were sites" in line
    assert not limits(tiny_model, ScanOptions(threshold=0.45), **card)
    assert not limits(tiny_model, ScanOptions(fdr=0.1), **card)
    assert not limits(tiny_model, **card | {"info": {"scan_threshold": 0.9}})


def test_classes_that_are_not_searched_and_an_unknown_site_are_named(tiny_model):
    classes = ("sigma70", "sigma24", "sigma54", "background")
    known = {"classes": classes, "positive": "sigma70", "info": {"scan_threshold": 0.9}}
    model = replace(tiny_model.card.model, classes=4)
    assert limits(tiny_model, model=model, site=None, **known) == [
        "only the class 'sigma70' is searched, none of the 3 others",
        "the model does not state where a site lies in its windows: calls state the middle",
    ]


@pytest.mark.parametrize(
    ("options", "species", "caution"),
    [
        ({"precision": 0.7}, "A", "in A, which the input is like, this threshold has 0.48: give species='A'"),
        ({"precision": 0.5}, "A", None),  # .48 is near
        ({"precision": 0.7}, "B", None),  # was not measured
        ({"precision": 0.7, "species": "A"}, "A", None),
        ({"threshold": 0.7}, "A", None),
    ],
)
def test_a_precision_of_other_species_is_cautioned(options, species, caution):
    expectation = rows_of(SpeciesRow("A", "region", 0.0, 0.5, 0.48, 0.4, 0.5), left_out=False)
    found = located(ScanOptions(**options), expectation=expectation, species=species)
    assert [caution in text for text in found] == ([True] if caution else [])


@pytest.mark.parametrize(
    ("recalls", "text"),
    [
        ((0.31, 0.42), "finds 0.31 of the mapped sites on average, and with genes 0.42"),
        ((None, 0.42), "without genes a model for genomes finds fewer sites"),
    ],
)
def test_what_a_scan_without_genes_costs(recalls, text):
    [found] = said(from_positions=True, recalls=recalls, genes=None)
    assert text in found


@pytest.mark.parametrize(
    ("genes", "words"),
    [(10, "expect other figures"), (30, None), (54, "try genes='predict' with codon_table=4 or 11")],
)
def test_too_few_and_too_many_genes_are_cautioned(genes, words):
    """Of 30 kb: .33, 1 and 1.8 per kb, as M. pneumoniae has by table 11."""
    assert [words in text for text in located(letters=30_000, genes=genes)] == ([True] if words else [])


def test_codon_tables_are_no_remedy_where_genes_were_predicted():
    result = scanned(from_positions=True, genes=54, letters=30_000)
    result.genes = replace(result.genes, source="predicted by pyrodigal 3")
    [caution] = call_cautions(result)
    assert "1.8 genes per kb" in caution
    assert "codon" not in caution


def test_an_empty_input_has_no_caution_about_genes():
    result = scanned(from_positions=True, genes=None, recalls=(None, 0.4))
    result.scanned = []
    assert list(call_cautions(result)) == []


@pytest.mark.parametrize(
    ("model", "letters", "better"),
    [
        ("ecoli-promoter", 500_000, "bacteria-genome"),
        ("ecoli-promoter", 499_999, None),
        ("ecoli-promoter", None, None),
        ("human-promoter-300", 500_000, None),
    ],
)
def test_a_model_of_windows_on_a_whole_genome_names_one_for_genomes(model, letters, better):
    assert [better in text for text in genome_cautions(model, letters)] == ([True] if better else [])


@pytest.mark.parametrize("named", [True, False])
def test_no_precision_is_stated_where_another_model_is_named(named):
    row = SimpleNamespace(calls_per_kb=0.7, species="a", held_out="species", precision=0.5, low=0.4, high=0.6)
    expected = Expectation((row,), True, 0.5, 0.5, 0.5)
    result = scanned(from_positions=True, genes=9, calls=9, expectation=expected)
    judge(result, [f"caution: take archaea-genome; {NO_FIGURES}" if named else "caution: short"])
    assert (stated_precision(result) == "not known") == named
    assert ("precision to expect" in summary(result, 0)) == (not named)


def test_of_contigs_without_genes_the_caution_says_which_precision_is_theirs():
    result = scanned(from_positions=True, genes=9)
    result.scanned = [*result.scanned, Contig("d", 4000, False)]
    [caution] = call_cautions(result)
    assert "1 of 2 sequences are not named in a file" in caution
    assert "their 'precision' is that without genes, but the threshold and the precision to expect" in caution
    assert caution.endswith("by themselves with genes='predict' or genes=None")


@pytest.mark.parametrize(
    ("letters", "calls", "cautioned"), [(9000, 38, True), (9000, 19, False), (90_000, 0, True)]
)
def test_far_more_and_far_fewer_calls_than_in_measured_genomes_are_cautioned(letters, calls, cautioned):
    """Measured genomes have .6 to .8 per kb: more than 1.6 or fewer than .3 are far; few calls are chance."""
    rows = [SimpleNamespace(calls_per_kb=0.6, species="a"), SimpleNamespace(calls_per_kb=0.8, species="b")]
    found = located(letters=letters, calls=calls, expectation=Expectation(tuple(rows), True, 0, 0, 0))
    text = "calls per kb, where genomes that were measured have 0.6 to 0.8"
    assert [text in line for line in found] == [True] * cautioned
