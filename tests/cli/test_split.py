"""``seqray split``: tables and FASTA files in, a table whose parts hold no relatives out, and the proof."""

from __future__ import annotations

import csv
import gzip
import io
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from seqray.cli.main import main
from seqray.cli.split import _shares as shares
from seqray.core.alphabet import DNA, reverse_complement
from seqray.io.labeled import read_labeled_table

FAMILIES, MEMBERS = 24, 3


def families(seed=0, length=60, changes=5) -> list[tuple[str, str, str]]:
    """(sequence, label, id ``<family>.<member>``); the last member lies on the other strand."""
    rng = np.random.default_rng(seed)
    rows = []
    for family in range(FAMILIES):
        ancestor = rng.integers(0, 4, length)
        for member in range(MEMBERS):
            codes = ancestor.copy()
            places = rng.choice(length, changes if member else 0, replace=False)
            codes[places] = (codes[places] + 1) % 4
            letters = DNA.decode(codes)
            letters = reverse_complement(letters, DNA) if member == MEMBERS - 1 else letters
            rows.append((letters, "ab"[family % 2], f"{family}.{member}"))
    return rows


def write_table(path: Path, rows, header="sequence\tlabel\tid") -> Path:
    path.write_text("\n".join([header, *("\t".join(row) for row in rows)]) + "\n")
    return path


@pytest.fixture
def table(tmp_path) -> Path:
    return write_table(tmp_path / "data.tsv", families())


def split(*words, status=0) -> int:
    assert main(["split", *map(str, words)]) == status
    return status


def rows_of(path: Path) -> list[dict[str, str]]:
    text = path.read_text()
    lines = [line for line in text.splitlines(keepends=True) if not line.startswith("#")]
    return list(csv.DictReader(io.StringIO("".join(lines)), delimiter="\t"))


def sides(rows, column="split") -> dict[str, set[str]]:
    """Parts that each family lies in."""
    found: dict[str, set[str]] = {}
    for row in rows:
        found.setdefault(row["id"].partition(".")[0], set()).add(row[column])
    return found


def test_families_stay_together_and_shares_hold(table, tmp_path, capsys):
    split(table, "-o", tmp_path / "out.tsv", "--shares", "0.5,0.25,0.25")
    printed = capsys.readouterr()
    assert printed.out == ""
    rows = rows_of(tmp_path / "out.tsv")
    assert [row["id"] for row in rows] == [row[2] for row in families()]
    assert all(len(parts) == 1 for parts in sides(rows).values())
    assert len({row["group"] for row in rows}) == FAMILIES
    counts = Counter((row["split"], row["label"]) for row in rows)
    assert counts == {
        (part, label): n for part, n in (("train", 18), ("validation", 9), ("test", 9)) for label in "ab"
    }
    lines = printed.err.splitlines()
    assert lines[0] == (
        "seqray: groups: 24 of 72 examples, the largest of 3; train 36, validation 18, test 18"
    )
    assert lines[1].startswith("seqray: test against train and validation: highest identity 0.")
    assert "; 0 of 18 at 0.8 or above; 0 share a 40-mer" in lines[1]
    assert lines[2].startswith("seqray: validation against train: ")
    assert lines[3].startswith("seqray: resources: ")
    assert len(lines) == 4


def test_the_table_is_read_back_and_says_what_made_it(table, tmp_path):
    split(table, "-o", tmp_path / "out.tsv", "--proof", tmp_path / "proof.tsv", "-q")
    data = read_labeled_table(tmp_path / "out.tsv", DNA)
    assert Counter(example.split for example in data) == {"train": 60, "validation": 6, "test": 6}
    comments = [line for line in (tmp_path / "out.tsv").read_text().splitlines() if line[0] == "#"]
    assert comments[1].startswith("# command: seqray split data.tsv -o out.tsv --proof proof.tsv")
    text = "\n".join(comments)
    assert "# groups: 24 of 72 examples, the largest of 3" in text
    assert "# relatives by a shared 40-mer on either strand: joins " in text
    assert "# search: finds 9" in text
    assert "# test: a 3, b 3" in text
    assert "# proof, test against train and validation, a: highest identity 0." in text
    assert str(tmp_path) not in text
    assert (tmp_path / "proof.tsv").read_text().startswith(text)


