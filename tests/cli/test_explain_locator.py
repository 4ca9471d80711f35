"""``seqray explain`` of the calls of a locator, from scan to page, and the same from Python."""

import pyBigWig
import pytest

import seqray
from seqray.io.explanations import EXPLANATION_COLUMNS, SHARE_COLUMNS
from tables import body, fasta, gff3, letters, table, write

STRETCH = "data/example/stretch.gb"
RADIUS = 26  # of the model `locator_file`
SEQUENCES = {"one": letters(1501), "two": letters(302, 1)}
GENES = [("one", 301, 900, "+"), ("one", 1001, 1300, "-"), ("two", 100, 249, "+")]


@pytest.fixture
def verb(run, locator_file, tmp_path):
    """Run a verb with the locator where genome.fa, genes.gff3 and the calls of a scan are."""
    write(tmp_path / "genome.fa", fasta(SEQUENCES))
    write(tmp_path / "genes.gff3", gff3(GENES))

    def call(name, *words, **more):
        return run(name, "--threads 1 --model", locator_file, *words, **more)

    call("scan", "genome.fa --genes genes.gff3 --out calls.gff3 --per-kb 8")
    return call


@pytest.fixture
def explain(verb):
    words = "genome.fa --calls calls.gff3 --no-check --shuffles 0"
    return lambda *more: verb("explain", words, *more)


def attributes(path):
    rows = [line.split("\t") for line in body(path.read_text())]
    return [(row[0], row[6], dict(pair.split("=", 1) for pair in row[8].split(";"))) for row in rows]


