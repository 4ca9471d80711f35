"""What tests of several verbs share."""

import pytest

from seqray.report.pages import scan as page


@pytest.fixture
def reports(monkeypatch):
    """What the pages of scans would show, in place of the pages."""
    kept = []
    monkeypatch.setattr(page, "render_scan", lambda report: kept.append(report) or "")
    return kept
