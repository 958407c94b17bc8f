"""`sysdock bench`: one item of load on a file system."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

from sysdock.cli.bench_diskio import command as diskio
from sysdock.cli.native_options import native_options
from sysdock.cli.options import default_language
from sysdock.health.units import bytes_of, ns_of

_EPILOG = """Example:

\b
  sysdock bench transfer /data --length 1MiB --processes 8 --for 5s -o rec
  sysdock bench log /var/lib/db --length 8KiB --for 5s
  sysdock show rec load/results
  sysdock bench diskio /var/lib/db       what a PostgreSQL would get from it
"""
_ITEMS = {
    "transfer": "Write files from their beginning to their end, and read them.",
    "volume": "Transfer a fixed number of bytes (--size), whatever the length of a request.",
    "metadata": "Create, find, list, rename and remove files and directories.",
    "log": "Append records and make each of them last, as the log of a database.",
    "random_read": "Read at random offsets.",
    "random_mix": "Read and write at random offsets while a log is written.",
    "mmap": "Write and read through a mapping.",
    "depth": "Read at random offsets with many requests in flight (--depth).",
    "control": "Compute, and touch no file: how fast the machine itself is.",
}
# Options of a step: its field in a plan, and how the value stands there.
_FIELDS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "length": ("length_bytes", bytes_of),
    "processes": ("processes", int),
    "for": ("time_ns", ns_of),
    "size": ("size_bytes", bytes_of),
    "files": ("files", int),
    "depth": ("depth", int),
    "layout": ("layout", str),
    "sync": ("sync", str),
    "operations": ("operations", lambda text: text.split(",")),
    "write_share": ("write_share", float),
    "direct": ("direct", bool),
    "prefilled": ("prefilled", bool),
    "verify": ("verify", bool),
}
# What the native program has for plans, and what each item is called by.
_OF_PLANS = {"output", "plan", "item", "within", "rows", "patience"}
# Items that have no end of their own.
_TIMED = {"log", "random_read", "random_mix", "depth", "control"}
_FORWARD = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@click.group("bench", epilog=_EPILOG)
def command() -> None:
    """Measure one aspect of a file system with a load, and report whether the result can be trusted.

    Works in a folder of its own below DIR and removes it. Reads that the device did not do, workers that did
    not run at the same time, and limits of control groups are marked in `status`.
    """


def _options(function: Callable[..., Any]) -> Callable[..., Any]:
    options: list[Callable[[Callable[..., Any]], Callable[..., Any]]] = [
        click.argument("directory", metavar="DIR", type=click.Path(path_type=Path)),
        click.option(
            "-o",
            "--output",
            type=click.Path(path_type=Path),
            metavar="REC",
            help="Keep the result as a recording.",
        ),
        native_options("load", without=_OF_PLANS),
        click.option(
            "--engine",
            type=click.Choice(["own", "fio"]),
            default="own",
            help="fio: repeat it with fio, as far as fio supports it, and show both.",
        ),
        click.option(
            "--format", "format_", type=click.Choice(["table", "json"]), default="table", show_default=True
        ),
    ]
    for option in reversed(options):
        function = option(function)
    return function


def _verb(item: str, text: str) -> click.Command:
    @click.pass_context
    def verb(ctx: click.Context, /, given: dict[str, Any], **options: Any) -> None:
        _run(ctx, item, given, options)

    verb.__doc__ = text
    return click.command(item)(_options(verb))


for _item, _text in _ITEMS.items():
    command.add_command(_verb(_item, _text))
command.add_command(diskio)


def _run(ctx: click.Context, item: str, given: dict[str, Any], options: dict[str, Any]) -> None:
    from sysdock.cli.recording import run_with_progress
    from sysdock.health.folder import kept
    from sysdock.health.planned import called
    from sysdock.recording.native import native_words

    if item in _TIMED:
        given = {"for": "5s", **given}
    with kept(options["output"]) as folder:
        native = {"output": folder, "called": called(), "item": item, **given}
        code = run_with_progress(native_words("load", native, options["directory"]), _FORWARD)
        if (folder / "recording.json").exists():
            if options["engine"] == "fio" and code == 0:
                add_by_fio(folder, options["directory"], [_step(item, given)])
            show(folder, options["format_"])
    ctx.exit(code)


def _step(item: str, given: dict[str, Any]) -> dict[str, Any]:
    """The step as a plan has it."""
    fields = {name: value for name, value in given.items() if name in _FIELDS and value is not False}
    return {"item": item, **{_FIELDS[name][0]: _FIELDS[name][1](value) for name, value in fields.items()}}


def add_by_fio(folder: Path, directory: Path, steps: Sequence[dict[str, Any]]) -> None:
    """Does steps by fio, and adds what it measured to the recording; what went wrong is reported."""
    from sysdock.cli.output import remark
    from sysdock.health import fio_engine

    for line in fio_engine.add(folder, directory, steps):
        remark(f"fio: {line}")


def show(folder: Path, format_: str) -> None:
    """Prints what was measured: a table, or the rows of `load_results` as JSON."""
    from sysdock.analysis import Session
    from sysdock.analysis.writing import table_lines, write_json
    from sysdock.cli.output import remark, terminal_width
    from sysdock.health import results
    from sysdock.recording import Recording
    from sysdock.screen.color import painted_head

    with Session(Recording.open(folder)) as session:
        found = results.rows(session)
        if format_ == "json":
            names = list(found[0]) if found else []
            write_json(sys.stdout, names, [list(row.values()) for row in found])
            return
        lines = table_lines(results.COLUMNS, results.lines(found), terminal_width())
        print("\n".join(painted_head(lines, sys.stdout)), flush=True)
        for text, count in results.notes(found, default_language()):
            remark(text if count == 1 else f"{text} ({count} rows)")
