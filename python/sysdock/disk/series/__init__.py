"""Scans of one file system over time: as lines, as a film strip and as a graph."""

from sysdock.disk.series.page import page
from sysdock.disk.series.picture import picture
from sysdock.disk.series.scans import (
    Snapshot,
    columns,
    folders,
    mark,
    next_name,
    opened_or_made,
    remove_older,
    rows,
    snapshots,
)
from sysdock.disk.series.strip import StripOptions, film_strip

__all__ = [
    "Snapshot",
    "StripOptions",
    "columns",
    "film_strip",
    "folders",
    "mark",
    "next_name",
    "opened_or_made",
    "page",
    "picture",
    "remove_older",
    "rows",
    "snapshots",
]
