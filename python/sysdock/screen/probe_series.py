"""`probe show`: a series on a terminal. A line of blocks for each item, and what stands out."""

from __future__ import annotations

import datetime
import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Any

from sysdock.probe.history import DAYS_FOR_DAY, DAYS_FOR_WEEK, History, clock_of, read, without_pattern
from sysdock.probe.shift import change_points
from sysdock.sentences import Words, fact, listed, say
from sysdock.text import human_ns, pad, printable, width

if TYPE_CHECKING:
    from sysdock.analysis import Session

_BLOCKS = "▁▂▃▄▅▆▇"
_COLUMNS = 60
# Half as fast is the lowest block, half as fast again the highest.
_LOW, _HIGH = 0.5, 1.5
_MOST_LEVELS = 1500
_ALL = 1 << 31
_SHOWN = 8
_VALLEY = 0.9
_DAY_NS = 86_400_000_000_000
_DAYS = (
    fact("probe/mon"),
    fact("probe/tue"),
    fact("probe/wed"),
    fact("probe/thu"),
    fact("probe/fri"),
    fact("probe/sat"),
    fact("probe/sun"),
)


@dataclass(frozen=True)
class Change:
    """When the level of an item changed. `change`: of the rate, a ratio; `kernel`: the new one."""

    item: str
    time_ns: int
    change: float
    confidence: float
    kernel: str | None


def changes(history: History) -> list[Change]:
    """Change points of all items, the oldest first; all together err by chance once in a hundred series."""
    clock = clock_of(history.times_ns)
    found = []
    p_most = 0.01 / max(len(history.items), 1)
    for item in history.items:
        places = [history.place[probe] for probe in item.probes]
        hours = type(clock)(
            *([each[at] for at in places] for each in (clock.hours, clock.week_hours, clock.days))
        )
        values, _ = without_pattern(item.values, hours)
        size = max(1, math.ceil(len(values) / _MOST_LEVELS))
        levels = [median(values[at : at + size]) for at in range(0, len(values), size)]
        for point in change_points(levels, p_most):
            place = places[min(point.at * size, len(places) - 1)]
            near = range(max(1, place - size), min(len(history.ids), place + size + 1))
            kernels = [history.kernels[at] for at in near if history.kernels[at] != history.kernels[at - 1]]
            change = Change(
                item.name,
                history.times_ns[place],
                math.expm1(point.change),
                1 - point.p,
                kernels[0] if kernels else None,
            )
            found.append(change)
    return sorted(found, key=lambda change: change.time_ns)


@dataclass(frozen=True)
class Shown:
    """A series as `probe show` has it: rows of analyses by their names, and the change points."""

    history: History
    changes: list[Change]
    summary: list[dict[str, Any]]
    singular: list[dict[str, Any]]
    daily: list[dict[str, Any]]
    weekly: list[dict[str, Any]]
    events: list[dict[str, Any]]


def shown(session: Session) -> Shown:
    """All of it."""
    history = read(session, _ALL)
    names = ("items", "singular_points", "daily", "weekly", "events")
    tables = [session.run(session.library.analysis(f"probe/{name}")).dicts() for name in names]
    return Shown(history, changes(history), *tables)


def content(found: Shown) -> dict[str, Any]:
    """The content for JSON."""
    from sysdock.screen.probe import stamp

    return {
        "items": found.summary,
        "change_points": [
            {
                "item": change.item,
                "time": stamp(change.time_ns),
                "change": round(change.change, 4),
                "confidence": round(change.confidence, 6),
                "kernel": change.kernel,
            }
            for change in found.changes
        ],
        "singular_points": found.singular,
        "daily": found.daily,
        "weekly": found.weekly,
        "events": found.events,
    }


def graph(history: History, lang: str) -> list[str]:
    """A line for each item: medians of equal stretches of probes against the median of all."""
    if not history.ids:
        return []
    first, last = (_date(history.times_ns[at]) for at in (0, -1))
    name_width = max((width(item.name) for item in history.items), default=0)
    scale = fact("probe/scale_of_blocks")
    columns = min(_COLUMNS, len(history.ids))
    shown_lines = [f"{pad('', name_width)}  {first}{pad('', max(columns - len(first) - len(last), 1))}{last}"]
    for item in history.items:
        shown_lines.append(
            f"{pad(printable(item.name), name_width)}  {_blocks(item.probes, item.values, history, columns)}"
        )
    return [*shown_lines, f"{pad('', name_width)}  {say(scale, lang)}"]


