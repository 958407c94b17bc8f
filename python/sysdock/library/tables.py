"""Reads table definitions, `knowhow/tables/<name>.toml`."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sysdock.entries import Entries, parse_toml
from sysdock.errors import UserError
from sysdock.noted import Noted

_NOTED = Noted(Path(__file__).parent / "assets" / "tables.json")

SQL_TYPES = {
    "int64": "BIGINT",
    "int32": "INTEGER",
    "float64": "DOUBLE",
    "bool": "BOOLEAN",
    "string": "VARCHAR",
}

_HINT = "docs/reference/knowhow-files.md shows what a definition holds"
_NEEDED = ("name", "text", "order", "columns")
_KEYS = (
    *_NEEDED,
    *("stored", "about", "merged", "travels", "counters_of", "joined", "derived"),
    *("sql", "constant", "adds_up_to", "needs", "uses"),
)
_NEEDED_OF_COLUMN = ("name", "type", "text")
_OPTIONAL_OF_COLUMN = ("unit", "nullable", "id_of")
# For each list of columns: the keys of its own that may be there, and those that must be.
_COLUMN_LISTS = {
    "columns": (("dictionary", "delta", "counter"), ()),
    "derived": ((), ("sql",)),
    "joined": (("column", "other_key"), ("table", "key")),
}


@dataclass(frozen=True)
class TableColumn:
    """A column of a table; `sql_type` is the type it has in a view.

    `id_of`: its values number the rows of that table, within one recording; or `cpus`: CPUs of a host; or
    `host`: they are names that a host gives to what it has. A merge of recordings keeps them apart.
    """

    name: str
    type: str
    unit: str | None
    nullable: bool
    text: str
    id_of: str | None = field(default=None, kw_only=True)

    @property
    def sql_type(self) -> str:
        """The type in SQL."""
        return SQL_TYPES[self.type]


@dataclass(frozen=True)
class DerivedColumn(TableColumn):
    """A column that the view computes from stored columns of the row `t`."""

    sql: str = ""

    @property
    def of_row(self) -> str:
        """Its SQL as a statement by itself."""
        return f"SELECT ({self.sql}\n) FROM t"


@dataclass(frozen=True)
class JoinedColumn(TableColumn):
    """A column that the view takes from the side table `table`: `column`, where `other_key` is our `key`."""

    table: str = ""
    key: str = ""
    column: str = ""
    other_key: str = ""

    @property
    def join(self) -> tuple[str, str, str]:
        """The table and the columns of its join. Columns with the same ones share one join."""
        return self.table, self.key, self.other_key


@dataclass(frozen=True)
class Table:
    """A table: its own columns, those its view computes and joins, and whether a recording stores it.

    `sql` of a summary is the SELECT over other tables that gives its own columns; `needs` names those tables,
    `uses` those that may be missing and have no rows then.
    A summary that is `stored`, too, is read where it lies, if nothing is filtered out and nothing is missing:
    its column `adds_up_to` must add up to the rows of the first table in `needs`.
    `about` is the family of events that fills it, of those that the captures of a recording name; None for
    tables that captures of all families share.
    `merged`: whether a merge of recordings takes its rows over; those of some tables mean nothing next to
    rows of another recording.
    """

    name: str
    text: str
    order: str
    stored: bool
    columns: tuple[TableColumn, ...]
    derived: tuple[DerivedColumn, ...] = field(default=())
    joined: tuple[JoinedColumn, ...] = field(default=())
    sql: str | None = None
    needs: tuple[str, ...] = ()
    uses: tuple[str, ...] = ()
    about: str | None = None
    adds_up_to: str | None = None
    merged: bool = True

    @property
    def all_columns(self) -> tuple[TableColumn, ...]:
        """Columns of the view, in its order."""
        return self.columns + self.derived + self.joined

    @property
    def side_tables(self) -> tuple[str, ...]:
        """Names of the tables that its joined columns come from."""
        return tuple(dict.fromkeys(column.table for column in self.joined))

    def has(self, column: str) -> bool:
        """Whether it has a column of its own (not a derived or joined one) of that name."""
        return any(own.name == column for own in self.columns)

    def expression(self, column: str) -> str | None:
        """SQL for a stored or derived column of the row `t`; None where it has neither."""
        if self.has(column):
            return f't."{column}"'
        return next((f"({derived.sql}\n)" for derived in self.derived if derived.name == column), None)


def undefined_table(name: str, columns: list[tuple[str, str]]) -> Table:
    """A table that no file defines, of a recorder unknown here: its columns by name and type in SQL.

    What is neither a number nor a truth value is text.
    """
    types = {sql: word for word, sql in SQL_TYPES.items()}
    types |= dict.fromkeys(("TINYINT", "SMALLINT", "UTINYINT", "USMALLINT"), "int32")
    types |= dict.fromkeys(("UINTEGER", "UBIGINT"), "int64") | dict.fromkeys(("FLOAT", "DECIMAL"), "float64")
    text = "Not described: sysdock has no definition of this table."
    own = tuple(
        TableColumn(column, types.get(type_.partition("(")[0], "string"), None, True, text)
        for column, type_ in columns
    )
    return Table(name, text, "Not stated.", True, own)


def read_toml(path: Path) -> dict[str, Any]:
    """The content of a TOML file; a UserError names the place of a mistake."""
    try:
        content = path.read_text("utf-8")
        noted: dict[str, Any] | None = _NOTED.get(content)
        return parse_toml(content) if noted is None else noted
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"cannot be read: {error}", place=str(path)) from None
    except ValueError as error:
        raise UserError(f"not TOML: {error}", place=str(path)) from None


def table_toml(path: Path) -> dict[str, Any]:
    """The content of a table's file, with the columns that it takes from another one: `counters_of`.

    `{sums}` in its SELECT stands for their sums.
    """
    data = _with_constant(read_toml(path), path)
    if "counters_of" not in data:
        return data
    try:
        wanted, columns = data["counters_of"], data["columns"]
        others = read_toml(path.with_name(f"{Path(wanted['table']).name}.toml"))["columns"]
        changes = {"nullable": wanted["nullable"]} if "nullable" in wanted else {}
        counters = [column | changes for column in others if column.get("counter")]
        place = [column["name"] for column in columns].index(wanted["after"]) + 1
        sums = ",\n    ".join(f"CAST(sum({name}) AS BIGINT) AS {name}" for name in _names(counters))
        return {
            **data,
            "columns": [*columns[:place], *counters, *columns[place:]],
            **({"sql": data["sql"].replace("{sums}", sums)} if "sql" in data else {}),
        }
    except KeyError as error:
        raise UserError(f"`counters_of`: key {error} is missing", place=str(path)) from None
    except (TypeError, AttributeError, ValueError) as error:
        raise UserError(f"`counters_of`: a key is not of its type: {error}", _HINT, str(path)) from None


def _with_constant(data: dict[str, Any], path: Path) -> dict[str, Any]:
    """With the SELECT of a table whose rows stand in its file, as `constant`."""
    if "constant" not in data:
        return data
    try:
        key, value = _names(data["columns"])
        rows = [(word, group) for group, words in data["constant"].items() for word in words.split()]
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise UserError(f"`constant`: not texts for two columns: {error}", _HINT, str(path)) from None
    if any("'" in text for row in rows for text in row):
        raise UserError("`constant`: a text contains a quotation mark", _HINT, str(path))
    selects = (f"SELECT '{word}' AS {key}, '{group}' AS {value}" for word, group in rows)
    return {**data, "sql": " UNION ALL ".join(selects)}


def _names(columns: Iterable[dict[str, Any]]) -> list[str]:
    return [column["name"] for column in columns]


def note_tables(paths: Iterable[Path]) -> None:
    """Notes what these files say, for `read_toml`: all of them are read for almost every command."""
    texts = [path.read_text("utf-8") for path in paths]
    _NOTED.write({text: tomllib.loads(text) for text in texts})


def parse_table(path: Path) -> Table:
    """Reads one table definition; a UserError names the file and the column of a mistake."""
    data = table_toml(path)
    _check_keys(Entries(path, _HINT), data)
    try:
        columns = tuple(TableColumn(**_column_fields(entry)) for entry in data["columns"])
        derived = tuple(
            DerivedColumn(**_column_fields(entry), sql=entry["sql"]) for entry in data.get("derived", [])
        )
        joined = tuple(
            JoinedColumn(
                **_column_fields(entry),
                table=entry["table"],
                key=entry["key"],
                column=entry.get("column", entry["name"]),
                other_key=entry.get("other_key", entry["key"]),
            )
            for entry in data.get("joined", [])
        )
        sql = data.get("sql")
        stored = data.get("stored", sql is None)
        needs = tuple(data.get("needs", ()))
        uses = tuple(data.get("uses", ()))
        head = data["name"], data["text"], data["order"], stored
        about, adds_up_to = data.get("about"), data.get("adds_up_to")
        merged = bool(data.get("merged", True))
        table = Table(*head, columns, derived, joined, sql, needs, uses, about, adds_up_to, merged)
    except (TypeError, AttributeError) as error:
        # A list where a table is wanted, and the like.
        raise UserError(f"a key is not of its type: {error}", _HINT, str(path)) from None
    texts = [table.name, table.text, table.order, *needs, *uses, *filter(None, (sql, about, adds_up_to))]
    texts += [text for column in table.all_columns for text in (column.name, column.type, column.text)]
    texts += [column.unit for column in table.all_columns if column.unit is not None]
    texts += [column.id_of for column in columns if column.id_of is not None]
    texts += [column.sql for column in derived]
    texts += [text for c in joined for text in (c.table, c.key, c.column, c.other_key)]
    if not all(isinstance(text, str) for text in texts):
        raise UserError("a key is not of its type: text is wanted", _HINT, str(path))
    for column in table.all_columns:
        if column.type not in SQL_TYPES:
            hint = f"the types are {', '.join(SQL_TYPES)}"
            raise UserError(f"column {column.name} has unknown type {column.type}", hint, str(path))
    stored_summary = table.stored and table.sql is not None
    if bool(table.sql) != bool(table.needs) or stored_summary != bool(table.adds_up_to):
        hint = "a summary has `sql` and `needs`, and if it is stored, `adds_up_to`"
        raise UserError("an incomplete summary", hint, str(path))
    if table.adds_up_to and not table.has(table.adds_up_to):
        raise UserError(f"`adds_up_to` names no column: {table.adds_up_to}", place=str(path))
    if table.name != path.stem:
        raise UserError(f"the name {table.name} does not match the file's", place=str(path))
    return table


def _check_keys(entries: Entries, data: dict[str, Any]) -> None:
    entries.closed("", data, _KEYS, _NEEDED)
    for key, (optional, needed) in _COLUMN_LISTS.items():
        needed = (*_NEEDED_OF_COLUMN, *needed)
        known = (*needed, *_OPTIONAL_OF_COLUMN, *optional)
        least, most = frozenset(needed), frozenset(known)
        for column in entries.entries(data, key):
            # Almost every command reads all of them: the mistake is looked for only where there is one.
            if not isinstance(column, dict) or not least <= column.keys() <= most:
                named = column.get("name") if isinstance(column, dict) else None
                entries.closed(f"column {named}" if named else f"an entry of `{key}`", column, known, needed)


def _column_fields(entry: dict[str, Any]) -> dict[str, Any]:
    # A joined column is NULL where the key is, so it always may be NULL.
    nullable = entry.get("nullable", "key" in entry)
    return {
        "name": entry["name"],
        "type": entry["type"],
        "unit": entry.get("unit"),
        "nullable": nullable,
        "text": entry["text"],
        "id_of": entry.get("id_of"),
    }
