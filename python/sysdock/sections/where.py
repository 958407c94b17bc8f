"""The distribution of the time of a command."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sysdock.errors import NotComputed
from sysdock.sections.coverage import understood
from sysdock.sections.section import ScreenTable, Section
from sysdock.sentences import Words, fact
from sysdock.text import human_ns, percent

if TYPE_CHECKING:
    from sysdock.analysis import Session

_ANALYSIS = "time/where"
# The parts with most time; smaller ones than this share are left to `sysdock show`.
_ROWS, _LEAST = 5, 0.01
_TITLE: Words = fact("sections/where_time_went")
_COLUMNS: tuple[Words, Words, Words, Words] = (
    fact("sections/time"),
    fact("sections/share"),
    fact("sections/all_threads"),
    fact("sections/share"),
)


def screen(session: Session) -> Sequence[ScreenTable]:
    """The largest parts of the time: of the command as a whole, and of all its threads."""
    if session.answering(session.library.analysis(_ANALYSIS)) is None:
        return []
    try:
        rows = session.run(_ANALYSIS).dicts()
    except NotComputed as error:
        return [ScreenTable(_TITLE, _COLUMNS, [], error.words)]
    whole = [row for row in rows if row["process"] is None]
    threads: dict[str, int] = {}
    for row in rows:
        if row["process"] is not None:
            threads[row["part"]] = threads.get(row["part"], 0) + row["time_ns"]
    all_ns, threads_ns = sum(row["time_ns"] for row in whole), sum(threads.values())
    shown = [
        (
            f"{row['part']}, {row['detail']}" if row["detail"] else row["part"],
            (
                human_ns(row["time_ns"]),
                percent(row["time_ns"], all_ns),
                human_ns(threads.get(row["part"], 0)),
                percent(threads.get(row["part"], 0), threads_ns),
            ),
        )
        for row in whole[:_ROWS]
        if row["time_ns"] >= _LEAST * all_ns
    ]
    return [ScreenTable(_TITLE, _COLUMNS, shown, of_parts=True)] if shown else []


SECTION = Section(
    about="sched",
    order=5,
    needs=("critical_path", "run_states"),
    title=fact("sections/thread_run_wait_times"),
    coverage=understood,
    screen=screen,
    of_a_command=True,
)
