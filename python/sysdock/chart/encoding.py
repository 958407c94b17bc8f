"""Values for the placeholders of a chart template; the rows of the marks brought to the units of the axes.

Fields have the names of the columns. In addition, a row has: `name` as recorded, `label` short enough for an
axis, `place` and `rank` for the order, `series`, `from` and `to` for classes of sizes, `middle` and `run` for
lines.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from sysdock.chart.caption import title_of
from sysdock.chart.flame import KINDS, SEEN
from sysdock.chart.reduce import Marks, Wanted
from sysdock.chart.scale import LOG_SCALE, Axis, axis_of, class_axis, labels, shorten
from sysdock.chart.states import GROUPS, STATES
from sysdock.library import ChartLine, Column
from sysdock.library.headings import axis as axis_words
from sysdock.library.headings import heading
from sysdock.sentences import fact, say, with_unit
from sysdock.text import percent

_WHOLE = fact("chart/all")
_NUMBER = fact("chart/number")
# Titles of what is shown at a rectangle of a flame graph that is pointed at.
_FLAME_TITLES = {
    "function_title": fact("chart/flame_function"),
    "object_title": fact("chart/flame_object"),
    "kind_title": fact("chart/flame_kind"),
    "own_title": fact("chart/flame_own"),
}
_OWN_FIELDS = ("name", "label", "place", "rank", "series", "from", "to", "middle", "run")


@dataclass(frozen=True)
class _Chart:
    """A chart to be drawn; the rows of `marks` are changed. `lang`: language of the titles of axes."""

    line: ChartLine
    wanted: Wanted
    columns: dict[str, Column]
    marks: Marks
    lang: str

    def words(self, column: Column) -> str:
        """The title of a column at an axis."""
        return axis_words(column, self.lang)

    def axis(self, words: str, unit: str | None, extent: tuple[float, float], scale: str = "linear") -> Axis:
        """The axis for `words` and `unit`."""
        return axis_of(words, unit, extent, scale, self.lang)

    def heading(self, name: str | None) -> str:
        """The title of a column in a legend; a blank for none, because Vega would write a name of its own."""
        return heading(self.columns[name], self.lang) if name else " "


def encode(
    line: ChartLine, wanted: Wanted, columns: dict[str, Column], marks: Marks, shape: str, lang: str
) -> dict[str, Any]:
    """Values for the placeholders of a template. Changes the rows of `marks`. lang: of titles of axes."""
    chart = _Chart(line, wanted, columns, marks, lang)
    values: dict[str, Any] = {"x_type": "quantitative", "x_format": ",.9~g"}
    for step in _STEPS_OF_SHAPES[shape]:
        values |= step(chart)
    return values


def _names(chart: _Chart) -> dict[str, Any]:
    column = chart.columns[chart.wanted.x]
    unit = f" [{column.unit}]" if column.unit else ""
    return {"x": chart.wanted.x, "x_title": chart.words(column) + unit}


def _classes(chart: _Chart) -> dict[str, Any]:
    column = chart.columns[chart.wanted.x]
    if column.unit == "ns":
        # Labels of times are the ends of classes, not their names: the bars stand between the ends.
        for row in chart.marks.rows:
            row["from"], row["to"] = round(row["from"] - 0.5, 3), round(row["to"] - 0.5, 3)
    places = [row[end] for row in chart.marks.rows for end in ("from", "to")] or [0.0]
    axis = class_axis(column.unit, min(places) - 0.1, max(places) + 0.1)
    named = _names(chart)
    title = f"{chart.words(column)} {say(LOG_SCALE, chart.lang)}" if column.unit == "ns" else named["x_title"]
    return {"x": chart.wanted.x, "x_title": title, "x_axis": axis}


def _along(chart: _Chart) -> dict[str, Any]:
    column = chart.columns[chart.wanted.x]
    extent = _extent(row["x"] for row in chart.marks.rows)
    axis = chart.axis(chart.words(column), column.unit, extent, chart.line.options.get("x_scale", "linear"))
    field = _scaled(chart.marks.rows, "x", chart.wanted.x, axis)
    return {
        "x": field,
        "x_title": axis.title,
        "x_axis": axis.axis,
        "x_scale": axis.scale,
        "x_divisor": axis.divisor,
    }


def _spans(chart: _Chart) -> dict[str, Any]:
    start, end = chart.columns[chart.wanted.x], chart.columns[chart.wanted.x2 or chart.wanted.x]
    extent = _extent(row["x2"] for row in chart.marks.rows)
    axis = chart.axis(chart.words(start), start.unit, extent)
    return {
        "x": _scaled(chart.marks.rows, "x", start.name, axis),
        "x_title": axis.title,
        "x_divisor": axis.divisor,
        "x2": _scaled(chart.marks.rows, "x2", end.name, axis),
        "x2_title": chart.axis(chart.words(end), end.unit, extent).title,
        "y_title": chart.words(chart.columns[chart.wanted.y[0]]),
    }


def _steps(chart: _Chart) -> dict[str, Any]:
    """Points, with the end of each step."""
    extent = _extent(row["x2"] for row in chart.marks.rows)
    column = chart.columns[chart.wanted.x]
    axis = chart.axis(chart.words(column), column.unit, extent)
    values = {
        "x": _scaled(chart.marks.rows, "x", column.name, axis),
        "x2": _scaled(chart.marks.rows, "x2", f"{column.name}_end", axis),
    }
    scale = {"zero": False, "nice": False}
    return {**values, "x_title": axis.title, "x_axis": axis.axis, "x_scale": scale, "x_divisor": axis.divisor}


def _lines(chart: _Chart) -> dict[str, Any]:
    """Points, with the middle of each stretch; the axis shows the whole time of the recording."""
    column = chart.columns[chart.wanted.x]
    limits = chart.marks.x_limits or (0.0, 0.0)
    axis = chart.axis(chart.words(column), column.unit, _extent(limits))
    for row in chart.marks.rows:
        if row["middle"] is not None:
            row["middle"] = float(f"{row['middle'] / axis.divisor:.9g}")
    domain = [float(f"{limit / axis.divisor:.9g}") for limit in limits]
    scale = {"zero": False, "nice": False, **({"domain": domain} if chart.marks.rows else {})}
    field = _scaled(chart.marks.rows, "x", column.name, axis)
    return {"x": field, "x_title": axis.title, "x_scale": scale, "x_divisor": axis.divisor}


def _spreads(chart: _Chart) -> dict[str, Any]:
    """Six values `y1` to `y6` of each row, and `text1` to `text6` for people.

    A logarithmic axis begins at the power of ten below the smallest value; what is 0 is drawn to there.
    """
    column, scale = chart.columns[chart.wanted.y[0]], chart.line.options.get("y_scale", "linear")
    keys = [f"y{number}" for number in range(1, len(chart.wanted.y) + 1)]
    numbers = [row[key] for row in chart.marks.rows for key in keys]
    above = [number for number in numbers if number > 0] if scale == "log" else numbers
    axis = chart.axis(say(title_of(chart.line, chart.wanted), chart.lang), column.unit, _extent(above), scale)
    low = 10.0 ** math.floor(math.log10(min(above))) if scale == "log" and above else -math.inf
    for row in chart.marks.rows:
        for key in keys:
            row[key.replace("y", "text")] = with_unit(row[key], column.unit)
            row[key] = float(f"{max(row[key], low) / axis.divisor:.9g}")
    if low > 0:
        # Room for the ring.
        axis.scale["domain"] = [low, max(above) * 1.2]
    titles = {f"{key}_title": chart.heading(name) for key, name in zip(keys, chart.wanted.y, strict=True)}
    return {**titles, "y_title": axis.title, "y_axis": axis.axis, "y_scale": axis.scale}


def _branches(chart: _Chart) -> dict[str, Any]:
    """Both ends of a rectangle in the unit of the axis, `label` (the last part) and `text` (y in words)."""
    column = chart.columns[chart.wanted.y[0]]
    axis = chart.axis(
        say(title_of(chart.line, chart.wanted), chart.lang),
        column.unit,
        _extent(row["to"] for row in chart.marks.rows),
    )
    for row in chart.marks.rows:
        part = row.pop("part")
        row["label"] = shorten(row["name"] if part is None else part or "/", 60)
        row["text"] = with_unit(row.pop("y"), column.unit)
        for end in ("from", "to"):
            row[end] = float(f"{row[end] / axis.divisor:.9g}")
    return {"y_title": axis.title}


def _flames(chart: _Chart) -> dict[str, Any]:
    """Both ends of a rectangle in the unit of the axis, and as words `text`, `own`, `number`, `series`."""
    column = chart.columns[chart.wanted.y[0]]
    rows = chart.marks.rows
    whole = rows[0].pop("whole") if rows else 0.0
    axis = chart.axis(say(title_of(chart.line, chart.wanted), chart.lang), column.unit, (0.0, whole))
    words = {kind: say(fact(f"chart/kind_{kind}"), chart.lang) for kind in KINDS}
    # A number of the same unit is a difference: it colours the rectangles.
    is_difference = (
        len(chart.wanted.y) > 1 and chart.columns[chart.wanted.y[1]].unit == column.unit is not None
    )
    for row in rows:
        row.pop("whole", None)
        row.pop("merged")
        row["name"] = row["name"] or say(_WHOLE, chart.lang)
        row["function"] = row["function"] or row["name"]
        row["series"] = words[row["series"]]
        y, own = row.pop("y"), row.pop("own")
        row["text"] = f"{with_unit(y, column.unit)} ({percent(y, whole)})"
        row["own"] = f"{with_unit(own, column.unit)} ({percent(own, whole)})"
        if is_difference:
            row["shift"] = float(f"{row['number'] / whole:.4g}")
            sign = "-" if row["number"] < 0 else "+"
            row["number"] = (
                f"{sign}{with_unit(abs(row['number']), column.unit)} ({100 * row['shift']:+.1f} %)"
            )
        else:
            row["number"] = f"{row['number']:,.0f}" if len(chart.wanted.y) > 1 else "-"
        for end in ("from", "to"):
            row[end] = float(f"{row[end] / axis.divisor:.9g}")
    present = {row["series"] for row in rows}
    deepest = max((row["place"] for row in rows), default=0)
    return {
        "y_title": axis.title,
        "whole": float(f"{whole / axis.divisor:.9g}"),
        "seen": SEEN,
        "levels": list(range(min(deepest + 1, SEEN))),
        # A kind has its colour whatever others there are.
        "series_domain": list(words.values()),
        "series_present": [word for word in words.values() if word in present],
        "shift_domain": _around_zero([row.get("shift", 0.0) for row in rows]),
        "number_title": chart.heading(chart.wanted.y[-1])
        if len(chart.wanted.y) > 1
        else say(_NUMBER, chart.lang),
        **{key: say(words, chart.lang) for key, words in _FLAME_TITLES.items()},
    }


def _around_zero(values: Sequence[float]) -> list[float]:
    """Ends and middle of a scale of colours on which zero is in the middle."""
    most = max(map(abs, values), default=0.0) or 1.0
    return [-most, 0.0, most]


def _code(state: str) -> str:
    return state.lower().replace(", ", "_or_").replace(" ", "_")


def _states(chart: _Chart) -> dict[str, Any]:
    """Spans, with the names of the states."""
    words = {
        state: say(fact(f"chart/state_{_code(state)}"), chart.lang) for state in (*STATES, "path", "state")
    }
    for row in chart.marks.rows:
        row["state"] = words.get(row["state"], row["state"])
        row["series"] = words.get(row["series"], row["series"])
    return {
        "series_domain": [words[group] for group in GROUPS],
        "path": words["path"],
        "state_title": words["state"],
        "y_title": chart.words(chart.columns[chart.wanted.y[0]]),
    }


def _latencies(chart: _Chart) -> dict[str, Any]:
    """The logarithmic axis of latency. A page links the time of the other one."""
    low, _, number = (chart.columns[name] for name in chart.wanted.y)
    title = say(title_of(chart.line, chart.wanted), chart.lang)
    ends = [row[end] for row in chart.marks.rows for end in ("y", "y2")]
    axis = chart.axis(title, low.unit, _extent(ends), "log")
    scale = {**axis.scale, "nice": False, **({"domain": [min(ends), max(ends)]} if ends else {})}
    return {
        "x_scale": {"zero": False, "nice": False},
        "y_title": axis.title,
        "y_axis": axis.axis,
        "y_scale": scale,
        "number_title": chart.words(number),
    }


def _lengths(chart: _Chart) -> dict[str, Any]:
    """The scale of stacked bars."""
    return _upward(chart, (0.0, _longest_bar(chart.marks)))


def _heights(chart: _Chart) -> dict[str, Any]:
    return _upward(chart, _extent(row["y"] for row in chart.marks.rows))


def _upward(chart: _Chart, extent: tuple[float, float]) -> dict[str, Any]:
    column = chart.columns[chart.wanted.y[0]]
    words = (
        say(title_of(chart.line, chart.wanted), chart.lang)
        if "title" in chart.line.options
        else chart.words(column)
    )
    axis = chart.axis(words, column.unit, extent, chart.line.options.get("y_scale", "linear"))
    field = _scaled(chart.marks.rows, "y", chart.wanted.y[0] if len(chart.wanted.y) == 1 else "value", axis)
    return {"y": field, "y_title": axis.title, "y_axis": axis.axis, "y_scale": axis.scale}


def _series(chart: _Chart) -> dict[str, Any]:
    """Series in words; nothing if all marks are of one series."""
    if len(chart.wanted.y) == 1 and chart.wanted.color is None:
        for row in chart.marks.rows:
            row.pop("series", None)
        return {}
    names = chart.marks.series
    if len(chart.wanted.y) > 1:
        names = [chart.heading(name) for name in names]
        for row in chart.marks.rows:
            row["series"] = chart.heading(row["series"])
    return {"series": "series", "series_domain": names, "series_title": chart.heading(chart.wanted.color)}


def _kinds(chart: _Chart) -> dict[str, Any]:
    """The title for the colours of a heat map."""
    return {"series_title": chart.heading(chart.wanted.color)}


def _labelled(chart: _Chart) -> dict[str, Any]:
    """Short names for an axis, all different."""
    names = list(dict.fromkeys((row["place"], row["name"]) for row in chart.marks.rows))
    short = dict(zip(names, labels([name for _, name in names]), strict=True))
    for row in chart.marks.rows:
        row["label"] = short[(row["place"], row["name"])]
    return {}


_STEPS_OF_SHAPES: dict[str, tuple[Callable[[_Chart], dict[str, Any]], ...]] = {
    "bars": (_names, _lengths, _series, _labelled),
    "classes": (_classes, _heights, _series),
    "points": (_along, _heights, _series),
    "lines": (_lines, _heights, _series),
    "spans": (_spans, _series, _labelled),
    "cells": (_steps, _heights, _kinds, _labelled),
    "ranges": (_names, _spreads, _labelled),
    "icicle": (_names, _branches),
    "flame": (_names, _flames),
    "latencies": (_spans, _latencies),
    "states": (_spans, _states, _labelled),
}


def _scaled(rows: list[dict[str, Any]], key: str, column: str, axis: Axis) -> str:
    """Renames `key` to the name of the column and divides it to the unit of the axis; returns the name."""
    name = f"{column}_value" if column in _OWN_FIELDS else column
    for row in rows:
        # Nine digits are more than a screen can show.
        row[name] = float(f"{row.pop(key) / axis.divisor:.9g}")
    return name


def _extent(numbers: Iterable[float]) -> tuple[float, float]:
    sizes = [abs(number) for number in numbers]
    return (min(sizes), max(sizes)) if sizes else (0.0, 0.0)


def _longest_bar(marks: Marks) -> float:
    lengths: dict[int, float] = {}
    for row in marks.rows:
        lengths[row["place"]] = lengths.get(row["place"], 0.0) + abs(row["y"])
    return max(lengths.values(), default=0.0)
