"""Writes the charts of an analysis to one file: PNG, SVG or HTML by its ending. Nothing is fetched."""

from __future__ import annotations

import os
import secrets
import stat
import struct
import zlib
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from sysdock import to_disk
from sysdock.analysis import Session
from sysdock.chart.drawing import drawings, title_in_words
from sysdock.errors import UserError
from sysdock.library import Analysis
from sysdock.page.theme import config
from sysdock.sentences import say
from sysdock.to_disk import umask

ENDINGS = (".png", ".svg", ".html")
VEGA_LITE = "6.4"
_PNG_SCALE = 1.5


def write(
    session: Session,
    analysis: Analysis | str,
    params: Mapping[str, Any] | None,
    path: Path | str,
    lang: str = "en",
) -> None:
    """Draws all charts of an analysis, one below the other, to `path`.

    UserError: another ending than .png, .svg or .html, no chart, a file that cannot be written.
    """
    path = Path(path)
    if path.suffix.lower() not in ENDINGS:
        raise UserError(
            f"`{path.suffix or path.name}` is not a picture format",
            f"end it in {', '.join(ENDINGS)}",
            str(path),
        )
    if isinstance(analysis, str):
        analysis = session.library.analysis(analysis)
    if not analysis.charts:
        drawn = [known.id for known in session.library.analyses() if known.charts]
        raise UserError(f"`{analysis.id}` has no chart", f"these have one: {', '.join(drawn)}", str(path))
    found = [drawing.spec for drawing in drawings(session, analysis, params, lang)]
    title = say(title_in_words(session, analysis), lang)
    write_atomically(path, _rendered(found, path.suffix.lower(), title, lang))


def write_atomically(path: Path, content: bytes) -> None:
    """Writes next to `path` and renames, so that there is never half a file of that name.

    A link of the user's own is followed, and what is no plain file (/dev/stdout, a pipe) is written to, never
    replaced. A file that is there keeps its mode; in a recording that is not shared, no one else may read it.
    UserError: a link of somebody else, a recording that others may write to.
    """
    found = _found(path)
    mode = _mode_of_new(path, found)
    # Only what was seen to be a link of ours is followed: what is put there from now on is replaced.
    is_link = found is not None and stat.S_ISLNK(found.st_mode)
    path = path.resolve() if is_link else path
    try:
        if found is not None and not stat.S_ISREG(found.st_mode) and path.exists() and not path.is_file():
            flags = os.O_WRONLY | os.O_CLOEXEC | (0 if is_link else os.O_NOFOLLOW)
            with open(os.open(path, flags), "wb") as out:
                out.write(content)
            return
        new = f".{path.name[:100]}.{secrets.token_hex(8)}"
        with to_disk.replacing(path, 0o600, name=new) as out:
            out.write(content)
            os.fchmod(out.fileno(), mode)
    except OSError as error:
        raise UserError(f"cannot be written: {error.strerror}", place=str(path)) from None


def _found(path: Path) -> os.stat_result | None:
    """What has that name now: a link itself, not what it leads to."""
    try:
        return path.lstat()
    except OSError:
        return None


def _mode_of_new(path: Path, found: os.stat_result | None) -> int:
    """The mode that a file is to have; refuses what others may have put in its place."""
    folder = path.parent
    if found is not None:
        if stat.S_ISLNK(found.st_mode) and found.st_uid not in (os.geteuid(), 0):
            raise UserError("is a link of another user", "remove it, or name another file with -o", str(path))
        if stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid():
            return stat.S_IMODE(found.st_mode)
    with suppress(OSError):
        (folder / "recording.json").lstat()
        above = folder.stat()
        if above.st_uid != os.geteuid() or above.st_mode & 0o022:
            fact = (
                "others may write to this folder"
                if above.st_uid == os.geteuid()
                else "belongs to another user"
            )
            raise UserError(fact, "name a file elsewhere with -o", str(folder))
        return 0o644 if above.st_mode & stat.S_IROTH else 0o600
    return 0o666 & ~umask()


def stacked(found: list[dict[str, Any]], theme: str = "light") -> dict[str, Any]:
    """Several specifications as one, below each other."""
    if len(found) == 1:
        return {**found[0], "config": config(theme), "padding": 14}
    parts = [{key: value for key, value in spec.items() if key != "$schema"} for spec in found]
    return {
        "$schema": found[0]["$schema"],
        "vconcat": parts,
        "spacing": 34,
        "padding": 14,
        "resolve": {"scale": {"color": "independent", "shape": "independent"}},
        "config": config(theme),
    }


def _rendered(found: list[dict[str, Any]], ending: str, title: str, lang: str) -> bytes:
    if ending == ".html":
        from sysdock.page.document import chart_page

        return chart_page(found, title, lang).encode()
    import vl_convert

    spec = stacked(found)
    # Without a list of allowed places, a specification could make the converter fetch things.
    try:
        if ending == ".svg":
            return vl_convert.vegalite_to_svg(spec, VEGA_LITE, allowed_base_urls=[]).encode()
        return _repacked(vl_convert.vegalite_to_png(spec, VEGA_LITE, scale=_PNG_SCALE, allowed_base_urls=[]))
    except ValueError as error:
        # The first line names the operation, the second one the cause; the rest are locations in Vega.
        fact = f"cannot be drawn: {' '.join(str(error).splitlines()[1:2]) or error}"
        raise UserError(fact, "check the chart template that the analysis names", title) from None


def _repacked(png: bytes) -> bytes:
    """The picture compressed again: the converter compresses its pixels poorly."""
    place, kept, pixels = 8, [], b""
    while place < len(png):
        length, kind = struct.unpack(">I4s", png[place : place + 8])
        chunk = png[place : place + 12 + length]
        if kind == b"IDAT":
            pixels += chunk[8:-4]
        else:
            kept.append((kind, chunk))
        place += 12 + length
    packed = zlib.compress(zlib.decompress(pixels), 9)
    data = struct.pack(">I", len(packed)) + b"IDAT" + packed
    data += struct.pack(">I", zlib.crc32(data[4:]))
    before = b"".join(chunk for kind, chunk in kept if kind != b"IEND")
    return png[:8] + before + data + kept[-1][1]
