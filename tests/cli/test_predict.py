"""``seqray predict`` from file to file, with the tiny random model."""

import gzip
import re

import numpy as np
import pyarrow.parquet as pq
import pytest

from seqray.calibration.conformal import class_cutoffs, fit_ranks
from seqray.core.card_parts import HeldOutRanks
from seqray.core.text import format_number
from seqray.core.version import __version__
from seqray.inference.sequences import predict_records
from tables import body, changed_model, fasta, letters, record, table, write

RECORDS = [record(letters(20 if i % 3 else 5 + i % 15, i), f"r{i}") for i in range(30)]


@pytest.fixture
def predict(run, tiny_model_file, tmp_path):
    """Run the verb where in.fa is."""
    write(tmp_path / "in.fa", fasta({f"{r.id} text": r.sequence for r in RECORDS}))
    return run.to("predict --model", tiny_model_file)


def cells(text: str) -> list[list[str]]:
    return [line.split("\t") for line in body(text)]


def column(ended, name="p_promoter") -> list[float]:
    return [float(row[name]) for row in ended.rows]


# --- inputs ---------------------------------------------------------------------------------------


def test_longer_sequences_are_cut_and_counted_where_asked(run, tiny_model, tmp_path):
    long = "ACGTACGTACAAAAATTTTTGGGGGCCCCC"
    cut = {"a": long, "start": long[:20], "ends": long[:10] + long[-10:], "d": long[:20]}
    write(tmp_path / "long.fa", fasta(cut))
    changed_model(tmp_path / "anywhere.safetensors", tiny_model, site=None)
    predict = run.to("predict long.fa --model anywhere.safetensors")
    for how in ("ends", "start"):
        ended = predict("--truncate", how)
        rows = {row["id"]: row for row in ended.rows}
        assert rows["a"]["length"] == "30"
        assert rows["a"]["p_promoter"] == rows[how]["p_promoter"]
        assert ["truncated" in row["flags"] for row in rows.values()] == [True, False, False, False]
        assert "1 of 4 sequences are longer than 20 letters" in ended.err
    assert "--truncate ends" in predict(status=2).err


def test_several_files_are_read_as_if_they_were_one(predict, tmp_path):
    whole = predict("in.fa")
    for part, name in ((RECORDS[:7], "a.fa"), (RECORDS[7:8], "b.fa.gz"), (RECORDS[8:], "c.fa")):
        data = fasta(part).encode()
        write(tmp_path / name, gzip.compress(data) if name.endswith("gz") else data)
    write(tmp_path / "empty.fa", "")
    parts = predict("a.fa b.fa.gz empty.fa c.fa --allow-empty")
    assert [(row["id"], row["label"]) for row in parts.rows] == [(r["id"], r["label"]) for r in whole.rows]
    np.testing.assert_allclose(column(parts), column(whole), atol=1e-6)
    assert f"{len(RECORDS)} records" in parts.err


@pytest.mark.parametrize(("policy", "ids"), [("rename", ["x", "y", "y_2"]), ("keep", ["x", "y", "y"])])
def test_repeated_ids_are_renamed_or_kept_within_and_between_files(predict, tmp_path, policy, ids):
    write(tmp_path / "a.fa", fasta({"x": "ACGTACGTAC", "y": "ACGTACGTAC"}))
    write(tmp_path / "b.fa", fasta({"y": "ACGTACGTAC"}))
    write(tmp_path / "both.fa", (tmp_path / "a.fa").read_text() + (tmp_path / "b.fa").read_text())
    for files in ("a.fa b.fa", "both.fa"):
        assert [row["id"] for row in predict(files, "--duplicates", policy).rows] == ids


# --- the table ------------------------------------------------------------------------------------


def test_rows_are_what_the_library_says_in_the_order_of_the_file(predict, tiny_model):
    ended = predict("in.fa")
    header, *rows = cells(ended.out)
    assert header == ["id", "length", "label", "p_promoter", "p_background", "flags"]
    assert rows == [
        [p.id, str(p.length), p.label, *map(format_number, p.probabilities), ",".join(p.flags) or "."]
        for p in predict_records(tiny_model, RECORDS)
    ]
    assert {row[2] for row in rows} == {"promoter", "background"}
    assert f"30 records, {sum(row[2] == 'promoter' for row in rows)} promoter, 0 skipped" in ended.err


