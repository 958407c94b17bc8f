"""A user's SQL, in its limited process."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from make_recording import RecordingMaker
from sysdock.analysis.query import Outcome, query
from sysdock.errors import UserError
from sysdock.recording import Filters


class Asker:
    """Asks a recording and reads what was written."""

    def __init__(self, folder: Path, out: Path) -> None:
        self.folder = folder
        self.out = out
        self.outcome: Outcome | None = None

    def __call__(self, sql: str, format: str = "json", **options: object):
        with open(self.out, "w") as out:
            self.outcome = query(self.folder, sql, format=format, out=out, **options)
        text = self.out.read_text()
        return json.loads(text) if format == "json" else text


@pytest.fixture
def ask(maker: RecordingMaker, tmp_path: Path) -> Asker:
    """Asks about the sample, in a folder whose name needs quoting."""
    return Asker(maker.make(name="it's [a]"), tmp_path / "out")


def test_joined_columns(ask: Asker) -> None:
    rows = ask("SELECT path, comm, count(*) AS n FROM calls WHERE call = 'read' GROUP BY ALL ORDER BY n DESC")
    assert rows == [
        {"path": "/usr/share/doc/a.txt", "comm": "tar", "n": 2},
        {"path": "pipe:[42]", "comm": "cat", "n": 1},
    ]


def test_ids_of_threads_and_results(ask: Asker) -> None:
    rows = ask("SELECT pid, tid, result FROM calls WHERE call IN ('write', 'getpid') ORDER BY ts_ns")
    assert rows == [{"pid": 200, "tid": 201, "result": 7}, {"pid": 200, "tid": 200, "result": 200}]
    [row] = ask("SELECT count(*) AS n FROM calls", filters=Filters(process="200", only_ok=True))
    assert row == {"n": 2}


def test_a_recording_that_lacks_something_is_named(ask: Asker) -> None:
    path = ask.folder / "recording.json"
    manifest = json.loads(path.read_text())
    del manifest["tables"]["processes"]
    path.write_text(json.dumps(manifest))
    with pytest.raises(UserError, match="no table `processes`") as caught:
        ask("SELECT pid FROM calls")
    assert caught.value.place == str(ask.folder)


def test_filters_and_notes(ask: Asker) -> None:
    assert ask("SELECT count(*) AS n FROM calls", filters=Filters(file="nowhere")) == [{"n": 0}]
    assert ask.outcome
    assert "matches no path" in ask.outcome.notes[0]


def test_csv_and_table(ask: Asker) -> None:
    sql = "SELECT NULL AS a, '' AS b, 'x\"y' AS c, 1.5 AS d"
    assert ask(sql, "csv") == 'a,b,c,d\n,"","x""y",1.5\n'
    lines = ask("SELECT path, pid FROM calls WHERE call = 'write'", "table").splitlines()
    # A line break in a name must not break the table.
    assert lines[1] == '/tmp/it\'s "<script>"\\n,[x]*  200'


def test_the_limit(ask: Asker) -> None:
    assert len(ask("SELECT * FROM calls", limit=3)) == 3
    assert ask.outcome == Outcome(True, [], ask.outcome.lacking if ask.outcome else None)
    assert len(ask("SELECT * FROM calls", limit=8)) == 8
    assert ask.outcome
    assert not ask.outcome.more
    assert len(ask("SELECT * FROM range(25000)", limit=0)) == 25000


def test_values_of_many_types(ask: Asker) -> None:
    [row] = ask("SELECT [1, 2] AS l, DATE '2020-01-02' AS d, 1.25 AS k, 'nan'::DOUBLE AS x, 1 AS a, 2 AS a")
    assert row == {"l": [1, 2], "d": "2020-01-02", "k": 1.25, "x": None, "a": 1, "a_2": 2}


def test_explain(ask: Asker) -> None:
    assert "explain_value" in ask("EXPLAIN SELECT count(*) FROM calls")[0]


@pytest.mark.parametrize(
    ("sql", "fact"),
    [
        ("SELECT * FROM read_text('/etc/passwd')", "disabled by configuration"),
        ("SELECT * FROM read_csv('/etc/passwd')", "disabled by configuration"),
        ("SELECT * FROM '/etc/passwd'", ""),
        ("SELECT * FROM glob('/*')", ""),
        ("COPY (SELECT 1) TO 'x.csv'", "COPY statement is not allowed"),
        ("COPY calls TO 'calls/part-0000.parquet'", "COPY statement is not allowed"),
        ("EXPLAIN ANALYZE COPY (SELECT 1) TO 'x.csv'", "COPY statement is not allowed"),
        ("ATTACH 'x.db'", "ATTACH statement is not allowed"),
        ("SET lock_configuration = false", "SET statement is not allowed"),
        ("INSTALL httpfs", "is not allowed"),
        ("PRAGMA database_list", "is not allowed"),
        ("CREATE TABLE t AS SELECT 1", "CREATE statement is not allowed"),
        ("SELECT 1; SELECT 2", "2 statements instead of one"),
        ("", "0 statements instead of one"),
        ("SELEC 1", "syntax error"),
        ("SELECT nonsense FROM calls", "nonsense"),
        ("SELECT * FROM nonsense", "nonsense"),
        ("SELECT $x", ""),
    ],
)
def test_what_is_refused(ask: Asker, sql: str, fact: str) -> None:
    before = {path: path.read_bytes() for path in ask.folder.rglob("*") if path.is_file()}
    with pytest.raises(UserError) as caught:
        ask(sql)
    assert fact in caught.value.fact
    assert "\n" not in caught.value.fact
    assert {path: path.read_bytes() for path in ask.folder.rglob("*") if path.is_file()} == before


def test_mistakes_name_the_tables(ask: Asker) -> None:
    with pytest.raises(UserError) as caught:
        ask("SELECT * FROM call")
    assert "the tables are busy_loops, call_actions, call_use, calls" in (caught.value.hint or "")


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT length(string_agg(repeat('x', 100000000), '')) FROM range(200)",
        "SELECT repeat(repeat('x', 1000000000), 100)",
        "SELECT list(range) FROM range(10000000000)",
    ],
)
def test_a_memory_bomb_is_stopped(ask: Asker, sql: str) -> None:
    with pytest.raises(
        UserError, match=r"not enough memory|was stopped|out of range|exceed|too large|longer than"
    ):
        ask(sql, memory_mb=256, seconds=20)


def test_time_is_limited(ask: Asker) -> None:
    # Without a limit it would take many minutes.
    with pytest.raises(UserError, match="exceeded its time limit"):
        ask("SELECT count(*) FROM range(100000000000000) AS a WHERE a.range * 3 % 7 = 9", seconds=1)


def test_damage_is_noticed(ask: Asker) -> None:
    part = ask.folder / "calls" / "part-0000.parquet"
    data = bytearray(part.read_bytes())
    data[50] ^= 1
    part.write_bytes(data)
    with pytest.raises(UserError, match="does not match the hash"):
        ask("SELECT count(*) FROM calls")


def test_only_the_recording_can_be_read(maker: RecordingMaker, tmp_path: Path) -> None:
    """The operating system refuses what the engine would let pass (where the kernel has Landlock)."""
    import subprocess
    import sys

    code = (
        "import sys; from pathlib import Path; from sysdock.analysis import sandbox\n"
        "lacking = sandbox.confine(1 << 34, 100, [Path(sys.argv[1])], Path(sys.argv[2]))\n"
        "print(lacking or 'confined')\n"
        "print(open(sys.argv[1] + '/recording.json').read(1))\n"
        "open(sys.argv[2] + '/spill', 'w').write('x')\n"
        "for act in (lambda: open('/etc/passwd'), lambda: open(sys.argv[1] + '/new', 'w')):\n"
        "    try: act(); print('allowed')\n"
        "    except PermissionError: print('refused')\n"
        "import os; print(os.system('true') != 0)\n"
    )
    spill = tmp_path / "spill"
    spill.mkdir()
    done = subprocess.run(
        [sys.executable, "-c", code, maker.make(), spill], capture_output=True, text=True, check=False
    )
    lines = done.stdout.split("\n")
    if lines[0] != "confined":
        pytest.skip(lines[0])
    assert lines[1:6] == ["{", "refused", "refused", "True", ""]
