"""Fixtures: scans by the real program."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest

sys.path.insert(0, str(Path(__file__).parent))

TABLES = (
    "file_systems",
    "inodes",
    "extents",
    "free_extents",
    "layout",
    "paths",
    "environment",
    "import_issues",
)


class Scan:
    """The tables of a scan, as they lie on disk."""

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


@pytest.fixture
def scan(native: Path, tmp_path: Path) -> Callable[..., Scan]:
    """Scan a target."""

    def run(target: Path, *options: str) -> Scan:
        folder = tmp_path / f"scan-{len(list(tmp_path.glob('scan-*')))}"
        command = [native, "disk", "scan", target, "-o", folder, *options]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return Scan(folder, done.stderr)

    return run