def test_the_proof_is_a_table(table, tmp_path):
    split(table, "-o", tmp_path / "out.tsv", "--proof", tmp_path / "proof.tsv", "-q")
    proof = rows_of(tmp_path / "proof.tsv")
    assert [(row["boundary"], row["class"]) for row in proof] == [
        (name, label) for name in ("test", "validation") for label in ("all", "a", "b")
    ]
    split_of = {row["id"]: row["split"] for row in rows_of(tmp_path / "out.tsv")}
    for row in proof:
        assert row["shared_word"] == row["above"] == "0"
        assert 0 < float(row["q50"]) <= float(row["q90"]) <= float(row["q99"]) <= float(row["max"]) < 0.8
        assert split_of[row["id"]] == row["boundary"]
        assert split_of[row["nearest_id"]] != row["boundary"]


def test_folds(table, tmp_path, capsys):
    split(table, "-o", tmp_path / "out.tsv", "--folds", "4", "--proof", tmp_path / "proof.tsv")
    rows = rows_of(tmp_path / "out.tsv")
    assert Counter((row["fold"], row["label"]) for row in rows) == {
        (str(fold), label): 9 for fold in range(1, 5) for label in "ab"
    }
    assert all(len(folds) == 1 for folds in sides(rows, "fold").values())
    assert {row["split"] for row in rows} == {""}
    assert {row["boundary"] for row in rows_of(tmp_path / "proof.tsv")} == {f"fold {k}" for k in range(1, 5)}
    assert "fold 1 18, fold 2 18, fold 3 18, fold 4 18" in capsys.readouterr().err


def test_the_same_command_gives_the_same_bytes_and_another_seed_others(table, tmp_path):
    made = {}
    for name, words in {"a": (), "b": (), "c": ("--seed", "1")}.items():
        (tmp_path / name).mkdir()
        split(table, "-o", tmp_path / name / "out.tsv", "--proof", tmp_path / name / "p.tsv", "-q", *words)
        made[name] = [(tmp_path / name / file).read_bytes() for file in ("out.tsv", "p.tsv")]
    assert made["a"] == made["b"]
    split_of = [[row["split"] for row in rows_of(tmp_path / name / "out.tsv")] for name in "ac"]
    assert split_of[0] != split_of[1]


def test_standard_streams_gz_and_csv(seqray_forks, table, tmp_path, capsysbinary):
    split(table, "-q")
    printed = capsysbinary.readouterr().out
    command = [seqray_forks.folder / "seqray", "split", "-", "-q"]
    piped = subprocess.run(command, input=gzip.compress(table.read_bytes()), capture_output=True, check=True)

    def body(text):
        return [line for line in text.splitlines() if not line.startswith(b"#")]

    assert body(piped.stdout) == body(printed)
    split(table, "-q", "-o", tmp_path / "out.csv.gz")
    lines = body(gzip.decompress((tmp_path / "out.csv.gz").read_bytes()))
    assert [line.replace(b",", b"\t") for line in lines] == body(printed)


def test_fasta_files_of_classes(table, tmp_path, capsys):
    rows = families()
    for label in "ab":
        records = [f">{name}\n{letters}\n" for letters, own, name in rows if own == label]
        (tmp_path / f"{label}.fa").write_text("".join(records) + ">empty\n")
    pairs = [f"--class={label}={tmp_path / label}.fa" for label in "ab"]
    split(*pairs, "-o", tmp_path / "out.tsv")
    assert all(len(parts) == 1 for parts in sides(rows_of(tmp_path / "out.tsv")).values())
    assert "seqray: 2 records without letters were left out" in capsys.readouterr().err


