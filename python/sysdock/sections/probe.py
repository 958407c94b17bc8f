"""A series of probes: how fast a file system was, again and again."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sysdock.errors import NotComputed
from sysdock.sections.section import Capture, Fact, ScreenTable, Section, Statement, Total
from sysdock.text import human_bytes, human_count, human_ns

if TYPE_CHECKING:
    from sysdock.analysis import Session


def _coverage(session: Session, _capture: Capture) -> Sequence[Fact]:
    facts = []
    for row in session.dicts("SELECT * FROM probe_targets ORDER BY probe_id DESC, time_ns DESC LIMIT 1"):
        what = f"{row['fs_type']} on {row['source']} ({row['mount_point']}), {human_bytes(row['size_bytes'])}"
        facts.append(Fact(("probed", "測定対象"), (what, what)))
        facts.append(Fact(("options", "オプション"), (row["options"], row["options"])))
    [(probes, failed)] = session.fetch(
        "SELECT count(DISTINCT probe_id), count(DISTINCT probe_id) FILTER (WHERE item = 'probe') "
        "FROM probe_results"
    )
    counts = f"{probes:,}, {failed:,} failed", f"{probes:,} 回、うち失敗 {failed:,} 回"
    return [*facts, Fact(("probes", "プローブ"), counts)]


def _screen(session: Session) -> Sequence[ScreenTable]:
    title = ("Probes", "プローブ")
    columns = (
        ("rate [1/s]", "毎秒"),
        ("p50", "p50"),
        ("p99", "p99"),
        ("over 10 times", "10 倍超"),
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
        found[name] = Total(row["per_s"], (name, name), "1/s")
    return found


def _statement(_session: Session, folder: str) -> Statement:
    """Rules judge a moment; whether a series got slower is another question, and another verb."""
    text = "This is a series of probes, which rules do not apply to. To see whether it is slower than usual:"
    japanese = (
        "これはプローブの系列で、ルールの対象ではありません。いつもより遅いかどうかは次のコマンドで調べます:"
    )
    place = shlex.quote(folder)
    return Statement((text, japanese), [f"sysdock probe status {place}", f"sysdock probe show {place}"])


SECTION = Section(
    about="probe",
    order=55,
    question="probe/items",
    needs=("probe_results",),
    title=("series of probes", "プローブの系列"),
    coverage=_coverage,
    screen=_screen,
    totals=_totals,
    statement=_statement,
    instead="`sysdock probe status SERIES` shows whether it is slower than usual",
)
