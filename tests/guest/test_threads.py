"""Threads that share one loaded model give what one thread gives."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import seqray

RECORDS = Path(__file__).parents[2] / "data" / "example" / "promoters.fa"


@pytest.mark.parametrize("method", ["rollout", "grad-rollout", "integrated-gradients"])
def test_threads_that_explain_and_predict_do_not_disturb_each_other(method):
    model = seqray.load_model("ecoli-promoter")
    records = list(seqray.read_fasta(RECORDS, model.alphabet))[:4]

    def explain(_: int) -> str:
        return seqray.explain(model, records, method=method).to_csv()

    def predict(_: int) -> str:
        return seqray.predict(model, records).to_csv()

    alone = explain(0), predict(0)
    with ThreadPoolExecutor(4) as pool:
        explained, predicted = pool.map(explain, range(6)), pool.map(predict, range(6))
        assert set(explained) == {alone[0]}
        assert set(predicted) == {alone[1]}
