"""Pictures of charts: right kind, not blank, Japanese drawn, nothing half written."""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from chart_analyses import BARS, EMPTY, NAMED, WAVE
from sysdock import chart
from sysdock.analysis import Session
from sysdock.chart.output import write_atomically
from sysdock.errors import UserError

Opener = Callable[..., Session]


def pixels(png: bytes) -> tuple[int, int, list[bytes]]:
    """Width, height and the filtered rows of an 8-bit RGBA picture; every chunk is checked."""
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    place, packed = 8, b""
    while place < len(png):
        length, kind = struct.unpack(">I4s", png[place : place + 8])
        body = png[place + 8 : place + 8 + length]
        [checksum] = struct.unpack(">I", png[place + 8 + length : place + 12 + length])
        assert zlib.crc32(kind + body) == checksum
        if kind == b"IHDR":
            width, height, depth, colour = struct.unpack(">IIBB", body[:10])
            assert (depth, colour) == (8, 6)
        if kind == b"IDAT":
            packed += body
        place += 12 + length
    raw = zlib.decompress(packed)
    step = 1 + 4 * width
    assert len(raw) == step * height
    return width, height, [raw[at : at + step] for at in range(0, len(raw), step)]


def test_png_has_content(open_session: Opener, tmp_path: Path) -> None:
    path = tmp_path / "out.png"
    chart.write(open_session(bars=BARS), "t/bars", {}, path)
    width, height, rows = pixels(path.read_bytes())
    assert width > 800
    assert height > 800
    assert len(set(rows)) > 100


def test_japanese_is_not_drawn_as_boxes(open_session: Opener, tmp_path: Path) -> None:
    """Two names of the same length make different pictures only if their characters have glyphs."""
    session = open_session(one=NAMED.replace("NAME", "名前"), two=NAMED.replace("NAME", "亀鶴"))
    for name in ("one", "two"):
        chart.write(session, f"t/{name}", {}, tmp_path / f"{name}.png")
    assert (tmp_path / "one.png").read_bytes() != (tmp_path / "two.png").read_bytes()


def test_svg_has_the_text(open_session: Opener, tmp_path: Path) -> None:
    path = tmp_path / "out.svg"
    chart.write(open_session(bars=BARS), "t/bars", {}, path)
    text = path.read_text()
    assert text.startswith("<svg")
    assert "名前.txt" in text
    assert "<script" not in text


def test_html_holds_all_it_needs(open_session: Opener, tmp_path: Path) -> None:
    path = tmp_path / "out.html"
    chart.write(open_session(wave=WAVE), "t/wave", {}, path, lang="ja")
    text = path.read_text()
    assert '<html lang="ja">' in text
    assert text.count("data-chart=") == 2
    assert "http://" not in text.replace("http://www.w3.org", "")


def test_another_ending_is_refused(open_session: Opener, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="is not a picture format"):
        chart.write(open_session(wave=WAVE), "t/wave", {}, tmp_path / "out.gif")


def test_an_analysis_without_a_chart_is_refused(open_session: Opener, tmp_path: Path) -> None:
    plain = "\n".join(line for line in EMPTY.splitlines() if not line.startswith("-- chart:"))
    session = open_session(plain=plain + "\n", wave=WAVE)
    with pytest.raises(UserError, match="has no chart") as caught:
        chart.write(session, "t/plain", {}, tmp_path / "out.png")
    assert "t/wave" in caught.value.hint


def test_a_folder_that_is_not_there_is_named(open_session: Opener, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot be written"):
        chart.write(open_session(wave=WAVE), "t/wave", {}, tmp_path / "no" / "out.svg")


def test_a_device_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    write_atomically(pipe, b"content")
    assert os.read(reader, 100) == b"content"
    os.close(reader)
    assert pipe.is_fifo()


def test_a_link_is_followed(tmp_path: Path) -> None:
    link = tmp_path / "link.html"
    link.symlink_to(tmp_path / "real.html")
    write_atomically(link, b"content")
    assert link.is_symlink()
    assert (tmp_path / "real.html").read_bytes() == b"content"


def test_nothing_is_left_beside_the_file(open_session: Opener, tmp_path: Path) -> None:
    folder = tmp_path / "pictures"
    folder.mkdir()
    chart.write(open_session(wave=WAVE), "t/wave", {}, folder / "out.svg")
    assert [path.name for path in folder.iterdir()] == ["out.svg"]
