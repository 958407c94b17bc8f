"""DuckDB's SQL as Spark's, for statements of the portable subset.

sqlglot does most of it: quotes, names of functions, where NULLs are sorted. What it leaves as it is, although
it means something else on Spark, is rewritten here, so that both engines give the same rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sqlglot import exp, parse_one

# `source` receives each table in FROM, which is replaced by the name of a view on Spark.
Source = Callable[[exp.Expr], str]
# Expressions that need no rounding, or are not numbers.
_EXACT = (
    *(exp.Literal, exp.Null, exp.Boolean, exp.Sum, exp.Count, exp.Predicate, exp.Connector, exp.Not),
    *(exp.RegexpExtract, exp.Substring),
)
_INTEGERS = (exp.DataType.Type.BIGINT, exp.DataType.Type.INT)
# Types of DuckDB, as Spark calls them.
SPARK_TYPES = {
    "BIGINT": "BIGINT",
    "INTEGER": "INT",
    "DOUBLE": "DOUBLE",
    "VARCHAR": "STRING",
    "BOOLEAN": "BOOLEAN",
}


def translated(
    sql: str,
    params: Mapping[str, tuple[Any, str]],
    variables: Callable[[str], tuple[Any, str]],
    source: Source,
) -> str:
    """`sql` for Spark.

    params: value and SQL type of each `$name`. variables: the same of what `getvariable` reads. source: gives
    the name of the view on Spark that has the rows of a table, or of files.
    """
    tree = parse_one(sql, read="duckdb")
    _name_owners(tree)
    _name_sources(tree, source)
    for node in list(tree.find_all(exp.Parameter, exp.Placeholder)):
        if node.name in params:
            node.replace(literal(*params[node.name]))
    for node in list(tree.find_all(exp.Anonymous)):
        if node.name.lower() == "getvariable":
            node.replace(literal(*variables(node.expressions[0].name)))
        elif node.name.lower() == "error":
            node.set("this", "raise_error")
    for cast in list(tree.find_all(exp.Cast)):
        if cast.to.this in _INTEGERS and not isinstance(cast.this, _EXACT):
            # DuckDB rounds, to the even one of two that are as near; Spark cuts.
            cast.set("this", exp.Anonymous(this="bround", expressions=[cast.this]))
    # The innermost first: what is around it takes it as it is then.
    for called in reversed(list(tree.find_all(exp.Round, exp.ArgMax, exp.ArgMin))):
        called.replace(_round(called) if isinstance(called, exp.Round) else _of_extreme(called))
    return tree.sql(dialect="spark")


def _name_owners(tree: exp.Expr) -> None:
    """In ORDER BY and HAVING, `sum(calls)` is of the column; Spark would use a result of that name first."""
    for select in tree.find_all(exp.Select):
        source = select.args.get("from_") or select.args.get("from")
        if source is None or select.args.get("joins"):
            continue
        results = {item.alias_or_name for item in select.selects}
        clauses = [clause for key in ("order", "having") if (clause := select.args.get(key))]
        for aggregate in [found for clause in clauses for found in clause.find_all(exp.AggFunc)]:
            for column in aggregate.find_all(exp.Column):
                if not column.table and column.name in results:
                    column.set("table", exp.to_identifier(source.this.alias_or_name))


def _name_sources(tree: exp.Expr, source: Source) -> None:
    """Replaces tables and files in FROM by views on Spark; common table expressions stay what they are."""
    own = {cte.alias for cte in tree.find_all(exp.CTE)}
    for table in list(tree.find_all(exp.Table)):
        if isinstance(table.this, exp.Identifier) and table.name in own:
            continue
        view = exp.to_table(source(table.this), alias=table.alias_or_name or None)
        view.set("joins", table.args.get("joins"))
        table.replace(view)


def _of_extreme(node: exp.Expr) -> exp.Expr:
    """`arg_max` and `arg_min`: DuckDB leaves out rows in which the value is NULL."""
    is_there = exp.Is(this=node.this.copy(), expression=exp.Null()).not_()
    return type(node)(this=node.this, expression=exp.Case().when(is_there, node.expression.copy()))


def literal(value: Any, type_: str) -> exp.Expr:
    """A value as SQL: what the user gave becomes a constant, never a piece of the statement."""
    constant = exp.Null() if value is None else exp.convert(value)
    return exp.cast(constant, SPARK_TYPES[type_], dialect="spark")


def _round(node: exp.Expr) -> exp.Expr:
    """Rounds like DuckDB: times a power of ten, to a whole number, and back.

    Spark rounds the shortest decimal number that stands for the double: 2.675 becomes 2.68, here 2.67.
    """
    places = node.args.get("decimals")
    number = exp.cast(node.this, "DOUBLE")
    if places is None:
        return exp.Round(this=number)
    power = exp.cast(exp.Literal.number(10 ** int(places.name)), "DOUBLE")
    scaled = exp.Round(this=exp.Mul(this=exp.paren(number), expression=power))
    return exp.paren(
        exp.Div(this=exp.cast(scaled, "DOUBLE"), expression=power.copy(), typed=False, safe=False)
    )
