"""`sysdock merge`."""

from __future__ import annotations

import re
import shlex
from decimal import Decimal
from pathlib import Path

import click

from sysdock.cli.options import new_recording_option, open_recordings
from sysdock.errors import UserError

_EPILOG = """Example:

\b
  srun sh -c 'sysdock run -o rank.$SLURM_PROCID -- ./solver'
  sysdock merge rank.* -o job
  sysdock show job ranks/imbalance
  sysdock merge --align node1/rec node2/rec -o job
"""
_NANOSECONDS = Decimal(10**9)


@click.command("merge", epilog=_EPILOG)
@click.argument(
    "recordings",
    nargs=-1,
    required=True,
    metavar="REC...",
    type=click.Path(path_type=Path, readable=False),
)
@new_recording_option
@click.option(
    "--rank",
    "ranks",
    multiple=True,
    metavar="NAME=NUMBER",
    help="Rank of a recording, which is given by its name, or by a folder or dotted part of its "
    "path. Default: as set by MPI or the batch system, else the order given.",
)
@click.option(
    "--in-order",
    is_flag=True,
    help="Number the ranks in the order given, and ignore what MPI or the batch system set.",
)
@click.option(
    "--offset",
    "offsets",
    multiple=True,
    metavar="NAME=SECONDS",
    help="Seconds to add to the times of a recording, or of all on a host: a name as for --rank.",
)
@click.option(
    "--align",
    is_flag=True,
    help="Estimate the clock differences between hosts from files that they share.",
)
def command(
    recordings: tuple[Path, ...],
    output: Path,
    ranks: tuple[str, ...],
    in_order: bool,
    offsets: tuple[str, ...],
    align: bool,
) -> None:
    """Merge recordings of the ranks of a parallel job into one, on one clock.

    REC: recordings of commands, of system call logs, or of scans of disks. They are not changed.
    """
    from sysdock.cli.output import remark, say
    from sysdock.cli.progress import ProgressLine
    from sysdock.library import Library

    wishes_of = tuple(map(_rank, ranks)), tuple(map(_offset, offsets))
    opened = open_recordings(*recordings)
    from sysdock.recording.merging import Wishes, merge

    line = ProgressLine()
    try:
        wishes = Wishes(*wishes_of, align=align, in_order=in_order)
        merged = merge(opened, Library(), output, wishes, lambda table: line.show(f"sysdock: {table}"))
    finally:
        line.clear()
    for text in merged.remarks:
        remark(text)
    recording = merged.recording
    say([f"{output}: {recording.rows('ranks'):,} recordings, {_calls(recording.manifest['tables'])}"])
    if "calls" in recording.tables:
        folder = shlex.quote(str(output))
        print(f"Next: sysdock show {folder} ranks/imbalance   sysdock diagnose {folder}")


def _calls(tables: dict[str, dict[str, int]]) -> str:
    """The size of the merge in a unit that users know."""
    name = "calls" if "calls" in tables else "inodes" if "inodes" in tables else "ranks"
    return f"{tables[name]['rows']:,} rows of `{name}`"


def _named(text: str, option: str, form: str, pattern: str, example: str) -> tuple[str, str]:
    name, _, number = text.rpartition("=")
    if not name or not re.fullmatch(pattern, number, re.ASCII):
        raise UserError(f"not {form}", f"write it as {example}", f"{option} {text}")
    return name, number


def _rank(text: str) -> tuple[str, int]:
    name, number = _named(text, "--rank", "NAME=NUMBER", r"\d{1,9}", "node3=7")
    return name, int(number)


def _offset(text: str) -> tuple[str, int]:
    # The form that the log reader accepts.
    name, seconds = _named(text, "--offset", "NAME=SECONDS", r"[+-]?\d{1,10}(\.\d{1,9})?", "node3=-0.25")
    return name, int(Decimal(seconds) * _NANOSECONDS)
