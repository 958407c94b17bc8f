"""Reduces a result to ranges: for each row, how its values are spread, from the lowest to the highest.

`y` names six columns in rising order. A line reaches from the first to the fifth, a box from the second to
the fourth, the third is marked in it, and the sixth, the highest of all, stands apart as a ring: one outlier
says little of the others.
"""

from __future__ import annotations

from sysdock.chart.reduce import Marks, Reducer, Wanted, quoted
from sysdock.errors import UserError
from sysdock.library.headings import words_of
from sysdock.sentences import Words, fact

COLUMNS = 6


def ranges(reducer: Reducer, wanted: Wanted, limit: int) -> Marks:
    """The first `limit` rows whose values are all known, in their order; values as `y1` to `y6`."""
    if len(wanted.y) != COLUMNS:
        found = f"the chart line names {len(wanted.y)} columns in `y=`"
        raise UserError(found, f"a range has {COLUMNS}, the lowest first", reducer.result.place)
    values = [f"CAST({quoted(column)} AS DOUBLE)" for column in wanted.y]
    # A logarithmic axis has no 0: what is never above it cannot stand there.
    usable = f"{values[-1]} > 0" if wanted.positive_y else "true"
    sql = f"""
WITH result AS ({reducer.result.sql}
), known AS (
    SELECT CAST({quoted(wanted.x)} AS VARCHAR) AS name,
        {", ".join(f"{value} AS y{number}" for number, value in enumerate(values, 1))},
        {usable} AS usable, count(*) FILTER (WHERE {usable}) OVER () AS total, count(*) OVER () AS every
    FROM result
    WHERE {" AND ".join(f"isfinite({value})" for value in values)}
)
SELECT * EXCLUDE (usable) FROM known WHERE usable LIMIT {limit}
"""
    fetched = reducer._fetch(sql, [])
    total, every = fetched[0][-2:] if fetched else (0, 0)
    rows = []
    for place, (name, *numbers, _, _) in enumerate(fetched):
        spread = {f"y{number}": value for number, value in enumerate(numbers, 1)}
        rows.append({"name": "(none)" if name is None else name, "place": place, **spread})
    notes: list[Words] = [_legend(wanted)] if rows else []
    if wanted.positive_y and (below := sum(row["y1"] <= 0 for row in rows)):
        notes.append(fact("chart/begin_0_drawn_edge", below=below))
    return Marks(rows, len(rows), total, left_out=every - total, notes=notes)


def _legend(wanted: Wanted) -> Words:
    """The legend of the ranges."""
    names = ("low", "lower", "middle", "upper", "high", "highest")
    return fact("chart/legend_of_ranges", **dict(zip(names, map(words_of, wanted.y), strict=True)))
