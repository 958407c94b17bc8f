"""`sysdock salvage`."""

from __future__ import annotations

from pathlib import Path

import click

_EPILOG = """Example:

\b
  sysdock salvage rec
"""


@click.command("salvage", epilog=_EPILOG)
@click.argument("recording", type=click.Path(path_type=Path, exists=True), metavar="REC")
@click.pass_context
def command(ctx: click.Context, /, recording: Path) -> None:
    """Repair a recording whose recorder was killed, or whose machine crashed.

    Everything up to its last flush is there, at most a second before its end.
    """
    from sysdock.cli.output import remark
    from sysdock.cli.recording import run_with_progress
    from sysdock.recording.native import native_words

    code = run_with_progress(native_words("salvage", {}, recording), ())
    if code == 0:
        remark(f"{recording} can be read; next: sysdock diagnose {recording}")
    ctx.exit(code)