def test_a_kept_test_part_stays_and_its_relatives_are_left_out_or_join(tmp_path, capsys):
    rows = [(*row, "test" if i < 6 and i % 3 == 0 else "") for i, row in enumerate(families())]
    table = write_table(tmp_path / "data.tsv", rows, "sequence\tlabel\tid\tsplit")
    split(table, "-o", tmp_path / "drop.tsv", "--keep", "test")
    made = rows_of(tmp_path / "drop.tsv")
    assert [row["id"] for row in made if row["split"] == "test"] == ["0.0", "1.0"]
    assert {row["id"] for row in made} == {r[2] for r in rows} - {"0.1", "0.2", "1.1", "1.2"}
    err = capsys.readouterr().err
    assert "kept as it is: test; 4 other examples left out as relatives of these" in err
    assert "is replaced" not in err
    split(table, "-o", tmp_path / "new.tsv")
    assert "the column 'split' of the data is replaced; to keep a part" in capsys.readouterr().err
    split(table, "-o", tmp_path / "join.tsv", "--keep", "test", "--relatives", "join")
    assert "kept: test; 4 other examples joined them as relatives" in capsys.readouterr().err
    made = rows_of(tmp_path / "join.tsv")
    assert {row["id"] for row in made if row["split"] == "test"} == {
        f"{f}.{m}" for f in (0, 1) for m in range(3)
    }
    assert len(made) == len(rows)


def test_a_split_that_leaves_nothing_to_train_on_says_so(table, tmp_path, capsys):
    split("--train", table, "--test", table, "--keep", "test", "--out", tmp_path / "out.tsv")
    assert "caution: no example is left to train on" in capsys.readouterr().err


def test_a_leak_between_kept_parts_is_told_and_fails_only_under_strict(tmp_path, capsys):
    rows = [(*row, "train" if row[2].endswith(".0") else "test") for row in families()]
    table = write_table(tmp_path / "data.tsv", rows, "sequence\tlabel\tid\tsplit")
    words = [table, "-o", tmp_path / "out.tsv", "--keep", "test", "--keep", "train"]
    split(*words)
    err = capsys.readouterr().err
    assert "48 of 48 at 0.8 or above" in err
    assert "caution: a boundary leaks; parts that are kept are related to each other; keep fewer" in err
    split(*words, "--strict", "-q", status=3)
    assert len(rows_of(tmp_path / "out.tsv")) == len(rows)
    split(table, "-o", tmp_path / "out.tsv", "--strict", "-q")


def test_looking_for_no_relatives_leaks_and_the_proof_tells(table, tmp_path, capsys):
    split(table, "-o", tmp_path / "out.tsv", "--identity", "0", "--word", "0", "--strict", status=3)
    err = capsys.readouterr().err
    assert "groups: 72 of 72 examples" in err
    assert "caution: a boundary leaks; use --identity and --word to keep relatives together" in err
    assert "share a" not in err


def test_a_word_that_no_sequence_holds_is_told(table, tmp_path, capsys):
    longest = max(len(row[0]) for row in families())
    for word, is_expected in ((longest, False), (longest + 1, True)):
        split(table, "-o", tmp_path / "out.tsv", "--word", str(word))
        note = f"no sequence has {word} letters, so none share a k-mer: give a smaller --word"
        assert (note in capsys.readouterr().err) is is_expected


def test_one_strand(tmp_path):
    [a, b, c, d], turned = [row[0] for row in families()[::3][:4]], reverse_complement(families()[0][0], DNA)
    rows = [(s, "x", str(i)) for i, s in enumerate((a, turned, b, c, d))]
    table = write_table(tmp_path / "data.tsv", rows)
    for words, groups in (((), "11234"), (("--one-strand",), "12345")):
        split(table, "-o", tmp_path / "out.tsv", "--shares", "0.5,0.5", "-q", *words)
        assert "".join(row["group"] for row in rows_of(tmp_path / "out.tsv")) == groups


