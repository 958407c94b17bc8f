"""A real PostgreSQL is asked for its settings. It runs as the user postgres, on a Unix socket, as long as the test."""

from __future__ import annotations

import os
import pwd
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from sysdock.diskio import server
from sysdock.diskio.transactions import INDEX_BYTES, TABLE_BYTES, Settings

pytestmark = [pytest.mark.root]
PROGRAMS = sorted(Path("/usr/lib/postgresql").glob("*/bin"))


def run(program: str, *words: str) -> None:
    command = ["runuser", "-u", "postgres", "--", str(PROGRAMS[-1] / program), *words]
    subprocess.run(command, check=True, cwd="/", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


@pytest.fixture(scope="module")
def dsn() -> Iterator[str]:
    """How it is reached. The path of a socket is short, so it is not in a folder of pytest."""
    if os.geteuid() != 0 or not PROGRAMS:
        pytest.skip("needs root, and the server programs of PostgreSQL")
    with tempfile.TemporaryDirectory() as name:
        owner = pwd.getpwnam("postgres")
        os.chown(name, owner.pw_uid, owner.pw_gid)
        run("initdb", "-D", f"{name}/data", "-A", "trust", "--no-sync")
        options = f"-c listen_addresses='' -c unix_socket_directories={name} -c shared_buffers=32MB -c commit_delay=50"
        run("pg_ctl", "-w", "-D", f"{name}/data", "-l", f"{name}/log", "-o", options, "start")
        try:
            yield f"host={name} user=postgres dbname=postgres"
        finally:
            run("pg_ctl", "-w", "-D", f"{name}/data", "-m", "immediate", "stop")


def test_it_says_what_it_was_started_with(dsn: str) -> None:
    found = server.ask(dsn, Settings(scale=7))
    assert found.version >= 90_400
    assert (found.settings.shared_buffers, found.settings.work_mem) == (32 << 20, 4 << 20)
    assert found.settings.commit_delay_s == pytest.approx(50e-6)
    assert (found.fsync, found.settings.synchronous_commit, found.has_pgbench) == (True, True, False)
    assert (found.settings.scale, found.database) == (7, "postgres")
    assert 5 << 20 < found.settings.size < 50 << 20


def test_tables_of_pgbench_are_found(dsn: str) -> None:
    host = dsn.split()[0].removeprefix("host=")
    run("pgbench", "-h", host, "-i", "-q", "-s", "2", "postgres")
    run("pgbench", "-h", host, "-n", "-c2", "-t600", "postgres")
    found = server.ask(dsn, Settings(scale=7))
    assert (found.has_pgbench, found.settings.scale) == (True, 2)
    assert 2 * (TABLE_BYTES + INDEX_BYTES) < found.settings.size < 1.5 * 2 * (TABLE_BYTES + INDEX_BYTES)
    assert found.settings.buffer_misses is not None
    assert 0 <= found.settings.buffer_misses < 1
