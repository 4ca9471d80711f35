"""Threads that share one loaded model give what one thread gives."""

import asyncio
import warnings
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from threading import Event

import joblib
import numpy as np
import pytest
import torch

import seqray
from seqray.core.host import one_thread
from seqray.explanations.targets import randomized_network
from seqray.modelfile.file import save_model

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
        explained, predicted = pool.map(explain, range(4)), pool.map(predict, range(4))
        assert set(explained) == {alone[0]}
        assert set(predicted) == {alone[1]}


def test_a_thread_that_begins_meanwhile_gets_as_many_threads_of_torch_as_the_others():
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        with one_thread(), ThreadPoolExecutor(1) as pool:
            with one_thread():
                assert torch.get_num_threads() == 1
            assert torch.get_num_threads() == 1

            def inside():
                with one_thread():
                    return torch.get_num_threads()

            assert pool.submit(inside).result() == 1
            assert pool.submit(torch.get_num_threads).result() == 3
        assert torch.get_num_threads() == 3
        with ThreadPoolExecutor(1) as pool:
            assert pool.submit(torch.get_num_threads).result() == 3
    finally:
        torch.set_num_threads(before)


def test_tasks_of_asyncio_and_jobs_of_joblib_give_what_one_call_gives():
    model = seqray.load_model("ecoli-promoter")

    def predict(_: int) -> str:
        return seqray.predict(model, RECORDS).to_csv()

    async def together() -> list[str]:
        return await asyncio.gather(*(asyncio.to_thread(predict, i) for i in range(4)))

    expected = [predict(0)] * 4
    assert asyncio.run(together()) == expected
    assert joblib.Parallel(2, backend="threading")(joblib.delayed(predict)(i) for i in range(4)) == expected


@pytest.mark.parametrize("beside", ["load", "randomize"])
def test_a_fit_in_a_thread_is_that_of_no_other_threads(beside):
    """Training draws by the generator of the process, weights that others make or load do not."""
    X = ["".join(row) for row in np.random.default_rng(0).choice(list("ACGT"), (200, 40))]
    model, done = seqray.load_model("ecoli-promoter"), Event()

    def fit() -> list[list[float]]:
        classifier = seqray.SequenceClassifier(d_model=16, heads=2, layers=1, epochs=2, members=1)
        return classifier.fit(X, ["a", "b"] * 100).predict_proba(X[:3]).tolist()

    def others() -> None:
        while not done.is_set():
            seqray.load_model("ecoli-promoter") if beside == "load" else randomized_network(model)

    alone, before = fit(), torch.get_rng_state()
    with ThreadPoolExecutor(2) as pool:
        pool.submit(others)
        fitted = pool.submit(fit)
        fitted.add_done_callback(lambda _: done.set())
        assert fitted.result() == alone
    assert torch.equal(torch.get_rng_state(), before)


def test_threads_share_models_on_encoders_of_hugging_face(on_backbone, tmp_path, capfd):
    """Results are those of one thread, also where each loads the encoder, which stays silent."""
    model, path = on_backbone("kmer"), tmp_path / "m.safetensors"
    save_model(path, model.networks, model.card)
    given = ["ACGTACGTACGTACCNGGTT", "TTGACATATAATGCCCGTAC"]
    works = [
        lambda: seqray.predict(model, given).to_csv(),
        lambda: seqray.predict(seqray.load_model(path), given).to_csv(),
        lambda: seqray.explain(model, given, method="grad-rollout", shuffles=0).to_csv(),
        lambda: seqray.explain(model, given, method="integrated-gradients", shuffles=0).to_csv(),
    ]
    alone = [work() for work in works]
    assert alone[0] == alone[1]
    capfd.readouterr()
    for threads in (2, 4):
        with ThreadPoolExecutor(threads) as pool:
            assert list(pool.map(lambda work: work(), works * 4)) == alone * 4
    assert capfd.readouterr() == ("", "")


def test_threads_that_read_cut_off_genbank_files_all_refuse_them(tmp_path):
    """Biopython only warns of them, and filters of warnings are those of the process."""
    whole = RECORDS.with_name("stretch.gb").read_text()
    cut = tmp_path / "cut.gb"
    cut.write_text(whole[:-200])
    filters = list(warnings.filters)

    def read(number: int) -> str:
        try:
            return str(len(list(seqray.read_genbank(cut if number % 2 else RECORDS.with_name("stretch.gb")))))
        except seqray.InputError:
            return "refused"

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(read, range(16))) == ["1", "refused"] * 8
    assert warnings.filters == filters


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
