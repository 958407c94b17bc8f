"""What a server answers is understood, and what goes wrong is said."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from sysdock.diskio import server
from sysdock.diskio.server import Found, parsed
from sysdock.diskio.transactions import Settings
from sysdock.errors import UserError

# As PostgreSQL 15.14 of Debian 12 answered.
ANSWER: Found = {
    "settings": {
        "server_version_num": ["150014", None],
        "shared_buffers": ["16384", "8kB"],
        "work_mem": ["4096", "kB"],
        "max_wal_size": ["1024", "MB"],
        "checkpoint_timeout": ["300", "s"],
        "checkpoint_completion_target": ["0.9", None],
        "commit_delay": ["100", None],
        "commit_siblings": ["5", None],
        "wal_writer_delay": ["200", "ms"],
        "full_page_writes": ["on", None],
        "synchronous_commit": ["on", None],
        "fsync": ["on", None],
        "wal_sync_method": ["fdatasync", None],
    },
    "database": "app",
    "database_bytes": 123_456_789,
    "table_bytes": None,
    "index_bytes": None,
    "commits": 40_000,
    "hit": 90_000,
    "read": 10_000,
    "has_pgbench": False,
}
WAL = {"bytes": 100_000_000, "images": 10_000, "flushes": 10_000, "writes": 18_493}


def test_settings_are_in_bytes_and_seconds() -> None:
    found = parsed(ANSWER, WAL, 0, Settings(cores=3))
    settings = found.settings
    assert (settings.shared_buffers, settings.work_mem, settings.max_wal_size) == (
        128 << 20,
        4 << 20,
        1 << 30,
    )
    assert (settings.checkpoint_timeout_s, settings.wal_writer_delay_s) == (300, 0.2)
    assert settings.commit_delay_s == pytest.approx(100e-6)
    assert (settings.synchronous_commit, settings.full_page_writes, settings.cores) == (True, True, 3)
    assert (settings.size, settings.buffer_misses) == (123_456_789, 0.1)
    assert (found.version, found.sync_method, found.data_directory) == (150014, "fdatasync", None)


def test_what_the_server_counted_is_for_each_commit() -> None:
    found = parsed(ANSWER, WAL, 0, Settings())
    assert found.settings.wal_bytes == pytest.approx((100_000_000 - 10_000 * 8192) / 40_000)
    assert found.commits_per_flush == 4
    assert found.image_share == pytest.approx(0.8192)


def test_tables_of_pgbench_stand_for_its_transactions() -> None:
    answer: Found = {**ANSWER, "table_bytes": 300_000, "index_bytes": 100_000}
    settings = parsed(answer, WAL, 20, Settings()).settings
    assert (settings.scale, settings.wal_bytes) == (20, None)
    # As they are now, larger than they were made.
    assert (settings.size, settings.index_part) == (400_000, 0.25)


def test_a_server_that_was_just_started_says_nothing_of_its_transactions() -> None:
    fresh: Found = {**ANSWER, "commits": 12, "hit": None, "read": None}
    found = parsed(fresh, {**WAL, "flushes": 0}, 0, Settings())
    assert (found.settings.wal_bytes, found.commits_per_flush, found.settings.buffer_misses) == (
        None,
        None,
        None,
    )
    assert parsed(fresh, None, 0, Settings()).image_share is None


def test_commits_that_do_not_wait_are_known() -> None:
    for name in ("fsync", "synchronous_commit"):
        settings = {**ANSWER["settings"], name: ["off", None]}
        changed: Found = {**ANSWER, "settings": settings}
        assert not parsed(changed, WAL, 0, Settings()).settings.synchronous_commit


def test_a_unit_that_is_not_known_is_an_error() -> None:
    changed: Found = {**ANSWER, "settings": {**ANSWER["settings"], "work_mem": ["4", "furlong"]}}
    with pytest.raises(UserError, match="furlong"):
        parsed(changed, WAL, 0, Settings())


def program(folder: Path, text: str) -> None:
    path = folder / "psql"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


@pytest.fixture
def only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is all of PATH, but for the shell's own."""
    monkeypatch.setenv("PATH", str(tmp_path))
    return tmp_path


def test_no_psql(only: Path) -> None:
    assert os.listdir(only) == []
    with pytest.raises(UserError, match="psql was not found") as caught:
        server.ask("dbname=app", Settings())
    assert "postgresql-client" in str(caught.value)


def test_a_server_that_refuses(only: Path) -> None:
    program(
        only,
        'echo "psql: error: connection to server failed: FATAL:  database \\"app\\" does not exist" >&2; exit 2',
    )
    with pytest.raises(
        UserError,
        match=r'^--from-postgres: connection to server failed: FATAL:  database "app" does not exist',
    ) as caught:
        server.ask("dbname=app", Settings())
    assert caught.value.place == "--from-postgres"


def test_an_answer_that_is_no_answer(only: Path) -> None:
    program(only, "echo hello")
    with pytest.raises(UserError, match="was not understood"):
        server.ask("dbname=app", Settings())


def test_a_password_is_never_asked_for_and_the_dsn_is_one_word(only: Path) -> None:
    program(only, f'for word in "$@"; do echo "$word" >> {only}/words; done; exit 1')
    with pytest.raises(UserError):
        server.ask("host=/run dbname='my app'; drop", Settings())
    words = (only / "words").read_text().splitlines()
    assert "-w" in words
    assert words[words.index("-d") + 1] == "host=/run dbname='my app'; drop"
