"""Write an audit as a table: its findings as comments, and every figure as a row."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from seqray.core.results import Audit, AuditFigure, Finding
from seqray.io.files import open_output
from seqray.io.tables.examples import comment_lines, format_number

COLUMNS = ("section", "split", "class", "quantity", "value", "low", "high")


def write_audit(path: str | Path, audit: Audit, provenance: Sequence[str]) -> None:
    """Write the table of an audit.

    Parameters
    ----------
    path
        A name that ends in ``.gz`` is compressed; ``-`` is standard output.
    audit
        Its findings become ``#`` lines, its figures and the counts of its histograms become rows.
    provenance
        Lines for the head of the table.
    """
    findings = [f"finding: {finding_line(finding)}" for finding in audit.findings]
    with open_output(path) as handle:
        handle.write(comment_lines([*provenance, *findings]))
        handle.write(("\t".join(COLUMNS) + "\n").encode())
        for figure in [*audit.figures, *_bins(audit)]:
            handle.write(_row(figure).encode())


def finding_line(finding: Finding) -> str:
    """A finding in one line, as the table and the terminal show it."""
    return f"{finding.severity} ({finding.kind}): {finding.what}; {finding.effect}; {finding.remedy}"


def _bins(audit: Audit) -> list[AuditFigure]:
    """Counts of histograms, with the borders of the bins as ``low`` and ``high``."""
    return [
        AuditFigure("histogram", h.split, h.label, h.quantity, count, low, high)
        for h in audit.histograms
        for count, low, high in zip(h.counts, h.edges[:-1], h.edges[1:], strict=True)
    ]


def _row(figure: AuditFigure) -> str:
    names = (figure.section, figure.split, figure.label, figure.quantity)
    numbers = (figure.value, figure.low, figure.high)
    return "\t".join([*(" ".join(name.split()) for name in names), *map(_cell, numbers)]) + "\n"


def _cell(value: float) -> str:
    return format_number(value) if math.isfinite(value) else "."
