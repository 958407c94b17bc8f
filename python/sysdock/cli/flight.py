"""`sysdock flight`: a recorder that is always on, and keeps the last minute."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from sysdock.cli.native_options import become, native_options

_EPILOG = """Example:

\b
  sysdock flight start --on signal --on run-queue:100ms
  sysdock flight status
  sysdock flight dump -o rec --text "the page was slow"
  sysdock diagnose rec
  sysdock flight stop
"""
_START_EPILOG = """Triggers:

\b
  call:TIME               a call about files takes longer; not reads of pipes or sockets
  call/NAME:TIME          this call takes longer, such as call/futex:1s
  run-queue:TIME          a thread waits longer for a CPU
  lock:TIME               a thread waits longer for a lock of the kernel
  pressure/cpu:PERCENT    threads waited for the CPU in that part of a second; memory, io, too
  signal                  a process is killed, but not by TERM, INT, HUP or PIPE
  signal:NAME,...         a process is killed by one of these
  probe                   a place named by --probe is reached
  command:COMMAND         a program with its arguments, run every 10 s, ends with status 0

Example:

\b
  sysdock flight start
  sysdock flight start --keep 30s --on call/fsync:500ms
  sysdock flight start --what io,sched,cpu --on signal
  sysdock flight start --on "command:systemctl is-failed db.service"
"""
_STATUS_EPILOG = """Example:

\b
  sysdock flight status --format json
"""
_DUMP_EPILOG = """Example:

\b
  sysdock flight dump -o rec --text "the page was slow"
  sysdock diagnose rec
"""
_STOP_EPILOG = """Example:

\b
  sysdock flight stop
"""


@click.group("flight", epilog=_EPILOG)
def command() -> None:
    """Record the last minute in memory, and write it as a recording when a trigger fires.

    The recording has the time before that moment. Needs CAP_BPF and CAP_PERFMON (root has them).
    """


@command.command("start", epilog=_START_EPILOG)
@native_options("flight start")
def start(given: dict[str, Any]) -> None:
    """Start recording into memory, in the background.

    All processes of the system are recorded, unless others are named.
    """
    become("flight start", given)


@command.command("status", epilog=_STATUS_EPILOG)
@native_options("flight status")
def status(given: dict[str, Any]) -> None:
    """Say what a flight recorder holds, and what it has written."""
    become("flight status", given)


@command.command("dump", epilog=_DUMP_EPILOG)
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), metavar="REC", help="New folder for the recording."
)
@native_options("flight dump", without={"output"})
@click.pass_context
def dump(ctx: click.Context, /, output: Path | None, given: dict[str, Any]) -> None:
    """Write what a flight recorder holds as a recording. It goes on."""
    import time

    from sysdock.cli.output import remark
    from sysdock.cli.recording import run_with_progress
    from sysdock.own_folder import refuse_existing
    from sysdock.recording.native import native_words

    folder = output or Path(f"sysdock-{time.strftime('%Y%m%d-%H%M%S')}")
    refuse_existing(folder)
    code = run_with_progress(native_words("flight dump", {"output": folder, **given}), ())
    if code == 0:
        remark(f"recorded in {folder}; next: sysdock diagnose {folder}")
    ctx.exit(code)


@command.command("stop", epilog=_STOP_EPILOG)
@native_options("flight stop")
def stop(given: dict[str, Any]) -> None:
    """End it. What it holds is gone; what it has written stays."""
    become("flight stop", given)
