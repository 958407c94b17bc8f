"""The time line of threads in a real browser: a short range of time is shown in more detail."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from make_recording import RecordingMaker
from sysdock.analysis import Session
from sysdock.library import Library
from sysdock.recording import Recording
from sysdock.report import write_report
from test_report_browser import COLOURS, SCREENSHOTS, Watched

PLOT = "#sched-timeline [data-chart]"


def test_zooming_shows_more_detail(
    library: Library, maker: RecordingMaker, browser: Any, tmp_path: Path
) -> None:
    chance = random.Random(3)
    rows, at = [], 0.0
    while at < 2:
        wait = chance.choice([200_000, 1_000_000, 5_000_000])
        cause = chance.choice(["disk", "lock", "pipe"])
        rows.append({"t": at, "dur_ns": wait, "wait_ns": wait, "cause": cause, "state": "sleeping", "cpu": 0})
        at += 2 * wait / 1e9
    path = tmp_path / "timeline.html"
    with Session(Recording.open(maker.make(run_states=rows)), library) as session:
        write_report(session, path)
    context = browser.new_context(offline=True, viewport={"width": 1200, "height": 900})
    seen = Watched(context.new_page(), path.as_uri())
    seen.page.locator("#sched-timeline summary").first.click()
    place = seen.page.locator(PLOT)
    place.scroll_into_view_if_needed()
    place.locator("canvas").wait_for()
    assert place.evaluate("place => place.view.signal('detail')") == 0
    seen.page.locator("#range [name=from]").fill("0.5")
    seen.page.locator("#range [name=until]").fill("0.7")
    seen.page.locator("#range button[type=submit]").click()
    seen.page.wait_for_function(f"document.querySelector('{PLOT}').view.signal('detail') === 1")
    assert place.locator("canvas").first.evaluate(COLOURS) > 5
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    seen.page.locator("#sched-timeline figure").screenshot(path=SCREENSHOTS / "timeline-zoomed.png")
    seen.page.locator("#range button[type=reset]").click()
    seen.page.wait_for_function(f"document.querySelector('{PLOT}').view.signal('detail') === 0")
    assert seen.complaints == []
    context.close()
