"""Numbers that name things within one recording, in a merge of several: each thing keeps a number of its own.

Which columns hold such numbers, and of what, the definitions of tables say (`id_of`). Numbers are shifted:
those of a recording begin where those before it end. Two kinds of ids are assigned again, because several
recordings name the same thing: program names, and paths that all hosts share. What several hosts have by the
same path on file systems of their own (`/tmp`) stays apart, as do objects without a path.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sysdock.errors import UserError
from sysdock.library import Table
from sysdock.library.tables import TableColumn
from sysdock.recording.manifest import DAMAGE_HINT
from sysdock.recording.merged_ranks import Member

if TYPE_CHECKING:
    import duckdb

# Their rows are merged by content; the column is their key.
NAMED = {"paths": "path_id", "commands": "comm_id"}
# File systems that no other host sees. A path on any other counts as shared, as in logs of several hosts.
_LOCAL = """
    ext2 ext3 ext4 xfs btrfs zfs f2fs jfs reiserfs vfat squashfs erofs overlay tmpfs ramfs devtmpfs devpts
    proc sysfs securityfs debugfs tracefs cgroup cgroup2 mqueue hugetlbfs bpf configfs pstore rootfs
"""
_BITS = {"int32": 31, "int64": 63}

_RENUMBERED = """
CREATE TEMP TABLE new_{table} AS
WITH counted AS (
    SELECT member, id, owner, texts, row_number() OVER (PARTITION BY member, texts ORDER BY id) AS nth
    FROM ({rows})
), met AS (
    SELECT member, id, first_value(member) OVER first AS first_member, first_value(id) OVER first AS first_id
    FROM counted
    WINDOW first AS (PARTITION BY owner, texts, nth ORDER BY member, id)
)
SELECT member, id AS old, dense_rank() OVER (ORDER BY first_member, first_id) - 1 AS new,
    member = first_member AND id = first_id AS is_first
