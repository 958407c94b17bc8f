"""Makes the tables of a recording into views: derived columns, side tables joined back, filters applied.

Summaries (`sql` in their definition) are counted once, over the filtered views, when they are first
mentioned, unless the recorder has added them up.
"""

from __future__ import annotations

import copy
import re
import threading
import weakref
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from sysdock.errors import NotComputed, UserError
from sysdock.library import DerivedColumn, Library, Table, undefined_table
from sysdock.recording import engine_instances
from sysdock.recording.applied import AppliedFilters
from sysdock.recording.filters import Filters
from sysdock.recording.limits import is_trusted, limits_of
from sysdock.recording.manifest import DAMAGE_HINT, Recording
from sysdock.recording.mentions import Mentions, known_mentions, mentions
from sysdock.sentences import Words, fact

if TYPE_CHECKING:
    import duckdb

# Joins of a view with side tables: table, its key, and the column that has it.
Joins = frozenset[tuple[str, str, str]]
# A summary may read a summary.
_SUMMARIES_DEEP = 3
# The configuration of the engine.
Settings = dict[str, str | bool | int | float | list[str]]
# Nothing is fetched or loaded automatically, and no Python variable is taken for a table.
SETTINGS: Settings = {
    "autoload_known_extensions": "false",
    "autoinstall_known_extensions": "false",
    "python_enable_replacements": "false",
}


def engine_settings(recording: Recording) -> Settings:
    """The configuration of an engine that reads `recording`: with limits unless it was made here."""
    limits = limits_of(recording)
    return {**SETTINGS, **(limits.engine_settings() if limits else {})}


def connect(
    recording: Recording,
    library: Library,
    tables: list[str] | None = None,
    filters: Filters | None = None,
    settings: dict[str, str] | None = None,
) -> duckdb.DuckDBPyConnection:
    """A connection with complete views of `tables` (default: all the recording has)."""
    # The caller may use relations and data frames.
    import duckdb  # noqa: F401

    views = Views(recording, library, filters, settings)
    views.make(tables if tables is not None else views.available)
    views.outlive()
    return views.connection


