"""Fixtures: scans by the real program."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from scans import Scan, scanned


@pytest.fixture
def scan(native: Path, tmp_path: Path) -> Callable[..., Scan]:
    """Scan a target."""
    assert native

    def run(target: Path, *options: str) -> Scan:
        return scanned(target, tmp_path / f"scan-{len(list(tmp_path.glob('scan-*')))}", *options)

    return run
