"""`sysdock query`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from sysdock.cli.options import filter_options, format_option, raw_option, recording_argument, take_filters

_EPILOG = """Example:

\b
  sysdock query rec 'SELECT path, sum(transferred_bytes) FROM calls GROUP BY path'
"""


@click.command("query", epilog=_EPILOG)
@recording_argument
@click.argument("sql")
@click.option(
    "--limit",
    type=click.IntRange(min=0),
    default=10_000,
    show_default=True,
    help="Maximum number of rows; 0: all.",
)
@click.option(
    "--memory",
    type=click.IntRange(min=64),
    help="Memory for data [MB]. Default: 1024; 768 of a recording from elsewhere.",
)
@click.option(
    "--time",
    "seconds",
    type=click.IntRange(min=1),
    help="Time limit [s]. Default: 300; 15 of a recording from elsewhere.",
)
@click.option("--verbose", is_flag=True, help="Report which safeguards this system lacks.")
@format_option
@raw_option
@filter_options
def command(
    recording: Path,
    sql: str,
    limit: int,
    memory: int | None,
    seconds: int | None,
    verbose: bool,
    format_: str,
    raw: bool,
    **options: Any,
) -> None:
    """Run one SELECT over the tables of a recording (`sysdock list tables`).

    It runs in a separate process, which can read only the recording.
    """
    from sysdock.analysis.query import MEMORY_MB, SECONDS, memory_within, query
    from sysdock.cli.output import remark, terminal_width
    from sysdock.recording import Recording
    from sysdock.recording.limits import limits_of

    limits = limits_of(Recording.open(recording))
    memory = memory or (memory_within(limits) if limits else MEMORY_MB)
    seconds = seconds or (limits.seconds if limits else SECONDS)
    width = terminal_width()
    outcome = query(
        recording,
        sql,
        take_filters(options),
        format_,
        limit,
        width=width,
        memory_mb=memory,
        seconds=seconds,
        raw=raw,
    )
    for note in outcome.notes:
        remark(note)
    if outcome.more:
        remark(f"only the first {limit:,} rows; `--limit 0` shows all")
    if verbose and outcome.lacking:
        remark(outcome.lacking)
