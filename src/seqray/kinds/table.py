"""The kind of a model by its settings: the only table of kinds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from seqray.core import Card, ConfigError, RunConfig
from seqray.kinds.alignments import ALIGNMENTS
from seqray.kinds.kind import Kind
from seqray.kinds.locators import LOCATORS
from seqray.kinds.sequences import SEQUENCES

KINDS: Mapping[str, Kind] = {
    "sequence": SEQUENCES,
    "backbone": SEQUENCES,
    "alignment": ALIGNMENTS,
    "locator": LOCATORS,
}


def kind_of(described: Card | RunConfig) -> Kind:
    """The kind of the model that a card or the settings of a training describe."""
    return KINDS[described.model.kind]


def check_options(kind: Kind, given: Iterable[str]) -> None:
    """Refuse options of the command line that this kind of model does not take.

    Raises
    ------
    ConfigError
        For an option of another kind.
    """
    for option in given:
        readers = [other.unit for other in KINDS.values() if option in other.options]
        if readers and option not in kind.options:
            reads = f"and this one reads {kind.unit}"
            raise ConfigError(f"{option} is for models that read {readers[0]}, {reads}")
