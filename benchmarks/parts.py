"""Do predictions of a file in parts have the bytes of the whole, and what would it cost if they had?

    python benchmarks/parts.py

Random records of one length (the model's window), or of many, are predicted as a whole, in four parts, in
files of 37 records, and 60 of them alone. A row counts the records of which a digit of six differs from the
whole, and states the largest difference of a probability. The way "own shapes" is what was tried to make
them equal: batches of one length, without padding, of 512 tokens or more. Its time is that of the whole.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import torch

from machine import describe, script_parser, take_turns
from seqray.core.arrays import Codes, Floats, Ints
from seqray.inference import sequences
from seqray.io.tables import write_table
from seqray.modelfile.file import load_model
from seqray.modelfile.model import TrainedModel

COLUMNS = ("model", "lengths", "way", "parts", "records", "differ", "largest_difference", "seconds")
MODELS = ("ecoli-promoter", "antimicrobial-peptide", "human-core-promoter", "human-promoter-300")
LEAST_TOKENS = 512
Score = Callable[[TrainedModel, Sequence[Codes]], Floats]


def shipped(model: TrainedModel, codes: Sequence[Codes]) -> Floats:
    """Probabilities (N, K) as ``seqray predict`` has them."""
    return sequences.score_ragged(model, codes, "auto", "fp32")


def own_shapes(model: TrainedModel, codes: Sequence[Codes]) -> Floats:
    """The same by batches of one length."""
    tokens = [model.tokenizer.encode_codes(one) for one in codes]
    lengths = np.array([len(one) for one in tokens])
    size = {n: sequences.micro_batch(model.card.model, n - 1) for n in set(lengths.tolist())}
    parts = [
        rows[start : start + size[n]]
        for n in size
        for rows in [np.flatnonzero(lengths == n)]
        for start in range(0, len(rows), size[n])
    ]

    def encode(rows: Ints) -> tuple[Ints, tuple[()]]:
        batch = np.stack([tokens[i] for i in rows])
        most = size[batch.shape[1]]
        least = min(most, -(-LEAST_TOKENS // batch.shape[1]))
        return np.resize(batch, (max(least, len(sequences.pad_batch(batch, most))), batch.shape[1])), ()

    return sequences.score_parts(model, len(codes), parts, encode, "fp32")


def draw(model: TrainedModel, count: int, *, one_length: bool) -> list[Codes]:
    """Random records of letters that the model knows; peptides of many lengths are mostly short."""
    rng, window = random.Random(1), model.card.window
    letters = len(model.alphabet.letters)

    def length() -> int:
        if one_length:
            return window
        if model.alphabet.is_nucleotide:
            return rng.randint(window // 3, window)
        return min(window, max(5, int(rng.lognormvariate(3.2, 0.6))))

    return [np.array(rng.choices(range(letters), k=length()), dtype=np.uint8) for _ in range(count)]


def rows_of(name: str, count: int, rounds: int) -> Iterator[tuple[object, ...]]:
    """What a model gives, by either way."""
    model = load_model(name)
    every = list(range(count))
    parts = {
        "4": [every[i::4] for i in range(4)],
        "of 37": [every[i : i + 37] for i in range(0, count, 37)],
        "single": [[i] for i in every[:60]],
    }
    for one_length in (True, False):
        codes = draw(model, count, one_length=one_length)
        ways: dict[str, Score] = {"shipped": shipped, "own shapes": own_shapes}
        turns = {way: lambda score=score: score(model, codes) for way, score in ways.items()}  # noqa: B023
        seconds = take_turns(turns, rounds)
        for way, score in ways.items():
            whole = score(model, codes)
            for title, chosen in parts.items():
                pairs = [(whole[rows], score(model, [codes[i] for i in rows])) for rows in chosen]
                before, after = (np.concatenate(side) for side in zip(*pairs, strict=True))
                shown = [[[f"{p:.6g}" for p in row] for row in side.tolist()] for side in (before, after)]
                differ = sum(a != b for a, b in zip(*shown, strict=True))
                largest = f"{np.abs(before - after).max():.1e}"
                lengths = "one" if one_length else "many"
                yield name, lengths, way, title, len(before), differ, largest, f"{min(seconds[way]):.2f}"


def main() -> int:
    """Walk the models."""
    parser = script_parser(__doc__)
    parser.add_argument("--records", type=int, default=1000)
    parser.add_argument("--only", nargs="*", default=list(MODELS), help="these models (default: all)")
    parser.add_argument("--rounds", type=int, default=2)
    args = parser.parse_args()
    torch.set_num_threads(1)
    rows = [row for name in args.only for row in rows_of(name, args.records, args.rounds)]
    write_table("-", COLUMNS, rows, describe(sys.argv))
    return 0


if __name__ == "__main__":
    sys.exit(main())
