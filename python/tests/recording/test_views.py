"""Views: joined columns, empty tables, and what they cost."""

from __future__ import annotations

import json

import pytest
from make_recording import RecordingMaker
from sysdock.errors import UserError
from sysdock.library import Library
from sysdock.recording import Filters, Recording, Views, connect
from sysdock.recording.mentions import mentions


def test_joined_columns_and_null(maker: RecordingMaker, open_session) -> None:
    rows = open_session(maker.make()).fetch("SELECT call, path, kind, comm, dur_ns FROM calls ORDER BY ts_ns")
    assert rows[0] == ("openat", "/usr/share/doc/a.txt", "file", "tar", 20_000)
    assert rows[5] == ("getpid", None, None, "cat", None)


def test_a_table_without_rows_has_its_columns(maker: RecordingMaker, open_session, library: Library) -> None:
    session = open_session(maker.make(calls=[]))
    assert session.fetch("SELECT * FROM calls") == []
    names = [entry[0] for entry in session.views.connection.description]
    assert names == [column.name for column in library.table("calls").all_columns]
    types = [str(entry[1]) for entry in session.views.connection.description]
    assert types == [column.sql_type for column in library.table("calls").all_columns]


def test_the_recording_row(maker: RecordingMaker, open_session) -> None:
    folder = maker.make(command='it\'s "x"; --', host=None, complete=False)
    session = open_session(folder)
    sql = "SELECT command, host, clock, has_durations, lines_total, complete FROM recording"
    assert session.fetch(sql) == [('it\'s "x"; --', None, "epoch", True, 8, False)]


@pytest.mark.parametrize(
    ("sql", "joins"),
    [
        ("SELECT call, count(*) FROM calls GROUP BY call", 0),
        ("SELECT count(*) FILTER (WHERE errno IS NULL) FROM calls", 0),
        ("WITH s AS (SELECT call, count(*) AS n FROM calls GROUP BY call) SELECT * FROM s", 0),
        ("SELECT path FROM calls", 1),
        ("SELECT count(*) FROM calls WHERE comm = 'cat'", 1),
        ("SELECT path, comm FROM calls", 2),
        ("SELECT * FROM calls", 2),
        ("SELECT c.* EXCLUDE (path) FROM calls AS c", 2),
        ("SELECT c FROM calls AS c", 2),
        ("SELECT COLUMNS('pa.*') FROM calls", 2),
        ("FROM calls", 2),
        ("SELECT count(*) FROM calls JOIN (SELECT '/usr/share/doc/a.txt' AS path) AS p USING (path)", 1),
        ("SELECT (SELECT min(kind) FROM calls)", 1),
    ],
)
def test_side_tables_are_joined_only_where_needed(
    maker: RecordingMaker, library: Library, sql: str, joins: int
) -> None:
    views = Views(Recording.open(maker.make()), library)
    views.prepare(sql)
    [(definition,)] = views.connection.execute(
        "SELECT sql FROM duckdb_views() WHERE view_name = 'calls'"
    ).fetchall()
    assert definition.upper().count("LEFT JOIN") == joins
    assert views.connection.execute(sql).fetchall()
    views.close()


def test_only_what_is_read_is_verified(maker: RecordingMaker, open_session) -> None:
    folder = maker.make()
    (folder / "paths" / "part-0000.parquet").write_bytes(b"damaged")
    session = open_session(folder)
    assert session.fetch("SELECT count(*) FROM calls") == [(8,)]
    with pytest.raises(UserError, match="bytes instead of"):
        session.fetch("SELECT path FROM calls")


def test_a_column_of_the_result_is_not_taken_for_the_table(maker: RecordingMaker, library: Library) -> None:
    views = Views(Recording.open(maker.make()), library)
    counted = "SELECT call, count(*) AS calls FROM calls GROUP BY call ORDER BY calls"
    nested = f"WITH a AS ({counted}) SELECT calls FROM a ORDER BY calls"
    assert not mentions(views.connection, counted).starred
    assert not mentions(views.connection, f"SELECT * FROM ({counted}) AS result").starred
    assert not mentions(views.connection, nested).starred
    whole_rows = "SELECT (SELECT max(c) FROM paths) FROM calls AS c"
    assert mentions(views.connection, whole_rows).starred == {"calls"}
    views.close()


def test_mentions_of_what_is_not_a_select(maker: RecordingMaker, library: Library) -> None:
    views = Views(Recording.open(maker.make()), library)
    assert mentions(views.connection, "EXPLAIN SELECT 1") is None
    assert mentions(views.connection, "SELECT FROM WHERE") is None
    assert mentions(views.connection, "SELECT 1; SELECT 2") is None
    views.close()


def test_connect_gives_complete_views(maker: RecordingMaker, library: Library) -> None:
    connection = connect(Recording.open(maker.make()), library, ["calls"], Filters(call="write"))
    assert connection.execute("SELECT call, comm FROM calls").fetchall() == [("write", "cat")]
    connection.close()


def test_a_column_of_a_newer_table_is_null(
    maker: RecordingMaker, library: Library, tmp_path, open_session
) -> None:
    folder = maker.make()
    rewrite(folder, "SELECT * EXCLUDE (offset_bytes), 1 AS unheard_of FROM t")
    assert open_session(folder).fetch("SELECT offset_bytes, count(*) FROM calls GROUP BY ALL") == [(None, 8)]
    rewrite(folder, "SELECT * EXCLUDE (ts_ns) FROM t")
    with pytest.raises(UserError, match="has no column `ts_ns`"):
        open_session(folder).fetch("SELECT count(*) FROM calls")


def rewrite(folder, select: str) -> None:
    """Replaces the calls by a SELECT over them, as another version might have written them."""
    import duckdb
    from make_recording import part_entry

    part = folder / "calls" / "part-0000.parquet"
    connection = duckdb.connect()
    connection.execute(f"CREATE TABLE t AS FROM '{part}'")
    connection.execute(f"COPY ({select}) TO '{part}' (FORMAT parquet)")
    manifest = json.loads((folder / "recording.json").read_text())
    manifest["tables"]["calls"]["parts"] = [part_entry(folder, part, 8)]
    (folder / "recording.json").write_text(json.dumps(manifest))
