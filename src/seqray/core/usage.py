"""Processor time and memory of processes that the system does not count as children of this one.

A process that a fork server has started is a child of the server. It tells what it used, and that is added
here.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

RSS_UNIT = 1 if sys.platform == "darwin" else 1024
"""Bytes of a unit of ``ru_maxrss``, see getrusage(2)."""


@dataclass(slots=True)
class Usage:
    """Seconds of the processor of all such processes, and bytes of memory of the largest."""

    cpu_seconds: float = 0.0
    peak_bytes: int = 0

    def add(self, other: Usage) -> None:
        """Add that of a process."""
        self.cpu_seconds += other.cpu_seconds
        self.peak_bytes = max(self.peak_bytes, other.peak_bytes)

    def reset(self) -> None:
        """Begin anew."""
        self.cpu_seconds, self.peak_bytes = 0.0, 0


SERVED = Usage()
"""That of all processes which a fork server started for this one."""
