"""Finding know-how."""

from __future__ import annotations

from pathlib import Path

import pytest
from sysdock.errors import UserError
from sysdock.library import Library
from sysdock.library.tables import parse_table

SQL = "-- Title\n-- needs: calls\n-- column: a BIGINT  A.\n-- was: io/former\nSELECT 1 AS a"


def test_the_id_is_the_path(pack) -> None:
    pack.add("b/two", SQL.replace("io/former", "b/old"))
    pack.add("a/one", SQL)
    pack.add("a/rule", "-- R\n-- needs: calls\nSELECT 1", kind="rules")
    library = pack.library
    assert [analysis.id for analysis in library.analyses()] == ["a/one", "b/two"]
    assert library.analysis("a/one").kind == "analysis"
    assert library.rule("a/rule").kind == "rule"


def test_an_earlier_id_still_works(pack) -> None:
    pack.add("a/one", SQL)
    assert pack.library.analysis("io/former").id == "a/one"


@pytest.mark.parametrize(
    ("ask", "hint"),
    [
        (lambda library: library.analysis("a/oen"), "did you mean a/one?"),
        (lambda library: library.analysis("one"), "did you mean a/one?"),
        (lambda library: library.analysis("zzz"), "see `sysdock list analyses`"),
        (lambda library: library.analysis("a/rule"), "see `sysdock diagnose REC`"),
        (lambda library: library.rule("zzz"), "see `sysdock list rules`"),
        (lambda library: library.table("callz"), "did you mean calls"),
        (lambda library: library.chart("zzz"), "see `sysdock list charts`"),
    ],
)
def test_unknown_names_suggest_near_ones(pack, ask, hint: str) -> None:
    pack.add("a/one", SQL)
    pack.add("a/rule", "-- R\n-- needs: calls\nSELECT 1", kind="rules")
    with pytest.raises(UserError) as caught:
        ask(pack.library)
    assert hint in (caught.value.hint or "")


def test_no_such_folder(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no such know-how folder"):
        Library(tmp_path / "nowhere")


def test_the_environment_names_the_folder(pack, monkeypatch: pytest.MonkeyPatch) -> None:
    pack.add("a/one", SQL)
    monkeypatch.setenv("SYSDOCK_KNOWHOW", str(pack.root))
    assert Library().analysis("a/one").title == "Title"


def test_tables_of_the_checkout(library: Library) -> None:
    calls = library.table("calls")
    assert [column.name for column in calls.columns][:2] == ["ts_ns", "dur_ns"]
    assert calls.side_tables == ("processes", "paths", "commands", "call_actions")
    assert [column.name for column in calls.joined] == [
        "pid",
        "tid",
        "process_id",
        "rank",
        "path",
        "kind",
        "comm",
        "to_path",
        "action",
    ]
    assert [column.join for column in calls.joined][-3:] == [
        ("commands", "comm_id", "comm_id"),
        ("paths", "to_path_id", "path_id"),
        ("call_actions", "call", "call"),
    ]
    assert calls.joined[-2].column == "path"
    assert [column.name for column in calls.derived] == ["result"]
    assert calls.expression("errno") == 't."errno"'
    assert calls.expression("result") == "(coalesce(t.value, t.transferred_bytes)\n)"
    assert calls.expression("path") is None
    # Only what is stored.
    assert calls.has("value")
    assert not any(calls.has(column.name) for column in (*calls.derived, *calls.joined))
    assert calls.columns[0].sql_type == "BIGINT"
    assert not library.table("recording").stored


@pytest.mark.parametrize(
    ("text", "fact", "key"),
    [
        ("name = ", "not TOML", ""),
        ('name = "x"\ntext = "t"\n', "the file lacks the key `order`", ""),
        (
            'name = "x"\ntext = "t"\norder = "o"\ncolumns = []\nstord = true\n',
            "unknown key `stord`",
            ": stord",
        ),
        (
            'name = "x"\ntext = "t"\norder = "o"\ncolumns = [{name = "a", type = "int64", test = "a"}]\n',
            "column a has the unknown key `test`",
            "",
        ),
    ],
)
def test_a_wrong_table_file_is_named(pack, text: str, fact: str, key: str) -> None:
    (pack.root / "tables").unlink()
    (pack.root / "tables").mkdir()
    (pack.root / "tables" / "x.toml").write_text(text)
    with pytest.raises(UserError, match=fact) as caught:
        pack.library.tables()
    assert caught.value.place == str(pack.root / "tables" / "x.toml") + key


def test_counters_of_another_table_are_columns_too_and_summed(pack) -> None:
    (pack.root / "tables").unlink()
    (pack.root / "tables").mkdir()
    of_one = '{name = "b", type = "int64", nullable = true, counter = true, text = "b"}'
    key = '{name = "a", type = "int64", text = "a"}'
    (pack.root / "tables" / "one.toml").write_text(
        f'name = "one"\ntext = "t"\norder = "o"\ncolumns = [{key}, {of_one}]\n'
    )
    (pack.root / "tables" / "two.toml").write_text(
        'name = "two"\ntext = "t"\norder = "o"\nneeds = ["one"]\nsql = "SELECT a, {sums}, c FROM one GROUP BY a, c"\n'
        'counters_of = {table = "one", after = "a", nullable = false}\n'
        f'columns = [{key}, {{name = "c", type = "int64", text = "c"}}]\n'
    )
    two = pack.library.table("two")
    assert [(column.name, column.nullable) for column in two.columns] == [
        ("a", False),
        ("b", False),
        ("c", False),
    ]
    assert two.sql == "SELECT a, CAST(sum(b) AS BIGINT) AS b, c FROM one GROUP BY a, c"


def test_a_table_that_takes_counters_of_none_is_named(pack) -> None:
    (pack.root / "tables").unlink()
    (pack.root / "tables").mkdir()
    text = 'name = "x"\ntext = "t"\norder = "o"\ncolumns = []\ncounters_of = {table = "y", after = "a"}\n'
    (pack.root / "tables" / "x.toml").write_text(text)
    with pytest.raises(UserError, match="cannot be read"):
        pack.library.tables()


def test_sources_of_a_summary_are_the_tables_behind_it(library: Library) -> None:
    assert library.sources(["call_use", "calls"]) == ["call_use", "calls", "object_use"]
    assert library.sources(["paths"]) == ["paths"]


@pytest.mark.parametrize(
    "rest",
    [
        "columns = 5",
        "columns = [1]",
        'columns = [{name = 1, type = "int64", text = "x"}]',
        'columns = [{name = "a", type = ["x"], text = "x"}]',
        'columns = [{name = "a", type = "int64", text = "x", unit = [1]}]',
        'columns = []\nneeds = 5\nsql = "x"',
        'columns = []\nderived = [{name = "a", type = "int64", text = "t", sql = 5}]',
        'columns = []\njoined = [{name = "a", type = "int64", text = "t", table = 5, key = "k"}]',
        "columns = []\nabout = [1]",
        "columns = []\ncounters_of = 5",
        'columns = []\ncounters_of = {table = 5, after = "a"}',
        "x = " + "[" * 100_000,
        "x = " + "9" * 9999,
    ],
)
def test_a_table_whose_keys_are_of_other_types_is_an_error_of_its_file(tmp_path: Path, rest: str) -> None:
    path = tmp_path / "t.toml"
    path.write_text(f'name = "t"\ntext = "x"\norder = "y"\n{rest}')
    with pytest.raises(UserError) as caught:
        parse_table(path)
    assert caught.value.place == str(path)
