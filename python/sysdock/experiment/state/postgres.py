"""A PostgreSQL of an experiment: a cluster of its own, started and stopped, whose contents can be had again.

As root it belongs to a user that nobody else is (`users.py`). Only we are its superuser `postgres`: by a Unix
socket in a folder of mode 0700, where the kernel says who connects (`peer`), and where a port is given by TCP
on this machine with a random password. Nothing of a server that is installed is used but its programs.
"""

from __future__ import annotations

import os
import pwd
import re
import secrets
import shlex
import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING

from sysdock import to_disk
from sysdock.errors import UserError
from sysdock.experiment.state import folders
from sysdock.experiment.state.servers import READY_S, Server
from sysdock.experiment.tools import as_user, note_line, run_tool, write_file

if TYPE_CHECKING:
    from sysdock.experiment.state.state import State

_VERSIONS = Path("/usr/lib/postgresql")
# Names that a connection string holds as they are.
_PLAIN = re.compile(r"[\w./-]+")
# initdb asks who runs it, and our user has no name: it gets one for this command, in a copy of passwd.
_WITH_A_NAME = """
mount --bind "$1" /etc/passwd
if [ -d /run/nscd ]; then mount -t tmpfs none /run/nscd; fi
shift
exec "$@"
"""
_SOCKET_PORT = 5432
# sun_path of sockaddr_un.
_LONGEST_SOCKET = 107
_PAUSE_S = 0.05


def find_programs() -> Path | None:
    """The folder of the newest server's programs; None where none is installed."""
    found = [path for path in _VERSIONS.glob("*/bin") if (path / "initdb").exists()]
    numbers = {path: [int(word) for word in re.findall(r"\d+", path.parent.name)] for path in found}
    return max(found, key=lambda path: numbers[path], default=None)


def programs() -> Path:
    """The programs of PostgreSQL; a UserError if none are installed."""
    if (found := find_programs()) is None:
        raise UserError("no PostgreSQL server is installed", "apt-get install postgresql", str(_VERSIONS))
    return found


