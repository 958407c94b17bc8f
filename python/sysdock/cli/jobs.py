"""`sysdock jobs`."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sysdock.cli.options import DUCKDB, engine_of, engine_option, format_option
from sysdock.errors import UserError

if TYPE_CHECKING:
    from sysdock.analysis import Session

_EPILOG = """Example:

\b
  sysdock jobs top --lake /data/lake
  sysdock jobs show 4242 --lake /data/lake
"""
_TOP_EPILOG = """Example:

\b
  sysdock jobs top --lake /data/lake                       the last minute
  sysdock jobs top --lake /data/lake --every 10s           again and again
  sysdock jobs top --lake /data/lake --by metadata --target /work
  sysdock jobs top --lake /data/lake --at 2026-11-20T08:30:00 --last 10m
"""
_SHOW_EPILOG = """Example:

\b
  sysdock jobs show 4242 --lake /data/lake
  sysdock jobs show 4242 --lake /data/lake --at 2026-11-20 --last 7d --step 1h
"""
_COMPARE_EPILOG = """Example:

\b
  sysdock jobs compare 4242 --lake /data/lake              with its earlier runs
  sysdock jobs compare 4242 4100 --lake /data/lake         with another job
"""
_OVERLOAD_EPILOG = """Example:

\b
  sysdock jobs overload --lake /data/lake
  sysdock jobs overload --lake /data/lake --at 2026-11-20T12:00:00 --last 2h --times 5 --target /work
"""
_HISTORY_EPILOG = """Example:

\b
  sysdock jobs history --lake /data/lake --last 365d --step 30d
  sysdock jobs history --lake /data/lake --user alice --format csv
