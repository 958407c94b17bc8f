"""Copies a recording with some of its texts changed or left out; the copy is a recording like any other.

Tables in which nothing changes are copied byte for byte.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sysdock.library import Library, Table
from sysdock.recording.manifest import Recording
from sysdock.recording.views import engine_settings
from sysdock.recording.writing import as_os_error, quoted_path, stated_part, write_manifest

if TYPE_CHECKING:
    import duckdb

_CHUNK = 100_000


@dataclass(frozen=True)
class Change:
    """The replacement of a column of texts: a function of its value and of those of the columns `others`."""

    function: Callable[..., str | None]
    others: tuple[str, ...] = ()


# For a column: a change, or None to keep it as it is.
Plan = Callable[[str, str], Change | None]


def rewrite(
    recording: Recording,
    library: Library,
    folder: Path,
    plan: Plan,
    manifest: dict[str, Any],
    leave_out: tuple[str, ...] = (),
) -> Recording:
    """Writes the copy into the new `folder`, and opens it; `manifest` replaces keys of recording.json.

    It is temporary, so it is not brought to the disk.

    Tables that the library does not know are left out: no one can say what is in them. So are summaries: they
    are counted again from what is in the copy.
    """
    from sysdock.engine import duckdb

    tables = [
        table
        for table in library.tables()
        if table.stored and not table.sql and table.name in recording.tables and table.name not in leave_out
    ]
    recording.verify(table.name for table in tables)
    folder.mkdir(parents=True, mode=0o700)
    connection = duckdb.connect(config=engine_settings(recording))
    try:
        entries = {table.name: _table(connection, recording, table, folder, plan) for table in tables}
    finally:
        connection.close()
    content = {**recording.manifest, **manifest, "tables": entries}
    write_manifest(folder, content, lasting=False)
    return Recording.open(folder)


def _table(
    connection: duckdb.DuckDBPyConnection, recording: Recording, table: Table, folder: Path, plan: Plan
) -> dict[str, Any]:
    texts = [column.name for column in table.columns if column.type == "string"]
    changes = {name: change for name in texts if (change := plan(table.name, name))}
    old = recording.manifest["tables"][table.name]
    parts = []
    for number, (source, entry) in enumerate(zip(recording.parts(table.name), old["parts"], strict=True)):
        target = folder / table.name / f"part-{number:04}.parquet"
        target.parent.mkdir(exist_ok=True, mode=0o700)
        if changes:
            _write(connection, table, source, target, changes)
        else:
            shutil.copyfile(source, target)
        parts.append(stated_part(folder, target, entry["rows"]))
    return {"rows": old["rows"], "lost": old.get("lost") or 0, "parts": parts}


def _write(
    connection: duckdb.DuckDBPyConnection,
    table: Table,
    source: Path,
    target: Path,
    changes: dict[str, Change],
) -> None:
    """One part: its rows in order, with the changed texts from one table per column."""
    from sysdock.engine import duckdb

    read = f"read_parquet({quoted_path(source)}, file_row_number = true)"
    joins, selected = [], {column.name: f't."{column.name}"' for column in table.columns}
    for number, (name, change) in enumerate(changes.items()):
        keys = (name, *change.others)
        _map(connection, f"map{number}", read, keys, change)
        on = " AND ".join(f't."{key}" IS NOT DISTINCT FROM m{number}."{key}"' for key in keys)
        joins.append(f"LEFT JOIN map{number} AS m{number} ON {on}")
        selected[name] = f"m{number}.changed"
    columns = ", ".join(f'{expression} AS "{name}"' for name, expression in selected.items())
    select = f"SELECT {columns} FROM {read} AS t {' '.join(joins)} ORDER BY t.file_row_number"
    copy = f"COPY ({select}) TO {quoted_path(target)} (FORMAT parquet, COMPRESSION zstd, PARQUET_VERSION v2)"
    try:
        connection.execute(copy)
    except duckdb.IOException as error:
        raise as_os_error(error, target) from None
    for number in range(len(changes)):
        connection.execute(f"DROP TABLE map{number}")


def _map(
    connection: duckdb.DuckDBPyConnection, name: str, read: str, keys: tuple[str, ...], change: Change
) -> None:
    named = ", ".join(f'"{key}"' for key in keys)
    columns = ", ".join(f'"{key}" VARCHAR' for key in keys)
    connection.execute(f"CREATE TEMP TABLE {name} ({columns}, changed VARCHAR)")
    distinct = connection.cursor().execute(f"SELECT DISTINCT {named} FROM {read}")
    while rows := distinct.fetchmany(_CHUNK):
        # A NULL stays one: there is nothing to hide.
        changed = [None if row[0] is None else change.function(*row) for row in rows]
        lists = {f"c{place}": [row[place] for row in rows] for place in range(len(keys))}
        lists["changed"] = changed
        unnested = ", ".join(f"unnest(CAST(${key} AS VARCHAR[]))" for key in lists)
        connection.execute(f"INSERT INTO {name} SELECT {unnested}", lists)
