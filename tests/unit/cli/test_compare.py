"""Starts of two strains; every number here is worked out by hand."""

import math
import random

import pytest
from hypothesis import given, strategies as st
from scipy.stats import binom

from seqray.cli.compare import COLUMNS, Start, compare_starts, read_starts
from seqray.core.alphabet import reverse_complement
from seqray.core.errors import InputError
from seqray.core.records import SequenceRecord
from tables import tsv, write


def at(gene, distance, letters=""):
    return Start(f"{gene}{distance}", "c:1(+)", gene, distance, 0.5, "high", letters, at=60)


def changes(a, b, tolerance=5, genomes=([], [])):
    rows = [dict(zip(COLUMNS, row, strict=True)) for row in compare_starts(a, b, tolerance, 0, genomes)]
    return [(row["change"], row["call_a"], row["call_b"], row["shift"]) for row in rows]


def test_starts_of_one_gene_are_matched_the_nearest_first():
    a = [at("x", 30), at("x", 80), at("y", 40), at("z", 10), at(".", 7)]
    b = [at("x", 34), at("x", 120), at("y", 40), at("w", 20), at("x", 300), at(".", 9)]
    assert changes(a, b, genomes=()) == [
        ("same", "x30", "x34", 4),
        ("moved", "x80", "x120", 40),
        ("same", "y40", "y40", 0),
        ("lost", "z10", None, None),
        ("gained", None, "w20", None),
        ("gained", None, "x300", None),
    ]
    assert changes(a[:1], b[:1], tolerance=3, genomes=()) == [("moved", "x30", "x34", 4)]


def bases(count, seed):
    return "".join(random.Random(seed).choices("ACGT", k=count))


def test_starts_are_matched_by_the_letters_around_them_whatever_their_genes_are_called():
    genome, other = bases(200, 0), bases(81, 1)
    changed = genome[50:131][:40] + "ACGT" * 3 + genome[50:131][52:]  # at most 12 of 81 differ
    a = [at("p_1", 1, genome[50:131]), at("p_2", 2, other)]
    b = [at("q_7", 1, genome[38:119]), at("q_8", 2, bases(81, 2))]  # 12 letters farther upstream
    assert changes(a, b) == [
        ("moved", "p_11", "q_71", 12),
        ("lost", "p_22", None, None),
        ("gained", None, "q_82", None),
    ]
    assert changes(a[:1], [at("r", 1, changed)]) == [("same", "p_11", "r1", 0)]


def other_bases(letters, places):
    return "".join("ACGT"["ACGT".find(x) - 1] if k in places else x for k, x in enumerate(letters))


@pytest.mark.parametrize(("unlike", "same"), [(24, True), (25, False)])  # 57 and 56 of 81 are 70.4 and 69.1 %
@pytest.mark.parametrize("farther", [0, 3, -4])
def test_starts_that_are_left_may_agree_in_fewer_bases(unlike, same, farther):
    a = bases(200, 0)
    b = other_bases(a, range(50, 50 + 3 * unlike, 3))
    first = 50 - farther
    starts = [at("p_1", 25, a[50:131])], [at("q_1", 25, b[first : first + 81])]
    overlap = 81 - abs(farther)
    differ = len(set(range(50, 50 + 3 * unlike, 3)) & set(range(first, first + 81)))
    [row, *more] = compare_starts(*starts, 5, 0, ([], []))
    if 10 * (overlap - differ) >= 7 * overlap:
        assert (row[0], row[2], row[-1]) == ("same", farther, f"{differ} of {overlap} bases differ")
    else:
        assert (row[0], more[0][0]) == ("lost", "gained")
    assert farther or (row[0] == "same") == same


def test_chance_does_not_make_partners():
    alike = 2 * 0.37**2 + 2 * 0.13**2  # of two bases at random, 26 % of them G or C
    overlaps = [81 - abs(shift) for shift in range(-10, 11)]
    reached = sum(binom.sf(math.ceil(0.7 * overlap) - 1, overlap, alike) for overlap in overlaps)
    assert 190_000 * reached < 0.02
    a, b = ([at(f"{seed}", 1, bases(81, seed)) for seed in seeds] for seeds in (range(40), range(40, 80)))
    assert {change for change, *_ in changes(a, b)} == {"lost", "gained"}


