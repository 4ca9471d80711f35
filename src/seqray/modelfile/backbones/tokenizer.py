"""The tokenizer of a backbone's own directory, behind the face of seqray's tokenizers.

Its tokens are the directory's ids plus one, so that PAD (0) always marks padding.
How many tokens a sequence makes may depend on its letters (words of a learned vocabulary, words of six
letters that stop at an N), so sequences of one length may differ in tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from seqray.core import ALPHABETS, Alphabet, BackboneConfig, ConfigError, InputError, Ints
from seqray.modelfile.backbones.directory import checksums, find_directory
from seqray.modelfile.backbones.packages import transformers_offline
from seqray.models.tokenizers import PAD, Tokenizer

_PROBE = 12  # letters: two words of six
_MAX_LENGTH = 1 << 20  # transformers writes 1e30 for no limit
# Kinds whose positions are counted from behind the padding token's id.
_COUNT_FROM_PADDING = frozenset({"camembert", "esm", "longformer", "mpnet", "roberta", "xlm-roberta"})
_SWAP = {"T": "U", "U": "T"}


class BackboneTokenizer(Tokenizer):
    """Letters to tokens as the backbone was trained to read them.

    Parameters
    ----------
    tokenizer
        Of transformers.
    alphabet
        Letters that are read. Where the vocabulary knows T and not U, or the other way round, one is written
        for the other.
    limit
        Most tokens that the backbone reads, special ones included; None for no limit.
    where
        The directory, for errors.

    Attributes
    ----------
    letter_tokens
        Tokens of letters of the alphabet alone, int64 (V,).
    special_tokens
        Tokens without letters: CLS, the end, padding and the like, int64 (S,).
    pad
        The directory's own id of padding.
    starts_with_cls
        Whether CLS is put in front.

    Raises
    ------
    ConfigError
        Where the vocabulary doesn't know all letters of the alphabet.
    """

    def __init__(self, tokenizer: Any, alphabet: Alphabet, limit: int | None, where: str) -> None:
        self.alphabet = alphabet
        self._tokenizer, self._limit, self._where = tokenizer, limit, where
        self.pad: int = tokenizer.pad_token_id or 0  # what is masked may be anything
        unknown = {tokenizer.unk_token_id} - {None}
        self.special_tokens = np.array(sorted(set(tokenizer.all_special_ids) - unknown), dtype=np.int64) + 1
        self._fold = self._known_letters()
        self.letter_tokens = self._letter_tokens()
        first = self._ids([alphabet.letters[0] * _PROBE])[0][0]
        self.starts_with_cls = first == tokenizer.cls_token_id

    def _known_letters(self) -> dict[int, str]:
        """Find how letters are written: as they are, or with T and U exchanged."""
        alphabet = self.alphabet
        missing = [letter for letter in alphabet.letters if not self._knows(letter)]
        fold = {letter: _SWAP[letter] for letter in missing if letter in _SWAP and alphabet.is_nucleotide}
        for letter in missing:
            if letter not in fold or not self._knows(fold[letter]):
                raise ConfigError(
                    f"the tokenizer does not know the letter {letter} of 'model.alphabet: {alphabet.name}'",
                    where=self._where,
                    remedy="set the alphabet that the backbone reads; words that need spaces can't be read",
                )
        return str.maketrans(fold)

    def _knows(self, letter: str) -> bool:
        [ids] = self._ids([letter * _PROBE])
        if None in ids:  # its vocabulary is empty
            return False
        body = [i for i in ids if i + 1 not in self.special_tokens]
        return bool(body) and self._tokenizer.unk_token_id not in body

    def _letter_tokens(self) -> Ints:
        letters = set(self.alphabet.letters.translate(self._fold))
        words = self._tokenizer.get_vocab().items()
        return np.array(sorted(i + 1 for word, i in words if word and set(word) <= letters), dtype=np.int64)

    def _ids(self, texts: Sequence[str]) -> list[list[int]]:
        answer = self._tokenizer(
            list(texts),
            truncation=False,
            padding=False,
            return_attention_mask=False,
            return_token_type_ids=False,
            verbose=False,
        )
        return answer["input_ids"]

    def _text(self, codes: npt.NDArray[np.uint8]) -> str:
        return self.alphabet.decode(codes).translate(self._fold)

    def encode_codes(
        self, codes: npt.NDArray[np.uint8], lengths: npt.NDArray[np.integer] | None = None
    ) -> Ints:
        rows = codes.reshape(-1, codes.shape[-1])
        sizes = np.full(len(rows), codes.shape[-1]) if lengths is None else np.ravel(lengths)
        encoded = self._ids([self._text(row[:n]) for row, n in zip(rows, sizes, strict=True)])
        tokens = np.full((len(rows), max(map(len, encoded), default=0)), PAD, dtype=np.int64)
        for row, ids in zip(tokens, encoded, strict=True):
            self._check_count(len(ids))
            row[: len(ids)] = ids
            row[: len(ids)] += 1
        return tokens.reshape(*codes.shape[:-1], tokens.shape[1])

    def _check_count(self, count: int) -> None:
        if self._limit is not None and count > self._limit:
            raise InputError(
                f"makes {count} tokens, the backbone reads at most {self._limit}",
                remedy="cut the sequences, or lower 'data.window'",
            )

    def check(self, sequence: str) -> None:
        # No tokenizer makes more tokens than letters and special ones, so most sequences need no look.
        if self._limit is not None and len(sequence) + len(self.special_tokens) > self._limit:
            self._check_count(len(self.encode(sequence)))

    def mask(self, tokens: Ints, lengths: npt.NDArray[np.integer]) -> npt.NDArray[np.bool_]:
        return tokens != PAD

    def spans(self, codes: npt.NDArray[np.uint8]) -> Ints:
        """Half-open letter interval of each token of letter codes (n,); special ones cover none.

        Returns
        -------
        array of int64, shape (L, 2)

        Raises
        ------
        ConfigError
            For a tokenizer without offsets whose words don't spell the sequence.
        """
        text = self._text(codes)
        if self._tokenizer.is_fast:
            answer = self._tokenizer(text, truncation=False, return_offsets_mapping=True, verbose=False)
            return np.array(answer["offset_mapping"], dtype=np.int64).reshape(-1, 2)
        words = self._tokenizer.tokenize(text)
        if "".join(words) != text:
            raise ConfigError(
                "the tokenizer does not define which letters a token represents",
                where=self._where,
                remedy="use the methods ism and occlusion with --no-check and without a page",
            )
        ends = np.cumsum([len(word) for word in words])
        [ids] = self._ids([text])
        spans = np.zeros((len(ids), 2), dtype=np.int64)
        real = ~np.isin(np.array(ids) + 1, self.special_tokens)
        spans[real] = np.stack([ends - [len(word) for word in words], ends], axis=1)
        return spans


def load_tokenizer(config: BackboneConfig, alphabet: str) -> BackboneTokenizer:
    """Load the tokenizer of a backbone's directory.

    Raises ConfigError for a directory that `find_directory` refuses, a tokenizer that transformers can't load
    without code of others, or one that doesn't know the alphabet.
    """
    path = find_directory(config)
    return _load(path, alphabet, tuple(checksums(path).items()))


@lru_cache(maxsize=4)
def _load(path: Path, alphabet: str, checksums: tuple[tuple[str, str], ...]) -> BackboneTokenizer:
    """Load once for all members; changed files are loaded again."""
    local = {"local_files_only": True, "trust_remote_code": False}
    with transformers_offline("its tokenizer", path) as transformers:
        settings = transformers.AutoConfig.from_pretrained(path, **local)
        tokenizer = transformers.AutoTokenizer.from_pretrained(path, **local)
    return BackboneTokenizer(tokenizer, ALPHABETS[alphabet], token_limit(settings, tokenizer), str(path))


def token_limit(settings: Any, tokenizer: Any) -> int | None:
    """Maximum number of tokens of a backbone, by the settings of transformers; None without a limit."""
    limits = [tokenizer.model_max_length] if tokenizer.model_max_length < _MAX_LENGTH else []
    positions = getattr(settings, "max_position_embeddings", None)
    if positions:
        padding = getattr(settings, "pad_token_id", None) or tokenizer.pad_token_id or 0
        used = padding + 1 if settings.model_type in _COUNT_FROM_PADDING else 0
        limits.append(positions - used)
    return min(limits, default=None)
