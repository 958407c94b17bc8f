"""Fixtures of the chart tests: a library with further analyses, over a small recording."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from make_recording import RecordingMaker
from sysdock.analysis import Session
from sysdock.library import Library
from sysdock.recording import Recording

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture
def open_session(library: Library, maker: RecordingMaker, tmp_path: Path) -> Iterator[Callable[..., Session]]:
    """Opens a session over a small recording, with further analyses by name."""
    sessions = []

    def opened(**analyses: str) -> Session:
        root = tmp_path / "knowhow"
        for folder in ("tables", "charts"):
            shutil.copytree(library.root / folder, root / folder)
        (root / "analyses" / "t").mkdir(parents=True)
        for name, sql in analyses.items():
            (root / "analyses" / "t" / f"{name}.sql").write_text(sql)
        sessions.append(Session(Recording.open(maker.make()), Library(root)))
        return sessions[-1]

    yield opened
    for session in sessions:
        session.close()
