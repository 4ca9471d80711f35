"""``seqray predict`` from file to file, with the tiny random model."""

from __future__ import annotations

import gzip
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pyarrow.parquet as pq
import pytest

from cli.predict.records import RECORDS, fasta, rows
from seqray.cli.main import main
from seqray.core.text import format_number
from seqray.core.version import __version__
from seqray.inference.sequences import predict_records
from seqray.modelfile.file import save_model


def test_longer_sequences_are_cut_and_counted_where_asked(predict, tiny_model, tmp_path):
    model = tmp_path / "anywhere.safetensors"
    save_model(model, tiny_model.networks, replace(tiny_model.card, site=None))
    path = tmp_path / "long.fa"
    long = "ACGTACGTACAAAAATTTTTGGGGGCCCCC"
    path.write_text(f">a\n{long}\n>b\n{long[:20]}\n>c\n{long[:10]}{long[-10:]}\n>d\n{long[:20]}\n")
    status, out, err = predict(path, "--truncate", "ends", model=model)
    assert status == 0
    table = {row[0]: row for row in rows(out)[1:]}
    assert table["a"][1] == "30"
    assert table["a"][2:-1] == table["c"][2:-1]
    assert "truncated" in table["a"][-1]
    assert "truncated" not in table["c"][-1]
    assert "1 of 4 sequences are longer than 20 letters: their first 10 and last 10 are read" in err
    status, out, _ = predict(path, "--truncate", "start", model=model)
    table = {row[0]: row for row in rows(out)[1:]}
    assert table["a"][2:-1] == table["b"][2:-1]
    status, _, err = predict(path, model=model)
    assert status == 2
    assert "'a'" in err
    assert "--truncate ends" in err


# --- several files --------------------------------------------------------------------------------


def test_several_files_are_read_as_if_they_were_one(predict, source, tmp_path):
    whole = rows(predict(source)[1])
    parts = [tmp_path / "a.fa", tmp_path / "b.fa.gz", tmp_path / "c.fa"]
    for part, path in zip((RECORDS[:7], RECORDS[7:8], RECORDS[8:]), parts, strict=True):
        data = fasta(part).encode()
        path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    status, out, err = predict(*parts)
    assert status == 0
    assert [row[:3] for row in rows(out)] == [row[:3] for row in whole]
    ours, theirs = (np.array([row[3:5] for row in table[1:]], dtype=float) for table in (rows(out), whole))
    np.testing.assert_allclose(ours, theirs, atol=1e-6)
    assert f"{len(RECORDS)} records" in err


def test_ids_are_told_apart_between_files(predict, tmp_path):
    first, second = tmp_path / "a.fa", tmp_path / "b.fa"
    first.write_text(">x\nACGTACGTAC\n>y\nACGTACGTAC\n")
    second.write_text(">y\nACGTACGTAC\n")
    status, _, err = predict(first, second)
    assert status == 2
    assert f"{second}: record 'y': the id occurs more than once" in err
    assert [row[0] for row in rows(predict(first, second, "--duplicates", "rename")[1])[1:]] == [
        "x",
        "y",
        "y_2",
    ]
    assert [row[0] for row in rows(predict(first, second, "--duplicates", "keep")[1])[1:]] == ["x", "y", "y"]


def test_an_empty_file_among_several_is_an_error_unless_allowed(predict, source, tmp_path):
    empty, out = tmp_path / "empty.fa", tmp_path / "p.tsv"
    empty.write_text("")
    status, _, err = predict(source, empty, "--out", out)
    assert status == 2
    assert f"{empty}: " in err
    assert "--allow-empty skips it" in err
    assert not out.exists()
    assert predict(source, empty, "--out", out, "--allow-empty")[0] == 0
    assert len(rows(out.read_text())) == 1 + len(RECORDS)


