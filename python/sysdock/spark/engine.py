"""Answers analyses on Spark."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from sysdock.analysis.portable import violations
from sysdock.errors import NotComputed, UserError
from sysdock.library import Analysis, Library
from sysdock.recording import Filters, Recording
from sysdock.recording.limits import OFF, SWITCH, is_trusted
from sysdock.spark.cluster import connect, master_of, message
from sysdock.spark.translate import SPARK_TYPES, translated
from sysdock.spark.views import SparkViews

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from sysdock.analysis.session import Session


class SparkEngine:
    """Spark, as the engine of one session. `name`: as of `--engine`. It starts when something is asked."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._master = master_of(name)
        self._made: dict[str, str] = {}
        self._files: dict[tuple[str, ...], str] = {}
        self._answers = 0

    @cached_property
    def _spark(self) -> SparkSession:
        return connect(self.name, self._master)

    def views(self, recording: Recording, library: Library, filters: Filters) -> SparkViews:
        """Views for the session; a UserError where it has limits, which Spark would not keep.

        A lake is written by many machines: it is enough that its owner is this user, or root.
        """
        if not is_trusted(recording):
            hint = f"if you trust where it comes from, lift its limits: {SWITCH}={OFF} sysdock ..."
            raise UserError("not made here: Spark does not read it", hint, str(recording.folder))
        return SparkViews(recording, library, filters, self._named)

    def answer(self, session: Session, analysis: Analysis, values: Mapping[str, Any]) -> str:
        """Runs `analysis`; the name of a table of the session's connection that has its rows afterwards.

        UserError, before anything runs: what it reads is not portable.
        """
        self._refuse_not_portable(session, analysis)
        frame = self.frame(session, analysis.sql, {p.name: (values[p.name], p.type) for p in analysis.params})
        try:
            arrow = frame.toArrow()
        except KeyboardInterrupt:
            self._spark.sparkContext.cancelAllJobs()
            raise
        except Exception as error:  # what py4j passes on is of no common kind
            raise NotComputed(f"Spark: {message(error)}", None, str(analysis.sql_path)) from None
        connection = session.views.connection
        self._answers += 1
        name = f"sysdock_of_spark_{self._answers}"
        connection.register(f"{name}_arrow", arrow)
        columns = ", ".join(
            f'CAST(a."{have}" AS {column.type}) AS "{column.name}"'
            for have, column in zip(arrow.column_names, analysis.columns, strict=True)
        )
        connection.execute(f"CREATE TEMP TABLE {name} AS SELECT {columns} FROM {name}_arrow AS a")
        connection.unregister(f"{name}_arrow")
        return name

    def frame(self, session: Session, sql: str, params: Mapping[str, tuple[Any, str]]) -> DataFrame:
        """`sql` as a frame of Spark, not computed yet."""
        views = session.views
        assert isinstance(views, SparkViews)
        views.prepare(sql)
        return self._sql(views, sql, params)

    def _refuse_not_portable(self, session: Session, analysis: Analysis) -> None:
        """Raises a UserError where the analysis, or what it reads, is for DuckDB only."""
        connection = session.views.connection
        found = [] if analysis.portable else violations(connection, analysis.sql) or ["its header says so"]
        for name in session.library.sources((*analysis.needs, *analysis.uses)):
            table = session.library.table(name)
            if table.sql:
                found += [f"{what}, in the table {name}" for what in violations(connection, table.sql)]
        if found:
            fact = f"`{analysis.id}` is not portable ({found[0]})"
            raise UserError(fact, "leave out --engine: DuckDB answers it", f"--engine {self.name}")

    def _sql(
        self, views: SparkViews, sql: str, params: Mapping[str, tuple[Any, str]] | None = None
    ) -> DataFrame:
        def variable(name: str) -> tuple[Any, str]:
            found = views.connection.execute(f"SELECT getvariable('{name}'), typeof(getvariable('{name}'))")
            [(value, type_)] = found.fetchall()
            return value, type_ if type_ in SPARK_TYPES else "VARCHAR"

        text = translated(sql, params or {}, variable, lambda source: self._view(views, source))
        try:
            return self._spark.sql(text)
        except Exception as error:  # what py4j passes on is of no common kind
            raise NotComputed(f"Spark: {message(error)}") from None

    def _view(self, views: SparkViews, source: exp.Expr) -> str:
        """The view on Spark of what is in FROM."""
        if isinstance(source, exp.ReadParquet):
            paths = source.expressions[0]
            return self._parquet(views, tuple(item.name for item in paths.expressions))
        return self._named(views, source.name)

    def _named(self, views: SparkViews, name: str) -> str:
        select = views.selects.get(name)
        if select is None:
            return self._copied(views, name)
        if self._made.get(name) != select:
            # A plan refers to the plans of what it reads, so that views may be made again.
            frame = self._sql(views, select)
            (frame.cache() if name in views.sums else frame).createOrReplaceTempView(name)
            self._made[name] = select
        return name

    def _parquet(self, views: SparkViews, patterns: tuple[str, ...]) -> str:
        """A view of files. DuckDB says which columns they have: Spark need not read a footer for that."""
        if patterns not in self._files:
            columns = views.columns_of_files(patterns)
            schema = ", ".join(f"`{name}` {SPARK_TYPES[type_]}" for name, type_ in columns)
            paths = [re.sub(r"\[(.)\]", r"\1", pattern) for pattern in patterns]
            name = f"sysdock_files_{len(self._files)}"
            frame = self._spark.read.schema(schema).parquet(*(_hadoop_path(path) for path in paths))
            frame.createOrReplaceTempView(name)
            self._files[patterns] = name
        return self._files[patterns]

    def _copied(self, views: SparkViews, name: str) -> str:
        """A small table of DuckDB, such as what filters keep, as a view on Spark."""
        connection = views.connection
        described = connection.execute(f'DESCRIBE "{name}"').fetchall()
        schema = ", ".join(f"`{row[0]}` {SPARK_TYPES[row[1]]}" for row in described)
        rows = connection.execute(f'SELECT * FROM "{name}"').fetchall()
        self._spark.createDataFrame(rows, schema).createOrReplaceTempView(name)
        return name


def _hadoop_path(path: str) -> str:
    """A path as Spark expects it, which would take it for a pattern."""
    return "file://" + re.sub(r"([\\{}\[\]*?,])", r"\\\1", path)
