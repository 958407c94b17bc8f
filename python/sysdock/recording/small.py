"""Views of a small recording: tables in memory, and plans that are not optimized.

On a few thousand rows, much of a statement's time goes into its plan: the engine opens the Parquet files each
time, and looks for the best of many plans that would all do. Here all is read once.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import Self

from sysdock.library import Library
from sysdock.recording.filters import Filters
from sysdock.recording.limits import is_trusted
from sysdock.recording.manifest import Recording
from sysdock.recording.mentions import Mentions
from sysdock.recording.views import Joins, Views, quoted

# Limits of all tables together. With more, finding a good plan is worth its cost.
MOST_ROWS, MOST_BYTES = 20_000, 4 << 20
# Without these, a join is a product of two tables that is filtered afterwards.
_KEPT_OPTIMIZERS = {"filter_pushdown", "deliminator", "unnest_rewriter"}


def is_small(recording: Recording) -> bool:
    """Whether reading all of it costs less than planning a few statements well.

    Not one from elsewhere, of which a few bytes may hold much, and which is read no further than it must be.
    """
    rows = sum(map(recording.rows, recording.tables))
    size = sum(map(recording.bytes_on_disk, recording.tables))
    return rows <= MOST_ROWS and size <= MOST_BYTES and is_trusted(recording)


class SmallViews(Views):
    """Like `Views`, shared by all threads: a table has the rows of its view."""

    def __init__(
        self,
        recording: Recording,
        library: Library,
        filters: Filters | None = None,
        settings: dict[str, str] | None = None,
    ) -> None:
        super().__init__(recording, library, filters, settings)
        # By table: held while its rows are read. Nothing else is waited for meanwhile.
        self._locks: dict[str, threading.RLock] = {}
        found = self.connection.execute("SELECT name FROM duckdb_optimizers()").fetchall()
        left_out = [name for (name,) in found if name not in _KEPT_OPTIMIZERS]
        self.connection.execute(f"SET GLOBAL disabled_optimizers = '{','.join(left_out)}'")

    def for_thread(self) -> Self:
        """The same tables on a separate connection, for another thread."""
        other = super().for_thread()
        other._made = self._made
        return other

    def create(self, name: str, select: str) -> None:
        """Makes the table `name`, in the place of an earlier one."""
        self.connection.execute(f"CREATE OR REPLACE TABLE {quoted(name)} AS {select}")

    def add_empty(self, tables: Iterable[str]) -> None:
        """Tables without rows in place of those `tables` that the recording lacks."""
        for name in tables:
            with self._lock(name):
                super().add_empty([name])

    def _lock(self, name: str) -> threading.RLock:
        return self._locks.setdefault(name, threading.RLock())

    def _make_with(self, name: str, named: Mentions | None) -> None:
        with self._lock(name):
            super()._make_with(name, named)

    def _joins(self, name: str, named: Mentions | None) -> Joins:
        """Columns of an earlier statement stay: its plan may not have been made yet."""
        return super()._joins(name, named) | self._made.get(name, frozenset())
