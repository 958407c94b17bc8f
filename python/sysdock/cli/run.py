"""`sysdock run`."""

from __future__ import annotations

import signal
import sys
import time
from pathlib import Path

import click

from sysdock.cli.options import lang_option

_EPILOG = """Example:

\b
  sysdock run -- tar cf /dev/null /usr/share/doc
  sysdock run -o rec -- make -j4

The exit status is the command's; 2 where recording could not start.
"""


@click.command("run", epilog=_EPILOG, context_settings={"allow_interspersed_args": False})
@click.option("-o", "--output", type=click.Path(path_type=Path), metavar="REC", help="Folder to make; new.")
@lang_option
@click.argument("cmd", nargs=-1, required=True, type=click.UNPROCESSED, metavar="-- CMD...")
@click.pass_context
def command(ctx: click.Context, output: Path | None, lang: str, cmd: tuple[str, ...]) -> None:
    """Record CMD, then print what holds it back (on standard error) and write a report.

    Standard streams, signals and exit status are the command's own.
    """
    from sysdock.cli.output import remark
    from sysdock.cli.record import answer, run_with_progress
    from sysdock.recording.native import refuse_existing

    folder = output or Path(f"sysdock-{Path(cmd[0]).name}-{time.strftime('%Y%m%d-%H%M%S')}")
    refuse_existing(folder)
    code = run_with_progress(["record", "-o", str(folder), "--", *cmd], (signal.SIGTERM, signal.SIGHUP))
    if not (folder / "recording.json").exists():
        # The native program has said why.
        ctx.exit(code or 2)
    try:
        if output is None:
            remark(f"recorded in {folder}")
        answer(folder, sys.stderr, lang)
    except OSError:
        # Nobody reads what we say. The status of the command is what its caller waits for.
        pass
    ctx.exit(code)
