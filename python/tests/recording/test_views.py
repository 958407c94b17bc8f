"""Views: joined columns, empty tables, and what they cost."""

from __future__ import annotations

import contextlib
import json

import pytest
from make_recording import RecordingMaker
from sysdock.analysis import Session
from sysdock.analysis.portable import violations
from sysdock.errors import UserError
from sysdock.library import Library
from sysdock.recording import Filters, Recording, Views, connect
from sysdock.recording.mentions import mentions


def test_joined_columns_and_null(maker: RecordingMaker, open_session) -> None:
    rows = open_session(maker.make()).fetch("SELECT call, path, kind, comm, dur_ns FROM calls ORDER BY ts_ns")
    assert rows[0] == ("openat", "/usr/share/doc/a.txt", "file", "tar", 20_000)
    assert rows[5] == ("getpid", None, None, "cat", None)


def test_both_files_of_a_copy_have_their_names(maker: RecordingMaker, open_session) -> None:
    copy = {"call": "sendfile", "class": "copy", "path": "/in", "to_path": "/out", "transferred_bytes": 7}
    session = open_session(maker.make([copy, {"t": 1, "call": "read", "path": "/in"}]))
    assert session.fetch("SELECT path, to_path, kind FROM calls ORDER BY ts_ns") == [
        ("/in", "/out", "file"),
        ("/in", None, "file"),
    ]
    assert session.fetch("SELECT call FROM calls WHERE to_path = '/out'") == [("sendfile",)]


def test_the_result_is_derived_from_what_is_stored_once(maker: RecordingMaker, open_session) -> None:
    calls = [
        {"t": 0, "call": "read", "transferred_bytes": 7, "result": 7},
        {"t": 1, "call": "openat", "result": 3},
        {"t": 2, "call": "write", "transferred_bytes": 5, "result": -1},
        {"t": 3, "call": "read", "errno": "EIO"},
    ]
    session = open_session(maker.make(calls))
    rows = session.fetch("SELECT result, value, transferred_bytes FROM calls ORDER BY ts_ns")
    assert rows == [(7, None, 7), (3, 3, None), (-1, -1, 5), (None, None, None)]


def test_ids_of_threads_come_from_their_lives(maker: RecordingMaker, open_session) -> None:
    session = open_session(maker.make(signals=[{"t": 1, "signal": "SIGCHLD", "pid": 200, "tid": 201}]))
    assert session.fetch("SELECT DISTINCT pid, tid FROM calls ORDER BY ALL") == [
        (100, 100),
        (200, 100),
        (200, 200),
        (200, 201),
    ]
    assert session.fetch("SELECT signal, pid, tid FROM signals") == [("SIGCHLD", 200, 201)]
    both = "SELECT c.call FROM calls AS c JOIN signals AS s ON s.task_id = c.task_id"
    assert session.fetch(both) == [("write",)]


@pytest.mark.parametrize(
    ("sql", "fact"),
    [
        ("coalesce(t.a, t.c)", "`c` is not a stored column"),
        ("a + 1", "not an expression of columns"),
        ("(SELECT max(content) FROM read_text('/etc/passwd'))", "not an expression of columns"),
        ("(SELECT max(path) FROM paths)", "not an expression of columns"),
        ("1) FROM read_text('/etc/passwd') AS t --", "not an expression of columns"),
        ("t.a +", "not an expression of columns"),
    ],
)
def test_a_derived_column_sees_its_row_only(pack, maker: RecordingMaker, sql: str, fact: str) -> None:
    (pack.root / "tables").unlink()
    (pack.root / "tables").mkdir()
    column = 'name = "{}"\ntype = "int64"\ntext = "A column."\n'
    text = 'name = "things"\ntext = "One row per thing."\norder = "None."\n'
    text += f"[[columns]]\n{column.format('a')}[[derived]]\n{column.format('b')}sql = {json.dumps(sql)}\n"
    (pack.root / "tables" / "things.toml").write_text(text)
    views = Views(Recording.open(maker.write({})), pack.library)
    views.recording.manifest["tables"]["things"] = {"rows": 0, "parts": []}
    with pytest.raises(UserError, match=fact):
        views.make(["things"])
    views.close()


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
    sql = "SELECT command, host, clock, has_durations, complete FROM recording"
    assert session.fetch(sql) == [('it\'s "x"; --', None, "epoch", True, False)]
    sql = "SELECT recorder, about, unit, total, understood, lost, has_durations, complete FROM captures"
    assert session.fetch(sql) == [("strace-log", "calls", "lines", 8, 8, 0, True, False)]