def test_the_header_tells_how_the_table_was_made(predict, tiny_model, tmp_path):
    ended = predict("in.fa -qo - --threads=1 --log-json")
    assert ended.out.startswith(f"# seqray {__version__}\n")
    assert ended.facts["command"] == "seqray predict --model tiny.safetensors in.fa -o -"
    assert ended.facts["model"] == f"tiny sha256:{tiny_model.sha256}"
    assert ended.facts["classes"] == "promoter (positive), background"
    assert {"alphabet", "label", "prior", "columns"} < set(ended.facts)
    assert str(tmp_path.parent) not in ended.out


def test_threshold_and_prior(predict):
    plain = column(predict("in.fa"))
    middle = sum(sorted(plain)[14:16]) / 2
    ended = predict("in.fa --threshold", middle)
    assert [row["label"] == "promoter" for row in ended.rows] == [p >= middle for p in plain]
    assert f"{middle:.6g}" in ended.facts["label"]
    ended = predict("in.fa --prior 0.01")
    assert ended.facts["prior"].startswith("0.01 ")
    odds = np.array(plain) / (1 - np.array(plain)) * (0.01 / 0.99) / (0.2 / 0.8)
    np.testing.assert_allclose(column(ended), odds / (1 + odds), rtol=1e-4)


def test_skipped_records_are_told_and_written(predict, tmp_path):
    empty = {f"s{i}": "" for i in range(5)}
    write(tmp_path / "some.fa", fasta({"a": "ACGT" * 5} | empty | {"b": "GATC" * 5}))
    ended = predict("some.fa --skipped s.tsv")
    assert [row["id"] for row in ended.rows] == ["a", "b"]
    skipped = table((tmp_path / "s.tsv").read_text())
    assert [(row["id"], row["reason"]) for row in skipped] == [(name, "empty sequence") for name in empty]
    *told, summary, _ = ended.err.splitlines()
    assert [re.findall("'(s.)'|(2 more)", line) != [] for line in told] == [True] * 4
    assert "2 records" in summary
    assert "5 skipped" in summary


UNUSABLE = {"long": "ACGTACG" * 3, "odd": "ACG!" * 5, "none": "", "protein": "MKVLAAGIVGLALLGAWPEQ"}
REASONS = (
    "has 21 letters, model 'tiny' reads at most 20",
    "unknown letter '!' at position 4",
    "empty sequence",
)


def test_records_that_the_model_cannot_read_are_left_out_where_asked(predict, tmp_path):
    usable = {r.id: r.sequence for r in RECORDS}
    write(tmp_path / "some.fa", fasta({"first": UNUSABLE["odd"]} | usable | UNUSABLE))
    ended = predict("some.fa --skip-unusable --skipped s.tsv")
    assert ended.rows == predict("in.fa").rows
    assert "30 records, " in ended.err
    assert ", 5 skipped, " in ended.err
    reasons = {row["id"]: row["reason"] for row in table((tmp_path / "s.tsv").read_text())}
    assert (reasons["long"], reasons["odd"], reasons["none"]) == REASONS
    assert reasons["first"] == reasons["odd"]
    assert reasons["protein"].startswith("looks like protein")
    predict.refused("some.fa", names=["first", "unknown letter", "--skip-unusable"])
    predict.refused("some.fa --skip-unusable --strict", names="--strict and --skip-unusable")
    write(tmp_path / "none.fa", fasta(UNUSABLE))
    predict.refused("none.fa --skip-unusable --quiet", names="all 4 records were skipped")


def test_a_part_that_was_not_learned_is_a_caution(run, tiny_model, tmp_path):
    write(tmp_path / "long.fa", fasta({"a": "ACGT" * 6, "b": "ACGT" * 5}))
    changed_model(tmp_path / "anywhere.safetensors", tiny_model, site=None)
    told = run("predict long.fa --model anywhere.safetensors --truncate ends").err
    assert "never learned from parts of longer sequences" in told
    assert "--skip-unusable with --truncate none leaves them out" in told


