"""Fixtures for tests of rules."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest
from make_recording import RecordingMaker
from rule_calls import Calls
from sysdock.analysis import Finding, Session, diagnosis
from sysdock.library import Library
from sysdock.recording import Recording


@pytest.fixture
def judge(library: Library, maker: RecordingMaker) -> Callable[..., list[Finding]]:
    """What one rule says of a recording of these calls; keywords as for RecordingMaker.make."""
    numbers = itertools.count()

    def judged(rule: str, calls: Calls, **manifest: object) -> list[Finding]:
        folder = maker.make(calls, name=f"rec{next(numbers)}", **manifest)
        with Session(Recording.open(folder), library) as session:
            found = diagnosis.judge(session, library.rule(rule))
            return [finding.in_language("en") for finding in found]

    return judged
