"""`sysdock import`."""

from __future__ import annotations

import signal
import sys
from typing import Any

import click

from sysdock.cli.native_options import native_options
from sysdock.cli.options import color_option, lang_option, report_option

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
@native_options("import")
@report_option
@lang_option
@color_option
@click.pass_context
def command(
    ctx: click.Context,
    /,
    logs: tuple[str, ...],
    with_report: bool,
    lang: str,
    given: dict[str, Any],
) -> None:
    """Make a recording from logs, which may be compressed, then print what they show.

    LOG: a file (plain, .gz, .zst), several files of a set or of several hosts, or - for standard input.
    System calls: strace, truss. File system benchmarks: fio (JSON), IOR, mdtest, elbencho. Instructions:
    callgrind profiles.
    """
    from sysdock.cli.output import remark
    from sysdock.cli.recording import answer, load_ahead, run_with_progress
    from sysdock.own_folder import refuse_existing
    from sysdock.recording.native import native_words

    output = given["output"]
    refuse_existing(output)
    # Ctrl-C in a terminal reaches the native program by itself; a signal to this process is passed on.
    forward = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    library = load_ahead()
    code = run_with_progress(native_words("import", given, *logs), forward)
    if (output / "recording.json").exists():
        if code == 130:
            remark(f"interrupted; what was read so far is in {output}")
        else:
            answer(output, library, sys.stdout, lang, with_report)
    ctx.exit(code)
