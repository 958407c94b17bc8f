"""Reduces a result to the few marks that a chart draws, in SQL around the SQL of the analysis.

Bars: the largest are kept, the rest is summed as one. Points: where there are too many, each step of the x
axis keeps, for each series, the lowest and the highest, so that extremes stay. Cells: sums by step. At most
eight series are distinguished; smaller ones become `the rest`. Nothing large is fetched, and nothing recorded
becomes SQL text. Lines, ranges and icicles have modules of their own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from sysdock.analysis import Result
from sysdock.errors import UserError
from sysdock.sentences import Words
from sysdock.text import human_ns

SERIES = 8
REST = "the rest"
# As a part of the longest bar: shorter ones are added to the rest, and a longer rest is not drawn.
_SHORTEST = 0.004
_LONGEST_REST = 20
# Greatest number of steps of a heat map: narrower ones could not be distinguished.
_STEPS = 120


@dataclass(frozen=True)
class Wanted:
    """Columns of a result that a chart shows: `y` one or several, `color` a column that names the series.

    `positive_x` and `positive_y` leave out what a logarithmic scale cannot show. `sum_rest`: bars that are
    not shown add up. `gaps`: a step of time without a row is 0 (`zero`), or has no value (`break`).
    """

    x: str
    y: tuple[str, ...]
    color: str | None = None
    x2: str | None = None
    positive_x: bool = False
    positive_y: bool = False
    sum_rest: bool = True
    gaps: str = "zero"


@dataclass
class Marks:
    """The marks to draw: `rows` as dicts, `shown` of `total` marks; `left_out` cannot be shown on this
    scale.

    `summed` further bars are drawn as one, or, where that would be too long, only stated: `rest_sum` then.
    `series` names all series of the analysis, the largest first, so that its charts agree on colours.
    `notes` are further words for the caption. `x_limits`: what the axis shows.
    """

    rows: list[dict[str, Any]]
    shown: int
    total: int
    left_out: int = 0
    summed: int = 0
    rest_sum: float | None = None
    series: list[str] = field(default_factory=list)
    notes: list[Words] = field(default_factory=list)
    x_limits: tuple[float, float] | None = None


class Reducer:
    """Reduces one result for any number of charts."""

    def __init__(self, result: Result) -> None:
        self.result = result
        self.columns = [column.name for column in result.columns]
        self._series: dict[str, list[str]] = {}

    def check(self, wanted: Wanted) -> None:
        """Refuses columns that the analysis does not have."""
        for name in (wanted.x, *wanted.y, wanted.color, wanted.x2):
            if name is not None and name not in self.columns:
                hint = f"columns: {', '.join(self.columns)}"
                raise UserError(f"the chart shows `{name}`, which is not a column", hint, self.result.place)

    def bars(self, wanted: Wanted, limit: int) -> Marks:
        """The `limit` largest names, one row per name and series; then the sum of the rest.

        Names whose bars would hardly be seen next to the longest are part of the rest.
        """
        series = self.series(wanted)
        sql = f"""
WITH result AS ({self.result.sql}
), folded AS ({folded(wanted, "VARCHAR")}
), parts AS (
    SELECT x, {kept("series", series)} AS series, sum(y) AS y FROM folded WHERE isfinite(y) AND y <> 0
    GROUP BY 1, 2
), named AS (
    SELECT x, row_number() OVER (ORDER BY sum(y) DESC, x) AS place, count(*) OVER () AS names,
        abs(sum(y)) >= {_SHORTEST} * max(sum(y)) OVER () AS is_seen
    FROM parts GROUP BY x
), placed AS (
    SELECT x, names, CASE WHEN place <= {limit} AND is_seen THEN place ELSE {limit + 1} END AS place
    FROM named
)
SELECT CASE WHEN n.place <= {limit} THEN n.x END, n.place, p.series, CAST(sum(p.y) AS DOUBLE), max(n.names)
FROM parts AS p
JOIN placed AS n ON n.x IS NOT DISTINCT FROM p.x
GROUP BY 1, 2, 3
ORDER BY place
"""
        fetched = self._fetch(sql, series)
        names = fetched[0][4] if fetched else 0
        lengths: dict[int, float] = {}
        for _, place, _, value, _ in fetched:
            lengths[place] = lengths.get(place, 0.0) + value
        rest_sum = lengths.pop(limit + 1, 0.0)
        rest = names - len(lengths)
        # A rest that is much longer than every bar would leave of them no more than a dot.
        drawn = wanted.sum_rest and rest_sum <= _LONGEST_REST * max(lengths.values(), default=0.0)
        rows = []
        for name, place, kind, value, _ in fetched:
            if place > limit and not drawn:
                continue
            shown = f"{REST} ({rest:,})" if place > limit else "(none)" if name is None else name
            rows.append(
                {"name": shown, "place": place, "series": kind, "rank": rank_of(kind, series), "y": value}
            )
        rows.sort(key=lambda row: (row["place"], row["rank"]))
        summed = rest if wanted.sum_rest else 0
        left = rest_sum if summed and not drawn else None
        return Marks(rows, names - rest, names, summed=summed, rest_sum=left, series=series)

    def points(self, wanted: Wanted, limit: int) -> Marks:
        """All points; of more than `limit`, those with the lowest and highest y per step and series."""
        series = self.series(wanted)
        along = "log2(x)" if wanted.positive_x else "x"
        usable = " AND ".join(["true"] + ["x > 0"] * wanted.positive_x + ["y > 0"] * wanted.positive_y)
        head = f"""