class Postgres:
    """A cluster in the folder `place`. States: created, running, stopped."""

    def __init__(
        self, state: State, name: str, settings: dict[str, str], port: int, place: Path, group: str | None
    ) -> None:
        self.name = name
        self.settings = settings
        self.port = port or _SOCKET_PORT
        self.data = place / name
        self.server: Server | None = None
        self._state = state
        self._is_on_tcp = bool(port)
        self._group = group
        self._programs = programs()
        self._user = state.own_user()
        self.passfile = state.scratch / f"{name}.pgpass"
        self._socket = _socket_folder(state.scratch / f"{name}.socket", self.port)

    @property
    def dsn(self) -> str:
        """Its connection string, for libpq."""
        return f"host={self._socket} port={self.port} dbname=postgres user=postgres"

    @property
    def running(self) -> bool:
        """Whether it runs."""
        return self.server is not None and self.server.running

    def create(self) -> None:
        """Makes the cluster, with the superuser postgres, who is nobody but us."""
        for folder in (self.data, self._socket):
            folders.make(self._state.journal, folder, self._user)
        password = secrets.token_hex(16)
        asked = self._state.scratch / f"{self.name}.password"
        for path, text in (
            (self.passfile, f"127.0.0.1:{self.port}:*:postgres:{password}"),
            (asked, password),
        ):
            self._keep_secret(path, text)
            note_line(f"umask 077; cat >{shlex.quote(str(path))}    # {text.replace(password, 'PASSWORD')}")
        words = ("-D", str(self.data), "-U", "postgres", "-E", "UTF8", "--locale=C", "--no-sync")
        ways = ("--auth-local=peer", "--auth-host=scram-sha-256", f"--pwfile={asked}")
        try:
            self._initdb(*words, *ways)
        finally:
            asked.unlink()
        self._admit_us()

    def _initdb(self, *words: str) -> None:
        command = [str(self._programs / "initdb"), *words]
        if self._user is not None:
            names = self._state.scratch / f"{self.name}.passwd"
            line = f"sysdock:x:{self._user}:{self._user}::/nonexistent:/usr/sbin/nologin\n"
            write_file(names, f"root:x:0:0::/root:/bin/sh\n{line}")
            inside = ("unshare", "--mount", "--propagation=private", "sh", "-ec", _WITH_A_NAME, "sh")
            command = [*inside, str(names), *as_user(self._user), *command]
        run_tool(*command, pass_fds=(self._state.journal.handle,))

    def _keep_secret(self, path: Path, text: str) -> None:
        """A file that only the user of the server may read, and root."""
        path.unlink(missing_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with os.fdopen(os.open(path, flags, 0o600), "w") as file:
            file.write(f"{text}\n")
            if self._user is not None:
                os.fchown(file.fileno(), self._user, self._user)

    def _admit_us(self) -> None:
        """Who connects as us by the socket is `postgres`; nobody else is anybody."""
        ways = ["local all postgres peer map=sysdock", "local replication postgres peer map=sysdock"]
        ways += ["host all postgres 127.0.0.1/32 scram-sha-256"] if self._is_on_tcp else []
        us = pwd.getpwuid(os.geteuid()).pw_name.replace('"', '""')
        for name, lines in (("pg_hba.conf", ways), ("pg_ident.conf", [f'sysdock "{us}" postgres'])):
            place = self.data / name
            with to_disk.replacing(place, 0o600, like=place.stat()) as file:
                file.write("".join(f"{line}\n" for line in lines).encode())

    def start(self) -> None:
        """Starts the server, and waits until it answers."""
        settings = {
            "listen_addresses": "127.0.0.1" if self._is_on_tcp else "",
            "unix_socket_directories": str(self._socket),
            "port": str(self.port),
            **self.settings,
        }
        arguments = [str(self._programs / "postgres"), "-D", str(self.data)]
        for key, value in settings.items():
            arguments += ["-c", f"{key}={value}"]
        ready = f"file:{self._socket}/.s.PGSQL.{self.port}"
        # INT disconnects its clients and writes a checkpoint.
        self.server = self._state.server(
            self.name, arguments, ready=ready, stop="INT", user=self._user, group=self._group
        )
        until = time.monotonic() + READY_S
        while True:
            try:
                self.psql("SELECT 1")
                return
            except UserError as error:
                if time.monotonic() > until or not self.running:
                    self.stop()
                    raise UserError(
                        error.fact, f"see {self.server.log if self.server else self.data}", self.name
                    ) from None
                time.sleep(_PAUSE_S)

    def stop(self) -> str | None:
        """Stops it, as pg_ctl -m fast does; a sentence where it had to be killed."""
        server, self.server = self.server, None
        return self._state.stop_server(server) if server is not None else None

    def psql(self, text: str, database: str = "postgres") -> str:
        """Runs SQL, and returns what psql prints: rows in lines, values between bars."""
        # Errors in one line, without a copy of the SQL.
        arguments = ("-XAtq", "-v", "ON_ERROR_STOP=1", "-v", "VERBOSITY=terse", "-c", text)
        try:
            return self.run("psql", *self.address(), *arguments, database).rstrip("\n")
        except UserError as error:
            raise UserError(error.fact, "check the SQL", self.name) from None

    def address(self) -> tuple[str, ...]:
        """Options of psql, pgbench and others, to reach it."""
        return ("-h", str(self._socket), "-p", str(self.port), "-U", "postgres")

    def run(self, program: str, *arguments: str) -> str:
        """A program of PostgreSQL that connects to the server; what it printed."""
        command = (str(self._programs / program), *arguments)
        return run_tool(*command, pass_fds=(self._state.journal.handle,))

    def save(self, name: str) -> None:
        """Keeps the contents of the stopped cluster under a name."""
        self._stopped("kept")
        copy = self._copy(name)
        folders.make(self._state.journal, copy)
        self._fill(self.data, copy)

    def restore(self, name: str) -> None:
        """Gives the stopped cluster the contents again that were kept; they are on the disk afterwards."""
        self._stopped("put back")
        copy = self._copy(name)
        if not copy.is_dir():
            raise UserError(f"no contents were kept as `{name}`", "save them first", self.name)
        shutil.rmtree(self.data)
        self.data.mkdir(mode=0o700)
        self._fill(copy, self.data)

    def _fill(self, source: Path, copy: Path) -> None:
        handles = (self._state.journal.handle,)
        run_tool("cp", "-a", "--reflink=auto", f"{source}/.", copy, pass_fds=handles)
        # Otherwise it would be written while the next run is measured.
        run_tool("sync", "-f", copy, pass_fds=handles)

    def _copy(self, name: str) -> Path:
        return self.data.with_name(f"{self.name}.saved-{name}")

    def _stopped(self, what: str) -> None:
        if self.running:
            raise UserError(f"contents of a running server cannot be {what}", "stop it first", self.name)


def _socket_folder(wanted: Path, port: int) -> Path:
    """A path of a socket is short, and of plain letters: else it is in /tmp."""
    if _PLAIN.fullmatch(str(wanted)) and len(f"{wanted}/.s.PGSQL.{port}") < _LONGEST_SOCKET:
        return wanted
    return Path(f"/tmp/sysdock-{os.getpid()}-{time.monotonic_ns()}")
