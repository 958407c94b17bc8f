"""A series of scans as a film strip and a graph, compared with dumpe2fs and debugfs."""

from __future__ import annotations

import itertools
import re
import subprocess
import sys
from base64 import b64encode
from bisect import bisect_left
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from png_pixels import pixels
from sysdock.cli import sysdock
from sysdock.disk import series as of_scans
from sysdock.disk.map import MapOptions, drawn
from sysdock.disk.series.graph import PANELS, specs
from sysdock.disk.series.picture import place
from sysdock.errors import UserError
from sysdock.library import Library

sys.path.insert(0, str(Path(__file__).parents[1] / "disk"))
import ext_images

MIB = 1 << 20
BLOCK = 1024
SIDE = 256
# When, how large it was by then [MiB], and what was written before.
STEPS = {
    "2026-01-04T03-00-00Z": (64, ()),
    "2026-01-11T03-00-00Z": (64, ("rm large0", "rm piece3")),
    "2026-02-01T03-00-00Z": (96, ("rm large1",)),
}
FREE = 0xF7F7F7


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """One file system as it was at three times; it grew in the end."""
    ext_images.needs("resize2fs")
    scratch = tmp_path_factory.mktemp("series")
    first = scratch / "first"
    ext_images.make(first, "default", scratch)
    images, content = [], first.read_bytes()
    for name, (size, script) in STEPS.items():
        image = scratch / name
        image.write_bytes(content)
        if script:
            ext_images.run("debugfs", "-w", "-f", "-", image, stdin="\n".join(script))
        if image.stat().st_size < size * MIB:
            with image.open("r+b") as file:
                file.truncate(size * MIB)
            ext_images.run("e2fsck", "-fy", image, may_fail=True)
            ext_images.run("resize2fs", image)
        content = image.read_bytes()
        images.append(image)
    return images


