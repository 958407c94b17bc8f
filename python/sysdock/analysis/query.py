"""Runs a user's SQL in a limited child process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any

from sysdock.errors import UserError
from sysdock.library import default_root
from sysdock.recording import Filters
from sysdock.recording.limits import Limits
from sysdock.recording.signals import held_back
from sysdock.scratch import scratch_folder

MEMORY_MB = 1024
SECONDS = 300
LIMIT = 10_000
# Room for the interpreter, the engine's code and the stacks of its threads, plus twice the memory for data.
BASE_MEMORY_MB = 512


@dataclass(frozen=True)
class Task:
    """The task of a worker. limit: rows, 0 for all; width: terminal columns of a table, or None; spill: a
    folder that it may write to; parent: the process with which it ends.
    """

    recording: str
    knowhow: str
    sql: str
    filters: dict[str, Any]
    format: str
    limit: int
    width: int | None
    memory_mb: int
    seconds: int
    threads: int
    spill: str
    status_fd: int
    parent: int
    raw: bool


@dataclass(frozen=True)
class Outcome:
    """The result of a query: whether there are `more` rows, notes on filters, parts of the sandbox that are
    `lacking`.
    """

    more: bool
    notes: list[str]
    lacking: str | None


def query(
    recording: Path,
    sql: str,
    filters: Filters | None = None,
    format: str = "table",
    limit: int = LIMIT,
    out: IO[Any] | None = None,
    *,
    knowhow: Path | None = None,
    width: int | None = None,
    memory_mb: int = MEMORY_MB,
    seconds: int = SECONDS,
    raw: bool = False,
) -> Outcome:
    """Writes the rows of one SELECT to `out` (a real file, default standard output).

    raw: texts in CSV as they are, also what would steer a terminal or a spreadsheet.

    UserError: a statement that is not one SELECT, a mistake in it, a limit that was reached.
    """
    with scratch_folder() as spill:
        read_end, write_end = os.pipe()
        task = Task(
            recording=str(recording),
            knowhow=str(knowhow or default_root()),
            sql=sql,
            filters=asdict(filters or Filters()),
            format=format,
            limit=limit,
            width=width,
            memory_mb=memory_mb,
            seconds=seconds,
            threads=min(os.cpu_count() or 1, 4),
            spill=spill,
            status_fd=write_end,
            parent=os.getpid(),
            raw=raw,
        )
        child: subprocess.Popen[str] | None = None
        with os.fdopen(read_end) as status:
            try:
                with held_back(), os.fdopen(write_end, "wb"):
                    child = _start(write_end, out)
                text = _converse(child, task, status)
            except KeyboardInterrupt:
                # It would go on to write into a folder that is being removed.
                if child:
                    child.kill()
                    child.wait()
                raise
        return _outcome(text, child.returncode, task)


def memory_within(limits: Limits) -> int:
    """Memory for data [MB] with which the whole worker stays within these limits."""
    return ((limits.memory_bytes >> 20) - BASE_MEMORY_MB) // 2


def _start(status_fd: int, out: IO[Any] | None) -> subprocess.Popen[str]:
    """A child that waits for its task and writes rows to `out`, or to our own output."""
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "sysdock.analysis.worker"],
        stdin=subprocess.PIPE,
        stdout=out,
        pass_fds=[status_fd],
        env=_environment(),
        text=True,
    )


def _converse(child: subprocess.Popen[str], task: Task, status: IO[str]) -> str:
    """Gives the child its task and reads its report."""
    assert child.stdin
    try:
        child.stdin.write(json.dumps(asdict(task)))
        child.stdin.close()
    except BrokenPipeError:
        pass
    text = status.read()
    child.wait()
    return text


def _environment() -> dict[str, str]:
    """The child needs to find this package and to write UTF-8, and has no use for anything that is secret."""
    kept = ("PATH", "PYTHONPATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "TZ", "LD_LIBRARY_PATH")
    environment = {name: os.environ[name] for name in kept if name in os.environ}
    package = Path(__file__).resolve().parents[2]
    if package.name not in ("site-packages", "dist-packages"):
        # A checkout, which Python does not find by itself.
        environment.setdefault("PYTHONPATH", str(package))
    return {**environment, "PYTHONIOENCODING": "utf-8:surrogateescape"}


def _outcome(text: str, code: int, task: Task) -> Outcome:
    report: dict[str, Any] = {}
    if text:
        report = json.loads(text)
    if report.get("interrupted"):
        raise KeyboardInterrupt
    if report.get("broken_pipe"):
        raise BrokenPipeError
    if "fact" in report:
        raise UserError(report["fact"], report["hint"], report["place"] or "query")
    if "more" not in report or code != 0:
        limits = f"{task.memory_mb} MB of memory and {task.seconds} s are allowed"
        raise UserError(f"the query was stopped ({_how(code)})", f"ask for less at once: {limits}", "query")
    return Outcome(report["more"], report["notes"], report["lacking"])


def _how(code: int) -> str:
    import signal

    if code >= 0:
        return f"exit status {code}"
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"