"""

_lake_option = click.option(
    "--lake",
    required=True,
    type=click.Path(path_type=Path),
    metavar="DIR",
    envvar="SYSDOCK_LAKE",
    help="Folder of the lake; also set by SYSDOCK_LAKE.",
)
_text_or_json = click.option(
    "--format", "format_", type=click.Choice(["table", "json"]), default="table", show_default=True
)
_at_option = click.option(
    "--at", default="now", show_default=True, metavar="T", help="End of the period, as an ISO time stamp."
)


@click.group("jobs", epilog=_EPILOG)
def command() -> None:
    """Show which jobs load the file systems, now and in the past, from a lake written by agents."""


@command.command("top", epilog=_TOP_EPILOG)
@_lake_option
@_at_option
@click.option("--last", default="1m", show_default=True, metavar="TIME", help="Length of the period.")
@click.option(
    "--by",
    type=click.Choice(["io_wait", "bytes", "operations", "metadata", "cpu"]),
    default="io_wait",
    show_default=True,
    help="Column to sort by, and to show shares of.",
)
@click.option("--target", metavar="DIR", help="Only calls on the file system mounted there.")
@click.option("--every", metavar="TIME", help="Repeat at this interval, until Ctrl-C.")
@click.option(
    "--limit",
    type=click.IntRange(min=0),
    default=20,
    show_default=True,
    help="Maximum number of jobs; 0: all.",
)
@engine_option
@format_option
def top(
    lake: Path,
    at: str,
    last: str,
    by: str,
    target: str | None,
    every: str | None,
    limit: int,
    engine: str,
    format_: str,
) -> None:
    """List jobs by their activity on all nodes."""
    from sysdock.cli.output import print_result, remark
    from sysdock.jobs.moments import moment_ns, span_ns

    pause_s = span_ns(every, "--every") / 1e9 if every else None
    length_ns = span_ns(last)
    while True:
        end_ns = moment_ns(at)
        begin_ns = end_ns - length_ns
        with _session(lake, begin_ns, end_ns, engine) as session:
            params = {"begin_ns": begin_ns, "end_ns": end_ns, "by": by, "target": target or ""}
            result = session.run("jobs/top", params)
            if pause_s and sys.stdout.isatty():
                click.clear()
            print_result(result, format_, limit)
            if not result.row_count():
                remark(_nothing_then(session, begin_ns, end_ns))
        if pause_s is None:
            return
        sys.stdout.flush()
        time.sleep(pause_s)


@command.command("show", epilog=_SHOW_EPILOG)
@click.argument("job")
@_lake_option
@_at_option
@click.option("--last", default="1d", show_default=True, metavar="TIME", help="Length of the period.")
@click.option("--step", metavar="TIME", help="Length of a step. Default: about 30 steps.")
@_text_or_json
def show(job: str, lake: Path, at: str, last: str, step: str | None, format_: str) -> None:
    """What a job did: in all, over time, and the files that took most of its time."""
    from sysdock.cli.output import terminal_width
    from sysdock.jobs.moments import moment_ns, span_ns
    from sysdock.jobs.one_job import HEADS, about_job, lines_of
    from sysdock.text import printable

    end_ns = moment_ns(at)
    begin_ns = end_ns - span_ns(last)
    step_s = max(1, span_ns(step, "--step") // 1_000_000_000) if step else None
    with _session(lake, begin_ns, end_ns) as session:
        found = about_job(session, job, begin_ns, end_ns, step_s)
    heads = [*HEADS, *(printable(finding["title"]) for finding in found["findings"])]
    _print(found, lines_of(found, terminal_width()), format_, heads)


@command.command("compare", epilog=_COMPARE_EPILOG)
@click.argument("job")
@click.argument("other", required=False)
@_lake_option
@_at_option
@click.option("--last", default="90d", show_default=True, metavar="TIME", help="Length of the period.")
@_text_or_json
def compare(job: str, other: str | None, lake: Path, at: str, last: str, format_: str) -> None:
    """What is different in JOB from its earlier runs, or from OTHER, and how sure that is.

    Runs of a job are those of the same user and name.
    """
    from sysdock.jobs.comparing import HEADS, compare_jobs, lines_of
    from sysdock.jobs.moments import moment_ns, span_ns

    end_ns = moment_ns(at)
    with _session(lake, end_ns - span_ns(last), end_ns) as session:
        found = compare_jobs(session, job, other)
    _print(found, lines_of(found), format_, HEADS)


@command.command("overload", epilog=_OVERLOAD_EPILOG)
@_lake_option
@_at_option
@click.option("--last", default="1d", show_default=True, metavar="TIME", help="Length of the period.")
@click.option(
    "--usual",
    default="7d",
    show_default=True,
    metavar="TIME",
    help="Period from which the usual values are taken.",
)
@click.option(
    "--times",
    type=click.FloatRange(min=1, min_open=True),
    default=3.0,
    show_default=True,
    help="How many times the usual wait counts as high load.",
)
@click.option("--step", default="1m", show_default=True, metavar="TIME", help="Length of a step.")
@click.option("--target", metavar="DIR", help="Only the file system mounted there.")
@click.option(
    "--limit",
    type=click.IntRange(min=0),
    default=20,
    show_default=True,
    help="Maximum number of steps; 0: all.",
)
@engine_option
@format_option
def overload(
    lake: Path,
    at: str,
    last: str,
    usual: str,
    times: float,
    step: str,
    target: str | None,
    limit: int,
    engine: str,
    format_: str,
) -> None:
    """Show when calls on a file system waited much longer than usual, and which job made most of them."""
    from sysdock.cli.output import print_result
    from sysdock.jobs.moments import moment_ns, span_ns

    end_ns = moment_ns(at)
    begin_ns = end_ns - span_ns(last)
    step_s = max(1, span_ns(step, "--step") // 1_000_000_000)
    params = {
        "begin_ns": begin_ns,
        "end_ns": end_ns,
        "times": times,
        "step_s": step_s,
        "target": target or "",
    }
    with _session(lake, min(begin_ns, end_ns - span_ns(usual, "--usual")), end_ns, engine) as session:
        print_result(session.run("jobs/overload", params), format_, limit)


@command.command("history", epilog=_HISTORY_EPILOG)
@_lake_option
@_at_option
@click.option("--last", default="30d", show_default=True, metavar="TIME", help="Length of the period.")
@click.option("--step", default="1d", show_default=True, metavar="TIME", help="Length of a step, in days.")
@click.option("--user", metavar="NAME", help="Only this user.")
@click.option("--limit", type=click.IntRange(min=0), default=0, help="Rows; 0, the default: all.")
@engine_option
@format_option
def history(
    lake: Path, at: str, last: str, step: str, user: str | None, limit: int, engine: str, format_: str
) -> None:
    """Show file system use by user and day or month."""
    from sysdock.cli.output import print_result
    from sysdock.jobs.moments import moment_ns, span_ns

    end_ns = moment_ns(at)
    days = span_ns(step, "--step") // 86_400_000_000_000
    if days < 1:
        raise UserError(f"--step {step}: shorter than a day", "write 1d, 7d or 30d")
    with _session(lake, end_ns - span_ns(last), end_ns, engine) as session:
        params = {"days": days, "user": user or ""}
        print_result(session.run("jobs/history", params), format_, limit)


def _print(found: dict[str, Any], lines: list[str], format_: str, heads: Sequence[str]) -> None:
    """Prints the results, as JSON or as `lines` for people."""
    from sysdock.cli.output import say

    if format_ == "json":
        import json

        from sysdock.text import harmless_json

        print(harmless_json(json.dumps(found, ensure_ascii=False)))
        return
    say(lines, heads=heads, statuses={"changed": "finding"})


def _session(lake: Path, begin_ns: int, end_ns: int, engine: str = DUCKDB) -> Session:
    from sysdock.analysis import Session
    from sysdock.recording.lake import Lake, days_between

    return Session(Lake.open(lake, days_between(begin_ns, end_ns)), engine=engine_of(engine))


def _nothing_then(session: Session, begin_ns: int, end_ns: int) -> str:
    """Why a list is empty."""
    if "job_samples" not in session.recording.tables:
        return "the lake has no samples of that day"
    sql = "SELECT max(ts_ns) FROM job_samples WHERE ts_ns <= $end_ns"
    [(last_ns,)] = session.fetch(sql, {"end_ns": end_ns})
    if last_ns is None:
        return "the samples of that day are all later"
    if last_ns > begin_ns:
        return "no calls on that file system in that time"
    return f"no samples in that time; the last one before it is {(end_ns - last_ns) / 1e9:,.0f} s older"
