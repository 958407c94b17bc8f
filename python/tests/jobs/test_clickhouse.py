"""The tables for ClickHouse have the columns of the lake, in its order and types."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from sysdock.library import Library

ROOT = Path(__file__).resolve().parents[3]
TEXT = (ROOT / "python/wheel-data/data/share/sysdock/clickhouse/tables.sql").read_text("utf-8")
STATEMENTS = dict(re.findall(r"(?ms)^CREATE TABLE sysdock\.(\w+) \(\n(.*?^SETTINGS .*?;)$", TEXT))
TYPES = {"int64": "Int64", "string": "String", "bool": "Bool", "int32": "Int32", "float64": "Float64"}


def test_the_tables_of_a_lake_are_there_and_no_other() -> None:
    assert sorted(STATEMENTS) == ["agent_batches", "job_files", "job_samples", "job_totals"]
    assert TEXT.count("CREATE TABLE") == 4


@pytest.mark.parametrize("name", STATEMENTS)
def test_columns_are_those_of_the_lake(library: Library, name: str) -> None:
    found = re.findall(r'(?m)^    "(\w+)" (.*?),?$', STATEMENTS[name])
    columns = library.table(name).columns
    assert [column for column, _ in found] == [column.name for column in columns]
    for column, (_, type_) in zip(columns, found, strict=True):
        plain = type_.removeprefix("LowCardinality(").removesuffix(")") if "LowC" in type_ else type_
        wanted = TYPES[column.type]
        assert plain == (f"Nullable({wanted})" if column.nullable else wanted), column.name


@pytest.mark.parametrize("name", STATEMENTS)
def test_rows_are_ordered_and_divided_by_their_columns(library: Library, name: str) -> None:
    [time] = re.findall(r"PARTITION BY toYYYYMM\(fromUnixTimestamp64Nano\((\w+)\)\)", STATEMENTS[name])
    [order] = re.findall(r"ORDER BY \((.*)\)", STATEMENTS[name])
    names = {column.name for column in library.table(name).columns}
    assert {time, *order.split(", ")} <= names
    assert order.endswith(time)
