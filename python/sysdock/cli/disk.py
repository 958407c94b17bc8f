"""`sysdock disk`: where the files of a file system lie."""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from typing import Any

import click

from sysdock.cli.options import lang_option, recording_argument

_EPILOG = """Example:

\b
  sysdock disk scan /home -o rec
  sysdock show rec disk/files
"""
_SCAN_EPILOG = """Example:

\b
  sysdock disk scan / -o rec             # a mounted file system
  sysdock disk scan /var/lib/db -o rec   # one folder or file of it
  sysdock disk scan disk.img -o rec      # an image, or a device such as /dev/sda1
"""
_MAP_EPILOG = """Example:

\b
  sysdock disk map rec                        # rec/map.png
  sysdock disk map rec -o map.html            # zoom, click a cell for its files, search
  sysdock disk map rec -o db.png --find /var/lib/db
"""
_MAP_ENDINGS = (".png", ".html")
_FORWARD = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@click.group("disk", epilog=_EPILOG)
def command() -> None:
    """Where files lie on a disk, how they break apart, and what it costs."""


@command.command("scan", epilog=_SCAN_EPILOG)
@click.argument("target", type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    metavar="REC",
    required=True,
    help="Folder to make; new.",
)
@click.option(
    "--threads", type=int, default=0, metavar="N", help="Threads that ask. Default: two for each core."
)
@click.pass_context
def scan(ctx: click.Context, target: Path, output: Path, threads: int) -> None:
    """Read which file has which blocks, what is free, and what the file system keeps for itself.

    TARGET: a mount point, a folder, a file, a block device or an image file. What can be read without root is
    read without; how much that is, is said.
    """
    from sysdock.cli.recording import hand_over, run_with_progress
    from sysdock.recording.native import refuse_existing

    refuse_existing(output)
    options = [f"--threads={threads}"] if threads else []
    code = run_with_progress(["disk scan", "-o", str(output), *options, "--", str(target)], _FORWARD)
    if (output / "recording.json").exists():
        hand_over(output)
        _answer(output)
    ctx.exit(code)


@command.command("map", epilog=_MAP_EPILOG)
@recording_argument
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    metavar="OUT.png|html",
    help="Picture, or page with zoom and search. Default: map.png in the recording.",
)
@click.option(
    "--curve",
    type=click.Choice(["hilbert", "rows"]),
    default="hilbert",
    show_default=True,
    help="hilbert: what is near on the device is near on the map. rows: line by line.",
)
@click.option(
    "--size",
    type=click.Choice(["512", "1024", "2048", "4096"]),
    default="1024",
    show_default=True,
    help="Side of the picture [pixels].",
)
@click.option("--worst", is_flag=True, help="Paint a cell as a break if a quarter of it is.")
@click.option(
    "--from", "from_byte", type=click.IntRange(min=0), default=0, metavar="BYTE", help="Start of the window."
)
@click.option(
    "--length", type=click.IntRange(min=1), metavar="BYTES", help="Its length. Default: to the end."
)
@click.option("--find", metavar="PATH", help="Light up what lies at or below this path.")
@lang_option
def map_(recording: Path, output: Path | None, size: str, lang: str, **options: Any) -> None:
    """Draw where files lie on the device, and where they break apart.

    A file of that name is replaced.
    """
    from sysdock.chart.output import write_atomically
    from sysdock.cli.output import remark
    from sysdock.disk_map import MapOptions, drawn, page, picture
    from sysdock.errors import UserError

    path = output or recording / "map.png"
    if path.suffix.lower() not in _MAP_ENDINGS:
        raise UserError(
            f"`{path.suffix or path.name}` is no kind of map", "end it in .png or .html", str(path)
        )
    wanted = MapOptions(size=int(size), **options)
    if path.suffix.lower() == ".html":
        content = page(recording, wanted, lang)
    else:
        content = picture(drawn(recording, wanted), lang, wanted.find)
    write_atomically(path, content)
    remark(f"{path} written")


def _answer(output: Path) -> None:
    """The summary of a scan, and what to ask next."""
    from sysdock.analysis import Session
    from sysdock.analysis.writing import table_lines
    from sysdock.cli.output import remark
    from sysdock.recording import Recording

    with Session(Recording.open(output)) as session:
        result = session.run(session.library.analysis("disk/summary"))
        sys.stdout.write("\n".join(table_lines(result.columns, result.rows())) + "\n")
    remark(f"scanned into {output}; next: sysdock show {output} disk/files")
