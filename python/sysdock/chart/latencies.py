"""Reduces a result to how long things took over time: a cell for each step of time and class of latency.

`x` and `x2` are the ends of a step, and `y` lists three columns: both ends of the class, and how many were in
it. Where there would be too many cells, neighbouring steps are added, so that every count stays a true one.
"""

from __future__ import annotations

import math

from sysdock.chart.reduce import Marks, Reducer, Wanted, quoted
from sysdock.errors import UserError
from sysdock.sentences import Words, fact
from sysdock.text import human_ns

COLUMNS = 3
# Narrower steps could not be distinguished.
_STEPS = 240


def latencies(reducer: Reducer, wanted: Wanted, limit: int) -> Marks:
    """One row per cell: `x` and `x2`, `y` and `y2`, and the `number` in it."""
    if len(wanted.y) != COLUMNS or wanted.x2 is None:
        problem = "the chart line names neither `x2=` nor three columns in `y=`"
        raise UserError(problem, "y=from_ns,to_ns,calls", reducer.result.place)
    x, x2, low, high, number = map(quoted, (wanted.x, wanted.x2, *wanted.y))
    head = f"WITH result AS ({reducer.result.sql}\n)"
    bounds = f"""{head}
SELECT min({x}), max({x}), min({x2} - {x}), coalesce(sum({number}), 0),
    coalesce(sum({number}) FILTER (WHERE {low} <= 0), 0)
FROM result
"""
    [(first, last, step, total, zeros)] = reducer._fetch(bounds, [])
    if not step or total == zeros:
        return Marks([], 0, 0, left_out=int(zeros))
    merged = max(math.ceil((round((last - first) / step) + 1) / _STEPS), 1)
    summed = f"""{head}
SELECT floor(round(({x} - $sysdock_first) / $sysdock_step) / $sysdock_merged) AS step,
    {low}, {high}, sum({number})
FROM result WHERE {low} > 0 GROUP BY ALL ORDER BY 1, 2 LIMIT {limit + 1}
"""
    while True:
        values = {"sysdock_first": first, "sysdock_step": step, "sysdock_merged": merged}
        cells = reducer._fetch(summed, [], **values)
        if len(cells) <= limit:
            break
        merged *= 2
    rows = [
        {
            "x": first + at * merged * step,
            "x2": first + (at + 1) * merged * step,
            "y": since,
            "y2": until,
            "number": int(count),
            "name": f"{human_ns(since)} - {human_ns(until)}",
            "place": 0,
        }
        for at, since, until, count in cells
    ]
    width = human_ns(merged * step * 1e9)
    notes: list[Words] = [fact("chart/cells_four_each_doubling", width=width)]
    return Marks(rows, int(total - zeros), int(total), left_out=int(zeros), notes=notes)