WITH result AS ({self.result.sql}
), folded AS ({folded(wanted, "DOUBLE")}
), known AS (SELECT * FROM folded WHERE isfinite(x) AND isfinite(y)
), usable AS (SELECT x, y, {kept("series", series)} AS series FROM known WHERE {usable}
)"""
        bounds = f"""{head}
SELECT count(*), min({along}), max({along}), (SELECT count(*) FROM known) FROM usable
"""
        [(total, low, high, known)] = self._fetch(bounds, series)
        if total <= limit:
            fetched = self._fetch(f"{head}\nSELECT x, y, series FROM usable ORDER BY x, y", series)
        else:
            # Each step gives two points for each series.
            steps = max(limit // (2 * max(len(series), 1)), 1)
            thinned = f"""{head}, steps AS (
    SELECT series, least(floor(({along} - $sysdock_low) / $sysdock_width), {steps - 1}) AS step,
        min(y) AS low_y, arg_min(x, y) AS low_x, max(y) AS high_y, arg_max(x, y) AS high_x
    FROM usable
    GROUP BY 1, 2
)
SELECT low_x AS x, low_y AS y, series FROM steps
UNION ALL
SELECT high_x, high_y, series FROM steps WHERE high_x <> low_x OR high_y <> low_y
ORDER BY x, y
"""
            width = (high - low) / steps or 1.0
            fetched = self._fetch(thinned, series, sysdock_low=low, sysdock_width=width)
        rows = [{"x": x, "y": y, "series": kind, "rank": rank_of(kind, series)} for x, y, kind in fetched]
        # The last one drawn is on top: let that be the smaller series.
        rows.sort(key=lambda row: row["rank"])
        return Marks(rows, len(rows), total, left_out=known - total, series=series)

    def classes(self, wanted: Wanted, limit: int) -> Marks:
        """All rows in order: x is the upper end of a class, one mark per class and column of y."""
        columns = ", ".join(f"CAST({quoted(name)} AS DOUBLE)" for name in wanted.y)
        sql = f"""
WITH result AS ({self.result.sql}
)
SELECT CAST({quoted(wanted.x)} AS BIGINT), {columns} FROM result ORDER BY 1 LIMIT {limit}
"""
        fetched = self._fetch(sql, [])
        width = 0.84 / len(wanted.y)
        timed = any(column.name == wanted.x and column.unit == "ns" for column in self.result.columns)
        rows = []
        for upper, *values in fetched:
            # The axis has 0 at -1, 1 at 0, 2 at 1, 3-4 at 2: the exponent of the upper end.
            start = upper.bit_length() - 1 - 0.42
            ends = (upper,) if upper < 3 else (upper // 2 + 1, upper)
            name = " - ".join(human_ns(end) if timed else f"{end:,}" for end in ends)
            for rank, (kind, value) in enumerate(zip(wanted.y, values, strict=True)):
                if value and math.isfinite(value):
                    place = {
                        "from": round(start + rank * width, 3),
                        "to": round(start + (rank + 1) * width, 3),
                    }
                    rows.append({**place, "name": name, "series": kind, "rank": rank, "y": value})
        return Marks(rows, len(fetched), len(fetched), series=list(wanted.y))

    def spans(self, wanted: Wanted, limit: int) -> Marks:
        """The first `limit` rows with a start; a row without an end reaches to the last end of all."""
        x, x2, name = quoted(wanted.x), quoted(wanted.x2 or wanted.x), quoted(wanted.y[0])
        sql = f"""
SELECT CAST({name} AS VARCHAR), CAST({x} AS DOUBLE), CAST({x2} AS DOUBLE),
    CAST(max(greatest({x}, {x2})) OVER () AS DOUBLE), count(*) OVER ()
