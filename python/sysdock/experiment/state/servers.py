"""Servers of an experiment: started, waited for, stopped, and ended with all that they started.

A server begins as a shell that waits for a word before it becomes the program. So its number is in the
journal before the program runs, and a shell whose experiment was killed in between ends by itself.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sysdock.errors import UserError
from sysdock.experiment.state import processes
from sysdock.experiment.state.journal import Entry, Journal
from sysdock.experiment.state.kind import Difference
from sysdock.experiment.state.processes import MARK, Process
from sysdock.experiment.tools import find_tool, note_command
from sysdock.recording.signals import held_back

# Time limits for a server to be ready, to stop, and to be gone after SIGKILL [s].
READY_S = 60.0
STOP_S = 30.0
_KILLED_S = 10.0
_PAUSE_S = 0.02
# Waits for a line; where the input ends instead, who should have written it is gone.
_GATE = 'read -r word && exec "$@" </dev/null'
_LISTENS = "0A"


@dataclass
class Server:
    """A program that runs until it is stopped. `log` has what it printed."""

    name: str
    process: Process
    stop_signal: str
    log: Path
    mark: str
    number: int = 0
    _child: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    @property
    def pid(self) -> int:
        """Its process id; also its session."""
        return self.process.pid

    @property
    def running(self) -> bool:
        """Whether it runs."""
        if self._child is not None:
            self._child.poll()
        return self.process.alive()

    def stop(self, within_s: float | None = None) -> str | None:
        """Asks it to stop, waits, and kills what is left; a sentence where that was needed."""
        patience_s = STOP_S if within_s is None else within_s
        warning = stop(self.name, self.process, self.mark, self.stop_signal, patience_s)
        if self._child is not None:
            self._child.wait()
        return warning

    def ended(self) -> str:
        """How it ended, with the last line that it printed."""
        status = self._child.poll() if self._child is not None else None
        lines = self.log.read_text(errors="replace").strip().splitlines() if self.log.exists() else []
        how = (
            "ended"
            if status is None
            else f"ended by {signal.Signals(-status).name}"
            if status < 0
            else f"ended with status {status}"
        )
        return f"{how}: {lines[-1]}" if lines else how


@dataclass(frozen=True)
class Program:
    """The program to run: `log` receives its output, `groups` are cgroup.procs of its control groups."""

    name: str
    arguments: Sequence[str]
    log: Path
    stop_signal: str = "TERM"
    cwd: Path | None = None
    env: Mapping[str, str] | None = None
    user: str | int | None = None
    groups: Sequence[Path] = ()


def start(journal: Journal, program: Program, ready: str) -> Server:
    """Starts a program in a session of its own and waits until it is ready.

    ready: `tcp:127.0.0.1:8080` (a port that accepts), `file:PATH` (a file that appears), or `seconds:2`.
    """
    _fit(program.name, program.arguments, ready, program.stop_signal)
    note_command(*map(str, program.arguments), user=program.user, is_server=True)
    with held_back():
        made = _behind_gate(journal, program)
    try:
        _until_ready(made, ready)
    except BaseException:
        made.stop(0.0)
        journal.undone(made.number)
        raise
    return made


def _behind_gate(journal: Journal, program: Program) -> Server:
    name, mark = program.name, f"{journal.name}-{program.name}"
    gate, key = os.pipe()
    try:
        with open(program.log, "ab") as out:
            child = subprocess.Popen(
                ["/bin/sh", "-c", _GATE, "sh", *map(str, program.arguments)],
                cwd=program.cwd or "/",
                env={**os.environ, **(program.env or {}), MARK: mark},
                stdin=gate,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                **_as_user(program.user),
            )
        process = processes.process(child.pid)
        if process is None:
            raise UserError("it could not be started", "see its log", str(program.log))
        undo = {"kind": "server", "target": name, "pid": str(process.pid), "start": str(process.start)}
        number = journal.note({**undo, "mark": mark, "stop": program.stop_signal})
        for group in program.groups:
            group.write_text(str(process.pid))
        os.write(key, b"go\n")
    except PermissionError as error:
        fact = f"starting {name} as {program.user} needs root"
        raise UserError(fact, "run the experiment as root", error.filename) from None
    finally:
        os.close(gate)
        os.close(key)
    return Server(name, process, program.stop_signal, program.log, mark, number, child)


def _as_user(user: str | int | None) -> dict[str, Any]:
    if user is None:
        return {}
    if isinstance(user, int):
        return {"user": user, "group": user, "extra_groups": []}
    try:
        found = pwd.getpwnam(user)
    except KeyError:
        raise UserError(f"there is no user `{user}`", "name one of /etc/passwd", user) from None
    return {"user": found.pw_uid, "group": found.pw_gid, "extra_groups": os.getgrouplist(user, found.pw_gid)}


def _fit(name: str, arguments: Sequence[str], ready: str, stop_signal: str) -> None:
    """Whether it can be started at all."""
    if not arguments or (find_tool(arguments[0]) is None and shutil.which(arguments[0]) is None):
        program = arguments[0] if arguments else ""
        raise UserError(f"there is no program `{program}`", "install it, or give its path", name)
    if not hasattr(signal, f"SIG{stop_signal}"):
        raise UserError(f"there is no signal `{stop_signal}`", "name one as TERM, INT or QUIT", name)
    kind, _, place = ready.partition(":")
    if kind == "tcp":
        host, port = _address(name, place)
        if who := port_user(host, port):
            raise UserError(f"port {port} is in use by {who}", "stop it, or choose another port", name)
    elif kind == "file" and os.path.lexists(place):
        raise UserError(
            f"{place} is there before the start", "another server may run; remove what it left", name
        )
    elif kind not in ("file", "seconds") or (kind == "seconds" and not _is_number(place)):
        hint = "write tcp:127.0.0.1:PORT, file:PATH or seconds:N"
        raise UserError(f"`{ready}` does not tell when a server is ready", hint, name)


def _is_number(text: str) -> bool:
    return text.replace(".", "", 1).isdecimal()


def _address(name: str, place: str) -> tuple[str, int]:
    host, _, port = place.rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) < 1 << 16:
        raise UserError(f"`{place}` is not an address", "write it as 127.0.0.1:8080", name)
    return host.strip("[]"), int(port)


def free_port() -> int:
    """A port of this machine that no one listens on now."""
    with socket.socket() as trial:
        trial.bind(("127.0.0.1", 0))
        return int(trial.getsockname()[1])


def port_user(host: str, port: int) -> str | None:
    """The process that listens on a port of this machine, as far as /proc states; None if it is free."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as trial:
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trial.bind((host, port))
        except OSError:
            return _listener(port) or "another program"
    return None


