"""A series of probes: how fast a file system was, again and again."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sysdock.errors import NotComputed
from sysdock.sections.section import Capture, InfoLine, ScreenTable, Section, Statement, Total
from sysdock.sentences import fact
from sysdock.text import human_bytes, human_count, human_ns

if TYPE_CHECKING:
    from sysdock.analysis import Session


def _coverage(session: Session, _capture: Capture) -> Sequence[InfoLine]:
    facts = []
    for row in session.dicts("SELECT * FROM probe_targets ORDER BY probe_id DESC, time_ns DESC LIMIT 1"):
        what = f"{row['fs_type']} on {row['source']} ({row['mount_point']}), {human_bytes(row['size_bytes'])}"
        facts.append(InfoLine(fact("sections/probed"), what))
        facts.append(InfoLine(fact("sections/options"), row["options"]))
    [(probes, failed)] = session.fetch(
        "SELECT count(DISTINCT probe_id), count(DISTINCT probe_id) FILTER (WHERE item = 'probe') "
        "FROM probe_results"
    )
    counts = fact("sections/failed", probes=probes, failed=failed)
    return [*facts, InfoLine(fact("sections/probe_count"), counts)]


def _screen(session: Session) -> Sequence[ScreenTable]:
    title = fact("sections/probes")
    columns = (
        fact("sections/rate_1_s"),
        "p50",
        "p99",
        fact("sections/over_10_times"),
    )
    try:
        rows = [_line(row) for row in session.run("probe/items").dicts()]
    except NotComputed as error:
        return [ScreenTable(title, columns, [], error.words)]
    return [ScreenTable(title, columns, rows)] if rows else []


def _line(row: dict[str, Any]) -> tuple[str, tuple[str, str, str, str]]:
    rate = "-" if row["per_s"] is None else f"{row['per_s']:,.4g}"
    times = (human_ns(row["p50_ns"]), human_ns(row["p99_ns"]))
    return row["item"], (rate, *times, human_count(row["singular"]))


def _totals(session: Session) -> dict[str, Total]:
    """Median rates, from the analysis probe/items."""
    rows = session.run("probe/items").dicts()
    found = {}
    for row in rows:
        name = (
            row["item"]
            if row["length_bytes"] is None
            else f"{row['item']}, {human_bytes(row['length_bytes'])}"
        )
        found[name] = Total(row["per_s"], name, "1/s")
    return found


def _statement(_session: Session, folder: str) -> Statement:
    """Rules judge a moment; whether a series got slower is another question, and another verb."""
    place = shlex.quote(folder)
    return Statement(
        fact("sections/series_is_not_judged"),
        [f"sysdock probe status {place}", f"sysdock probe show {place}"],
    )


SECTION = Section(
    about="probe",
    order=55,
    question="probe/items",
    needs=("probe_results",),
    title=fact("sections/series_probes"),
    coverage=_coverage,
    screen=_screen,
    totals=_totals,
    statement=_statement,
    instead="`sysdock probe status SERIES` shows whether it is slower than usual",
)
