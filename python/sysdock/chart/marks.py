"""Lines across charts over time, at the moments that matter for the whole recording."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sysdock.analysis.marks import Mark
from sysdock.sentences import Words, fact, listed, say
from sysdock.text import visible

_COLOUR = "#d62728"
# Channels that a layer would take over from the chart.
_OTHERS = ("x2", "y", "y2", "shape", "detail", "opacity", "order")
_TITLES = fact("chart/mark")


def with_marks(spec: dict[str, Any], moments: Sequence[Mark], divisor: float, lang: str) -> dict[str, Any]:
    """The specification with a dashed line for each moment. `divisor`: seconds in a unit of its axis."""
    layers = spec.get("layer") or [{"mark": spec["mark"]}]
    line = {
        "data": {
            "values": [
                {"moment": float(f"{one.at_ns / 1e9 / divisor:.9g}"), "shown": visible(say(one.what, lang))}
                for one in moments
            ]
        },
        "mark": {"type": "rule", "strokeDash": [5, 3], "strokeWidth": 1.5},
        "encoding": {
            **dict.fromkeys(_OTHERS),
            "x": {"field": "moment", "type": "quantitative"},
            "color": {"value": _COLOUR},
            "tooltip": [{"field": "shown", "type": "nominal", "title": say(_TITLES, lang)}],
        },
    }
    return {**{key: value for key, value in spec.items() if key != "mark"}, "layer": [*layers, line]}


def caption(moments: Sequence[Mark]) -> Words:
    """The caption of the dashed lines."""
    return fact("chart/dashed_line", marks=listed(dict.fromkeys(one.what for one in moments)))
