"""Scans by the real program."""

from __future__ import annotations

import subprocess
from functools import cached_property
from pathlib import Path

import duckdb
from sysdock.library import Library
from sysdock.recording import Recording, connect
from sysdock.recording.native import find_native

TABLES = (
    "file_systems",
    "devices",
    "inodes",
    "extents",
    "free_extents",
    "layout",
    "paths",
    "environment",
    "import_issues",
)


class Scan:
    """The tables of a scan, and what the program said: `rows` of them as they lie on disk, `query` through views."""

    def __init__(self, folder: Path, messages: str) -> None:
        self.folder, self.messages = folder, messages
        self.database = duckdb.connect()
        for table in TABLES:
            if (folder / table).exists():
                self.database.execute(f"CREATE VIEW {table} AS FROM '{folder / table}/*.parquet'")

    def rows(self, sql: str) -> list[tuple]:
        """Rows of a query."""
        return self.database.execute(sql).fetchall()

    def one(self, sql: str) -> object:
        """The only value of the only row."""
        ((value,),) = self.rows(sql)
        return value

    def issues(self) -> dict[str, str]:
        """Import issues: kind and detail."""
        if not (self.folder / "import_issues").exists():
            return {}
        return dict(self.rows("SELECT issue, detail FROM import_issues"))

    def query(self, sql: str) -> list[tuple]:
        """Rows of a query of the views that analyses see, in which paths are columns."""
        return self._views.execute(sql).fetchall()

    @cached_property
    def _views(self) -> duckdb.DuckDBPyConnection:
        return connect(Recording.open(self.folder), Library())


def scanned(target: Path, folder: Path, *options: str, user: int | None = None) -> Scan:
    """Scans a target, as root or as another user; it must succeed."""
    words = [find_native(), "disk", "scan", target, "-o", folder, *options]
    who = {} if user is None else {"user": user, "group": user, "extra_groups": []}
    done = subprocess.run(words, capture_output=True, text=True, check=False, **who)
    assert done.returncode == 0, done.stderr
    return Scan(folder, done.stderr)
