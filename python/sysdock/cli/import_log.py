"""`sysdock import`."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import click

from sysdock.cli.options import (
    color_option,
    lang_option,
    new_recording_option,
    report_option,
    share_option,
)

_EPILOG = """Example:

\b
  strace -f -ttt -T -y -o tar.log tar cf /dev/null /usr/share/doc
  sysdock import tar.log -o rec
  sysdock import --align node1/run.strace node2/run.strace -o job
  sysdock import fio.json ior.txt mdtest.txt elbencho.csv -o results
  sysdock import callgrind.out.4711 -o profile
"""


@click.command("import", epilog=_EPILOG)
@click.argument("logs", nargs=-1, required=True, metavar="LOG...")
@new_recording_option
@click.option(
    "--date",
    metavar="YYYY-MM-DD",
    help="Date of the first line, for logs that have only times of day (-t, -tt). Default: the file's date.",
)
@click.option(
    "--offset",
    "offsets",
    multiple=True,
    metavar="HOST=SECONDS",
    help="Seconds to add to the times of a log, which is given by its name, or by a folder or "
    "dotted part of its path.",
)
@click.option(
    "--align",
    is_flag=True,
    help="Estimate the clock differences between the logs from files that they share. Reads the logs twice.",
)
@click.option(
    "--follow",
    is_flag=True,
    help="Continue to read logs that are still written, until Ctrl-C or until every process in "
    "them has ended.",
)
@click.option(
    "--truss-columns",
    metavar="dDE",
    help="Time columns of a truss log, as the letters of truss's options. Default: detected from the log.",
)
@click.option(
    "--threads", type=int, default=0, metavar="N", help="Number of threads. Default: one for each core."
)
@share_option
@report_option
@lang_option
@color_option
@click.pass_context
def command(
    ctx: click.Context,
    /,
    logs: tuple[str, ...],
    output: Path,
    date: str | None,
    offsets: tuple[str, ...],
    align: bool,
    follow: bool,
    truss_columns: str | None,
    threads: int,
    share: bool,
    with_report: bool,
    lang: str,
) -> None:
    """Make a recording from logs, which may be compressed, then print what they show.

    LOG: a file (plain, .gz, .zst), several files of a set or of several hosts, or - for standard input.
    System calls: strace, truss. File system benchmarks: fio (JSON), IOR, mdtest, elbencho. Instructions:
    callgrind profiles.
    """
    from sysdock.cli.output import remark
    from sysdock.cli.recording import answer, load_ahead, run_with_progress
    from sysdock.recording.native import refuse_existing

    refuse_existing(output)
    # Ctrl-C in a terminal reaches the native program by itself; a signal to this process is passed on.
    forward = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    options = ["--date", date] if date else []
    options += [f"--offset={offset}" for offset in offsets]
    options += ["--align"] if align else []
    options += ["--follow"] if follow else []
    options += [f"--truss-columns={truss_columns}"] if truss_columns is not None else []
    options += [f"--threads={threads}"] if threads else []
    options += ["--share"] if share else []
    library = load_ahead()
    code = run_with_progress(["import", "-o", str(output), *options, "--", *logs], forward)
    if (output / "recording.json").exists():
        if code == 130:
            remark(f"interrupted; what was read so far is in {output}")
        else:
            answer(output, library, sys.stdout, lang, with_report)
    ctx.exit(code)