def test_standard_input_is_given_once_and_no_input_is_overwritten(predict, source, tmp_path):
    other = tmp_path / "other.fa"
    other.write_text(fasta())
    assert "standard input: is named twice as an input" in predict("-", source, "-")[2]
    assert "is an input and would be overwritten" in predict(other, source, "--skipped", source)[2]
    assert source.read_text() == fasta()


# --- the table ------------------------------------------------------------------------------------


def test_rows_are_what_the_library_says_in_the_order_of_the_file(predict, source, tiny_model):
    status, out, err = predict(source)
    header, *table = rows(out)
    assert status == 0
    assert header == ["id", "length", "label", "p_promoter", "p_background", "flags"]
    expected = [
        [p.id, str(p.length), p.label, *map(format_number, p.probabilities), ",".join(p.flags) or "."]
        for p in predict_records(tiny_model, RECORDS)
    ]
    assert table == expected
    assert {row[2] for row in table} == {"promoter", "background"}
    called = sum(row[2] == "promoter" for row in table)
    assert f"\n30 records, {called} promoter, 0 skipped, " in err


def test_the_header_tells_how_the_table_was_made(predict, source, tiny_model, tiny_model_file, tmp_path):
    out = predict(source, "--threads", "1")[1]
    assert [line for line in out.splitlines() if line.startswith("#")] == [
        f"# seqray {__version__}",
        "# command: seqray predict in.fa --threads 1 --model tiny.safetensors",
        f"# model: tiny sha256:{tiny_model.sha256}",
        "# alphabet: dna ACGT, case folded, U read as T; RYSWKMBDHVN read as unknown",
        "# classes: promoter (positive), background",
        "# label: 'promoter' where its probability is at least 0.5 (the model's)",
        "# prior: 0.2 (of the calibration data)",
        "# columns: p_<class> is a calibrated probability; flags are reasons for caution, '.' for none",
    ]
    assert str(tmp_path) not in out
    assert str(tiny_model_file.parent) not in out


def test_all_formats_say_the_same(predict, source, tmp_path):
    table = rows(predict(source)[1])
    for name in ("p.tsv", "p.tsv.gz", "p.parquet"):
        status, out, _ = predict(source, "--out", tmp_path / name)
        assert (status, out) == (0, "")
    assert rows((tmp_path / "p.tsv").read_text()) == table
    assert rows(gzip.decompress((tmp_path / "p.tsv.gz").read_bytes()).decode()) == table
    parquet = pq.read_table(tmp_path / "p.parquet")
    assert parquet.column_names == table[0]
    assert [[str(row["id"]), format_number(row["p_promoter"])] for row in parquet.to_pylist()] == [
        [row[0], row[3]] for row in table[1:]
    ]


@pytest.mark.parametrize("name", ["p.tsv", "p.tsv.gz", "p.parquet"])
def test_the_same_run_gives_the_same_bytes(predict, source, tmp_path, name):
    contents = []
    for _ in range(2):
        predict(source, "-o", tmp_path / name)
        contents.append((tmp_path / name).read_bytes())
        (tmp_path / name).unlink()
    assert contents[0] == contents[1]


def test_the_same_letters_in_other_clothes_give_the_same_rows(predict, source, tmp_path):
    expected = rows(predict(source)[1])
    wrapped = "\r\n".join(
        line if line.startswith(">") else "\r\n".join([line[:7].lower(), line[7:].replace("T", "u")])
        for line in fasta().splitlines()
    )
    variants = {
        "crlf.fa": f"; a comment\r\n\r\n{wrapped}\r\n".encode(),
        "packed.fa": gzip.compress(fasta().encode()),
    }
    for name, content in variants.items():
        (tmp_path / name).write_bytes(content)
        assert rows(predict(tmp_path / name)[1]) == expected


def test_a_pipe_works_as_input_and_output(tiny_model_file, predict, source):
    expected = rows(predict(source)[1])
    done = subprocess.run(
        [sys.executable, "-m", "seqray", "predict", "-", "--model", str(tiny_model_file)],
        input=gzip.compress(fasta().encode()),
        capture_output=True,
        check=True,
    )
    assert rows(done.stdout.decode()) == expected
    told = [line for line in done.stderr.splitlines() if b"caution" not in line]
    assert len(told) == 2  # summary and resources: no progress without a terminal


