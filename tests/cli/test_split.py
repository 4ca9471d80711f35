"""``seqray split``: tables and FASTA files in, a table whose parts hold no relatives out, and the proof."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from commands import Run
from seqray.core.alphabet import DNA, reverse_complement
from seqray.io.sequences import read_labeled_table
from tables import body, facts, fasta, letters, table, tsv, write

COUNT, MEMBERS = 24, 3
HEAD = "sequence label id"


def families(length=60, changes=5) -> list[tuple[str, str, str]]:
    """(sequence, label, id ``<family>.<member>``); the last member lies on the other strand."""
    rng = np.random.default_rng(0)
    rows = []
    for family in range(COUNT):
        ancestor = rng.integers(0, 4, length)
        for member in range(MEMBERS):
            codes = ancestor.copy()
            places = rng.choice(length, changes if member else 0, replace=False)
            codes[places] = (codes[places] + 1) % 4
            text = DNA.decode(codes)
            text = reverse_complement(text, DNA) if member == MEMBERS - 1 else text
            rows.append((text, "ab"[family % 2], f"{family}.{member}"))
    return rows


ROWS = families()


@pytest.fixture
def split(run, tmp_path) -> Run:
    """Run the verb where data.tsv holds the families."""
    write(tmp_path / "data.tsv", tsv(HEAD, ROWS))
    return run.to("split")


def rows_of(name="out.tsv") -> list[dict[str, str]]:
    return table(Path(name).read_text())


def sides(rows, column="split") -> dict[str, set[str]]:
    """Parts that each family lies in."""
    found: dict[str, set[str]] = {}
    for row in rows:
        found.setdefault(row["id"].partition(".")[0], set()).add(row[column])
    return found


def test_families_stay_together_and_shares_hold(split):
    ended = split("data.tsv -o out.tsv --shares 0.5,0.25,0.25")
    assert ended.out == ""
    rows = rows_of()
    assert [row["id"] for row in rows] == [row[2] for row in ROWS]
    assert all(len(parts) == 1 for parts in sides(rows).values())
    assert len({row["group"] for row in rows}) == COUNT
    shares = (("train", 18), ("validation", 9), ("test", 9))
    counts = Counter((row["split"], row["label"]) for row in rows)
    assert counts == {(part, label): n for part, n in shares for label in "ab"}
    groups, test, validation, _ = ended.err.splitlines()
    assert "24 of 72 examples, the largest of 3; train 36, validation 18, test 18" in groups
    assert test.startswith("seqray: test against train and validation: highest identity 0.")
    assert "0 of 18 at 0.8 or above; 0 share a 30-mer" in test
    assert validation.startswith("seqray: validation against train: ")


def test_the_table_is_read_back_and_says_what_made_it_and_the_proof_is_a_table(split, tmp_path):
    split("data.tsv -o out.tsv --proof proof.tsv -q")
    data = read_labeled_table(tmp_path / "out.tsv", DNA)
    assert Counter(example.split for example in data) == {"train": 60, "validation": 6, "test": 6}
    text = (tmp_path / "out.tsv").read_text()
    header = facts(text)
    assert header["command"] == "seqray split data.tsv -o out.tsv --proof proof.tsv"
    assert header["groups"] == "24 of 72 examples, the largest of 3"
    assert header["test"] == "3 a, 3 b"
    assert "relatives by a shared 30-mer on either strand" in header
    assert header["proof, test against train and validation, a"].startswith("highest identity 0.")
    proved = (tmp_path / "proof.tsv").read_text()
    assert proved.startswith(text[: text.index("\nsequence")])
    proof = table(proved)
    names = [(name, label) for name in ("test", "validation") for label in ("all", "a", "b")]
    assert [(row["boundary"], row["class"]) for row in proof] == names
    split_of = {row["id"]: row["split"] for row in table(text)}
    for row in proof:
        assert row["shared_word"] == row["above"] == "0"
        assert 0 < float(row["q50"]) <= float(row["q90"]) <= float(row["q99"]) <= float(row["max"]) < 0.8
        assert split_of[row["id"]] == row["boundary"]
        assert split_of[row["nearest_id"]] != row["boundary"]


def test_folds(split):
    err = split("data.tsv -o out.tsv --folds 4 --proof proof.tsv").err
    rows = rows_of()
    counts = Counter((row["fold"], row["label"]) for row in rows)
    assert counts == {(str(fold), label): 9 for fold in range(1, 5) for label in "ab"}
    assert all(len(folds) == 1 for folds in sides(rows, "fold").values())
    assert {row["split"] for row in rows} == {""}
    assert {row["boundary"] for row in rows_of("proof.tsv")} == {f"fold {k}" for k in range(1, 5)}
    assert "fold 1 18, fold 2 18, fold 3 18, fold 4 18" in err


def test_another_seed_gives_another_split_and_csv_the_same_rows(split, tmp_path):
    plain, other = (split("data.tsv -q --seed", seed).out for seed in (0, 1))
    assert [row["split"] for row in table(plain)] != [row["split"] for row in table(other)]
    split("data.tsv -q -o out.csv")
    lines = body((tmp_path / "out.csv").read_text())
    assert [line.replace(",", "\t") for line in lines] == body(plain)


def test_fasta_files_of_classes(split, tmp_path):
    for label in "ab":
        records = {name: text for text, own, name in ROWS if own == label}
        write(tmp_path / f"{label}.fa", fasta(records | {"empty": ""}))
    err = split("--class=a=a.fa --class=b=b.fa -o out.tsv").err
    assert all(len(parts) == 1 for parts in sides(rows_of()).values())
    assert "2 records without a sequence were left out" in err


# --- parts that are kept --------------------------------------------------------------------------


def test_a_kept_test_part_stays_and_its_relatives_are_left_out_or_join(split, tmp_path):
    rows = [(*row, "test" if i < 6 and i % 3 == 0 else "") for i, row in enumerate(ROWS)]
    write(tmp_path / "data.tsv", tsv(f"{HEAD} split", rows))
    err = split("data.tsv -o out.tsv --keep test").err
    made = rows_of()
    assert [row["id"] for row in made if row["split"] == "test"] == ["0.0", "1.0"]
    assert {row["id"] for row in made} == {r[2] for r in rows} - {"0.1", "0.2", "1.1", "1.2"}
    assert "4 other examples left out as relatives" in err
    assert "is replaced" not in err
    assert "the column 'split' of the data is replaced" in split("data.tsv -o new.tsv").err
    err = split("data.tsv -o out.tsv --keep test --relatives join").err
    assert "4 other examples joined them" in err
    made = rows_of()
    joined = {f"{family}.{member}" for family in (0, 1) for member in range(3)}
    assert {row["id"] for row in made if row["split"] == "test"} == joined
    assert len(made) == len(rows)


def test_a_split_that_leaves_nothing_to_train_on_says_so(split):
    err = split("--train data.tsv --test data.tsv --keep test --out out.tsv").err
    assert "caution: no example is left to train on" in err


def test_a_leak_between_kept_parts_is_told_and_fails_only_under_strict(split, tmp_path):
    split("data.tsv -o out.tsv --strict -q")
    rows = [(*row, "train" if row[2].endswith(".0") else "test") for row in ROWS]
    write(tmp_path / "data.tsv", tsv(f"{HEAD} split", rows))
    err = split("data.tsv -o out.tsv --keep test --keep train").err
    assert "48 of 48 at 0.8 or above" in err
    assert "caution: a boundary leaks" in err
    split("data.tsv -o out.tsv --keep test --keep train --strict -q", status=3)
    assert len(rows_of()) == len(rows)


# --- relatives ------------------------------------------------------------------------------------


def test_looking_for_no_relatives_leaks_and_the_proof_tells(split):
    err = split("data.tsv -o out.tsv --identity 0 --word 0 --strict", status=3).err
    assert "72 of 72 examples" in err
    assert "caution: a boundary leaks" in err


@pytest.mark.parametrize(("word", "told"), [(60, False), (61, True)])
def test_a_word_that_no_sequence_holds_is_told(split, word, told):
    assert ("give a smaller --word" in split("data.tsv -o out.tsv --word", word).err) == told


def test_one_strand(split, tmp_path):
    [a, b, c, d] = [row[0] for row in ROWS[::3][:4]]
    turned = reverse_complement(a, DNA)
    write(tmp_path / "data.tsv", tsv(HEAD, [(s, "x", i) for i, s in enumerate((a, turned, b, c, d))]))
    for words, groups in (("", "11234"), ("--one-strand", "12345")):
        rows = split("data.tsv --shares 0.5,0.5 -q", words).rows
        assert "".join(row["group"] for row in rows) == groups


@pytest.mark.parametrize(
    ("column", "words"),
    [
        ("context", "--group-by context"),
        ("gene", "--group-by gene"),
        ("Group", "--group-by Group"),
        ("group", ""),  # counts unasked
    ],
)
def test_a_column_groups(split, tmp_path, column, words):
    rows = [(*row, int(row[2].split(".")[0]) // 4) for row in ROWS]
    write(tmp_path / "data.tsv", tsv(f"{HEAD} {column}", rows))
    ended = split("data.tsv --shares 0.5,0.5 -q", words)
    assert len({row["group"] for row in ended.rows}) == COUNT // 4
    assert ended.facts[f"relatives by the same {column.lower()}"].startswith("joins 72")


@pytest.mark.parametrize("places", ["id", "contig,start"])
def test_neighbours_in_the_genome(split, tmp_path, places):
    rows = [
        (s, label, f"chr{i % 2}:{i * 400}:+", f"chr{i % 2}", i * 400)
        for i, (s, label, _) in enumerate(ROWS[::3])
    ]
    write(tmp_path / "data.tsv", tsv(f"{HEAD} contig start", rows))
    made = split("data.tsv --block 2000 -q --positions", places).rows
    blocks = [(i % 2, i * 400 // 2000) for i in range(len(rows))]
    numbers = {block: str(n + 1) for n, block in enumerate(dict.fromkeys(blocks))}
    assert [row["group"] for row in made] == [numbers[block] for block in blocks]


def test_protein_of_low_identity(split, tmp_path):
    rng = np.random.default_rng(1)
    rows = []
    for family in range(12):
        ancestor = rng.choice(list("ACDEFGHIKLMNPQRSTVWY"), 50)
        for member in range(2):
            copy = ancestor.copy()
            copy[rng.choice(50, 20 * member, replace=False)] = "G"
            rows.append(("".join(copy), "ab"[family % 2], f"{family}.{member}"))
    write(tmp_path / "data.tsv", tsv(HEAD, rows))
    for words in ("--alphabet protein", ""):  # the letters tell the alphabet, too
        ended = split("data.tsv --identity 0.5", words)
        assert all(len(parts) == 1 for parts in sides(ended.rows).values())
        assert len({row["group"] for row in ended.rows}) == 12
        assert "share a 10-mer" in ended.err
    split.refused("data.tsv --identity 0.2 -q", names=("--identity", "protein"))


# --- cautions -------------------------------------------------------------------------------------


def test_a_giant_group_is_told(split, tmp_path):
    chain = [(ROWS[0][0][i:] + ROWS[1][0][:i], "a", f"0.{9 + i}") for i in range(1, 20)]
    write(tmp_path / "data.tsv", tsv(HEAD, [*ROWS, *chain]))
    assert "caution: the largest group, a chain of relatives, holds 24%" in split("data.tsv -o out.tsv").err


def test_a_group_that_most_rows_name_is_called_by_its_name(split, tmp_path):
    """NA is a name like any other, so its rows are one group that no --identity divides."""
    rows = [(s, label, "NA" if i < 60 else f"g{i}") for i, (s, label, _) in enumerate(ROWS)]
    write(tmp_path / "data.tsv", tsv("sequence label group", rows))
    err = split("data.tsv --out out.tsv").err
    assert "caution: the largest group holds 83% of the examples: column 'group' has 'NA' in 60 rows" in err
    write(tmp_path / "data.tsv", tsv("sequence label group", [(s, label, "NA") for s, label, _ in ROWS]))
    split.refused("data.tsv --out x.tsv -q", names=("data.tsv", "1 group", "'NA' in 72 rows"))


def test_repeated_ids_are_a_caution(split, tmp_path):
    rows = [(s, label, "x" if i < 3 else i) for i, (s, label, _) in enumerate(ROWS)]
    write(tmp_path / "data.tsv", tsv(HEAD, rows))
    assert "caution: the data have 1 id, such as 'x'" in split("data.tsv --out s.tsv").err


def test_columns_that_are_not_read_are_noted_but_not_those_that_options_name(split, tmp_path):
    rows = [(s, label, f"g{i}", "train") for i, (s, label, _) in enumerate(ROWS)]
    write(tmp_path / "t.tsv", tsv("sequence label Groups set", rows))
    assert "t.tsv: columns not read: groups, set (" in split("t.tsv --out s.tsv").err
    assert "t.tsv: columns not read: set (" in split("t.tsv --out s.tsv --group-by Groups").err
    assert split("t.tsv --out s.tsv --group-by Groups --quiet").err == ""


def test_a_class_that_a_part_lacks_and_labels_that_differ_in_case_are_told(split, tmp_path):
    rows = [(letters(60, i), "few" if i < 3 else ("many", "Many")[i == 9], f"s{i}") for i in range(40)]
    write(tmp_path / "few.tsv", tsv(HEAD, rows))
    told = split("few.tsv --folds 5 --out o.tsv").err
    assert "caution: the labels 'Many' and 'many' differ only in case" in told
    assert "no 'few' (3 examples) in fold " in told
