"""Files that moved between two scans of a file system."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sysdock.disk import totals
from sysdock.errors import UserError
from sysdock.library import Column, Library
from sysdock.recording import Recording
from sysdock.recording.views import Views

TABLES = ("file_systems", "inodes", "extents", "paths")
BEFORE = "_before"
COLUMNS = (
    Column("path", "VARCHAR", None, "The file, by its path."),
    Column(
        "state",
        "VARCHAR",
        None,
        "new, lost, moved (some of it is stored elsewhere), or changed (grown, shrunk).",
    ),
    Column("fragments_before", "BIGINT", None, "Fragments in the first scan."),
    Column("fragments_after", "BIGINT", None, "Fragments in the second scan."),
    Column("bytes_before", "BIGINT", "B", "Space on the device in the first scan."),
    Column("bytes_after", "BIGINT", "B", "Space on the device in the second scan."),
    Column("kept_bytes", "BIGINT", "B", "Data at the same place as before, in the file and on the device."),
    Column("transferred_bytes", "BIGINT", "B", "Data that was there before and is stored elsewhere now."),
)
_SCAN = Column("scan", "VARCHAR", None, "Which of the two.")

# Pieces with one distance between place in the file and place on the device overlap where nothing moved.
_FILES_SQL = f"""WITH held_before AS (
    SELECT p.path, i.inode, i.fragments, i.allocated_bytes
    FROM inodes{BEFORE} AS i JOIN paths{BEFORE} AS p USING (path_id)
), held_after AS (
    SELECT p.path, i.inode, i.fragments, i.allocated_bytes
    FROM inodes_after AS i JOIN paths_after AS p USING (path_id)
), pieces_before AS (
    SELECT h.path, e.device, e.physical_bytes - e.logical_bytes AS distance, e.logical_bytes AS first,
        e.logical_bytes + e.length_bytes AS last
    FROM extents{BEFORE} AS e JOIN held_before AS h USING (inode) WHERE e.physical_bytes IS NOT NULL
), pieces_after AS (
    SELECT h.path, e.device, e.physical_bytes - e.logical_bytes AS distance, e.logical_bytes AS first,
        e.logical_bytes + e.length_bytes AS last
    FROM extents_after AS e JOIN held_after AS h USING (inode) WHERE e.physical_bytes IS NOT NULL
), kept AS (
    SELECT b.path, sum(least(b.last, a.last) - greatest(b.first, a.first)) AS bytes
    FROM pieces_before AS b
    JOIN pieces_after AS a ON a.path = b.path AND a.device = b.device AND a.distance = b.distance
        AND a.first < b.last AND b.first < a.last
    GROUP BY b.path
), files AS (
    SELECT coalesce(b.path, a.path) AS path,
        b.fragments AS fragments_before, a.fragments AS fragments_after,
        b.allocated_bytes AS bytes_before, a.allocated_bytes AS bytes_after,
        least(coalesce(k.bytes, 0), coalesce(b.allocated_bytes, 0),
            coalesce(a.allocated_bytes, 0)) AS kept_bytes
    FROM held_before AS b
    FULL JOIN held_after AS a ON a.path = b.path
    LEFT JOIN kept AS k ON k.path = coalesce(b.path, a.path)
), judged AS (
    SELECT *,
        CASE WHEN bytes_before > 0 AND bytes_after > 0 THEN least(bytes_before, bytes_after) - kept_bytes
            ELSE 0 END AS transferred_bytes
    FROM files
)
SELECT path,
    CASE WHEN bytes_before IS NULL THEN 'new' WHEN bytes_after IS NULL THEN 'lost'
        WHEN transferred_bytes > 0 THEN 'moved' ELSE 'changed' END AS state,
    fragments_before, fragments_after, bytes_before, bytes_after, kept_bytes, transferred_bytes
FROM judged
WHERE bytes_before IS NULL OR bytes_after IS NULL OR transferred_bytes > 0 OR bytes_before <> bytes_after
    OR fragments_before <> fragments_after
ORDER BY greatest(coalesce(bytes_before, 0), coalesce(bytes_after, 0)) - kept_bytes DESC, path"""


@dataclass(frozen=True)
class Difference:
    """Rows under `COLUMNS`, the largest change first, and of both scans as a whole, under `total_columns`."""

    files: list[tuple[Any, ...]]
    totals: list[tuple[Any, ...]]


def difference(before: Recording, after: Recording, library: Library) -> Difference:
    """Compares two scans; a UserError says why they cannot be."""
    views = Views(after, library)
    try:
        views.add_stored(before, BEFORE, TABLES)
        views.add_stored(after, "_after", TABLES)
        _refuse_others(views)
        files = views.connection.execute(_FILES_SQL).fetchall()
    finally:
        views.close()
    both = (("before", before), ("after", after))
    found = [(name, totals.facts(one, library)) for name, one in both]
    return Difference(files, [(name, *totals.shown(facts)) for name, facts in found if facts is not None])


def total_columns(library: Library) -> tuple[Column, ...]:
    """Columns of the lines of the two scans: those of a series."""
    return (_SCAN, *totals.columns(library))


def _refuse_others(views: Views) -> None:
    """Scans of two file systems have nothing in common."""
    sql = "SELECT source, uuid FROM file_systems"
    [(source_before, uuid_before)] = views.connection.execute(sql + BEFORE).fetchall() or [(None, None)]
    [(source, uuid)] = views.connection.execute(f"{sql}_after").fetchall() or [(None, None)]
    same = uuid == uuid_before if uuid and uuid_before else source == source_before
    if not same:
        fact = f"these are scans of two file systems: {source_before} and {source}"
        raise UserError(fact, "scan the same file system twice")
