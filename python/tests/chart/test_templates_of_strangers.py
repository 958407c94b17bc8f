"""Chart templates may come from a stranger: they load nothing, and what is wrong in them is said."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from make_recording import RecordingMaker
from sysdock import chart
from sysdock.analysis import Session
from sysdock.errors import UserError
from sysdock.library import Library
from sysdock.recording import Recording

KNOWHOW = Path(__file__).resolve().parents[3] / "knowhow"
ANALYSIS = """-- Names
-- needs: calls
-- column: name VARCHAR   Name.
-- column: number BIGINT  Number.
-- chart: own x=name y=number
SELECT call AS name, count(*) AS number FROM calls GROUP BY call ORDER BY number DESC, name
"""
GOOD: dict[str, Any] = {
    "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
    "usermeta": {"shape": "bars", "limit": 20},
    "mark": "bar",
    "encoding": {"x": {"field": "$y", "type": "quantitative"}, "y": {"field": "label", "type": "nominal"}},
}


@pytest.fixture
def draw(maker: RecordingMaker, tmp_path: Path):
    """Draws a recording with a template of its own."""
    root = tmp_path / "pack"
    (root / "analyses" / "t").mkdir(parents=True)
    (root / "rules").mkdir()
    (root / "charts").mkdir()
    (root / "tables").symlink_to(KNOWHOW / "tables")
    (root / "analyses" / "t" / "names.sql").write_text(ANALYSIS)
    folder = maker.make()

    def draw_with(template: object) -> None:
        text = template if isinstance(template, str) else json.dumps(template)
        (root / "charts" / "own.json").write_text(text)
        with Session(Recording.open(folder), Library(root)) as session:
            chart.write(session, "t/names", {}, tmp_path / "out.png")

    return draw_with


def test_a_good_one_is_drawn(draw, tmp_path: Path) -> None:
    draw(GOOD)
    assert (tmp_path / "out.png").stat().st_size > 1000


@pytest.mark.parametrize(
    "change",
    [
        {"data": {"url": "file:///etc/passwd"}},
        {"data": {"values": [1]}},
        {"mark": "image"},
        {"mark": {"type": "image", "url": "/etc/hostname"}},
        {"layer": [{"mark": {"type": "bar", "href": "x"}}]},
        {"encoding": {"url": {"value": "x"}}},
        {"encoding": {"href": {"value": "javascript:alert(1)"}}},
        {"transform": [{"lookup": "a", "from": {"data": {"url": "x"}}}]},
        {"mark": {"type": "bar", "cursor": "url(http://127.0.0.1/x)"}},
        {"mark": {"type": "text", "text": "http://127.0.0.1/"}},
        {"params": [{"name": "a", "bind": {"element": "#x"}}]},
    ],
)
def test_what_would_load_something_is_refused(draw, tmp_path: Path, change: dict[str, Any]) -> None:
    with pytest.raises(UserError, match="would load something"):
        draw({**GOOD, **change})
    assert not (tmp_path / "out.png").exists()


@pytest.mark.parametrize(
    "template",
    [
        "{",
        "[]",
        "null",
        "[" * 100_000,
        {**GOOD, "usermeta": []},
        {**GOOD, "usermeta": {"shape": "bars", "limit": "many"}},
        {**GOOD, "mark": "no mark"},
        {**GOOD, "mark": 5},
        {**GOOD, "encoding": {"x": {"field": "$y", "type": 7}}},
        {**GOOD, "transform": [{"calculate": "now(", "as": "x"}]},
        {**GOOD, "field": "$color"},
        {**GOOD, "description": json.loads("[" * 80 + "]" * 80)},
    ],
)
def test_a_wrong_one_is_an_error_of_the_user(draw, template: object) -> None:
    with pytest.raises(UserError):
        draw(template)
