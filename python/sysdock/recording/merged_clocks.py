"""One clock for recordings of several hosts: the offset of each, and its uncertainty.

Recordings of one host are on one clock. Others are compared by files that both hosts use, as the log reader
does it (`crates/strace/src/align.rs`): a file that host A creates cannot be found on host B before, and a
look on B that fails cannot be later. With `d` added to B's times: B finds the file:
`d >= created.start - found.end`; B does not find it yet: `d <= created.end - missed.start`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sysdock.errors import UserError
from sysdock.recording.merged_ranks import Member, matching

if TYPE_CHECKING:
    import duckdb

# strace takes the start of a duration only after it has printed the arguments: a call ends that much later,
# at most, than stamp and duration say.
_SLACK_NS = 1_000_000
_MOST_NS = 1 << 62


@dataclass(frozen=True)
class Offset:
    """Offset added to the times of a recording; `least_ns` and `greatest_ns`: the range that fits the
    shared files.

    None where no file limits it on that side. `source` as `ranks.offset_from` says.
    """

    offset_ns: int
    source: str
    least_ns: int | None = None
    greatest_ns: int | None = None
    files: int = 0


# A clock's number, path, and start and end of three calls: the one that created the file, the last look
# that failed before the first that did not, and that.
_SIGHTINGS = """
CREATE TEMP TABLE sightings AS
WITH looks AS ({looks}), gone AS (
    SELECT DISTINCT path FROM looks WHERE is_removal AND NOT failed
), firsts AS (
    SELECT clock, path, min(ts_ns) AS found_ns FROM looks WHERE NOT failed AND NOT is_removal GROUP BY ALL
), missed AS (
    SELECT l.clock, l.path, max(l.ts_ns) AS start_ns, max_by(l.end_ns, l.ts_ns) AS end_ns
    FROM looks AS l LEFT JOIN firsts AS f ON f.clock = l.clock AND f.path = l.path
    WHERE l.failed AND (f.found_ns IS NULL OR l.ts_ns < f.found_ns)
    GROUP BY ALL
), found AS (
    SELECT l.clock, l.path, l.ts_ns AS start_ns, min(l.end_ns) AS end_ns,
        bool_or(l.creates) AS creates, bool_or(l.is_exclusive) AS is_exclusive
    FROM looks AS l INNER JOIN firsts AS f ON f.clock = l.clock AND f.path = l.path AND f.found_ns = l.ts_ns
    WHERE NOT l.failed AND NOT l.is_removal
    GROUP BY ALL
), seen AS (
    SELECT coalesce(f.clock, m.clock) AS clock, coalesce(f.path, m.path) AS path, f.end_ns AS found_end_ns,
        m.start_ns AS missed_start_ns,
        CASE WHEN f.is_exclusive OR f.creates AND m.start_ns IS NOT NULL THEN f.start_ns END
            AS created_start_ns,
        f.end_ns AS created_end_ns
    FROM found AS f FULL JOIN missed AS m ON m.clock = f.clock AND m.path = f.path
)
SELECT * FROM seen WHERE path NOT IN (SELECT path FROM gone)
"""
_LOOKS = """
SELECT {clock} AS clock, p.path, c.ts_ns, c.ts_ns + coalesce(c.dur_ns, 0) + {slack} AS end_ns,
    c.errno IS NOT NULL AS failed,
    c.call IN ('unlink', 'unlinkat', 'rmdir', 'rename', 'renameat', 'renameat2') AS is_removal,
    coalesce(c.open_flags LIKE '%O_CREAT%', false) OR c.class = 'name' AS creates,
    coalesce(c.open_flags LIKE '%O_CREAT%' AND c.open_flags LIKE '%O_EXCL%', false) OR c.class = 'name'
        AS is_exclusive
FROM calls_{member} AS c INNER JOIN paths_{member} AS p ON p.path_id = c.path_id
WHERE p.path LIKE '/%' AND p.kind NOT IN ('virtual', 'device')
    AND (c.errno = 'ENOENT' OR c.errno IS NULL AND coalesce(c.value, c.transferred_bytes) IS NOT NULL)
    AND (c.class IN ('open', 'stat') AND c.call <> 'fstat'
        OR c.call IN ('unlink', 'unlinkat', 'rmdir', 'rename', 'renameat', 'renameat2')
        OR c.call IN ('mkdir', 'mkdirat', 'mknod', 'mknodat'))
"""
# Bounds of what must be added to clock $own, by the clocks in `known`.
_BOUNDS = """
WITH limits AS (
    SELECT o.path,
        CASE WHEN t.created_start_ns IS NOT NULL THEN t.created_start_ns + k.offset_ns - o.found_end_ns
            ELSE t.missed_start_ns + k.offset_ns - o.created_end_ns END AS least_ns,
        CASE WHEN t.created_start_ns IS NOT NULL THEN t.created_end_ns + k.offset_ns - o.missed_start_ns
            ELSE t.found_end_ns + k.offset_ns - o.created_start_ns END AS greatest_ns
    FROM sightings AS o
    INNER JOIN sightings AS t ON t.path = o.path
    INNER JOIN known AS k ON k.clock = t.clock
    WHERE o.clock = $own AND (t.created_start_ns IS NOT NULL OR o.created_start_ns IS NOT NULL)
)
SELECT max(least_ns), min(greatest_ns),
    count(DISTINCT path) FILTER (WHERE least_ns IS NOT NULL OR greatest_ns IS NOT NULL)
