"""One scan as a whole, in one line: the same in a series, a comparison and the answer of a scan."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sysdock.analysis import Session
from sysdock.library import Column, Library
from sysdock.recording import Recording

ANALYSIS = "disk/summary"
_SHOWN = (
    "files",
    "allocated_bytes",
    "free_bytes",
    "free_extents",
    "largest_free_bytes",
    "fragments",
    "per_file",
    "fragmented_files",
    "layout_score",
)


def facts(recording: Recording, library: Library) -> dict[str, Any] | None:
    """The row of `ANALYSIS` by the names of its columns; None: no file system was read."""
    with Session(recording, library) as session:
        result = session.run(ANALYSIS)
        names = [column.name for column in result.columns]
        return next((dict(zip(names, row, strict=True)) for row in result.rows(1)), None)


def columns(library: Library) -> tuple[Column, ...]:
    """The columns that are shown."""
    known = {column.name: column for column in library.analysis(ANALYSIS).columns}
    return tuple(known[name] for name in _SHOWN)


def shown(found: Mapping[str, Any]) -> tuple[Any, ...]:
    """Values under `columns`."""
    return tuple(found[name] for name in _SHOWN)
