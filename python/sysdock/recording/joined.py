"""Two recordings seen as one: the tables of another in addition to a recording's own."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from sysdock.recording.manifest import Recording


class JoinedRecording(Recording):
    """`recording` with the tables and captures of `other` after its own; nothing is copied.

    A table that both have is that of `recording`.
    """

    def __init__(self, recording: Recording, other: Recording) -> None:
        tables = {**other.manifest["tables"], **recording.manifest["tables"]}
        captures = [*recording.captures, *other.captures]
        super().__init__(recording.folder, {**recording.manifest, "tables": tables, "captures": captures})
        self._both = (recording, other)

    def parts(self, table: str) -> list[Path]:
        """Paths of the parts of a table, in order, in the folder of whoever has it."""
        return self._owner(table).parts(table)

    def verify(self, tables: Iterable[str]) -> None:
        """Checks the parts of `tables`, as each of the two does."""
        for table in tables:
            self._owner(table).verify([table])

    def damage(self) -> list[str]:
        """One line per part that is missing or has a wrong size, of both."""
        return [line for recording in self._both for line in recording.damage()]

    def _owner(self, table: str) -> Recording:
        recording, other = self._both
        # Whichever has none says so in its own words.
        return other if table in other.tables and table not in recording.tables else recording
