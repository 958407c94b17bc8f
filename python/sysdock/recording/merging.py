"""Merges the recordings of the ranks of a parallel job into one, on one clock (`sysdock merge`).

The merge is a recording like any other. Rows keep their order within a rank, ranks follow each other, and
one Parquet part holds the rows of as many ranks as fit. The engine reads and writes row group by row group,
so memory does not grow with the calls, only with what is distinct: paths and program names.

recording.json is written last: a merge that was broken off is no recording, and what it wrote is removed.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sysdock import __version__, to_disk
from sysdock.errors import UserError
from sysdock.library import Library, Table
from sysdock.own_folder import created, refuse_existing
from sysdock.recording.limits import limits_of, made_here, this_host
from sysdock.recording.manifest import Recording
from sysdock.recording.merged_clocks import Offset, offsets_of, remarks_on
from sysdock.recording.merged_ids import NAMED, Ids
from sysdock.recording.merged_ranks import Member, members_of
from sysdock.recording.views import Views
from sysdock.recording.writing import (
    as_os_error,
    empty_capture,
    quoted_path,
    stated_part,
    write_manifest,
    write_part,
)
from sysdock.version import FORMAT_VERSION

# Parts of recorders hold about as many.
_ROWS_IN_PART = 2 << 20
_ROWS_IN_GROUP = 122_880
_MEMORY = "1GB"
# A time of the scanned file system, whichever clock that has.
_NOT_OUR_CLOCK = "modified_ts_ns"
_SPILL = ".spill"


@dataclass(frozen=True)
class Wishes:
    """Input of the user: ranks and offsets (ns) by name, and whether to estimate the others."""

    ranks: tuple[tuple[str, int], ...] = ()
    offsets: tuple[tuple[str, int], ...] = ()
    align: bool = False
    in_order: bool = False


@dataclass(frozen=True)
class Merged:
    """The merged recording, and what the user should know of it."""

    recording: Recording
    remarks: list[str]


def merge(
    recordings: Sequence[Recording],
    library: Library,
    folder: Path,
    wishes: Wishes,
    progress: Callable[[str], None] = lambda text: None,
) -> Merged:
    """Writes the merge of `recordings` into `folder`, new or empty, and opens it.

    UserError: they cannot be merged (see `members_of`, `offsets_of`), one is damaged, or the folder exists.
    OSError: it cannot be written. Then, and when it is interrupted, nothing is left.
    """
    refuse_existing(folder)
    with _engine_errors(folder):
        return _merged(recordings, library, folder, wishes, progress)


def _merged(
    recordings: Sequence[Recording],
    library: Library,
    folder: Path,
    wishes: Wishes,
    progress: Callable[[str], None],
) -> Merged:
    members, remarks = members_of(recordings, library, wishes.ranks, in_order=wishes.in_order)
    with created(folder) as place:
        with _opened(members, library, place) as views:
            writer = _Writer(members, library, place, views, wishes)
            entries = writer.tables(progress)
        left_out = _left_out(members, library)
        manifest = _manifest(members, writer.offsets, entries, wishes, left_out)
        for within in sorted({file.parent for file in place.rglob("*.parquet")}):
            to_disk.sync(within)
        # The merge of a stranger's recording is no more ours than that.
        is_own = all(made_here(member.recording) for member in members)
        write_manifest(place, manifest, is_own=is_own)
    remarks += remarks_on(members, writer.offsets, align=wishes.align)
    return Merged(Recording.open(folder), [*remarks, *_remarks(members, library, left_out)])


@contextmanager
def _opened(members: Sequence[Member], library: Library, folder: Path) -> Iterator[Views]:
    """The stored rows of all members on one connection: those of member N as the views `TABLE_N`."""
    limits = next((found for each in members if (found := limits_of(each.recording))), None)
    settings = limits.engine_settings() if limits else {"memory_limit": _MEMORY}
    # A smaller table would be probed by a larger one, and its rows lose their order.
    settings |= {"temp_directory": str(folder / _SPILL), "disabled_optimizers": "build_side_probe_side"}
    views = Views(members[0].recording, library, settings=settings)
    try:
        for place, member in enumerate(members):
            names = [table.name for table in _taken(library, [member])]
            views.add_stored(member.recording, f"_{place}", names)
            views.set_variable(f"merge_name_{place}", member.name)
            views.set_variable(f"merge_host_{place}", member.host)
        yield views
    finally:
        views.close()
        shutil.rmtree(folder / _SPILL, ignore_errors=True)


def _taken(library: Library, members: Sequence[Member]) -> list[Table]:
    """Tables whose rows are taken over. Summaries are counted again from the merged rows."""
    held = {name for member in members for name in member.recording.tables}
    tables = (table for table in library.tables() if table.stored and table.merged and not table.sql)
    return [table for table in tables if table.name in held]


class _Writer:
    """Writes the tables of a merge."""

    def __init__(
        self, members: Sequence[Member], library: Library, folder: Path, views: Views, wishes: Wishes
    ) -> None:
        self._members, self._library, self._folder = members, library, folder
        self._connection = views.connection
        self._tables = _taken(library, members)
        with _engine_errors(folder):
            self.offsets = offsets_of(members, views.connection, wishes.offsets, align=wishes.align)
            self.ids = Ids(members, self._tables, views.connection)

    def tables(self, progress: Callable[[str], None]) -> dict[str, Any]:
        """Writes all of them; returns what recording.json says of each."""
        entries = {}
        for table in self._tables:
            progress(table.name)
            with _engine_errors(self._folder):
                entries[table.name] = self._table(table)
        entries["ranks"] = self._ranks()
        return dict(sorted(entries.items()))

    def _table(self, table: Table) -> dict[str, Any]:
        places = [n for n, each in enumerate(self._members) if table.name in each.recording.tables]
        rows = {place: self._members[place].recording.rows(table.name) for place in places}
        groups = [places] if table.name == "environment" else _groups(rows)
        parts: list[dict[str, Any]] = []
        for group in groups:
            select = (
                self._environment(group)
                if table.name == "environment"
                else " UNION ALL ".join(self._select(table, place) for place in group)
            )
            if part := self._part(table, len(parts), select):
                parts.append(part)
        written = sum(part["rows"] for part in parts)
        if table.name not in ("environment", *NAMED) and written != sum(rows.values()):
            fact = f"{written:,} of {sum(rows.values()):,} rows of table `{table.name}` were merged"
            raise UserError(fact, "please report this", str(self._folder))
        lost = sum(self._members[place].recording.lost(table.name) for place in places)
        return {"rows": written, "lost": lost, "parts": parts}

    def _part(self, table: Table, number: int, select: str) -> dict[str, Any] | None:
        """Writes a part; None where it would have no rows."""
        part = self._folder / table.name / f"part-{number:04}.parquet"
        part.parent.mkdir(exist_ok=True, mode=0o700)
        names = ", ".join(f'"{column.name}"' for column in table.columns)
        options = f"FORMAT parquet, COMPRESSION zstd, PARQUET_VERSION v2, ROW_GROUP_SIZE {_ROWS_IN_GROUP}"
        sql = f"COPY (SELECT * FROM ({select}) AS merged ({names})) TO {quoted_path(part)} ({options})"
        [(rows,)] = self._connection.execute(sql).fetchall()
        if not rows:
            part.unlink()
            with suppress(OSError):
                part.parent.rmdir()
            return None
        entry = stated_part(self._folder, part, rows)
        to_disk.sync(part)
        return entry

    def _select(self, table: Table, place: int) -> str:
        """The rows of a member, with its numbers and times as the merge has them."""
        if table.name in NAMED:
            return self.ids.named_rows(table, place)
        joins, columns = [], []
        for column in table.columns:
            value, join = self.ids.expression(column, place)
            joins.append(join)
            columns.append(
                f"CAST({self._stated(table.name, column.name, place) or value} AS {column.sql_type})"
            )
        return f"SELECT {', '.join(columns)} FROM {table.name}_{place} AS t {' '.join(joins)}"

    def _stated(self, table: str, column: str, place: int) -> str | None:
        """SQL for a column that says which member a row is of, or when; None for any other."""
        offset_ns, name = self.offsets[place].offset_ns, f"getvariable('merge_name_{place}')"
        if (column == "ts_ns" or column.endswith("_ts_ns")) and column != _NOT_OUR_CLOCK:
            return f't."{column}" + {offset_ns}'
        match table, column:
            case "processes", "rank":
                rank = self._members[place].rank
                return "NULL" if rank is None else str(rank)
            case "processes", "log":
                return f"CASE WHEN t.log = '' THEN {name} ELSE concat({name}, ': ', t.log) END"
            case "import_issues", "source":
                return f"concat({name}, ': ', t.source)"
        return None

    def _environment(self, places: Sequence[int]) -> str:
        """Values that all members share once, and differing values with their members."""
        rows = " UNION ALL ".join(
            f"SELECT {place} AS member, getvariable('merge_name_{place}') AS of_member, "
            f"row_number() OVER () AS place, * FROM environment_{place}"
            for place in places
        )
        return f"""
        WITH stated AS ({rows}), counted AS (
            SELECT *, count(DISTINCT member) OVER (PARTITION BY section, name, value, source) AS members
            FROM stated
        )
        SELECT section, name, value,
            CASE WHEN members = {len(places)} THEN source ELSE concat(source, ' of ', of_member) END AS stated
        FROM counted
        GROUP BY ALL
        ORDER BY section, min(member), min(place)"""

    def _ranks(self) -> dict[str, Any]:
        rows = [self._rank(place) for place in range(len(self._members))]
        part = self._folder / "ranks" / "part-0000.parquet"
        part.parent.mkdir(mode=0o700)
        table = self._library.table("ranks")
        write_part(part, table, [[row[column.name] for column in table.columns] for row in rows])
        to_disk.sync(part)
        return {"rows": len(rows), "lost": 0, "parts": [stated_part(self._folder, part, len(rows))]}

    def _rank(self, place: int) -> dict[str, Any]:
        member, offset = self._members[place], self.offsets[place]
        recording, manifest = member.recording, member.recording.manifest
        ended = {key: manifest.get(key) for key in ("command", "exit_code", "exit_signal", "complete")}
        return ended | {
            "rank": member.rank,
            "name": member.name,
            "rank_from": member.rank_from,
            "host": member.host,
            "recorder": ", ".join(dict.fromkeys(each["recorder"] for each in recording.captures)),
            "identity": member.identity,
            "start_ts_ns": recording.started_ns + offset.offset_ns,
            "elapsed_ns": manifest["duration_ns"],
            "offset_ns": offset.offset_ns,
            "offset_from": offset.source,
            "least_offset_ns": offset.least_ns,
            "greatest_offset_ns": offset.greatest_ns,
            "lost": recording.lost_events,
            "first_cpu": self.ids.shift(place, "cpus"),
            "inode_offset": self.ids.shift(place, "inodes"),
            "device_offset": self.ids.shift(place, "devices"),
        }


def _groups(rows: dict[int, int]) -> list[list[int]]:
    """Groups of consecutive members, whose rows fit in a part."""
    groups: list[list[int]] = []
    held = 0
    for place, count in rows.items():
        if not groups or held + count > _ROWS_IN_PART:
            groups.append([])
            held = 0
        groups[-1].append(place)
        held += count
    return groups


@contextmanager
def _engine_errors(folder: Path) -> Iterator[None]:
    """Converts errors of the engine to errors of ours: a full disk, an overflow, columns of other types."""
    from sysdock.engine import duckdb

    try:
        yield
    except duckdb.IOException as error:
        raise as_os_error(error, folder) from None
    except duckdb.OutOfMemoryException as error:
        raise UserError(f"not enough memory: {str(error).splitlines()[0]}", "merge fewer at once") from None
    except duckdb.Error as error:
        # A stranger's recording may be anything that Parquet can hold.
        fact = f"cannot be merged: {str(error).splitlines()[0]}"
        raise UserError(fact, "one of the recordings holds values that no recorder writes") from None


def _manifest(
    members: Sequence[Member],
    offsets: Sequence[Offset],
    entries: dict[str, Any],
    wishes: Wishes,
    left_out: dict[str, int],
) -> dict[str, Any]:
    """The contents of recording.json of the merge."""
    manifests = [member.recording.manifest for member in members]
    starts = [each["started_ns"] + o.offset_ns for each, o in zip(manifests, offsets, strict=True)]
    ends = [start + each["duration_ns"] for start, each in zip(starts, manifests, strict=True)]
    # A merge of recordings from elsewhere keeps the limits of its members.
    trusted = all(made_here(member.recording) for member in members)
    failed = next(
        (each for each in manifests if each.get("exit_code") or each.get("exit_signal")), manifests[0]
    )
    watched = _same(manifests, "watched")
    return {
        "format_version": FORMAT_VERSION,
        "tool": {"name": "sysdock", "version": __version__} | ({"host": this_host()} if trusted else {}),
        "command": _same(manifests, "command"),
        "directory": _same(manifests, "directory"),
        "host": _same(manifests, "host"),
        **({"watched": watched} if watched else {}),
        "started_ns": min(starts),
        "duration_ns": max(ends) - min(starts),
        "exit_code": failed.get("exit_code"),
        "exit_signal": failed.get("exit_signal"),
        "complete": all(each["complete"] for each in manifests),
        "captures": [_own_capture(members, offsets, wishes, left_out), *_captures(members)],
        "tables": entries,
    }


def _same(manifests: Sequence[dict[str, Any]], key: str) -> Any:
    """The common value; None if they differ."""
    first = manifests[0].get(key)
    return first if all(each.get(key) == first for each in manifests) else None


def _own_capture(
    members: Sequence[Member], offsets: Sequence[Offset], wishes: Wishes, left_out: dict[str, int]
) -> dict[str, Any]:
    """The capture of the merge itself: its clock is that of all, and `counts` lists what was left out."""
    clocks = [member.recording.clock for member in members]
    kinds = {str(clock.get("kind")) for clock in clocks}
    ways = sorted({offset.source for offset in offsets} - {"first"})
    clock = {
        "kind": kinds.pop() if len(kinds) == 1 else "epoch",
        "has_durations": all(member.recording.has_durations for member in members),
        "includes_tracer": any(bool(clock.get("includes_tracer")) for clock in clocks),
        "note": [
            {"code": "clock/merged", "recordings": len(members), "methods": ", ".join(ways) or "nothing"},
            {"code": "clock/see_ranks"},
        ],
    }
    words = ["--align"] * wishes.align + ["--in-order"] * wishes.in_order
    words += [f"--offset {name}={ns / 1e9:.9f}" for name, ns in wishes.offsets]
    words += [f"--rank {name}={number}" for name, number in wishes.ranks]
    capture = empty_capture("merge", "recordings", "ranks")
    counts = {f"left_out_{name}": rows for name, rows in left_out.items()}
    total = {"total": len(members), "understood": len(members)}
    return capture | total | {"clock": clock, "options": words, "counts": counts}


def _captures(members: Sequence[Member]) -> list[dict[str, Any]]:
    """The captures of all members; those of one sort become one, with their sums."""
    sorts: dict[str, dict[str, Any]] = {}
    for member in members:
        for capture in member.recording.captures:
            sort = repr([capture.get(key) for key in ("recorder", "unit", "options", "families")])
            sorts[sort] = _added(sorts[sort], capture) if sort in sorts else dict(capture)
    return list(sorts.values())


def _added(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """Two captures of one sort as one. What their clocks cannot tell is stated for both."""
    added = dict(one)
    for key in ("total", "understood", "lost"):
        added[key] = one[key] + other[key]
    for key in ("counts", "issues"):
        first, second = one.get(key) or {}, other.get(key) or {}
        added[key] = {name: first.get(name, 0) + second.get(name, 0) for name in {**first, **second}}
    added["sources"] = [*(one.get("sources") or []), *(other.get("sources") or [])]
    if one["complete"] and not other["complete"]:
        added |= {"complete": False, "ended_by": other["ended_by"]}
    notes = [note for clock in (one["clock"], other["clock"]) for note in clock.get("note") or []]
    added["clock"] = one["clock"] | {"note": [each for n, each in enumerate(notes) if each not in notes[:n]]}
    return added


def _left_out(members: Sequence[Member], library: Library) -> dict[str, int]:
    """Rows of tables that are not taken over, by table, without summaries, which are counted again."""
    taken = {table.name for table in _taken(library, members)}
    rows: dict[str, int] = {}
    for member in members:
        for name in member.recording.tables:
            if name not in taken and not (library.has_table(name) and library.table(name).sql):
                rows[name] = rows.get(name, 0) + member.recording.rows(name)
    return {name: count for name, count in sorted(rows.items()) if count}


def _remarks(members: Sequence[Member], library: Library, left_out: dict[str, int]) -> list[str]:
    """Differences from a recording of one rank: tables that are left out, or that only some have."""
    lines = [
        f"table `{name}` is left out ({count:,} rows): see the recordings of the ranks"
        for name, count in left_out.items()
    ]
    for table in _taken(library, members):
        having = sum(table.name in member.recording.tables for member in members)
        if having < len(members):
            lines.append(f"table `{table.name}`: only {having:,} of {len(members):,} recordings have it")
    if len({bool(member.recording.clock.get("includes_tracer")) for member in members}) > 1:
        lines.append("durations of some ranks include the time of a tracer: compare times of ranks with care")
    return lines
