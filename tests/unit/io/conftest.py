"""Files that tests of readers write."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tables import write


@pytest.fixture
def make(tmp_path: Path) -> Callable[..., Path]:
    """Write bytes as a file in the folder of the test."""
    return lambda data, name="x.fa": write(tmp_path / name, data)
