"""The self-test of a model: synthetic inputs, kept as text in the card, and what is expected of them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from seqray.core.alphabet import ALPHABETS, decode_columns, encode_columns, missing_code
from seqray.core.card import Card
from seqray.core.errors import InputError, ModelFileError
from seqray.core.text import round_number
from seqray.modelfile.model import TrainedModel
from seqray.models.tokenizers import AlignmentTokenizer

SELF_TEST_TOLERANCE = 1e-4  # absolute and relative: float32 on another processor stays far below
_SEED = 20_240_229
_COUNT, _COLUMNS = 4, 60
_MAX_INPUT_LENGTH = 20_000  # letters: a file must not decide how long its check takes


def make_self_test(model: TrainedModel) -> dict[str, list]:
    """Make synthetic inputs, and the logits that the model and the answers that its prefilter gives for them.

    The letters are drawn at random from a fixed seed. A model that knows contexts gets the last sequence once
    more, in the last of them.
    """
    texts = _INPUTS[model.card.model.kind].draw(model.card, np.random.default_rng(_SEED))
    facts: dict[str, list] = {"sequences": texts}
    if model.card.model.contexts:
        facts["contexts"] = [*[None] * len(texts), model.card.model.contexts[-1]]
        texts.append(texts[-1])
    contexts = facts.get("contexts", [])
    facts["logits"] = _logits_of(model, texts, contexts)
    if model.prefilter is not None:
        facts["prefilter"] = _answers_of(model, texts, contexts)
    return facts


def _logits_of(
    model: TrainedModel, texts: Sequence[str], contexts: Sequence[str | None] = ()
) -> list[list[float]]:
    compute = _INPUTS[model.card.model.kind].compute
    rows = []
    for text, context in itertools.zip_longest(texts, contexts):
        logits = compute(model.with_context(context), text)
        rows.append([round_number(value, 8) for value in logits.tolist()])
    return rows


def _answers_of(
    model: TrainedModel, texts: Sequence[str], contexts: Sequence[str | None] = ()
) -> list[list[float]]:
    """What each network of the prefilter answers for each text, as long as a window."""
    rows, prefilter = [], model.prefilter
    if prefilter is None:
        return []
    for text, context in itertools.zip_longest(texts, contexts):
        codes = np.full((1, prefilter.window), model.alphabet.unknown, np.uint8)
        codes[0, : len(text)] = model.alphabet.encode(text)
        number = model.with_context(context).context_number
        with np.errstate(all="ignore"):  # forged weights, whose answers are not as expected
            answers = [one.window_log_odds(codes, number)[0] for one in prefilter.networks]
        rows.append([round_number(float(answer), 8) for answer in answers])
    return rows


def _classify(model: TrainedModel, codes: np.ndarray) -> npt.NDArray[np.float32]:
    tokens = np.asarray(codes, dtype=np.int64)[None]
    if model.engine:  # beside another row: what an engine takes for the wrong axis shows in a batch alone
        tokens = np.concatenate((tokens, np.hstack((tokens[:, :1], tokens[:, :0:-1]))))
    return model.array_logits(tokens)[0]


def _locate(model: TrainedModel, text: str) -> npt.NDArray[np.float32]:
    """Score the middle of a sequence; tracks that follow from its letters let every weight count."""
    import torch  # which the models of other engines do without

    text = text[: len(text) // 4 * 4]
    letters = torch.from_numpy(model.alphabet.encode(text).astype(np.int64))[None].to(model.device)
    rows = torch.arange(model.locators[0].tracks, device=letters.device)[:, None]
    tracks = ((letters[:, None] + 1) * (rows + 3) * 37 % 256).to(torch.uint8)  # (1, T, L)
    return model.locate(letters, tracks)[0, len(text) // 2].cpu().numpy()


def _draw_sequences(card: Card, rng: np.random.Generator) -> list[str]:
    """Full windows, the last one with an ambiguous letter, and first a half window."""
    alphabet = ALPHABETS[card.model.alphabet]
    length = min(card.window, _MAX_INPUT_LENGTH)
    codes = rng.integers(0, len(alphabet.letters), size=(_COUNT, length)).astype(np.uint8)
    codes[-1, length // 3] = alphabet.unknown
    sequences = [alphabet.decode(row) for row in codes]
    return [sequences[0][: (length + 1) // 2], *sequences[1:]]


def _draw_alignments(card: Card, rng: np.random.Generator) -> list[str]:
    """Letters, gaps and missing data: one row, two rows, ... of up to 60 columns, a line each."""
    alphabet, texts = ALPHABETS[card.model.alphabet], []
    for rows in range(1, _COUNT + 1):
        size = (min(rows, card.model.max_rows), min(card.window, _COLUMNS))
        codes = rng.integers(0, missing_code(alphabet) + 1, size=size).astype(np.uint8)
        texts.append("\n".join(decode_columns(row, alphabet) for row in codes))
    return texts


def _encode_alignment(model: TrainedModel, text: str) -> np.ndarray:
    lines = text.encode().split(b"\n")
    codes = encode_columns(lines, [str(i) for i in range(len(lines))], model.alphabet, "self-test")
    return AlignmentTokenizer(model.alphabet).encode(codes)


class _Inputs(NamedTuple):
    """Draws the inputs of one kind of model, and computes the (K,) logits of one."""

    draw: Callable[[Card, np.random.Generator], list[str]]
    compute: Callable[[TrainedModel, str], npt.NDArray[np.float32]]


_SEQUENCES = _Inputs(
    _draw_sequences, lambda model, text: _classify(model, np.asarray(model.tokenizer.encode(text)))
)
_INPUTS: Mapping[str, _Inputs] = {
    "sequence": _SEQUENCES,
    "backbone": _SEQUENCES,
    "alignment": _Inputs(
        _draw_alignments, lambda model, text: _classify(model, _encode_alignment(model, text))
    ),
    "locator": _Inputs(_draw_sequences, _locate),
}


def _read_self_test(card: Card) -> tuple[list[str], list[str | None], np.ndarray]:
    """Sequences, contexts and what is expected of each; raises KeyError, TypeError or ValueError otherwise.

    Expected are logits (N, K), or (N, K + P) with the answers of the P networks of a prefilter.
    """
    facts = card.self_test
    sequences, contexts = facts["sequences"], facts.get("contexts", [])
    logits = np.asarray(facts["logits"], dtype=np.float64)
    answers = np.asarray(facts["prefilter"] if card.prefilter else [], dtype=np.float64)
    if (
        not 1 <= len(sequences) <= _COUNT + 1
        or not all(isinstance(text, str) and _fits(card, text) for text in sequences)
        or not all(context is None or context in card.model.contexts for context in contexts)
        or len(contexts) not in (0, len(sequences))
        or logits.shape != (len(sequences), len(card.classes))
    ):
        raise ValueError("no self-test")
    return list(sequences), list(contexts), np.hstack((logits, answers.reshape(len(sequences), -1)))


def _fits(card: Card, text: str) -> bool:
    """Whether an input is no larger than those that are drawn; a locator reads at least four letters."""
    rows = text.split("\n")
    most = _COUNT if card.model.kind == "alignment" else 1
    least = 4 if card.model.kind == "locator" else 1
    return len(rows) <= most and all(least <= len(row) <= min(card.window, _MAX_INPUT_LENGTH) for row in rows)


def check_self_test(model: TrainedModel, where: str = "") -> float:
    """Compare the logits of the self-test, and the answers of a prefilter, with those that the card expects.

    Returns
    -------
    float
        Largest absolute difference.

    Raises
    ------
    ModelFileError
        Where one differs by more than 1e-4 + 1e-4 times its size, or the card holds no self-test.
    """
    try:
        sequences, contexts, expected = _read_self_test(model.card)
        found = np.asarray(_logits_of(model, sequences, contexts))
        if model.prefilter is not None:
            found = np.column_stack((found, _answers_of(model, sequences, contexts)))
        difference = np.abs(found - expected)
    except (InputError, KeyError, OverflowError, TypeError, ValueError):
        raise ModelFileError("holds no usable self-test", where=where) from None
    if not (difference <= SELF_TEST_TOLERANCE * (1 + np.abs(expected))).all():
        raise ModelFileError(
            f"fails its self-test: answers differ from the expected ones by up to {difference.max():.3g}",
            where=where,
            remedy="copy or download it again; if it persists, report the processor and the torch version",
        )
    return float(difference.max())