def test_of_many_classes_each_is_counted(run, alignment_model_file, tmp_path):
    write(tmp_path / "x.fa", fasta({"a": "ACGU-ACGUA", "b": "ACGUUACGUA"}))
    ended = run("predict x.fa --model", alignment_model_file)
    [row] = ended.rows
    counts = ", ".join(f"{int(row['label'] == name)} {name}" for name in ("tRNA", "miRNA", "riboswitch"))
    assert f"1 record, {counts}, 0 skipped" in ended.err


# --- coverage -------------------------------------------------------------------------------------


@pytest.fixture
def covering(run, tiny_model, tmp_path):
    """Predict by the tiny model with held-out scores: 99 of promoter, 19 of background."""
    write(tmp_path / "in.fa", fasta(RECORDS))
    rng = np.random.default_rng(0)
    own, labels = rng.uniform(0.4, 1, 118), np.repeat([0, 1], [99, 19])
    p = np.where(labels == 0, own, 1 - own)
    held_out = fit_ranks(np.stack((p, 1 - p), axis=1), labels, tiny_model.card.classes)
    changed_model(tmp_path / "scores.safetensors", tiny_model, conformal=held_out)
    return run.to("predict in.fa --model scores.safetensors --threads 1"), held_out


def test_coverage_adds_sets_and_changes_nothing_else(covering, tmp_path):
    predict, held_out = covering
    plain, covered = predict().rows, predict("--coverage 0.9")
    sets = [row["set"] for row in covered.rows]
    assert [{name: row[name] for name in plain[0]} for row in covered.rows] == plain
    cutoffs = dict(zip(("promoter", "background"), class_cutoffs(held_out, 0.9), strict=True))
    for row in covered.rows:
        names = [name for name, cut in cutoffs.items() if float(row[f"p_{name}"]) >= cut]
        assert row["set"] == ("|".join(names) or "-")
    assert set(sets) >= {"promoter", "background"}
    assert covered.facts["coverage"].startswith("0.9 ")
    predict("--coverage 0.9 -o p.parquet")
    assert pq.read_table(tmp_path / "p.parquet")["set"].to_pylist() == sets


def test_the_prior_changes_probabilities_and_no_set(covering):
    low, high = (covering[0]("--coverage 0.8 --prior", prior) for prior in (0.01, 0.9))
    assert [row["set"] for row in low.rows] == [row["set"] for row in high.rows]
    assert column(low) != column(high)


def test_more_coverage_than_held_out_scores_allow_is_refused(covering, tiny_model, tmp_path):
    covering[0].refused("--coverage 0.96 -o x.tsv", names=("0.96", "24", "'background'", "19", "0.95"))
    damaged = HeldOutRanks(2, np.array([0.1, 0.2]), np.array([1, 2]))
    object.__setattr__(damaged, "rank", np.array([2, 1]))
    held_out = dict.fromkeys(tiny_model.card.classes, damaged)
    changed_model(tmp_path / "scores.safetensors", tiny_model, conformal=held_out)
    covering[0].refused("-o x.tsv", names="conformal")


def test_a_file_unlike_the_training_data_is_told(run, tiny_model, tmp_path):
    """None of 80 random windows scores as surely as held-out examples."""
    write(tmp_path / "many.fa", fasta({f"m{i}": letters(20, i) for i in range(80)}))
    p = np.repeat([[0.999999, 1e-6], [1e-6, 0.999999]], 400, axis=0)
    held_out = fit_ranks(p, np.repeat([0, 1], 400), tiny_model.card.classes)
    changed_model(tmp_path / "held.safetensors", tiny_model, conformal=held_out)
    predict = run.to("predict many.fa --model held.safetensors --threads 1")
    said = predict("--coverage 0.8").err
    assert "100% of the label sets at a coverage of 0.8 are empty" in said
    assert predict("--quiet").err == ""


def test_a_table_gives_what_its_sequences_give_as_fasta(predict, tmp_path):
    table = tmp_path / "a.csv"
    table.write_text("name,seq,label\nx,ACGTACGT,1\ny,TTGACATT,2\n")
    (tmp_path / "a.fa").write_text(">x\nACGTACGT\n>y\nTTGACATT\n")
    named = predict(table, "--columns sequence=seq,id=name")
    assert cells(named.out) == cells(predict(tmp_path / "a.fa").out)
    wrong = predict(table, status=2)
    assert "needs one column 'sequence', found name, seq, label" in wrong.err
    assert "--columns" in wrong.err
