"""transformers and peft: imported only when a backbone is used, kept silent and away from the network."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from seqray.core import missing_package

EXTRA = "hf"
SILENT = logging.CRITICAL


@contextmanager
def transformers_offline() -> Iterator[Any]:
    """Give the package transformers for a while in which it neither asks the network nor speaks.

    Raises
    ------
    ConfigError
        Where the extra is not installed.
    """
    try:
        import transformers
        from huggingface_hub import constants
        from transformers.utils import logging as telling
    except ModuleNotFoundError as error:
        raise missing_package(error.name or "transformers", EXTRA) from None
    offline, level = constants.HF_HUB_OFFLINE, telling.get_verbosity()
    bar = telling.is_progress_bar_enabled()
    constants.HF_HUB_OFFLINE = True
    telling.set_verbosity(SILENT)
    telling.disable_progress_bar()
    try:
        yield transformers
    finally:
        # Others in this process may use the packages as they like.
        constants.HF_HUB_OFFLINE = offline
        telling.set_verbosity(level)
        if bar:
            telling.enable_progress_bar()


def import_peft() -> Any:
    """Give the package peft.

    Raises
    ------
    ConfigError
        Where the extra is not installed.
    """
    try:
        import peft
    except ModuleNotFoundError as error:
        raise missing_package(error.name or "peft", EXTRA) from None
    return peft
