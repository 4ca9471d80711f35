"""``seqray explain`` of the calls of a locator, from scan to page."""

from __future__ import annotations

import pyBigWig
import pytest

from seqray.cli.main import main
from seqray.io.explanations import EXPLANATION_COLUMNS, SHARE_COLUMNS
from tables import letters, table

STRETCH = "data/example/stretch.gb"
RADIUS = 26  # of the model `locator_file`


@pytest.fixture
def genome(tmp_path):
    path = tmp_path / "genome.fa"
    path.write_text(f">one\n{letters(1501)}\n>two\n{letters(302, 1)}\n")
    return path


@pytest.fixture
def annotation(tmp_path):
    path = tmp_path / "genes.gff3"
    rows = [("one", 301, 900, "+"), ("one", 1001, 1300, "-"), ("two", 100, 249, "+")]
    lines = [f"{c}\ttest\tCDS\t{a}\t{b}\t.\t{s}\t0\tID=cds-{a}" for c, a, b, s in rows]
    path.write_text("\n".join(["##gff-version 3", *lines, ""]))
    return path


@pytest.fixture
def seqray(locator_file, capfd):
    def run(verb, *words, status=0):
        found = main([verb, *map(str, words), "--model", str(locator_file), "--threads", "1"])
        out, err = capfd.readouterr()
        assert found == status, err
        return out, err

    return run


@pytest.fixture
def calls(seqray, genome, annotation, tmp_path):
    path = tmp_path / "calls.gff3"
    seqray("scan", genome, "--genes", annotation, "--out", path, "--per-kb", 8)
    return path


def attributes(path):
    rows = [line.split("\t") for line in path.read_text().splitlines() if not line.startswith("#")]
    return [(row[0], row[6], dict(pair.split("=", 1) for pair in row[8].split(";"))) for row in rows]


