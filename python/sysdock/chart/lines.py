"""Reduces a result to lines over time in equal steps: every step of the recording has a value, or is a gap.

Where the analysis has no row for a step, a quantity that adds up (calls, bytes) was 0, as far as the
recording covers the step. An average, an extreme or a share has no value there, and the line breaks. A row
whose value is NULL is a gap in both cases. Too many steps are drawn as fewer and longer ones: sums are added,
of all else the lowest and the highest stay, in the order of their times. Of averages, `the rest` of the
series is not drawn: it has no average of its own.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from sysdock.analysis import Session
from sysdock.chart.reduce import REST, Marks, Reducer, Wanted, folded, kept, quoted, rank_of
from sysdock.errors import UserError
from sysdock.recording.filters import time_ns
from sysdock.sentences import Words, fact
from sysdock.text import TIMES

# Two pixels each. Narrower ones could not be distinguished.
_STEPS = 360
_FILLED = fact("chart/step_without_calls_0")
_NO_REST = fact("chart/rest_has_no_value")
_BROKEN = fact("chart/step_without_value_gap")


@dataclass(frozen=True)
class _Steps:
    """Equal steps along x: `first` is the number of the first, `width` the length of one in units of x.

    `merged` of them are drawn as one. Nothing was recorded before `start` and after `end`.
    """

    width: float
    first: int
    count: int
    merged: int
    start: float
    end: float

    def edge(self, half: int) -> float:
        """The start of a drawn step, counted in halves of drawn steps and limited to the recorded time."""
        place = (self.first + half * self.merged / 2) * self.width
        return min(max(place, self.start), self.end)


@dataclass(frozen=True)
class _Piece:
    """A level stretch of a line from `since` to `until`, in halves of drawn steps. `real`: rows say so."""

    since: int
    until: int
    y: float
    real: bool


def lines(reducer: Reducer, wanted: Wanted, limit: int) -> Marks:
    """Level stretches, joined to runs: rows begin at x, and those that were recorded have their `middle`."""
    if wanted.x2 is None:
        raise UserError("the chart line has no `x2=`, the end of a step", place=reducer.result.place)
    series = reducer.series(wanted)
    steps = _steps(reducer, wanted, max(limit // (3 * max(len(series), 1)), 1))
    if steps is None:
        return Marks([], 0, 0, series=series)
    found = _summaries(reducer, wanted, series, steps)
    total = sum(row[1] for rows in found.values() for row in rows)
    known = sum(row[2] for rows in found.values() for row in rows)
    if not total:
        return Marks([], 0, 0, left_out=known, series=series)
    adds_up = wanted.gaps == "zero"
    notes = _notes(steps, adds_up)
    if not adds_up and REST in found:
        del found[REST]
        notes.append(_NO_REST)
        series = [name for name in series if name != REST]
    marks = _marks(found, series, steps, adds_up)
    shown = sum(row["middle"] is not None for row in marks)
    limits = (steps.edge(0), steps.edge(2 * math.ceil(steps.count / steps.merged)))
    # A sum shows all the values it was made of.
    return Marks(
        marks,
        total if adds_up else shown,
        total,
        left_out=known - total,
        series=series,
        notes=notes,
        x_limits=limits,
    )


def _summaries(
    reducer: Reducer, wanted: Wanted, series: list[str], steps: _Steps
) -> dict[str, list[tuple[Any, ...]]]:
    """For each series its drawn steps: usable and known values, sum, lowest, highest, which came first."""
    sql = f"""
WITH result AS ({reducer.result.sql}
), folded AS ({folded(wanted, "DOUBLE")}
), placed AS (
    SELECT {kept("series", series)} AS series, x, y,
        (CAST(round(x / $sysdock_width) AS BIGINT) - $sysdock_first) // {steps.merged} AS step,
        isfinite(y) AND {"y > 0" if wanted.positive_y else "true"} AS usable
    FROM folded
    WHERE isfinite(x)
)
SELECT series, step, count(*) FILTER (WHERE usable), count(*) FILTER (WHERE isfinite(y)),
    sum(y) FILTER (WHERE usable), min(y) FILTER (WHERE usable), max(y) FILTER (WHERE usable),
    arg_min(x, y) FILTER (WHERE usable) <= arg_max(x, y) FILTER (WHERE usable)
