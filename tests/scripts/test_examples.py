"""The example sequences, the scripts that check and make them, and the data folder."""

import csv
import gzip
import hashlib
from collections import Counter
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, strategies as st

import check_examples
import synthetic
import verify
from check_examples import Example
from invented import opposite

DATA = Path(__file__).parents[2] / "data"
FOLDER = DATA / "example"


@pytest.fixture(scope="module")
def rows() -> dict[str, dict[str, str]]:
    with (FOLDER / "examples.tsv").open() as handle:
        return {row["id"]: row for row in csv.DictReader(handle, delimiter="\t")}


@pytest.fixture(scope="module")
def letters() -> dict[str, str]:
    return {example.id: example.letters for example in check_examples.read_examples(FOLDER)}


def test_promoters_and_controls_are_as_many_with_verdicts_that_the_script_can_give(rows):
    kinds = [row["kind"] for row in rows.values()]
    assert kinds.count("promoter") >= 10
    assert kinds.count("control") == kinds.count("promoter")
    verdicts = {row["checked"] for name, row in rows.items() if name != "lacUV5"}
    assert verdicts == {"exact", check_examples.NOT_CHECKED}


def test_every_example_is_as_long_as_its_interval_and_has_a_source(rows, letters):
    assert len(set(letters.values())) == len(letters)
    for name, found in letters.items():
        assert len(found) == int(rows[name]["end"]) - int(rows[name]["start"])
        assert len(found) == 81 or rows[name]["kind"] == "region"
        assert set(found) <= set("ACGT")
        assert rows[name]["source"]


def test_the_start_lies_60_letters_into_each_promoter(rows):
    for row in rows.values():
        if row["kind"] == "promoter":
            first = int(row["start"]) if row["strand"] == "+" else int(row["end"]) - 1
            assert abs(int(row["tss"]) - first) == 60
            assert int(row["start"]) <= int(row["tss"]) < int(row["end"])


def test_the_promoters_in_the_regions_stand_where_the_truth_says(rows, letters):
    truth = [line.split("\t") for line in (FOLDER / "regions.truth.bed").read_text().splitlines()]
    for region, start, end, name, _, strand in truth:
        window = letters[region][int(start) : int(end)]
        assert (window if strand == "+" else opposite(window)) == letters[name]
    inside = {
        (region, name)
        for region, row in rows.items()
        for name, other in rows.items()
        if (row["kind"], other["kind"]) == ("region", "promoter") and row["contig"] == other["contig"]
        if int(row["start"]) <= int(other["start"]) and int(other["end"]) <= int(row["end"])
    }
    assert inside - {("lac_region", "lacUV5")} == {(row[0], row[3]) for row in truth}


def test_lacuv5_is_lac_with_a_perfect_minus_10_box(rows, letters):
    lac, mutant = letters["lacP1"], letters["lacUV5"]
    changed = [index for index in range(81) if lac[index] != mutant[index]]
    assert [index - 60 for index in changed] == [-9, -8]
    assert (lac[48:54], mutant[48:54]) == ("TATGTT", "TATAAT")
    assert rows["lacUV5"]["checked"] == "2 mismatches: -9 G>A, -8 T>A"


@pytest.mark.parametrize(
    ("name", "box_35", "spacer", "box_10"),
    [
        ("trp", "TTGACA", 17, "TTAACT"),
        ("recA", "TTGATA", 16, "TATAAT"),
        ("rrnB_P1", "TTGTCA", 16, "TATAAT"),
        ("lambda_PR", "TTGACT", 17, "GATAAT"),
        ("lambda_PL", "TTGACA", 17, "GATACT"),
        ("T7_A1", "TTGACT", 17, "GATACT"),
    ],
)
def test_boxes_stand_as_in_the_literature(letters, name, box_35, spacer, box_10):
    window = letters[name]
    start = window.index(box_35, 15)
    assert window[start + 6 + spacer : start + 12 + spacer] == box_10
    assert 5 <= 60 - (start + 12 + spacer) <= 9  # letters between the -10 box and the transcription start


WINDOW = "ACGTTGCAAC" * 8 + "A"
GENOME = "GG" + WINDOW + "TTT"


def example(**changes: object) -> Example:
    return replace(Example("a", "c", 2, 83, "+", "exact", WINDOW), **changes)


def test_comparison_tells_the_place_of_a_difference_from_the_start_of_transcription():
    changed = WINDOW[:59] + "G" + WINDOW[60] + "T" + WINDOW[62:]
    assert check_examples.compare(example(), GENOME) == "exact"
    assert check_examples.compare(example(start=10, end=91), GENOME) == "81 letters for an interval of 76"
    assert check_examples.compare(example(letters=changed), GENOME) == "2 mismatches: -1 C>G, +2 C>T"


def test_comparison_reads_the_minus_strand():
    assert check_examples.compare(example(strand="-", letters=opposite(WINDOW)), GENOME) == "exact"
    assert "mismatches" in check_examples.compare(example(strand="-"), GENOME)


