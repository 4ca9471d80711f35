"""Targets: tables of labels, predictions, genomes and results, as text and as Parquet."""

import io
from pathlib import Path

from fuzz.target import Target
from seqray.core.alphabet import DNA
from seqray.core.errors import ConfigError
from seqray.io.predictions import (
    numeric_column,
    probability_column,
    read_labels,
    read_prediction_table,
    rows_by_id,
)
from seqray.io.sequences import read_labeled_table
from seqray.io.summaries import summarize

LABELED = b"""# a comment
sequence\tlabel\tid\tgroup\tsplit\tcontext
ACGTNN\tpromoter\ta\tg1\ttrain\tE. coli
acgt\t"back""ground"\t"#b"\t\tvalidation\t
"""
CSV = b'\xef\xbb\xbfid,label,sequence\r\na,"x,y",ACGT\r\n# note\r\nb,z,acgt\r\n'
PREDICTIONS = b"""# seqray 0.2.0
# classes: promoter (positive), background
id\tlabel\tp_promoter\tp_background\tflags
a\tpromoter\t0.9\t0.1\t
b\tbackground\t1e-3\t0.999\tdomain
"""
CALLS = b"""# seqray 0.2.0
# scanned: 2 sequences, 300 letters, 562 positions
# calls: 1, 3333.3 per Mb
# threshold: 0.5
# expected false calls: 5 per Mb (95 % interval 1 to 9)
id\tcontig\tstart\tend\tstrand\tsite\tscore\tlabel
promoter_1\tone\t1\t21\t+\t13\t0.8\tpromoter
"""
EVALUATION = b"""# seqray 0.2.0
# input: labels.tsv
subset\tsplit\tsource\tclass\tn\tpositives\tmetric\tvalue\tlow\thigh
all\ttest\tmodel\tpromoter\t9\t5\tmcc\t0.5\t0.4\t0.6
all\ttest\tfloor\tall\t9\t5\tauroc\t0.9\t0.8\t0.95
"""
SHEET = (
    b"genome\tgenes\tsites\tspecies\tweight\tgroup\tinside\theld_out\n"
    b"a.fa\tpredict\ta.tsv\tE. coli\t0.5\tE\t1\tb.bed\n"
)


def read_examples(path: Path) -> None:
    """As training and split read them."""
    for example in read_labeled_table(path, DNA, on_letters=str, keep={"label": []}):
        if not example.sequence or not example.label:
            raise RuntimeError("an example without letters or label")


def read_truth(path: Path) -> None:
    """As evaluation reads labels."""
    read_labels(path, DNA)


def read_predictions(path: Path) -> None:
    """As evaluation reads predictions."""
    table = read_prediction_table(path)
    name = table.positive()
    rows_by_id(table, "id", table.columns.get("id", [])[:2], "labels")
    numeric_column(table, probability_column(name or "promoter"), range(len(table)))


def read_result(path: Path) -> None:
    """As ``seqray summary`` reads tables of other verbs."""
    summarize(path)


def read_genomes(path: Path) -> None:
    """The sheet of genomes."""
    from seqray.training.genomes.sheet import read_sheet

    try:
        read_sheet(path)
    except ConfigError as error:
        raise RuntimeError from error


def parquet_seeds() -> list[bytes]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.table(
        {"id": ["a", "b", "c"], "note": ["x", None, "y"], "p_promoter": [0.9, 0.1, 0.5], "n": [1, 2, 3]}
    )
    seeds = []
    for compression in ("none", "snappy"):
        sink = io.BytesIO()
        noted = table.replace_schema_metadata({"seqray": "classes: promoter (positive), background"})
        pq.write_table(noted, sink, compression=compression)
        seeds.append(sink.getvalue())
    return seeds


WORDS = (
    b"\t", b",", b'"', b"\n# ", b"\r", b"id", b"label", b"sequence", b"split", b"train", b"1e999", b"nan",
)  # fmt: skip
TARGETS = (
    Target("labeled", read_examples, lambda: [LABELED, CSV], tokens=WORDS),
    Target("labels", read_truth, lambda: [LABELED, CSV, b"a\tx\nb\ty\n"], tokens=WORDS),
    Target("predictions", read_predictions, lambda: [CSV, PREDICTIONS], tokens=(*WORDS, b"# classes: ")),
    Target("parquet", read_predictions, parquet_seeds, suffix=".parquet", tokens=(b"PAR1",)),
    Target("summaries", read_result, lambda: [CALLS, EVALUATION], tokens=(*WORDS, b" per Mb", b"# calls: ")),
    Target("sheet", read_genomes, lambda: [SHEET], tokens=(*WORDS, b"predict", b"none")),
)
