"""`sysdock run`."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import click

from sysdock.cli.native_options import native_options
from sysdock.cli.options import color_option, default_recorder, lang_option, report_option

_EPILOG = """Example:

\b
  sysdock run -- tar cf /dev/null /usr/share/doc
  sysdock run -o rec -- make -j4
  sysdock run -o rec --report -- make -j4           with rec/report.html
  sudo sysdock run -o rec -- ./simulation       the program runs as you
  sudo sysdock run --stacks=all -- ./simulation     with source lines
  sudo sysdock run --request 'u:./server:handle(id=i32)' -- ./server
  sudo sysdock run --scan /srv -- ./import          and where the files of /srv lie afterwards

The exit status is that of the command, or 2 if recording could not start.
"""
# What `record` has for processes that run already.
_OF_OTHERS = {"pid", "cgroup", "all", "for"}


@click.command("run", epilog=_EPILOG, context_settings={"allow_interspersed_args": False})
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), metavar="REC", help="New folder for the recording."
)
@click.option(
    "--scan",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="When CMD has ended, also scan where the files of DIR lie, into the same recording.",
)
@report_option
@native_options("record", without=_OF_OTHERS | {"output"}, defaults={"with": default_recorder})
@lang_option
@color_option
@click.argument("cmd", nargs=-1, required=True, type=click.UNPROCESSED, metavar="-- CMD...")
@click.pass_context
def command(
    ctx: click.Context,
    /,
    output: Path | None,
    scan: Path | None,
    with_report: bool,
    lang: str,
    cmd: tuple[str, ...],
    given: dict[str, Any],
) -> None:
    """Record CMD, then print its bottlenecks (on standard error).

    CMD keeps its standard streams, signals and exit status. It is recorded with eBPF when permitted (root, or
    CAP_BPF and CAP_PERFMON); under sudo, CMD runs as the user who called sudo. Otherwise it is recorded with
    strace, which slows programs down much more, and a line says why.
    """
    from sysdock.cli.output import remark
    from sysdock.cli.recording import (
        add_scan,
        answer,
        end_as,
        load_ahead,
        refuse_missing,
        run_native_recorder,
    )

    if scan:
        refuse_missing(scan)
    folder = output or Path(f"sysdock-{Path(cmd[0]).name}-{time.strftime('%Y%m%d-%H%M%S')}")
    library = load_ahead()
    code = run_native_recorder(folder, given, cmd)
    if not (folder / "recording.json").exists():
        # The native program has reported why.
        end_as(ctx, code or 2)
    try:
        if scan:
            add_scan(folder, scan)
        if output is None:
            remark(f"recorded in {folder}")
        answer(folder, library, sys.stderr, lang, with_report)
    except OSError:
        # Nobody reads the message. The caller waits for the status of the command.
        pass
    end_as(ctx, code)
