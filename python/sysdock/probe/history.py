"""Values of each item of a series, one for each probe; patterns of the day and the week removed."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

from sysdock.probe.shift import spread_of

if TYPE_CHECKING:
    from sysdock.analysis import Session

CONTROL = "control"
# Numbers of a probe with these words count: `not_known` is all that a file system without a device has, and
# `throttled` is a way to be slow like any other.
USABLE = ("measured", "not_known", "throttled")
# 90 days of probes every ten minutes.
NEWEST = 12_960
DAYS_FOR_DAY = 7
DAYS_FOR_WEEK = 28
_LEAST_GAIN = 0.95


@dataclass(frozen=True)
class ItemHistory:
    """Logarithms of rates of one item, by probe, the oldest first; only probes whose numbers count.

    `name`: item and operation, and the length where a series has several: `log append`.
    """

    item: str
    operation: str
    probes: list[int]
    values: list[float]
    last_status: str
    name: str


@dataclass(frozen=True)
class History:
    """The newest probes: when each began, by which kernel, in which boot; and the items.

    `failure`: why the newest probe failed as a whole.
    """

    ids: list[int]
    times_ns: list[int]
    kernels: list[str]
    boots: list[str]
    items: list[ItemHistory]
    failure: str | None
    place: dict[int, int]

    @property
    def control(self) -> ItemHistory | None:
        """The item that touches no device."""
        return next((item for item in self.items if item.item == CONTROL), None)


_PROBES = """
SELECT probe_id, min(time_ns), min(kernel), min(boot_id),
    min(CASE WHEN item = 'probe' THEN coalesce(note, status) END)
FROM probe_results WHERE probe_id > (SELECT max(probe_id) FROM probe_results) - {newest}
GROUP BY probe_id ORDER BY probe_id
"""
_ITEMS = """
WITH each AS (
    SELECT item, operation, length_bytes, probe_id, min(step) AS step, arg_max(status, step) AS status,
        avg(ln(operations_per_s)) FILTER (WHERE status IN {usable} AND operations_per_s > 0) AS value
    FROM probe_results
    WHERE item <> 'probe' AND probe_id > (SELECT max(probe_id) FROM probe_results) - {newest}
    GROUP BY item, operation, length_bytes, probe_id
)
SELECT item, operation, length_bytes,
    list(probe_id ORDER BY probe_id) FILTER (WHERE value IS NOT NULL),
    list(value ORDER BY probe_id) FILTER (WHERE value IS NOT NULL),
    arg_max(status, probe_id)
FROM each GROUP BY item, operation, length_bytes ORDER BY min(step), operation, length_bytes
"""


def read(session: Session, newest: int = NEWEST) -> History:
    """The newest probes of a series. A series without any probe has no items."""
    words = {"newest": newest, "usable": USABLE}
    probes = session.fetch(_PROBES.format(**words))
    found = session.fetch(_ITEMS.format(**words))
    several = Counter((row[0], row[1]) for row in found)
    items = [
        ItemHistory(item, operation, ids or [], values or [], status, _name(item, operation, length, several))
        for item, operation, length, ids, values, status in found
    ]
    columns: list[list[object]] = [[row[number] for row in probes] for number in range(4)]
    ids, times, kernels, boots = columns
    return History(
        ids=ids,  # type: ignore[arg-type]
        times_ns=times,  # type: ignore[arg-type]
        kernels=kernels,  # type: ignore[arg-type]
        boots=boots,  # type: ignore[arg-type]
        items=items,
        failure=probes[-1][4] if probes else None,
        place={row[0]: number for number, row in enumerate(probes)},
    )


def _name(item: str, operation: str, length: int | None, several: Counter[tuple[str, str]]) -> str:
    if item == CONTROL:
        return item
    size = f" {length}" if length is not None and several[item, operation] > 1 else ""
    return f"{item} {operation}{size}"


@dataclass(frozen=True)
class Clock:
    """Hour of the day, hour of the week and day of each moment, where the machine is."""

    hours: list[int]
    week_hours: list[int]
    days: list[int]


def clock_of(times_ns: Sequence[int]) -> Clock:
    """The local time at these moments."""
    moments = [time.localtime(each // 1_000_000_000) for each in times_ns]
    return Clock(
        [each.tm_hour for each in moments],
        [each.tm_wday * 24 + each.tm_hour for each in moments],
        [each.tm_year * 366 + each.tm_yday for each in moments],
    )


def without_pattern(values: Sequence[float], clock: Clock) -> tuple[list[float], str | None]:
    """The values without what each hour of a day, or of a week, has in common, and which of the two it was.

    A pattern is taken out only where it explains some of the spread.
    """
    found, name = list(values), None
    days = len(set(clock.days))
    by_day = defaultdict(list)
    for day, value in zip(clock.days, values, strict=True):
        by_day[day].append(value)
    levels = {day: median(some) for day, some in by_day.items()}
    offsets = [value - levels[day] for day, value in zip(clock.days, values, strict=True)]
    spread = spread_of(offsets, 0.0) if offsets else 0.0
    for kind, needed, hours in (
        ("day", DAYS_FOR_DAY, clock.hours),
        ("week", DAYS_FOR_WEEK, clock.week_hours),
    ):
        if days < needed:
            break
        by_hour = defaultdict(list)
        for hour, offset in zip(hours, offsets, strict=True):
            by_hour[hour].append(offset)
        usual = {hour: median(some) for hour, some in by_hour.items()}
        left = [offset - usual[hour] for hour, offset in zip(hours, offsets, strict=True)]
        narrower = spread_of(left, 0.0)
        if narrower < spread * _LEAST_GAIN:
            found = [value - usual[hour] for hour, value in zip(hours, values, strict=True)]
            spread, name = narrower, kind
    return found, name
