"""`sysdock disk`: where the files of a file system lie."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sysdock.cli.native_options import native_options
from sysdock.cli.options import (
    format_option,
    lang_option,
    open_recordings,
    recording_argument,
)
from sysdock.cli.sizes import Size

if TYPE_CHECKING:
    from sysdock.disk.series import Snapshot, StripOptions

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
  sysdock disk scan /srv --used-by run -o rec   # with the files that a recorded program used
"""
_MAP_EPILOG = """Example:

\b
  sysdock disk map rec                        # rec/map.png
  sysdock disk map rec -o map.html            # zoom, click a cell for its files, search
  sysdock disk map rec -o db.png --find /var/lib/db
"""
_MAP_ENDINGS = (".png", ".html")
_SNAPSHOT_EPILOG = """Example:

\b
  sysdock disk snapshot /srv -o /var/lib/sysdock/srv --keep 52   # from cron, or a timer of systemd
"""
_SERIES_EPILOG = """Example:

\b
  sysdock disk series /var/lib/sysdock/srv
  sysdock disk series /var/lib/sysdock/srv -o series.html   # film strip and graph; or .png
"""
_DIFF_EPILOG = """Example:

\b
  sysdock disk scan /srv -o before
  e4defrag /srv
  sysdock disk scan /srv -o after
  sysdock disk diff before after
"""
_FRAGMENT_EPILOG = """Example:

\b
  sysdock disk fragment /mnt/test/broken --files 32 --size 16M --piece 4K
  sysdock disk scan /mnt/test/broken -o rec
  sysdock show rec disk/files
"""
# What the native program draws for pages, and what several maps have in common.
_OF_PAGES = {"output", "pieces", "most", "least-size"}
_FORWARD = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@click.group("disk", epilog=_EPILOG)
def command() -> None:
    """Show where files are stored on a disk, how fragmented they are, and what that costs."""


@command.command("scan", epilog=_SCAN_EPILOG)
@click.argument("target", type=click.Path(path_type=Path))
@native_options("disk scan", without={"into"})
@click.option(
    "--used-by",
    type=click.Path(path_type=Path),
    metavar="REC",
    help="Recording of calls: note how much its files were used, for `disk/hot_files` and its rule.",
)
@click.pass_context
def scan(ctx: click.Context, /, target: Path, used_by: Path | None, given: dict[str, Any]) -> None:
    """Read the block map of a file system: the blocks of files, free space and metadata.

    TARGET: a mount point, a folder, a file, a block device or an image file. What can be read without root is
    read without it; how much that is, is reported. Where the device may be read, at most 35 MiB of it are, in
    half a second, to measure what one more request costs it.
    """
    from sysdock.cli.recording import load_ahead, run_with_progress, write_used_files
    from sysdock.own_folder import refuse_existing
    from sysdock.recording.native import native_words
    from sysdock.scratch import scratch_folder

    output = given["output"]
    refuse_existing(output)
    with scratch_folder() as folder:
        if used_by is not None:
            write_used_files(used_by, Path(folder) / "used")
            given["usage"] = Path(folder) / "used"
        load_ahead()
        code = run_with_progress(native_words("disk scan", given, target), _FORWARD)
    if (output / "recording.json").exists():
        _answer(output)
    ctx.exit(code)


@command.command("map", epilog=_MAP_EPILOG)
@recording_argument
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    metavar="OUT.png|html",
    help="Picture, or page with zoom and search, to write. Default: map.png in the recording.",
)
@native_options("disk map", without=_OF_PAGES | {"from", "length"})
@click.option(
    "--from",
    "from_byte",
    type=Size(least=0),
    default=0,
    metavar="SIZE",
    help="Start of the window on the device: 4096, 16M, 1G.",
)
@click.option("--length", type=Size(), metavar="SIZE", help="Its length. Default: to the end.")
@lang_option
def map_(
    recording: Path,
    output: Path | None,
    from_byte: int,
    length: int | None,
    lang: str,
    given: dict[str, Any],
) -> None:
    """Draw where files are stored on the device, and where they are fragmented.

    A file of that name is replaced.
    """
    from sysdock.chart.output import write_atomically
    from sysdock.cli.output import remark
    from sysdock.disk.map import MapOptions, drawn, page, picture

    path = output or recording / "map.png"
    _refuse_other_endings(path)
    if given.get("find"):
        given["find"] = _as_scanned(given["find"])
    open_recordings(recording)
    wanted = MapOptions(from_byte=from_byte, length=length, **given)
    if path.suffix.lower() == ".html":
        content = page(recording, wanted, lang)
    else:
        content = picture(drawn(recording, wanted), lang, wanted.find)
    write_atomically(path, content)
    remark(f"{path} written")


