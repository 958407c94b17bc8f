"""Flame graphs in a real browser: a click zooms, arrow keys lead through them, and what is searched for is counted."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from make_recording import RecordingMaker
from sysdock.analysis import Session
from sysdock.library import Library
from sysdock.recording import Recording
from sysdock.report import write_report
from test_report_browser import COLOURS, SCREENSHOTS, Watched

PLOT = "#cpu-flame_graph [data-chart]"
SIGNALS = (
    "place => ['zoom_from', 'zoom_to', 'zoom_level', 'picked', 'sought'].map((n) => place.view.signal(n))"
)


@pytest.fixture(scope="module")
def report(library: Library, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report of samples: `main` calls `work` (6) and `idle` (2), and the kernel clears memory for `work` (4)."""
    maker = RecordingMaker(library, tmp_path_factory.mktemp("flames"))
    files = ("work", "/srv/sum"), ("main", "/srv/sum"), ("idle", "/srv/<b>lib"), ("clear_page", "[kernel]")
    frame = [{"function": name, "object": file, "address": 1, "offset": 1} for name, file in files]
    stacks = [
        {"stack_id": 0, "frame": 0, **frame[0]},
        {"stack_id": 0, "frame": 1, **frame[1]},
        {"stack_id": 1, "frame": 0, **frame[2]},
        {"stack_id": 1, "frame": 1, **frame[1]},
        {"stack_id": 2, "frame": 0, **frame[3]},
    ]
    sample = {"period_ns": 5_000_000, "cpu": 0, "in_kernel": False}
    samples = [{"t": 0.005 * n, **sample, "stack_id": 0} for n in range(6)]
    samples += [{"t": 0.03 + 0.005 * n, **sample, "stack_id": 1} for n in range(2)]
    samples += [
        {"t": 0.04 + 0.005 * n, **sample, "stack_id": 0, "in_kernel": True, "kernel_stack_id": 2}
        for n in range(4)
    ]
    path = tmp_path_factory.mktemp("report") / "flames.html"
    with Session(Recording.open(maker.make(samples=samples, stacks=stacks)), library) as session:
        write_report(session, path)
    return path


@pytest.fixture
def seen(browser: Any, report: Path) -> Iterator[Watched]:
    """The report, with its flame graph drawn."""
    context = browser.new_context(offline=True, viewport={"width": 1200, "height": 900})
    watched = Watched(context.new_page(), report.as_uri())
    watched.page.locator("#cpu-flame_graph summary").first.click()
    place = watched.page.locator(PLOT)
    place.scroll_into_view_if_needed()
    place.locator("canvas").wait_for()
    watched.page.evaluate("window.sysdockReady")
    yield watched
    assert watched.complaints == []
    context.close()


def said(seen: Watched) -> str:
    return seen.page.locator("#cpu-flame_graph .said").inner_text()


def test_arrow_keys_lead_through_it_and_enter_zooms(seen: Watched) -> None:
    place = seen.page.locator(PLOT)
    place.focus()
    for key in ("ArrowDown", "ArrowDown", "ArrowDown"):
        seen.page.keyboard.press(key)
    # The widest function that main calls, with ten of twelve samples.
    assert "work" in said(seen)
    assert "50.00 ms (83.3 %)" in said(seen)
    seen.page.keyboard.press("ArrowRight")
    assert "idle" in said(seen)
    assert "<b>lib" in said(seen)
    seen.page.keyboard.press("Enter")
    assert place.evaluate(SIGNALS)[:3] == [50, 60, 2]
    seen.page.keyboard.press("Escape")
    assert place.evaluate(SIGNALS) == [0, 60, 0, 0, ""]


def test_a_click_zooms_and_a_button_leads_back(seen: Watched) -> None:
    place = seen.page.locator(PLOT)
    step, top = 17, place.evaluate("place => place.view.origin()[1]")
    box = place.locator("canvas").bounding_box()
    # The fourth level on the right: idle.
    seen.page.mouse.click(box["x"] + box["width"] * 0.95, box["y"] + top + 3.5 * step)
    assert place.evaluate(SIGNALS)[:3] == [50, 60, 2]
    # Its caller stays in view.
    seen.page.mouse.click(box["x"] + box["width"] * 0.5, box["y"] + top + 0.5 * step)
    assert place.evaluate(SIGNALS)[:3] == [0, 60, 1]
    seen.page.locator("#cpu-flame_graph .flame button").click()
    assert place.evaluate(SIGNALS)[:3] == [0, 60, 0]


def test_what_is_searched_for_is_counted_once(seen: Watched) -> None:
    seen.page.locator("#cpu-flame_graph .flame input").fill("SUM")
    bar = seen.page.locator("#cpu-flame_graph .flame [aria-live]")
    # main holds work: together they are all that main is.
    assert bar.inner_text() == "2, 100.0 %"
    seen.page.locator("#cpu-flame_graph .flame input").fill("[kernel]")
    assert bar.inner_text() == "1, 33.3 %"
    assert seen.page.locator(f"{PLOT} canvas").first.evaluate(COLOURS) > 5


def test_it_stays_as_it_is_when_the_theme_changes(seen: Watched) -> None:
    place = seen.page.locator(PLOT)
    place.focus()
    for key in ("ArrowDown", "ArrowDown", "ArrowDown", "Enter"):
        seen.page.keyboard.press(key)
    zoomed = place.evaluate(SIGNALS)
    seen.page.locator("label[for=theme-dark]").click()
    seen.page.locator("label[for=lang-ja]").click()
    seen.page.evaluate("window.sysdockReady")
    assert place.evaluate(SIGNALS) == zoomed
    assert seen.page.locator("#cpu-flame_graph .flame").count() == 1
    assert "矢印キー" in seen.page.locator("#cpu-flame_graph .flame").inner_text()
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    seen.page.locator("#cpu-flame_graph figure").screenshot(path=SCREENSHOTS / "flame-dark-ja.png")
