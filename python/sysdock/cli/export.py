"""`sysdock export`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from sysdock.cli.options import export_filter_options, recording_argument, take_filters

_EPILOG = """Example:

\b
  sysdock export rec --to csv -o tables
"""


@click.command("export", epilog=_EPILOG)
@recording_argument
@click.option(
    "--to", "format_", type=click.Choice(["parquet", "csv"]), required=True, help="Format of the files."
)
@click.option("-o", "--output", type=click.Path(path_type=Path), required=True, help="Folder; new or empty.")
@export_filter_options
def command(recording: Path, format_: str, output: Path, **options: Any) -> None:
    """Write the tables of a recording as files, one a table, with paths and program names filled in."""
    from sysdock.cli.output import remark
    from sysdock.library import Library
    from sysdock.recording import Recording
    from sysdock.recording.export import export

    files, notes = export(Recording.open(recording), Library(), output, format_, take_filters(options))
    for file in files:
        print(f"{file.path}  {file.rows:,} rows")
    for note in notes:
        remark(note)
