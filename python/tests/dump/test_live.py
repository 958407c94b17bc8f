"""Guests that run: their memory is read out of that of qemu."""

from __future__ import annotations

import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from made_dumps import MadeDump, live_guest
from sysdock.analysis import Session
from sysdock.cli import sysdock
from sysdock.dump import Dump
from sysdock.dump.testing import read_truth
from sysdock.recording import Recording

LOCKS = "SELECT kind, holder_pid, waiter_pid, depth, root_pid, status FROM dump_locks"
TASKS = "SELECT pid, comm, ppid, state, wait_function FROM dump_tasks WHERE state = 'D'"


@pytest.fixture(scope="module")
def read_twice(
    tmp_path_factory: pytest.TempPathFactory, native: Path
) -> Iterator[tuple[MadeDump, Path, Path]]:
    """A guest, what was read of it while it ran, and what was read of its dump after that."""
    folder = tmp_path_factory.mktemp("live")
    live, dead = folder / "live", folder / "dead"
    with live_guest(folder, "6.1") as core:
        subprocess.run([native, "dump", "run", core, "-o", live], check=True, capture_output=True)
        done = CliRunner().invoke(sysdock, ["dump", "run", "workqueues", core, "-o", str(folder / "asked")])
        assert done.exit_code == 0, done.output
        with Dump.open(core) as dump:
            assert (
                dump.text(
                    "linux_banner",
                )[:20]
                == "Linux version 6.1.0-"
            )
    subprocess.run([native, "dump", "run", folder / "core", "-o", dead], check=True, capture_output=True)
    return MadeDump(folder, read_truth(folder / "truth.log")), live, dead


def test_a_guest_that_runs_shows_what_its_dump_shows(read_twice: tuple[MadeDump, Path, Path]) -> None:
    made, live, dead = read_twice
    with Session(Recording.open(live)) as running, Session(Recording.open(dead)) as stopped:
        for sql in (
            LOCKS,
            TASKS,
            "SELECT name, bytes FROM dump_modules",
            "SELECT path, fs_type FROM dump_mounts",
        ):
            assert sorted(running.fetch(sql)) == sorted(stopped.fetch(sql)) != []
        found = {pid for (pid,) in running.fetch("SELECT pid FROM dump_tasks WHERE status = 'ok'")}
        assert {pid for pids in made.started.values() for pid in pids} <= found
        [(form, processors, panic)] = running.fetch("SELECT format, processors, panic FROM crash_dumps")
        assert (form, processors, panic) == ("qemu guest", 2, None)
        issues = running.fetch("SELECT issue, detail FROM import_issues WHERE issue = 'dump_remark'")
        assert (
            "dump_remark",
            '[{"code":"dump/kernel_ran"}]',
        ) in issues


def test_scripts_ask_a_guest(read_twice: tuple[MadeDump, Path, Path]) -> None:
    made, _, _ = read_twice
    with Session(Recording.open(made.folder / "asked")) as session:
        assert session.fetch("SELECT status FROM dump_scripts") == [("ok",)]
        assert session.fetch("SELECT sum(workers)::BIGINT > 0 FROM dump_workqueues") == [(True,)]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Callable[[bytes], Path]]:
    """A socket that says something, and then nothing more."""
    listeners, others = [], []

    def serve(greeting: bytes) -> Path:
        place = tmp_path / "socket"
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(place))
        listener.listen()
        listeners.append(listener)

        def answer() -> None:
            try:
                other, _ = listener.accept()
            except OSError:
                return
            others.append(other)
            other.sendall(greeting)

        threading.Thread(target=answer, daemon=True).start()
        return place

    yield serve
    for each in (*listeners, *others):
        each.close()


@pytest.mark.parametrize(
    ("greeting", "said"),
    [
        (b"hello\n", "no monitor of qemu (QMP) answers there"),
        (b'{"version": 5}\n', "no monitor of qemu (QMP) answers there"),
        (b'{"QMP": {}}\n{"error": {"desc": "no"}}\n', "the monitor refuses"),
        # As qemu does where another client is connected.
        (b"", "the monitor does not answer: it serves one client at a time"),
    ],
)
def test_what_is_no_monitor_is_said(
    server: Callable[[bytes], Path], native: Path, greeting: bytes, said: str
) -> None:
    done = subprocess.run(
        [native, "dump", "info", f"qmp:{server(greeting)}"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert said in done.stderr


def test_a_socket_that_is_not_there_is_said(native: Path, tmp_path: Path) -> None:
    command = [native, "dump", "run", f"qmp:{tmp_path / 'none'}", "-o", tmp_path / "rec"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "No such file or directory" in done.stderr
    assert not (tmp_path / "rec").exists()