def _listener(port: int) -> str | None:
    inodes = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        with suppress(OSError):
            for line in Path(table).read_text().splitlines()[1:]:
                fields = line.split()
                if fields[3] == _LISTENS and int(fields[1].rpartition(":")[2], 16) == port:
                    inodes.add(f"socket:[{fields[9]}]")
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError):
            for file in os.scandir(f"/proc/{pid}/fd"):
                if os.readlink(file.path) in inodes:
                    return processes.named(int(pid))
    return None


def _until_ready(server: Server, ready: str) -> None:
    kind, _, place = ready.partition(":")
    began = time.monotonic()
    wait_s = float(place) if kind == "seconds" else READY_S
    while time.monotonic() - began < wait_s:
        if not server.running:
            raise UserError(
                f"it {server.ended()}", "before it was ready; see its log", f"{server.name}, {server.log}"
            )
        if (kind == "file" and os.path.exists(place)) or (kind == "tcp" and _accepts(*_address("", place))):
            return
        time.sleep(_PAUSE_S)
    if kind != "seconds":
        fact = f"it was not ready after {wait_s:.0f} s ({ready})"
        raise UserError(fact, f"see {server.log}", server.name)


def _accepts(host: str, port: int) -> bool:
    try:
        with socket.create_connection((host, port), timeout=1):
            return True
    except OSError:
        return False


def stop(name: str, process: Process, mark: str, stop_signal: str, within_s: float) -> str | None:
    """Stops a server and what it started. A sentence where some of it had to be killed."""
    known = processes.belonging(process, mark)
    if within_s > 0:
        process.send(getattr(signal, f"SIG{stop_signal}"))
        for orphan in () if process in known else known:
            orphan.send(signal.SIGTERM)
        known = sorted({*known, *processes.belonging(process, mark)}, key=lambda each: each.pid)
        left = processes.gone(known, within_s)
    else:
        left = known
    if not left:
        return None
    until = time.monotonic() + _KILLED_S
    while left and time.monotonic() < until:
        for each in left:
            each.send(signal.SIGKILL)
        left = processes.gone({*left, *processes.belonging(process, mark)}, _PAUSE_S)
    return f"{name} did not stop within {within_s:.0f} s after SIG{stop_signal} and was killed"


def undo(journal: Journal, entry: Entry) -> list[Difference]:
    """Stops it, and looks whether it is gone."""
    if not journal.is_of_this_boot:
        return []
    process = Process(int(entry["pid"]), int(entry["start"]))
    stop(entry["target"], process, entry["mark"], entry["stop"], STOP_S)
    left = processes.belonging(process, entry["mark"])
    who = ", ".join(processes.named(each.pid) for each in left)
    return [Difference("server", entry["target"], "stopped", f"{who} still runs")] if left else []
