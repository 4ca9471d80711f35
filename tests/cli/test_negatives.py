"""``seqray negatives``: positives and annotation in, a labeled table out, errors, the same bytes again."""

from __future__ import annotations

import gzip
import os
import random
import subprocess
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest

from seqray.cli.main import main
from seqray.core.alphabet import DNA, PROTEIN, reverse_complement
from seqray.io.labeled import read_labeled_table

LENGTH = 30_000


def random_letters(n: int, seed: int) -> str:
    return "".join(random.Random(seed).choices("ACGT", k=n))


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """A genome of 30 kb with a gene every 1,500, twelve positives upstream of genes, starts as BED, TSV."""
    path = tmp_path_factory.mktemp("negatives")
    text = random_letters(LENGTH, 1)
    genes = [(start, start + 1000, "++--"[i % 4]) for i, start in enumerate(range(300, LENGTH - 1500, 1500))]
    lines = [
        f"chr\tx\t{kind}\t{start + 1}\t{end}\t.\t{strand}\t0\tID={kind}{start}"
        for start, end, strand in genes
        for kind in ("gene", "CDS")
    ]
    positives = [(s - 80, s - 19) if strand == "+" else (e + 19, e + 80) for s, e, strand in genes[:12]]
    records = []
    for i, (start, end) in enumerate(positives):
        letters = text[start:end] if genes[i][2] == "+" else reverse_complement(text[start:end])
        records.append(f">p{i} of gene {i}\n{letters.lower()}\n")
    (path / "positives.fa").write_text("".join(records))
    rows = [f"{r.splitlines()[1]}\tsite\t{r.split()[0][1:]}\tfamily{i % 3}" for i, r in enumerate(records)]
    rows.append(f"{'ACGT' * 15}\tother\tx\t")
    (path / "positives.tsv").write_text("\n".join(["sequence\tlabel\tid\tgroup", *rows]) + "\n")
    (path / "genome.fa").write_text(f">chr\n{text}\n")
    (path / "genes.gff3").write_text("##gff-version 3\n" + "\n".join(lines) + "\n")
    (path / "starts.bed").write_text("".join(f"chr\t{a}\t{b}\tx\t0\t+\n" for a, b in positives))
    (path / "calls.tsv").write_text("contig\tsite\tstrand\nchr\t15000\t+\n")
    features = "".join(
        f"     {kind:16}{f'{s + 1}..{e}' if strand == '+' else f'complement({s + 1}..{e})'}\n"
        for s, e, strand in genes
        for kind in ("gene", "CDS")
    )
    blocks = [
        f"{i + 1:9} " + " ".join(text[i + j : i + j + 10] for j in range(0, 60, 10))
        for i in range(0, LENGTH, 60)
    ]
    head = f"LOCUS       chr {LENGTH:>23} bp    DNA     linear   BCT 01-JAN-2000\nVERSION     chr\n"
    (path / "genome.gb").write_text(
        head
        + "FEATURES             Location/Qualifiers\n"
        + features
        + "ORIGIN\n"
        + "\n".join(blocks)
        + "\n//\n"
    )
    return path


@pytest.fixture
def seqray(folder, monkeypatch, capsys):
    """Run the verb in the folder of files: status, standard output, standard error."""
    monkeypatch.chdir(folder)

    def run(*words: str) -> tuple[int, str, str]:
        status = main(["negatives", *words])
        printed = capsys.readouterr()
        return status, printed.out, printed.err

    return run


GENOME = ("--genome", "genome.fa", "--annotation", "genes.gff3")


def read(path) -> dict[str, list]:
    found: dict[str, list] = {}
    for example in read_labeled_table(path, DNA):
        found.setdefault(example.id.split(":")[0] if ":" in example.id else "positive", []).append(example)
    return found


def window(example) -> tuple[int, int, str]:
    _, contig, span, strand = example.id.split(":")
    assert contig == "chr"
    start, _, end = span.partition("-")
    return int(start), int(end), strand


