"""How each verb ends where the address space is limited, as ``ulimit -v`` and grid engines do.

    python benchmarks/limits.py --out benchmarks/results/limits.tsv

Runs each verb on the example with one and with two threads under limits from 300 MB to 2 GB. A verb may end
with 0, or with 2 and one line that names the limit or the memory; it may not crash, wait, or leave part of an
output. Ends with 1 where a run does something else.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from machine import describe, script_parser

EXAMPLE = Path(__file__).resolve().parents[1] / "data/example"
LIMITS = (300, 600, 700, 800, 850, 900, 1000, 1200, 1500, 2000)
SECONDS = 60
VERBS = {
    "models": "models",
    "predict": f"predict {EXAMPLE}/promoters.fa --model ecoli-promoter --out OUT.tsv",
    "predict, onnx": f"predict {EXAMPLE}/promoters.fa --model ecoli-promoter --engine onnx --out OUT.tsv",
    "scan": f"scan {EXAMPLE}/stretch.gb --model bacteria-genome --out OUT.gff3",
    "explain": f"explain {EXAMPLE}/promoters.fa --model ecoli-promoter --out OUT.tsv",
    "negatives": f"negatives {EXAMPLE}/promoters.fa --recipe shuffle --out OUT.tsv",
    "audit": "audit TABLE --out OUT.tsv",
    "split": "split --train TABLE --out OUT.tsv",
    "evaluate": "evaluate --model ecoli-promoter --test TABLE --out OUT.tsv",
    "train": "train --train TABLE --set trainer.max_epochs=1 --members 1 --out OUT.safetensors",
}
COLUMNS = ("verb", "threads", "limit_mb", "status", "seconds", "last_line")


def limited(words: list[str], megabytes: int) -> tuple[int, float, str]:
    """Run seqray under the limit; its status (-1 where it had to be killed), seconds and last line."""
    size = megabytes * 1_000_000
    start = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "seqray", *words],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (size, size)),
    )
    try:
        _, errors = process.communicate(timeout=SECONDS)
        status = process.returncode
    except subprocess.TimeoutExpired:
        process.kill()
        _, errors = process.communicate()
        status = -1
    return status, time.perf_counter() - start, errors.strip().rpartition("\n")[2]


def main() -> int:
    """Walk the verbs, threads and limits."""
    parser = script_parser(__doc__)
    parser.add_argument("--out", type=Path, required=True, help="the table")
    parser.add_argument("--only", nargs="*", default=list(VERBS), help="these verbs (default: all)")
    args = parser.parse_args()
    wrong, rows = 0, []
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "table.tsv"
        make = f"negatives {EXAMPLE}/promoters.fa --recipe shuffle --ratio 4 --out {table}"
        subprocess.run([sys.executable, "-m", "seqray", *make.split()], check=True, capture_output=True)
        for verb in args.only:
            for threads in (1, 2):
                for limit in LIMITS:
                    words = VERBS[verb].replace("TABLE", str(table)).replace("OUT", f"{folder}/out").split()
                    if verb not in ("models", "negatives", "audit", "split"):
                        words += ["--threads", str(threads)]
                    elif threads > 1:
                        continue
                    status, seconds, line = limited(words, limit)
                    one_line = status == 2 and line.startswith("seqray: error: ")
                    wrong += status != 0 and not one_line
                    rows.append((verb, threads, limit, status, f"{seconds:.1f}", line if status else "."))
                    print(*rows[-1], sep="\t", flush=True)
    head = [*(f"# {line}" for line in describe(sys.argv)), "\t".join(COLUMNS)]
    args.out.write_text("\n".join([*head, *("\t".join(map(str, row)) for row in rows)]) + "\n")
    print(f"{wrong} of {len(rows)} runs ended in another way than 0 or one line and 2")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