class Views:
    """A connection, and the views that were made on it for the statements so far.

    `notes` collects what the user should know about the filters: which do not apply to which table, and which
    match nothing.
    """

    def __init__(
        self,
        recording: Recording,
        library: Library,
        filters: Filters | None = None,
        settings: dict[str, str] | None = None,
    ) -> None:
        self.recording = recording
        self.library = library
        self._made: dict[str, Joins] = {}
        self._summed: set[str] = set()
        self._counted: set[str] = set()
        # Summaries of which some rows are stored, and the rest is counted.
        self._added: set[str] = set()
        # Why a summary could not be counted: reported again to the next rule that needs it.
        self._failed: dict[str, Exception] = {}
        self._mentioned: dict[str, Mentions | None] = {}
        self._from_parts: dict[str, str] = {}
        self._undefined: dict[str, Table] = {}
        self._available: dict[tuple[str, ...], list[str]] = {}
        # Held while a summary is counted; another thread that needs it waits.
        self._counting = threading.RLock()
        config: Settings = {**engine_settings(recording), **(settings or {})}
        self._instance: engine_instances.Instance | None = engine_instances.start(config, type(self).__name__)
        self._is_shared = False
        self.connection = self._instance.connection.cursor()
        self._applied = AppliedFilters(filters or Filters(), recording, self.connection, self._stored)

    def for_thread(self) -> Self:
        """The same views on a separate connection, for another thread. Summaries are counted once."""
        other = copy.copy(self)
        self._is_shared = True
        other.connection, other._instance, other._made = self.connection.cursor(), None, {}
        other._applied = AppliedFilters(
            self._applied.filters, self.recording, other.connection, other._stored, self.notes
        )
        return other

    @property
    def notes(self) -> list[Words]:
        """Notes on the filters for the user: where they do not apply, and which match nothing."""
        return self._applied.notes

    @property
    def available(self) -> list[str]:
        """Tables that have a place in this recording, and those that are made of others."""
        # Asked for every rule and analysis, and the same until a table comes.
        tables = tuple(self.recording.tables)
        if tables not in self._available:
            self._available = {tables: self._find_available()}
        return self._available[tables]

    def _find_available(self) -> list[str]:
        held = set(self.recording.tables)
        tables = self.library.tables_for(held)
        # Without a definition and without a part, no one knows its columns.
        undefined = sorted(held - {table.name for table in tables})
        undefined = [name for name in undefined if self.recording.parts(name)]
        held |= {table.name for table in tables if not table.stored and not table.sql}
        for _ in range(_SUMMARIES_DEEP):
            held |= {table.name for table in tables if table.sql and held.issuperset(table.needs)}
        return [table.name for table in tables if table.name in held] + undefined

    def table(self, name: str) -> Table:
        """The definition of a table; of one that has none, what its Parquet parts say."""
        if name not in self._undefined:
            if name not in self.recording.tables or self.library.has_table(name):
                return self.library.table(name)
            self.recording.verify([name])
            parts = self.recording.parts(name)
            stated = self.recording.rows(name)
            columns = self._columns_of(_parquet(parts), name, stated) if parts else []
            self._undefined[name] = undefined_table(name, columns)
        return self._undefined[name]

    def prepare(self, sql: str) -> None:
        """Makes the views that `sql` reads, with the side tables that it mentions; checks their parts."""
        named = self.mentions(sql)
        if named is None or named.everything:
            self.make(self.available)
        else:
            self.make([name for name in self.available if name in named.tables], named)

    def mentions(self, sql: str) -> Mentions | None:
        """The names in `sql`; taking a long statement apart takes milliseconds, and most are met again."""
        if sql not in self._mentioned:
            self._mentioned[sql] = known_mentions(sql) or mentions(self.connection, sql)
        return self._mentioned[sql]

    def make(self, tables: list[str], named: Mentions | None = None) -> None:
        """Makes views of `tables`, with all joined columns, or those that `named` wants."""
        for name in tables:
            # First of all: making them changes the views that they read.
            self._sum_up(self.table(name))
            for side, *_ in self._joins(name, named):
                self._sum_up(self.table(side))
        for name in tables:
            self._make_with(name, named)

    def _make_with(self, name: str, named: Mentions | None) -> None:
        wanted = self._joins(name, named)
        if self._made.get(name) != wanted:
            self._make_view(self.table(name), wanted)
            self._made[name] = wanted

    def _joins(self, name: str, named: Mentions | None) -> Joins:
        """The joins that a table's view has for a statement."""
        joined = self.table(name).joined
        return frozenset(c.join for c in joined if named is None or named.wants(name, c.name))

    def add_empty(self, tables: Iterable[str]) -> None:
        """Views without rows of those `tables` that the recording lacks."""
        for name in tables:
            if name not in self._made and name not in self.available:
                table = self.table(name)
                columns = (*table.columns, *table.derived, *table.joined)
                empty = ", ".join(f"CAST(NULL AS {c.sql_type}) AS {quoted(c.name)}" for c in columns)
                self.create(name, f"SELECT {empty} WHERE false")
                self._made[name] = frozenset()

    def _sum_up(self, table: Table) -> None:
        """Counts a summary, unless that is done already, by the recorder or here."""
        if table.sql is None:
            return
        with self._counting:
            if failure := self._failed.get(table.name):
                raise failure.with_traceback(None)
            if table.name in self._summed:
                return
            self._summed.add(table.name)
            try:
                waiting = self._waiting(table)
                if waiting:
                    self._count(table, self._of_parts(table, waiting))
                elif waiting is None and not self._is_counted_by_recorder(table):
                    self._counted.add(table.name)
                    self._count(table, table.sql)
            except Exception as error:
                self._failed[table.name] = error
                raise

    def _count(self, table: Table, sql: str) -> None:
        self.add_empty(table.uses)
        self.prepare(sql)
        typed = ", ".join(
            f"CAST({quoted(c.name)} AS {c.sql_type}) AS {quoted(c.name)}" for c in table.columns
        )
        self.keep_sum(table, f"SELECT {typed} FROM ({sql})")

    def keep_sum(self, table: Table, select: str) -> None:
        """Counts a summary by its SELECT and keeps the rows."""
        # Not a temporary table, because those belong to one connection.
        self.connection.execute(f"CREATE TABLE {sum_of(table)} AS {select}")

    def _waiting(self, table: Table) -> list[Path] | None:
        """Parts that the stored sums lack, where the recording can tell and no filter is set; else None."""
        counted, *_ = table.needs
        known = self.recording.not_summed(table.name) if table.stored else None
        if known is None or not self._applied.conditions(self.table(counted)):
            return known
        if counted not in self.recording.tables:
            problem = f"filters need the table `{counted}`, but only its sums are left"
            raise UserError(problem, "leave out the filters", str(self.recording.folder))
        if days := self.recording.days_of_sums:
            self.notes.append(fact("recording/left_out_days_which", days=days))
        return None

    def _of_parts(self, table: Table, parts: list[Path]) -> str:
        """The SELECT of a summary, of some parts; its rows are added to those that are stored."""
        counted, *_ = table.needs
        columns = ", ".join(quoted(column.name) for column in self.table(counted).columns)
        rows = f"SELECT {columns} FROM {self._read(self.table(counted), _parquet(parts))}"
        self._added.add(table.name)
        return f"WITH {quoted(counted)} AS ({rows}) {table.sql}"

    def _is_counted_by_recorder(self, table: Table) -> bool:
        """Whether the recording holds what the summary's SELECT gives: nothing is missing or filtered."""
        from sysdock.engine import duckdb

        if not table.stored or table.name not in self.recording.tables:
            return False
        counted, *_ = table.needs
        if self._applied.conditions(self.table(counted)):
            return False
        total = f"SELECT coalesce(sum({quoted(str(table.adds_up_to))}), 0) FROM {self._stored(table.name)}"
        try:
            [(calls,)] = self.connection.execute(total).fetchall()
        except (duckdb.ConversionException, duckdb.OutOfRangeException):
            # The calls themselves may still be counted.
            return False
        return bool(calls == self.recording.rows(counted))

    def add_stored(self, other: Recording, suffix: str, tables: Iterable[str]) -> None:
        """Views of the stored rows of another recording, named with a suffix."""
        stored = copy.copy(self)
        stored.recording, stored._from_parts = other, {}
        for name in tables:
            self.create(f"{name}{suffix}", f"SELECT * FROM {stored._stored(name)}")

    def columns_of_files(self, patterns: Iterable[str]) -> list[tuple[str, str]]:
        """Names and SQL types of the columns of Parquet files, which are named as in the FROM of a view."""
        files = ", ".join(literal(pattern) for pattern in patterns)
        described = self.connection.execute(
            f"DESCRIBE SELECT * FROM read_parquet([{files}], hive_partitioning=false)"
        )
        return [(row[0], row[1]) for row in described.fetchall()]

    def damage(self) -> list[str]:
        """One line per part or table that differs from recording.json; the rows are not read."""
        found = self.recording.damage()
        if found:
            return found
        for name in self.recording.tables:
            try:
                if parts := self.recording.parts(name):
                    self._columns_of(_parquet(parts), name, self.recording.rows(name))
            except UserError as error:
                found.append(error.fact)
        return found

    def outlive(self) -> None:
        """Leaves the connection to the caller: what it needs on disk is removed when it is gone."""
        if self._instance and self._instance.spill:
            weakref.finalize(self.connection, self._instance.spill.cleanup)

    def close(self) -> None:
        """Closes the connection and removes what it spilled."""
        self.connection.close()
        if self._instance:
            engine_instances.end(self._instance, self._is_shared)
            self._instance = None

    def _make_view(self, table: Table, wanted: Joins) -> None:
        """A view of `table` with the joined columns of the joins in `wanted`."""
        if table.sql is None and not table.stored:
            self._make_manifest_view(table)
            return
        is_stored = table.stored and table.name not in self._counted
        if is_stored:
            self.recording.verify([table.name])
        columns = [f"t.{quoted(column.name)}" for column in table.columns]
        columns += [self._derived(table, column) for column in table.derived]
        sources = [f"{self._source(table)} AS t"]
        # One side table may be joined several times, by different keys.
        aliases: dict[tuple[str, str, str], str] = {}
        for column in table.joined:
            if column.join not in wanted:
                continue
            if column.join not in aliases:
                alias = aliases[column.join] = f"s{len(aliases)}"
                on = f"{alias}.{quoted(column.other_key)} = t.{quoted(column.key)}"
                sources.append(f"LEFT JOIN {self._side(self.table(column.table))} AS {alias} ON {on}")
            columns.append(f"{aliases[column.join]}.{quoted(column.column)} AS {quoted(column.name)}")
        where = " AND ".join(self._applied.conditions(table)) if is_stored else ""
        sql = f"SELECT {', '.join(columns)} FROM {' '.join(sources)}"
        self.create(table.name, f"{sql} WHERE {where}" if where else sql)

    def _derived(self, table: Table, column: DerivedColumn) -> str:
        """A derived column, as an item of SELECT. Its SQL may be a stranger's: it sees one row only."""
        named = self.mentions(column.of_row)
        foreign = named is None or named.tables != {"t"} or bool(named.functions | named.starred)
        if named is None or foreign or named.everything or named.columns:
            fact = f"column {column.name}: not an expression of columns of the row `t`"
            hint = "name the columns with `t.` in front, as in coalesce(t.a, t.b)"
            raise UserError(fact, hint, f"table {table.name}")
        unknown = sorted(name for _, name in named.owned if not table.has(name))
        if unknown:
            fact = f"column {column.name}: `{unknown[0]}` is not a stored column of the table"
            raise UserError(fact, None, f"table {table.name}")
        return f"CAST(({column.sql}\n) AS {column.sql_type}) AS {quoted(column.name)}"

    def create(self, name: str, select: str) -> None:
        """Makes the view `name`, in the place of an earlier one."""
        self.connection.execute(f"CREATE OR REPLACE TEMP VIEW {quoted(name)} AS {select}")

    def _stored(self, name: str) -> str:
        """The checked rows of a table, unfiltered, as a FROM item."""
        self.recording.verify([name])
        return self._source(self.table(name))

    def _side(self, table: Table) -> str:
        """A side table as a FROM item: its stored rows, or those of a summary, which `make` has counted."""
        return sum_of(table) if table.name in self._counted else self._stored(table.name)

    def _source(self, table: Table) -> str:
        """The stored rows of a table, or of a summary, as a FROM item with all its columns in order."""
        if table.name in self._counted:
            return sum_of(table)
        parts = self.recording.parts(table.name)
        if not parts and table.name in self._added:
            return sum_of(table)
        if not parts:
            empty = ", ".join(f"CAST(NULL AS {c.sql_type}) AS {quoted(c.name)}" for c in table.columns)
            return f"(SELECT {empty} WHERE false)"
        if table.name not in self._from_parts:
            stated = self.recording.rows(table.name)
            self._from_parts[table.name] = self._read(table, _parquet(parts), stated)
        stored = self._from_parts[table.name]
        if table.name not in self._added:
            return stored
        columns = ", ".join(quoted(column.name) for column in table.columns)
        return f"(SELECT {columns} FROM {stored} UNION ALL SELECT {columns} FROM {sum_of(table)})"

    def _read(self, table: Table, source: str, stated: int | None = None) -> str:
        """Parts of a table as a FROM item with its columns; `stated`: how many rows they must have."""
        held = dict(self._columns_of(source, table.name, stated))
        expected = {column.name: column.sql_type for column in table.columns}
        gaps = frozenset() if is_trusted(self.recording) else self._possible_gaps(table)
        if held == expected and not gaps:
            return source
        return f"(SELECT {', '.join(self._adapted(table, held, gaps))} FROM {source})"

    def _possible_gaps(self, table: Table) -> frozenset[str]:
        """Columns that must have a value in each row, in parts whose schema allows them to have none."""
        files = ", ".join(_file_literal(str(part)) for part in self.recording.parts(table.name))
        schema = f"SELECT DISTINCT name FROM parquet_schema([{files}]) WHERE repetition_type <> 'REQUIRED'"
        optional = {name for (name,) in self.connection.execute(schema).fetchall()}
        return frozenset(c.name for c in table.columns if not c.nullable and c.name in optional)

    def _adapted(self, table: Table, held: dict[str, str], gaps: frozenset[str]) -> list[str]:
        """Columns of parts of another version: what was not known yet is NULL, the rest must be there.

        A value that is missing in one of `gaps` is an error of the engine, once it is read.
        """
        columns = []
        for column in table.columns:
            if column.name in held:
                value = f"CAST({quoted(column.name)} AS {column.sql_type})"
                if column.name in gaps:
                    value = f"coalesce({value}, error('{table.name}.{column.name}: a value is missing'))"
                columns.append(f"{value} AS {quoted(column.name)}")
            elif column.nullable:
                columns.append(f"CAST(NULL AS {column.sql_type}) AS {quoted(column.name)}")
            else:
                fact = f"table `{table.name}` has no column `{column.name}`"
                hint = "the recording was made by another version of sysdock; import the log again"
                raise UserError(fact, hint, str(self.recording.folder))
        return columns

    def _columns_of(self, source: str, name: str, stated: int | None) -> list[tuple[str, str]]:
        from sysdock.engine import duckdb

        try:
            # The number is in the footers, which the engine reads for the columns as well.
            [(rows,)] = self.connection.execute(f"SELECT count(*) FROM {source}").fetchall()
            self.connection.execute(f"SELECT * FROM {source} LIMIT 0")
        except duckdb.Error as error:
            fact = f"table `{name}` cannot be read: {str(error).splitlines()[0]}"
            raise NotComputed(fact, place=str(self.recording.folder)) from None
        if stated is not None and rows != stated:
            fact = f"table `{name}` has {rows:,} rows instead of the {stated:,} stated"
            raise UserError(fact, DAMAGE_HINT, str(self.recording.folder))
        return [(entry[0], str(entry[1])) for entry in self.connection.description or []]

    def _make_manifest_view(self, table: Table) -> None:
        """A view of what recording.json says. Its values are variables: a view can have no parameters."""
        selects = []
        for number, row in enumerate(_ROWS_OF_MANIFEST[table.name](self.recording)):
            variable = f"{table.name}_{number}"
            # One variable for all: each requires a statement.
            self.set_variable(variable, {column.name: row.get(column.name) for column in table.columns})
            items = [
                f"CAST(getvariable('{variable}').{quoted(c.name)} AS {c.sql_type}) AS {quoted(c.name)}"
                for c in table.columns
            ]
            selects.append(f"SELECT {', '.join(items)}")
        self.create(table.name, " UNION ALL ".join(selects))

    def set_variable(self, name: str, value: Any) -> None:
        """Binds a value to a variable of the connection."""
        self.connection.execute(f"SET VARIABLE {name} = $value", {"value": value})


