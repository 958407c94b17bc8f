"""Runs analyses and rules on a recording."""

from __future__ import annotations

import copy
import dataclasses
import itertools
import re
from collections.abc import Callable, Mapping
from typing import IO, TYPE_CHECKING, Any, Protocol, TypeVar

from sysdock.analysis.errors import engine_errors
from sysdock.errors import NotComputed, UserError, did_you_mean
from sysdock.library import Analysis, Column, Library
from sysdock.library.header import convert
from sysdock.recording import Filters, Recording, Views
from sysdock.recording.manifest import MOST_MERGES
from sysdock.recording.small import SmallViews, is_small
from sysdock.recording.subject import subject
from sysdock.sentences import Words

if TYPE_CHECKING:
    import duckdb

    from sysdock.analysis.finding import Finding

# Functions in FROM that read nothing but their arguments.
_FUNCTIONS = {"range", "generate_series", "unnest"}
_PARAMETER = re.compile(r"\$([a-z_]\w*)")
_MOST_KEPT = 2_000_000
_KEPT_NUMBERS = itertools.count()

T = TypeVar("T")


class Engine(Protocol):
    """Answers analyses in place of DuckDB, for one session."""

    def views(self, recording: Recording, library: Library, filters: Filters) -> Views:
        """Views whose rows DuckDB is not asked for."""

    def answer(self, session: Session, analysis: Analysis, values: Mapping[str, Any]) -> str:
        """Runs an analysis; the name of a table of the session's connection that has its rows afterwards."""


