"""The self-test of a model: synthetic inputs, kept as text in the card, and what is expected of them."""

from __future__ import annotations

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
    texts = _draw(model.card)
    facts: dict[str, list] = {"sequences": texts}
    if model.card.model.contexts:
        facts["contexts"] = [*[None] * len(texts), model.card.model.contexts[-1]]
        texts.append(texts[-1])
    models = [model.with_context(context) for context in facts.get("contexts", [None] * len(texts))]
    pairs = [*zip(models, texts, strict=True)]
    facts["logits"] = [[round_number(x, 8) for x in _logits(*pair).tolist()] for pair in pairs]
    if model.prefilter is not None:
        facts["prefilter"] = [[round_number(x, 8) for x in _prefilter_answers(*pair)] for pair in pairs]
    return facts


def check_self_test(model: TrainedModel, where: str = "") -> float:
    """Compare the logits of the self-test, and the answers of a prefilter, with those that the card expects.

    Returns the largest absolute difference. ModelFileError is raised where one differs by more than 1e-4 +
    1e-4 times its size, or the card holds no self-test.
    """
    card, facts = model.card, model.card.self_test
    difference = limit = np.zeros(0)
    try:
        texts, contexts = facts["sequences"], facts.get("contexts", [])
        expected = np.asarray(facts["logits"], dtype=np.float64)  # (N, K), then (N, K + P)
        if (
            not 1 <= len(texts) <= _COUNT + 1
            or not all(isinstance(text, str) and _fits(card, text) for text in texts)
            or not all(context is None or context in card.model.contexts for context in contexts)
            or len(contexts) not in (0, len(texts))
            or expected.shape != (len(texts), len(card.classes))
        ):
            raise ValueError("no self-test")
        answers = []
        for text, context in zip(texts, contexts or [None] * len(texts), strict=True):
            reader = model.with_context(context)
            logits = _logits(reader, text).tolist()
            answers.append([round_number(x, 8) for x in (*logits, *_prefilter_answers(reader, text))])
        if card.prefilter:
            own = np.asarray(facts["prefilter"], dtype=np.float64).reshape(len(texts), -1)
            expected = np.hstack((expected, own))
        difference = np.abs(np.asarray(answers) - expected)
        limit = SELF_TEST_TOLERANCE * (1 + np.abs(expected))
    except (InputError, KeyError, OverflowError, TypeError, ValueError):
        raise ModelFileError("holds no usable self-test", where=where) from None
    if not (difference <= limit).all():
        raise ModelFileError(
            f"fails its self-test: answers differ from the expected ones by up to {difference.max():.3g}",
            where=where,
            remedy="copy or download it again; if it persists, report the processor and the torch version",
        )
    return float(difference.max())


def _draw(card: Card) -> list[str]:
    """Full windows, the last one with an ambiguous letter, and first a half window; or small alignments.

    Alignments have one row, two rows, ... of up to 60 columns of letters, gaps and missing data, a line each.
    """
    rng, alphabet = np.random.default_rng(_SEED), ALPHABETS[card.model.alphabet]
    if card.model.reads_alignments:
        texts = []
        for rows in range(1, _COUNT + 1):
            size = (min(rows, card.model.max_rows), min(card.window, _COLUMNS))
            codes = rng.integers(0, missing_code(alphabet) + 1, size=size).astype(np.uint8)
            texts.append("\n".join(decode_columns(row, alphabet) for row in codes))
        return texts
    length = min(card.window, _MAX_INPUT_LENGTH)
    codes = rng.integers(0, len(alphabet.letters), size=(_COUNT, length)).astype(np.uint8)
    codes[-1, length // 3] = alphabet.unknown
    sequences = [alphabet.decode(row) for row in codes]
    return [sequences[0][: (length + 1) // 2], *sequences[1:]]


def _fits(card: Card, text: str) -> bool:
    """Whether an input is no larger than those that are drawn; a locator reads at least four letters."""
    rows = text.split("\n")
    most = _COUNT if card.model.reads_alignments else 1
    least = 4 if card.model.is_locator else 1
    return len(rows) <= most and all(least <= len(row) <= min(card.window, _MAX_INPUT_LENGTH) for row in rows)


def _logits(model: TrainedModel, text: str) -> npt.NDArray[np.float32]:
    """Logits (K,) of one input; of a locator, those of the middle of a sequence."""
    if model.is_locator:
        import torch  # which the models of other engines do without

        text = text[: len(text) // 4 * 4]
        letters = torch.from_numpy(model.alphabet.encode(text).astype(np.int64))[None].to(model.device)
        rows = torch.arange(model.locators[0].tracks, device=letters.device)[:, None]
        # Tracks (1, T, L) that follow from the letters let every weight count.
        tracks = ((letters[:, None] + 1) * (rows + 3) * 37 % 256).to(torch.uint8)
        return model.locate(letters, tracks)[0, len(text) // 2].cpu().numpy()
    if model.card.model.reads_alignments:
        lines = text.encode().split(b"\n")
        codes = encode_columns(lines, [str(i) for i in range(len(lines))], model.alphabet, "self-test")
        tokens = AlignmentTokenizer(model.alphabet).encode(codes)[None]
    else:
        tokens = np.asarray(model.tokenizer.encode(text), dtype=np.int64)[None]
    if model.engine:  # beside another row: what an engine takes for the wrong axis shows in a batch alone
        tokens = np.concatenate((tokens, np.hstack((tokens[:, :1], tokens[:, :0:-1]))))
    return model.array_logits(tokens)[0]


def _prefilter_answers(model: TrainedModel, text: str) -> list[float]:
    """What each network of a prefilter answers for a text, as long as a window; nothing without one."""
    if model.prefilter is None:
        return []
    codes = np.full((1, model.prefilter.window), model.alphabet.unknown, np.uint8)
    codes[0, : len(text)] = model.alphabet.encode(text)
    with np.errstate(all="ignore"):  # forged weights, whose answers are not as expected
        networks = model.prefilter.networks
        return [float(one.window_log_odds(codes, model.context_number)[0]) for one in networks]
