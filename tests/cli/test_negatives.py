"""``seqray negatives``: positives and annotation in, a labeled table out, the same bytes again."""

import gzip
from collections import Counter
from itertools import pairwise

import pytest

from commands import Run, repeated
from seqray.core.alphabet import DNA, reverse_complement
from seqray.io.sequences import read_labeled_table
from tables import body, facts, fasta, genbank, gff3, letters, tsv, write

TEXT = letters(30_000, 1)
GENES = [(start, start + 1000, "++--"[i % 4]) for i, start in enumerate(range(300, 28_500, 1500))]
POSITIVES = [(s - 80, s - 19) if strand == "+" else (e + 19, e + 80) for s, e, strand in GENES[:12]]
GENOME = "--genome genome.fa --annotation genes.gff3"


@pytest.fixture
def negatives(run, tmp_path) -> Run:
    """Run the verb where a genome has a gene every 1,500 letters, and twelve positives upstream of genes."""
    records = {}
    for i, (start, end) in enumerate(POSITIVES):
        cut = TEXT[start:end] if GENES[i][2] == "+" else reverse_complement(TEXT[start:end])
        records[f"p{i}"] = cut
    write(tmp_path / "positives.fa", fasta({f"{name} of a gene": s.lower() for name, s in records.items()}))
    rows = [(s, "site", name, f"family{i % 3}") for i, (name, s) in enumerate(records.items())]
    write(
        tmp_path / "positives.tsv", tsv("sequence label id group", [*rows, ("ACGT" * 15, "other", "x", "")])
    )
    write(tmp_path / "genome.fa", fasta({"chr": TEXT}))
    features = [("chr", s + 1, e, strand) for s, e, strand in GENES]
    write(tmp_path / "genes.gff3", gff3(features, "gene") + gff3(features))
    places = [f"{s + 1}..{e}" if strand == "+" else f"complement({s + 1}..{e})" for s, e, strand in GENES]
    text = genbank("chr", TEXT, places, topology="linear")
    for place in places:
        text = text.replace(
            f"     CDS             {place}\n", f"     gene            {place}\n     CDS             {place}\n"
        )
    write(tmp_path / "genome.gb", text)
    write(tmp_path / "starts.bed", tsv("", [("chr", a, b, "x", 0, "+") for a, b in POSITIVES]))
    write(tmp_path / "calls.tsv", tsv("contig site strand", [("chr", 15_000, "+")]))
    return run.to("negatives")


def read(path) -> dict[str, list]:
    """Examples of a table by their recipes."""
    found: dict[str, list] = {}
    for example in read_labeled_table(path, DNA):
        found.setdefault(example.id.split(":")[0] if ":" in example.id else "positive", []).append(example)
    return found


def window(example) -> tuple[int, int, str]:
    _, contig, span, strand = example.id.split(":")
    assert contig == "chr"
    start, _, end = span.partition("-")
    return int(start), int(end), strand


def test_a_mix_with_its_header_and_what_it_teaches(negatives, tmp_path):
    ended = negatives("positives.fa --recipe shuffle=0.5 --recipe genome=0.5 --ratio 2 -o out.tsv", GENOME)
    assert ended.out == ""
    found = read(tmp_path / "out.tsv")
    assert {name: len(rows) for name, rows in found.items()} == {"positive": 12, "shuffle": 12, "genome": 12}
    assert {e.label for e in found["positive"]} == {"promoter"}
    assert {e.label for e in found["shuffle"] + found["genome"]} == {"background"}
    header = facts((tmp_path / "out.tsv").read_text())
    assert header["command"].startswith("seqray negatives positives.fa --recipe shuffle=0.5")
    assert "model" not in header
    assert header["recipe shuffle"].startswith("12 of 12; ")
    assert header["positives found in the genome"] == "12"
    # Genes begin at 300, 1800 .. 27300.
    assert header["starts"].startswith("19 (gene); windows keep 200 bases away")
    shuffle, genome, _ = ended.err.splitlines()
    assert shuffle.startswith("seqray: shuffle: 12 negatives; teaches ")
    assert genome.startswith("seqray: genome: 12 negatives; teaches ")
    assert {"recipe shuffle teaches", "recipe genome teaches"} < set(header)


