"""Servers of an experiment that root runs: a user that nobody else is, and a database that nobody else enters."""

from __future__ import annotations

import os
import stat
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from sysdock.experiment.state import Journal, State, users
from sysdock.experiment.state.postgres import Postgres, find_programs
from sysdock.experiment.state.servers import free_port
from waiting import wait_for

pytestmark = pytest.mark.usefixtures("root")
NOBODY = 65534


def as_user(number: int, *command: str) -> subprocess.CompletedProcess[str]:
    """Runs it as a user without a name, or as another one of the machine."""
    words = ["setpriv", f"--reuid={number}", f"--regid={number}", "--clear-groups", "--", *command]
    return subprocess.run(words, capture_output=True, text=True, check=False, cwd="/")


def test_two_experiments_have_two_users_and_a_number_in_use_is_left_out() -> None:
    first, second = users.take(), users.take()
    assert first.number != second.number
    assert {first.number, second.number} <= set(range(60706, 61184))
    busy = subprocess.Popen(
        ["setpriv", f"--reuid={first.number}", f"--regid={first.number}", "--clear-groups", "sleep", "600"]
    )
    try:
        wait_for(lambda: first.number in users._of_processes(), "a process of the user")
        first.lock.close()
        third = users.take()
        assert third.number not in (first.number, second.number)
    finally:
        busy.kill()
        busy.wait()
    third.lock.close()
    second.lock.close()


@pytest.fixture
def database() -> Iterator[Postgres]:
    """A PostgreSQL with a port, in a folder that all may enter."""
    if find_programs() is None:
        pytest.skip("needs the server programs of PostgreSQL")
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o755)
        state = State(Journal.begin("a test"), Path(name) / "scratch")
        try:
            yield state.postgres("db", settings={}, port=free_port())
        finally:
            assert state.undo() == []
            state.journal.close()


def test_no_other_user_is_admitted_to_a_database(database: Postgres) -> None:
    number = database.data.stat().st_uid
    assert number in range(60706, 61184)
    assert stat.S_IMODE(database._socket.stat().st_mode) == 0o700
    assert database.server
    processes = Path(f"/proc/{database.server.pid}/status").read_text()
    assert f"Uid:\t{number}\t{number}\t{number}\t{number}" in processes
    psql = (str(database._programs / "psql"), "-XAtc", "SELECT current_user", "-U", "postgres", "-w")
    on_tcp = ("-h", "127.0.0.1", "-p", str(database.port), "postgres")
    for user in (NOBODY, 1, number + 1):
        for way in (("-h", str(database._socket), "-p", str(database.port), "postgres"), on_tcp):
            assert as_user(user, *psql, *way).returncode != 0, (user, way)
    # No trust for root either, and the password only where it is known.
    assert subprocess.run([*psql, *on_tcp], capture_output=True, check=False).returncode != 0
    environment = {**os.environ, "PGPASSFILE": str(database.passfile)}
    known = subprocess.run([*psql, *on_tcp], env=environment, capture_output=True, text=True, check=False)
    assert known.stdout == "postgres\n"
    assert stat.S_IMODE(database.passfile.stat().st_mode) == 0o600
    assert database.psql("SELECT current_user") == "postgres"


def test_a_socket_is_all_that_listens_where_no_port_is_asked_for(database: Postgres) -> None:
    database.stop()
    assert database._is_on_tcp
    quiet = Postgres(database._state, "quiet", {}, 0, database.data.parent, None)
    quiet.create()
    quiet.start()
    assert quiet.psql("SHOW listen_addresses") == ""
    assert "host" not in (quiet.data / "pg_hba.conf").read_text()
    assert "trust" not in (quiet.data / "pg_hba.conf").read_text()
