"""`sysdock export`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from sysdock.cli.options import (
    export_filter_options,
    open_recordings,
    open_session,
    raw_option,
    recording_argument,
    take_filters,
)

_EPILOG = """Example:

\b
  sysdock export rec --to csv -o tables
  sysdock export rec --to perfetto -o rec.perfetto-trace     for ui.perfetto.dev
  sysdock export rec --to firefox -o rec.json.gz             for profiler.firefox.com
  sysdock export rec --to chrome -o rec.json.gz              for chrome://tracing and others
  sysdock export rec --to speedscope -o rec.speedscope.json
  sysdock export rec --to speedscope --of cpu -o rec.speedscope.json    where the CPU time went
  sysdock export rec --to callgrind -o callgrind.out.rec    for kcachegrind and callgrind_annotate
  sysdock export rec --to collapsed --of waits -o - | flamegraph.pl > waits.svg
"""
_TABLES = ("parquet", "csv")
_VIEWERS = ("perfetto", "chrome", "firefox", "speedscope", "collapsed", "callgrind")
# More than that no viewer shows in bearable time.
_MOST = 1_000_000


@click.command("export", epilog=_EPILOG)
@recording_argument
@click.option(
    "--to",
    "format_",
    type=click.Choice([*_TABLES, *_VIEWERS]),
    required=True,
    help="parquet, csv: tables. perfetto, chrome: a time line (of an instruction trace, by steps). "
    "speedscope, collapsed: a flame graph. firefox: both. callgrind: functions of an instruction trace, "
    "for KCachegrind.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    required=True,
    help="Of tables a folder, new or empty; else a file (`-`: standard output), packed where it ends in .gz.",
)
@click.option(
    "--most",
    type=click.IntRange(1),
    default=_MOST,
    show_default=True,
    help="Maximum number of calls (or stacks) in a time line or flame graph: the longest ones.",
)
@click.option(
    "--of",
    type=click.Choice(["calls", "cpu", "waits", "steps"]),
    default="calls",
    show_default=True,
    help="Of a flame graph (speedscope, collapsed): time in calls, CPU time by samples, times on no CPU, "
    "or steps of an instruction trace.",
)
@raw_option
@export_filter_options
def command(
    recording: Path, format_: str, output: Path, most: int, of: str, raw: bool, **options: Any
) -> None:
    """Write a recording for other tools: its tables, with paths and names filled in, or a picture's data."""
    from sysdock.cli.output import remark
    from sysdock.library import Library

    if format_ in _VIEWERS:
        _picture(recording, format_, output, most, of, options)
        return
    [opened] = open_recordings(recording)
    from sysdock.recording.export import export

    files, notes = export(opened, Library(), output, format_, take_filters(options), raw=raw)
    for file in files:
        print(f"{file.path}  {file.rows:,} rows")
    for note in notes:
        remark(note)


def _picture(
    recording: Path, format_: str, output: Path, most: int, of: str, options: dict[str, Any]
) -> None:
    from sysdock.cli.output import remark, remark_on
    from sysdock.export.files import tables_needed, write_file

    with open_session(recording, options) as session:
        written = write_file(session, format_, output, most, of)
        remark_on(session, tables_needed(session, format_, of))
    unit = {"speedscope": "stacks", "collapsed": "stacks", "callgrind": "functions"}.get(format_, "calls")
    cut = f" of {written.total:,}, {written.kept}" if written.shown < written.total else ""
    remark(f"{output}: {written.shown:,}{cut} {unit}")
