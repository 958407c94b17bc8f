"""Agents that end with the test that started them."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from agents import Agent


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[Callable[..., Agent]]:
    """Starts agents, and ends those that run."""
    started: list[Agent] = []

    def start(*words: str | Path) -> Agent:
        started.append(Agent(tmp_path, *words))
        return started[-1]

    yield start
    for each in started:
        if each.process.poll() is None:
            each.end(signal.SIGKILL)