FROM placed GROUP BY 1, 2 ORDER BY 1, 2
"""
    bound = {"sysdock_width": steps.width, "sysdock_first": steps.first}
    found: dict[str, list[tuple[Any, ...]]] = {}
    for kind, *rest in reducer._fetch(sql, series, **bound):
        found.setdefault(kind, []).append(tuple(rest))
    return found


def _marks(
    found: dict[str, list[tuple[Any, ...]]], series: list[str], steps: _Steps, adds_up: bool
) -> list[dict[str, Any]]:
    runs = itertools.count()
    marks = []
    # The last one drawn is on top: let that be the smaller series.
    for kind in sorted(found, key=lambda kind: rank_of(kind, series)):
        pieces = _sums(found[kind], steps) if adds_up else _extremes(found[kind])
        for row in _runs(pieces, steps, runs):
            marks.append({**row, "series": kind, "rank": rank_of(kind, series)})
    return marks


def _steps(reducer: Reducer, wanted: Wanted, most: int) -> _Steps | None:
    """Steps from the first to the last of the recording, as wide as those of the result."""
    x, x2 = quoted(wanted.x), quoted(wanted.x2 or wanted.x)
    # Both ends are rounded to a nanosecond, and so is their difference: otherwise a step would be off after
    # a million.
    sql = f"""
WITH result AS ({reducer.result.sql}
)
SELECT round(max({x2} - {x}), 9), min({x}), max({x}) FROM result WHERE isfinite({x}) AND isfinite({x2})
"""
    [(width, low, high)] = reducer._fetch(sql, [])
    if not width or width <= 0:
        return None
    units = {column.name: column.unit for column in reducer.result.columns}
    start, end = covered(reducer.result.session) if units[wanted.x] == "s" else (low, high + width)
    # A call may begin before the first line that was read, or at the very end.
    first = min(math.floor(start / width + 1e-9), round(low / width))
    last = max(math.ceil(end / width - 1e-9) - 1, round(high / width))
    count = last - first + 1
    start, end = (start if start < low + width else low), (end if end > high else high + width)
    return _Steps(width, first, count, math.ceil(count / min(most, _STEPS)), start, end)


def covered(session: Session) -> tuple[float, float]:
    """The time that the recording covers and the filters leave [s since its start]."""
    recording, filters = session.recording, session.filters

    def moment(text: str | None, option: str, otherwise: int) -> int:
        return time_ns(text, option, recording) - recording.started_ns if text else otherwise

    whole = recording.manifest["duration_ns"]
    start = max(moment(filters.from_, "--from", 0), 0)
    end = min(moment(filters.to, "--until", whole), whole)
    return start / 1e9, max(end, start) / 1e9


def _sums(rows: list[tuple[Any, ...]], steps: _Steps) -> Iterator[_Piece]:
    """One stretch per drawn step; steps without a row are 0, steps without a known row are left out."""
    known = {step: (usable, value) for step, usable, _, value, *_ in rows}
    for step in range(math.ceil(steps.count / steps.merged)):
        usable, value = known.get(step, (1, 0.0))
        if usable:
            yield _Piece(2 * step, 2 * step + 2, value, step in known)


def _extremes(rows: list[tuple[Any, ...]]) -> Iterator[_Piece]:
    """One stretch per drawn step, or two if it has different values: the lowest and the highest."""
    for step, usable, _, _, low, high, rising in rows:
        if usable and low == high:
            yield _Piece(2 * step, 2 * step + 2, low, True)
        elif usable:
            yield _Piece(2 * step, 2 * step + 1, low if rising else high, True)
            yield _Piece(2 * step + 1, 2 * step + 2, high if rising else low, True)


def _runs(pieces: Iterable[_Piece], steps: _Steps, numbers: Iterator[int]) -> Iterator[dict[str, Any]]:
    """Rows of a line: one where each stretch begins, and one at the end of each run of them."""
    last: _Piece | None = None
    run = 0
    for piece in pieces:
        if last is None or last.until != piece.since:
            if last is not None:
                yield {"x": steps.edge(last.until), "middle": None, "y": last.y, "run": run}
            run = next(numbers)
        # A long silence is one stretch.
        if not (last and last.until == piece.since and last.y == piece.y and not piece.real):
            since, until = steps.edge(piece.since), steps.edge(piece.until)
            middle = (since + until) / 2 if piece.real else None
            yield {"x": since, "middle": middle, "y": piece.y, "run": run}
        last = piece
    if last is not None:
        yield {"x": steps.edge(last.until), "middle": None, "y": last.y, "run": run}


def _notes(steps: _Steps, adds_up: bool) -> list[Words]:
    """The length of a step, and the meaning of a step without a row."""
    length = steps.width * steps.merged * 1e9
    size, unit = next(((size, unit) for size, unit in TIMES if length >= size), TIMES[-1])
    drawn = f"{length / size:.4g} {unit}"
    if steps.merged == 1:
        notes: list[Words] = [fact("chart/steps", drawn=drawn)]
    elif adds_up:
        notes = [fact("chart/summed_steps", drawn=drawn)]
    else:
        notes = [fact("chart/lowest_highest_each", drawn=drawn)]
    return [*notes, _FILLED if adds_up else _BROKEN]
