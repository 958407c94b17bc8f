"""Waits for what another process does; no test fails because a machine is slow."""

from __future__ import annotations

import time
from collections.abc import Callable

# Whatever else the machine does, nothing takes as long.
PATIENCE_S = 600


def wait_for(condition: Callable[[], object], what: str = "the condition", every_s: float = 0.02) -> None:
    """Until it holds."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, f"waited in vain for {what}"
        time.sleep(every_s)
