"""`sysdock lake`."""

from __future__ import annotations

from pathlib import Path

import click

from sysdock.cli.sizes import Size

_EPILOG = """Example:

\b
  sysdock lake compact /data/lake --keep 400
  sysdock lake check /data/lake
"""
_COMPACT_EPILOG = """Example, once a day (cron or a timer):

\b
  sysdock lake compact /data/lake --keep 400
"""
_CHECK_EPILOG = """Example:

\b
  sysdock lake check /data/lake
"""
_GENERATE_EPILOG = """Example:

\b
  sysdock lake generate /tmp/lake --nodes 500 --jobs 40
"""

_lake_argument = click.argument("lake", type=click.Path(path_type=Path))


@click.group("lake", epilog=_EPILOG)
def command() -> None:
    """Maintain the lake that agents write to: merge its parts, check them, generate one for tests."""


@command.command("compact", epilog=_COMPACT_EPILOG)
@_lake_argument
@click.option("--today", is_flag=True, help="Include what was written today.")
@click.option(
    "--keep", type=click.IntRange(min=1), metavar="DAYS", help="Remove older days. Default: keep all."
)
@click.option(
    "--keep-hours",
    type=click.IntRange(min=1),
    metavar="DAYS",
    help="The same for the sums by hour, which take little space. Default: keep all.",
)
@click.option(
    "--memory",
    type=Size(least=1 << 20),
    default="1GB",
    show_default=True,
    metavar="SIZE",
    help="Memory for sorting.",
)
def compact(lake: Path, today: bool, keep: int | None, keep_hours: int | None, memory: int) -> None:
    """Merge the small parts of each day into one that is sorted by job, and add its samples up by hour.

    Readers go on meanwhile.
    """
    from sysdock.cli.output import remark, say
    from sysdock.recording.compacting import become_owner
    from sysdock.recording.compacting import compact as merge
    from sysdock.recording.lake import check_mark
    from sysdock.text import human_bytes

    check_mark(lake)
    lake = become_owner(lake)
    done = merge(lake, today=today, keep_days=keep, keep_sums_days=keep_hours, memory=f"{memory}B")
    for path in done.damaged:
        remark(f"{path}: damaged, left as it is")
    sizes = f"{human_bytes(done.bytes_before)} to {human_bytes(done.bytes_after)}"
    lines = [f"{done.parts_before:,} parts became {done.parts_after:,}, {sizes}, {done.rows:,} rows"]
    if done.summed_days:
        lines.append(f"{done.summed_days:,} days were added up by hour")
    if done.doubled_rows:
        lines.append(f"{done.doubled_rows:,} rows had come twice")
    if done.removed_days:
        lines.append(f"{done.removed_days:,} days were removed")
    say(lines)


@command.command("check", epilog=_CHECK_EPILOG)
@_lake_argument
@click.pass_context
def check(ctx: click.Context, /, lake: Path) -> None:
    """Read all parts, and say which are damaged; exit status 2 where one is."""
    from sysdock.cli.output import say
    from sysdock.recording.lake import Lake

    opened = Lake.open(lake)
    damage = opened.damage()
    say([*damage, f"{len(opened.lake_parts):,} parts, {len(damage):,} damaged"])
    ctx.exit(2 if damage else 0)


@command.command("generate", epilog=_GENERATE_EPILOG)
@_lake_argument
@click.option("--nodes", type=click.IntRange(min=1), default=100, show_default=True)
@click.option(
    "--jobs",
    type=click.IntRange(min=1),
    default=20,
    show_default=True,
    help="Jobs that run at the same time.",
)
@click.option("--hours", type=click.IntRange(1, 24), default=24, show_default=True)
@click.option("--date", default="2026-01-01", show_default=True, metavar="DATE", help="Day to generate.")
@click.option("--seed", type=int, default=1, show_default=True)
def generate(lake: Path, nodes: int, jobs: int, hours: int, date: str, seed: int) -> None:
    """Make up a day of a cluster, to try questions on: sizes and times are measured with it."""
    from sysdock.jobs.generating import generate as make

    rows = make(lake, nodes=nodes, jobs=jobs, hours=hours, date=date, seed=seed)
    print(f"{rows:,} rows in {lake}")
