"""Waits for what another process does; no test fails because a machine is slow."""

from __future__ import annotations

import time
from collections.abc import Callable

# However busy the machine is, nothing that a test waits for takes as long.
PATIENCE_S = 600


def wait_for(condition: Callable[[], object], what: str = "a condition", every_s: float = 0.02) -> None:
    """Waits until the condition holds; `what` names it, after "waiting for". AssertionError after `PATIENCE_S`."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, f"gave up waiting for {what} after {PATIENCE_S} s"
        time.sleep(every_s)
