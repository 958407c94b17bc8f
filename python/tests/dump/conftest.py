"""Crash dumps of guests, made once for all tests."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from made_dumps import MadeDump, make


@pytest.fixture(scope="session")
def dumps(tmp_path_factory: pytest.TempPathFactory) -> dict[str, MadeDump]:
    """A dump of each kernel; that of 6.1 also as makedumpfile writes it, that of 6.12 without random addresses."""
    folder = tmp_path_factory.mktemp("dumps")
    return {
        "6.1": make(folder / "6.1", "6.1", "--compressed"),
        "6.12": make(folder / "6.12", "6.12", "--no-kaslr"),
    }
