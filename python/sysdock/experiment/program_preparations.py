"""Preparations about programs and their files."""

from __future__ import annotations

import pwd
from pathlib import Path

from sysdock.errors import UserError
from sysdock.experiment.bench import Bench
from sysdock.experiment.preparation import preparation
from sysdock.experiment.state import folders
from sysdock.experiment.state.servers import free_port
from sysdock.experiment.tools import find_tool, write_file
from sysdock.library.experiments import filled


@preparation(lambda programs, **_: tuple(programs))
def need_programs(bench: Bench, *, programs: list[str]) -> None:
    """Names programs within commands of a shell: one that is missing is reported before anything is made."""
    for program in programs:
        bench.about("tool", program, find_tool(program))


@preparation()
def write_files(bench: Bench, *, files: dict[str, str]) -> None:
    """Writes texts as they are, `{...}` too, into files: scripts and configurations, as `{scratch}/NAME`."""
    for name, text in files.items():
        if name != Path(name).name or name in ("", ".."):
            raise UserError(f"`{name}` is not a file name", "leave out folders: files are in {scratch}")
        write_file(bench.scratch / name, text)


@preparation(lambda command, **_: (command[0],), filled=("command",), starts_server=True)
def start_server(bench: Bench, *, command: list[str], name: str = "server", user: str = "") -> None:
    """Starts a program that listens at `{server_port}` of 127.0.0.1; `{scratch}/server.url` has its address.

    It starts in a folder of its own, as a user that nobody else is. What the command calls `{server_port}` is
    a port that is free now.
    """
    number, runs_as = _user(bench, user, name)
    port = free_port()
    bench.names |= {name: f"http://127.0.0.1:{port}", f"{name}_port": port}
    folder = bench.scratch / name
    folders.make(bench.state.journal, folder, number)
    arguments = [filled(word, bench.names) for word in command]
    bench.state.server(name, arguments, ready=f"tcp:127.0.0.1:{port}", cwd=folder, user=runs_as)
    (bench.scratch / f"{name}.url").write_text(f"http://127.0.0.1:{port}")


def _user(bench: Bench, user: str, name: str) -> tuple[int | None, str | int | None]:
    """The number of the server's user, and how it is called; None for ourselves."""
    if not user:
        own = bench.state.own_user()
        return own, own
    try:
        return pwd.getpwnam(user).pw_uid, user
    except KeyError:
        raise UserError(f"there is no user `{user}`", "name one of /etc/passwd", name) from None
