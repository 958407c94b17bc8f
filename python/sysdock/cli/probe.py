"""`sysdock probe`: a small load, again and again."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sysdock.cli.options import lang_option, open_session

if TYPE_CHECKING:
    from sysdock.screen.probe import Subject

_EPILOG = """Example:

\b
  sysdock probe init /srv                     a series, and the lines for a timer
  sysdock probe once /srv                     one probe: some seconds
  sysdock probe status /srv                   slower than usual? since when, by how much, how sure
  sysdock probe show /srv
"""
_series_option = click.option(
    "--series",
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    help="Folder of the series, if it is not in the usual place.",
)
_directory = click.argument("directory", metavar="[DIR]", required=False, type=click.Path(path_type=Path))


@click.group("probe", epilog=_EPILOG)
def command() -> None:
    """Detect when a file system is slower than usual, with a small load that is repeated."""


@command.command("init")
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))
@click.option(
    "--series",
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    help="Folder to create. Default: in /var/lib/sysdock/probe for root, else in ~/.local/share.",
)
@click.option("--every", default="10min", show_default=True, metavar="TIME", help="Time between two probes.")
def init(directory: Path, series: Path | None, every: str) -> None:
    """Begin a series for the file system of DIR, and print the lines for a timer.

    A probe makes a folder in DIR with at most 64 MB, and removes it.
    """
    from sysdock.cli.output import remark, say
    from sysdock.library import Library
    from sysdock.probe.schedule import lines
    from sysdock.probe.series import begin, parse_every

    every_ns = parse_every(every)
    place, target = begin(directory, series, every_ns, Library())
    say(lines(place, target, every, every_ns))
    remark(f"{place} begun; next: sysdock probe once --series {place}")


@command.command("once")
@_directory
@_series_option
@click.option(
    "--wait",
    default=60.0,
    show_default=True,
    metavar="S",
    type=click.FloatRange(0, 3600),
    help="How long to wait for an idle machine. After that, the probe runs under load, and is marked.",
)
@click.option(
    "--timeout",
    default=60.0,
    show_default=True,
    metavar="S",
    type=click.FloatRange(1, 3600),
    help="How long to wait for the file system. No answer is a result, too.",
)
@click.pass_context
def once(
    ctx: click.Context, /, directory: Path | None, series: Path | None, wait: float, timeout: float
) -> None:
    """Measure once, and add the result to the series: at most 5 s and 64 MB, with low priority.

    The exit status is 2 where the file system cannot be measured; the series says so, too.
    """
    from sysdock.cli.output import remark
    from sysdock.library import Library
    from sysdock.probe.measuring import Limits, in_words
    from sysdock.probe.measuring import once as measure
    from sysdock.probe.series import find

    place = find(directory, series, timeout)
    done = measure(place, Library(), Limits(wait, timeout), remark)
    waited = f"; waited {done.waited_s:.0f} s" if done.waited_s else ""
    under = f"; measured under load ({in_words(done.busy)})" if done.under_load else ""
    if done.trouble is not None:
        remark(f"probe {done.probe_id} of {place} failed: {done.trouble}{waited}")
        ctx.exit(2)
    remark(f"probe {done.probe_id} of {place}: {done.rows} rows{waited}{under}")


@command.command("show")
@_directory
@_series_option
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    metavar="OUT.png|svg|html",
    help="Draw the rates over time into this file (replaced if it exists).",
)
@click.option(
    "--format",
    "format_",
    type=click.Choice(["text", "json"]),
    default="text",
    help="text (default), or json.",
)
@lang_option
def show(directory: Path | None, series: Path | None, output: Path | None, format_: str, lang: str) -> None:
    """Show a series: a graph, change points, outliers, and what comes again each day or week."""
    from sysdock.cli.output import print_result, remark, say
    from sysdock.probe.series import find
    from sysdock.screen import probe_series as render

    with open_session(find(directory, series)) as session:
        if output is not None:
            from sysdock import chart

            chart.write(session, session.library.analysis("probe/over_time"), {}, output, lang)
            remark(f"{output} written")
            return
        found = render.shown(session)
        if format_ == "json":
            from sysdock.analysis.writing import json_text

            sys.stdout.write(json_text(render.content(found), indent=1) + "\n")
            return
        say([*render.graph(found.history, lang), ""])
        print_result(session.run(session.library.analysis("probe/items")), "table", None)
        shown_lines = render.lines(found, lang)
        # Items are indented; what is not is a heading.
        say(["", *shown_lines], heads=[line for line in shown_lines if line and not line.startswith(" ")])


@command.command("status")
@_directory
@_series_option
@click.option(
    "--format",
    "format_",
    type=click.Choice(["text", "json", "openmetrics"]),
    default="text",
    help="text (default); json: a row for each item; openmetrics: for a collector that reads files.",
)
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), metavar="FILE", help="Write to FILE, atomically."
)
@click.option(
    "--call",
    "called",
    metavar="COMMAND",
    help="Command to run when the answer differs from the last one; its input is the text. No shell.",
)
@click.option(
    "--margin",
    type=click.FloatRange(0, 90),
    default=10.0,
    show_default=True,
    metavar="PERCENT",
    help="Ignore a smaller drop.",
)
@click.option(
    "--sure",
    type=click.FloatRange(50, 99.9999),
    default=99.0,
    show_default=True,
    metavar="PERCENT",
    help="Required confidence.",
)
@lang_option
@click.pass_context
def status(ctx: click.Context, /, directory: Path | None, series: Path | None, **options: Any) -> None:
    """Is the file system slower than usual? Since when, by how much, and how sure is that.

    Exit status: 0 as usual (or faster), 1 slower, 2 it cannot be measured (or an error), 3 not known yet.
    """
    import time

    from sysdock.cli.output import say
    from sysdock.probe import notify
    from sysdock.probe.series import find, last_target
    from sysdock.probe.slowdown import Settings, judge
    from sysdock.screen import probe as words

    place, now_ns = find(directory, series), time.time_ns()
    with open_session(place) as session:
        target = last_target(session.recording, session.library)
        settings = Settings(options["margin"] / 100, options["sure"] / 100)
        answer = judge(session, target["every_ns"], now_ns, settings)
    subject = words.Subject(target["mount_point"], target["fs_type"], target["source"], str(place))
    lines = words.lines(answer, subject, options["lang"], now_ns)
    text = "\n".join(lines) + "\n"
    if options["output"] is None and options["format_"] == "text":
        say(lines, statuses=words.status_names(options["lang"]))
    else:
        _write(options["output"], _in_format(options["format_"], answer, subject, text))
    if options["called"] and notify.is_news(place, answer):
        notify.call(options["called"], place, answer, text)
    ctx.exit(answer.exit_status)


def _in_format(format_: str, answer: Any, subject: Subject, text: str) -> str:
    import io

    from sysdock.analysis.writing import write_json
    from sysdock.screen import probe as words

    if format_ == "openmetrics":
        return words.openmetrics(answer, subject)
    if format_ == "json":
        buffer = io.StringIO()
        write_json(buffer, list(words.KEYS), words.rows(answer))
        return buffer.getvalue()
    return text


def _write(output: Path | None, text: str) -> None:
    from sysdock import to_disk

    if output is None:
        sys.stdout.write(text)
    else:
        to_disk.write(output, text.encode(), 0o644, lasting=False)
