"""The child process in which a user's SQL runs: `python -m sysdock.analysis.worker`.

Reads its task (see `sysdock.analysis.query.Task`) as JSON from standard input, writes the rows to standard
output, and how it ended as one JSON object to the file descriptor `status_fd`. Started again, never forked: a
child that was forked after the engine was used hung.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

# All that is imported later elsewhere: in the sandbox, no file of Python's can be opened.
import duckdb

import sysdock.engine  # noqa: F401
from sysdock.analysis import sandbox
from sysdock.analysis.errors import engine_errors
from sysdock.analysis.query import BASE_MEMORY_MB, Task
from sysdock.analysis.writing import table_lines, write_csv, write_json
from sysdock.errors import UserError
from sysdock.library import Column, Library
from sysdock.recording import Filters, Recording, Views
from sysdock.recording.process import die_with_parent
from sysdock.sentences import catalogue, say

_EXPLAIN = re.compile(r"\s*EXPLAIN\s+(ANALYZE\s+)?", re.IGNORECASE)
_BATCH = 1000


def main() -> None:
    """Runs the one task and reports how it went."""
    task = Task(**json.load(sys.stdin))
    die_with_parent(task.parent)
    with os.fdopen(task.status_fd, "w") as status:
        try:
            report = _run(task)
        except UserError as error:
            # From inside, the recording is the working folder.
            place = task.recording if error.place == "." else error.place
            report = {"fact": error.fact, "hint": error.hint, "place": place}
        except BrokenPipeError:
            report = {"broken_pipe": True}
        except OSError as error:
            report = {"fact": (error.strerror or str(error)).lower(), "hint": None, "place": "the output"}
        except MemoryError:
            report = {
                "fact": f"not enough memory ({task.memory_mb} MB are allowed)",
                "hint": None,
                "place": None,
            }
        except KeyboardInterrupt:
            report = {"interrupted": True}
        json.dump(report, status)
        status.flush()
        if "more" not in report:
            # A failed write must not be repeated at the end of the interpreter.
            os._exit(0)


def _run(task: Task) -> dict[str, Any]:
    folder = Path(task.recording).resolve()
    # From inside, no name of a folder above can be taken for a pattern, which would have to be listed.
    os.chdir(folder)
    recording = Recording.open(Path())
    library = Library(task.knowhow)
    library.tables()
    # Notes on filters are said when nothing can be opened any more.
    for subject in ("languages", "recording"):
        catalogue().subject(subject)
    lacking = sandbox.confine(
        (2 * task.memory_mb + BASE_MEMORY_MB) << 20,
        task.seconds * task.threads + 5,
        [folder],
        Path(task.spill),
    )
    views = _locked(task, recording, library, folder)
    try:
        with engine_errors():
            views.connection.execute(task.sql)
    except UserError as error:
        raise _explained(error, views) from None
    more = _write(task, views.connection)
    return {"more": more, "notes": [say(note, "en") for note in views.notes], "lacking": lacking}


def _locked(task: Task, recording: Recording, library: Library, folder: Path) -> Views:
    """Connects, makes the views that the statement mentions, and closes the engine: the lock comes last."""
    settings = {
        "memory_limit": f"{task.memory_mb}MB",
        "threads": str(task.threads),
        "temp_directory": task.spill,
        "allow_community_extensions": "false",
        "max_execution_time": str(task.seconds * 1000),
    }
    with engine_errors():
        views = Views(recording, library, Filters(**task.filters), settings)
        _one_select(views.connection, task.sql)
        views.prepare(task.sql)
        quoted = str(folder).replace("'", "''")
        views.connection.execute(f"SET allowed_directories = ['{quoted}']")
        views.connection.execute("SET enable_external_access = false")
        views.connection.execute("SET lock_configuration = true")
    return views


def _one_select(connection: duckdb.DuckDBPyConnection, sql: str) -> None:
    """Refuses everything but one SELECT, or one EXPLAIN of a SELECT."""
    hint = "give one SELECT"
    statements = connection.extract_statements(sql)
    if len(statements) != 1:
        raise UserError(f"{len(statements)} statements instead of one", hint)
    kind = statements[0].type
    if kind == duckdb.StatementType.EXPLAIN:
        # EXPLAIN ANALYZE runs what it explains, so that must be a SELECT as well.
        inner = connection.extract_statements(_EXPLAIN.sub("", sql, count=1))
        kind = inner[0].type if len(inner) == 1 else kind
    if kind != duckdb.StatementType.SELECT:
        raise UserError(f"a {kind.name} statement is not allowed here", hint)


def _explained(error: UserError, views: Views) -> UserError:
    if error.hint:
        return error
    # Absent tables and columns are what goes wrong most; the names help with all other mistakes too.
    tables = ", ".join(views.available)
    return UserError(error.fact, f"the tables are {tables}; `sysdock list tables` shows their columns")


def _write(task: Task, connection: duckdb.DuckDBPyConnection) -> bool:
    """Writes the rows; True where the limit cut them off."""
    names = [entry[0] for entry in connection.description or []]
    types = [str(entry[1]) for entry in connection.description or []]
    rows = _Rows(connection, task.limit)
    out = sys.stdout
    if task.format == "csv":
        write_csv(out, names, rows, raw=task.raw)
    elif task.format == "json":
        write_json(out, _distinct(names), rows)
    else:
        columns = [
            Column(name, _shown_type(type_), None, "") for name, type_ in zip(names, types, strict=True)
        ]
        for line in table_lines(columns, list(rows), task.width):
            out.write(line + "\n")
    out.flush()
    return rows.more


def _shown_type(type_: str) -> str:
    numeric = (
        "INT" in type_ or type_ in ("DOUBLE", "FLOAT") or type_.startswith("DECIMAL")
    ) and "[" not in type_
    return "DOUBLE" if numeric and not type_.startswith(("STRUCT", "MAP", "INTERVAL")) else "VARCHAR"


def _distinct(names: list[str]) -> list[str]:
    """Names without repetition: an object can hold a key once."""
    return [
        f"{name}_{names[:i].count(name) + 1}" if name in names[:i] else name for i, name in enumerate(names)
    ]


class _Rows:
    """Rows of a result up to a limit (0: all), fetched in batches; `more` says whether any were left."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, limit: int) -> None:
        self.connection = connection
        self.limit = limit
        self.more = False

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        count = 0
        while True:
            for row in self.fetch():
                if self.limit and count == self.limit:
                    self.more = True
                    return
                count += 1
                yield row
            if not self.last:
                return

    def fetch(self) -> list[tuple[Any, ...]]:
        with engine_errors():
            rows = self.connection.fetchmany(_BATCH)
        self.last = len(rows) == _BATCH
        return rows


if __name__ == "__main__":
    main()
