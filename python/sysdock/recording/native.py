"""Starts the native program `sysdock-native`, which writes recordings."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import sysdock
from sysdock.errors import UserError
from sysdock.recording.signals import passed_on

NAME = "sysdock-native"
# Standard streams that were closed when we were started. The command finds them closed, and not /dev/null.
closed_streams: set[int] = set()


def find_native() -> Path:
    """The native program: next to this Python, $SYSDOCK_NATIVE, on PATH, or built in the checkout."""
    neighbor = Path(sys.executable).parent / NAME
    candidates = [neighbor]
    if stated := os.environ.get("SYSDOCK_NATIVE"):
        candidates.append(Path(stated))
    if on_path := shutil.which(NAME):
        candidates.append(Path(on_path))
    candidates.append(Path(sysdock.__file__).resolve().parents[2] / "target" / "release" / NAME)
    for candidate in candidates:
        if candidate.is_file() and os.access(candidate, os.X_OK):
            return candidate
    hint = "reinstall sysdock, run `make setup` in a checkout, or set SYSDOCK_NATIVE to the program"
    raise UserError(f"the program {NAME} was not found", hint)


def option_words(options: Mapping[str, object]) -> list[str]:
    """Options of the native program as words of its command line, by their names, `no_loss` or `no-loss`.

    A flag is True, a repeated option a list or tuple; what is None or False is left out.
    """
    words = []
    for name, value in options.items():
        option = f"--{name.replace('_', '-')}"
        if value is True:
            words.append(option)
        elif isinstance(value, list | tuple):
            words += [f"{option}={each}" for each in value]
        elif value is not None and value is not False:
            words.append(f"{option}={value}")
    return words


def native_words(verb: str, options: Mapping[str, object], *arguments: str | Path) -> list[str]:
    """A command line of the native program: first its verb, with those below it in one word (`disk scan`)."""
    return [verb, *option_words(options), *(["--", *map(str, arguments)] if arguments else [])]


def command_line(verb: str, options: Mapping[str, object], *arguments: str | Path) -> list[str]:
    """The same as a process is started with it."""
    return [str(find_native()), *verb.split(), *native_words(verb, options, *arguments)[1:]]


def run_native(
    arguments: Sequence[str],
    on_progress: Callable[[dict[str, Any]], None],
    *,
    forward: Sequence[int] = (signal.SIGTERM, signal.SIGHUP),
    within: Path | None = None,
) -> int:
    """Runs the native program with inherited streams until it ends, and returns its exit status.

    The first argument is the verb, with those below it (`disk scan`). Progress events are read from a pipe of
    their own and given to `on_progress` (in a thread). The signals in `forward` are passed on to it; of one
    that the whole process group was sent, a recorder knows that it has a copy already.
    `within`: its working directory. A death by signal N is the status -N.
    """
    read_end, write_end = os.pipe()
    verb, *rest = arguments
    progress = ["--progress", "--progress-fd", str(write_end)]
    command = [str(find_native().absolute()), *verb.split(), *progress, *rest]
    with passed_on(forward) as child:
        try:
            # Descriptors that the user's shell left open are passed to the command: `sysdock run -- cat
            # <(date)`.
            os.set_inheritable(write_end, True)
            for stream in closed_streams:
                os.set_inheritable(stream, False)
            process = subprocess.Popen(command, close_fds=False, cwd=within)
        except OSError as error:
            os.close(read_end)
            raise UserError(f"cannot be started: {error.strerror}", place=command[0]) from None
        finally:
            os.close(write_end)
        child.started(process.pid)
        # A program that the command left running may keep the pipe open: the thread is not waited for long.
        reader = threading.Thread(target=_read_events, args=(read_end, on_progress), daemon=True)
        reader.start()
        child.wait()
        code = process.wait()
        reader.join(timeout=0.2)
    return code


def become_native(arguments: Sequence[str], *, as_child: bool) -> int:
    """Goes on as the native program, which then takes no more memory than it does alone.

    `as_child`: this process has more to do; the program is run as a child, and its exit status is returned.
    """
    verb, *rest = arguments
    command = [str(find_native()), *verb.split(), *rest]
    if as_child:
        return subprocess.run(command, check=False).returncode
    sys.stdout.flush()
    for stream in closed_streams:
        os.set_inheritable(stream, False)
    try:
        os.execv(command[0], command)
    except OSError as error:
        raise UserError(f"cannot be started: {error.strerror}", place=command[0]) from None


def _read_events(read_end: int, on_progress: Callable[[dict[str, Any]], None]) -> None:
    with os.fdopen(read_end, "rb") as pipe:
        for line in pipe:
            try:
                event = json.loads(line)
            except ValueError:
                continue
            if isinstance(event, dict) and event.get("event") == "progress":
                on_progress(event)


def import_quietly(log: Path, folder: Path) -> None:
    """Imports one log into `folder`; what goes wrong is a UserError with the native program's words."""
    words = command_line("import", {"output": folder}, log)
    _quietly(words, folder, f"{NAME} could not import it", log)


def events_that_wait(folder: Path) -> int:
    """Number of events that a killed recorder has left; 0 if none can be read, or it still runs."""
    done = subprocess.run(
        command_line("salvage", {"dry_run": True}, folder),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    return int(done.stdout) if done.returncode == 0 else 0


def scan_quietly(target: Path, folder: Path) -> None:
    """Scans where files lie, into `folder`; a UserError has the native program's words."""
    words = command_line("disk scan", {"output": folder}, target)
    _quietly(words, folder, "it could not be scanned", target)


def read_dump_quietly(core: Path, folder: Path, parts: Sequence[str]) -> None:
    """Reads parts of a crash dump into `folder`; a UserError has the native program's words."""
    words = command_line("dump run", {"output": folder, "part": list(parts)}, core)
    _quietly(words, folder, "it could not be read", core)


def _quietly(arguments: Sequence[str], folder: Path, failed: str, place: Path) -> None:
    """Runs it to its end; a UserError at `place` states that it `failed` if there is no recording."""
    done = subprocess.run(
        arguments,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    if done.returncode != 0 or not (folder / "recording.json").exists():
        reason = done.stderr.strip() or f"exit status {done.returncode}, and no recording"
        raise UserError(f"{failed}: {reason}", place=str(place))
