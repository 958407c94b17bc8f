"""Other people's programs: where they are, and what they complain of."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from sysdock.errors import UserError
from sysdock.recording.signals import held_back

# Programs of file systems lie where only root looks.
_SYSTEM = "/usr/sbin:/sbin:/usr/local/sbin"

# Debian's packages of programs whose names say nothing of them.
_PACKAGES = {
    "postgres": "postgresql", "psql": "postgresql-client", "nginx": "nginx-light", "mkfs.xfs": "xfsprogs",
    "xfs_fsr": "xfsprogs", "mkfs.btrfs": "btrfs-progs", "btrfs": "btrfs-progs", "e4defrag": "e2fsprogs",
    "mkfs.ext4": "e2fsprogs", "losetup": "mount", "taskset": "util-linux", "runuser": "util-linux",
    "setpriv": "util-linux", "unshare": "util-linux",
    "sync": "coreutils", "mvn": "maven", "java": "openjdk-17-jdk-headless",
    "javac": "openjdk-17-jdk-headless", "jfr": "openjdk-17-jdk-headless",
}  # fmt: skip

# Programs of the Python Package Index with the same name.
_BY_PIP = ("tpchgen-cli",)


def how_to_install(tools: Sequence[str]) -> str:
    """Commands that install them; most packages of Debian have the name of their program."""
    packages = dict.fromkeys(_PACKAGES.get(tool, tool) for tool in tools if tool not in _BY_PIP)
    of_python = [tool for tool in tools if tool in _BY_PIP]
    commands = [f"apt-get install {' '.join(packages)}"] if packages else []
    commands += [f"{sys.executable} -m pip install {' '.join(of_python)}"] if of_python else []
    return " && ".join(commands)


def find_tool(name: str) -> str | None:
    """The path of a program; None if it does not exist."""
    return shutil.which(name, path=_path())


def _path() -> str:
    # Last, what pip installed next to sysdock.
    return f"{os.environ.get('PATH', os.defpath)}:{_SYSTEM}:{Path(sys.executable).parent}"


_LOG: ContextVar[Callable[[str], None] | None] = ContextVar("log", default=None)


@contextmanager
def logged(note: Callable[[str], None]) -> Iterator[None]:
    """In its body, `note` receives each command and each file that is written, in shell syntax."""
    token = _LOG.set(note)
    try:
        yield
    finally:
        _LOG.reset(token)


def as_user(user: str | int | None) -> tuple[str, ...]:
    """The words before a command that have it run as this user; a number is a user's and a group's."""
    if isinstance(user, int):
        return ("setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", "--")
    return ("runuser", "-u", user, "--") if user else ()


def note_command(*arguments: str | Path, user: str | int | None = None, is_server: bool = False) -> None:
    """Says a command that runs, to who asked for it by `logged`."""
    if note := _LOG.get():
        note(shlex.join(map(str, (*as_user(user), *arguments))) + (" &" if is_server else ""))


def note_line(text: str) -> None:
    """Says what was done otherwise, as a command of a shell that does it by hand."""
    if note := _LOG.get():
        note(text)


def write_file(file: Path, content: str) -> None:
    """Writes a file that an experiment needs, and notes it as a here-document."""
    file.write_text(content)
    if note := _LOG.get():
        body = content if content.endswith("\n") else f"{content}\n"
        end = "END"
        while end in content:
            end += "_"
        note(f"cat >{shlex.quote(str(file))} <<'{end}'\n{body}{end}")


def run_tool(*arguments: str | Path, pass_fds: Sequence[int] = ()) -> str:
    """Runs a program and returns what it printed; a UserError has what it complained of.

    pass_fds: open files that it holds, too, such as a lock that says that it still runs.
    """
    note_command(*arguments)
    # In a group of its own: Ctrl-C is for us, and file systems must be unmounted in order.
    process = None
    try:
        with held_back():
            # Interrupted within, Popen leaves a program that no one waits for.
            process = subprocess.Popen(
                [*map(str, arguments)],
                env={**os.environ, "PATH": _path()},
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                errors="replace",
                stdin=subprocess.DEVNULL,
                process_group=0,
                pass_fds=pass_fds,
            )
        output, errors = process.communicate()
    except BaseException:
        if process is not None:
            process.kill()
            process.communicate()
        raise
    if process.returncode:
        messages = (errors.strip() or output.strip()).splitlines()
        # The last line of mount(8) since 2.38.
        messages = [line for line in messages if "dmesg(1) may have more information" not in line]
        raise UserError(
            messages[-1] if messages else f"exit status {process.returncode}", place=str(arguments[0])
        )
    return output