def test_an_example_without_its_genome_counts_as_not_checked():
    assert check_examples.verdicts([example()], {})[0][1] == check_examples.NOT_CHECKED
    assert check_examples.verdicts([example()], {"c": GENOME})[0][1] == "exact"


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    """A data folder of one compressed file, and the table that describes it."""
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "a.gz").write_bytes(gzip.compress(b"ACGT\n", mtime=0))
    packed = hashlib.sha256((tmp_path / "set" / "a.gz").read_bytes()).hexdigest()
    plain = hashlib.sha256(b"ACGT\n").hexdigest()
    header = "dataset\tfile\tsha256\tsha256_uncompressed\tsource"
    (tmp_path / "sources.tsv").write_text(f"{header}\nset\ta.gz\t{packed}\t{plain}\thttps://example.org\n")
    return tmp_path


def test_verify_accepts_the_file_and_the_same_text_compressed_anew(sources):
    assert verify.problems(sources, sources / "sources.tsv") == ([], 1)
    (sources / "set" / "a.gz").write_bytes(gzip.compress(b"ACGT\n", compresslevel=1, mtime=9))
    assert verify.problems(sources, sources / "sources.tsv") == ([], 1)


@pytest.mark.parametrize(
    "content", [gzip.compress(b"ACGA\n", mtime=0), b"ACGT\n", gzip.compress(b"ACGT\n", mtime=0)[:-6], None]
)
def test_verify_names_a_file_that_differs_or_is_missing(sources, content):
    path = sources / "set" / "a.gz"
    path.write_bytes(content) if content else path.unlink()
    wrong = (
        "not the file that sources.tsv describes" if content else "missing; its source is https://example.org"
    )
    assert verify.problems(sources, sources / "sources.tsv")[0] == [f"set/a.gz: {wrong}"]


def test_sources_name_an_address_and_a_licence_for_every_file():
    with (DATA / "sources.tsv").open() as handle:
        listed = list(csv.DictReader(handle, delimiter="\t"))
    assert len({(row["dataset"], row["file"]) for row in listed}) == len(listed) > 10
    for row in listed:
        assert row["source"].startswith("https://")
        assert row["licence"]
        assert len(row["sha256"]) == len(row["sha256_uncompressed"]) == 64


STOPS = ("TAA", "TAG", "TGA")


def make(folder: Path, *options: str) -> tuple[str, list[list[str]]]:
    """Run the script and return the letters and the rows of the truth."""
    paths = folder / "genome.fa", folder / "truth.bed"
    assert synthetic.main(["--out", str(paths[0]), "--truth", str(paths[1]), *options]) == 0
    letters = "".join(paths[0].read_text().splitlines()[1:])
    return letters, [line.split("\t") for line in paths[1].read_text().splitlines()]


def test_the_committed_construct_can_be_made_again(tmp_path):
    options = ["--promoters", str(FOLDER / "promoters.fa"), "--background", "random", "--length", "20000"]
    make(tmp_path, *options, "--seed", "1", "--name", "construct")
    assert (tmp_path / "genome.fa").read_bytes() == (FOLDER / "construct.fa").read_bytes()
    assert (tmp_path / "truth.bed").read_bytes() == (FOLDER / "construct.truth.bed").read_bytes()


def test_planted_windows_stand_where_the_truth_says(tmp_path):
    promoters = {
        record.split()[0]: "".join(record.splitlines()[1:])
        for record in (FOLDER / "promoters.fa").read_text().split(">")[1:]
    }
    letters, truth = make(tmp_path, "--promoters", str(FOLDER / "promoters.fa"), "--length", "9000")
    assert [row[3] for row in truth] == list(promoters)
    for _, start, end, name, _, strand in truth:
        window = letters[int(start) : int(end)]
        assert (window if strand == "+" else opposite(window)) == promoters[name]
    assert {row[5] for row in truth} == {"+", "-"}


@given(st.integers(0, 10_000), st.integers(1, 6), st.integers(0, 400))
def test_planted_windows_never_touch_and_keep_the_length(seed, count, extra):
    rng = Random(seed)
    promoters = [(str(number), synthetic.random_promoter(rng)) for number in range(count)]
    length = 3 * 81 * count + extra
    genome, planted = synthetic.plant(rng, promoters, synthetic.random_letters(rng, length, 0.5))
    assert len(genome) == length
    assert set(genome) <= set("ACGT")
    ends = [0, *(item.end for item in planted)]
    assert all(item.start - end >= 81 for item, end in zip(planted, ends, strict=False))


def test_a_reading_frame_runs_from_a_start_to_its_only_stop():
    rng = Random(2)
    codons: Counter[str] = Counter()
    for _ in range(60):
        frame = synthetic.reading_frame(rng)
        found = [frame[place : place + 3] for place in range(0, len(frame), 3)]
        assert (found[0], len(frame) % 3) == ("ATG", 0)
        assert [i for i, codon in enumerate(found) if codon in STOPS] == [len(found) - 1]
        codons.update(found[1:-1])
    share = {codon: count / codons.total() for codon, count in codons.items()}
    assert share["CTG"] == pytest.approx(0.053, abs=0.006)  # 18,000 codons: 4 standard errors
    assert share["AGG"] == pytest.approx(0.0012, abs=0.001)
