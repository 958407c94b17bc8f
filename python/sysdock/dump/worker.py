"""The child process in which a script runs: `python -m sysdock.dump.worker`.

Reads its task as JSON from standard input. To the file descriptor `out` go, one a line, an empty object where
the script begins, JSON lists of some rows, and an object that says how it ended. Started again for each
script: what one does to its interpreter is gone with it.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
import sysconfig
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from sysdock.analysis import sandbox
from sysdock.dump.connection import Connection
from sysdock.dump.dump import Dump
from sysdock.dump.rows import Rows
from sysdock.errors import UserError
from sysdock.library.dump_scripts import compile_script, parse_dump_script
from sysdock.recording.process import die_with_parent

# linux/sched.h.
_NEW_USER, _NEW_NET = 0x10000000, 0x40000000
_BATCH = 500


@dataclass(frozen=True)
class Task:
    """The task from the parent: the script at `path` on the dump `core`, in the empty `folder`."""

    core: str
    path: str
    folder: str
    params: dict[str, Any]
    user_memory: bool
    memory_mb: int
    seconds: int
    out: int
    parent: int


def main() -> None:
    """Runs the one task and reports how it went."""
    task = Task(**json.load(sys.stdin))
    die_with_parent(task.parent)
    # Output of the script is for people, and must not mix with rows.
    sys.stdout = sys.stderr
    with os.fdopen(task.out, "w", encoding="utf-8") as out:
        try:
            report = _run(task, out)
        except UserError as error:
            report = {"stopped": error.fact}
        except _Late:
            report = {"stopped": f"more time than allowed ({task.seconds} s)"}
        except MemoryError:
            report = {"stopped": f"more memory than allowed ({task.memory_mb} MB)"}
        except BrokenPipeError:
            os._exit(0)
        except Exception as error:
            report = {"stopped": _place_of(error, task.path)}
        out.write(json.dumps(report) + "\n")


def _run(task: Task, out: IO[str]) -> dict[str, Any]:
    script = parse_dump_script(Path(task.path))
    code = compile_script(script)
    # Everything that is opened or started has to be before the doors are closed.
    dump = Dump(Connection(Path(task.core), {"user_memory": task.user_memory}))
    os.chdir(task.folder)
    lacking = _confine(task)
    scope: dict[str, Any] = {"__name__": script.name, "Rows": Rows}
    exec(code, scope)
    # From here on the script's time counts.
    out.write("{}\n")
    out.flush()
    signal.signal(signal.SIGALRM, _stop)
    signal.setitimer(signal.ITIMER_REAL, task.seconds)
    sender = _Sender(out, [column.name for column in script.columns])
    try:
        for row in scope["run"](dump, **task.params) or ():
            sender.add(row)
    finally:
        # Also the results of a script that was stopped.
        signal.setitimer(signal.ITIMER_REAL, 0)
        sender.flush()
    return {"stopped": None, "lacking": lacking}


class _Late(BaseException):
    """The time is over. Not one of those that a script catches when it catches everything."""


def _stop(*_: object) -> None:
    raise _Late


def _confine(task: Task) -> list[str]:
    """Closes the doors; returns what could not be closed, in words."""
    lacking = []
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_NEW_NET) != 0 and libc.unshare(_NEW_USER | _NEW_NET) != 0:
        lacking.append(f"the network is not cut off: {os.strerror(ctypes.get_errno())}")
    modules = {Path(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    package = Path(__file__).resolve().parents[2]
    why = sandbox.confine(task.memory_mb << 20, task.seconds + 1, [package, *modules], Path(task.folder))
    return [*lacking, *([why] if why else [])]


def _tuple(row: Any, names: list[str]) -> list[Any]:
    """The values of a row in the order of the columns: given as such, by name, or as a row of the API."""
    if isinstance(row, dict):
        unknown = [name for name in row if name not in names]
        if unknown:
            raise UserError(f"no column `{unknown[0]}` is described")
        return [row.get(name) for name in names]
    if hasattr(row, "_fields"):
        return [getattr(row, name, None) for name in names]
    if not isinstance(row, (list, tuple)) or len(row) != len(names):
        raise UserError(f"a row is not {len(names)} values: {str(row)[:80]}")
    return list(row)


class _Sender:
    """Gives rows on, some at a time."""

    def __init__(self, out: IO[str], names: list[str]) -> None:
        self._out = out
        self._names = names
        self._rows: list[list[Any]] = []

    def add(self, row: Any) -> None:
        self._rows.append(_tuple(row, self._names))
        if len(self._rows) == _BATCH:
            self.flush()

    def flush(self) -> None:
        if self._rows:
            self._out.write(json.dumps(self._rows) + "\n")
            self._rows = []


def _place_of(error: Exception, path: str) -> str:
    """The mistake, and the line of the script in which it was made."""
    own = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == path]
    where = f"line {own[-1].lineno}: " if own else ""
    return f"{where}{type(error).__name__}: {error}"


if __name__ == "__main__":
    main()
