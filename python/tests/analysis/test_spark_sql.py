"""SQL for Spark: what means something else there is rewritten. What Spark answers, `tools/check-spark` compares."""

from __future__ import annotations

from typing import Any

import pytest
from click.testing import CliRunner
from make_recording import RecordingMaker, own
from sysdock.cli import sysdock
from sysdock.errors import UserError
from sysdock.library import Library
from sysdock.spark.translate import translated

sqlglot = pytest.importorskip("sqlglot")


def spark_sql(sql: str, **params: tuple[Any, str]) -> str:
    """`sql` for Spark; what stands in FROM keeps its name, with `s_` in front."""
    return translated(sql, params, lambda name: (name.upper(), "VARCHAR"), lambda source: f"s_{source.name}")


@pytest.mark.parametrize(
    ("duckdb", "spark"),
    [
        # Rounds the double, not the shortest decimal number that stands for it.
        (
            "SELECT round(a, 2) AS b FROM t",
            "SELECT (CAST(ROUND((CAST(a AS DOUBLE)) * CAST(100 AS DOUBLE)) AS DOUBLE) / CAST(100 AS DOUBLE)) AS b FROM s_t AS t",
        ),
        # Rows without a value do not count; the innermost is rewritten, too.
        (
            "SELECT arg_max(a, b) FROM t",
            "SELECT MAX_BY(a, CASE WHEN NOT a IS NULL THEN b END) FROM s_t AS t",
        ),
        # The column, not the result of that name.
        (
            "SELECT sum(calls) AS calls FROM t GROUP BY c ORDER BY sum(calls) DESC",
            "SELECT SUM(calls) AS calls FROM s_t AS t GROUP BY c ORDER BY SUM(t.calls) DESC",
        ),
        ("SELECT a FROM t ORDER BY a", "SELECT a FROM s_t AS t ORDER BY a NULLS LAST"),
        ("SELECT a // 3, a / 2 FROM t", "SELECT a DIV 3, a / 2 FROM s_t AS t"),
        # What a statement defines itself is no table.
        (
            "WITH u AS (SELECT a FROM t) SELECT a FROM u JOIN v ON v.a = u.a",
            "WITH u AS (SELECT a FROM s_t AS t) SELECT a FROM u JOIN s_v AS v ON v.a = u.a",
        ),
        # Rounds where Spark would cut; sums of integers are what they are.
        (
            "SELECT CAST(a / 2 AS BIGINT) AS b, CAST(sum(a) AS BIGINT) AS c FROM t",
            "SELECT CAST(BROUND(a / 2) AS BIGINT) AS b, CAST(SUM(a) AS BIGINT) AS c FROM s_t AS t",
        ),
        ("SELECT getvariable('from') FROM t", "SELECT CAST('FROM' AS STRING) FROM s_t AS t"),
    ],
)
def test_what_means_something_else_is_rewritten(duckdb: str, spark: str) -> None:
    assert spark_sql(duckdb) == spark


@pytest.mark.parametrize("value", ["x' OR '1'='1", "\\' --", '"; DROP TABLE t', "日本\n", None])
def test_what_the_user_gave_stays_one_value(value: str | None) -> None:
    text = spark_sql("SELECT a FROM t WHERE a = $given", given=(value, "VARCHAR"))
    tree = sqlglot.parse_one(text, read="spark")
    [constant] = tree.find(sqlglot.exp.EQ).find_all(sqlglot.exp.Literal, sqlglot.exp.Null)
    assert (None if value is None else constant.this) == (value if value is not None else None)


def test_all_that_is_portable_can_be_translated() -> None:
    library = Library()
    for analysis in library.analyses():
        if analysis.portable:
            params = {param.name: (param.default, param.type) for param in analysis.params}
            text = translated(analysis.sql, params, lambda name: ("", "VARCHAR"), lambda source: source.name)
            left = sqlglot.parse_one(text, read="spark").find(sqlglot.exp.Placeholder, sqlglot.exp.Parameter)
            assert left is None, analysis.id


@pytest.mark.parametrize("engine", ["sparc", "spark:", "http://h", "local[", ""])
def test_an_engine_that_there_is_not_is_refused(engine: str, maker: RecordingMaker) -> None:
    with pytest.raises(UserError, match="no such engine") as raised:
        CliRunner().invoke(
            sysdock,
            ["show", str(maker.make()), "io/summary", "--engine", engine],
            catch_exceptions=False,
            standalone_mode=False,
        )
    assert "spark" in str(raised.value)


def test_what_is_not_portable_is_refused_before_a_spark_starts(maker: RecordingMaker) -> None:
    folder = own(maker.make())
    words = ["show", str(folder), "time/calls", "--engine", "spark://127.0.0.1:1"]
    with pytest.raises(UserError, match=r"`time/calls` is not portable \(RECURSIVE CTE\)") as raised:
        CliRunner().invoke(sysdock, words, catch_exceptions=False, standalone_mode=False)
    assert raised.value.hint == "leave out --engine: DuckDB answers it"
