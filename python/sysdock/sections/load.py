"""Performance of a file system under load."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sysdock.errors import NotComputed
from sysdock.sections.section import Capture, InfoLine, ScreenTable, Section, Total
from sysdock.sentences import fact
from sysdock.text import human_bytes, human_ns

if TYPE_CHECKING:
    from sysdock.analysis import Session

# Rates of these rows are what they seem.
USABLE = "('measured', 'throttled', 'reported')"
# The highest rate of each operation with a setting, and the number of processes that reached it.
_BEST = f"""
    SELECT
        r.item, r.operation, r.direct, coalesce(r.sync, '') AS sync, r.layout,
        max(coalesce(r.bytes_per_s, 0)) AS bytes_per_s,
        arg_max(r.operations_per_s, coalesce(r.bytes_per_s, r.operations_per_s)) AS operations_per_s,
        arg_max(r.processes, coalesce(r.bytes_per_s, r.operations_per_s)) AS processes,
        arg_max(r.length_bytes, coalesce(r.bytes_per_s, r.operations_per_s)) AS length_bytes,
        arg_max(r.p50_ns, coalesce(r.bytes_per_s, r.operations_per_s)) AS p50_ns,
        min(r.result_id) AS result_id
    FROM load_results AS r
    WHERE r.status IN {USABLE} AND r.operations_per_s IS NOT NULL AND r.item <> 'control'
    GROUP BY ALL
    ORDER BY result_id
"""
# The first screen has room for these, and for findings.
_MOST_ROWS = 8
# Rows of `environment` about the file system, and their names here.
_FACTS = {
    "type": fact("sections/file_system"),
    "source": fact("sections/device"),
    "mount options": fact("sections/mounted"),
}
_FIRST = (
    ("transfer", "write"),
    ("transfer", "read"),
    ("log", "append"),
    ("random_read", "read"),
    ("metadata", "create"),
    ("metadata", "stat"),
    ("metadata", "remove"),
)


def _coverage(session: Session, _capture: Capture) -> Sequence[InfoLine]:
    if "load_results" not in session.recording.tables:
        return []
    [(all_, usable)] = session.fetch(
        f"SELECT count(*), count(*) FILTER (status IN {USABLE}) FROM load_results"
    )
    facts = [
        InfoLine(
            fact("sections/measurements"),
            fact("sections/usable_measurements", all=all_, usable=usable),
        )
    ]
    if "environment" in session.recording.tables:
        for name, words in _FACTS.items():
            facts += [InfoLine(words, value) for value in _stated(session, name)]
    return facts


def _stated(session: Session, name: str) -> list[str]:
    """A fact about the file system; with their names if several hosts state different values."""
    sql = (
        "SELECT name, value FROM environment "
        "WHERE section = 'file system' AND (name = $name OR starts_with(name, $of)) ORDER BY ALL"
    )
    found = [
        (str(whose), str(value)) for whose, value in session.fetch(sql, {"name": name, "of": f"{name} of "})
    ]
    if len({value for _, value in found}) == 1:
        return [found[0][1]]
    return [
        value if whose == name else f"{value} ({whose.removeprefix(f'{name} of ')})" for whose, value in found
    ]


def _screen(session: Session) -> Sequence[ScreenTable]:
    title = fact("sections/highest_rates")
    columns = (
        fact("sections/rate"),
        fact("sections/operations_s"),
        "p50",
        fact("sections/process_count"),
    )
    try:
        found = session.dicts(_BEST)
    except NotComputed as error:
        return [ScreenTable(title, columns, [], error.words)]
    rows = [(_name(row), _numbers(row)) for row in _chosen(found)]
    return [ScreenTable(title, columns, rows)] if rows else []


def _chosen(found: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows that say most, in the order in which they were measured."""

    def place(row: dict[str, Any]) -> tuple[bool, int, int]:
        kind = (row["item"], row["operation"])
        known = _FIRST.index(kind) if kind in _FIRST else len(_FIRST)
        usual = row["sync"] in ("", "end", "fdatasync")
        return (row["layout"] == "shared" or not usual, known, row["result_id"])

    return sorted(sorted(found, key=place)[:_MOST_ROWS], key=lambda row: row["result_id"])


def _name(row: dict[str, Any]) -> str:
    words = [row["item"], row["operation"]]
    if row["length_bytes"] is not None:
        words.append(human_bytes(row["length_bytes"]))
    words += ["direct"] if row["direct"] else []
    words += ["shared"] if row["layout"] == "shared" else []
    words += [row["sync"]] if row["sync"] not in ("", "end") else []
    return " ".join(words)


def _numbers(row: dict[str, Any]) -> tuple[str, str, str, str]:
    rate = human_bytes(row["bytes_per_s"]) + "/s" if row["bytes_per_s"] else "-"
    return rate, f"{row['operations_per_s']:,.0f}", human_ns(row["p50_ns"]), str(row["processes"])


def _totals(session: Session) -> dict[str, Total]:
    """The highest rate of each operation with a setting, by its name: of bytes or of operations."""
    # At which length it was reached may differ from check to check, and is no part of the name.
    rows = {_name({**row, "length_bytes": None}): row for row in session.dicts(_BEST)}
    return {
        name: Total(
            row["bytes_per_s"] or row["operations_per_s"], name, "B/s" if row["bytes_per_s"] else None
        )
        for name, row in rows.items()
    }


SECTION = Section(
    about="load",
    order=70,
    question="load/results",
    needs=("load_results",),
    title=fact("sections/load"),
    coverage=_coverage,
    screen=_screen,
    totals=_totals,
)
