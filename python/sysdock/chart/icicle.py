"""Reduces a result to an icicle: nested rectangles, a level for each part of a path.

Each row of the result adds `y` to its path and to all that the path lies in, so that a rectangle is as wide
as all that lies in it, and never wider than the one above it. What stays free below a rectangle is its own. A
rectangle narrower than a pixel is not drawn; those of one parent are summed as `the rest`, where that has a
pixel.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from sysdock.chart.reduce import REST, Marks, Reducer, Wanted, quoted
from sysdock.sentences import Words, fact
from sysdock.text import percent

# The width of the template. A page scales `room`, in pixels, with its own width.
_PIXELS = 720
# More could not be read. What lies deeper counts as own of the last level.
_LEVELS = 14
# Intensity of colours: neighbouring levels differ, and the rest is pale.
_SHADES, _PALE = (0.42, 0.3), 0.12

# Rectangles by level and path of the parent: last part (None: those not drawn), y, number of paths.
_Below = dict[tuple[int, str], list[tuple[str | None, float, int]]]


def icicle(reducer: Reducer, wanted: Wanted, limit: int) -> Marks:
    """One row per rectangle: its `name`, the `part` of the path, its level as `place`, `from` and `to`."""
    path, value = f"CAST({quoted(wanted.x)} AS VARCHAR)", f"CAST({quoted(wanted.y[0])} AS DOUBLE)"
    # An absolute path has the empty text as its first part, and the root has that alone.
    sql = f"""
WITH result AS ({reducer.result.sql}
), leaves AS (
    SELECT CASE WHEN path = '/' THEN [''] ELSE string_split(path, '/') END AS parts, sum(y) AS y
    FROM (SELECT {path} AS path, {value} AS y FROM result)
    WHERE isfinite(y) AND y > 0 AND path <> ''
    GROUP BY 1
), nodes AS (
    SELECT parts[:level] AS node, level, sum(y) AS y
    FROM (SELECT parts, y, unnest(range(1, len(parts) + 1)) AS level FROM leaves)
    GROUP BY 1, 2
), ranked AS (
    SELECT *, sum(y) FILTER (WHERE level = 1) OVER () AS whole, count(*) OVER () AS every,
        count(*) FILTER (WHERE level <= {_LEVELS}) OVER () AS near,
        max(level) OVER () AS deepest, row_number() OVER (ORDER BY y DESC, level, node) AS rank
    FROM nodes
), judged AS (
    -- Whatever lies above a drawn rectangle is drawn: it is as wide, and comes first.
    SELECT *, y * {_PIXELS} >= whole AND rank <= {limit} AS drawn FROM ranked WHERE level <= {_LEVELS}
)
SELECT n.level - 1, array_to_string(n.node[:-2], '/'), CASE WHEN n.drawn THEN n.node[-1] END AS part,
    sum(n.y) AS amount, count(*), any_value(n.whole), any_value(n.every), any_value(n.near),
    any_value(n.deepest)
FROM judged AS n
LEFT JOIN judged AS p ON p.node = n.node[:-2]
WHERE n.level = 1 OR p.drawn
GROUP BY n.level, 2, 3
ORDER BY part IS NULL, amount DESC, part
"""
    below: _Below = defaultdict(list)
    fetched = reducer._fetch(sql, [])
    for level, parent, part, y, count, *_ in fetched:
        below[level, parent].append((part, y, count))
    whole, every, near, deepest = fetched[0][-4:] if fetched else (0.0, 0, 0, 0)
    rows = list(_placed(below, whole))
    shown = sum(row["part"] is not None for row in rows)
    notes: list[Words] = []
    if shown < near:
        notes.append(fact("chart/others_too_narrow"))
    if deepest > _LEVELS:
        notes.append(fact("chart/levels", levels=_LEVELS, deepest=deepest))
    return Marks(rows, shown, every, notes=notes)


def _placed(below: _Below, whole: float) -> Iterator[dict[str, Any]]:
    """Rectangles from the top, those of one parent side by side from its left edge, the widest first."""
    waiting = [(0, "", 0.0)]
    while waiting:
        level, parent, place = waiting.pop()
        for part, y, count in below[level, parent]:
            path = f"{parent}/{part}" if level else part or ""
            if part is None and y * _PIXELS < whole:
                continue
            yield {
                "name": f"{REST} ({count:,})" if part is None else path or "/",
                "part": part,
                "place": level,
                "from": place,
                "to": place + y,
                "y": y,
                "room": round(y / whole * _PIXELS, 1),
                "share": percent(y, whole),
                "shade": _PALE if part is None else _SHADES[level % 2],
            }
            if part is not None:
                waiting.append((level + 1, path, place))
            place += y