@pytest.mark.parametrize(("column", "names"), [("context", "species"), ("gene", "gene"), ("Group", "group")])
def test_a_column_groups(tmp_path, column, names):
    rows = [(row[0], row[1], row[2], str(int(row[2].split(".")[0]) // 4)) for row in families()]
    table = write_table(tmp_path / "data.tsv", rows, f"sequence\tlabel\tid\t{column}")
    split(table, "-o", tmp_path / "out.tsv", "--group-by", column, "--shares", "0.5,0.5", "-q")
    made = rows_of(tmp_path / "out.tsv")
    assert len({row["group"] for row in made}) == FAMILIES // 4
    assert f"# relatives by the same {column.lower()}: joins 72" in (tmp_path / "out.tsv").read_text()


def test_a_group_of_the_data_counts_unasked(tmp_path):
    rows = [(row[0], row[1], row[2], str(int(row[2].split(".")[0]) // 4)) for row in families()]
    table = write_table(tmp_path / "data.tsv", rows, "sequence\tlabel\tid\tgroup")
    split(table, "-o", tmp_path / "out.tsv", "--shares", "0.5,0.5", "-q")
    assert len({row["group"] for row in rows_of(tmp_path / "out.tsv")}) == FAMILIES // 4


def test_neighbours_in_the_genome(tmp_path):
    firsts = [row for row in families() if row[2].endswith(".0")]
    rows = [
        (s, label, f"chr{i % 2}:{i * 400}:+", f"chr{i % 2}", str(i * 400))
        for i, (s, label, _) in enumerate(firsts)
    ]
    table = write_table(tmp_path / "data.tsv", rows, "sequence\tlabel\tid\tcontig\tstart")
    for places in ("id", "contig,start"):
        split(table, "-o", tmp_path / "out.tsv", "--positions", places, "--block", "2000", "-q")
        made = rows_of(tmp_path / "out.tsv")
        blocks = [(i % 2, i * 400 // 2000) for i in range(len(rows))]
        numbers = {block: str(n + 1) for n, block in enumerate(dict.fromkeys(blocks))}
        assert [row["group"] for row in made] == [numbers[block] for block in blocks]


def test_protein_of_low_identity(tmp_path, capsys):
    rng = np.random.default_rng(1)
    letters = list("ACDEFGHIKLMNPQRSTVWY")
    rows = []
    for family in range(12):
        ancestor = rng.choice(letters, 50)
        for member in range(2):
            copy = ancestor.copy()
            copy[rng.choice(50, 20 * member, replace=False)] = "G"
            rows.append(("".join(copy), "ab"[family % 2], f"{family}.{member}"))
    table = write_table(tmp_path / "data.tsv", rows)
    split(table, "--alphabet", "protein", "--identity", "0.5", "-o", tmp_path / "out.tsv")
    made = rows_of(tmp_path / "out.tsv")
    assert all(len(parts) == 1 for parts in sides(made).values())
    assert len({row["group"] for row in made}) == 12
    assert "share a 20-mer" in capsys.readouterr().err


def test_mmseqs(table, tmp_path, monkeypatch, capsys):
    program = tmp_path / "bin" / "mmseqs"
    program.parent.mkdir()
    program.write_text(
        f"#!{sys.executable}\nnames = [l[1:-1] for l in open('in.fasta') if l[0] == '>']\n"
        "open('out_cluster.tsv', 'w').write(''.join(f'{int(n[:-1]) // 3}\\t{n}\\n' for n in names))\n"
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent))
    split(table, "-o", tmp_path / "out.tsv", "--tool", "mmseqs", "--word", "0", "-q")
    assert len({row["group"] for row in rows_of(tmp_path / "out.tsv")}) == FAMILIES
    assert "found by mmseqs: joins 72 examples in 24 groups" in (tmp_path / "out.tsv").read_text()
    monkeypatch.setenv("PATH", str(tmp_path))
    split(table, "-o", tmp_path / "no.tsv", "--tool", "mmseqs", status=2)
    assert "no program 'mmseqs' on the path" in capsys.readouterr().err
    assert not (tmp_path / "no.tsv").exists()


def test_a_giant_group_is_told(tmp_path, capsys):
    rows = families()
    rows += [(rows[0][0][i:] + rows[1][0][:i], "a", f"0.{9 + i}") for i in range(1, 20)]
    table = write_table(tmp_path / "data.tsv", rows)
    split(table, "-o", tmp_path / "out.tsv")
    assert (
        "caution: the largest group, a chain of relatives, holds 24% of the examples"
        in capsys.readouterr().err
    )


def test_shares():
    assert shares("8,1,1") == pytest.approx((0.8, 0.1, 0.1))
    assert shares("0.75,0.25") == (0.75, 0.0, 0.25)
    assert shares("33.3,33.3,33.4") == pytest.approx((0.333, 0.333, 0.334))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--shares", "0,1,1"], "'0,1,1' is not a list of shares such as 0.8,0.1,0.1"),
        (["--shares", "1"], "is not a list of shares"),
        (["--shares", "a,b"], "is not a list of shares"),
        (
            ["--shares", "0.5,0.6"],
            "'0.5,0.6' sums to 1.1; give shares that sum to 1, or ratios such as 8,1,1",
        ),
        (["--shares", "0.5,0.2,0.2"], "sums to 0.9"),
        (["--shares", "0.5,0.5", "--folds", "3"], "--folds and --shares are given; choose one"),
        (["--folds", "1"], "--folds is 1; give 2 or more"),
        (["--folds", "99"], "24 groups can't fill 99 parts; ask for fewer parts, or for smaller groups"),
        (
            ["--identity", "0.5"],
            "--identity is 0.5, which unrelated dna sequences may reach by chance; give 0.65",
        ),
        (["--identity", "2"], "'2' is not a number between 0 and 1"),
        (["--keep", "test"], "no example has the split 'test' that is to be kept"),
        (["--group-by", "gene"], "data.tsv: line 1: needs one column 'gene', found sequence, label, id"),
        (
            ["--positions", "id"],
            "record '0.0': the id is not a position such as chr1:1234:+; name",
        ),
        (["--positions", "contig"], "--positions is 'contig'; write id, or two columns CONTIG,POSITION"),
        (
            ["--positions", "label,id"],
            "record '0.0': '0.0' in column 'id' is not a position; give",
        ),
        (["--alphabet", "protein"], "looks like nucleotides, but protein is expected"),
        (["--proof", "out.tsv"], "out.tsv: is named twice as an output"),
        (["--out", "data.tsv"], "data.tsv: is an input and would be overwritten"),
        (["--out", "none/out.tsv"], "none/out.tsv: can't be written (its directory doesn't exist)"),
        (["--folds", "0"], "'0' is not a whole number of 1 or more"),
        (["--identity", "0", "--tool", "mmseqs"], "--tool finds pairs of --identity, which is 0; leave it"),
        (["--block", "100"], "--block is for neighbors in a genome; add --positions"),
        (["--relatives", "join"], "--relatives is for relatives of kept examples; add --keep"),
    ],
)
def test_what_cannot_be_done_is_one_line_and_leaves_nothing(
    table, tmp_path, capsys, monkeypatch, words, message
):
    monkeypatch.chdir(tmp_path)
    out = [] if "--out" in words else ["--out", "out.tsv"]
    split("data.tsv", *out, *words, status=2)
    printed = capsys.readouterr()
    assert printed.out == ""
    assert len(printed.err.splitlines()) == 1
    assert printed.err.startswith("seqray: error: ")
    assert message in printed.err
    assert [path.name for path in tmp_path.iterdir()] == ["data.tsv"]


def test_no_data_and_columns_of_fasta(tmp_path, capsys):
    split(status=2)
    assert "no training data" in capsys.readouterr().err
    (tmp_path / "a.fa").write_text(">x\nACGT\n")
    split(f"--class=a={tmp_path / 'a.fa'}", "--group-by", "gene", status=2)
    assert "FASTA files have no column 'gene'; give a table" in capsys.readouterr().err


def test_the_alphabet_is_told_by_the_letters(tmp_path, capfd):
    """Words of 20 letters join proteins, those of 40 nucleotides: the header states which."""
    rng = random.Random(5)
    rows = [("".join(rng.choices("ACDEFGHIKLMNPQRSTVWY", k=60)), "ab"[i % 2]) for i in range(40)]
    (tmp_path / "p.tsv").write_text("sequence\tlabel\n" + "".join("\t".join(row) + "\n" for row in rows))
    assert main(["split", str(tmp_path / "p.tsv"), "--out", str(tmp_path / "o.tsv")]) == 0
    assert "seqray: the letters are those of protein" in capfd.readouterr().err
    assert "a shared 20-mer" in (tmp_path / "o.tsv").read_text()
    assert (
        main(["split", str(tmp_path / "p.tsv"), "--out", str(tmp_path / "o.tsv"), "--identity", "0.2"]) == 2
    )
    assert "unrelated protein sequences" in capfd.readouterr().err


def test_columns_that_are_not_read_are_noted_but_not_those_that_options_name(tmp_path, capsys):
    table = tmp_path / "t.tsv"
    rows = [f"{s}\t{label}\tg{i}\ttrain" for i, (s, label, _) in enumerate(families())]
    table.write_text("\n".join(["sequence\tlabel\tGroups\tset", *rows]) + "\n")
    note = f"seqray: {table}: columns not read: groups, set (known: sequence, label, id, "
    assert main(["split", str(table), "--out", str(tmp_path / "s.tsv")]) == 0
    assert note in capsys.readouterr().err
    words = ["split", str(table), "--out", str(tmp_path / "s.tsv"), "--group-by", "Groups"]
    assert main(words) == 0
    assert f"seqray: {table}: columns not read: set (known: " in capsys.readouterr().err
    assert main([*words, "--quiet"]) == 0
    assert "columns not read" not in capsys.readouterr().err


def test_a_group_that_most_rows_name_is_called_by_its_name(tmp_path, capsys):
    """NA is a name like any other, so its rows are one group that no --identity divides."""
    table, out = tmp_path / "t.tsv", tmp_path / "s.tsv"
    rows = [f"{s}\t{label}\t{'NA' if i < 60 else f'g{i}'}" for i, (s, label, _) in enumerate(families())]
    table.write_text("\n".join(["sequence\tlabel\tgroup", *rows]) + "\n")
    assert main(["split", str(table), "--out", str(out)]) == 0
    advice = "column 'group' has 'NA' in 60 rows; empty these cells if their group is not known"
    assert f"caution: the largest group holds 83% of the examples: {advice}" in capsys.readouterr().err
    rows = [f"{s}\t{label}\tNA" for s, label, _ in families()]
    table.write_text("\n".join(["sequence\tlabel\tgroup", *rows]) + "\n")
    assert main(["split", str(table), "--out", str(out)]) == 2
    error = f"{table}: 1 group can't fill 3 parts; {advice.replace('60', '72')}"
    assert error in capsys.readouterr().err


def test_repeated_ids_are_a_caution(tmp_path, capsys):
    table, out = tmp_path / "t.tsv", tmp_path / "s.tsv"
    rows = [f"{s}\t{label}\t{'x' if i < 3 else i}" for i, (s, label, _) in enumerate(families())]
    table.write_text("\n".join(["sequence\tlabel\tid", *rows]) + "\n")
    assert main(["split", str(table), "--out", str(out)]) == 0
    assert "caution: the data have 1 id, such as 'x', of more than one example" in capsys.readouterr().err