NOWHERE = "the start of A: no such bases; that of B: no such bases"


@pytest.mark.parametrize("unlike", [0, 24])  # of the 81 bases of the gene
@pytest.mark.parametrize(
    ("distance", "first", "expected"),
    [
        (43, 0, ("replaced", 3, f"the same gene; 59 of 78 bases differ; {NOWHERE}")),
        (70, 0, ("moved", 30, f"the same gene; {NOWHERE}")),
        (70, 20, ("moved", 50, f"the same gene; {NOWHERE}")),
        (190, 0, ("moved", 150, f"the same gene; {NOWHERE}")),
        (191, 0, ("lost", None, "no such bases")),
    ],
)
def test_starts_of_one_gene_whose_bases_differ_have_moved(unlike, distance, first, expected):
    gene = bases(120, 8)
    a = at("p_1", 40, bases(81, 5))._replace(of_gene=gene[20:101])
    near = range(20, 20 + unlike * (3 if first == 0 else 0), 3)
    other = other_bases(gene, near)[20 - first :]  # which may begin before
    b = at("q_1", distance, bases(81, 6))._replace(of_gene=other[:81])
    row = compare_starts([a], [b], 5, 0, ([], []))[0]
    assert (row[0], row[2], row[-1]) == expected
    low = b._replace(score=0.2)
    told = reasons(compare_starts([a], [low], 5, 0.3, ([], [])))
    near = expected[0] == "replaced"
    assert told[0][1].startswith("below the threshold; the same gene; " if near else "no such bases")


@pytest.mark.parametrize(
    ("farther", "reason"),
    [(5, "below the threshold; the same 76 bases"), (6, "no such bases"), (47, "no such bases")],
)
def test_a_call_below_the_threshold_is_a_reason_for_its_own_place_alone(farther, reason):
    letters = bases(200, 0)
    a = at("p_1", 72, letters[100:181])
    low = at("q_1", 72 + farther, letters[100 - farther : 181 - farther])._replace(score=0.2)
    lost, gained = ("unsure", "unsure") if "same" in reason else ("lost", "gained")
    assert reasons(compare_starts([a], [low], 5, 0.3, ([], []))) == [(lost, reason)]
    assert reasons(compare_starts([low], [a], 5, 0.3, ([], []))) == [(gained, reason)]


@pytest.mark.parametrize(("score", "change"), [(0.29, "lost"), (0.31, "unsure")])
def test_a_score_just_below_the_threshold_shows_no_loss(score, change):
    a, b = at("p_1", 1, TATAAT), at("q_1", 1, other_bases(TATAAT, {1}))._replace(score=score)
    for pair, only in (((a, b), change), ((b, a), change.replace("lost", "gained"))):
        [(found, reason)] = reasons(compare_starts(*([one] for one in pair), 5, 0.4, ([], [])))
        assert (found, "just" in reason) == (only, change == "unsure")


@pytest.mark.parametrize(
    ("trust", "score", "told"),  # a start with .5, medium in A
    [
        ("medium", 0.3, None),
        ("medium", 0.29, "weaker"),
        ("medium", 0.71, "stronger"),
        ("doubtful", 0.45, None),  # of another species, whose scores have other words
        ("high", 0.55, None),
    ],
)
@pytest.mark.parametrize("unlike", [set(), {52}])
def test_a_start_that_both_have_is_said_to_be_weaker_or_stronger(trust, score, told, unlike):
    a = at("p_1", 1, TATAAT)._replace(trust="medium", boxes=[("-10", range(-12, -6))])
    b = at(".", 1, other_bases(TATAAT, unlike))._replace(trust=trust, score=score)
    [row] = compare_starts([a], [b], 5, 0, ([], []))
    bases = "1 of 81 bases differ: -8 A>T in the -10 box" if unlike else "the same 81 bases" if told else ""
    assert row[:2] == ("same", "p_1")
    assert row[-1] == ("; ".join(filter(None, (told, bases))) or None)
    [row] = compare_starts([b], [a], 5, 0, ([], []))
    assert row[:2] == ("same", "p_1")


