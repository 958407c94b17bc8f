"""File systems, servers and databases of an experiment are made, proved and removed; what goes wrong is said."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from sysdock.errors import UserError
from sysdock.experiment import tools
from sysdock.experiment.state import Difference, Journal, State, processes, servers
from sysdock.experiment.state.postgres import _VERSIONS
from waiting import is_running

MIB = 1 << 20


@pytest.fixture
def free_port() -> int:
    """A port that nobody uses."""
    with socket.socket() as trial:
        trial.bind(("127.0.0.1", 0))
        return int(trial.getsockname()[1])


@pytest.fixture
def plain(tmp_path: Path) -> State:
    """A state without anything that needs root."""
    return State(Journal.begin("a test"), tmp_path / "scratch")


@pytest.mark.parametrize(
    ("kind", "size"), [("ext4", 32 * MIB), ("ext2", 8 * MIB), ("btrfs", 128 * MIB), ("xfs", 384 * MIB)]
)
def test_a_file_system_is_made_and_removed(state: State, kind: str, size: int) -> None:
    if tools.find_tool(f"mkfs.{kind}") is None:
        pytest.skip(f"mkfs.{kind} is not installed")
    point = state.file_system("data", kind, size)
    (point / "file").write_text("content")
    line = next(line for line in Path("/proc/mounts").read_text().splitlines() if f" {point} " in line)
    assert line.split()[:3] == [f"/dev/{state.device('data')}", str(point), kind]
    assert "noatime" in line.split()[3]
    assert Path(f"/sys/block/{state.device('data')}/loop/dio").read_text().strip() == "1"
    assert state.prove() == []
    subprocess.run(["umount", point], check=True)
    assert state.prove() == [Difference("file system", "data", f"mounted on {point}", "not mounted")]


def test_a_file_system_in_use_is_named_and_removed_later(
    state: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sysdock.experiment.state.mounts._TRIES", 2)
    monkeypatch.setattr("sysdock.experiment.state.file_systems._TRIES", 2)
    point = state.file_system("data", "ext4", 32 * MIB)
    with subprocess.Popen(["sleep", "60"], cwd=point) as user:
        left = state.undo()
        assert [found.kind for found in left] == ["mount", "device", "folder"]
        assert f"sleep ({user.pid})" in left[0].found
        assert point.is_mount()
        user.kill()
    assert state.undo() == []


def test_what_a_file_system_lacks_is_said(state: State, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UserError, match=r"mkfs\.nothing is not installed"):
        state.file_system("data", "nothing", MIB)
    with pytest.raises(UserError, match="are free"):
        state.file_system("data", "ext4", 1 << 50)
    with pytest.raises(UserError) as raised:
        state.file_system("data", "ext4", 32 * MIB, make=["--nonsense"])
    assert "--nonsense" in str(raised.value)
    with pytest.raises(UserError, match="has no file system `date`"):
        state.device("date")


def test_a_server_is_started_and_stopped_with_all_it_started(
    plain: State, free_port: int, tmp_path: Path
) -> None:
    # What it says is there before it can be connected to.
    serve = (
        "import socket, subprocess, sys, time; child = subprocess.Popen(['sleep', '1000']);"
        "open(sys.argv[1], 'w').write(str(child.pid)); print('Serving HTTP', flush=True);"
        "listening = socket.create_server(('127.0.0.1', int(sys.argv[2]))); time.sleep(1000)"
    )
    words = [sys.executable, "-c", serve, str(tmp_path / "child"), str(free_port)]
    server = plain.server("web", words, ready=f"tcp:127.0.0.1:{free_port}")
    child = int((tmp_path / "child").read_text())
    assert (is_running(server.pid), is_running(child), plain.prove()) == (True, True, [])
    with pytest.raises(UserError, match=rf"port {free_port} is in use by python\S* \({server.pid}\)"):
        plain.server("other", words, ready=f"tcp:127.0.0.1:{free_port}")
    os.kill(server.pid, signal.SIGKILL)
    while server.running:
        time.sleep(0.01)
    (found,) = plain.prove()
    assert found.found.startswith("ended by SIGKILL: Serving HTTP")
    assert plain.undo() == []
    assert not is_running(child)
    plain.journal.close()


def test_a_server_starts_in_a_group_of_the_settings(state: State, tmp_path: Path) -> None:
    name = f"sysdock-test-{os.getpid()}"
    state.apply({f"cgroup:{name}/pids.max": "50"})
    # It stops what it started; what is left is waited for first.
    script = (
        "sleep 1000 & trap 'kill $!' TERM; "
        f"cat /proc/$!/cgroup > {tmp_path}/groups; mv {tmp_path}/groups {tmp_path}/ready; wait"
    )
    state.server("one", ["sh", "-c", script], ready=f"file:{tmp_path}/ready", group=name)
    assert any(line.endswith(f"/{name}") for line in (tmp_path / "ready").read_text().splitlines())


def test_a_server_that_leaves_its_session_is_stopped_too(plain: State, tmp_path: Path) -> None:
    script = f"setsid sh -c 'echo $$ > {tmp_path}/far; exec sleep 1000' & sleep 0.1; exit 0"
    with pytest.raises(UserError, match="ended with status 0"):
        plain.server("daemon", ["sh", "-c", script], ready=f"file:{tmp_path}/never")
    assert not is_running(int((tmp_path / "far").read_text()))
    assert plain.undo() == []
    plain.journal.close()


def test_a_server_that_does_not_stop_is_killed_and_said(
    plain: State, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(servers, "STOP_S", 0.2)
    words = ["sh", "-c", f"trap '' TERM; echo > {tmp_path}/ready; while :; do sleep 0.1; done"]
    server = plain.server("deaf", words, ready=f"file:{tmp_path}/ready")
    assert plain.undo() == []
    assert plain.warnings == ["deaf did not stop within 0 s after SIGTERM and was killed"]
    assert not is_running(server.pid)
    plain.journal.close()


@pytest.mark.parametrize(
    ("words", "ready", "fact"),
    [
        (["no-such-program"], "seconds:0", "there is no program `no-such-program`"),
        (["sh", "-c", "echo too old >&2; exit 3"], "file:/never", "ended with status 3: too old"),
        (["sleep", "60"], "soon", "`soon` does not tell when"),
        (["sleep", "60"], "tcp:8080", "`8080` is not an address"),
        (["sleep", "60"], "file:/etc/passwd", "is there before the start"),
    ],
)
def test_a_server_that_cannot_be_started_is_said(
    plain: State, words: list[str], ready: str, fact: str
) -> None:
    with pytest.raises(UserError, match=fact):
        plain.server("one", words, ready=ready)
    assert plain.undo() == []
    plain.journal.close()


def test_a_server_that_is_not_ready_in_time_is_said_and_stopped(
    plain: State, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(servers, "READY_S", 0.3)
    with pytest.raises(UserError, match="not ready after 0 s"):
        plain.server(
            "slow", ["sh", "-c", f"echo $$ > {tmp_path}/pid; exec sleep 60"], ready=f"file:{tmp_path}/never"
        )
    assert not is_running(int((tmp_path / "pid").read_text()))
    plain.undo()
    plain.journal.close()


@pytest.mark.usefixtures("root")
def test_each_run_of_a_database_begins_from_the_same_contents(
    journal_folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    if not list(_VERSIONS.glob("*/bin/initdb")):
        pytest.skip("needs the server programs of PostgreSQL")
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o755)
        state = State(Journal.begin("a test"), Path(name) / "scratch")
        try:
            database = state.postgres("db", settings={"shared_buffers": "32MB", "fsync": "off"})
            database.psql("CREATE TABLE t AS SELECT 1 AS a")
            assert database.psql("SHOW shared_buffers") == "32MB"
            with pytest.raises(UserError, match="stop it first"):
                database.save("one")
            assert database.stop() is None
            database.save("one")
            for _ in range(2):
                database.start()
                database.psql("INSERT INTO t VALUES (2)")
                assert database.psql("SELECT count(*) FROM t") == "2"
                database.stop()
                database.restore("one")
            with pytest.raises(UserError, match="no contents were kept as `two`"):
                database.restore("two")
            database.start()
            with pytest.raises(UserError, match='relation "nothing" does not exist'):
                database.psql("SELECT * FROM nothing")
            pid = database.server.pid if database.server else 0
            assert is_running(pid)
        finally:
            left = state.undo()
            state.journal.close()
        assert (left, state.warnings, is_running(pid)) == ([], [], False)
        assert os.listdir(name) == []


@pytest.mark.usefixtures("root")
def test_a_database_in_a_folder_that_its_user_cannot_reach_is_said(state: State) -> None:
    if not list(_VERSIONS.glob("*/bin/initdb")):
        pytest.skip("needs the server programs of PostgreSQL")
    # Folders of pytest are closed to others.
    with pytest.raises(UserError, match="cannot reach this folder"):
        state.postgres("db", settings={})


@pytest.mark.usefixtures("root")
def test_workers_that_outlive_their_master_are_stopped(plain: State, free_port: int) -> None:
    if tools.find_tool("nginx") is None:
        pytest.skip("needs nginx")
    # They write over their environment, so that it says nothing of whose they are.
    plain.scratch.mkdir()
    configuration = plain.scratch / "nginx.conf"
    configuration.write_text(
        f"daemon off; pid {plain.scratch}/pid; error_log {plain.scratch}/error; worker_processes 2; user root;\n"
        f"events {{}} http {{ access_log off; server {{ listen 127.0.0.1:{free_port}; }} }}\n"
    )
    server = plain.server(
        "web", ["nginx", "-c", str(configuration)], ready=f"tcp:127.0.0.1:{free_port}", stop="QUIT"
    )
    known = processes.belonging(server.process, server.mark)
    while len(known) < 3:
        known = processes.belonging(server.process, server.mark)
    server.process.send(signal.SIGKILL)
    while server.running:
        time.sleep(0.01)
    assert sum(each.alive() for each in known) == 2
    assert plain.undo() == []
    assert not any(each.alive() for each in known)
    plain.journal.close()