def _as_scanned(path: str) -> str:
    """A path from here as a scan of a mounted file system names it; of an image it may be another one's."""
    return path if os.path.isabs(path) or not os.path.exists(path) else os.path.realpath(path)


@command.command("snapshot", epilog=_SNAPSHOT_EPILOG)
@click.argument("target", type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    metavar="SERIES",
    required=True,
    help="Folder of the series.",
)
@click.option("--keep", type=click.IntRange(min=1), metavar="N", help="Remove all but the newest N scans.")
@click.pass_context
def snapshot(ctx: click.Context, /, target: Path, output: Path, keep: int | None) -> None:
    """Scan into a series: a folder with one recording for each scan, named by its time."""
    from sysdock.cli.output import remark
    from sysdock.cli.recording import run_with_progress
    from sysdock.disk import series
    from sysdock.recording.native import native_words

    with series.opened_or_made(output) as place:
        folder = series.next_name(place)
        words = native_words("disk scan", {"output": folder.name}, target.absolute())
        code = run_with_progress(words, _FORWARD, within=place)
        if code == 0:
            series.mark(folder)
            for path in series.remove_older(place, keep) if keep else []:
                remark(f"{output / path.name} removed")
            remark(f"scanned into {output / folder.name}; next: sysdock disk series {output}")
    ctx.exit(code)


@command.command("series", epilog=_SERIES_EPILOG)
@click.argument("series", type=click.Path(path_type=Path), metavar="SERIES")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    metavar="OUT.png|html",
    help="Write maps and graph as a picture or a page.",
)
@native_options("disk map", without=_OF_PAGES | {"size", "from", "length", "find"})
@format_option
@lang_option
def show_series(series: Path, output: Path | None, format_: str, lang: str, given: dict[str, Any]) -> None:
    """Show how a file system aged: a line for each scan of a series, or its maps side by side and a graph.

    A file of that name is replaced.
    """
    from sysdock.cli.output import print_rows, terminal_width
    from sysdock.disk import series as of_scans
    from sysdock.library import Library

    library = Library()
    open_recordings(*of_scans.folders(series))
    found = of_scans.snapshots(series, library)
    if output is None:
        print_rows(of_scans.columns(library), of_scans.rows(found), format_, terminal_width())
    else:
        _draw_series(series, found, output, of_scans.StripOptions(**given), lang)


def _draw_series(series: Path, found: list[Snapshot], output: Path, options: StripOptions, lang: str) -> None:
    from sysdock.chart.output import write_atomically
    from sysdock.cli.output import remark
    from sysdock.disk import series as of_scans
    from sysdock.disk.series.graph import specs
    from sysdock.errors import UserError
    from sysdock.library import Library

    _refuse_other_endings(output)
    if not found:
        hint = "`sysdock disk snapshot TARGET -o SERIES` adds one"
        raise UserError("the series holds no complete scan", hint, str(series))
    library = Library()
    strip, graph = of_scans.film_strip(found, options), specs(found, library, lang)
    if output.suffix.lower() == ".html":
        content = of_scans.page(strip, graph, (of_scans.columns(library), of_scans.rows(found)), lang)
    else:
        content = of_scans.picture(strip, graph, lang)
    write_atomically(output, content)
    remark(f"{output} written")


@command.command("diff", epilog=_DIFF_EPILOG)
@click.argument("before", type=click.Path(path_type=Path), metavar="A")
@click.argument("after", type=click.Path(path_type=Path), metavar="B")
@click.option("--limit", type=click.IntRange(min=0), default=50, help="Files to print; 0: all. Default: 50.")
@format_option
def diff(before: Path, after: Path, limit: int, format_: str) -> None:
    """Compare two scans of a file system: files that are new, lost or moved."""
    from sysdock.cli.output import print_rows, remark, terminal_width
    from sysdock.disk.difference import COLUMNS, difference, total_columns
    from sysdock.library import Library

    first, second = open_recordings(before, after)
    library = Library()
    found = difference(first, second, library)
    shown = found.files[:limit] if limit else found.files
    if format_ == "table":
        print_rows(total_columns(library), found.totals, format_, terminal_width())
        sys.stdout.write("\n")
    print_rows(COLUMNS, shown, format_, terminal_width())
    if len(found.files) > len(shown):
        remark(f"{len(found.files) - len(shown):,} more files; `--limit 0` shows all")


