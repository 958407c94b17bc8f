"""Fixtures of the report tests: a recording with hostile names, its report, and a real browser."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from make_recording import RecordingMaker
from sysdock.analysis import Session
from sysdock.library import Library
from sysdock.recording import Recording
from sysdock.report import write_report

sys.path.insert(0, str(Path(__file__).parent))

from hostile import hostile_calls, processes


@pytest.fixture(scope="session")
def folder(library: Library, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The hostile recording."""
    maker = RecordingMaker(library, tmp_path_factory.mktemp("hostile"))
    issue = {"source": "t.log", "line": 7, "issue": "garbled", "understood": False}
    issues = [{**issue, "excerpt": "<i>x</i> \x1b[31m"}]
    return maker.make(hostile_calls(), processes=processes(), import_issues=issues, host="<h1>box</h1>")


@pytest.fixture
def session(library: Library, folder: Path) -> Iterator[Session]:
    """A session over the hostile recording."""
    with Session(Recording.open(folder), library) as opened:
        yield opened


@pytest.fixture(scope="session")
def page_file(library: Library, folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of the hostile recording; tests only read it."""
    path = tmp_path_factory.mktemp("report") / "out.html"
    with Session(Recording.open(folder), library) as opened:
        write_report(opened, path)
    return path


@pytest.fixture(scope="session")
def browser(launch: Callable[..., Any]) -> Iterator[Any]:
    """Chromium for all tests of the report."""
    # Debian's starts with work for a graphics processor, which servers have none of: drawing may then stand still.
    opened = launch("--disable-gpu")
    yield opened
    opened.close()
