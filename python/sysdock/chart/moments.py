"""Lines across charts over time at the moments of the table `marks`: what made a flight recorder write."""

from __future__ import annotations

from typing import Any

from sysdock.analysis import Session
from sysdock.text import visible

# More would hide the chart.
_MOST = 20
_COLOUR = "#d62728"
# Channels that a layer would take over from the chart.
_OTHERS = ("x2", "y", "y2", "shape", "detail", "opacity", "order")
_TITLES = {"en": "mark", "ja": "マーク"}


def moments_of(session: Session) -> list[dict[str, Any]]:
    """The marks in the range of time that is shown: `moment` (s since the start of the recording), `said`."""
    if "marks" not in session.recording.tables:
        return []
    begin = session.recording.manifest["started_ns"]
    rows = session.fetch(f"SELECT ts_ns, text FROM marks ORDER BY ts_ns LIMIT {_MOST}")
    return [{"moment": (ts_ns - begin) / 1e9, "said": visible(text)} for ts_ns, text in rows]


def with_moments(
    spec: dict[str, Any], moments: list[dict[str, Any]], divisor: float, lang: str
) -> dict[str, Any]:
    """The specification with a dashed line for each moment. `divisor`: seconds in a unit of its axis."""
    layers = spec.get("layer") or [{"mark": spec["mark"]}]
    values = [{**row, "moment": float(f"{row['moment'] / divisor:.9g}")} for row in moments]
    line = {
        "data": {"values": values},
        "mark": {"type": "rule", "strokeDash": [5, 3], "strokeWidth": 1.5},
        "encoding": {
            **dict.fromkeys(_OTHERS),
            "x": {"field": "moment", "type": "quantitative"},
            "color": {"value": _COLOUR},
            "tooltip": [{"field": "said", "type": "nominal", "title": _TITLES[lang]}],
        },
    }
    return {**{key: value for key, value in spec.items() if key != "mark"}, "layer": [*layers, line]}


def caption(moments: list[dict[str, Any]], lang: str) -> str:
    """What the dashed lines are."""
    said = ", ".join(dict.fromkeys(row["said"] for row in moments))
    return f"破線: {said}" if lang == "ja" else f"dashed line: {said}"
