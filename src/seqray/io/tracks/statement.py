"""What the header of a file of calls states about the scan: its threshold, and how many are right."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from seqray.io.files import open_input
from seqray.io.pipes import display_name
from seqray.io.tracks.lines import decoded_lines

EXPECTED = ("expected precision", "expected false calls")
_STATED = ("model", "parts", "scanned", "calls", "threshold", *EXPECTED, "evidence from letters")


@dataclass(frozen=True, slots=True)
class ScanStatement:
    """What a scan states of its calls.

    Attributes
    ----------
    file
        Name of the file of calls, without its folder.
    facts
        Key to text, of those that the header has, in a fixed order: the threshold, what was scanned, how
        many calls there are, and the precision or the false calls to expect.
    """

    file: str
    facts: Mapping[str, str]

    @property
    def lacks(self) -> list[str]:
        """What the header does not state, of what is needed to judge the calls."""
        known = self.facts.keys()
        lacking = [] if "threshold" in known else ["the threshold"]
        return lacking + ([] if known & set(EXPECTED) else ["the precision or the false calls to expect"])

    def made_by(self, checksum: str) -> bool:
        """Whether the model of this SHA-256 made the calls, as far as the header says."""
        return self.facts.get("model", checksum).endswith(checksum)


def read_scan_statement(path: str | Path) -> ScanStatement:
    """Read the ``# key: value`` lines above the first call; GFF3, TSV and BED have the same."""
    name = display_name(path)
    found: dict[str, str] = {}
    with open_input(path) as handle:
        for _, line in decoded_lines(handle, name):
            if not line.startswith("#"):
                break
            key, colon, text = line.removeprefix("# ").partition(": ")
            if colon and key in _STATED:
                found.setdefault(key, text)
    return ScanStatement(Path(name).name, {key: found[key] for key in _STATED if key in found})