def test_a_mix_with_its_header_and_what_it_teaches(seqray, tmp_path):
    out = str(tmp_path / "out.tsv")
    status, printed, err = seqray(
        "positives.fa",
        "--recipe",
        "shuffle=0.5",
        "--recipe",
        "genome=0.5",
        *GENOME,
        "--ratio",
        "2",
        "-o",
        out,
    )
    assert (status, printed) == (0, "")
    found = read(out)
    assert {name: len(rows) for name, rows in found.items()} == {"positive": 12, "shuffle": 12, "genome": 12}
    assert {e.label for e in found["positive"]} == {"promoter"}
    assert {e.label for e in found["shuffle"] + found["genome"]} == {"background"}
    head = [line for line in Path(out).read_text().splitlines() if line.startswith("#")]
    assert head[1] == (
        "# command: seqray negatives positives.fa --recipe shuffle=0.5 --recipe genome=0.5 "
        "--genome genome.fa --annotation genes.gff3 --ratio 2 -o out.tsv"
    )
    assert not [line for line in head if "model" in line.split()[1]]
    assert any(line.startswith("# recipe shuffle: 12 of 12; positives with their letters") for line in head)
    assert "# positives found in the genome: 12" in head
    assert "# id of a window: recipe:contig:start-end:strand, 0-based, half-open" in head
    # Genes begin at 300, 1800 .. 27300.
    assert "# starts: 19 (gene); windows keep 200 letters away from those of both strands" in head
    *told, resources = err.splitlines()
    assert resources.startswith("seqray: resources: ")
    assert told[0].startswith("seqray: shuffle: 12 negatives; teaches real sequence against shuffled")
    assert told[1].startswith("seqray: genome: 12 negatives; teaches the signal against the rest")
    assert len(told) == 2
    assert any(line.startswith("# recipe genome teaches: the signal against the rest") for line in head)


def test_every_recipe_from_genbank_alone(seqray, folder, tmp_path):
    recipes = ("shuffle", "genome", "antisense", "convergent", "coding", "substitution")
    words = [word for name in recipes for word in ("--recipe", name)]
    out = tmp_path / "out.csv.gz"
    assert seqray("positives.fa", *words, "--genome", "genome.gb", "-o", str(out), "-q") == (0, "", "")
    found = read(out)
    assert {name: len(rows) for name, rows in found.items()} == {"positive": 12, **dict.fromkeys(recipes, 2)}
    text = folder.joinpath("genome.fa").read_text().split("\n")[1]
    for name in ("genome", "antisense", "convergent", "coding"):
        for example in found[name]:
            start, end, strand = window(example)
            cut = text[start:end]
            assert example.sequence == (cut if strand == "+" else reverse_complement(cut))
    again = tmp_path / "again.csv.gz"
    assert seqray("positives.fa", *words, *GENOME, "-o", str(again), "-q")[0] == 0
    assert read(again) == found  # the same from FASTA and GFF3


def test_the_same_bytes_again_and_another_seed_gives_others(seqray, tmp_path):
    words = ("positives.fa", "--recipe", "genome", "--recipe", "shuffle", *GENOME, "-q")
    outs = [(tmp_path / name / "o.tsv.gz", seed) for name, seed in (("a", "0"), ("b", "0"), ("c", "1"))]
    for out, seed in outs:
        out.parent.mkdir()
        assert seqray(*words, "--seed", seed, "-o", str(out))[0] == 0
    one, two, three = (out.read_bytes() for out, _ in outs)
    assert one == two
    assert read(outs[2][0]) != read(outs[0][0])
    assert one != three


def test_a_table_of_positives_keeps_its_groups_and_leaves_other_labels(seqray):
    words = ("--recipe", "shuffle", "--label-positive", "site", "--label-negative", "none")
    status, out, err = seqray("positives.tsv", *words)
    assert status == 0
    assert "# rows left out for their label: 1 'other'" in out.splitlines()
    assert "caution: rows of other labels than that of the positives are left out: 1 'other'" in err
    rows = [line.split("\t") for line in out.splitlines() if not line.startswith("#")]
    assert rows[0] == ["sequence", "label", "id", "group", "split", "subclass"]
    assert Counter(row[5] for row in rows[1:]) == {"": 12, "shuffle": 12}
    assert Counter(row[1] for row in rows[1:]) == {"site": 12, "none": 12}
    group = {row[2]: row[3] for row in rows[1:13]}
    assert group["p4"] == "family1"
    assert all(row[3] == group[row[2].split(":")[1]] for row in rows[13:])


