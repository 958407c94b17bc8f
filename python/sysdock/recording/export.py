"""Writes the tables of a recording as Parquet or CSV files: as the views have them, filters applied."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from sysdock import to_disk
from sysdock.errors import UserError
from sysdock.library import Library, Table
from sysdock.own_folder import created, refuse_existing
from sysdock.recording.filters import Filters
from sysdock.recording.harmless import harmless
from sysdock.recording.manifest import DAMAGE_HINT, Recording
from sysdock.recording.views import Views
from sysdock.recording.writing import as_os_error
from sysdock.sentences import say
from sysdock.to_disk import umask

FORMATS = {
    "parquet": "FORMAT parquet, COMPRESSION zstd, PARQUET_VERSION v2",
    "csv": "FORMAT csv, HEADER true",
}


@dataclass(frozen=True)
class Exported:
    """A file that was written."""

    table: str
    path: Path
    rows: int


def export(
    recording: Recording,
    library: Library,
    folder: Path,
    format: str,
    filters: Filters | None = None,
    *,
    raw: bool = False,
) -> tuple[list[Exported], list[str]]:
    """Writes one file per table into `folder`, new or empty; returns them, and notes on the filters.

    raw: texts in CSV as they are, also what would steer a terminal or a spreadsheet.
    """
    from sysdock.engine import duckdb

    refuse_existing(folder)
    views = Views(recording, library, filters)
    tables = [table for name in views.available if (table := views.table(name)).stored]
    _make_views(views, tables)
    try:
        with created(folder, 0o777 & ~umask()) as place:
            written = [
                _write(views, table, place / f"{table.name}.{format}", format, raw=raw or format != "csv")
                for table in tables
            ]
            to_disk.sync(place)
        named = [replace(each, path=folder / each.path.name) for each in written]
        return named, [say(note, "en") for note in views.notes]
    except OSError as error:
        raise UserError(f"cannot be written: {error.strerror}", place=str(folder)) from None
    except duckdb.Error as error:
        reason = as_os_error(error, folder).strerror
        raise UserError(f"cannot be written: {reason}", place=str(folder)) from None
    finally:
        views.close()


def _make_views(views: Views, tables: list[Table]) -> None:
    """Makes their views. Summaries are counted, and so parts of the recording are read."""
    from sysdock.engine import duckdb

    try:
        views.make([table.name for table in tables])
    except duckdb.Error as error:
        fact = f"the tables cannot be read: {str(error).splitlines()[0]}"
        raise UserError(fact, DAMAGE_HINT, str(views.recording.folder)) from None


def _write(views: Views, table: Table, path: Path, format: str, *, raw: bool) -> Exported:
    # A join does not keep the order of the rows.
    keys = [column for column in ("ts_ns", "task_id") if table.has(column)]
    order = f" ORDER BY {', '.join(keys)}" if keys and table.joined else ""
    # Half a file must not look like a whole one.
    part = path.with_name(f".{path.name}.part")
    target = str(part).replace("'", "''")
    select = f'SELECT * FROM "{table.name}"{order}'
    if not raw:
        select = harmless(select, [column.name for column in table.all_columns if column.type == "string"])
    copy = f"COPY ({select}) TO '{target}' ({FORMATS[format]})"
    try:
        [(rows,)] = views.connection.execute(copy).fetchall()
        to_disk.sync(part)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
    return Exported(table.name, path, rows)