FROM met
"""
_MOUNTED = """
CREATE TEMP TABLE local_paths AS
SELECT p.member, p.path_id
FROM ({paths}) AS p
INNER JOIN mounts AS m ON m.member = p.member AND (p.path = m.point OR starts_with(p.path, m.below))
GROUP BY ALL
HAVING max_by(m.is_local, length(m.point))
"""


class Ids:
    """The numbers of all members in the merge. Rows of member N are the views `TABLE_N` of `connection`."""

    def __init__(
        self, members: Sequence[Member], tables: Sequence[Table], connection: duckdb.DuckDBPyConnection
    ) -> None:
        self._members = members
        self._connection = connection
        self._hosts = [member.host or f"member {place}" for place, member in enumerate(members)]
        widths = [self._widths(place, tables) for place in range(len(members))]
        self.shifts = self._shifts(widths)
        for table in tables:
            if table.name in NAMED:
                self._renumber(table)
        self._refuse_too_many(tables, widths)

    @property
    def several_hosts(self) -> bool:
        """Whether they ran on more than one, as far as known."""
        return len({member.host for member in self._members if member.host}) > 1

    def shift(self, place: int, space: str) -> int:
        """Offset added to the numbers `space` of a member."""
        return self.shifts[place].get(space, 0)

    def expression(self, column: TableColumn, place: int) -> tuple[str, str]:
        """SQL for a column of row `t` of a member, and the join that it needs (empty: none)."""
        space, value = column.id_of, f't."{column.name}"'
        if space == "host":
            host = f"getvariable('merge_host_{place}')"
            prefixed = self.several_hosts and self._members[place].host
            return (f"concat({host}, ':', {value})" if prefixed else value), ""
        if space not in NAMED:
            added = self.shift(place, space) if space else 0
            return (f"{value} + {added}" if added else value), ""
        name = f"new_{column.name}"
        join = f"LEFT JOIN new_{space} AS {name} ON {name}.member = {place} AND {name}.old = {value}"
        # A recording that was broken off may name paths that it lacks: they stay unknown, each by itself.
        return f"coalesce({name}.new, {value} + {self.shift(place, space)})", join

    def named_rows(self, table: Table, place: int) -> str:
        """A SELECT of those rows of a named table that this member is the first to have."""
        key = NAMED[table.name]
        columns = ", ".join("n.new" if c.name == key else f't."{c.name}"' for c in table.columns)
        on = f"n.member = {place} AND n.is_first AND n.old = t.{key}"
        return f"SELECT {columns} FROM {table.name}_{place} AS t INNER JOIN new_{table.name} AS n ON {on}"

    def _has(self, place: int, table: str) -> bool:
        return table in self._members[place].recording.tables

    def _widths(self, place: int, tables: Sequence[Table]) -> dict[str, int]:
        """By space: one more than the largest number of it that any table of a member holds."""
        widths: dict[str, int] = {}
        for table in tables:
            columns = [c for c in table.columns if c.id_of not in (None, "host")]
            if not columns or not self._has(place, table.name):
                continue
            ends = ", ".join(f'min("{c.name}"), max("{c.name}")' for c in columns)
            [row] = self._connection.execute(f"SELECT {ends} FROM {table.name}_{place}").fetchall()
            for column, least, most in zip(columns, row[::2], row[1::2], strict=True):
                space = str(column.id_of)
                if least is not None and least < 0:
                    fact = f"table `{table.name}`: {least} in `{column.name}` is not a row number"
                    raise UserError(fact, DAMAGE_HINT, str(self._members[place].recording.folder))
                widths[space] = max(widths.get(space, 0), 0 if most is None else most + 1)
        return widths

    def _shifts(self, widths: Sequence[dict[str, int]]) -> list[dict[str, int]]:
        """First number of each member; CPUs are those of its host."""
        shifts: list[dict[str, int]] = [{} for _ in widths]
        for space in {space for own in widths for space in own}:
            owners = self._hosts if space == "cpus" else [str(place) for place in range(len(widths))]
            begins: dict[str, int] = {}
            end = 0
            for owner in dict.fromkeys(owners):
                begins[owner] = end
                end += max(own.get(space, 0) for own, of in zip(widths, owners, strict=True) if of == owner)
            for place, owner in enumerate(owners):
                shifts[place][space] = begins[owner]
        return shifts

    def _renumber(self, table: Table) -> None:
        key = NAMED[table.name]
        texts = ", ".join(f't."{column.name}"' for column in table.columns if column.name != key)
        places = [place for place in range(len(self._members)) if self._has(place, table.name)]
        if table.name == "paths":
            self._note_local_paths(places)
        rows = " UNION ALL ".join(
            f"SELECT {place} AS member, t.{key} AS id, {self._owner(table.name, place)} AS owner, "
            f"row({texts}) AS texts FROM {table.name}_{place} AS t"
            for place in places
        )
        self._refuse_repeated(table, places)
        self._connection.execute(_RENUMBERED.format(table=table.name, rows=rows))
        # Numbers that no row has begin after all that have one.
        [(rows_in_all,)] = self._connection.execute(f"SELECT count(*) FROM new_{table.name}").fetchall()
        for own in self.shifts:
            own[table.name] = own.get(table.name, 0) + rows_in_all

    def _owner(self, table: str, place: int) -> str:
        """SQL for whose a name is: everybody's (empty), of a host, or of the member alone."""
        if table != "paths":
            return "''"
        host = f"'host {self._hosts.index(self._hosts[place])}'"
        local = f"EXISTS (SELECT 1 FROM local_paths AS l WHERE l.member = {place} AND l.path_id = t.path_id)"
        return f"CASE WHEN t.path NOT LIKE '/%' THEN 'member {place}' WHEN {local} THEN {host} ELSE '' END"

    def _note_local_paths(self, places: Sequence[int]) -> None:
        """Notes, if several hosts are merged, which paths are on file systems of one host."""
        known = [place for place in places if self._has(place, "environment") and self._members[place].host]
        if not self.several_hosts or not known:
            self._connection.execute("CREATE TEMP TABLE local_paths (member INTEGER, path_id INTEGER)")
            return
        types = ", ".join(f"'{type_}'" for type_ in _LOCAL.split())
        mounts = " UNION ALL ".join(
            f"SELECT {place} AS member, name AS point, CASE WHEN name = '/' THEN '/' ELSE concat(name, '/') "
            f"END AS below, bool_and(split_part(value, ' ', 1) IN ({types})) AS is_local "
            f"FROM environment_{place} WHERE section = 'mount' AND name LIKE '/%' GROUP BY ALL"
            for place in known
        )
        self._connection.execute(f"CREATE TEMP TABLE mounts AS {mounts}")
        paths = " UNION ALL ".join(
            f"SELECT {place} AS member, path_id, path FROM paths_{place} WHERE path LIKE '/%'"
            for place in known
        )
        self._connection.execute(_MOUNTED.format(paths=paths))

    def _refuse_repeated(self, table: Table, places: Sequence[int]) -> None:
        """A key that two rows have would double the rows that name it."""
        key = NAMED[table.name]
        for place in places:
            sql = f"SELECT count(*) - count(DISTINCT {key}) FROM {table.name}_{place}"
            [(repeated,)] = self._connection.execute(sql).fetchall()
            if repeated:
                fact = f"table `{table.name}`: {repeated:,} rows have the `{key}` of another row, or none"
                raise UserError(fact, DAMAGE_HINT, str(self._members[place].recording.folder))

    def _refuse_too_many(self, tables: Sequence[Table], widths: Sequence[dict[str, int]]) -> None:
        for table in tables:
            for column in table.columns:
                space = column.id_of
                if space in (None, "host"):
                    continue
                last = max(
                    self.shift(place, str(space)) + own.get(str(space), 0) for place, own in enumerate(widths)
                )
                if last >> _BITS[column.type]:
                    fact = f"{last:,} numbers of {space} are more than `{table.name}.{column.name}` can hold"
                    raise UserError(fact, "merge fewer recordings at once")
