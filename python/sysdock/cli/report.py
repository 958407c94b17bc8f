"""`sysdock report`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from sysdock.cli.options import filter_options, lang_option, open_session, recording_argument
from sysdock.sentences import say

_EPILOG = """Example:

\b
  sysdock report rec -o out.html
  sysdock report rec --format md -o ticket.md
"""


@click.command("report", epilog=_EPILOG)
@recording_argument
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help="File to write, or `-` for standard output. Default: report.html (report.md, ...) in the recording.",
)
@click.option(
    "--format",
    "format_",
    type=click.Choice(["html", "md", "json"]),
    default="html",
    show_default=True,
    help="html: with charts. md: for a ticket. json: for machines.",
)
@filter_options
@lang_option
def command(recording: Path, output: Path | None, format_: str, lang: str, **options: Any) -> None:
    """Write a report of a recording: one file, which needs no network.

    A file of that name is replaced.
    """
    from sysdock.cli.output import remark
    from sysdock.report import as_text, write_report

    path = output or recording / f"report.{format_}"
    with open_session(recording, options) as session:
        if str(path) == "-":
            sys.stdout.write(as_text(session, format_, lang))
        else:
            write_report(session, path, lang, format_)
        for note in session.notes:
            remark(say(note, lang))
    if str(path) != "-":
        remark(f"{path} written")
