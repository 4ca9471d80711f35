"""One error for all damaged parts of a model card."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from seqray.core import ModelFileError


@contextmanager
def reading_card(part: str) -> Iterator[None]:
    """Turn the errors that a damaged part of a card causes into a ModelFileError."""
    try:
        yield
    except (KeyError, TypeError, ValueError) as error:
        reason = f"{type(error).__name__}: {error}"
        raise ModelFileError(f"model card: '{part}' can't be read ({reason})") from None
