"""`sysdock info`."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from sysdock.cli.options import format_option, open_session, recording_argument

_EPILOG = """Example:

\b
  sysdock info rec
  sysdock info rec --format json
"""


@click.command("info", epilog=_EPILOG)
@recording_argument
@format_option
def command(recording: Path, format_: str) -> None:
    """Show what was recorded, when, where, and how completely."""
    from sysdock.analysis.writing import json_text, write_csv
    from sysdock.sections.description import describe

    with open_session(recording) as session:
        described = describe(session)
        if format_ == "json":
            sys.stdout.write(json_text(described, indent=2) + "\n")
        elif format_ == "csv":
            pairs = (
                (key, value if not isinstance(value, (dict, list)) else json_text(value))
                for key, value in described.items()
            )
            write_csv(sys.stdout, ("name", "value"), pairs)
        else:
            from sysdock.cli.output import say
            from sysdock.screen.info import STATUSES, info_lines

            say(info_lines(session, described), statuses=STATUSES)
