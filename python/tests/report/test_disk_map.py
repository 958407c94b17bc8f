"""The map of a disk: the picture, and the page in a real browser."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from make_recording import RecordingMaker
from png_pixels import pixels
from sysdock.cli import sysdock
from sysdock.library import Library

BLOCK = 4096
EVIL = "/srv/<img src=x onerror=alert(1)>"
# Inode, place in the file, place on the device, length [blocks], flags.
EXTENTS = [
    (12, 0, 1, 2, ""),
    (13, 0, 3, 3, ""),
    (13, 3, 8, 2, ""),
    (14, 0, 6, 1, "unwritten"),
    (15, 0, 7, 1, "compressed"),
]
PATHS = {12: "/srv/whole", 13: EVIL, 14: "/srv/new/a", 15: "/srv/new/b"}


@pytest.fixture(scope="module")
def disk(library: Library, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A device of 16 blocks, of which the last two are in no table."""
    extents = [
        {
            "inode": inode,
            "logical_bytes": logical * BLOCK,
            "physical_bytes": physical * BLOCK,
            "length_bytes": length * BLOCK,
            "flags": flags,
            "device": 0,
        }
        for inode, logical, physical, length, flags in EXTENTS
    ]
    inodes = [
        {
            "inode": inode,
            "path_id": number,
            "kind": "file",
            "size_bytes": 1,
            "allocated_bytes": 1,
            "extents": 1,
            "fragments": 2 if inode == 13 else 1,
            "links": 1,
        }
        for number, inode in enumerate(PATHS)
    ]
    file_system = {
        "fs_type": "ext4",
        "source": "<b>/dev/x",
        "block_bytes": BLOCK,
        "size_bytes": 16 * BLOCK,
        "method": "raw",
        "reason": "",
        "files": 4,
        "unread_files": 0,
        "whole": True,
        "moment": "one",
    }
    layout = [
        {"part": part, "number": 0, "physical_bytes": 0, "length_bytes": length * BLOCK, "device": 0}
        for part, length in (("group", 16), ("super block", 1))
    ]
    tables = {
        "file_systems": [file_system],
        "inodes": inodes,
        "paths": [{"path_id": n, "path": path, "kind": "file"} for n, path in enumerate(PATHS.values())],
        "extents": extents,
        "free_extents": [{"physical_bytes": 10 * BLOCK, "length_bytes": 4 * BLOCK, "device": 0}],
        "layout": layout,
    }
    return RecordingMaker(library, tmp_path_factory.mktemp("disk")).write(
        tables, recorder="disk", about="scan"
    )


