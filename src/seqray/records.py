"""Things that were read: validated once, immutable after."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SequenceRecord:
    """One named sequence.

    Attributes
    ----------
    id
        First word of the FASTA header (or the accession.version of a GenBank record).
    sequence
        Letters folded to upper case and validated by an alphabet.
    description
        The rest of the header.
    soft_masked
        Half-open, 0-based intervals that were lower case in the file; empty unless asked for.
    circular
        True where the file says so (GenBank topology).
    """

    id: str
    sequence: str
    description: str = ""
    soft_masked: tuple[tuple[int, int], ...] = ()
    circular: bool = False

    def __len__(self) -> int:
        return len(self.sequence)


@dataclass(frozen=True, slots=True)
class LabelledSequence:
    """One training or test example.

    Attributes
    ----------
    sequence
        Validated letters.
    label
        Name of its class.
    id
        Identifier; made from the row number where the table has none.
    group
        Examples of one group (a gene family, a genome region) never fall on both sides of a split.
    split
        ``train``, ``validation`` or ``test`` where the data say so.
    context
        What else is known of the sequence, such as its species, where the data say so.
    """

    sequence: str
    label: str
    id: str
    group: str | None = None
    split: str | None = None
    context: str | None = None