# --- options --------------------------------------------------------------------------------------


def test_threshold_and_prior(predict, source):
    plain = [float(row[3]) for row in rows(predict(source)[1])[1:]]
    middle = sum(sorted(plain)[14:16]) / 2
    out = predict(source, "--threshold", middle)[1]
    assert [row[2] == "promoter" for row in rows(out)[1:]] == [p >= middle for p in plain]
    assert (
        f"# label: 'promoter' where its probability is at least {middle:.6g} (as asked)" in out.splitlines()
    )
    out = predict(source, "--prior", "0.01")[1]
    assert "# prior: 0.01 (as asked; 0.2 in the calibration data)" in out.splitlines()
    factor = (0.01 / 0.99) / (0.2 / 0.8)
    for p, row in zip(plain, rows(out)[1:], strict=True):
        odds = p / (1 - p) * factor
        assert float(row[3]) == pytest.approx(odds / (1 + odds), rel=1e-4)


def test_batch_size_and_dtype(predict, source):
    plain = [float(row[3]) for row in rows(predict(source)[1])[1:]]
    by_three = [float(row[3]) for row in rows(predict(source, "--batch-size", "3")[1])[1:]]
    rough = [float(row[3]) for row in rows(predict(source, "--dtype", "bf16")[1])[1:]]
    np.testing.assert_allclose(by_three, plain, atol=2e-5)
    assert 0 < np.abs(np.array(rough) - plain).max() < 0.05


def test_skipped_records_are_told_and_written(predict, tmp_path):
    letters = "".join(f">s{i}\n" for i in range(5))
    (tmp_path / "in.fa").write_text(f">a\n{'ACGT' * 5}\n{letters}>b\n{'GATC' * 5}\n")
    status, out, err = predict(tmp_path / "in.fa", "--skipped", tmp_path / "s.tsv")
    assert status == 0
    assert [row[0] for row in rows(out)[1:]] == ["a", "b"]
    assert rows((tmp_path / "s.tsv").read_text()) == [
        ["id", "reason"],
        *([f"s{i}", "empty sequence"] for i in range(5)),
    ]
    *told, summary, _ = err.splitlines()
    assert told == [
        *(f"seqray: skipped record 's{i}': empty sequence" for i in range(3)),
        "seqray: skipped 2 more",
    ]
    assert "2 records" in summary
    assert "5 skipped" in summary


def test_a_file_of_records_shorter_than_all_of_training_is_told(predict, tmp_path):
    window, short = "ACGTTGCAACGTTGCAACGT", "ACGTTGCAAC"
    (tmp_path / "in.fa").write_text("".join(f">r{i}\n{short if i < 2 else window}\n" for i in range(20)))
    _, out, err = predict(tmp_path / "in.fa")
    assert (
        "seqray: caution: 2 of 20 records (10%) are shorter than any sequence that the model was trained on "
        "(20 letters or more)" in err
    )
    assert sum("short" in row[-1] for row in rows(out)) == 2
    (tmp_path / "in.fa").write_text("".join(f">r{i}\n{window if i else short}\n" for i in range(20)))
    assert "shorter" not in predict(tmp_path / "in.fa")[2]  # one in 20, which its flag tells


def test_of_many_classes_each_is_counted(alignment_model_file, tmp_path, capfd):
    (tmp_path / "x.fa").write_text(">a\nACGU-ACGUA\n>b\nACGUUACGUA\n")
    assert main(["predict", str(tmp_path / "x.fa"), "--model", str(alignment_model_file)]) == 0
    out, err = capfd.readouterr()
    [[*_], [_, _, label, *_]] = rows(out)
    counts = ", ".join(f"{int(label == name)} {name}" for name in ("tRNA", "miRNA", "riboswitch"))
    assert f"1 record, {counts}, 0 skipped" in err


