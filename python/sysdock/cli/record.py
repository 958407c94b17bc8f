"""`sysdock record`."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click

from sysdock.cli.options import recorder_options

_EPILOG = """Example:

\b
  sysdock record -o rec -p 4242 --for 30s        a running process, for half a minute
  sysdock record -o rec -a --for 10s             all processes
  sysdock record -o rec --cgroup /sys/fs/cgroup/system.slice/nginx.service
  sysdock record -o rec -p 4242 --stacks=slower:100us      with source lines of slow calls
  sysdock record -o rec -- make -j4              like `sysdock run`, without the answer

Ctrl-C also stops recording, and keeps what was recorded. The exit status is that of the command.
"""


@click.command("record", epilog=_EPILOG, context_settings={"allow_interspersed_args": False})
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), metavar="REC", help="New folder for the recording."
)
@click.option(
    "-p",
    "--pid",
    type=int,
    multiple=True,
    help="A running process, its child processes, and all processes that they start.",
)
@click.option(
    "--cgroup", type=click.Path(), help="All processes of a control group (version 2), given by its folder."
)
@click.option("-a", "--all", "all_", is_flag=True, help="All processes of the system.")
@click.option("--for", "for_", metavar="TIME", help="Stop after this time: 500ms, 30s, 5m.")
@recorder_options
@click.argument("cmd", nargs=-1, type=click.UNPROCESSED, metavar="[-- CMD...]")
@click.pass_context
def command(
    ctx: click.Context,
    /,
    output: Path | None,
    pid: tuple[int, ...],
    cgroup: str | None,
    all_: bool,
    for_: str | None,
    cmd: tuple[str, ...],
    **options: Any,
) -> None:
    """Record running processes, or a command. Needs CAP_BPF and CAP_PERFMON (root has them)."""
    from sysdock.cli.output import remark
    from sysdock.cli.recording import end_as, recorder_arguments, run_native_recorder

    folder = output or Path(f"sysdock-{time.strftime('%Y%m%d-%H%M%S')}")
    chosen = [word for number in pid for word in ("-p", str(number))]
    chosen += ["--cgroup", cgroup] if cgroup else []
    chosen += ["-a"] if all_ else []
    chosen += ["--for", for_] if for_ else []
    code = run_native_recorder(folder, [*chosen, *recorder_arguments(options)], cmd)
    if (folder / "recording.json").exists():
        remark(f"recorded in {folder}; next: sysdock diagnose {folder}")
    end_as(ctx, code)
