"""``seqray evaluate`` in a folder with tables of labels."""

import pytest

from cli.evaluate.tables import CLASSES, TEST, TRAIN, write_table
from tables import fasta, tsv, write


@pytest.fixture
def folder(tmp_path):
    """Tables of labels, and the records of the test set."""
    write_table(tmp_path / "test.tsv", TEST)
    write_table(tmp_path / "train.tsv", TRAIN)
    write_table(tmp_path / "plain.tsv", TEST, "id sequence label")
    write(tmp_path / "labels.tsv", tsv("", [(row[0], row[2]) for row in TEST]))
    for name, labels in (("test", CLASSES), *((label, (label,)) for label in CLASSES)):
        write(tmp_path / f"{name}.fa", fasta({row[0]: row[1] for row in TEST if row[2] in labels}))
    return tmp_path


@pytest.fixture
def evaluate(run, folder, tiny_model_file):
    """Run the verb in the folder, with the tiny model unless another is named, or none."""

    def call(*words, model=tiny_model_file, draws=20, **more):
        given = ["--model", model] if model else []
        return run("evaluate --bootstrap", draws, given, *words, **more)

    return call


@pytest.fixture
def predictions(run, folder, tiny_model_file):
    """Predictions of the tiny model, p.tsv and p.parquet."""
    for name in ("p.tsv", "p.parquet"):
        run("predict test.fa --quiet --model", tiny_model_file, "--out", name)
