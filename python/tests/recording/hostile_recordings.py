"""Recordings that no recorder would write: made of good ones by changes that follow from a number.

`make(number, folder)` gives the same recording for the same number. What is changed: recording.json (keys,
types, sizes, places of parts, its text) or a Parquet part (bytes, columns, types, values), with hashes that
are right, as a stranger would make them.
"""

from __future__ import annotations

import json
import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
from make_recording import RecordingMaker, part_entry, sample_calls
from sysdock.library import Library

MOST = 2**63 - 1
STEERING = "\x1b[2J\x07\u202e\u0085=+\"'<script>`|"
VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, MOST, -MOST - 1, 2**64, 10**40, 0.5, 1e308, float("nan"), float("inf")),
    *("", "x", STEERING, "x" * 100_000, "\ud800", "../../../etc/passwd", "/etc/passwd", "%s{0}$x"),
    *([], {}, [None], [[]], {"": None}, [{}], ["x", 1], {"family": 1}),
)
# A column in SQL, `c`, and what becomes of it.
COLUMNS = (
    "NULL", "CAST(9223372036854775807 AS BIGINT)", "CAST(-9223372036854775808 AS BIGINT)", "CAST(-1 AS BIGINT)",
    "CAST(2147483647 AS INTEGER)", "'abc'", "''", "CAST('nan' AS DOUBLE)", "CAST('inf' AS DOUBLE)", "CAST(c AS VARCHAR)",
    "CAST('\\xFF\\x00' AS BLOB)", "[c, c]", "{'a': c}", "TIMESTAMPTZ '2026-01-01 00:00:00+00'", "INTERVAL 1 DAY",
    "CAST(170141183460469231731687303715884105727 AS HUGEINT)", "CAST(1e300 AS DOUBLE)", "true", "repeat('x', 3000000)",
    "CAST(row_number() OVER () * 1000000007 AS BIGINT)", "chr(27) || chr(8238) || '=1+1' || chr(10) || CAST(c AS VARCHAR)",
    "uuid()", "CAST(c AS VARCHAR) || repeat('/a', 2000)", "DATE '9999-12-31'", "CAST(1.5 AS DECIMAL(38, 10))",
)  # fmt: skip
Change = Callable[[random.Random, Path], None]


def make_good(folder: Path) -> list[Path]:
    """Recordings of calls, of a scan and of an experiment, to be changed."""
    folder.mkdir(parents=True, exist_ok=True)
    maker = RecordingMaker(Library(), folder)
    issue = {
        "source": "t.log",
        "line": 3,
        "issue": "unknown line",
        "understood": False,
        "detail": "x",
        "excerpt": "y",
    }
    frame = {"frame": 0, "function": "main", "object": "/bin/a", "source": "a.c:1"}
    calls = [{**call, "stack_id": 0} for call in sample_calls()]
    rich = maker.make(calls, "calls", import_issues=[issue], stacks=[{"stack_id": 0, **frame}])
    return [rich, maker.make_scan(), maker.make_experiment()]


def make(number: int, good: list[Path], folder: Path) -> str:
    """Writes recording `number` into `folder`, new; says what was done to it."""
    chance = random.Random(number)
    # Most of what is read is in a recording of calls.
    shutil.copytree(chance.choice([good[0], *good]), folder)
    change = CHANGES[number % len(CHANGES)]
    change(chance, folder)
    return change.__name__.strip("_")


def read(folder: Path) -> dict[str, Any]:
    """The content of recording.json."""
    content: dict[str, Any] = json.loads((folder / "recording.json").read_text())
    return content


def write(folder: Path, manifest: object) -> None:
    """Replaces recording.json; NaN and halves of characters are written as Python writes them."""
    (folder / "recording.json").write_text(json.dumps(manifest))


def _places(value: Any) -> list[tuple[Any, Any]]:
    """All members of objects and lists: their holder and their key."""
    found: list[tuple[Any, Any]] = []
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in list(pairs):
        found += [(value, key), *_places(inner)]
    return found


def _value_of_a_key(chance: random.Random, folder: Path) -> None:
    manifest = read(folder)
    holder, key = chance.choice(_places(manifest))
    holder[key] = chance.choice(VALUES)
    write(folder, manifest)


def _key_left_out(chance: random.Random, folder: Path) -> None:
    manifest = read(folder)
    holder, key = chance.choice(_places(manifest))
    del holder[key]
    write(folder, manifest)