@command.command("fragment", epilog=_FRAGMENT_EPILOG)
@click.argument("folder", type=click.Path(path_type=Path), metavar="DIR")
@click.option(
    "--mode",
    type=click.Choice(["interleave", "comb", "classic"]),
    default="interleave",
    help="interleave (default): fragments allocated in turns. comb: into the holes between small files that "
    "fill the file system. classic: writers that append by turns.",
)
@click.option("--files", type=click.IntRange(min=1), default=32, help="Number of files. Default: 32.")
@click.option(
    "--size",
    type=Size(),
    default=16 << 20,
    metavar="SIZE",
    help="Size of each file. Default: 16M.",
)
@click.option(
    "--piece",
    type=Size(least=512),
    default=4096,
    metavar="SIZE",
    help="Size of a fragment. Default: 4K.",
)
@click.option(
    "--at-once",
    type=click.IntRange(min=1),
    default=32,
    help="Concurrent writers, in mode classic. Default: 32.",
)
@click.pass_context
def fragment(
    ctx: click.Context, /, folder: Path, mode: str, files: int, size: int, piece: int, at_once: int
) -> None:
    """Create fragmented files with a known number of fragments, to measure their cost.

    DIR is made new; comb fills its whole file system meanwhile, so give one that is for nothing else.
    The pieces that came of it are counted, as filefrag counts them. Where these are not as many as were
    planned, as where free space is fragmented, both numbers are reported; the exit status is 1 where they
    differ by more than 1 %.
    """
    from contextlib import closing

    from sysdock.cli.output import remark
    from sysdock.disk.broken_files import Plan
    from sysdock.disk.comb import MODES
    from sysdock.errors import UserError
    from sysdock.own_folder import create
    from sysdock.to_disk import umask

    with closing(create(folder, 0o777 & ~umask())) as made:
        try:
            planned = MODES[mode](made.reach, Plan(files, size, piece, at_once))
        except OSError as error:
            why = (error.strerror or str(error)).lower()
            fact = f"{files} files of {size:,} bytes could not be made: {why}"
            hint = "what was created so far is left there; remove it, and use fewer or smaller files"
            raise UserError(fact, hint, str(folder)) from None
        pieces, is_as_planned = _pieces(made.reach, planned)
    remark(f"{folder}: {files} files of {size:,} bytes, {pieces}; next: sysdock disk scan {folder} -o rec")
    ctx.exit(0 if is_as_planned else 1)


def _pieces(folder: Path, planned: int | None) -> tuple[str, bool]:
    """Count the fragments of the files in a folder, and check that they match the plan to 1 %."""
    from sysdock.disk.broken_files import made_files
    from sysdock.disk.fiemap import fragments
    from sysdock.errors import UserError

    try:
        counted = sum(fragments(path) for path in made_files(folder))
    except UserError as error:
        expected = "fragments" if planned is None else f"{planned:,} fragments expected"
        return f"{expected}, and not counted: {error.fact}", True
    if planned is None:
        return f"{counted:,} fragments, a number that depends on the file system", True
    if counted == planned:
        return f"{counted:,} fragments", True
    why = "this file system allocated other extents than requested"
    return f"{planned:,} fragments expected, got {counted:,}: {why}", abs(counted - planned) * 100 <= planned


def _refuse_other_endings(path: Path) -> None:
    from sysdock.errors import UserError

    if path.suffix.lower() not in _MAP_ENDINGS:
        fact = f"`{path.suffix or path.name}` is not a map format"
        raise UserError(fact, "end it in .png or .html", str(path))


def _answer(output: Path) -> None:
    """The summary of a scan, and what to ask next."""
    from sysdock.analysis import Session
    from sysdock.cli.output import print_result, remark

    with Session(open_recordings(output)[0]) as session:
        print_result(session.run("disk/summary"), "table", None)
    remark(f"scanned into {output}; next: sysdock show {output} disk/files")