def test_each_call_is_explained_in_its_place(seqray, genome, annotation, calls, tmp_path):
    words = [genome, "--calls", calls, "--genes", annotation, "--best-calls", 8, "--shuffles", 2]
    names = {"--out": "o.tsv", "--html": "r.html", "--plot": "p.svg", "--motifs": "m.meme"}
    files = [word for flag, name in names.items() for word in (flag, tmp_path / name)]
    files += ["--track", tmp_path / "t.bw", "--inputs", tmp_path / "i.tsv"]
    _, err = seqray("explain", *words, *files)
    assert "8 records" in err
    assert "random rankings" in err
    rows = table((tmp_path / "o.tsv").read_text())
    assert list(rows[0]) == list(EXPLANATION_COLUMNS)
    assert len(rows) == 8 * (2 * RADIUS + 1)
    known = {one["ID"]: (contig, strand, one) for contig, strand, one in attributes(calls)}
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
    sequence = {"one": letters(1501), "two": letters(302, 1)}
    turned = str.maketrans("ACGT", "TGCA")
    track = {s: pyBigWig.open(str(tmp_path / f"t.{s}.bw")) for s in ("plus", "minus")}
    for row in rows[:: RADIUS // 2]:
        if row["genomic_position"] == ".":
            assert row["base"] == "N"
            continue
        place = int(row["genomic_position"])
        base = sequence[row["contig"]][place]
        assert row["base"] == (base if row["strand"] == "+" else base.translate(turned))
        strand = "plus" if row["strand"] == "+" else "minus"
        assert track[strand].values(row["contig"], place, place + 1)[0] >= float(row["score"]) - 1e-6
    page = (tmp_path / "r.html").read_text()
    assert "score of promoter" in page
    assert "probability of promoter" not in page
    assert "Can the rankings be trusted?" in page
    assert all(share["record"] in page for share in shares)


def test_genes_change_what_is_explained(seqray, genome, annotation, calls):
    some = ["--calls", calls, "--best-calls", 2, "--no-check", "--shuffles", 0, "--top", 3]
    known, told = seqray("explain", genome, *some, "--genes", annotation)
    assert "another score" not in told
    unknown, told = seqray("explain", genome, *some, "--genes", "none")
    assert "caution: calls with another score here: 2 of 2, such as promoter_" in told
    assert "; give the sequences and the genes of the scan\n" in told
    assert f"# genes: GFF3 {annotation.name}" in known
    assert "# genes: not known" in unknown
    assert len(table(known)) == len(table(unknown)) == 6
    assert table(known) != table(unknown)


def test_calls_that_were_chosen_keep_their_names(seqray, genome, annotation, calls, tmp_path):
    head, *rows = calls.read_text().splitlines()
    some, twice = tmp_path / "some.gff3", tmp_path / "twice.gff3"
    some.write_text("\n".join([head, *rows[-3:-1], ""]))
    words = ["--genes", annotation, "--no-check", "--shuffles", 0, "--top", 1]
    out, _ = seqray("explain", genome, "--calls", some, *words)
    places = [(row["record"], row["contig"]) for row in table(out)]
    assert places == [(known["ID"], contig) for contig, _, known in attributes(some)]
    assert "promoter_1" not in dict(places)
    twice.write_text("\n".join([head, rows[-2], rows[-3], rows[-2], ""]))
    out, _ = seqray("explain", genome, "--calls", twice, *words)
    assert [row["record"] for row in table(out)] == ["promoter_1", "promoter_2", "promoter_3"]


def test_a_locator_needs_calls_and_classifies_nothing(seqray, genome, calls):
    _, err = seqray("explain", genome, status=2)
    assert "a locator is explained by its calls" in err
    _, err = seqray("explain", genome, "--calls", calls, "--heads", "h.tsv", status=2)
    assert "--heads is for models that read sequences, and this one reads genomes" in err
    _, err = seqray("explain", genome, genome, "--calls", calls, status=2)
    assert "one genome at a time" in err
    _, err = seqray("predict", genome, status=2)
    assert "is a locator; only 'seqray scan' and 'seqray explain' take locators" in err


def test_calls_of_another_genome_are_refused(seqray, calls, tmp_path):
    other = tmp_path / "other.fa"
    other.write_text(f">three\n{letters(500)}\n")
    _, err = seqray("explain", other, "--calls", calls, "--genes", "none", status=2)
    assert "which is not among the sequences" in err


def test_calls_across_an_origin_are_explained_on_a_circle(seqray, tmp_path):
    genome, calls = tmp_path / "circle.fa", tmp_path / "calls.gff3"
    genome.write_text(f">one\n{letters(301)}\n")
    seqray("scan", genome, "--circular", "--genes", "none", "--threshold", 0, "--out", calls)
    words = ["--calls", calls, "--genes", "none", "--no-check", "--shuffles", 0]
    out, _ = seqray("explain", genome, *words)
    assert "." not in {row["genomic_position"] for row in table(out)}


def test_python_knows_that_the_calls_are_of_a_circle(seqray, locator, tmp_path):
    """From a frame of calls, some of its rows, and a file of calls; another table has to be told."""
    import seqray as library

    genome, calls, genes = tmp_path / "circle.fa", tmp_path / "calls.gff3", tmp_path / "genes.gff3"
    genome.write_text(f">one\n{letters(161)}\n>two\n{letters(161, 1)}\n")
    rows = [f"one\tx\tCDS\t{a}\t{b}\t.\t+\t0\tID=a" for a, b in ((1, 60), (102, 161))]
    genes.write_text("\n".join(["##gff-version 3", *rows, ""]))
    words = [genome, "--genes", genes]
    seqray("scan", *words, "--circular-id", "one", "--per-kb", 60, "--out", calls)
    out, _ = seqray("explain", *words, "--calls", calls, "--no-check", "--shuffles", 0)
    expected = [float(row["score"]) for row in table(out)]
    frame = library.scan(locator, genome, genes=genes, circular_ids=("one",), per_kb=60)
    assert frame.attrs["circular"] == ["one"]
    told = frame.assign(score=frame.score)
    told.attrs = {}
    for given, circular in ((frame, None), (calls, None), (told, ("one",)), (told, "one")):
        found = library.explain(locator, genome, calls=given, genes=genes, shuffles=0, circular=circular)
        assert found.score.tolist() == pytest.approx(expected, rel=1e-5, abs=1e-9)
    some = library.explain(locator, genome, calls=frame[frame.contig == "one"], genes=genes, shuffles=0)
    assert some.genomic_position.notna().all()
    for circular in (False, "one or two"):  # a name, no collection of letters
        linear = library.explain(locator, genome, calls=told, genes=genes, shuffles=0, circular=circular)
        assert linear.score.tolist() != pytest.approx(expected, rel=1e-5, abs=1e-9)


def test_python_says_the_same(seqray, locator, genome, annotation, calls, tmp_path):
    import seqray as library

    seqray(
        "explain", genome, "--calls", calls, "--genes", annotation, "--shuffles", 0,
        "--no-check", "--out", tmp_path / "o.tsv",
    )  # fmt: skip
    rows = table((tmp_path / "o.tsv").read_text())
    frame = library.scan(locator, genome, genes=annotation, per_kb=8)
    for given in (frame, calls):
        letters = library.explain(locator, genome, calls=given, genes=annotation, shuffles=0)
        assert letters.record.tolist() == [row["record"] for row in rows]
        assert letters.score.tolist() == pytest.approx(
            [float(row["score"]) for row in rows], rel=1e-5, abs=1e-9
        )
    best = library.explain(locator, genome, calls=frame.nlargest(1, "score"), genes=annotation, shuffles=0)
    assert len(best) == 2 * RADIUS + 1
    assert set(best.record) == set(frame.nlargest(1, "score").id)
    with pytest.raises(library.ConfigError, match="by its calls; give calls="):
        library.explain(locator, genome)
    with pytest.raises(library.InputError, match="lack the column 'contig'"):
        library.explain(locator, genome, calls=frame.drop(columns="contig"))


def test_python_reads_the_genes_of_a_genbank_file(locator):
    import seqray as library

    own, predicted = (library.scan(locator, STRETCH, genes=genes, per_kb=3) for genes in ("auto", "predict"))
    named = library.scan(locator, STRETCH, genes=STRETCH, per_kb=3)
    assert own.equals(named)
    assert not own.equals(predicted)
