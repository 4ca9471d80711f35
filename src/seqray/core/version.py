"""The version of seqray, which packaging reads from here."""

from __future__ import annotations

__version__ = "0.3.0"