def test_every_recipe_from_genbank_alone(negatives, tmp_path):
    recipes = ("shuffle", "genome", "antisense", "convergent", "coding", "substitution")
    words = ("positives.fa -q", repeated("--recipe", recipes))
    assert negatives(*words, "--genome genome.gb -o out.csv.gz") == (0, "", "")
    found = read(tmp_path / "out.csv.gz")
    assert {name: len(rows) for name, rows in found.items()} == {"positive": 12, **dict.fromkeys(recipes, 2)}
    for name in ("genome", "antisense", "convergent", "coding"):
        for example in found[name]:
            start, end, strand = window(example)
            cut = TEXT[start:end]
            assert example.sequence == (cut if strand == "+" else reverse_complement(cut))
    negatives(*words, GENOME, "-o again.csv.gz")
    assert read(tmp_path / "again.csv.gz") == found  # the same from FASTA and GFF3


def test_another_seed_gives_others(negatives, tmp_path):
    made = []
    for seed in (0, 1):
        negatives("positives.fa --recipe genome --recipe shuffle -o o.tsv --seed", seed, GENOME)
        made.append(read(tmp_path / "o.tsv"))
    assert made[0] != made[1]


def test_a_table_of_positives_keeps_its_groups_and_leaves_other_labels(negatives):
    ended = negatives("positives.tsv --recipe shuffle --label-positive site --label-negative none")
    assert ended.facts["rows left out for their label"] == "1 'other'"
    assert "1 'other'" in ended.err
    rows = ended.rows
    assert list(rows[0]) == ["sequence", "label", "id", "group", "split", "subclass"]
    assert Counter(row["subclass"] for row in rows) == {"": 12, "shuffle": 12}
    assert Counter(row["label"] for row in rows) == {"site": 12, "none": 12}
    group = {row["id"]: row["group"] for row in rows[:12]}
    assert group["p4"] == "family1"
    assert all(row["group"] == group[row["id"].split(":")[1]] for row in rows[12:])


def test_only_negatives_as_fasta_and_as_a_table(negatives, tmp_path):
    for out in ("n.fa.gz", "n.tsv"):
        negatives("positives.fa --recipe substitution --only-negatives -o", out)
    lines = gzip.decompress((tmp_path / "n.fa.gz").read_bytes()).decode().splitlines()
    assert lines[0] == ">substitution:p0:1 background"
    [(recipe, rows)] = read(tmp_path / "n.tsv").items()
    assert (recipe, [e.sequence for e in rows]) == ("substitution", lines[1::2])


def test_segments_and_keep(negatives, tmp_path):
    negatives("positives.fa --recipe substitution --segments 4 --keep 3 -o n.tsv")
    found = read(tmp_path / "n.tsv")
    edges = [0, 15, 30, 45, 61]  # 61 letters in four
    for positive, negative in zip(found["positive"], found["substitution"], strict=True):
        same = [positive.sequence[a:b] == negative.sequence[a:b] for a, b in pairwise(edges)]
        assert sum(same) == 3


def test_distance_and_features(negatives, tmp_path):
    """Three ways to name starts, each checked against every window."""

    def made(words):
        negatives("positives.fa --recipe genome --genome genome.fa --ratio 4 -o o.tsv", words)
        return read(tmp_path / "o.tsv")["genome"], facts((tmp_path / "o.tsv").read_text())["starts"]

    for start, end, _ in map(window, made("--starts starts.bed --distance 300")[0]):
        assert all(end <= a - 300 or start >= b + 300 for a, b in POSITIVES)
    examples, told = made("--starts calls.tsv --distance 9000")
    assert examples
    assert told.startswith("1 (TSS); windows keep 9000 bases away")
    words = "--annotation genes.gff3 --feature CDS --distance 50"
    assert made(words)[1].startswith("19 (CDS); windows keep 50 bases away")
    assert "windows of recipe genome keep 50 bases" in made(f"{words} --recipe coding")[1]
    assert made("--starts none")[1] == "none known"