def _times_and_counts(chance: random.Random, folder: Path) -> None:
    manifest = read(folder)
    numbers = [
        (h, k)
        for h, k in _places(manifest)
        if type(h[k]) is int and k not in ("bytes", "rows", "format_version")
    ]
    for holder, key in chance.sample(numbers, min(4, len(numbers))):
        holder[key] = chance.choice([0, 1, -1, MOST, -MOST - 1, 2**62])
    write(folder, manifest)


def _text_of_the_manifest(chance: random.Random, folder: Path) -> None:
    data = bytearray((folder / "recording.json").read_bytes())
    for _ in range(chance.choice([1, 3, 20])):
        data[chance.randrange(len(data))] = chance.choice(b'{}[]",:0123456789eE.-nul\\\x00\xff')
    if chance.random() < 0.3:
        del data[chance.randrange(len(data)) :]
    (folder / "recording.json").write_bytes(data)


def _manifest_as_a_whole(chance: random.Random, folder: Path) -> None:
    depth = chance.choice([30, 990, 100_000])
    texts = (
        "",
        "null",
        "[]",
        '"x"',
        "1",
        "{" * depth,
        "[" * depth + "]" * depth,
        '{"a":' * depth + "1" + "}" * depth,
        "9" * 10_000,
    )
    # What no parser of numbers takes is of one sort only.
    text = chance.choice([*texts, texts[-1], texts[-1], texts[-1]])
    if chance.random() < 0.5:
        text = json.dumps(read(folder)).replace("{", '{"later": ' + (text or "0") + ", ", 1)
    (folder / "recording.json").write_text(text)


def _many_captures(chance: random.Random, folder: Path) -> None:
    manifest = read(folder)
    if isinstance(manifest.get("captures"), list) and manifest["captures"]:
        manifest["captures"] *= chance.choice([2, 900, 1001, 20_000])
    write(folder, manifest)


def _table_of_another_name(chance: random.Random, folder: Path) -> None:
    manifest = read(folder)
    tables = manifest["tables"]
    name = chance.choice(list(tables))
    new = chance.choice(
        [
            "CALLS",
            "select",
            "recording",
            "captures",
            "totals",
            "object_use",
            "a b",
            "sysdock_sum_totals",
            "pg_class",
            "ß",
            "",
        ]
    )
    tables[new] = tables.pop(name) if chance.random() < 0.5 else tables[name]
    write(folder, manifest)


def _parts_mixed_up(chance: random.Random, folder: Path) -> None:
    manifest = read(folder)
    entries = [entry for entry in manifest["tables"].values() if entry["parts"]]
    one, other = chance.choice(entries), chance.choice(entries)
    how = chance.randrange(4)
    if how == 0:
        one["parts"] = one["parts"] * 2
        one["rows"] *= 2
    elif how == 1:
        one["parts"], other["parts"] = other["parts"], one["parts"]
    elif how == 2:
        one["parts"], other["parts"] = other["parts"], one["parts"]
        one["rows"], other["rows"] = other["rows"], one["rows"]
    else:
        one["rows"] = one["parts"][0]["rows"] = chance.choice([0, 1, 10**6, MOST])
    write(folder, manifest)


def _a_part_that_is_no_file(chance: random.Random, folder: Path) -> None:
    path = _some_part(chance, folder)[1]
    path.unlink()
    how = chance.randrange(5)
    if how == 0:
        path.symlink_to("/etc/passwd")
    elif how == 1:
        os.mkfifo(path)
    elif how == 2:
        path.mkdir()
    elif how == 3:
        path.symlink_to("/dev/zero")
    else:
        path.parent.rmdir()
        path.parent.symlink_to("/etc")


def _bytes_of_a_part(chance: random.Random, folder: Path) -> None:
    name, path = _some_part(chance, folder)
    data = bytearray(path.read_bytes())
    for _ in range(chance.choice([1, 2, 10, 100])):
        # The footer lies at the end.
        at = (
            chance.randrange(len(data))
            if chance.random() < 0.5
            else -chance.randrange(1, min(len(data), 300))
        )
        data[at] = chance.randrange(256)
    path.write_bytes(data)
    _state(folder, name, path)


def _a_part_cut_short(chance: random.Random, folder: Path) -> None:
    name, path = _some_part(chance, folder)
    data = path.read_bytes()
    choices = (b"", b"PAR1", data[: chance.randrange(len(data))], data[4:], b"x" * 1000, data + b"PAR1")
    path.write_bytes(chance.choice(choices))
    _state(folder, name, path)


