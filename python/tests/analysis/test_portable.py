"""The portable subset."""

from __future__ import annotations

import duckdb
import pytest
from sysdock.analysis.portable import violations


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT count(*), sum(a) FILTER (WHERE b > 1), arg_max(a, b) FROM t GROUP BY c HAVING count(*) > 1",
        "WITH s AS (SELECT a FROM t UNION ALL SELECT 1) SELECT * FROM s JOIN u USING (a) LEFT JOIN v ON b",
        "SELECT CASE WHEN a LIKE 'x%' OR NOT starts_with(a, 'y') THEN coalesce(b, 0) END FROM t LIMIT 3",
        "SELECT row_number() OVER (PARTITION BY a ORDER BY b), lag(a, 1, a) OVER (ORDER BY b) FROM t",
        "SELECT sum(a) OVER (ORDER BY b) FROM t",
        "SELECT CAST(floor(log2(a)) AS BIGINT), a IN (1, 2), a BETWEEN 1 AND $p FROM t CROSS JOIN u",
        "SELECT a FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.a = t.a) OR a = (SELECT max(a) FROM u)",
    ],
)
def test_inside(sql: str) -> None:
    assert violations(duckdb.connect(), sql) == []


@pytest.mark.parametrize(
    ("sql", "what"),
    [
        ("SELECT median(a) FROM t", "median()"),
        ("SELECT approx_quantile(a, 0.5) FROM t", "approx_quantile()"),
        ("SELECT a & b FROM t", "operator &"),
        ("SELECT a || b FROM t", "operator ||"),
        ("SELECT a::TIMESTAMP FROM t", "a cast to TIMESTAMP"),
        ("SELECT try_cast(a AS BIGINT) FROM t", "TRY_CAST"),
        ("SELECT lag(a) OVER (ORDER BY b) FROM t", "lag() without a default"),
        ("SELECT first_value(a) OVER (ORDER BY b) FROM t", "window first value"),
        ("SELECT list(a ORDER BY b) FROM t", "list()"),
        ("SELECT sum(a ORDER BY b) FROM t", "ORDER BY inside sum()"),
        ("SELECT * EXCLUDE (a) FROM t", "* with EXCLUDE, REPLACE or COLUMNS"),
        ("SELECT COLUMNS('a') FROM t", "* with EXCLUDE, REPLACE or COLUMNS"),
        ("SELECT a FROM range(3)", "TABLE FUNCTION in FROM"),
        ("SELECT a FROM t ASOF JOIN u ON t.x >= u.x", "ASOF INNER JOIN"),
        ("SELECT a FROM t NATURAL JOIN u", "NATURAL INNER JOIN"),
        ("SELECT a FROM t SEMI JOIN u USING (a)", "REGULAR SEMI JOIN"),
        ("SELECT a FROM t TABLESAMPLE 10%", "TABLESAMPLE"),
        ("SELECT a FROM t GROUP BY ROLLUP (a)", "GROUPING SETS"),
        ("SELECT a, count(*) FROM t GROUP BY ALL", "GROUP BY ALL"),
        ("SELECT a FROM t QUALIFY row_number() OVER () = 1", "QUALIFY"),
        ("SELECT DISTINCT ON (a) a FROM t", "DISTINCT in this form"),
        ("SELECT 1 UNION BY NAME SELECT 2", "UNION BY NAME"),
        (
            "WITH RECURSIVE x AS (SELECT 1 AS a UNION ALL SELECT a + 1 FROM x) SELECT a FROM x",
            "RECURSIVE CTE",
        ),
        ("SELECT {'a': 1}", "struct_pack()"),
        ("SELECT [1]", "list_value()"),
        ("SELECT a IS DISTINCT FROM b FROM t", "compare distinct from"),
        ("PIVOT t ON a USING sum(b)", None),
        ("SELECT 1; SELECT 2", "more than one statement"),
    ],
)
def test_outside(sql: str, what: str | None) -> None:
    found = violations(duckdb.connect(), sql)
    assert found
    assert what is None or what in found
