"""Labeled sequences that the tests evaluate, and the figures that a table holds."""

import gzip

import numpy as np

from seqray.inference.sequences import predict_records
from tables import record, table, tsv, write

CLASSES = ("promoter", "background")


def made_rows(n, seed, prefix):
    """Id, sequence, label, group and context; a planted box makes promoters."""
    rng = np.random.default_rng(seed)
    rows = []
    for i in range(n):
        letters = "".join(rng.choice(list("ACGT"), 20))
        label = CLASSES[int(rng.random() < 0.6)]
        if label == "promoter":
            letters = letters[:6] + "TATAAT" + letters[12:]
        rows.append((f"{prefix}{i}", letters, label, f"g{i // 2}", f"species {i % 2}"))
    return rows


TEST, TRAIN = made_rows(60, 1, "t"), made_rows(80, 2, "x")
HEAD = "id sequence label group context"
TRUTH = np.array([row[2] == "promoter" for row in TEST])


def write_table(path, rows, columns=HEAD):
    places = [HEAD.split().index(column) for column in columns.split()]
    return write(path, tsv(columns, [[row[i] for i in places] for row in rows]))


def figures(path):
    data = path.read_bytes()
    text = (gzip.decompress(data) if str(path).endswith(".gz") else data).decode()
    return {(row["subset"], row["source"], row["class"], row["metric"]): row for row in table(text)}


def value(found, metric, source="model", subset="all", label="promoter"):
    return float(found[subset, source, label, metric]["value"])


def probabilities(model):
    records = [record(row[1], row[0]) for row in TEST]
    return np.array([p.probabilities[0] for p in predict_records(model, records)])


def other_strand(rows):
    """The same rows with the letters of the other strand."""
    turned = str.maketrans("ACGT", "TGCA")
    return [(row[0], row[1].translate(turned)[::-1], *row[2:]) for row in rows]
