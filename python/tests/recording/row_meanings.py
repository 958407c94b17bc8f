"""What the rows of a recording say, whatever numbers its recorder gave: to compare a merge with its parts.

Each number that names a row of another table is replaced by what that row says, and then all rows are counted.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from sysdock.library import Library, Table
from sysdock.recording import Recording, Views

# What identifies a row of a table for a reader, given `k`, its key.
MEANINGS = {
    "processes": "SELECT task_id AS k, row(pid, tid, start_ts_ns, command) AS m FROM processes",
    "paths": "SELECT path_id AS k, row(path, kind) AS m FROM paths",
    "commands": "SELECT comm_id AS k, comm AS m FROM commands",
    "stacks": "SELECT stack_id AS k, list(row(frame, function, object, address) ORDER BY frame) AS m "
    "FROM stacks GROUP BY ALL",
    "locks": "SELECT lock_id AS k, name AS m FROM locks",
    "inodes": "SELECT inode AS k, row(p.path, i.size_bytes) AS m FROM inodes AS i LEFT JOIN paths AS p USING (path_id)",
    "devices": "SELECT device AS k, path AS m FROM devices",
}
# They say of which recording a row is.
OF_THE_MERGE = {("processes", "log"), ("processes", "rank"), ("import_issues", "source")}
NOT_COMPARED = {"environment", "ranks"}
# Places in an order, not names.
ORDERS = {("processes", "tree_order")}


def rows_in_words(recording: Recording, library: Library) -> dict[str, Counter[Any]]:
    """How often each row of each table occurs, numbers of rows replaced by what these say."""
    views = Views(recording, library)
    try:
        views.make(recording.tables)
        return {
            table.name: _rows(views, table)
            for table in library.tables()
            if table.name in recording.tables
            and not table.sql
            and table.merged
            and table.name not in NOT_COMPARED
        }
    finally:
        views.close()


def _rows(views: Views, table: Table) -> Counter[Any]:
    columns, joins = [], []
    for column in table.columns:
        place = (table.name, column.name)
        if place in OF_THE_MERGE | ORDERS or column.id_of in ("host", "cpus"):
            continue
        if column.id_of is None:
            columns.append(f't."{column.name}"')
        elif column.id_of in views.recording.tables:
            alias = f"m{len(joins)}"
            joins.append(f'LEFT JOIN ({MEANINGS[column.id_of]}) AS {alias} ON {alias}.k = t."{column.name}"')
            columns.append(f'row({alias}.m, t."{column.name}" IS NULL)')
    sql = f'SELECT {", ".join(columns)} FROM "{table.name}" AS t {" ".join(joins)}'
    return Counter(repr(row) for row in views.connection.execute(sql).fetchall())


def differences(parts: list[Recording], merged: Recording, library: Library) -> list[str]:
    """Tables of which the merge does not say what all its parts say together; empty where it does."""
    wanted: dict[str, Counter[Any]] = {}
    for part in parts:
        for name, rows in rows_in_words(part, library).items():
            wanted.setdefault(name, Counter()).update(rows)
    got = rows_in_words(merged, library)
    found = []
    for name in sorted(wanted.keys() | got.keys()):
        mine, theirs = got.get(name, Counter()), wanted.get(name, Counter())
        if name in ("paths", "commands"):
            # What several name is there once.
            mine, theirs = Counter(set(mine)), Counter(set(theirs))
        if mine != theirs:
            one = next(iter((theirs - mine) + (mine - theirs)))
            found.append(
                f"{name}: {(theirs - mine).total()} missing, {(mine - theirs).total()} too many: {one}"
            )
    return found