@pytest.mark.parametrize("name", ["positives.tsv", "positives.fa.gz"])
def test_standard_input(seqray_forks, folder, name):
    data = (folder / name.removesuffix(".gz")).read_bytes()
    label = "site" if name.endswith("tsv") else "promoter"
    command = [seqray_forks.folder / "seqray", "negatives", "-", "--recipe", "shuffle", "--only-negatives"]
    command += ["--label-positive", label, "--format", "fasta", "-q"]
    given = gzip.compress(data) if name.endswith("gz") else data
    done = subprocess.run(command, input=given, capture_output=True, check=True)
    lines = done.stdout.decode().splitlines()
    assert lines[0] == ">shuffle:p0:1 background"
    assert len(lines) == 24
    first = data.decode().splitlines()[1].split("\t")[0].upper()
    assert Counter(pairwise(lines[1])) == Counter(pairwise(first))


def test_only_negatives(seqray, tmp_path):
    out = tmp_path / "n.fa.gz"
    assert seqray("positives.fa", "--recipe", "substitution", "--only-negatives", "-o", str(out))[0] == 0
    lines = gzip.decompress(out.read_bytes()).decode().splitlines()
    assert lines[0] == ">substitution:p0:1 background"
    table = tmp_path / "n.tsv"
    assert seqray("positives.fa", "--recipe", "substitution", "--only-negatives", "-o", str(table))[0] == 0
    rows = read(table)
    assert set(rows) == {"substitution"}
    assert [e.sequence for e in rows["substitution"]] == lines[1::2]


def test_segments_and_keep(seqray, folder, tmp_path):
    out = tmp_path / "n.tsv"
    words = ("--recipe", "substitution", "--segments", "4", "--keep", "3", "-o", str(out))
    assert seqray("positives.fa", *words)[0] == 0
    found = read(out)
    edges = [0, 15, 30, 45, 61]  # 61 letters in four
    for positive, negative in zip(found["positive"], found["substitution"], strict=True):
        same = [positive.sequence[a:b] == negative.sequence[a:b] for a, b in pairwise(edges)]
        assert sum(same) == 3


def test_shuffle_words(seqray, tmp_path):
    out = tmp_path / "n.tsv"
    assert seqray("positives.fa", "--recipe", "shuffle", "--shuffle-words", "1", "-o", str(out))[0] == 0
    found = read(out)
    pairs = zip(found["positive"], found["shuffle"], strict=True)
    assert any(Counter(pairwise(p.sequence)) != Counter(pairwise(n.sequence)) for p, n in pairs)
    assert all(
        Counter(p.sequence) == Counter(n.sequence)
        for p, n in zip(found["positive"], found["shuffle"], strict=True)
    )


def test_protein(seqray, tmp_path):
    (tmp_path / "p.fa").write_text(">m\nGIGKFLHSAKKFGKAFVGEIMNS\n>d\nDSHAKRHHGYKRKFHEKHHSHRGY\n")
    out = tmp_path / "o.tsv"
    words = (str(tmp_path / "p.fa"), "--alphabet", "protein", "--label-positive", "amp", "-o", str(out))
    assert seqray(*words, "--recipe", "shuffle")[0] == 0
    examples = read_labeled_table(out, PROTEIN)
    assert [e.id for e in examples] == ["m", "d", "shuffle:m:1", "shuffle:d:1"]
    assert Counter(examples[2].sequence) == Counter(examples[0].sequence)
    status, _, err = seqray(*words, "--recipe", "genome", "--genome", "genome.fa")
    assert (status, err) == (
        2,
        "seqray: error: recipe 'genome' cuts windows from a genome; protein has none\n",
    )


