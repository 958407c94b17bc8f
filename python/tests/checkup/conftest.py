"""Real inputs for the readers of a check-up."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def real() -> Path:
    """The folder with files that real tools wrote."""
    return Path(__file__).resolve().parents[3] / "testdata" / "checkup"
