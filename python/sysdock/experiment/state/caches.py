"""The kind `cache:`: `cache:drop` brings what is written to the disk, and takes from memory what is on the
disk.

Its value is that of vm.drop_caches: 1 (contents of files), 2 (names and attributes) or 3 (both); `yes` is 3.
It concerns the whole machine. There is nothing to undo.
"""

from __future__ import annotations

import os
from pathlib import Path

from sysdock.errors import UserError
from sysdock.experiment.state.journal import Journal
from sysdock.experiment.state.kind import Difference, Kind
from sysdock.experiment.state.values import write

_VALUES = {"1": "1", "2": "2", "3": "3", "yes": "3"}


class Cache(Kind):
    """The caches of files in memory."""

    name = "cache"

    def problem(self, target: str) -> str | None:
        return None if target == "drop" else f"`{target}` cannot be done with the cache; write cache:drop"

    def apply(self, journal: Journal, target: str, value: str) -> None:
        if value not in _VALUES:
            raise UserError(f"`{value}` is not a value of cache:drop", "it is 1, 2 or 3", "cache:drop")
        os.sync()
        write(Path("/proc/sys/vm/drop_caches"), "vm.drop_caches", _VALUES[value])

    def differs(self, target: str, value: str) -> Difference | None:
        """Dropping a cache is an event without a lasting state."""
        return None
