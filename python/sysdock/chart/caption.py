"""Words around a chart: what it shows, how much of the result, and what became of the rest."""

from __future__ import annotations

from sysdock.chart.reduce import REST, Marks, Wanted
from sysdock.library import ChartLine
from sysdock.library.headings import words_of
from sysdock.sentences import Words, fact, listed, prose_of
from sysdock.text import human_bytes, human_ns

_NOUNS = {
    "bars": fact("chart/bars"),
    "points": fact("chart/points"),
    "classes": fact("chart/classes"),
    "spans": fact("chart/rows"),
    "cells": fact("chart/values"),
    "lines": fact("chart/values"),
    "ranges": fact("chart/rows"),
    "icicle": fact("chart/branches"),
    "states": fact("chart/threads"),
    "latencies": fact("chart/values"),
    "flame": fact("chart/rectangles"),
}


def title_of(line: ChartLine, wanted: Wanted) -> Words:
    """The title of the chart line, else the names of the columns."""
    if stated := prose_of(line.options, "title"):
        return stated
    return listed(words_of(name) for name in wanted.y)


def caption_of(marks: Marks, shape: str, unit: str | None = None) -> Words:
    """How much of the result is drawn, as in `500 of 12,000 points drawn (lowest and highest of each
    step)`.

    unit: of the values, for the sum of bars that are not drawn.
    """
    if not marks.rows:
        return fact("chart/no_data")
    some = marks.shown < marks.total
    noun = _NOUNS[shape]
    counts = {"shown": marks.shown, "total": marks.total, "noun": noun}
    if shape == "cells" and some:
        parts = [fact("chart/summed_in_cells", **counts)]
    else:
        is_first = shape in ("spans", "ranges") and some
        parts = [fact("chart/first_drawn" if is_first else "chart/drawn", **counts)]
    if shape == "points" and some:
        parts.append(fact("chart/extremes_of_steps"))
    if marks.summed and marks.rest_sum is not None:
        rest = _amount(marks.rest_sum, unit)
        parts.append(fact("chart/others_together", number=marks.summed, noun=noun, rest=rest))
    elif marks.summed:
        parts.append(fact("chart/others_summed", number=marks.summed, noun=noun, row=REST))
    if marks.left_out:
        parts.append(fact("chart/not_on_log_scale", number=marks.left_out))
    return listed([*parts, *marks.notes])


def _amount(value: float, unit: str | None) -> str:
    if unit in ("ns", "B"):
        return human_ns(value) if unit == "ns" else human_bytes(value)
    return f"{value:,.6g} {unit or ''}".rstrip()
