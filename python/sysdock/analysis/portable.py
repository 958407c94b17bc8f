"""Checks that a query keeps to the SQL that gives the same answers on every engine.

The subset, and why, is in docs/reference/knowhow-files.md; it was measured on DuckDB, Spark and ClickHouse,
where a good part of the differences were silent ones. Everything that is not on the lists below is refused.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from sysdock.library.header import TYPES

if TYPE_CHECKING:
    import duckdb

FUNCTIONS = {
    "count", "count_star", "sum", "min", "max", "avg", "greatest", "least", "abs", "floor", "ceil", "round",
    "log2", "power", "length", "substr", "concat", "lower", "starts_with", "regexp_extract", "arg_min",
    "arg_max",
}  # fmt: skip
# `~~` is LIKE. `//` and `%` are right as long as the start was subtracted first (2^53 ns are 104 days).
OPERATORS = {"+", "-", "*", "/", "//", "%", "~~", "!~~"}
_EXPRESSIONS = {
    "CASE_EXPR", "OPERATOR_CAST", "COLUMN_REF", "STAR", "SUBQUERY", "TYPE", "FUNCTION", "VALUE_CONSTANT",
    "VALUE_PARAMETER", "COMPARE_EQUAL", "COMPARE_NOTEQUAL", "COMPARE_GREATERTHAN", "COMPARE_LESSTHAN",
    "COMPARE_GREATERTHANOREQUALTO", "COMPARE_LESSTHANOREQUALTO", "COMPARE_BETWEEN", "COMPARE_IN",
    "COMPARE_NOT_IN", "CONJUNCTION_AND", "CONJUNCTION_OR", "OPERATOR_COALESCE", "OPERATOR_IS_NULL",
    "OPERATOR_IS_NOT_NULL", "OPERATOR_NOT", "WINDOW_AGGREGATE", "WINDOW_ROW_NUMBER", "WINDOW_RANK",
    "WINDOW_LAG",
}  # fmt: skip
_WINDOW_AGGREGATES = {"sum", "count", "min", "max"}
_SOURCES = {"BASE_TABLE", "SUBQUERY", "JOIN", "EMPTY"}
_JOINS = {"INNER", "LEFT", "RIGHT", "OUTER"}
_JOIN_KINDS = {"REGULAR", "CROSS"}
_MODIFIERS = {"ORDER_MODIFIER", "LIMIT_MODIFIER", "DISTINCT_MODIFIER"}


def violations(connection: duckdb.DuckDBPyConnection, sql: str) -> list[str]:
    """Constructs in `sql` outside the portable subset, in words; empty if there are none."""
    [(text,)] = connection.execute("SELECT json_serialize_sql($sql)", {"sql": sql}).fetchall()
    tree = json.loads(text)
    if tree["error"]:
        return [f"not one SELECT: {tree['error_message']}"]
    if len(tree["statements"]) != 1:
        return ["more than one statement"]
    return list(dict.fromkeys(_walk(tree["statements"][0]["node"])))


def _walk(tree: Any) -> Iterator[str]:
    if isinstance(tree, list):
        for item in tree:
            yield from _walk(item)
    elif isinstance(tree, dict):
        yield from _judge(tree)
        for value in tree.values():
            yield from _walk(value)


def _judge(node: dict[str, Any]) -> Iterator[str]:
    type_ = str(node.get("type") or "")
    if "class" in node:
        yield from _expression(node, type_)
    elif type_.endswith("_NODE"):
        yield from _query(node, type_)
    elif type_.endswith("_MODIFIER"):
        if type_ not in _MODIFIERS or node.get("distinct_on_targets"):
            yield f"{type_.removesuffix('_MODIFIER')} in this form"
    elif "query_location" in node and type_ not in _SOURCES:
        yield f"{type_.replace('_', ' ')} in FROM"
    elif type_ == "JOIN" and (node["join_type"] not in _JOINS or node["ref_type"] not in _JOIN_KINDS):
        yield f"{node['ref_type']} {node['join_type']} JOIN"
    if node.get("sample"):
        yield "TABLESAMPLE"


def _query(node: dict[str, Any], type_: str) -> Iterator[str]:
    if type_ == "SET_OPERATION_NODE":
        if node["setop_type"] not in ("UNION", "EXCEPT", "INTERSECT"):
            yield node["setop_type"].replace("_", " ")
    elif type_ == "SELECT_NODE":
        if len(node["group_sets"]) > 1:
            yield "GROUPING SETS"
        if node["qualify"]:
            yield "QUALIFY"
        if node["aggregate_handling"] != "STANDARD_HANDLING":
            yield "GROUP BY ALL"
    else:
        yield type_.removesuffix("_NODE").replace("_", " ")


def _expression(node: dict[str, Any], type_: str) -> Iterator[str]:
    name = str(node.get("function_name", "")).lower()
    if type_ not in _EXPRESSIONS:
        yield type_.replace("_", " ").lower()
    elif type_ == "FUNCTION":
        if name not in FUNCTIONS | OPERATORS:
            yield f"operator {name}" if node["is_operator"] else f"{name}()"
        if node["order_bys"]["orders"]:
            yield f"ORDER BY inside {name}()"
    elif type_ == "WINDOW_AGGREGATE" and name not in _WINDOW_AGGREGATES:
        yield f"{name}() OVER"
    elif type_ == "WINDOW_LAG" and len(node["arguments"]) != 3:
        yield "lag() without a default"
    elif type_ == "OPERATOR_CAST":
        wanted = node["type_expr"].get("type_name", "").upper()
        if wanted not in TYPES:
            yield f"a cast to {wanted}"
        if node["try_cast"]:
            yield "TRY_CAST"
    elif type_ == "STAR" and (node["exclude_list"] or node["replace_list"] or node["columns"]):
        yield "* with EXCLUDE, REPLACE or COLUMNS"