def test_each_call_is_explained_in_its_place(verb, tmp_path):
    words = "genome.fa --calls calls.gff3 --genes genes.gff3 --best-calls 6 --shuffles 2 --method rollout"
    files = "--out o.tsv --html r.html --plot p.svg --motifs m.meme --track t.bw --inputs i.tsv"
    ended = verb("explain", words, files)
    assert "6 records" in ended.err
    assert "random rankings" in ended.err
    rows = table((tmp_path / "o.tsv").read_text())
    assert list(rows[0]) == list(EXPLANATION_COLUMNS)
    assert len(rows) == 6 * (2 * RADIUS + 1)
    known = {one["ID"]: (contig, strand, one) for contig, strand, one in attributes(tmp_path / "calls.gff3")}
    shares = table((tmp_path / "i.tsv").read_text())
    assert list(shares[0]) == list(SHARE_COLUMNS)
    for share in shares:
        contig, strand, call = known[share["record"]]
        assert (share["contig"], share["strand"]) == (contig, strand)
        assert int(share["site"]) == int(call["tss"]) - 1
        assert float(share["score"]) == pytest.approx(float(call["score"]), abs=1e-5)
        assert float(share["letters"]) + float(share["genes"]) == pytest.approx(1, abs=1e-6)
        mine = [row for row in rows if row["record"] == share["record"]]
        assert sum(float(row["score"]) for row in mine) == pytest.approx(1, abs=1e-4)
        assert int(mine[RADIUS]["genomic_position"]) == int(share["site"])
    turned = str.maketrans("ACGT", "TGCA")
    track = {s: pyBigWig.open(str(tmp_path / f"t.{s}.bw")) for s in ("plus", "minus")}
    for row in rows[:: RADIUS // 2]:
        if row["genomic_position"] == ".":
            assert row["base"] == "N"
            continue
        place = int(row["genomic_position"])
        base = SEQUENCES[row["contig"]][place]
        assert row["base"] == (base if row["strand"] == "+" else base.translate(turned))
        strand = "plus" if row["strand"] == "+" else "minus"
        assert track[strand].values(row["contig"], place, place + 1)[0] >= float(row["score"]) - 1e-6
    page = (tmp_path / "r.html").read_text()
    assert "score of promoter" in page
    assert "probability of promoter" not in page
    assert all(share["record"] in page for share in shares)


def test_genes_change_what_is_explained(explain):
    known = explain("--best-calls 2 --top 3 --genes genes.gff3")
    unknown = explain("--best-calls 2 --top 3 --genes none")
    assert "another score" not in known.err
    assert "caution: calls with another score here: " in unknown.err
    assert known.facts["genes"] == "GFF3 genes.gff3"
    assert unknown.facts["genes"] == "not known"
    assert len(known.rows) == len(unknown.rows) == 6
    assert known.rows != unknown.rows


def test_calls_that_were_chosen_keep_their_names(explain, tmp_path):
    head, *rows = (tmp_path / "calls.gff3").read_text().splitlines()
    write(tmp_path / "calls.gff3", "\n".join([head, *rows[-3:-1], ""]))
    found = explain("--genes genes.gff3 --top 1").rows
    places = [(known["ID"], contig) for contig, _, known in attributes(tmp_path / "calls.gff3")]
    assert [(row["record"], row["contig"]) for row in found] == places
    assert "promoter_1" not in dict(places)
    write(tmp_path / "calls.gff3", "\n".join([head, rows[-2], rows[-3], rows[-2], ""]))
    found = explain("--genes genes.gff3 --top 1").rows
    assert [row["record"] for row in found] == ["promoter_1", "promoter_2", "promoter_3"]
    assert {row["method"] for row in found} == {"input-x-gradient"}


def test_the_calls_of_one_gene_and_what_their_file_says(explain, tmp_path):
    known = [call for _, _, call in attributes(tmp_path / "calls.gff3")]
    gene = next(call["gene"] for call in known if "gene" in call)
    own = {call["ID"]: call for call in known if call.get("gene") == gene}
    assert 0 < len(own) < len(known)
    found = explain("--genes genes.gff3 --top 1 --gene", gene)
    assert [row["record"] for row in found.rows] == list(own)
    stated = {key.removeprefix("call "): text for key, text in found.facts.items() if key.startswith("call ")}
    assert stated.keys() == own.keys()
    for name, text in stated.items():
        assert text.startswith(f"{gene}, ")
        distance = own[name]["distance"]
        assert ("first base" if distance == "0" else f"{distance} base") in text
        assert f"score {float(own[name]['score']):.3g}" in text
    best = explain("--genes genes.gff3 --top 1 --best-calls 1 --gene", gene).rows
    assert [row["record"] for row in best] == [max(own, key=lambda name: float(own[name]["score"]))]


def test_python_says_the_same(explain, locator, tmp_path):
    genome, calls, genes = (tmp_path / name for name in ("genome.fa", "calls.gff3", "genes.gff3"))
    rows = explain("--genes genes.gff3").rows
    expected = [float(row["score"]) for row in rows]
    frame = seqray.scan(locator, genome, genes=genes, per_kb=8)
    for given in (frame, calls):
        found = seqray.explain(locator, genome, calls=given, genes=genes, shuffles=0, effects=False)
        assert found.record.tolist() == [row["record"] for row in rows]
        assert found.score.tolist() == pytest.approx(expected, rel=1e-5, abs=1e-9)
    best = seqray.explain(
        locator, genome, calls=frame.nlargest(1, "score"), genes=genes, shuffles=0, effects=False
    )
    assert len(best) == 2 * RADIUS + 1
    assert set(best.record) == set(frame.nlargest(1, "score").id)
    with pytest.raises(seqray.ConfigError, match="calls="):
        seqray.explain(locator, genome)
    with pytest.raises(seqray.InputError, match="'contig'"):
        seqray.explain(locator, genome, calls=frame.drop(columns="contig"))


def test_calls_across_an_origin_are_explained_on_a_circle(verb, explain, locator, tmp_path):
    """From a frame of calls, some of its rows, and a file of calls; another table has to be told."""
    genome = write(tmp_path / "genome.fa", fasta({"one": letters(161), "two": letters(161, 1)}))
    genes = write(tmp_path / "genes.gff3", "##gff-version 3\n" + "".join(
        f"one\tx\tCDS\t{a}\t{b}\t.\t+\t0\tID=a\n" for a, b in ((1, 60), (102, 161))
    ))  # fmt: skip
    verb("scan", "genome.fa --genes genes.gff3 --circular-id one --per-kb 40 --out calls.gff3")
    rows = explain("--genes genes.gff3").rows
    assert "." not in {row["genomic_position"] for row in rows if row["contig"] == "one"}
    expected = [float(row["score"]) for row in rows]
    frame = seqray.scan(locator, genome, genes=genes, circular_ids=("one",), per_kb=40)
    assert frame.attrs["circular"] == ["one"]
    settings = {"genes": genes, "shuffles": 0, "effects": False}
    told = frame.assign(score=frame.score)
    told.attrs = {}
    for given, circular in ((frame, None), (tmp_path / "calls.gff3", None), (told, ("one",)), (told, "one")):
        found = seqray.explain(locator, genome, calls=given, **settings, circular=circular)
        assert found.score.tolist() == pytest.approx(expected, rel=1e-5, abs=1e-9)
    some = seqray.explain(locator, genome, calls=frame[frame.contig == "one"], **settings)
    assert some.genomic_position.notna().all()
    for circular in (False, "one or two"):  # a name, no collection of letters
        linear = seqray.explain(locator, genome, calls=told, **settings, circular=circular)
        assert linear.score.tolist() != pytest.approx(expected, rel=1e-5, abs=1e-9)


def test_python_reads_the_genes_of_a_genbank_file(locator):
    own, predicted, named = (
        seqray.scan(locator, STRETCH, genes=genes, per_kb=3) for genes in ("auto", "predict", STRETCH)
    )
    assert own.equals(named)
    assert not own.equals(predicted)
