"""The settings of a real server, asked by `psql`."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from dataclasses import dataclass, replace
from typing import Any, TypedDict

from sysdock.diskio.transactions import PAGE, Settings
from sysdock.errors import UserError

_SETTINGS = (
    "server_version_num",
    "shared_buffers",
    "work_mem",
    "max_wal_size",
    "checkpoint_timeout",
    "checkpoint_completion_target",
    "commit_delay",
    "commit_siblings",
    "wal_writer_delay",
    "full_page_writes",
    "synchronous_commit",
    "fsync",
    "wal_sync_method",
    "data_directory",
)
_UNITS = {
    "B": 1,
    "kB": 1 << 10,
    "8kB": 8 << 10,
    "MB": 1 << 20,
    "GB": 1 << 30,
    "us": 1e-6,
    "ms": 1e-3,
    "s": 1.0,
    "min": 60.0,
}
_WAL_STATISTICS_FROM = 140_000
# Below this, what a server counted says nothing of its transactions.
_COMMITS = 1000
_PATIENCE_S = 30

_QUERY = """
SELECT json_build_object(
  'settings', (SELECT json_object_agg(name, json_build_array(setting, unit)) FROM pg_settings 
    WHERE name IN ({names})),
  'database', current_database(),
  'database_bytes', pg_database_size(current_database()),
  'table_bytes', pg_table_size(to_regclass('pgbench_accounts')),
  'index_bytes', pg_indexes_size(to_regclass('pgbench_accounts')),
  'commits', (SELECT sum(xact_commit) FROM pg_stat_database),
  'hit', (SELECT sum(heap_blks_hit + coalesce(idx_blks_hit, 0)) FROM pg_statio_user_tables),
  'read', (SELECT sum(heap_blks_read + coalesce(idx_blks_read, 0)) FROM pg_statio_user_tables),
  'has_pgbench', to_regclass('pgbench_branches') IS NOT NULL
)"""
_WAL_QUERY = """
SELECT json_build_object('bytes', wal_bytes, 'images', wal_fpi, 'flushes', wal_sync)
FROM pg_stat_wal"""


class Found(TypedDict):
    """Answers of the server."""

    settings: dict[str, list[str | None]]
    database: str
    database_bytes: int
    table_bytes: int | None
    index_bytes: int | None
    commits: int | None
    hit: int | None
    read: int | None
    has_pgbench: bool


@dataclass(frozen=True)
class Server:
    """A server as it was asked."""

    settings: Settings
    database: str
    # Whether it has tables of pgbench.
    has_pgbench: bool
    version: int
    fsync: bool
    sync_method: str
    data_directory: str | None
    # Since its statistics were reset; None: it does not say.
    log_bytes_per_commit: float | None
    image_share: float | None
    commits_per_flush: float | None


def ask(dsn: str, own: Settings) -> Server:
    """Settings that a server reports; `own`: values for those that it does not report.

    UserError: there is no psql, or the server does not answer.
    """
    names = ", ".join(f"'{name}'" for name in _SETTINGS)
    found: Found = _answer(dsn, _QUERY.format(names=names))
    version = int(found["settings"]["server_version_num"][0] or 0)
    scale = int(_answer(dsn, "SELECT count(*) FROM pgbench_branches")) if found["has_pgbench"] else 0
    wal = _answer(dsn, _WAL_QUERY) if version >= _WAL_STATISTICS_FROM else None
    return parsed(found, wal, scale, own)


def parsed(found: Found, wal: dict[str, Any] | None, scale: int, own: Settings) -> Server:
    """The settings of these answers. `scale`: that of pgbench's tables, 0 if there are none."""
    values = {name: _value(*pair) for name, pair in found["settings"].items()}
    commits = found["commits"] or 0
    images = wal["images"] * PAGE if wal else 0
    counts = wal is not None and commits >= _COMMITS
    per_commit = max(wal["bytes"] - images, 0) / commits if wal and counts else None
    # Size of the data that pgbench reads and writes at random; it grows with use.
    index = found["index_bytes"] or 0
    accounts = (found["table_bytes"] or 0) + index
    pages = (found["hit"] or 0) + (found["read"] or 0)
    settings = replace(
        own,
        scale=scale or own.scale,
        shared_buffers=int(values["shared_buffers"]),
        work_mem=int(values["work_mem"]),
        max_wal_size=int(values["max_wal_size"]),
        checkpoint_timeout_s=float(values["checkpoint_timeout"]),
        completion_target=float(values["checkpoint_completion_target"]),
        commit_delay_s=float(values["commit_delay"]) * 1e-6,
        commit_siblings=int(values["commit_siblings"]),
        wal_writer_delay_s=float(values["wal_writer_delay"]),
        full_page_writes=values["full_page_writes"] == "on",
        synchronous_commit=values["synchronous_commit"] not in ("off",) and values["fsync"] == "on",
        database_bytes=accounts if scale and accounts else found["database_bytes"],
        index_part=index / accounts if scale and accounts else own.index_part,
        # With tables of pgbench its own transactions are meant. Loading them made most of the log that
        # was counted.
        wal_bytes=own.wal_bytes if own.wal_bytes is not None or scale else per_commit,
        buffer_misses=(found["read"] or 0) / pages if pages >= _COMMITS else None,
    )
    return Server(
        settings,
        found["database"],
        scale > 0,
        int(values["server_version_num"]),
        values["fsync"] == "on",
        str(values["wal_sync_method"]),
        str(values["data_directory"]) if "data_directory" in values else None,
        per_commit,
        min(images / wal["bytes"], 1.0) if wal and wal["bytes"] else None,
        commits / wal["flushes"] if wal and counts and wal["flushes"] else None,
    )


def _value(setting: str | None, unit: str | None) -> Any:
    """A setting in bytes or seconds where it has a unit, else as it is."""
    if setting is None or unit is None:
        return setting
    if unit not in _UNITS:
        raise UserError(
            f"the unit `{unit}` of a setting is not known", "report it; this server may be newer than sysdock"
        )
    return float(setting) * _UNITS[unit]


def _answer(dsn: str, query: str) -> Any:
    """One value, as JSON. UserError with the message of psql."""
    program = shutil.which("psql")
    if program is None:
        raise UserError(
            "psql was not found",
            "install it (on Debian: apt-get install postgresql-client), or give --scale and others",
        )
    command = [program, "-X", "-w", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-d", dsn, "-c", query]
    environment = {"PGCONNECT_TIMEOUT": "5", **os.environ, "LC_ALL": "C"}
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            env=environment,
            timeout=_PATIENCE_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise UserError(
            f"the server did not answer within {_PATIENCE_S} s",
            "see pg_stat_activity",
            "--from-postgres",
        ) from None
    if done.returncode:
        errors = [line.strip() for line in done.stderr.splitlines() if line.strip()] or [
            "psql printed nothing"
        ]
        hint = "try it: psql -d 'DSN'; a DSN is as in `host=/run/postgresql dbname=app user=app`"
        raise UserError(
            " ".join(errors[:2]).removeprefix("psql: ").removeprefix("error: "),
            hint,
            "--from-postgres",
        )
    try:
        return json.loads(done.stdout)
    except ValueError:
        raise UserError(
            "the answer of psql was not understood", "is it a PostgreSQL server?", "--from-postgres"
        ) from None
