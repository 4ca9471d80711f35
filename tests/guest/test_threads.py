"""Threads that share one loaded model give what one thread gives."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

import seqray

RECORDS = Path(__file__).parents[2] / "data" / "example" / "promoters.fa"


@pytest.mark.parametrize("method", ["rollout", "grad-rollout", "integrated-gradients"])
def test_threads_that_explain_and_predict_do_not_disturb_each_other(method):
    model = seqray.load_model("ecoli-promoter")
    records = list(seqray.read_fasta(RECORDS, model.alphabet))[:2]

    def explain(_: int) -> str:
        return seqray.explain(model, records, method=method, shuffles=0).to_csv()

    def predict(_: int) -> str:
        return seqray.predict(model, records).to_csv()

    alone = explain(0), predict(0)
    with ThreadPoolExecutor(4) as pool:
        explained, predicted = pool.map(explain, range(6)), pool.map(predict, range(6))
        assert set(explained) == {alone[0]}
        assert set(predicted) == {alone[1]}


@pytest.mark.parametrize("kind", ["locator", "alignments", "names"])
def test_threads_share_models_of_every_kind(tmp_path, kind):
    if kind == "alignments":
        model = seqray.load_model("rna-family-type")
        rows = {"a": "ACGUACGUACGGCA", "b": "ACGUAC-UACGGCA", "c": "AGGUACGUACGGCU"}
        path = tmp_path / "one.fa"
        path.write_text("".join(f">{name}\n{row}\n" for name, row in rows.items()))
        works = [
            lambda: seqray.predict(model, path).to_csv(),
            lambda: seqray.explain(model, path, method="rollout").to_csv(),
        ]
    elif kind == "locator":
        model = seqray.load_model("bacteria-genome")
        given = list(seqray.read_fasta(RECORDS.with_name("regions.fa"), model.alphabet))[:1]
        calls = seqray.scan(model, given, genes=None)
        explain = partial(seqray.explain, model, given, "grad-rollout", calls=calls, genes=None, shuffles=0)
        works = [lambda: seqray.scan(model, given, genes=None).to_csv(), lambda: explain().to_csv()]
    else:  # each thread loads its own
        works = [lambda: seqray.predict("antimicrobial-peptide", ["GIGKFLHSAKKFGKAFVGEIMNS"]).to_csv()]
    alone = [work() for work in works]
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda i: works[i % len(works)](), range(6)))
    assert results == [alone[i % len(works)] for i in range(6)]
