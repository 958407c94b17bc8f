"""A journal folder of the test, and a state that is undone at its end."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from killed_experiments import alone
from sysdock.experiment.state import Journal, State


@pytest.fixture(autouse=True)
def journal_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where journals lie in this test."""
    place = tmp_path / "journals"
    monkeypatch.setenv("SYSDOCK_STATE", str(place))
    return place


@pytest.fixture
def root() -> Iterator[None]:
    """Skips where nothing of the machine can be changed; one test at a time changes it."""
    if os.geteuid() != 0:
        pytest.skip("changing settings of the machine needs root")
    with alone():
        yield


@pytest.fixture
def state(tmp_path: Path, root: None) -> Iterator[State]:
    """An experiment's state; nothing of it is left after the test."""
    journal = Journal.begin("a test")
    made = State(journal, tmp_path / "scratch")
    try:
        yield made
    finally:
        left = made.undo()
        journal.close()
    assert left == []
    assert not made.scratch.exists()
    assert not journal.path.exists()
