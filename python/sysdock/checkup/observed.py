"""Makes tables of what the user gave in addition to a recording, for the rules to read.

It lies in a temporary folder. Where there is a recording of the job, rules see the tables of both together.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sysdock.analysis import Session
from sysdock.analysis.errors import engine_errors
from sysdock.library import Library
from sysdock.recording import Recording
from sysdock.recording.joined import JoinedRecording
from sysdock.recording.writing import add_part, empty_capture, empty_manifest, write_manifest
from sysdock.scratch import scratch_folder

Rows = Sequence[Mapping[str, Any]]
FAMILY = "job"


@contextmanager
def observed(tables: Mapping[str, Rows], recording: Recording | None = None) -> Iterator[Session]:
    """A session over `tables`, rows by name of the column, and over the recording where there is one."""
    library = Library()
    with scratch_folder() as name:
        folder = Path(name)
        capture = empty_capture("checkup", "rows", FAMILY)
        capture["total"] = capture["understood"] = sum(map(len, tables.values()))
        write_manifest(folder, empty_manifest({}, capture), lasting=False)
        for table, rows in tables.items():
            columns = [column.name for column in library.table(table).columns]
            with engine_errors(f"what was given for `{table}`"):
                values = [[row[column] for column in columns] for row in rows]
                add_part(folder, library, table, values, lasting=False)
        own = Recording.open(folder)
        with Session(JoinedRecording(recording, own) if recording else own, library) as session:
            yield session