class Session:
    """A recording with a library and filters, on one connection of the engine.

    `notes` says in words where a filter does not apply or matches nothing. `checked`: whether an analysis is
    held against its header before it is run; by default all are but those that come with sysdock. `engine`:
    what answers analyses; by default DuckDB. `limits`: values for parameters of rules, by id of the rule, in
    place of the defaults.
    """

    def __init__(
        self,
        recording: Recording,
        library: Library | None = None,
        filters: Filters | None = None,
        settings: dict[str, str] | None = None,
        *,
        checked: bool | None = None,
        engine: Engine | None = None,
        limits: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> None:
        self._engine = engine
        self._settings = settings
        self.limits = limits or {}
        self.library = library or Library()
        self.filters = filters or Filters()
        # The library of sysdock is checked by `sysdock check` and tests, not for each user.
        self.checked = not self.library.is_own if checked is None else checked
        self._open(recording)
        self._diagnosis: list[Finding] | None = None

    def _open(self, recording: Recording) -> None:
        self.recording = recording
        with engine_errors(str(recording.folder)):
            if self._engine:
                self.views = self._engine.views(recording, self.library, self.filters)
            else:
                kind = SmallViews if is_small(recording) else Views
                self.views = kind(recording, self.library, self.filters, self._settings)

    @property
    def notes(self) -> list[Words]:
        """Notes on the filters for the user."""
        return self.views.notes

    @property
    def subject(self) -> Words:
        """The recorded subject; at least the name of the folder."""
        return subject(self.recording)

    @property
    def contents(self) -> set[str]:
        """Subjects of the recording: `about` of its tables."""
        known = [name for name in self.recording.tables if self.library.has_table(name)]
        return {about for name in known if (about := self.library.table(name).about)}

    def run(self, analysis: Analysis | str, params: Mapping[str, Any] | None = None) -> Result:
        """Prepares an analysis (object or id) with parameters; the query runs when its rows are asked for.

        UserError: no such analysis, a table missing, a parameter that is unknown or not of its type, a result
        whose columns are not those of the header.
        """
        if isinstance(analysis, str):
            analysis = self.library.analysis(analysis)
        analysis = self.answering(analysis) or analysis
        self.require(analysis)
        self.views.add_empty(analysis.uses)
        if self.checked:
            self._refuse_foreign(analysis)
        values = values_of(analysis, params or {})
        result = Result(self, analysis, values)
        if self._engine:
            result.take(self._engine.answer(self, analysis, values))
        return result

    def require(self, analysis: Analysis) -> None:
        """Raises a UserError where the recording lacks a table that `analysis` needs."""
        for name in self.missing(analysis):
            hint = f"the recording holds {', '.join(sorted(self.recording.tables)) or 'no table'}"
            fact = f"`{analysis.id}` needs the table `{name}`, which this recording does not have"
            raise UserError(fact, hint, str(self.recording.folder))

    def _refuse_foreign(self, analysis: Analysis) -> None:
        """Refuses SQL that is more than one SELECT over tables of a recording.

        A pack may come from a stranger, and the SQL is wrapped in further SQL later, so it must be complete
        by itself.
        """
        place = str(analysis.sql_path)
        with engine_errors(place):
            named = self.views.mentions(analysis.sql)
            if named is None:
                # A syntax error says more than we could.
                found = self.views.connection.extract_statements(analysis.sql)
                kinds = ", ".join(statement.type.name for statement in found)
                raise UserError(f"not one SELECT ({kinds or 'nothing'})", "write exactly one SELECT", place)
        known = {table.name for table in self.library.tables()}
        foreign = sorted(named.tables - known) + [
            f"{name}()" for name in sorted(named.functions - _FUNCTIONS)
        ]
        if foreign:
            raise UserError(
                f"reads `{foreign[0]}`, which is not a table of a recording",
                f"the tables are {', '.join(sorted(known))}",
                place,
            )

    def missing(self, analysis: Analysis) -> list[str]:
        """Tables that `analysis` needs, also through summaries, and the recording lacks."""
        held = self.views.available
        # Sums of a lake may be all that is left of its samples.
        summed = [name for name in analysis.needs if name in held and self.recording.not_summed(name) == []]
        needed = self.library.sources([name for name in analysis.needs if name not in summed])
        return [name for name in needed if name not in held and not self.library.table(name).sql]

    def answering(self, analysis: Analysis) -> Analysis | None:
        """`analysis`, or what its header names for recordings without its tables, if that can answer."""
        chain = (analysis, *self._others(analysis))
        return next((each for each in chain if not self.missing(each)), None)

    def answerable(self) -> list[Analysis]:
        """All analyses whose tables the recording has, without those that another one makes needless."""
        usable = [analysis for analysis in self.library.analyses() if not self.missing(analysis)]
        needless = {other.id for analysis in usable for other in self._others(analysis)}
        return [analysis for analysis in usable if analysis.id not in needless]

    def _others(self, analysis: Analysis) -> list[Analysis]:
        """The analyses that replace it, in the order in which they are tried."""
        chain = [analysis]
        while chain[-1].otherwise is not None:
            other = self.library.analysis(chain[-1].otherwise)
            if other in chain:
                break
            chain.append(other)
        return chain[1:]

    def execute(
        self,
        sql: str,
        params: Mapping[str, Any] | None = None,
        place: str | None = None,
        reads: str | None = None,
    ) -> duckdb.DuckDBPyConnection:
        """Runs `sql` over the views it mentions and returns the connection to fetch from.

        Of `params` those that `sql` has are bound. `place` is named in errors. `reads`: the part of `sql`
        that reads from the recording, if that is not all of it.
        """
        return self._asked(lambda: self._execute(sql, params, reads), place)

    def _execute(
        self, sql: str, params: Mapping[str, Any] | None = None, reads: str | None = None
    ) -> duckdb.DuckDBPyConnection:
        self.views.prepare(reads or sql)
        connection = self.views.connection
        for statement, names in self._statements(sql):
            bound = {name: value for name, value in (params or {}).items() if name in names}
            connection.execute(statement, bound or None)
        return connection

    def _asked(self, ask: Callable[[], T], place: str | None = None) -> T:
        """The result of `ask`, which is called again where parts of a lake were merged meanwhile."""
        for _ in range(MOST_MERGES):
            try:
                with engine_errors(place):
                    return ask()
            except NotComputed:
                if self._engine or not self.recording.has_moved():
                    raise
            self.views.close()
            self._open(self.recording.reopened())
        with engine_errors(place):
            return ask()

    def _statements(self, sql: str) -> list[tuple[str | duckdb.Statement, set[str]]]:
        """The statements in `sql`, with the names of their parameters.

        To find them, the engine parses the text and holds the interpreter's lock meanwhile. What comes with
        sysdock is one statement, in which a `$` with a name after it is a parameter.
        """
        if not self.checked:
            return [(sql, set(_PARAMETER.findall(sql)))]
        statements = self.views.connection.extract_statements(sql)
        return [(statement, statement.named_parameters) for statement in statements]

    def fetch(
        self,
        sql: str,
        params: Mapping[str, Any] | None = None,
        place: str | None = None,
        reads: str | None = None,
    ) -> list[tuple[Any, ...]]:
        """All rows of `sql`, as `execute` runs it."""
        return self._asked(lambda: self._execute(sql, params, reads).fetchall(), place)

    def dicts(self, sql: str, params: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
        """All rows of `sql`, by the names of its columns."""

        def ask() -> list[dict[str, Any]]:
            result = self._execute(sql, params)
            names = [column[0] for column in result.description or []]
            return [dict(zip(names, row, strict=True)) for row in result.fetchall()]

        return self._asked(ask)

    def diagnose(self, lang: str = "en", alongside: Callable[[Session], None] | None = None) -> list[Finding]:
        """The findings, with all texts in one language."""
        return [finding.in_language(lang) for finding in self.findings(alongside)]

    def findings(self, alongside: Callable[[Session], None] | None = None) -> list[Finding]:
        """Runs all rules: findings first, largest saving first, then unknown, then ok.

        `alongside`: what else to ask meanwhile, of the session that it is given.
        """
        from sysdock.analysis.diagnosis import diagnose

        if self._diagnosis is None:
            self._diagnosis = diagnose(self, alongside)
        elif alongside:
            alongside(self)
        return self._diagnosis

    def for_thread(self) -> Session:
        """Another session on the same recording and engine, for a thread of its own."""
        other = copy.copy(self)
        other.views = self.views.for_thread()
        return other

    def close(self) -> None:
        """Closes the connection."""
        self.views.close()

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Result:
    """The answer to an analysis: `columns` as in its header, `sql` and `bound` to wrap it in further SQL.

    `values`: those of its parameters, as they were given or by default.
    """

    def __init__(self, session: Session, analysis: Analysis, values: dict[str, Any]) -> None:
        self.session = session
        self.analysis = analysis
        self.columns: tuple[Column, ...] = analysis.columns
        self.values = values
        self.sql = analysis.sql if session.checked else analysis.typed_sql
        self.bound = bind(analysis, values) if session.checked else values
        self.place = str(analysis.sql_path)
        self._count: int | None = None
        self._kept: str | None = None
        if session.checked:
            self._check_columns()

    def per(self, units: float) -> Result:
        """The result per unit of work: columns that add up (`sums:` of the analysis) divided by the number
        of units.

        UserError: nothing of the analysis adds up.
        """
        sums = self.analysis.sums
        if not sums:
            fact = f"`{self.analysis.id}` has no numbers that add up"
            raise UserError(fact, "time/where, syscalls/latency or io/summary have some", self.place)
        divided = ", ".join(f"CAST({name} AS DOUBLE) / {units!r} AS {name}" for name in sums)
        per_unit = copy.copy(self)
        per_unit._kept = None  # this one drops what it keeps
        per_unit.sql = f"SELECT * REPLACE ({divided}) FROM (\n{self.sql}\n) AS whole"
        per_unit.columns = tuple(
            dataclasses.replace(column, type="DOUBLE") if column.name in sums else column
            for column in self.columns
        )
        return per_unit

    def rows(self, limit: int | None = None) -> list[tuple[Any, ...]]:
        """The rows, at most `limit`, in the order of the analysis."""
        if limit is None:
            rows = self.fetch(self.sql)
            self._count = len(rows)
        else:
            rows = self.fetch(f"{self.wrapped()} LIMIT {int(limit)}")
            if len(rows) < limit:
                self._count = len(rows)
        return rows

    def dicts(self, limit: int | None = None) -> list[dict[str, Any]]:
        """The rows, at most `limit`, by the names of the columns."""
        names = [column.name for column in self.columns]
        return [dict(zip(names, row, strict=True)) for row in self.rows(limit)]

    def fetch(self, sql: str, params: Mapping[str, Any] | None = None) -> list[tuple[Any, ...]]:
        """All rows of `sql`, which is the SQL of the result in further SQL that reads no other table."""
        return self.session.fetch(sql, {**self.bound, **(params or {})}, self.place, self.sql)

    def keep(self) -> Result:
        """Runs the query once for all that will be asked of it, unless its result is large."""
        connection = self.session.views.connection
        name = f"sysdock_kept_{next(_KEPT_NUMBERS)}"
        with engine_errors(self.place):
            # The views have to be made for the SELECT: the engine gives no parse tree for a CREATE TABLE.
            self.session.views.prepare(self.sql)
            table = f"CREATE TEMP TABLE {name} AS {self.wrapped()} LIMIT {_MOST_KEPT + 1}"
            connection.execute(table, self.bound) if self.bound else connection.execute(table)
            [(count,)] = connection.execute(f"SELECT count(*) FROM {name}").fetchall()
            if count > _MOST_KEPT:
                connection.execute(f"DROP TABLE {name}")
                return self
        self.take(name, count)
        return self

    def take(self, table: str, count: int | None = None) -> None:
        """Goes on with the rows of a table of the connection, which has `count` rows."""
        self.sql, self.bound, self._count, self._kept = f"SELECT * FROM {table}", {}, count, table

    def forget(self) -> None:
        """Frees the memory that `keep` took; nothing more can be asked."""
        if self._kept:
            self.session.views.connection.execute(f"DROP TABLE {self._kept}")

    def row_count(self) -> int:
        """Number of rows without a limit."""
        if self._count is None:
            counted = f"SELECT count(*) FROM (\n{self.sql}\n) AS result"
            [(self._count,)] = self.fetch(counted)
        return self._count

    def copy_to(
        self, out: IO[bytes] | IO[str], format: str = "csv", limit: int | None = None, *, raw: bool = False
    ) -> None:
        """Streams the rows to a file object as `csv` (with a header) or `json` (an array of objects).

        raw: recorded names in CSV as they are, also what would steer a terminal or a spreadsheet.
        """
        from sysdock.analysis.copy import copy_select

        select = self.wrapped() if limit is None else f"{self.wrapped()} LIMIT {int(limit)}"
        types = {column.name: column.type for column in self.columns}
        copy_select(self.session, select, self.bound, types, out, format, self.place, raw=raw)

    def wrapped(self) -> str:
        """The SQL as a SELECT over a subquery; the engine keeps the order of the rows."""
        return f"SELECT * FROM (\n{self.sql}\n) AS result"

    def _check_columns(self) -> None:
        """A header that says something else than the SQL returns would label numbers wrongly."""
        # Even of `LIMIT 0` the engine would compute the parts that stand below a grouping.
        real = [(entry[0], entry[1]) for entry in self.fetch(f"DESCRIBE {self.wrapped()}")]
        stated = [(column.name, column.type) for column in self.columns]
        for number, (have, header) in enumerate(zip(real, stated, strict=False), 1):
            if have != header:
                fact = f"column {number} is {' '.join(have)}, but the header says {' '.join(header)}"
                hint = f"write CAST(... AS {header[1]}), or fix the header" if have[0] == header[0] else None
                raise UserError(fact, hint, self.place)
        if len(real) != len(stated):
            fact = f"the result has {len(real)} columns, but the header names {len(stated)}"
            raise UserError(fact, "write one `column:` line for each column of the result", self.place)


def bind(analysis: Analysis, values: Mapping[str, Any]) -> dict[str, Any]:
    """The values of the parameters of `analysis`, typed for the engine, which imports numpy for that."""
    import duckdb
    from duckdb import sqltypes

    types = {param.name: param.type for param in analysis.params}
    # With its type stated, 3 is a BIGINT, and the results keep the types of the header.
    return {name: duckdb.Value(value, getattr(sqltypes, types[name])) for name, value in values.items()}


def values_of(analysis: Analysis, params: Mapping[str, Any]) -> dict[str, Any]:
    """Values for all parameters of `analysis`: those given, of the parameter's type, else the defaults.

    UserError: a parameter that is unknown, not of its type, or out of its range.
    """
    known = {param.name: param for param in analysis.params}
    for name in params:
        if name not in known:
            otherwise = f"its parameters are {', '.join(known)}" if known else "it has no parameters"
            raise UserError(
                f"`{analysis.id}` has no parameter `{name}`",
                did_you_mean(name, known, otherwise),
                f"-p {name}",
            )
    values = {}
    for name, param in known.items():
        value = params.get(name, param.default)
        try:
            if value is not None and not (param.type == "VARCHAR" and isinstance(value, str)):
                value = convert(str(value), param.type)
        except ValueError:
            fact = f"`{value}` is not a {param.type}"
            raise UserError(fact, f"{name}: {param.text}", f"-p {name}={value}") from None
        if param.above is not None and value is not None and value <= param.above:
            fact = f"must be greater than {param.above:g}"
            raise UserError(fact, f"{name}: {param.text}", f"-p {name}={value:g}")
        values[name] = value
    return values
