"""Write an audit as a table: its findings as comments, and every figure as a row."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from seqray.core.results import Audit, AuditFigure, Finding
from seqray.io.tables.writing import one_line, write_table

COLUMNS = ("section", "split", "class", "quantity", "value", "low", "high")


def write_audit(path: str | Path, audit: Audit, provenance: Sequence[str]) -> None:
    """Write the table of an audit.

    Parameters
    ----------
    path, provenance
        See `seqray.io.tables.open_table`.
    audit
        Its findings become ``#`` lines, its figures and the counts of its histograms become rows.
    """
    findings = [f"finding: {finding_line(finding)}" for finding in audit.findings]
    figures = [*audit.figures, *_bins(audit)]
    write_table(path, COLUMNS, map(_row, figures), [*provenance, *findings])


def finding_line(finding: Finding) -> str:
    """A finding in one line, as the table and the terminal show it."""
    return f"{finding.severity} ({finding.kind}): {finding.what}; {finding.effect}; {finding.remedy}"


def _bins(audit: Audit) -> list[AuditFigure]:
    """Counts of histograms, with the edges of the bins as ``low`` and ``high``."""
    return [
        AuditFigure("histogram", h.split, h.label, h.quantity, count, low, high)
        for h in audit.histograms
        for count, low, high in zip(h.counts, h.edges[:-1], h.edges[1:], strict=True)
    ]


def _row(figure: AuditFigure) -> list[object]:
    names = (figure.section, figure.split, figure.label, figure.quantity)
    return [*map(one_line, names), float(figure.value), float(figure.low), float(figure.high)]