@given(st.lists(st.integers(0, 500), max_size=6, unique=True))
def test_calls_compared_with_themselves_are_the_same(seeds):
    own = [at("x", seed, bases(81, seed)) for seed in seeds]
    assert changes(own, own) == [("same", one.call, one.call, 0) for one in own]
    assert [change for change, *_ in changes(own, [])] == ["lost"] * len(own)
    assert [change for change, *_ in changes([], own)] == ["gained"] * len(own)


def reasons(rows):
    return [(row[0], row[-1]) for row in rows]


def test_a_start_that_one_strain_has_alone_tells_why_as_far_as_the_tables_do():
    low = at("y", 40)._replace(score=0.2)
    a, b = [at("x", 30), at("x", 80), at("y", 40), at("z", 10)], [at("x", 34), low]
    expected = [("same", None), ("lost", "another start of the gene"), ("same", "weaker"), ("lost", None)]
    assert reasons(compare_starts(a, b, 5)) == expected
    expected[2] = ("lost", "below the threshold")
    assert reasons(compare_starts(a, b, 5, 0.3)) == expected
    assert reasons(compare_starts([low], b, 5, 0.3)) == [("gained", None)]


@pytest.mark.parametrize("strand", "+-")
def test_genomes_tell_whether_the_bases_of_a_lost_start_are_there(tmp_path, strand):
    rest, own = bases(300, 3), bases(81, 4)
    other = own[:10] + ("A" if own[10] != "A" else "C") + own[11:]  # 1 of 81 differs
    b = rest + (other if strand == "+" else reverse_complement(other)) + rest
    genomes = [SequenceRecord("a", rest[:150] + own + bases(200, 5))], [SequenceRecord("b", b)]
    rows = [
        ("p", "a", "+", 150 + 60, 0.5, "high", "a_1", 9),
        ("q", "a", "+", 150 + 181, 0.5, "high", ".", "."),
    ]
    starts = read_starts(write(tmp_path / "a.tsv", tsv(HEADER, rows)), genomes[0])
    assert [start.letters for start in starts] == [own, genomes[0][0].sequence[271:352]]
    change = f"-50 {own[10]}>{other[10]}"  # index 60 is the start
    there = f"1 of 81 bases differ at b:301-381({strand}): {change}"
    assert reasons(compare_starts(starts, [], 5, 0, genomes)) == [("lost", there), ("lost", "no such bases")]
    genomes[1][0] = SequenceRecord(
        "b", b.replace(b[300:381], own if strand == "+" else reverse_complement(own))
    )
    there = f"the same 81 bases; other genes or bases farther away differ, at b:301-381({strand})"
    assert reasons(compare_starts(starts[:1], [], 5, 0, genomes)) == [("unsure", there)]
    with pytest.raises(InputError, match="names the contig 'a', the genome has 'b'; rename one of them"):
        read_starts(tmp_path / "a.tsv", genomes[1])


HEADER = "id contig strand site score trust gene distance"
# The box lies 12 to 7 bases before the start, index 60.
TATAAT = bases(47, 20) + "GTATAATG" + bases(4, 21) + "GG" + bases(19, 22) + "G"