@pytest.mark.parametrize("kind", ["alignment", "sequence"])
def test_proteins_given_to_a_model_of_nucleotides_name_what_ships(
    kind, tiny_model_file, alignment_model_file, tmp_path, capfd
):
    model = tiny_model_file if kind == "sequence" else alignment_model_file
    (tmp_path / "x.fa").write_text(">a\nMKTLLVAGAVLLLSAWPAFA\n>b\nMKTLIVAGAVLLFSAWPAFA\n")
    assert main(["predict", str(tmp_path / "x.fa"), "--model", str(model)]) == 2
    err = capfd.readouterr().err
    assert "looks like protein, but " in err
    assert "or choose a protein model; shipped for protein: antimicrobial-peptide (reads sequences)" in err


def test_strict_makes_a_skipped_record_an_error(predict, tmp_path):
    (tmp_path / "in.fa").write_text(">a\nACGT\n>s\n>b\nACGT\n")
    status, _, err = predict(tmp_path / "in.fa", "--strict", "-o", tmp_path / "p.tsv")
    assert status == 2
    assert "record 's'" in err
    assert not (tmp_path / "p.tsv").exists()


@pytest.mark.parametrize("verb", ["predict", "explain"])
def test_a_file_of_skipped_records_only_is_an_error_unless_allowed(verb, tiny_model_file, tmp_path, capfd):
    (tmp_path / "in.fa").write_text(">a\n")
    out = tmp_path / "out.tsv"
    words = [verb, str(tmp_path / "in.fa"), "--model", str(tiny_model_file), "-o", str(out)]
    assert main(words) == 2
    assert "in.fa: the only record was skipped, 'a': empty sequence; --allow-empty" in capfd.readouterr()[1]
    assert not out.exists()
    assert main([*words, "--allow-empty"]) == 0
    assert len(rows(out.read_text())) == 1


@pytest.mark.parametrize("content", [b"", b"; only a comment\n", gzip.compress(b"", mtime=0)])
def test_an_empty_file_is_an_empty_table_on_request(predict, tmp_path, content):
    (tmp_path / "in.fa").write_bytes(content)
    status, out, err = predict(tmp_path / "in.fa", "--allow-empty")
    assert status == 0
    assert rows(out) == [["id", "length", "label", "p_promoter", "p_background", "flags"]]
    assert err.startswith("0 records, 0 promoter, 0 skipped")


def test_allow_empty_forgives_nothing_else(predict, tmp_path):
    (tmp_path / "in.fa").write_text(">a\nAC!T\n")
    assert predict(tmp_path / "in.fa", "--allow-empty")[0] == 2


def test_duplicates_can_be_renamed_or_kept(predict, tmp_path):
    (tmp_path / "in.fa").write_text(">a\nACGT\n>a\nACGT\n")
    for policy, ids in (("rename", ["a", "a_2"]), ("keep", ["a", "a"])):
        out = predict(tmp_path / "in.fa", "--duplicates", policy)[1]
        assert [row[0] for row in rows(out)[1:]] == ids


def test_quiet_says_nothing(predict, tmp_path):
    (tmp_path / "in.fa").write_text(">a\nACGT\n>s\n")
    status, out, err = predict(tmp_path / "in.fa", "--quiet")
    assert (status, err) == (0, "")
    assert len(rows(out)) == 2


def test_an_old_table_is_replaced_and_a_failed_run_leaves_it(predict, source, tmp_path):
    path = tmp_path / "p.tsv"
    path.write_text("old")
    (tmp_path / "bad.fa").write_text(fasta() + ">x\n!!\n")
    assert predict(tmp_path / "bad.fa", "-o", path)[0] == 2
    assert path.read_text() == "old"
    assert predict(source, "-o", path)[0] == 0
    assert path.read_text().startswith("# seqray")
