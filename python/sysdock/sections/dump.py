"""The state of a kernel when it died."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sysdock.errors import NotComputed
from sysdock.sections.section import Capture, InfoLine, ScreenTable, Section, Total
from sysdock.sentences import fact
from sysdock.text import human_bytes, human_count, human_ns

if TYPE_CHECKING:
    from sysdock.analysis import Session

_MOST_ROWS = 8
_BY_NAME = f"""
    SELECT comm, count(*) AS tasks, sum(CASE WHEN state = 'D' THEN 1 ELSE 0 END) AS waiting,
        coalesce(sum(run_ns), 0) AS run_ns, coalesce(max(rss_bytes), 0) AS rss_bytes
    FROM dump_tasks GROUP BY comm ORDER BY waiting DESC, run_ns DESC, comm LIMIT {_MOST_ROWS}
"""

# Values by which two dumps are compared: the table, the sum, its name, and the unit.
_TOTALS = {
    "tasks": ("dump_tasks", "count(*)", fact("sections/tasks"), None),
    "waiting_tasks": (
        "dump_tasks",
        "sum(CASE WHEN state = 'D' THEN 1 ELSE 0 END)",
        fact("sections/tasks_state_d"),
        None,
    ),
    "run_ns": ("dump_tasks", "sum(run_ns)", fact("sections/cpu_time_tasks"), "ns"),
    "lock_waits": ("dump_locks", "count(*)", fact("sections/lock_waits"), None),
    "free_bytes": (
        "dump_memory",
        "sum(CASE WHEN name = 'free' THEN bytes ELSE 0 END)",
        fact("sections/free_memory"),
        "B",
    ),
    "slab_bytes": (
        "dump_slabs",
        "sum(bytes)",
        fact("sections/memory_kernel_objects"),
        "B",
    ),
    "open_files": ("dump_files", "count(*)", fact("sections/open_files"), None),
    "requests": ("dump_requests", "count(*)", fact("sections/disk_requests"), None),
}


def _totals(session: Session) -> dict[str, Total]:
    """Totals of the tables that the recording has."""
    found = {}
    for key, (table, counted, name, unit) in _TOTALS.items():
        if table in session.views.available:
            [(value,)] = session.fetch(f"SELECT coalesce({counted}, 0) FROM {table}")
            found[key] = Total(int(value), name, unit)
    return found


def _coverage(session: Session, _capture: Capture) -> Sequence[InfoLine]:
    held = set(session.views.available)
    facts = []
    if "crash_dumps" in held:
        sql = "SELECT release, panic, pages_bytes, format FROM crash_dumps"
        for release, panic, size, form in session.fetch(sql):
            kernel = f"Linux {release or '?'}"
            facts.append(InfoLine(fact("sections/kernel"), kernel))
            facts.append(InfoLine(fact("sections/panic"), panic or fact("sections/panic_not_in_log")))
            memory = f"{human_bytes(size)}, {form}"
            facts.append(InfoLine(fact("sections/memory_dump"), memory))
    if "dump_tasks" in held:
        sql = "SELECT count(*), sum(CASE WHEN status = 'ok' THEN 1 ELSE 0 END) FROM dump_tasks"
        [(tasks, whole)] = session.fetch(sql)
        words = fact("sections/read_completely", whole=whole or 0, tasks=tasks)
        facts.append(InfoLine(fact("sections/tasks"), words))
    return facts


def _screen(session: Session) -> Sequence[ScreenTable]:
    if "dump_tasks" not in session.views.available:
        # Something else was requested.
        return []
    title = fact("sections/tasks_name")
    columns = (
        fact("sections/tasks"),
        fact("sections/state_d"),
        fact("sections/cpu_time"),
        fact("sections/largest"),
    )
    try:
        found = session.fetch(_BY_NAME)
    except NotComputed as error:
        return [ScreenTable(title, columns, [], error.words)]
    rows = [
        (str(comm), (human_count(tasks), human_count(waiting), human_ns(run_ns), human_bytes(rss)))
        for comm, tasks, waiting, run_ns, rss in found
    ]
    return [ScreenTable(title, columns, rows)] if rows else []


SECTION = Section(
    about="dump",
    order=95,
    question="dump/tasks",
    needs=("crash_dumps",),
    title=fact("sections/crash_dump"),
    coverage=_coverage,
    screen=_screen,
    totals=_totals,
)