@pytest.mark.parametrize(("strand", "site", "box"), [("+", 260, 248), ("-", 220, 227)])
@pytest.mark.parametrize(
    ("places", "differences"),
    [
        ({52}, "1 of 81 bases differ{}: -8 A>T in the -10 box"),
        (
            {47, 48, 53, 54},
            "4 of 81 bases differ{}: -13 G>C, -10 box TATAAT>GATAAG, -6 G>C",
        ),
        ({59, 60, 80}, "3 of 81 bases differ{}: -1 G>C, +1 G>C, +21 G>C"),
        (range(6), "6 of 81 bases differ{}"),
        (range(48, 54), "6 of 81 bases differ{}: -10 box TATAAT>GTGTTG"),
        ({52, *range(6)}, "7 of 81 bases differ{}: -8 A>T in the -10 box"),
    ],
)
def test_few_bases_that_differ_are_told_with_their_boxes(tmp_path, strand, site, box, places, differences):
    rest, other = bases(200, 3), other_bases(TATAAT, places)
    texts = (rest + (text if strand == "+" else reverse_complement(text)) + rest for text in (TATAAT, other))
    genomes = [[SequenceRecord(name, text)] for name, text in zip("ab", texts, strict=True)]
    paths = [
        write(
            tmp_path / f"{name}.tsv",
            tsv(
                f"{HEADER} minus10 minus10_start",
                [("p", name, strand, site, score, "high", ".", ".", "TATAAT", box)],
            ),
        )
        for name, score in (("a", 0.5), ("b", 0.2))
    ]
    a, b = (read_starts(path, genome) for path, genome in zip(paths, genomes, strict=True))
    lost = differences.format(f" at b:201-281({strand})")
    assert reasons(compare_starts(a, [], 5, 0.3, genomes)) == [("lost", lost)]
    weak = "below the threshold; " + differences.format("")
    assert reasons(compare_starts(a, b, 5, 0.3, genomes)) == [("lost", weak)]
    turned = [start._replace(score=0.7 - start.score) for start in (*a, *b)]  # A has the base before ">"
    assert reasons(compare_starts(turned[:1], turned[1:], 5, 0.3, genomes)) == [("gained", weak)]


def test_starts_at_the_end_of_a_contig_are_matched_at_their_place(tmp_path):
    contig = bases(300, 1)
    rows = [("p", "c", "+", 45, 0.5, "high", "g", 40), ("q", "c", "-", 290, 0.5, "high", ".", ".")]
    whole = read_starts(write(tmp_path / "a.tsv", tsv(HEADER, rows)), [SequenceRecord("c", contig)])
    cut = [(name, "c", sign, site - 20, 0.5, "high", ".", ".") for name, _, sign, site, *_ in rows]
    ends = read_starts(write(tmp_path / "b.tsv", tsv(HEADER, cut)), [SequenceRecord("c", contig[20:])])
    assert [start.at for start in (*whole, *ends)] == [45, 9, 25, 9]
    assert whole[0].of_gene == contig[85:166]
    assert changes(whole, ends) == [("same", "p", "p", 0), ("same", "q", "q", 0)]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (("a", "d", "+", 9, 0.5, "high", "g", 3), "names the contig 'd', the genome has 'c'"),
        (("a", "c", "+", "x", 0.5, "high", "g", 3), "has 'x' instead of a position"),
        (("a", "c", "+", 9, 0.5, "high", "g", "."), "has '.' instead of a position"),
    ],
)
def test_calls_that_can_t_be_compared_are_refused(tmp_path, row, message):
    path = write(tmp_path / "c.tsv", tsv(HEADER, [row]))
    with pytest.raises(InputError, match="line 2") as caught:
        read_starts(path, [SequenceRecord("c", bases(100, 1))])
    assert message in str(caught.value)


def test_genes_named_after_contigs_can_t_be_compared_by_name(tmp_path):
    path = write(tmp_path / "c.tsv", tsv(HEADER, [("a", "c", "+", 9, 0.5, "high", "c_12", 3)]))
    with pytest.raises(InputError, match="named after its contig"):
        read_starts(path)


def test_places_count_from_1(tmp_path):
    rows = [("a", "c", "+", 9, 0.5, "high", "g", 3), ("b", "c", "-", 4, 0.25, "doubtful", ".", ".")]
    path = write(tmp_path / "c.tsv", tsv(HEADER, rows))
    one, two = read_starts(path, [SequenceRecord("c", bases(100, 1))])
    assert (one.place, one.distance, two.place, two.distance) == ("c:10(+)", 3, "c:5(-)", None)


