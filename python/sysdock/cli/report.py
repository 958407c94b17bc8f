"""`sysdock report`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from sysdock.cli.options import filter_options, lang_option, open_session, recording_argument

_EPILOG = """Example:

\b
  sysdock report rec -o out.html
"""


@click.command("report", epilog=_EPILOG)
@recording_argument
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help="File to write. Default: report.html in the recording.",
)
@filter_options
@lang_option
def command(recording: Path, output: Path | None, lang: str, **options: Any) -> None:
    """Write everything about a recording into one HTML file, which needs no network.

    A file of that name is replaced.
    """
    from sysdock.cli.output import remark
    from sysdock.report import write_report

    path = output or recording / "report.html"
    with open_session(recording, options) as session:
        write_report(session, path, lang)
        for note in session.notes:
            remark(note)
    remark(f"{path} written")
