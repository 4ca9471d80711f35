"""From figures to findings, worst first.

Every finding rests on figures alone, so the table that is written holds all that it was drawn from. The
limits stand at the top of `leaks`, `shortcuts` and `cautions`, and in docs/concepts/audit.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from seqray.core.results import SEVERITIES, AuditFigure, Finding
from seqray.datasets.audit.cautions import cautions, floor
from seqray.datasets.audit.leaks import leaks
from seqray.datasets.audit.lookup import Lookup
from seqray.datasets.audit.shortcuts import shortcuts


def draw_findings(
    figures: Sequence[AuditFigure], settings: Mapping[str, str], skipped: int = 0
) -> list[Finding]:
    """Draw findings from figures.

    Parameters
    ----------
    figures
        Of all sections.
    settings
        ``word`` (length of the words that relatives share), ``held_out`` (name of the measured split, empty
        if there is none), ``alphabet`` and ``chance_word``, the shortest word that is no coincidence.
    skipped
        Records without letters that were left out.

    Returns
    -------
    list of Finding
        In the order of `SEVERITIES`, and of one severity the surest first.
    """
    look = Lookup(figures)
    found = [*leaks(look, settings), *shortcuts(look, settings), *cautions(look, skipped), *floor(look)]
    return sorted(found, key=lambda finding: SEVERITIES.index(finding.severity))
