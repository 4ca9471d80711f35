"""Labeled sequences that the tests evaluate, and the figures that a table holds."""

from __future__ import annotations

import gzip

import numpy as np

from seqray.core.records import SequenceRecord
from seqray.inference.sequences import predict_records

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
HEAD = ("id", "sequence", "label", "group", "context")
TRUTH = np.array([row[2] == "promoter" for row in TEST])


def write_table(path, rows, columns=HEAD):
    lines = ["\t".join(columns), *("\t".join(row[HEAD.index(c)] for c in columns) for row in rows)]
    path.write_text("\n".join(lines) + "\n")
    return path


def figures(path):
    data = path.read_bytes()
    text = (gzip.decompress(data) if str(path).endswith(".gz") else data).decode()
    columns, *rows = [line.split("\t") for line in text.splitlines() if not line.startswith("#")]
    found = [dict(zip(columns, row, strict=True)) for row in rows]
    return {(row["subset"], row["source"], row["class"], row["metric"]): row for row in found}


def value(found, metric, source="model", subset="all", label="promoter"):
    return float(found[subset, source, label, metric]["value"])


def probabilities(tiny_model):
    records = [SequenceRecord(row[0], row[1]) for row in TEST]
    return np.array([p.probabilities[0] for p in predict_records(tiny_model, records)])