def test_distance_strands_and_features(seqray, tmp_path):
    """Three ways to name starts, each checked against every window."""
    out = tmp_path / "o.tsv"
    base = ("positives.fa", "--recipe", "genome", "--genome", "genome.fa", "--ratio", "4", "-o", str(out))
    assert seqray(*base, "--starts", "starts.bed", "--distance", "300")[0] == 0
    starts = [line.split("\t") for line in Path("starts.bed").read_text().splitlines()]
    for example in read(out)["genome"]:
        start, end, _ = window(example)
        assert all(end <= int(a) - 300 or start >= int(b) + 300 for _, a, b, *_ in starts)
    assert seqray(*base, "--starts", "calls.tsv", "--distance", "14000", "--strands", "same")[0] == 0
    strands = Counter()
    for example in read(out)["genome"]:
        start, end, strand = window(example)
        inside = end > 15_000 - 14_000 and start <= 15_000 + 14_000
        strands[strand, inside] += 1
    assert strands["+", True] == 0
    assert strands["-", True] > 30
    assert "# starts: 1 (TSS); windows keep 14000 letters away from those of the window's strand" in (
        out.read_text().splitlines()
    )
    words = ("--annotation", "genes.gff3", "--feature", "CDS", "--distance", "50")
    assert seqray(*base, *words)[0] == 0
    assert "# starts: 19 (CDS); windows keep 50 letters away from those of both strands" in (
        out.read_text().splitlines()
    )
    assert seqray(*base, "--recipe", "coding", *words)[0] == 0
    assert "# starts: 19 (CDS); windows of recipe genome keep 50 letters away from those of both strands" in (
        out.read_text().splitlines()
    )
    assert seqray(*base, "--starts", "none")[0] == 0
    assert "# starts: none known" in out.read_text().splitlines()


def test_named_starts_hold_for_every_recipe(seqray, tmp_path):
    out = tmp_path / "o.tsv"
    words = ("positives.fa", "--recipe", "coding", *GENOME, "--starts", "calls.tsv", "--distance", "9000")
    assert seqray(*words, "-o", str(out))[0] == 0
    for example in read(out)["coding"]:
        start, end, _ = window(example)
        assert end <= 15_000 - 9000 or start > 15_000 + 9000


