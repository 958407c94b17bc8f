"""`sysdock disk`: where the files of a file system lie."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import click

_EPILOG = """Example:

\b
  sysdock disk scan /home -o rec
  sysdock show rec disk/files
"""
_SCAN_EPILOG = """Example:

\b
  sysdock disk scan / -o rec             # a mounted file system
  sysdock disk scan /var/lib/db -o rec   # one folder or file of it
  sysdock disk scan disk.img -o rec      # an image, or a device such as /dev/sda1
"""
_FORWARD = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@click.group("disk", epilog=_EPILOG)
def command() -> None:
    """Where files lie on a disk, how they break apart, and what it costs."""


@command.command("scan", epilog=_SCAN_EPILOG)
@click.argument("target", type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    metavar="REC",
    required=True,
    help="Folder to make; new.",
)
@click.option(
    "--threads", type=int, default=0, metavar="N", help="Threads that ask. Default: two for each core."
)
@click.pass_context
def scan(ctx: click.Context, target: Path, output: Path, threads: int) -> None:
    """Read which file has which blocks, what is free, and what the file system keeps for itself.

    TARGET: a mount point, a folder, a file, a block device or an image file. What can be read without root is
    read without; how much that is, is said.
    """
    from sysdock.cli.recording import hand_over, run_with_progress
    from sysdock.recording.native import refuse_existing

    refuse_existing(output)
    options = [f"--threads={threads}"] if threads else []
    code = run_with_progress(["disk scan", "-o", str(output), *options, "--", str(target)], _FORWARD)
    if (output / "recording.json").exists():
        hand_over(output)
        _answer(output)
    ctx.exit(code)


def _answer(output: Path) -> None:
    """The summary of a scan, and what to ask next."""
    from sysdock.analysis import Session
    from sysdock.analysis.writing import table_lines
    from sysdock.cli.output import remark
    from sysdock.recording import Recording

    with Session(Recording.open(output)) as session:
        result = session.run(session.library.analysis("disk/summary"))
        sys.stdout.write("\n".join(table_lines(result.columns, result.rows())) + "\n")
    remark(f"scanned into {output}; next: sysdock show {output} disk/files")
