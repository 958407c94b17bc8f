"""Makes complete Vega-Lite specifications of the charts of an analysis."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sysdock.analysis import Result, Session
from sysdock.analysis.marks import marks_of
from sysdock.chart.caption import caption_of, title_of
from sysdock.chart.encoding import encode
from sysdock.chart.flame import flame
from sysdock.chart.icicle import icicle
from sysdock.chart.latencies import latencies
from sysdock.chart.lines import lines
from sysdock.chart.marks import caption, with_marks
from sysdock.chart.ranges import ranges
from sysdock.chart.reduce import Marks, Reducer, Wanted
from sysdock.chart.states import states
from sysdock.chart.template import fill, shape_of
from sysdock.errors import UserError
from sysdock.library import Analysis, ChartLine, Column
from sysdock.page.theme import config
from sysdock.sentences import Prose, Words, fact, say
from sysdock.text import visible

_OPTIONS = ("x", "x2", "y", "color", "x_scale", "y_scale", "rest", "gaps", "title", "title_ja")
_NO_CLOCK = fact("chart/log_has_no_clock")
_NO_DURATIONS = fact("chart/log_does_not_tell")
# Shapes whose horizontal axis may be time.
_ALONG_TIME = ("points", "spans", "cells", "lines", "states", "latencies")
_IDENTIFIER = re.compile(r"[a-z][a-z0-9_]*$")
# Averages, extremes and percentiles do not add up, and without calls there are none.
_NOT_SUMMED = re.compile(r"avg_|min_|max_|median|p\d+_|share")
# Shapes with a module of their own.
_REDUCERS = {
    "lines": lines,
    "ranges": ranges,
    "icicle": icicle,
    "flame": flame,
    "states": states,
    "latencies": latencies,
}


@dataclass(frozen=True)
class Drawing:
    """One chart: a complete specification, and how much of the result it shows."""

    spec: dict[str, Any]
    title: Words
    caption: Words
    shown: int
    total: int


def specs(
    session: Session,
    analysis: Analysis | str,
    params: Mapping[str, Any] | None = None,
    lang: str = "en",
    theme: str = "light",
) -> list[dict[str, Any]]:
    """Vega-Lite specifications with inline data, one per `chart:` line of the analysis; maybe none."""
    found = drawings(session, analysis, params, lang)
    return [{**drawing.spec, "config": config(theme)} for drawing in found]


def drawings(
    session: Session, analysis: Analysis | str, params: Mapping[str, Any] | None = None, lang: str = "en"
) -> list[Drawing]:
    """The charts of an analysis, without a theme. `lang`: language of titles and captions."""
    return drawings_of(session.run(analysis, params).keep(), lang)


def drawings_of(result: Result, lang: str = "en") -> list[Drawing]:
    """The charts of a result."""
    reducer = Reducer(result)
    return [_draw(result.session, reducer, line, lang) for line in result.analysis.charts]


def _draw(session: Session, reducer: Reducer, line: ChartLine, lang: str) -> Drawing:
    result = reducer.result
    template = session.library.chart(line.template)
    spec = template.spec()
    shape, limit = shape_of(spec, str(template.path))
    wanted = _wanted(line, result)
    reducer.check(wanted)
    marks = _readable(_marks(reducer, shape, wanted, limit))
    columns = {column.name: column for column in result.columns}
    title, captions = title_of(line, wanted), caption_of(marks, shape, columns[wanted.y[0]].unit)
    if marks.rows and not session.recording.has_clock and _shows_time(wanted, columns):
        captions = fact("chart/captioned", caption=captions, more=_NO_CLOCK)
    if not marks.rows and columns[wanted.y[0]].unit == "ns" and not session.recording.has_durations:
        captions = fact("chart/captioned", caption=captions, more=_NO_DURATIONS)
    values = encode(line, wanted, columns, marks, shape, lang)
    filled = fill(spec, values, str(template.path))
    if columns[wanted.x].unit == "s" and shape in _ALONG_TIME:
        if marks.rows and (moments := marks_of(session)):
            filled = with_marks(filled, moments, values["x_divisor"], lang)
            captions = fact("chart/captioned", caption=captions, more=caption(moments))
        # Pages link the charts that share a time axis, whatever the unit of each.
        filled["usermeta"] = {"seconds_per_unit": values["x_divisor"]}
    head = {
        "text": f"{say(title_in_words(session, result.analysis), lang)}: {say(title, lang)}",
        "subtitle": visible(say(captions, lang)),
    }
    complete = {**filled, "title": head, "data": {"values": marks.rows}}
    return Drawing(
        spec=complete,
        title=title,
        caption=captions,
        shown=marks.shown,
        total=marks.total,
    )


def _marks(reducer: Reducer, shape: str, wanted: Wanted, limit: int) -> Marks:
    if shape in _REDUCERS:
        return _REDUCERS[shape](reducer, wanted, limit)
    marks: Marks = getattr(reducer, shape)(wanted, limit)
    return marks


def _readable(marks: Marks) -> Marks:
    """The marks with recorded names that steer neither a page nor the direction of its text."""
    for row in marks.rows:
        row.update({key: visible(value) for key, value in row.items() if isinstance(value, str)})
    marks.series[:] = map(visible, marks.series)
    return marks


def _shows_time(wanted: Wanted, columns: Mapping[str, Column]) -> bool:
    """Whether an axis shows when something happened."""
    return any(columns[name].unit == "s" for name in (wanted.x, wanted.x2) if name)


def _wanted(line: ChartLine, result: Result) -> Wanted:
    """The chart that a chart line requests; a UserError names a mistake in it."""
    options, place = line.options, result.place
    for key, value in options.items():
        if key not in _OPTIONS:
            hint = f"the options are {', '.join(_OPTIONS)}"
            raise UserError(f"chart option `{key}` is unknown", hint, place)
        if not key.startswith("title") and not all(_IDENTIFIER.match(part) for part in value.split(",")):
            raise UserError(f"chart option `{key}={value}` does not name columns", place=place)
    for key in ("x", "y"):
        if key not in options:
            raise UserError(f"the chart line has no `{key}=`", place=place)
    for key in ("x_scale", "y_scale"):
        if options.get(key, "linear") not in ("linear", "log"):
            raise UserError(f"chart option `{key}` is neither linear nor log", place=place)
    y = tuple(options["y"].split(","))
    adds_up = not _NOT_SUMMED.match(y[0])
    return Wanted(
        x=options["x"],
        y=y,
        color=options.get("color"),
        x2=options.get("x2"),
        positive_x=options.get("x_scale") == "log",
        positive_y=options.get("y_scale") == "log",
        sum_rest=options.get("rest") != "drop" and adds_up,
        gaps=_gaps(options, adds_up, place),
    )


def _gaps(options: Mapping[str, str], adds_up: bool, place: str) -> str:
    """The meaning of a time step without a row: 0 for sums, otherwise a missing value."""
    logarithmic = options.get("y_scale") == "log"
    stated = options.get("gaps", "zero" if adds_up and not logarithmic else "break")
    if stated not in ("zero", "break"):
        raise UserError("chart option `gaps` is neither zero nor break", place=place)
    if stated == "zero" and logarithmic:
        raise UserError("a log scale has no 0", "leave out `gaps=zero`", place)
    return stated


def title_in_words(session: Session, analysis: Analysis) -> Words:
    """The title of an analysis, from its page if it has one."""
    if not analysis.page_path.exists():
        return analysis.title
    titles = session.library.page(analysis).titles
    return Prose({**titles.texts, "en": analysis.title})