def _a_column(chance: random.Random, folder: Path) -> None:
    name, path = _some_part(chance, folder)
    column = chance.choice(_columns_of(path))
    new = chance.choice(COLUMNS).replace("(c ", f'("{column}" ').replace("c,", f'"{column}",')
    new = new.replace(" c]", f' "{column}"]').replace(": c}", f': "{column}"}}')
    _rewrite(folder, name, path, f'SELECT * REPLACE ({new} AS "{column}") FROM t')


def _numbers_of_a_column(chance: random.Random, folder: Path) -> None:
    name, path = _some_part(chance, folder)
    column = chance.choice(_columns_of(path))
    number = chance.choice([MOST, -MOST - 1, 2**31 - 1, -1, 0, 2**62])
    some = chance.choice(["true", "random() < 0.5", "row_number() OVER () = 1"])
    new = f'CASE WHEN {some} THEN TRY_CAST({number} AS BIGINT) ELSE TRY_CAST("{column}" AS BIGINT) END'
    _rewrite(folder, name, path, f'SELECT * REPLACE ({new} AS "{column}") FROM t')


def _other_columns(chance: random.Random, folder: Path) -> None:
    name, path = _some_part(chance, folder)
    column = chance.choice(_columns_of(path))
    selects = (
        f'SELECT * EXCLUDE ("{column}") FROM t' if len(_columns_of(path)) > 1 else "SELECT 1 AS x FROM t",
        f'SELECT * RENAME ("{column}" AS "{column.upper()}x") FROM t',
        'SELECT *, 1 AS "more ""columns""" FROM t',
        "SELECT 1 AS x",
        "SELECT * FROM t WHERE false",
    )
    _rewrite(folder, name, path, chance.choice(selects))


def _many_rows(chance: random.Random, folder: Path) -> None:
    name, path = _some_part(chance, folder)
    times = chance.choice([2, 1000, 100_000])
    _rewrite(folder, name, path, f"SELECT t.* FROM t, range({times})")


def _long_texts(chance: random.Random, folder: Path) -> None:
    name, path = _some_part(chance, folder)
    connection = _connect()
    described = connection.execute(f"DESCRIBE SELECT * FROM read_parquet('{path}')").fetchall()
    texts = [entry[0] for entry in described if entry[1] == "VARCHAR"]
    connection.close()
    if texts:
        column, length = chance.choice(texts), chance.choice([10_000, 1_000_000, 60_000_000])
        _rewrite(
            folder, name, path, f"SELECT * REPLACE (repeat('x', {length}) AS \"{column}\") FROM t LIMIT 3"
        )


CHANGES: tuple[Change, ...] = (
    _value_of_a_key, _a_column, _bytes_of_a_part, _numbers_of_a_column, _key_left_out, _times_and_counts, _other_columns,
    _text_of_the_manifest, _parts_mixed_up, _a_part_cut_short, _a_column, _manifest_as_a_whole, _a_part_that_is_no_file, _many_captures,
    _numbers_of_a_column, _table_of_another_name, _long_texts, _many_rows,
)  # fmt: skip


def _connect() -> duckdb.DuckDBPyConnection:
    return duckdb.connect(config={"threads": "1", "memory_limit": "1GB"})


def _some_part(chance: random.Random, folder: Path) -> tuple[str, Path]:
    """A table that has rows, and its part."""
    tables = read(folder)["tables"]
    name = chance.choice([name for name, entry in tables.items() if entry["parts"]])
    return name, folder / tables[name]["parts"][0]["file"]


def _columns_of(path: Path) -> list[str]:
    connection = _connect()
    try:
        rows = connection.execute(f"DESCRIBE SELECT * FROM read_parquet('{path}')").fetchall()
    finally:
        connection.close()
    return [row[0] for row in rows]


def _rewrite(folder: Path, name: str, path: Path, select: str) -> None:
    """Makes the part anew from its rows, the table `t`; a change that does not fit them is none."""
    connection = _connect()
    try:
        connection.execute(f"CREATE TABLE t AS SELECT * FROM read_parquet('{path}')")
        new = path.with_suffix(".new")
        connection.execute(f"COPY ({select}) TO '{new}' (FORMAT parquet, COMPRESSION zstd)")
        [(rows,)] = connection.execute(f"SELECT count(*) FROM read_parquet('{new}')").fetchall()
    except duckdb.Error:
        return
    finally:
        connection.close()
    new.replace(path)
    _state(folder, name, path, rows)


def _state(folder: Path, name: str, path: Path, rows: int | None = None) -> None:
    """States size, hash and rows of a part as they are now."""
    manifest = read(folder)
    entry = manifest["tables"][name]
    rows = entry["rows"] if rows is None else rows
    entry |= {"rows": rows, "parts": [part_entry(folder, path, rows)]}
    write(folder, manifest)