@pytest.mark.parametrize(
    ("sql", "joins"),
    [
        ("SELECT call, count(*) FROM calls GROUP BY call", 0),
        ("SELECT count(*) FILTER (WHERE errno IS NULL) FROM calls", 0),
        ("WITH s AS (SELECT call, count(*) AS n FROM calls GROUP BY call) SELECT * FROM s", 0),
        ("SELECT result FROM calls", 0),
        ("SELECT path FROM calls", 1),
        ("SELECT pid, tid FROM calls", 1),
        ("SELECT path, kind, to_path FROM calls", 2),
        ("SELECT p.pid, c.result FROM calls AS c JOIN processes AS p ON p.task_id = c.task_id", 0),
        ("SELECT p.pid, c.pid FROM calls AS c JOIN processes AS p ON p.task_id = c.task_id", 1),
        ("SELECT pid FROM (SELECT path, pid FROM calls) AS c", 2),
        ("SELECT count(*) FROM calls WHERE comm = 'cat'", 1),
        ("SELECT path, comm FROM calls", 2),
        ("SELECT * FROM calls", 5),
        ("SELECT c.* EXCLUDE (path) FROM calls AS c", 5),
        ("SELECT c FROM calls AS c", 5),
        ("SELECT COLUMNS('pa.*') FROM calls", 5),
        ("FROM calls", 5),
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
    rewrite(folder, "SELECT * EXCLUDE (task_id) FROM t")
    with pytest.raises(UserError, match="has no column `task_id`") as caught:
        open_session(folder).fetch("SELECT count(*) FROM calls")
    assert "import the log again" in caught.value.hint


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


def test_summaries_are_what_their_definitions_say(library: Library, maker: RecordingMaker) -> None:
    summaries = [table for table in library.tables() if table.sql]
    assert {table.name for table in summaries} >= {"totals", "call_use", "file_use", "file_groups"}
    with contextlib.ExitStack() as opened:
        recordings = [Recording.open(path) for path in maker.make_each_kind()]
        sessions = [opened.enter_context(Session(recording, library)) for recording in recordings]
        for table in summaries:
            session = next(session for session in sessions if table.name in session.views.available)
            session.fetch(f"SELECT * FROM {table.name}")
            session.views.prepare(table.sql)
            description = session.views.connection.execute(f"SELECT * FROM ({table.sql}) LIMIT 0").description
            assert [entry[0] for entry in description] == [column.name for column in table.columns]
            # A text made of frames in their order needs an ordered aggregate, which the subset lacks.
            assert table.name == "stack_texts" or violations(session.views.connection, table.sql) == []
            named = mentions(session.views.connection, table.sql)
            reads = set() if table.name == "call_actions" else {*table.needs, *table.uses}
            assert named.tables & {each.name for each in library.tables()} == reads


def test_a_summary_is_counted_over_the_filtered_calls(library: Library, maker: RecordingMaker) -> None:
    folder = maker.make()
    for filters, expected in ((Filters(), None), (Filters(call="read"), "read")):
        with Session(Recording.open(folder), library, filters) as session:
            [(total,)] = session.fetch("SELECT calls FROM totals")
            where = f"WHERE call = '{expected}'" if expected else ""
            [(counted,)] = session.fetch(f"SELECT count(*) FROM calls {where}")
            assert total == counted > 0


def test_a_missing_value_is_an_error_of_its_own(maker: RecordingMaker, open_session) -> None:
    """No recorder leaves one out where there must be one; a recording of a stranger may."""
    row = {"t": 0.1, "call": "read", "path": "/a"}
    whole = open_session(maker.make([row], name="whole", host="elsewhere"))
    assert whole.fetch("SELECT call FROM calls") == [("read",)]
    lacking = open_session(maker.make([{**row, "call": None}], name="lacking", host="elsewhere"))
    # Only those who read it see the error.
    assert lacking.fetch("SELECT path FROM calls") == [("/a",)]
    with pytest.raises(UserError, match=r"calls\.call: a value is missing"):
        lacking.fetch("SELECT call FROM calls")
