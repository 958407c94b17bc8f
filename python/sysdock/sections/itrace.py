"""Which instructions were executed, where."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sysdock.errors import NotComputed
from sysdock.sections.section import Capture, InfoLine, ScreenTable, Section, Total
from sysdock.sentences import fact
from sysdock.text import human_count

if TYPE_CHECKING:
    from sysdock.analysis import Session

_MOST_ROWS = 8
_REQUESTS = "SELECT count(*), coalesce(sum(steps), 0), sum(steps_collapsed) FROM traced_requests"
# The query for a profile, which has no segments.
_BY_IMAGE_OF_PROFILE = f"""
    SELECT i.path, sum(t.steps) AS steps, sum(t.loads) AS loads, sum(t.stores) AS stores,
        count(DISTINCT t.task_id) AS tasks
    FROM function_totals AS t
    JOIN traced_functions AS f ON f.function_id = t.function_id JOIN images AS i ON i.image_id = f.image_id
    GROUP BY i.path ORDER BY steps DESC, i.path LIMIT {_MOST_ROWS}
"""
_BY_IMAGE = f"""
    SELECT i.path, sum(s.steps) AS steps, sum(s.loads) AS loads, sum(s.stores) AS stores,
        count(DISTINCT s.task_id) AS tasks
    FROM trace_segments AS s JOIN images AS i ON i.image_id = s.image_id
    GROUP BY i.path ORDER BY steps DESC, i.path LIMIT {_MOST_ROWS}
"""
# Values by which two traces are compared: the SELECT, and the name.
_TOTALS = {
    "steps": ("SELECT sum(steps) FROM trace_segments", fact("sections/steps")),
    "kernel_steps": (
        "SELECT sum(steps) FROM trace_segments WHERE mode = 'kernel'",
        fact("sections/steps_kernel"),
    ),
    "loads": ("SELECT sum(loads) FROM trace_segments", fact("sections/loads")),
    "stores": ("SELECT sum(stores) FROM trace_segments", fact("sections/stores")),
    "calls": ("SELECT count(*) FROM function_calls", fact("sections/calls_functions")),
    "pages": ("SELECT count(DISTINCT page) FROM page_references", fact("sections/pages")),
}
_TOTALS_OF_PROFILE = {"steps": ("SELECT sum(steps) FROM function_totals", _TOTALS["steps"][1])}

_CONDITIONS = {
    "backend": fact("sections/backend"),
    "cpu model": fact("sections/processor"),
    "path of requests": fact("sections/path_requests"),
}


def _totals(session: Session) -> dict[str, Total]:
    """Totals of the tables that the recording has."""
    held = session.views.available
    totals = _TOTALS if "trace_segments" in held else _TOTALS_OF_PROFILE
    return {
        key: Total(int(session.fetch(sql)[0][0] or 0), name, None)
        for key, (sql, name) in totals.items()
        if sql.split(" FROM ")[1].split()[0] in held
    }


def _coverage(session: Session, _capture: Capture) -> Sequence[InfoLine]:
    if "traced_requests" not in session.views.available:
        return []
    [(requests, steps, collapsed)] = session.fetch(_REQUESTS)
    if collapsed is None:
        return [*_where(session), InfoLine(fact("sections/steps"), f"{steps:,}")]
    words = fact("sections/steps_collapsed", steps=steps, collapsed=collapsed, requests=requests)
    return [*_where(session), InfoLine(fact("sections/steps"), words)]


def _where(session: Session) -> Sequence[InfoLine]:
    """The executor of the instructions: without it, two numbers cannot be compared."""
    found = _conditions(session)
    return [InfoLine(words, found[key]) for key, words in _CONDITIONS.items() if key in found]


def _conditions(session: Session) -> dict[str, str]:
    """The executor of the instructions, as far as known."""
    if "environment" not in session.views.available:
        return {}
    found = dict(session.fetch("SELECT name, value FROM environment WHERE section = 'trace'"))
    return {key: found[key] for key in _CONDITIONS if found.get(key)}


def _screen(session: Session) -> Sequence[ScreenTable]:
    held = set(session.views.available)
    if {"trace_segments", "images"} <= held:
        sql = _BY_IMAGE
    elif {"function_totals", "traced_functions", "images"} <= held:
        sql = _BY_IMAGE_OF_PROFILE
    else:
        return []
    title = fact("sections/steps_file")
    columns = (
        fact("sections/steps"),
        fact("sections/loads"),
        fact("sections/stores"),
        fact("sections/tasks"),
    )
    try:
        found = session.fetch(sql)
    except NotComputed as error:
        return [ScreenTable(title, columns, [], error.words)]
    rows = [
        (str(path), (human_count(steps), human_count(loads), human_count(stores), human_count(tasks)))
        for path, steps, loads, stores, tasks in found
    ]
    return [ScreenTable(title, columns, rows)] if rows else []


SECTION = Section(
    about="itrace",
    order=96,
    question="itrace/steps",
    needs=("traced_requests",),
    title=fact("sections/instruction_trace"),
    coverage=_coverage,
    screen=_screen,
    totals=_totals,
    conditions=_conditions,
)