def test_matching_overlap_and_block(negatives, tmp_path):
    coding = negatives.to("positives.fa --recipe coding -o o.tsv", GENOME)
    coding("--gc-bins 60")
    found = read(tmp_path / "o.tsv")
    positives, negative = (
        Counter(sum(c in "GC" for c in e.sequence) * 60 // 61 for e in found[name])
        for name in ("positive", "coding")
    )
    assert positives == negative
    assert "GC content (60 bins)" in facts((tmp_path / "o.tsv").read_text())["windows match"]
    coding("--match length --max-overlap 50 --ratio 90 --block 500")
    spans = sorted(window(e)[:2] for e in read(tmp_path / "o.tsv")["coding"])
    shared = [a[1] - b[0] for i, a in enumerate(spans) for b in spans[i + 1 : i + 5]]
    assert 0 < max(shared) <= 50
    assert "50 bases" in facts((tmp_path / "o.tsv").read_text())["windows match"]


def test_too_few_negatives_are_told_or_an_error(negatives, tmp_path):
    write(tmp_path / "runs.fa", fasta({letter: letter * 30 for letter in "ACGT"}))
    assert "'shuffle' gave 0 of 4 negatives" in negatives("runs.fa --recipe shuffle -o o.tsv").err
    words = "positives.fa --recipe convergent --ratio 20 -o o.tsv"
    err = negatives(words, GENOME).err
    made = len(read(tmp_path / "o.tsv")["convergent"])
    # Of 19 genes the pairs 2-3, 6-7 .. 14-15 and 18-19 face each other: five gaps of 500, less the positives.
    assert 0 < made <= 5 * (500 // 61)
    assert f"'convergent' gave {made} of 240 negatives" in err
    assert f"{made} of 240; " in facts((tmp_path / "o.tsv").read_text())["recipe convergent"]
    (tmp_path / "o.tsv").unlink()
    negatives.refused(words, GENOME, "--strict", names=("'convergent'", f"{made} of 240"))


def test_positives_that_the_genome_lacks_are_told(negatives, tmp_path):
    write(tmp_path / "p.fa", fasta({"a": letters(61, 9), "b": "ACGTR" * 12}))
    err = negatives("p.fa --recipe coding -o o.tsv", GENOME).err
    assert "caution: 2 of 2 positives were not found in the genome" in err
    assert "caution: 1 positives contain ambiguous bases" in err


def test_records_without_letters_are_skipped_listed_or_an_error(negatives, tmp_path):
    write(tmp_path / "p.fa", fasta({"a": "ACGTTGCATT", "empty": "", "b": "GGCATTGCAACC"}))
    assert "'empty'" in negatives("p.fa --recipe shuffle -o o.tsv --skipped s.tsv").err
    assert len(read(tmp_path / "o.tsv")["positive"]) == 2
    assert body((tmp_path / "s.tsv").read_text()) == ["id\treason", "empty\tempty sequence"]
    negatives.refused("p.fa --recipe shuffle -o x.tsv --skipped y.tsv --strict", names="'empty'")


def test_an_empty_file_and_repeated_ids(negatives, tmp_path):
    for content in ("", "sequence\tlabel\n"):
        write(tmp_path / "p.fa", content)
        negatives.refused("p.fa --recipe shuffle -o x.tsv", names=("p.fa", "--allow-empty"))
        ended = negatives("p.fa --recipe shuffle --allow-empty")
        assert body(ended.out) == ["sequence\tlabel\tid\tgroup\tsplit\tsubclass"]
    write(tmp_path / "p.fa", ">a\nACGTTGCATT\n>a\nGGCATTGCAACC\n")
    negatives("p.fa --recipe shuffle -o o.tsv --duplicates rename")
    assert [e.id for e in read(tmp_path / "o.tsv")["shuffle"]] == ["shuffle:a:1", "shuffle:a_2:1"]
