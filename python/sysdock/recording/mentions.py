"""Finds out which tables and columns a statement mentions, so that its views join no more than it needs.

A side table costs a join over every row: measured, 0.13 s of CPU on top of 0.10 s for a summary of 10 M
calls.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sysdock.noted import Noted

if TYPE_CHECKING:
    import duckdb

_NOTED = Noted(Path(__file__).parent / "assets" / "mentions.json")


@dataclass
class Mentions:
    """Names in a statement, in lower case. `starred` are tables of which all columns are needed.

    `tables` leaves out what the statement defines itself (WITH); `functions` stand in FROM as tables do.
    `columns` may be of any table, `owned` are pairs of a table and a column of it.
    `everything`: it is not known which tables and columns are meant.
    """

    tables: set[str] = field(default_factory=set)
    columns: set[str] = field(default_factory=set)
    owned: set[tuple[str, str]] = field(default_factory=set)
    starred: set[str] = field(default_factory=set)
    functions: set[str] = field(default_factory=set)
    everything: bool = False

    def wants(self, table: str, column: str) -> bool:
        """Whether the view of `table` must have `column`. May err towards yes."""
        named = column in self.columns or (table, column) in self.owned
        return self.everything or table in self.starred or named


def mentions(connection: duckdb.DuckDBPyConnection, sql: str) -> Mentions | None:
    """The names in `sql`, from the engine's own parse tree; None where it is not one SELECT, or wrong."""
    [(text,)] = connection.execute("SELECT json_serialize_sql($sql)", {"sql": sql}).fetchall()
    tree = json.loads(text)
    if tree.get("error") or len(tree["statements"]) != 1:
        return None
    found = Mentions()
    defined: set[str] = set()
    for node, scope in _scoped(tree):
        kind = node.get("type")
        if kind == "BASE_TABLE":
            found.tables.add(node["table_name"].lower())
        elif kind == "TABLE_FUNCTION":
            found.functions.add(str(node["function"].get("function_name", "")).lower())
        elif kind == "SHOW_REF" or node.get("ref_type") == "NATURAL":
            found.everything = True
        elif kind == "SELECT_NODE" and any(_has_star(part) for part in node["select_list"]):
            found.starred.update(_sources(node["from_table"]).values())
        if node.get("class") == "COLUMN_REF":
            names = [name.lower() for name in node["column_names"]]
            if len(names) > 1 and names[0] in scope:
                # `p.pid` is no reason to join the pid to `calls` too.
                found.owned.add((scope[names[0]], names[1]))
            else:
                found.columns.update(names)
            # `SELECT c FROM calls AS c` is the whole row.
            if len(names) == 1 and names[0] in scope:
                found.starred.add(scope[names[0]])
        found.columns.update(str(name).lower() for name in node.get("using_columns") or ())
        defined.update(entry["key"].lower() for entry in (node.get("cte_map") or {}).get("map", ()))
    # `WITH "/etc/passwd" AS ...` in one part of a statement must not hide that another part reads the file.
    found.tables -= {name for name in defined if name.isidentifier()}
    return found


def known_mentions(sql: str) -> Mentions | None:
    """The names in a statement that comes with sysdock, as `tools/gen --assets` noted them; None for
    others.

    The engine's parse tree takes ten milliseconds a statement, most of it in Python.
    """
    entry = _NOTED.get(sql)
    if entry is None:
        return None
    names = {name: set(entry[name]) for name in ("tables", "columns", "starred", "functions")}
    owned = {(table, column) for table, column in entry["owned"]}
    return Mentions(**names, owned=owned, everything=entry["everything"])


def note_mentions(statements: Iterable[str]) -> None:
    """Notes what these statements mention, for `known_mentions`."""
    from sysdock.engine import duckdb

    connection = duckdb.connect()
    facts = {}
    for sql in statements:
        if found := mentions(connection, sql):
            facts[sql] = {
                name: value if name == "everything" else sorted(value) for name, value in vars(found).items()
            }
    _NOTED.write(facts)


def _scoped(tree: Any) -> Iterator[tuple[dict[str, Any], dict[str, str]]]:
    """All objects of the tree, each with the tables (by alias) whose rows can be named there.

    Not recursive: a stranger's statement may be nested deeper than Python's stack.
    """
    stack: list[tuple[Any, dict[str, str]]] = [(tree, {})]
    while stack:
        item, scope = stack.pop()
        if isinstance(item, list):
            stack.extend((part, scope) for part in item)
        elif isinstance(item, dict):
            inside = ordered = scope
            if item.get("type") == "SELECT_NODE":
                inside = {**scope, **_sources(item["from_table"])}
                # ORDER BY means the column `calls` of the result, not the table, in `count(*) AS calls`.
                own = {str(part.get("alias", "")).lower() for part in item["select_list"]}
                ordered = {alias: table for alias, table in inside.items() if alias not in own}
            yield item, inside
            for key, part in item.items():
                # A table defined in WITH does not see its siblings.
                stack.append((part, {"cte_map": scope, "modifiers": ordered}.get(key, inside)))


def _nodes(tree: Any) -> Iterator[dict[str, Any]]:
    """All objects of the tree."""
    return (node for node, _ in _scoped(tree))


def _has_star(expression: dict[str, Any]) -> bool:
    return any(node.get("class") == "STAR" for node in _nodes(expression))


def _sources(source: dict[str, Any] | None) -> dict[str, str]:
    """Tables by alias that a FROM clause names itself, not through a subquery."""
    if not source:
        return {}
    if source.get("type") == "BASE_TABLE":
        name = source["table_name"].lower()
        return {(source.get("alias") or name).lower(): name}
    parts = (source.get("left"), source.get("right"), source.get("source"))
    return {alias: table for part in parts for alias, table in _sources(part).items()}
