"""Pools of processes that begin after seqray has computed in their parent: results, and no wait."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PROGRAM = """
import multiprocessing, warnings
import joblib
import numpy as np
import seqray

warnings.simplefilter("ignore")
RECORDS = list(seqray.read_fasta("data/example/promoters.fa"))[:4]
rng = np.random.default_rng(0)
SEQUENCES = ["".join(rng.choice(list("ACGT"), 40)) for _ in range(40)]
CLASSIFIER = seqray.SequenceClassifier(d_model=16, heads=2, layers=1, epochs=1, members=1)
MODELS = {"explain": "ecoli-promoter", "predict": "ecoli-promoter", "scan": "bacteria-genome", "fit": None}
WORK = {
    "predict": lambda model: seqray.predict(model, RECORDS).iloc[:, 1:].to_csv(),
    "explain": lambda model: seqray.explain(model, RECORDS, method="grad-rollout", shuffles=0).to_csv(),
    "scan": lambda model: seqray.scan(model, RECORDS, genes=None).to_csv(),
    "fit": lambda _: str(CLASSIFIER.fit(SEQUENCES, ["a", "b"] * 20).predict(SEQUENCES)),
}


def work(verb):
    return WORK[verb](MODELS[verb])


if __name__ == "__main__":
    names = dict(MODELS)
    MODELS |= {verb: seqray.load_model(name) for verb, name in names.items() if name}  # which forks share
    own = {verb: work(verb) for verb in WORK}
    for method in ("fork", "spawn", "forkserver"):
        verbs = [*WORK] if method == "fork" else ["predict"]
        pool = multiprocessing.get_context(method).Pool(2 if method == "fork" else 1)
        others = pool.map_async(work, verbs * 2, chunksize=1).get(timeout=150)
        pool.terminate()
        assert others == [own[verb] for verb in verbs * 2], (method, others)
    others = joblib.Parallel(2, timeout=150)(joblib.delayed(WORK["fit"])(None) for _ in range(2))
    assert others == [own["fit"]] * 2, ("loky", others)
"""


def test_pools_give_what_their_parent_gives(tmp_path):
    """Forks of a process that has computed, which share its models, and processes that begin anew."""
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    done = subprocess.run(
        [sys.executable, program],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=600,
        env=os.environ | {"OMP_NUM_THREADS": "2"},
    )
    assert done.returncode == 0, done.stderr[-2000:]


FORK_IN_A_FIT = """
import os, sys, threading, traceback, warnings
import numpy as np
import seqray
from seqray.api import estimator

warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
X, y = ["".join(rng.choice(list("ACGT"), 40)) for _ in range(40)], ["a", "b"] * 20
inside, done = threading.Event(), threading.Event()
train = estimator.train


def waiting(*given, **named):
    inside.set()
    assert done.wait(200)
    return train(*given, **named)


def fit():
    return seqray.SequenceClassifier(d_model=16, heads=2, layers=1, epochs=1, members=1).fit(X, y)


fitted = []
estimator.train = waiting
thread = threading.Thread(target=lambda: fitted.append(fit()))
thread.start()
assert inside.wait(100)
child = os.fork()
if not child:
    estimator.train = train
    try:
        fit()
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)
_, status = os.waitpid(child, 0)
other = os.fork()
if not other:
    sys.exit(3)  # as a program ends, which calls what was registered for its end
assert os.waitstatus_to_exitcode(os.waitpid(other, 0)[1]) == 3
done.set()
thread.join()
assert fitted, "the fit of the parent failed"
sys.exit(os.waitstatus_to_exitcode(status))
"""


def test_a_fork_while_another_thread_fits_can_fit_itself_and_takes_nothing_from_it():
    done = subprocess.run([sys.executable, "-c", FORK_IN_A_FIT], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