def test_matching_overlap_and_block(seqray, tmp_path):
    out = tmp_path / "o.tsv"
    base = ("positives.fa", "--recipe", "coding", *GENOME, "-o", str(out))
    assert seqray(*base, "--gc-bins", "60")[0] == 0
    found = read(out)
    bins = [
        Counter(sum(c in "GC" for c in e.sequence) * 60 // 61 for e in found[name])
        for name in ("positive", "coding")
    ]
    assert bins[0] == bins[1]
    assert "# windows match: length and GC content (60 bins) of a positive; share at most 0 letters" in (
        out.read_text().splitlines()
    )
    assert (
        seqray(*base, "--match", "length", "--max-overlap", "50", "--ratio", "90", "--block", "500")[0] == 0
    )
    spans = sorted(window(e)[:2] for e in read(out)["coding"])
    shared = [a[1] - b[0] for i, a in enumerate(spans) for b in spans[i + 1 : i + 5]]
    assert 0 < max(shared) <= 50
    assert "# windows match: length of a positive; share at most 50 letters" in out.read_text().splitlines()


def test_positives_that_can_not_be_shuffled_are_told(seqray, tmp_path):
    positives = tmp_path / "runs.fa"
    positives.write_text("".join(f">{letter}\n{letter * 30}\n" for letter in "ACGT"))
    status, _, err = seqray(str(positives), "--recipe", "shuffle", "-o", str(tmp_path / "o.tsv"))
    assert status == 0
    assert "recipe 'shuffle' gave 0 of 4 negatives, the positives assigned to it allow no more" in err


def test_too_few_windows_are_told_or_an_error(seqray, tmp_path):
    out = tmp_path / "o.tsv"
    words = ("positives.fa", "--recipe", "convergent", *GENOME, "--ratio", "20", "-o", str(out))
    status, _, err = seqray(*words)
    assert status == 0
    made = len(read(out)["convergent"])
    # Of 19 genes the pairs 2-3, 6-7 .. 14-15 and 18-19 face each other: five gaps of 500, less the positives.
    assert 0 < made <= 5 * (500 // 61)
    assert f"seqray: caution: recipe 'convergent' gave {made} of 240 negatives, no more were found" in err
    assert f"# recipe convergent: {made} of 240; windows between two genes" in out.read_text()
    out.unlink()
    status, _, err = seqray(*words, "--strict")
    assert (status, len(err.splitlines())) == (2, 1)
    assert (
        f"error: recipe 'convergent' gave {made} of 240 negatives, no more were found; ask for fewer" in err
    )
    assert not out.exists()


def test_positives_that_the_genome_lacks_are_told(seqray, tmp_path):
    given = tmp_path / "p.fa"
    given.write_text(f">a\n{random_letters(61, 9)}\n>b\n{'ACGTR' * 12}\n")
    status, _, err = seqray(str(given), "--recipe", "coding", *GENOME, "-o", str(tmp_path / "o.tsv"))
    assert status == 0
    assert "caution: 2 of 2 positives were not found in the genome, so a negative may overlap" in err
    assert "caution: 1 positives contain ambiguous letters, which windows never do" in err


def test_records_without_letters_are_skipped_listed_or_an_error(seqray, tmp_path):
    given, out, skipped = (str(tmp_path / name) for name in ("p.fa", "o.tsv", "s.tsv"))
    Path(given).write_text(">a\nACGTTGCATT\n>empty\n>b\nGGCATTGCAACC\n")
    words = (given, "--recipe", "shuffle", "-o", out, "--skipped", skipped)
    status, _, err = seqray(*words)
    assert status == 0
    assert "seqray: skipped record 'empty': empty sequence" in err
    assert len(read(out)["positive"]) == 2
    assert Path(skipped).read_text().splitlines()[-2:] == ["id\treason", "empty\tempty sequence"]
    Path(out).unlink()
    Path(skipped).unlink()
    assert seqray(*words, "--strict")[0] == 2
    assert not Path(out).exists()
    assert not Path(skipped).exists()


def test_an_empty_file_and_repeated_ids(seqray, tmp_path):
    given, out = tmp_path / "p.fa", tmp_path / "o.tsv"
    given.write_text("")
    words = (str(given), "--recipe", "shuffle", "-o", str(out))
    status, _, err = seqray(*words)
    assert (status, "contains no records" in err) == (2, True)
    assert seqray(*words, "--allow-empty")[0] == 0
    assert out.read_text().splitlines()[-1] == "sequence\tlabel\tid\tgroup\tsplit\tsubclass"
    given.write_text("sequence\tlabel\n")
    assert "contains a header but no examples; --allow-empty" in seqray(*words)[2]
    assert seqray(*words, "--allow-empty")[0] == 0
    given.write_text(">a\nACGTTGCATT\n>a\nGGCATTGCAACC\n")
    assert "the id occurs more than once" in seqray(*words)[2]
    assert seqray(*words, "--duplicates", "rename")[0] == 0
    assert [e.id for e in read(out)["shuffle"]] == ["shuffle:a:1", "shuffle:a_2:1"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--recipe", "shufle"], "unknown recipe 'shufle'; did you mean 'shuffle'?"),
        (["--recipe", "shuffle=0"], "the share of 'shuffle' is '0'"),
        ([], "the following arguments are required: --recipe"),
        (["--recipe", "shuffle", "--ratio", "0"], "'0' is not a number above 0"),
        (["--recipe", "shuffle", "--ratio", "1e9"], "give at most 1000"),
        (["--recipe", "shuffle", "--ratio", "1e999999999"], "'1e999999999' is not a number above 0"),
        (["--recipe", "shuffle", "--ratio", "many"], "'many' is not a number above 0"),
        (["--recipe", "shuffle", "--shuffle-words", "3"], "invalid choice: 3"),
        (["--recipe", "substitution", "--keep", "20"], "20 of 20 segments are kept"),
        (
            ["--recipe", "substitution", "--segments", "99"],
            "record 'p0': has 61 letters, fewer than 99 segments",
        ),
        (
            ["--recipe", "shuffle", "--starts", "none.tsv"],
            "--starts is for windows of a genome; add --recipe genome or antisense or convergent or coding",
        ),
        (["--recipe", "shuffle", "--annotation", "genes.gff3"], "--annotation is for windows of a genome"),
        (["--recipe", "shuffle", "--distance", "50"], "--distance is for windows of a genome"),
        (["--recipe", "shuffle", "--keep", "3"], "--keep is for recipe 'substitution'; leave it out"),
        (["--recipe", "coding", *GENOME, "--shuffle-words", "1"], "--shuffle-words is for recipe 'shuffle'"),
        (["--recipe", "genome"], "recipe 'genome' needs a genome; give --genome FILE"),
        (["--recipe", "genome", "--genome", "genome.fa"], "recipe 'genome' requires the starts; give"),
        (["--recipe", "coding", "--genome", "genome.fa"], "recipe 'coding' requires the genes; give"),
        (["--recipe", "genome", "--genome", "none.fa"], "none.fa: no such file"),
        (["--recipe", "genome", "--genome", "genes.gff3"], "genes.gff3: is GFF, not FASTA"),
        (
            ["--recipe", "genome", "--genome", "genome.fa", "--annotation", "genome.fa"],
            "genome.fa: is FASTA, not an annotation",
        ),
        (
            ["--recipe", "coding", "--genome", "genome.fa", "--annotation", "starts.bed"],
            "starts.bed: has no coding sequence (CDS)",
        ),
        (
            ["--recipe", "genome", *GENOME, "--feature", "TSS"],
            "genes.gff3: contains no feature of type TSS; it has gene (19), CDS (19)",
        ),
        (
            ["--recipe", "genome", "--genome", "positives.fa", "--annotation", "genes.gff3"],
            "genes.gff3: names the contig 'chr', which is not in the genome; the genome begins with 'p0'",
        ),
        (
            ["--recipe", "shuffle", "-o", "x.xls"],
            "x.xls: does not end in the suffix of a known format; use .tsv, .csv",
        ),
        (["--recipe", "shuffle", "-o", "x.fa"], "FASTA files can't contain labels; add --only-negatives"),
        (["--recipe", "shuffle", "-o", "x.tsv", "--format", "fasta"], "--format fasta and 'x.tsv' are"),
        (["--recipe", "shuffle", "-o", "positives.fa", "--only-negatives"], "is an input and would be"),
        (["--recipe", "shuffle", "-o", "none/x.tsv"], "none/x.tsv: can't be written"),
        (
            ["--recipe", "genome", "--genome", "genome.fa", "--starts", "calls.tsv", "-o", "calls.tsv"],
            "calls.tsv: is an input and would be overwritten",
        ),
        (
            ["--recipe", "genome", "--genome", "genome.fa", "--only-negatives", "-o", "genome.fa"],
            "genome.fa: is an input and would be overwritten",
        ),
        (
            ["--recipe", "shuffle", "--label-negative", "promoter"],
            "have the same label; give --label-negative",
        ),
        (["--recipe", "shuffle", "--alphabet", "protein"], "looks like nucleotides, but protein is expected"),
    ],
)
def test_errors_are_one_line_and_leave_nothing(seqray, words, message):
    before = sorted(Path().iterdir())
    status, out, err = seqray("positives.fa", *words)
    assert (status, out) == (2, "")
    assert len(err.splitlines()) == 1
    assert err.startswith("seqray: error: ")
    assert message in err
    assert sorted(Path().iterdir()) == before


def test_a_table_without_the_label(seqray):
    status, _, err = seqray("positives.tsv", "--recipe", "shuffle")
    assert status == 2
    assert err == (
        "seqray: error: positives.tsv: has no row labeled 'promoter'; name one of its labels with "
        "--label-positive: other, site\n"
    )


def test_help_shows_the_recipes(seqray):
    status, shown, _ = seqray("--help")
    assert status == 0
    for name in ("shuffle", "genome", "antisense", "convergent", "coding", "substitution"):
        assert f"\n  {name}" in shown
    assert shown.count("teaches: ") == 6
    assert "--max-overlap" in shown


def test_a_packed_table_comes_from_a_pipe(seqray_forks, folder):
    command = [seqray_forks.folder / "seqray", "negatives", "-", "--recipe", "shuffle"]
    words = [*command, "--label-positive", "site", "--quiet"]
    table = (folder / "positives.tsv").read_bytes()
    packed, plain = (
        subprocess.run(words, input=data, capture_output=True, check=True).stdout
        for data in (gzip.compress(table), table)
    )
    assert packed == plain
    assert packed


def test_file_names_in_another_encoding_are_read_and_written(folder, tmp_path):
    source, out = (tmp_path / os.fsdecode(name) for name in (b"Erg\xe4nzung.fa", b"\xe4.tsv"))
    source.write_bytes((folder / "positives.fa").read_bytes())
    assert main(["negatives", str(source), "--recipe", "shuffle", "--out", str(out)]) == 0
    assert "Erg?nzung.fa" in out.read_text().splitlines()[1]


def test_positives_that_are_proteins_name_the_option(seqray, tmp_path):
    path = tmp_path / "p.fa"
    path.write_text(">a\nGIGKFLHSAKKFGKAFVGEIMNS\n")
    status, _, err = seqray(str(path), "--recipe", "shuffle", "-o", str(tmp_path / "o.tsv"))
    assert status == 2
    assert "record 'a': looks like protein, but DNA is expected" in err
    assert err.rstrip().endswith("; give --alphabet protein")
