"""TSV, JSON and MultiQC say the same."""

import json
import math

import numpy as np
import pytest

from seqray.core.text import format_number
from seqray.evaluation.floor import answers_from_probabilities
from seqray.evaluation.run import evaluate_scores
from seqray.io.summaries import COLUMNS, evaluation_mapping, multiqc_mapping, write_figures, write_json

CLASSES = ("background", "promoter")


@pytest.fixture(scope="module")
def evaluation():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 40)
    p, q = (np.clip(0.4 * truth + 0.6 * rng.random(40), 0, 1) for _ in range(2))
    floor = answers_from_probabilities(
        "floor", "of a test", np.stack((1 - q, q), axis=1), CLASSES, "promoter", 0.5
    )
    return evaluate_scores(
        [CLASSES[k] for k in truth],
        p,
        CLASSES,
        "promoter",
        beside=[floor],
        subsets={"context:one\ttab": np.array([0])},
        draws=30,
        split="test",
    )


def read(path):
    lines = path.read_text().splitlines()
    head = [line for line in lines if line.startswith("#")]
    columns, *rows = [line.split("\t") for line in lines if not line.startswith("#")]
    return head, columns, [dict(zip(columns, row, strict=True)) for row in rows]


def test_a_row_for_each_figure(evaluation, tmp_path):
    write_figures(tmp_path / "m.tsv", evaluation, ["seqray 0"])
    head, columns, rows = read(tmp_path / "m.tsv")
    assert tuple(columns) == COLUMNS
    assert len(rows) == len(evaluation.figures)
    for row, figure in zip(rows, evaluation.figures, strict=True):
        assert row["value"] == ("." if math.isnan(figure.value) else format_number(figure.value))
        assert (row["split"], row["source"], row["metric"]) == ("test", figure.source, figure.metric)
        assert row["n"] == str(figure.n)
    assert rows[-1]["subset"] == "context:one tab"
    assert head[0] == "# seqray 0"
    assert "# source floor: of a test; calls from 0.5 on" in head
    model_only, floor_only, p = evaluation.mcnemar["floor"]
    assert (
        f"# McNemar, model against floor: {model_only} right by the model alone, {floor_only} by the floor "
        f"alone, exact p {format_number(p)}, records taken as independent" in head
    )
    assert any("percentiles of 30 bootstrap draws, seed 0; records drawn one by one" in line for line in head)


def test_json_holds_the_figures_of_the_table(evaluation, tmp_path):
    write_figures(tmp_path / "m.tsv", evaluation, [])
    write_json(tmp_path / "m.json", evaluation_mapping(evaluation, ["line"], {"name": "m"}))
    rows, found = read(tmp_path / "m.tsv")[2], json.loads((tmp_path / "m.json").read_text())
    assert len(found["figures"]) == len(rows)
    for row, figure in zip(rows, found["figures"], strict=True):
        for column in ("value", "low", "high", "p"):
            written = None if row[column] == "." else float(row[column])
            assert figure[column] == written
        assert (row["class"], row["metric"], int(row["n"])) == (
            figure["class"],
            figure["metric"],
            figure["n"],
        )
    assert found["model"] == {"name": "m"}
    assert found["confusion"]["model"] == evaluation.confusion().tolist()
    assert found["sources"][1] == {
        "source": "floor",
        "what": "of a test",
        "threshold": 0.5,
        "probabilities": True,
    }
    assert found["provenance"] == ["line"]


def test_multiqc_gets_a_table_of_one_sample(evaluation, tmp_path):
    """The keys are those of MultiQC's custom content; each column of the data has a header."""
    found = multiqc_mapping(evaluation, "sample 1", "tiny")
    assert {"id", "section_name", "description", "plot_type", "pconfig", "headers", "data"} == set(found)
    assert found["plot_type"] == "table"
    assert found["pconfig"]["id"] != found["id"]
    [(sample, row)] = found["data"].items()
    assert sample == "sample 1"
    assert set(row) <= set(found["headers"])
    assert row["mcc"] == float(format_number(evaluation.figure("mcc").value))
    assert row["floor_auroc"] == float(format_number(evaluation.figure("auroc", "floor").value))
    assert (row["n"], row["model"]) == (40, "tiny")
    assert all("title" in column for column in found["headers"].values())
    write_json(tmp_path / "a_mqc.json", found)
    assert json.loads((tmp_path / "a_mqc.json").read_text()) == found