def _blocks(probes: Sequence[int], values: Sequence[float], history: History, columns: int) -> str:
    usual = median(values) if values else 0.0
    parts: list[list[float]] = [[] for _ in range(columns)]
    for probe, value in zip(probes, values, strict=True):
        parts[history.place[probe] * columns // len(history.ids)].append(value)
    return "".join(_block(math.exp(median(part) - usual)) if part else "!" for part in parts)


def _block(ratio: float) -> str:
    place = (ratio - _LOW) / (_HIGH - _LOW) * len(_BLOCKS)
    return _BLOCKS[min(max(int(place), 0), len(_BLOCKS) - 1)]


def lines(found: Shown, lang: str) -> list[str]:
    """Lines below the graph and the table: changes, their times, and patterns."""

    def part(title: str, entries: Sequence[Words], **values: object) -> list[Words]:
        return [fact(f"probe/{title}", **values), *(fact("probe/indented", line=line) for line in entries)]

    none = [fact("probe/none")]
    count = len(found.singular)
    started = found.history.times_ns[0] if found.history.ids else 0
    shown_lines: list[Words] = [
        *part("change_points", [_change(change) for change in found.changes[-_SHOWN:]] or none),
        *_more(len(found.changes), "probe show --format json"),
        "",
        *part("outliers", [_singular(point, started) for point in found.singular[-_SHOWN:]], count=count),
        *_more(count, "show SERIES probe/singular_points"),
        "",
        *part("valleys", _valleys(found) or none),
    ]
    if found.events:
        shown_lines += ["", *part("events", [_event(event, started) for event in found.events[-_SHOWN:]])]
        shown_lines += _more(len(found.events), "show SERIES probe/events")
    return [say(each, lang) for each in shown_lines]


def _more(count: int, command: str) -> list[Words]:
    return [fact("probe/earlier", count=count - _SHOWN, command=command)] if count > _SHOWN else []


def _change(change: Change) -> Words:
    return fact(
        "probe/change_of_kernel" if change.kernel else "probe/change",
        when=_date(change.time_ns),
        item=printable(change.item),
        percent=change.change * 100,
        sure=f"{min(change.confidence, 0.9999) * 100:.4g} %",
        kernel=change.kernel,
    )


def _singular(point: dict[str, Any], started: int) -> Words:
    return fact(
        "probe/singular",
        when=_date(started + round(point["time_s"] * 1e9)),
        item=printable(point["item"]),
        took=point["p50_ns"],
        times=round(point["times_as_long"]),
    )


def _event(event: dict[str, Any], started: int) -> str:
    what = f"{event['before']} -> {event['after']}" if event["before"] else ""
    by = (
        ""
        if event["by_s"] is None
        else f"{'-' if event['by_s'] < 0 else ''}{human_ns(abs(event['by_s']) * 1e9)}"
    )
    return f"{_date(started + round(event['time_s'] * 1e9))}  {event['event']} {printable(what)}{by}".rstrip()


def _valleys(found: Shown) -> list[Words]:
    """Hours and days at which an item does less than nine tenths of the usual, once that is known."""
    shown_lines: list[Words] = []
    days = (found.history.times_ns[-1] - found.history.times_ns[0]) / _DAY_NS if found.history.ids else 0
    for rows, key, needed in ((found.daily, "hour", DAYS_FOR_DAY), (found.weekly, "weekday", DAYS_FOR_WEEK)):
        if days < needed:
            continue
        by_item: dict[str, list[tuple[int, float]]] = {}
        for row in rows:
            if row["of_usual"] is not None and row["of_usual"] < _VALLEY * 100:
                by_item.setdefault(row["item"], []).append((row[key], row["of_usual"]))
        for item, places in by_item.items():
            lowest = min(each for _, each in places)
            names = listed(f"{at:02}:00" if key == "hour" else _DAYS[at - 1] for at, _ in places)
            code = "probe/valley_utc" if key == "hour" else "probe/valley"
            shown_lines.append(fact(code, item=printable(item), times=names, lowest=lowest))
    return shown_lines


def _date(time_ns: int) -> str:
    return datetime.datetime.fromtimestamp(time_ns / 1e9).strftime("%Y-%m-%d %H:%M")