@pytest.mark.parametrize("strand", "+-")
@pytest.mark.parametrize(
    ("change", "in_b", "in_a"),  # of the 14 bases before the start; as told of A's start, and of B's
    [
        (lambda text: text[:46] + "AC" + text[46:], "inserted between -15 and -14", "between -17 and -14"),
        (lambda text: text[:44] + text[46:], "deleted between -17 and -14", "between -15 and -14"),
    ],
)
def test_bases_that_are_inserted_or_deleted_are_told(tmp_path, strand, change, in_b, in_a):
    own = bases(44, 11) + "GTTG" + bases(33, 12)  # A and C differ from what is beside them
    texts = [bases(200, 3) + text + bases(200, 13) for text in (own, change(own))]
    sites = [260, 200 + len(change(own)) - 21]
    starts, genomes = [], []
    for name, text, site in zip("ab", texts, sites, strict=True):
        genomes.append([SequenceRecord(name, text if strand == "+" else reverse_complement(text))])
        place = site if strand == "+" else len(text) - 1 - site
        row = ("p", name, strand, place, 0.5, "high", ".", ".")
        starts.append(read_starts(write(tmp_path / name, tsv(HEADER, [row])), genomes[-1]))
    a, b = starts
    assert reasons(compare_starts(a, b, 5, 0, genomes)) == [("same", f"2 bases {in_b}")]
    [(lost, told)], [(gained, turned)] = (
        reasons(compare_starts(*of, 5, 0, genomes)) for of in ((a, []), ([], b))
    )
    assert (lost, told.rpartition(" at ")[0]) == ("lost", f"2 bases {in_b}")
    how = "inserted" if "inserted" in in_b else "deleted"
    assert (gained, turned.rpartition(" at ")[0]) == ("gained", f"2 bases {how} {in_a}")


@pytest.mark.parametrize("mutated", [False, True])  # the eighth base before the start
@pytest.mark.parametrize(
    ("codon", "other", "told"),  # of the gene in B, and where a call of B has its gene
    [
        ("ATG", None, None),
        ("GTG", None, None),
        ("ATA", None, "the start codon of the gene is ATA in B"),
        ("ATG", 0, None),
        ("ATG", 30, "the gene begins 30 bases farther downstream in B"),
        ("ATG", -12, "the gene begins 12 bases farther upstream in B"),
        ("ATG", 151, None),  # this is another gene
    ],
)
def test_a_gene_that_begins_elsewhere_makes_a_loss_unsure(tmp_path, mutated, codon, other, told):
    own, gene = bases(100, 14), bases(300, 15)
    text = other_bases(own, {52}) if mutated else own
    genomes = [[SequenceRecord(n, x + y + gene)] for n, x, y in (("a", own, "ATG"), ("b", text, codon))]
    row = ("p", "a", "+", 60, 0.5, "high", "a_1", 40)
    a = read_starts(write(tmp_path / "a.tsv", tsv(HEADER, [row])), genomes[0])
    b = []
    if other is not None:  # far from the start of A, below the threshold
        row = ("q", "b", "+", 20, 0.2, "high", "b_1", 80 + other)
        b = read_starts(write(tmp_path / "b.tsv", tsv(HEADER, [row])), genomes[1])
    bases_told = "1 of 81 bases differ" if mutated else "the same 81 bases"
    [(change, reason)] = reasons(compare_starts(a, b, 5, 0.3, genomes))
    assert change == ("lost" if mutated and not told else "unsure")
    assert reason.startswith(f"{told}; {bases_told}" if told else bases_told)
    [x], farther = a, other or 0
    weak = [x._replace(score=0.2, distance=40 + farther, of_gene=gene[farther:][:81])]
    [(change, reason)] = reasons(compare_starts(a, weak, 5, 0.3, genomes))
    assert ("the gene begins" in str(reason)) == (other in (30, -12))
