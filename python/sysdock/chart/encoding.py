"""Values for the placeholders of a chart template; the rows of the marks brought to the units of the axes.

Fields have the names of the columns. Beside them a row has: `name` as recorded, `label` short enough for an
axis, `place` and `rank` for the order, `series`, `from` and `to` for classes of sizes, `middle` and `run` for
lines.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from sysdock.chart.caption import plain, title_of
from sysdock.chart.reduce import Marks, Wanted
from sysdock.chart.scale import Axis, axis_of, class_axis, labels, shorten
from sysdock.library import ChartLine, Column
from sysdock.text import human_ns, in_words

_OWN_FIELDS = ("name", "label", "place", "rank", "series", "from", "to", "middle", "run")


def encode(
    line: ChartLine, wanted: Wanted, columns: dict[str, Column], marks: Marks, shape: str, lang: str
) -> dict[str, Any]:
    """Values for the placeholders of a template. Changes the rows of `marks`. lang: of titles of axes."""
    ways = {
        "bars": _names,
        "classes": _classes,
        "points": _along,
        "spans": _spans,
        "cells": _steps,
        "lines": _lines,
        "ranges": _names,
        "icicle": _names,
    }
    values = ways[shape](line, wanted, columns, marks)
    if shape == "ranges":
        values |= _spreads(line, wanted, columns, marks, lang)
    elif shape == "icicle":
        values |= _branches(line, wanted, columns, marks, lang)
    elif shape != "spans":
        values |= _heights(line, wanted, columns, marks, shape == "bars", lang)
    if shape == "cells":
        values["series_title"] = wanted.color or " "
    elif shape not in ("ranges", "icicle"):
        values |= _series(wanted, marks)
    if shape in ("bars", "spans", "cells", "ranges"):
        _label_rows(marks.rows)
    return values


def _names(line: ChartLine, wanted: Wanted, columns: dict[str, Column], marks: Marks) -> dict[str, Any]:
    column = columns[wanted.x]
    unit = f" [{column.unit}]" if column.unit else ""
    return {"x": wanted.x, "x_title": _words(column) + unit}


def _classes(line: ChartLine, wanted: Wanted, columns: dict[str, Column], marks: Marks) -> dict[str, Any]:
    column = columns[wanted.x]
    if column.unit == "ns":
        # Labels of times are the ends of classes, not their names: the bars stand between the ends.
        for row in marks.rows:
            row["from"], row["to"] = round(row["from"] - 0.5, 3), round(row["to"] - 0.5, 3)
            row["name"] = " - ".join(
                human_ns(float(end.replace(",", ""))) for end in row["name"].split(" - ")
            )
    places = [row[end] for row in marks.rows for end in ("from", "to")] or [0.0]
    axis = class_axis(column.unit, min(places) - 0.1, max(places) + 0.1)
    named = _names(line, wanted, columns, marks)
    title = f"{_words(column)} (log scale)" if column.unit == "ns" else named["x_title"]
    return {"x": wanted.x, "x_title": title, "x_axis": axis}


def _along(line: ChartLine, wanted: Wanted, columns: dict[str, Column], marks: Marks) -> dict[str, Any]:
    column = columns[wanted.x]
    extent = _extent(row["x"] for row in marks.rows)
    axis = axis_of(_words(column), column.unit, extent, line.options.get("x_scale", "linear"))
    field = _scaled(marks.rows, "x", wanted.x, axis)
    return {
        "x": field,
        "x_title": axis.title,
        "x_axis": axis.axis,
        "x_scale": axis.scale,
        "x_divisor": axis.divisor,
    }


def _spans(line: ChartLine, wanted: Wanted, columns: dict[str, Column], marks: Marks) -> dict[str, Any]:
    start, end = columns[wanted.x], columns[wanted.x2 or wanted.x]
    extent = _extent(row["x2"] for row in marks.rows)
    axis = axis_of(_words(start), start.unit, extent)
    return {
        "x": _scaled(marks.rows, "x", start.name, axis),
        "x_title": axis.title,
        "x_divisor": axis.divisor,
        "x2": _scaled(marks.rows, "x2", end.name, axis),
        "x2_title": axis_of(_words(end), end.unit, extent).title,
        "y_title": _words(columns[wanted.y[0]]),
    }


def _steps(line: ChartLine, wanted: Wanted, columns: dict[str, Column], marks: Marks) -> dict[str, Any]:
    """As points, and where each step ends."""
    extent = _extent(row["x2"] for row in marks.rows)
    column = columns[wanted.x]
    axis = axis_of(_words(column), column.unit, extent)
    values = {
        "x": _scaled(marks.rows, "x", column.name, axis),
        "x2": _scaled(marks.rows, "x2", f"{column.name}_end", axis),
    }
    scale = {"zero": False, "nice": False}
    return {**values, "x_title": axis.title, "x_axis": axis.axis, "x_scale": scale, "x_divisor": axis.divisor}


def _lines(line: ChartLine, wanted: Wanted, columns: dict[str, Column], marks: Marks) -> dict[str, Any]:
    """As points, and the middle of each stretch; the axis shows all that the recording covers."""
    column = columns[wanted.x]
    limits = marks.x_limits or (0.0, 0.0)
    axis = axis_of(_words(column), column.unit, _extent(limits))
    for row in marks.rows:
        if row["middle"] is not None:
            row["middle"] = float(f"{row['middle'] / axis.divisor:.9g}")
    domain = [float(f"{limit / axis.divisor:.9g}") for limit in limits]
    scale = {"zero": False, "nice": False, **({"domain": domain} if marks.rows else {})}
    field = _scaled(marks.rows, "x", column.name, axis)
    return {"x": field, "x_title": axis.title, "x_scale": scale, "x_divisor": axis.divisor}


def _spreads(
    line: ChartLine, wanted: Wanted, columns: dict[str, Column], marks: Marks, lang: str
) -> dict[str, Any]:
    """Six values `y1` to `y6` of each row, and `said1` to `said6` for people.

    A logarithmic axis begins at the power of ten below the smallest value; what is 0 is drawn to there.
    """
    column, scale = columns[wanted.y[0]], line.options.get("y_scale", "linear")
    keys = [f"y{number}" for number in range(1, len(wanted.y) + 1)]
    numbers = [row[key] for row in marks.rows for key in keys]
    above = [number for number in numbers if number > 0] if scale == "log" else numbers
    axis = axis_of(title_of(line, wanted, lang), column.unit, _extent(above), scale)
    low = 10.0 ** math.floor(math.log10(min(above))) if scale == "log" and above else -math.inf
    for row in marks.rows:
        for key in keys:
            row[key.replace("y", "said")] = in_words(row[key], column.unit)
            row[key] = float(f"{max(row[key], low) / axis.divisor:.9g}")
    if low > 0:
        # Room for the ring.
        axis.scale["domain"] = [low, max(above) * 1.2]
    titles = {f"{key}_title": plain(name) for key, name in zip(keys, wanted.y, strict=True)}
    return {**titles, "y_title": axis.title, "y_axis": axis.axis, "y_scale": axis.scale}


def _branches(
    line: ChartLine, wanted: Wanted, columns: dict[str, Column], marks: Marks, lang: str
) -> dict[str, Any]:
    """Both ends of a rectangle in the unit of the axis, `label` (the last part) and `said` (y in words)."""
    column = columns[wanted.y[0]]
    axis = axis_of(title_of(line, wanted, lang), column.unit, _extent(row["to"] for row in marks.rows))
    for row in marks.rows:
        part = row.pop("part")
        row["label"] = shorten(row["name"] if part is None else part or "/", 60)
        row["said"] = in_words(row.pop("y"), column.unit)
        for end in ("from", "to"):
            row[end] = float(f"{row[end] / axis.divisor:.9g}")
    return {"y_title": axis.title}


def _heights(
    line: ChartLine, wanted: Wanted, columns: dict[str, Column], marks: Marks, stacked: bool, lang: str
) -> dict[str, Any]:
    column = columns[wanted.y[0]]
    extent = (0.0, _longest_bar(marks)) if stacked else _extent(row["y"] for row in marks.rows)
    words = title_of(line, wanted, lang) if "title" in line.options else _words(column)
    axis = axis_of(words, column.unit, extent, line.options.get("y_scale", "linear"))
    field = _scaled(marks.rows, "y", wanted.y[0] if len(wanted.y) == 1 else "value", axis)
    return {"y": field, "y_title": axis.title, "y_axis": axis.axis, "y_scale": axis.scale}


def _series(wanted: Wanted, marks: Marks) -> dict[str, Any]:
    """Nothing where all marks are of one series. Series that are columns are named in words."""
    if len(wanted.y) == 1 and wanted.color is None:
        for row in marks.rows:
            row.pop("series", None)
        return {}
    names = marks.series
    if len(wanted.y) > 1:
        names = [plain(name) for name in names]
        for row in marks.rows:
            row["series"] = plain(row["series"])
    return {"series": "series", "series_domain": names, "series_title": wanted.color or " "}


def _scaled(rows: list[dict[str, Any]], key: str, column: str, axis: Axis) -> str:
    """Renames `key` to the name of the column and divides it to the unit of the axis; returns the name."""
    name = f"{column}_value" if column in _OWN_FIELDS else column
    for row in rows:
        # Nine digits are more than a screen can show.
        row[name] = float(f"{row.pop(key) / axis.divisor:.9g}")
    return name


def _label_rows(rows: list[dict[str, Any]]) -> None:
    names = list(dict.fromkeys((row["place"], row["name"]) for row in rows))
    short = dict(zip(names, labels([name for _, name in names]), strict=True))
    for row in rows:
        row["label"] = short[(row["place"], row["name"])]


def _words(column: Column) -> str:
    """The description of a column as the title of an axis: its first clause."""
    return column.text.rstrip(".").split(";")[0]


def _extent(numbers: Iterable[float]) -> tuple[float, float]:
    sizes = [abs(number) for number in numbers]
    return (min(sizes), max(sizes)) if sizes else (0.0, 0.0)


def _longest_bar(marks: Marks) -> float:
    lengths: dict[int, float] = {}
    for row in marks.rows:
        lengths[row["place"]] = lengths.get(row["place"], 0.0) + abs(row["y"])
    return max(lengths.values(), default=0.0)
