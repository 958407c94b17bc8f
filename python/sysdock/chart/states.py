"""Reduces a result to what threads did over time: for each step of a thread the state that took most of it.

`x` and `x2` are the ends of a step, `color` is a state, and `y` lists four columns: the thread, the time of
the step in that state, the time of it on the critical path, and how many threads there are. Neighbouring
steps of one state are one rectangle. There are two levels of detail: the coarse one is shown first, the fine
one where a page shows a quarter of the time or less.
"""

from __future__ import annotations

from typing import Any

from sysdock.chart.reduce import Marks, Reducer, Wanted, quoted
from sysdock.errors import UserError
from sysdock.sentences import Words, fact
from sysdock.text import human_ns, percent

COLUMNS = 4
# Steps of the coarse level: some pixels each.
_COARSE = 320
# Groups of states with the same colour. Next to blue, the other blue is for rare states.
GROUPS = ("running", "CPU", "disk", "lock", "other", "child process", "pipe, socket", "timer, events")
_GROUP_OF = {
    "file lock": "lock",
    "kernel lock": "lock",
    "page fault": "disk",
    "pipe": "pipe, socket",
    "socket": "pipe, socket",
    "timer": "timer, events",
    "events": "timer, events",
    "idle": "timer, events",
    **{name: name for name in GROUPS},
}
STATES = tuple(_GROUP_OF)


def states(reducer: Reducer, wanted: Wanted, limit: int) -> Marks:
    """Rows of both levels, with `detail` 0 or 1; those of the critical path have the series `path`."""
    if len(wanted.y) != COLUMNS or wanted.x2 is None or wanted.color is None:
        found = "the chart line names neither `x2=`, `color=` nor four columns in `y=`"
        raise UserError(found, "y=thread,time_ns,path_ns,threads", reducer.result.place)
    bounds = f"""
WITH result AS ({reducer.result.sql})
SELECT min({quoted(wanted.x)}), max({quoted(wanted.x2)}), min({quoted(wanted.x2)} - {quoted(wanted.x)}),
    count(DISTINCT {quoted(wanted.y[0])}), max({quoted(wanted.y[3])})
FROM result
"""
    [(low, high, step, shown, total)] = reducer._fetch(bounds, [])
    if not step or step <= 0:
        return Marks([], 0, 0)
    number = max(round((high - low) / step), 1)
    coarse, merged = _level(reducer, wanted, (low, step), max(-(-number // _COARSE), 1), limit // 3)
    fine, narrow = _level(reducer, wanted, (low, step), 1, limit - limit // 3)
    rows = [{**row, "detail": 0} for row in coarse]
    if narrow < merged:
        rows += [{**row, "detail": 1} for row in fine]
    seconds = (merged * step, (narrow if narrow < merged else merged) * step)
    return Marks(rows, shown, total, notes=[_note(*seconds)])


def _note(coarse: float, fine: float) -> Words:
    """A note on the length of steps [s], and on what is drawn of each."""
    steps: Words = human_ns(coarse * 1e9)
    if fine < coarse:
        steps = fact("chart/steps_zoomed", steps=coarse * 1e9, fine=fine * 1e9)
    return fact("chart/most_of_each_step", steps=steps)


def _level(
    reducer: Reducer, wanted: Wanted, grid: tuple[float, float], merged: int, most: int
) -> tuple[list[dict[str, Any]], int]:
    """At most `most` rectangles, of `merged` steps or, if there would be more, of twice as many."""
    while True:
        rows = _rows(reducer, wanted, grid, merged, most)
        if len(rows) <= most:
            return rows, merged
        merged *= 2


def _rows(
    reducer: Reducer, wanted: Wanted, grid: tuple[float, float], merged: int, most: int
) -> list[dict[str, Any]]:
    name, time, path, _ = map(quoted, wanted.y)
    low, step = grid
    sql = f"""
WITH result AS ({reducer.result.sql}
), placed AS (
    SELECT CAST({name} AS VARCHAR) AS name, CAST({quoted(wanted.color or "")} AS VARCHAR) AS state,
        CAST({time} AS DOUBLE) AS ns, CAST({path} AS DOUBLE) AS path_ns,
        CAST(round(({quoted(wanted.x)} - $sysdock_low) / $sysdock_step) AS BIGINT) AS fine
    FROM result
), threads AS (
    SELECT name, row_number() OVER (ORDER BY min(number)) - 1 AS place
    FROM (SELECT {name} AS name, row_number() OVER () AS number FROM result) GROUP BY name
), summed AS (
    SELECT name, fine // $sysdock_merged AS step, state, sum(ns) AS ns FROM placed GROUP BY ALL
), on_path AS (
    -- The time on the path is that of a step, and stands at each of its states.
    SELECT name, fine // $sysdock_merged AS step, sum(path_ns) AS ns
    FROM (SELECT name, fine, max(path_ns) AS path_ns FROM placed GROUP BY ALL) GROUP BY ALL
), longest AS (
    SELECT *, sum(ns) OVER (PARTITION BY name, step) AS whole,
        row_number() OVER (PARTITION BY name, step ORDER BY ns DESC, state) AS rank
    FROM summed
), cells AS (
    SELECT name, step, state, ns, whole, 0 AS path FROM longest WHERE rank = 1
    UNION ALL
    SELECT p.name, p.step, 'path', p.ns, l.whole, 1
    FROM on_path AS p JOIN longest AS l ON l.name = p.name AND l.step = p.step AND l.rank = 1
    WHERE p.ns * 2 >= l.whole
), runs AS (
    SELECT *, step - row_number() OVER (PARTITION BY name, state, path ORDER BY step) AS run FROM cells
)
SELECT r.name, t.place, r.state, r.path, min(r.step), max(r.step) + 1, sum(r.ns), sum(r.whole)
FROM runs AS r JOIN threads AS t ON t.name = r.name
GROUP BY r.name, t.place, r.state, r.path, r.run
ORDER BY t.place, r.path, min(r.step)
LIMIT {most + 1}
"""
    found = reducer._fetch(sql, [], sysdock_low=low, sysdock_step=step, sysdock_merged=merged)
    return [
        {
            "name": name,
            "place": place,
            "state": state,
            "series": "path" if path else _GROUP_OF.get(state, "other"),
            "x": low + first * merged * step,
            "x2": low + last * merged * step,
            "share": percent(ns, whole),
            "onpath": bool(path),
        }
        for name, place, state, path, first, last, ns, whole in found
    ]
