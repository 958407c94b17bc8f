"""The tables for ClickHouse have the columns of the lake, in its order and types."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
SQL = ROOT / "python/wheel-data/data/share/sysdock/clickhouse/tables.sql"
# By what a time line, or a question about one job, reads.
ORDERS = {
    "job_samples": ("ts_ns", "cluster, job_id, node, ts_ns"),
    "job_totals": ("ended_ns", "cluster, job_id, node, ended_ns"),
    "job_files": ("ended_ns", "cluster, job_id, node, ended_ns"),
    "agent_batches": ("ts_ns", "cluster, node, ts_ns"),
}
TYPES = {"int64": "Int64", "string": "String", "bool": "Bool", "int32": "Int32", "float64": "Float64"}


def type_of(column: dict[str, object]) -> str:
    """ClickHouse's type of a column."""
    type_ = TYPES[str(column["type"])]
    if column.get("nullable"):
        type_ = f"Nullable({type_})"
    return f"LowCardinality({type_})" if column.get("dictionary") else type_


def statement(name: str) -> str:
    """What makes a table as its definition has it."""
    columns = tomllib.loads((ROOT / f"knowhow/tables/{name}.toml").read_text())["columns"]
    lines = ",\n".join(f'    "{column["name"]}" {type_of(column)}' for column in columns)
    time, order = ORDERS[name]
    return (
        f"CREATE TABLE sysdock.{name} (\n{lines}\n) ENGINE = MergeTree\n"
        f"PARTITION BY toYYYYMM(fromUnixTimestamp64Nano({time}))\n"
        f"ORDER BY ({order})\nSETTINGS allow_nullable_key = 1;\n"
    )


@pytest.mark.parametrize("name", sorted(ORDERS))
def test_columns_are_those_of_the_lake(name: str) -> None:
    assert statement(name) in SQL.read_text()


def test_there_is_no_other_table() -> None:
    assert SQL.read_text().count("CREATE TABLE") == len(ORDERS)
