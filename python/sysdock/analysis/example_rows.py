"""Adds rows of tables that no log has to the recording of an example, or makes one of nothing else."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from sysdock.analysis.errors import engine_errors
from sysdock.errors import UserError
from sysdock.library import Library
from sysdock.recording import Recording
from sysdock.recording.views import Views
from sysdock.recording.writing import add_part, empty_capture, empty_manifest, write_manifest

# Replacements of ids on a page: the column of the id, and the table that has both.
_NAMES = {"path": ("path_id", "paths"), "tid": ("task_id", "processes")}
_PLACE = "rows of the example"


def begin_without_log(
    folder: Path, library: Library, rows: Mapping[str, Sequence[Mapping[str, str]]]
) -> None:
    """Makes a recording with the paths that `rows` (by table) name, and no other table."""
    folder.mkdir()
    abouts = [library.table(name).about for name in rows]
    capture = empty_capture("example", "rows", next(filter(None, abouts), "calls"))
    manifest = empty_manifest({}, capture)
    for table in ("paths", "processes", "commands"):
        manifest["tables"][table] = {"rows": 0, "lost": 0, "parts": []}
    write_manifest(folder, manifest, lasting=False)
    paths = dict.fromkeys(row["path"] for each in rows.values() for row in each if row.get("path"))
    named = [{"path_id": str(number), "path": path, "kind": "file"} for number, path in enumerate(paths)]
    add_rows(folder, library, "paths", named)


def add_rows(folder: Path, library: Library, name: str, rows: Sequence[Mapping[str, str]]) -> None:
    """Writes `rows` (text, by column) as the table `name` of a recording, in place of what its log gave.

    A row may have `path` and `tid` instead of ids; the log of the example must have them. Empty text is NULL
    where a column may be that, else the empty text.
    """
    table = library.table(name)
    columns = [column.name for column in table.columns]
    empty = {c.name: None if c.nullable or c.type != "string" else "" for c in table.columns}
    # A line with more cells than the first has them under None.
    unknown = {key for row in rows for key in row} - {*columns, *_NAMES}
    if unknown:
        raise UserError(f"the table `{name}` has no column `{min(map(str, unknown))}`", place=_PLACE)
    recording = Recording.open(folder)
    replaced = {key for row in rows for key, text in row.items() if text and key in _NAMES} - {*columns}
    ids = _ids(recording, library, replaced)
    values = []
    for row in rows:
        full = dict(row) | {_NAMES[key][0]: _id(ids, key, row[key]) for key in replaced if row.get(key)}
        values.append([full.get(column) or empty[column] for column in columns])
    if recording.manifest["tables"].get(name, {}).get("rows"):
        manifest = {**recording.manifest, "tables": {**recording.manifest["tables"]}}
        del manifest["tables"][name]
        shutil.rmtree(folder / name)
        write_manifest(folder, manifest, lasting=False)
    with engine_errors(_PLACE):
        add_part(folder, library, name, values, lasting=False)


def _ids(recording: Recording, library: Library, keys: set[str]) -> dict[str, dict[str, int]]:
    """The ids of what a recording names, for each of `keys`, which are some of `_NAMES`."""
    if not keys:
        return {}
    views = Views(recording, library)
    views.make([_NAMES[key][1] for key in keys])
    ids = {}
    for key in keys:
        id_, side_table = _NAMES[key]
        known = views.connection.execute(f"SELECT {key}, min({id_}) FROM {side_table} GROUP BY 1").fetchall()
        ids[key] = {str(text): number for text, number in known}
    views.close()
    return ids


def _id(ids: Mapping[str, Mapping[str, int]], key: str, text: str) -> str:
    """The id of a path or thread, as text: 0 is an id too."""
    found = ids[key].get(text)
    if found is None:
        fact = f"the log has no {key} `{text}`"
        raise UserError(fact, "name it in a line of the log", _PLACE)
    return str(found)
