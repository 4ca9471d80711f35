"""transformers and peft: imported only when a backbone is used, kept silent and away from the network."""

from __future__ import annotations

import importlib
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from safetensors import SafetensorError

from seqray.core import ConfigError, missing_package

EXTRA = "hf"
SILENT = logging.CRITICAL


def import_extra(name: str) -> Any:
    """Import transformers, peft or a module of theirs; raises ConfigError if it is not installed."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise missing_package(error.name or name, EXTRA) from None


@contextmanager
def transformers_offline(what: str, path: Path) -> Iterator[Any]:
    """Provide transformers, silent and without access to the network, to load something from a directory.

    Raises ConfigError if the extra is not installed, or transformers can't load it.
    """
    transformers = import_extra("transformers")
    constants, log = import_extra("huggingface_hub.constants"), import_extra("transformers.utils.logging")
    offline, level, bar = constants.HF_HUB_OFFLINE, log.get_verbosity(), log.is_progress_bar_enabled()
    constants.HF_HUB_OFFLINE = True
    log.set_verbosity(SILENT)
    log.disable_progress_bar()
    try:
        yield transformers
    except (OSError, ValueError, KeyError, TypeError, RuntimeError, ImportError, SafetensorError) as error:
        reason = str(error).strip().partition("\n")[0]
        raise ConfigError(
            f"transformers can't load {what} ({reason})",
            where=str(path),
            remedy="download its files again, all from one model",
        ) from None
    finally:
        # Other code in this process may use the packages as it likes.
        constants.HF_HUB_OFFLINE = offline
        log.set_verbosity(level)
        if bar:
            log.enable_progress_bar()
