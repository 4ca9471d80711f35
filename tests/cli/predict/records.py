"""Records that the tests of ``seqray predict`` read, and rows that it writes."""

from __future__ import annotations

import numpy as np

from seqray.core.records import SequenceRecord

RNG = np.random.default_rng(9)
RECORDS = [
    SequenceRecord(f"r{i}", "".join(RNG.choice(list("ACGT"), 20 if i % 3 else int(RNG.integers(5, 20)))))
    for i in range(30)
]


def fasta(records=RECORDS) -> str:
    return "".join(f">{r.id} text\n{r.sequence}\n" for r in records)


def rows(text: str) -> list[list[str]]:
    return [line.split("\t") for line in text.splitlines() if not line.startswith("#")]