FROM limits
"""


def offsets_of(
    members: Sequence[Member],
    connection: duckdb.DuckDBPyConnection,
    given: Sequence[tuple[str, int]],
    *,
    align: bool,
) -> list[Offset]:
    """Offsets of the times of each member.

    connection: with the stored rows of member N as `calls_N` and `paths_N`. given: nanoseconds by name.
    UserError: a name that no member has, or a clock that says no time.
    """
    by_hand = _by_hand(members, given)
    _refuse_clocks(members, by_hand)
    clocks = _clocks(members)
    first_of = {clock: place for place, clock in reversed(list(enumerate(clocks)))}
    found: dict[int, Offset] = {}
    known: dict[int, int] = {}
    if align and len(first_of) > 1:
        _note_sightings(members, clocks, connection)
    for clock, place in sorted(first_of.items()):
        if place in by_hand:
            found[clock] = Offset(by_hand[place], "--offset")
        elif clock == 0:
            found[clock] = Offset(0, "first")
        else:
            found[clock] = _estimate(connection, clock, known) if align else Offset(0, "unknown")
        if found[clock].source != "unknown":
            known[clock] = found[clock].offset_ns
    return [_of_member(place, first_of[clock], by_hand, found[clock]) for place, clock in enumerate(clocks)]


def _of_member(place: int, first: int, by_hand: dict[int, int], offset: Offset) -> Offset:
    if place in by_hand:
        return Offset(by_hand[place], "--offset")
    if place == first:
        return offset
    return Offset(offset.offset_ns, "same host", offset.least_ns, offset.greatest_ns, offset.files)


def remarks_on(members: Sequence[Member], offsets: Sequence[Offset], *, align: bool) -> list[str]:
    """Remarks about clocks, in the words of the log reader; none if there is only one clock."""
    notes = []
    for member, offset in zip(members, offsets, strict=True):
        if offset.source == "shared files":
            least, greatest = _seconds(offset.least_ns, "-∞"), _seconds(offset.greatest_ns, "∞")
            fit = f"from {least} to {greatest} s fit {offset.files} shared files"
            notes.append(f"{member.name}: {_seconds(offset.offset_ns, '')} s are added to its times ({fit})")
        elif offset.source == "unknown" and align:
            fact = f"{member.name}: no shared file to compare clocks by"
            notes.append(f"{fact}; give --offset {member.name}=SECONDS if you know the difference")
    unknown = [
        member.name for member, offset in zip(members, offsets, strict=True) if offset.source == "unknown"
    ]
    if unknown and not align:
        more = f" and {len(unknown) - 1:,} more" if len(unknown) > 1 else ""
        fact = f"{unknown[0]}{more}: another host, and nothing shows how its clock compares"
        notes.append(f"{fact}; --align estimates it from shared files, --offset NAME=SECONDS says it")
    return notes


def _seconds(ns: int | None, otherwise: str) -> str:
    return otherwise if ns is None else f"{ns / 1e9:+.6f}"


def _by_hand(members: Sequence[Member], given: Sequence[tuple[str, int]]) -> dict[int, int]:
    names = [member.name for member in members]
    found: dict[int, int] = {}
    for name, offset_ns in given:
        places = matching(name, [member.recording for member in members], names)
        if not places:
            fact = f"--offset {name}: no recording of that name"
            raise UserError(fact, f"the recordings are: {', '.join(names)}")
        if abs(offset_ns) >= _MOST_NS:
            raise UserError(f"--offset {name}: too much", "give seconds to add, such as -0.25")
        found |= {place: found.get(place, 0) + offset_ns for place in places}
    return found


def _refuse_clocks(members: Sequence[Member], by_hand: dict[int, int]) -> None:
    for place, member in enumerate(members):
        kind = member.recording.clock.get("kind")
        if kind == "order":
            hint = "record it with time stamps (strace -ttt), or diagnose it by itself"
            raise UserError("its log has no clock, so it fits no other", hint, member.name)
        if kind == "relative" and place not in by_hand:
            hint = f"say when that was: --offset {member.name}=SECONDS, since the Unix epoch"
            raise UserError("its times count from its first line", hint, member.name)


def _clocks(members: Sequence[Member]) -> list[int]:
    """The clock that each member is on, from 0: that of its host, or its own where that is not known."""
    numbers: dict[object, int] = {}
    return [
        numbers.setdefault(member.host or ("unknown", place), len(numbers))
        for place, member in enumerate(members)
    ]


def _note_sightings(
    members: Sequence[Member], clocks: Sequence[int], connection: duckdb.DuckDBPyConnection
) -> None:
    looks = [
        _LOOKS.format(clock=clock, member=place, slack=_SLACK_NS)
        for place, (member, clock) in enumerate(zip(members, clocks, strict=True))
        if {"calls", "paths"} <= set(member.recording.tables)
    ]
    looks = looks or ["SELECT 0 AS clock, '' AS path WHERE false"]
    connection.execute(_SIGHTINGS.format(looks=" UNION ALL ".join(looks)))


def _estimate(connection: duckdb.DuckDBPyConnection, clock: int, known: dict[int, int]) -> Offset:
    """The middle of what fits, or 0 where that is in it, or its only end."""
    values = ", ".join(f"({number}, {offset_ns})" for number, offset_ns in known.items())
    connection.execute(
        f"CREATE OR REPLACE TEMP TABLE known AS SELECT * FROM (VALUES {values}) AS v (clock, offset_ns)"
    )
    [(least, greatest, files)] = connection.execute(_BOUNDS, {"own": clock}).fetchall()
    if not files or (least is not None and greatest is not None and least > greatest):
        return Offset(0, "unknown")
    if (least is None or least <= 0) and (greatest is None or greatest >= 0):
        offset_ns = 0
    elif least is None or greatest is None:
        offset_ns = greatest if least is None else least
    else:
        offset_ns = (least + greatest) // 2
    return Offset(offset_ns, "shared files", least, greatest, files)