def run(*words: object) -> str:
    """Runs the verb; it must succeed."""
    done = CliRunner().invoke(sysdock, ["disk", "map", *map(str, words)], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


def test_the_picture_shows_the_known_cells(disk: Path, tmp_path: Path) -> None:
    out = tmp_path / "map.png"
    run(disk, "-o", out, "--size", "512", "--curve", "rows", "--lang", "en")
    width, height, pixel = pixels(out.read_bytes())
    assert width > 512 < height
    cells = {0: 0x2B2B2B, 1: 0x5A99C8, 3: 0xE2AF07, 8: 0x9D530B, 9: 0xE2AF07, 11: 0xF7F7F7}
    for cell, colour in cells.items():
        seen = pixel(16 + cell % 4 * 128 + 20, 60 + cell // 4 * 128 + 20)
        assert int.from_bytes(bytes(seen), "big") == colour, cell


def test_what_was_searched_for_is_lit(disk: Path, tmp_path: Path) -> None:
    out = tmp_path / "map.png"
    run(disk, "-o", out, "--size", "512", "--curve", "rows", "--find", "/srv/new")
    _, _, pixel = pixels(out.read_bytes())
    assert pixel(16 + 2 * 128 + 20, 60 + 128 + 20) == (0xC2, 0x00, 0x7B)


def test_the_words_are_there_in_both_languages(disk: Path, tmp_path: Path) -> None:
    from sysdock.disk.map import MapOptions, drawn
    from sysdock.disk.map.picture import svg

    whole = drawn(disk, MapOptions(size=512))
    assert sum(share["bytes"] for share in whole.shown["shares"]) == 16 * BLOCK
    english, japanese = svg(whole, "en"), svg(whole, "ja")
    assert "of a file in several pieces: 25.0 %, 16.00 KiB" in english
    assert "断片化したファイルの連続部分: 25.0 %, 16.00 KiB" in japanese
    assert "&lt;b&gt;/dev/x" in english
    run(disk, "-o", tmp_path / "map.png", "--lang", "ja", "--size", "512")


def test_mistakes_are_told(disk: Path, tmp_path: Path) -> None:
    def refused(*words: object) -> str:
        done = CliRunner().invoke(sysdock, ["disk", "map", *map(str, words)])
        assert done.exit_code != 0
        return str(done.exception) + done.output

    assert "not in this recording" in refused(disk, "-o", tmp_path / "a.png", "--find", "/nowhere")
    assert "not a map format" in refused(disk, "-o", tmp_path / "a.gif")
    assert "window" in refused(disk, "-o", tmp_path / "a.png", "--from", 1 << 40)
    assert "whole device" in refused(disk, "-o", tmp_path / "a.html", "--from", 1)


@pytest.fixture
def opened(browser: Any, disk: Path, tmp_path: Path) -> Iterator[tuple[Any, list[str]]]:
    """The page in a browser without a network, and what went wrong or out in it."""
    out = tmp_path / "map.html"
    run(disk, "-o", out, "--curve", "rows", "--lang", "en")
    context = browser.new_context(offline=True)
    page = context.new_page()
    wrong: list[str] = []
    page.on("request", lambda request: wrong.append(request.url))
    page.on("pageerror", lambda error: wrong.append(str(error)))
    # Reading pixels back is the test's doing, and Chromium says that it is slow.
    page.on("console", lambda message: wrong.extend([message.text] * ("readback" not in message.text)))
    page.goto(out.as_uri())
    page.wait_for_selector("#map[data-ready=yes]")
    yield page, wrong
    assert wrong == [out.as_uri()]
    context.close()


def test_of_several_devices_places_are_those_of_the_device(
    browser: Any, library: Library, tmp_path: Path
) -> None:
    """Two devices of 8 blocks; a file in stripes of a block goes on at the start of the second device."""
    from sysdock.disk.map import MapOptions, drawn
    from sysdock.disk.map.picture import svg

    row = {"inode": 12, "length_bytes": BLOCK, "flags": ""}
    extents = [
        {**row, "logical_bytes": 0, "physical_bytes": BLOCK, "device": 1, "address_bytes": 40 * BLOCK},
        {**row, "logical_bytes": BLOCK, "physical_bytes": 0, "device": 2, "address_bytes": 41 * BLOCK},
    ]
    devices = [
        {"device": number, "path": path, "size_bytes": 8 * BLOCK, "missing": path is None}
        for number, path in ((1, None), (2, "/dev/<i>b"))
    ]
    groups = [
        {"part": "group", "number": 7, "physical_bytes": 0, "length_bytes": 8 * BLOCK, "device": number}
        for number in (1, 2)
    ]
    system = {"fs_type": "btrfs", "source": "/dev/a", "block_bytes": BLOCK, "size_bytes": 16 * BLOCK}
    system |= {"method": "tree", "reason": "", "files": 1, "unread_files": 0, "whole": True, "moment": "one"}
    tables = {"file_systems": [system], "devices": devices, "extents": extents, "layout": groups}
    recording = RecordingMaker(library, tmp_path).write(tables, recorder="disk", about="scan")
    picture = svg(drawn(recording, MapOptions(size=512)), "en")
    for words in ("device 1 from 0 B on", "device 2 (/dev/&lt;i&gt;b) from 32.00 KiB on", ">1: 7<", ">2: 7<"):
        assert words in picture
    run(recording, "-o", tmp_path / "map.html", "--curve", "rows", "--lang", "en")
    page = browser.new_page()
    page.goto((tmp_path / "map.html").as_uri())
    page.wait_for_selector("#map[data-ready=yes]")
    side = page.locator("#map").bounding_box()["width"] / 4
    page.locator("#map").click(position={"x": side / 2, "y": 2.5 * side})
    assert page.locator("#found li").all_inner_texts() == ["inode 12 (/dev/<i>b: 0 + 4 KiB, 0 fragments)"]
    page.close()


COLOUR = """([column, row]) => {
  const canvas = document.getElementById("map");
  const found = canvas.getContext("2d").getImageData(column * 192 + 21, row * 192 + 21, 1, 1).data;
  return [...found].slice(0, 3);
}"""


def test_the_page_draws_zooms_and_tells(opened: tuple[Any, list[str]]) -> None:
    page, _ = opened
    assert page.evaluate(COLOUR, [0, 0]) == [0x2B, 0x2B, 0x2B]
    assert page.evaluate(COLOUR, [0, 2]) == [0x9D, 0x53, 0x0B]
    box = page.locator("#map").bounding_box()
    side = box["width"] / 4
    page.mouse.click(box["x"] + side / 2, box["y"] + 2.5 * side)
    told = page.locator("#found li").all_inner_texts()
    assert told == [f"{EVIL} (32,768 + 8 KiB, 2 fragments, a break)"]
    page.mouse.dblclick(box["x"] + side / 2, box["y"] + 2.5 * side)
    assert "x 2" in page.locator("#scale").inner_text()
    assert page.evaluate(COLOUR, [0, 0]) == [0x9D, 0x53, 0x0B]
    page.click("#out")
    page.fill("input[name=path]", "/srv/new")
    page.click("#search button[type=submit]")
    assert page.evaluate(COLOUR, [2, 1]) == [194, 0, 123]
    assert "2 files" in page.locator("#found").inner_text()


def test_zooming_keeps_the_place_along_the_hilbert_curve(browser: Any, disk: Path, tmp_path: Path) -> None:
    out = tmp_path / "map.html"
    run(disk, "-o", out, "--lang", "en")
    page = browser.new_page()
    page.goto(out.as_uri())
    page.wait_for_selector("#map[data-ready=yes]")
    corners = [page.evaluate(COLOUR, [x, y]) for x, y in ((0, 2), (1, 2), (0, 3), (1, 3))]
    box = page.locator("#map").bounding_box()
    page.locator("#map").dblclick(position={"x": 5, "y": box["height"] - 5})
    zoomed = [page.evaluate(COLOUR, [x, y]) for x, y in ((0, 0), (2, 0), (0, 2), (2, 2))]
    assert zoomed == corners
    page.close()


def test_what_is_left_out_of_a_page_is_said(disk: Path) -> None:
    from sysdock.disk.map import MapOptions, page

    text = page(disk, MapOptions(), "en", most=2).decode()
    assert "This page holds the longest 2 pieces" in text
    assert EVIL not in text
