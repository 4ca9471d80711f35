"""``seqray predict --coverage``, and what is said of files that are unlike the training data."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pyarrow.parquet as pq
import pytest

from cli.predict.records import RNG, fasta, rows
from seqray.calibration.conformal import Conformal
from seqray.cli.main import main
from seqray.core.records import SequenceRecord
from seqray.modelfile.file import save_model


@pytest.fixture
def with_scores(tiny_model, tmp_path):
    """The tiny model with held-out scores: 99 of promoter, 19 of background."""
    rng = np.random.default_rng(0)
    own, labels = rng.uniform(0.4, 1, 118), np.repeat([0, 1], [99, 19])
    p = np.where(labels == 0, own, 1 - own)
    table = Conformal.fit(np.stack((p, 1 - p), axis=1), labels, tiny_model.card.classes)
    path = tmp_path / "scores.safetensors"
    save_model(path, tiny_model.networks, replace(tiny_model.card, conformal=table.to_mapping()))
    return path, table


def test_coverage_adds_sets_and_changes_nothing_else(source, with_scores, capfd, tmp_path):
    path, table = with_scores
    words = ["predict", str(source), "--model", str(path), "--threads", "1"]
    assert main(words) == 0
    plain = rows(capfd.readouterr().out)
    assert main([*words, "--coverage", "0.9"]) == 0
    out = capfd.readouterr().out
    assert [row[:-1] for row in rows(out)] == plain
    cutoffs = table.cutoffs(0.9)
    for row in rows(out)[1:]:
        names = [
            n
            for n, p, cut in zip(("promoter", "background"), row[3:5], cutoffs, strict=True)
            if float(p) >= cut
        ]
        assert row[-1] == ("|".join(names) or "-")
    assert {row[-1] for row in rows(out)[1:]} >= {"promoter", "background"}
    [line] = [line for line in out.splitlines() if line.startswith("# coverage")]
    assert line.startswith("# coverage: 0.9 of the records of each class; set holds the classes")
    assert main([*words, "--coverage", "0.9", "-o", str(tmp_path / "p.parquet")]) == 0
    assert pq.read_table(tmp_path / "p.parquet")["set"].to_pylist() == [row[-1] for row in rows(out)[1:]]


def test_the_prior_changes_probabilities_and_no_set(source, with_scores, capfd):
    tables = []
    for prior in ("0.01", "0.9"):
        words = [
            "predict",
            str(source),
            "--model",
            str(with_scores[0]),
            "--coverage",
            "0.8",
            "--prior",
            prior,
        ]
        assert main(words) == 0
        tables.append(rows(capfd.readouterr().out)[1:])
    assert [row[-1] for row in tables[0]] == [row[-1] for row in tables[1]]
    assert [row[3] for row in tables[0]] != [row[3] for row in tables[1]]


def test_coverage_that_cannot_be_had_is_refused(predict, source, with_scores, capfd):
    status, out, err = predict(source, "--coverage", "0.9")
    assert (status, out) == (2, "")
    assert "model 'tiny' holds no held-out scores for coverage; add them with 'seqray calibrate'" in err
    assert main(["predict", str(source), "--model", str(with_scores[0]), "--coverage", "0.96"]) == 2
    err = capfd.readouterr().err
    assert "coverage 0.96 needs 24 held-out examples of each class, and 'background' has 19" in err
    assert "ask for 0.95 or less" in err
    assert predict(source, "--coverage", "1.5")[0] == 2


def test_a_file_of_odd_records_is_told_in_one_line(predict, tmp_path):
    (tmp_path / "odd.fa").write_text("".join(f">a{i}\n{'A' * 20}\n" for i in range(6)) + fasta())
    err = predict(tmp_path / "odd.fa")[2]
    [line] = [line for line in err.splitlines() if "out-of-domain" in line]
    found = re.match(r"seqray: caution: (\d+) of 36 records \((\d+)%\) are out-of-domain", line)
    assert found is not None
    assert 6 <= int(found[1]) <= 10
    assert "out-of-domain" not in predict(tmp_path / "odd.fa", "--quiet")[2]
    (tmp_path / "few.fa").write_text(">a\n" + "A" * 20 + "\n" + fasta())
    assert "are out-of-domain" not in predict(tmp_path / "few.fa")[2]


# --- files unlike the training data ---------------------------------------------------------------

MANY = [SequenceRecord(f"m{i}", "".join(RNG.choice(list("ACGT"), 20))) for i in range(80)]


def with_held_out(model, folder, own, **card):
    """The model with 400 held-out examples of each class, all of which had one probability of their class."""
    p = np.repeat([[own, 1 - own], [1 - own, own]], 400, axis=0)
    table = Conformal.fit(p, np.repeat([0, 1], 400), model.card.classes)
    path = folder / "held.safetensors"
    save_model(path, model.networks, replace(model.card, conformal=table.to_mapping(), **card))
    return str(path)


@pytest.fixture
def many(tmp_path):
    path = tmp_path / "many.fa"
    path.write_text(fasta(MANY))
    return str(path)


def cautions(capfd):
    return [line for line in capfd.readouterr().err.splitlines() if line.startswith("seqray: caution: ")]


def test_a_file_of_empty_sets_is_told(tiny_model, many, tmp_path, capfd):
    """No record reaches the lowest probability that held-out examples had: every set is empty."""
    words = ["predict", many, "--model", with_held_out(tiny_model, tmp_path, 0.999999), "--threads", "1"]
    assert main(words) == 0
    line = cautions(capfd)[0]
    assert line.startswith(
        "seqray: caution: 100% of the label sets at a coverage of 0.9 are empty, and at most 10%"
    )
    assert "promised" not in line
    assert main([*words, "--coverage", "0.8"]) == 0
    line = cautions(capfd)[0]
    assert "at a coverage of 0.8 are empty, and at most 20% should be" in line
    assert line.endswith("; --coverage 0.8 can't be promised for this file")
    assert main([*words, "--quiet"]) == 0
    assert cautions(capfd) == []


def test_a_share_of_calls_far_from_the_prior_is_told(tiny_model, many, tmp_path, capfd):
    """About half of random windows are called, where one in fifty was expected, but by scores of .9 or .1."""
    words = ["predict", many, "--model", with_held_out(tiny_model, tmp_path, 0.9, prevalence=0.02)]
    assert main(words) == 0
    [line] = [line for line in cautions(capfd) if "are called" in line]
    start = r"seqray: caution: at the model's own threshold, \d\d% of the records are called promoter, more "
    assert re.match(start + "than if 2% were", line)
    assert "give --prior" not in line
    assert "its scores are unlike held-out ones and can't tell; label some records" in line
    assert main([*words, "--prior", "0.5"]) == 0
    assert not [line for line in cautions(capfd) if "are called" in line]
    assert main([*words, "--prior", "0.0021"]) == 0  # the calls that are written are others
    [line] = [line for line in cautions(capfd) if "are called" in line]
    assert "at the model's own threshold and without --prior, " in line
    assert "more than if 0.21% were, as --prior says" in line


def test_few_records_are_not_judged(tiny_model, tmp_path, capfd):
    (tmp_path / "few.fa").write_text(fasta(MANY[:49]))
    model = with_held_out(tiny_model, tmp_path, 0.999999, prevalence=0.02)
    assert main(["predict", str(tmp_path / "few.fa"), "--model", model]) == 0
    assert cautions(capfd) == []


def test_damaged_held_out_scores_are_refused_before_any_output(tiny_model, many, tmp_path, capfd):
    damaged = {name: {"n": 3, "rank": [2, 1], "probability": [0.1, 0.2]} for name in tiny_model.card.classes}
    path, out = tmp_path / "damaged.safetensors", tmp_path / "out.tsv"
    save_model(path, tiny_model.networks, replace(tiny_model.card, conformal=damaged))
    assert main(["predict", many, "--model", str(path), "--out", str(out)]) == 2
    assert "conformal" in capfd.readouterr().err
    assert not out.exists()