def _whole(recording: Recording) -> list[dict[str, Any]]:
    """The row of `recording`: the clock is that of all captures."""
    clock = recording.clock
    times = {key: clock.get(key) for key in ("has_durations", "durations", "stamps", "resolution_ns")}
    return [{**recording.manifest, "clock": clock.get("kind"), **times}]


def _captures(recording: Recording) -> list[dict[str, Any]]:
    """The rows of `captures`."""
    return [
        {
            **capture,
            "about": next((state["family"] for state in capture.get("families") or []), None),
            "clock": capture["clock"].get("kind"),
            "has_durations": capture["clock"].get("has_durations"),
        }
        for capture in recording.captures
    ]


# Tables that are views of recording.json, and what makes their rows.
_ROWS_OF_MANIFEST = {"recording": _whole, "captures": _captures}


def quoted(name: str) -> str:
    """A name as SQL expects it."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """A text as a literal of SQL."""
    return "'" + text.replace("'", "''") + "'"


def sum_of(table: Table) -> str:
    """The temporary table that holds a summary."""
    return quoted(f"sysdock_sum_{table.name}")


def _parquet(parts: Iterable[Path]) -> str:
    """Parquet files as a FROM item."""
    # `date=` and `cluster=` in the paths of a lake are no columns of their own.
    return f"read_parquet([{', '.join(_file_literal(str(part)) for part in parts)}], hive_partitioning=false)"


def _file_literal(path: str) -> str:
    """A path as a literal for read_parquet, which would take it for a pattern."""
    return literal(re.sub(r"([\[*?])", r"[\1]", path))