@pytest.fixture(scope="module")
def folder(images: list[Path], native: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The series of their scans."""
    series = tmp_path_factory.mktemp("scans")
    for image in images:
        command = [native, "disk", "scan", image, "-o", series / image.name]
        subprocess.run(command, check=True, capture_output=True)
    return series


@pytest.fixture(scope="module")
def found(folder: Path, library: Library) -> list[of_scans.Snapshot]:
    """The snapshots of the series."""
    return of_scans.snapshots(folder, library)


def run(*words: object) -> str:
    """Runs the verb; it must succeed."""
    done = CliRunner().invoke(sysdock, ["disk", "series", *map(str, words)], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


def layout_score(image: Path) -> float:
    """The part of the blocks that lie right behind the one before, or as far as in the file, block by block."""
    behind = all_ = 0
    # Only inodes with a name: a deleted inode keeps its list of blocks.
    named = list(ext_images.names(image, list(range(11, 2049))))
    for stat in ext_images.stats(image, [2, *named]).values():
        blocks = sorted(stat.data.items())
        all_ += max(len(blocks) - 1, 0)
        for (before, place_before), (here, place_here) in itertools.pairwise(blocks):
            behind += place_here - place_before in (1, here - before)
    return behind / all_


def test_each_frame_shows_what_dumpe2fs_says_is_free(
    found: list[of_scans.Snapshot], images: list[Path], library: Library
) -> None:
    strip = of_scans.film_strip(found, of_scans.StripOptions(curve="rows"))
    assert strip.device_bytes == 96 * MIB
    _, _, pixel = pixels(of_scans.picture(strip, specs(found, library, "en"), "en"))
    per_side = 2 ** strip.frames[0].shown["order"]
    cell, step = strip.cell_bytes, SIDE // per_side
    [unknown] = [each for each in strip.frames[0].shown["shares"] if each["class"] == "unknown"]
    of_nobody = {int(unknown[name][1:], 16) for name in ("colour", "second")}
    for number, image in enumerate(images):
        free = ext_images.free_blocks(image)
        begins, ends = [first * BLOCK for first, _ in free], [(last + 1) * BLOCK for _, last in free]
        left, top = place(strip, number)
        seen = {"free": 0, "used": 0, "beyond": 0}
        for index in range(per_side**2):
            begin, end = index * cell, (index + 1) * cell
            at = left + index % per_side * step, top + index // per_side * step
            colour = int.from_bytes(bytes(pixel(*at)), "big")
            if begin >= image.stat().st_size:
                assert colour in of_nobody
                seen["beyond"] += 1
                continue
            # The last piece that begins before the end of the cell: no other can be in it.
            last = bisect_left(begins, end) - 1
            if last >= 0 and begins[last] <= begin and end <= ends[last]:
                assert colour == FREE, (number, index)
                seen["free"] += 1
            elif last < 0 or ends[last] <= begin:
                assert colour != FREE, (number, index)
                seen["used"] += 1
        assert seen["free"] > 1000 < seen["used"]
        assert bool(seen["beyond"]) == (number < 2)


def test_frames_are_the_maps_of_the_scans(
    found: list[of_scans.Snapshot], folder: Path, library: Library
) -> None:
    strip = of_scans.film_strip(found, of_scans.StripOptions())
    _, _, pixel = pixels(of_scans.picture(strip, specs(found, library, "ja"), "ja"))
    for number, name in enumerate(STEPS):
        _, _, of_map = pixels_of_native(folder / name)
        left, top = place(strip, number)
        assert all(
            pixel(left + x, top + y) == of_map(x, y) for x in range(1, SIDE, 7) for y in range(1, SIDE, 5)
        )


def pixels_of_native(scan: Path) -> tuple:
    """The map as `sysdock disk map` draws it, with its three bytes a pixel made four."""
    import vl_convert

    png = drawn(scan, MapOptions(size=SIDE, least_size=96 * MIB)).png
    image = f'<image width="{SIDE}" height="{SIDE}" href="data:image/png;base64,{b64encode(png).decode()}"/>'
    svg = f'<svg xmlns="http://www.w3.org/2000/svg" width="{SIDE}" height="{SIDE}">{image}</svg>'
    return pixels(vl_convert.svg_to_png(svg, scale=1.0))


def test_lines_and_graph_say_what_e2fsprogs_count(
    found: list[of_scans.Snapshot], images: list[Path], library: Library
) -> None:
    charts = specs(found, library, "en")
    drawn_ = [
        [row["value"] for row in chart["data"]["values"] if row.get("series") in (None, "all of it")]
        for chart in charts
    ]
    for number, image in enumerate(images):
        free = ext_images.free_blocks(image)
        facts = found[number].facts
        assert facts["free_bytes"] == sum(last + 1 - first for first, last in free) * BLOCK
        assert facts["largest_free_bytes"] == max(last + 1 - first for first, last in free) * BLOCK
        assert facts["free_extents"] == len(free)
        assert facts["layout_score"] == pytest.approx(layout_score(image), abs=1e-4)
        assert drawn_[0][number] == facts["layout_score"]
        assert drawn_[2][number] * MIB == pytest.approx(facts["free_bytes"])
        assert drawn_[3][number] == len(free)
    times = {row["time"] for chart in charts for row in chart["data"]["values"]}
    assert sorted(times) == [1767495600000, 1768100400000, 1769914800000]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_needs_no_network_and_has_the_numbers(
    browser: Any, folder: Path, found: list[of_scans.Snapshot], tmp_path: Path, scheme: str
) -> None:
    out = tmp_path / "series.html"
    run(folder, "-o", out, "--lang", "en")
    context = browser.new_context(offline=True, color_scheme=scheme, viewport={"width": 1200, "height": 3000})
    page = context.new_page()
    wrong: list[str] = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("console", lambda message: wrong.append(message.text))
    page.on("request", lambda request: wrong.extend([request.url] * (request.url[:5] == "http:")))
    page.goto(out.as_uri())
    page.locator(".plot svg, .plot canvas").nth(len(PANELS) - 1).wait_for(state="attached")
    assert page.evaluate("[...document.images].map((each) => each.naturalWidth)") == [SIDE] * len(STEPS)
    assert page.locator(".strip time").all_inner_texts() == [
        "2026-01-04 03:00",
        "2026-01-11 03:00",
        "2026-02-01 03:00",
    ]
    exact = page.evaluate(
        "[...document.querySelectorAll('#numbers tbody tr')].map((row) => [...row.cells].map("
        "(cell) => cell.dataset.v ?? cell.textContent))"
    )
    for line, snapshot in zip(exact, found, strict=True):
        assert [float(value) for value in line[1:]] == [
            float(value) for value in of_scans.rows([snapshot])[0][1:]
        ]
    assert "a file in one piece" in page.locator(".classes").inner_text()
    page.evaluate("document.getElementById('lang-ja').click()")
    assert "空き" in page.locator(".classes").inner_text()
    assert wrong == []
    context.close()


def test_a_long_series_is_thinned_and_says_so(
    found: list[of_scans.Snapshot], monkeypatch: pytest.MonkeyPatch
) -> None:
    from sysdock.disk.series import strip as strips
    from sysdock.disk.series.labels import left_out
    from sysdock.sentences import say

    monkeypatch.setattr(strips, "MOST_FRAMES", 2)
    strip = of_scans.film_strip(found, of_scans.StripOptions())
    assert [frame.snapshot for frame in strip.frames] == [found[0], found[2]]
    assert say(left_out(strip), "en") == "2 of 3 scans are shown, evenly taken; the graph has all."
    assert left_out(of_scans.film_strip(found[:1], of_scans.StripOptions())) is None


def test_mistakes_are_told(folder: Path, tmp_path: Path) -> None:
    def refused(*words: object) -> str:
        with pytest.raises(UserError) as caught:
            run(*words)
        return str(caught.value)

    assert "not a map format" in refused(folder, "-o", tmp_path / "a.gif")
    assert "no complete scan" in refused(tmp_path, "-o", tmp_path / "a.png")
    assert "no such series" in refused(tmp_path / "none", "-o", tmp_path / "a.png")
    assert re.search(r"layout_score\s", run(folder))
