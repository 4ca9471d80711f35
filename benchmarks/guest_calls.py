"""Do calls from several threads give what one thread gives?

    python benchmarks/guest_calls.py --calls 1000 --threads 4

Each call is one of `made_calls`, drawn by chance: predictions, explanations by four methods and scans, of
random sequences, with models that the threads share or load by name. First each is done alone. Then the
threads do ``--calls`` of them, and every result is compared with the first one to the last digit. A call that
takes longer than ``--wait`` seconds counts as hanging.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, TimeoutError as Late
from functools import partial

import numpy as np
import pandas as pd

import seqray
from machine import describe, script_parser
from seqray.io.tables import write_table

RNG = np.random.default_rng(0)


def letters(count: int, length: int, alphabet: str = "ACGT") -> list[str]:
    """Sequences drawn by chance."""
    return ["".join(RNG.choice(list(alphabet), length)) for _ in range(count)]


def made_calls() -> dict[str, Callable[[], pd.DataFrame]]:
    """Calls by name."""
    windows, peptides = letters(3, 81), letters(3, 30, "ACDEFGHIKLMNPQRSTVWY")
    [genome] = letters(1, 6000)
    windows_model, genome_model = seqray.load_model("ecoli-promoter"), seqray.load_model("ecoli-genome")
    explain = partial(seqray.explain, windows_model, windows, shuffles=0)
    return {
        "predict": partial(seqray.predict, windows_model, windows),
        "predict by name": partial(seqray.predict, "antimicrobial-peptide", peptides),
        **{
            f"explain by {method}": partial(explain, method)
            for method in ("rollout", "value-rollout", "integrated-gradients", "occlusion")
        },
        "scan": partial(seqray.scan, genome_model, genome, genes="none"),
    }


def main(argv: Sequence[str] | None = None) -> int:
    """Compare, and write a row for each kind of call."""
    parser = script_parser(__doc__, "guest_calls.tsv")
    parser.add_argument("--calls", type=int, default=1000)
    parser.add_argument("--threads", type=int, default=4)
    parser.add_argument("--wait", type=float, default=120, help="seconds until a call counts as hanging")
    args = parser.parse_args(argv)
    warnings.simplefilter("ignore")  # cautions of scans without genes
    calls = made_calls()
    alone = {name: call() for name, call in calls.items()}
    drawn = RNG.choice(list(calls), args.calls)
    outcomes = Counter[tuple[str, str]]()
    began = time.monotonic()
    pool = ThreadPoolExecutor(args.threads)
    futures = [(str(name), pool.submit(calls[str(name)])) for name in drawn]
    for name, future in futures:
        try:
            result = future.result(timeout=args.wait)
        except Late:
            outcomes[name, "hanging"] += 1
        except Exception as error:
            outcomes[name, "error"] += 1
            print(f"{name}: {type(error).__name__}: {error}", file=sys.stderr)
        else:
            outcomes[name, "same" if result.equals(alone[name]) else "other"] += 1
    pool.shutdown(wait=False, cancel_futures=True)
    kinds = ("same", "other", "error", "hanging")
    rows = [[name, *(outcomes[name, kind] for kind in kinds)] for name in calls]
    head = [*describe(sys.argv), f"threads: {args.threads}, seconds: {time.monotonic() - began:.0f}"]
    write_table(args.out, ["call", *kinds], rows, head)
    for row in rows:
        print(*row, sep="\t")
    return 0


if __name__ == "__main__":
    sys.exit(main())