FROM (
{self.result.sql}
) AS result
WHERE isfinite(CAST({x} AS DOUBLE))
LIMIT {limit}
"""
        fetched = self._fetch(sql, [])
        rows = [
            {"name": name or "(none)", "place": place, "x": start, "x2": last if end is None else end}
            for place, (name, start, end, last, _) in enumerate(fetched)
        ]
        return Marks(rows, len(rows), fetched[0][4] if fetched else 0)

    def cells(self, wanted: Wanted, limit: int) -> Marks:
        """Sums of y by step of x and by series; steps as wide as those of the result, where there are few."""
        series = self.series(wanted)
        head = f"""
WITH result AS ({self.result.sql}
), folded AS ({folded(wanted, "DOUBLE")}
), usable AS (
    SELECT x, y, {kept("series", series)} AS series FROM folded WHERE isfinite(x) AND isfinite(y)
)"""
        bounds = f"{head}\nSELECT count(*), min(x), max(x), count(DISTINCT x) FROM usable"
        [(total, low, high, distinct)] = self._fetch(bounds, series)
        if not total:
            return Marks([], 0, 0, series=series)
        most = max(min(_STEPS, limit // max(len(series), 1)), 1)
        width = self._cell_width(wanted, low, high, most)
        if width is None:
            steps = min(most, distinct)
            # The last x is the start of a step, not its end.
            width = (high - low) / (steps - 1) if steps > 1 else 1.0
        summed = f"""{head}
SELECT series, floor((x - $sysdock_low) / $sysdock_width + 1e-6) AS step, sum(y)
FROM usable GROUP BY 1, 2 ORDER BY 1, 2
"""
        rows = []
        for kind, step, value in self._fetch(summed, series, sysdock_low=low, sysdock_width=width):
            start = low + step * width
            place = rank_of(kind, series)
            rows.append({"name": kind, "place": place, "x": start, "x2": start + width, "y": value})
        return Marks(rows, len(rows), total, series=series)

    def _cell_width(self, wanted: Wanted, low: float, high: float, most: int) -> float | None:
        """A whole number of the steps from x to x2; else some cells would hold one step more than others."""
        if wanted.x2 is None:
            return None
        sql = f"""
WITH result AS ({self.result.sql}
)
SELECT round(max({quoted(wanted.x2)} - {quoted(wanted.x)}), 9) FROM result
"""
        [(step,)] = self._fetch(sql, [])
        return step * math.ceil((round((high - low) / step) + 1) / most) if step and step > 0 else None

    def series(self, wanted: Wanted) -> list[str]:
        """Names of the series, the largest first; columns of y keep the order of the chart line."""
        if len(wanted.y) > 1:
            return list(wanted.y)
        if wanted.color is None:
            return []
        if wanted.color not in self._series:
            # The same order for all charts of the analysis, so that a series keeps its colour.
            weight = "sum(calls)" if "calls" in self.columns else "count(*)"
            sql = f"""
WITH result AS ({self.result.sql}
)
SELECT {_text(wanted.color)} AS series FROM result GROUP BY 1 ORDER BY {weight} DESC, 1 LIMIT {SERIES + 1}
"""
            names = [name for (name,) in self._fetch(sql, [])]
            self._series[wanted.color] = names if len(names) <= SERIES else [*names[: SERIES - 1], REST]
        return self._series[wanted.color]

    def _fetch(self, sql: str, series: list[str], **values: Any) -> list[tuple[Any, ...]]:
        kinds = {f"sysdock_series_{number}": name for number, name in enumerate(series)}
        return self.result.fetch(sql, {**kinds, **values})


def folded(wanted: Wanted, x_type: str) -> str:
    """One row per mark: x, y, series. Several columns of y become as many series, named by the columns."""
    if len(wanted.y) == 1:
        kinds = [(wanted.y[0], _text(wanted.color) if wanted.color else "''")]
    else:
        kinds = [(name, f"'{name}'") for name in wanted.y]
    x = f"CAST({quoted(wanted.x)} AS {x_type})"
    return "\n    UNION ALL".join(
        f"\n    SELECT {x} AS x, CAST({quoted(name)} AS DOUBLE) AS y, {series} AS series FROM result"
        for name, series in kinds
    )


def kept(column: str, series: list[str]) -> str:
    """The series as it is drawn: those that are not named become the rest. The names are bound."""
    if REST not in series:
        return column
    names = ", ".join(f"$sysdock_series_{number}" for number in range(len(series) - 1))
    return f"CASE WHEN {column} IN ({names}) THEN {column} ELSE '{REST}' END"


def rank_of(kind: str, series: list[str]) -> int:
    return series.index(kind) if kind in series else 0


def _text(column: str) -> str:
    return f"coalesce(CAST({quoted(column)} AS VARCHAR), '(none)')"


def quoted(column: str) -> str:
    return '"' + column.replace('"', '""') + '"'
