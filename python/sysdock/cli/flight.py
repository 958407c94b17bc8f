"""`sysdock flight`: a recorder that is always on, and keeps the last minute."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from sysdock.cli.options import detail_options, share_option, what_option
from sysdock.cli.sizes import Mebibytes

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
  command:COMMAND         a shell command, run every 10 s, ends with status 0

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

_name_option = click.option(
    "--name",
    default="flight",
    show_default=True,
    metavar="NAME",
    help="Name of the flight recorder, if there are several.",
)


@click.group("flight", epilog=_EPILOG)
def command() -> None:
    """Record the last minute in memory, and write it as a recording when a trigger fires.

    The recording has the time before that moment. Needs CAP_BPF and CAP_PERFMON (root has them).
    """


@command.command("start", epilog=_START_EPILOG)
@click.option(
    "-p", "--pid", type=int, multiple=True, help="A running process, and the processes that it starts."
)
@click.option(
    "--cgroup", type=click.Path(), help="All processes of a control group (version 2), given by its folder."
)
@click.option("-a", "--all", "all_", is_flag=True, help="All processes of the system (default).")
@click.option(
    "--keep",
    default="60s",
    show_default=True,
    metavar="TIME",
    help="Keep this much time, if it fits into the memory.",
)
@click.option(
    "--memory",
    type=Mebibytes(),
    default=64,
    show_default="64M",
    metavar="SIZE",
    help="Total memory for each CPU. A number without a unit is in MiB.",
)
@click.option(
    "--ring",
    type=Mebibytes(),
    metavar="SIZE",
    help="Part of it for events that were not read yet. Default: 8M.",
)
@click.option("--on", "on", multiple=True, metavar="TRIGGER", help="Write a recording when this happens.")
@click.option(
    "--into",
    default="/var/lib/sysdock/flight",
    show_default=True,
    type=click.Path(),
    metavar="DIR",
    help="Folder for recordings that triggers write.",
)
@click.option(
    "--pause",
    default="1m",
    show_default=True,
    metavar="TIME",
    help="After a trigger, only count further ones for this time.",
)
@click.option(
    "--most",
    type=int,
    default=20,
    show_default=True,
    metavar="N",
    help="Maximum number of recordings that triggers write.",
)
@click.option(
    "--disk",
    type=Mebibytes(),
    default=2048,
    show_default="2048M",
    metavar="SIZE",
    help="Triggers stop writing when DIR holds more than this.",
)
@what_option(
    "What to record, in the words of `record`. System calls only with io: they cost most. If not given: "
    "sched,system,block, and what other options need."
)
@detail_options
@click.option("--foreground", is_flag=True, help="Stay in the foreground, as services do.")
@_name_option
@click.pass_context
def start(
    ctx: click.Context,
    /,
    pid: tuple[int, ...],
    cgroup: str | None,
    all_: bool,
    keep: str,
    memory: int,
    ring: int | None,
    on: tuple[str, ...],
    into: str,
    pause: str,
    most: int,
    disk: int,
    foreground: bool,
    name: str,
    **options: Any,
) -> None:
    """Start recording into memory, in the background."""
    from sysdock.cli.recording import what_arguments

    arguments = [word for number in pid for word in ("-p", str(number))]
    arguments += ["--cgroup", cgroup] if cgroup else []
    arguments += ["-a"] if all_ else []
    arguments += [f"--keep={keep}", f"--memory={memory}", f"--into={into}", f"--pause={pause}"]
    arguments += [f"--most={most}", f"--disk={disk}"]
    arguments += [f"--ring={ring}"] if ring is not None else []
    arguments += [f"--on={trigger}" for trigger in on]
    arguments += ["--foreground"] if foreground else []
    _become(ctx, ["start", f"--name={name}", *arguments, *what_arguments(options)])


@command.command("status", epilog=_STATUS_EPILOG)
@click.option("--format", "format_", type=click.Choice(["text", "json"]), default="text", show_default=True)
@_name_option
@click.pass_context
def status(ctx: click.Context, /, format_: str, name: str) -> None:
    """Say what a flight recorder holds, and what it has written."""
    _become(ctx, ["status", f"--name={name}", f"--format={format_}"])


@command.command("dump", epilog=_DUMP_EPILOG)
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), metavar="REC", help="New folder for the recording."
)
@click.option(
    "--text", default="by hand", show_default=True, metavar="TEXT", help="Reason, noted in the recording."
)
@share_option
@_name_option
@click.pass_context
def dump(ctx: click.Context, /, output: Path | None, text: str, share: bool, name: str) -> None:
    """Write what a flight recorder holds as a recording. It goes on."""
    import time

    from sysdock.cli.output import remark
    from sysdock.cli.recording import run_with_progress
    from sysdock.recording.native import refuse_existing

    folder = output or Path(f"sysdock-{time.strftime('%Y%m%d-%H%M%S')}")
    refuse_existing(folder)
    arguments = ["flight dump", "-o", str(folder), f"--text={text}", f"--name={name}"]
    code = run_with_progress([*arguments, *(["--share"] if share else [])], ())
    if code == 0:
        remark(f"recorded in {folder}; next: sysdock diagnose {folder}")
    ctx.exit(code)


@command.command("stop", epilog=_STOP_EPILOG)
@_name_option
@click.pass_context
def stop(ctx: click.Context, /, name: str) -> None:
    """End it. What it holds is gone; what it has written stays."""
    _become(ctx, ["stop", f"--name={name}"])


def _become(ctx: click.Context, arguments: list[str]) -> None:
    from sysdock import cli
    from sysdock.recording.native import become_native

    ctx.exit(become_native(["flight", *arguments], as_child=not cli.owns_process))
