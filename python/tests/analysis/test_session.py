"""Running analyses."""

from __future__ import annotations

import pytest
from make_recording import RecordingMaker
from sysdock.errors import UserError
from sysdock.sections import all_sections, sections_of

SQL = """\
-- Calls
-- needs:  calls
-- param:  min_ns BIGINT = 0   Shortest [ns].
-- param:  scale DOUBLE = 1.0   Factor.
-- param:  name VARCHAR = NULL   One call only.
-- column: call VARCHAR    Name.
-- column: total BIGINT    Time [ns].
-- column: scaled DOUBLE   Time, scaled.
SELECT call, CAST(sum(dur_ns) AS BIGINT) AS total, CAST(sum(dur_ns) * $scale AS DOUBLE) AS scaled
FROM calls
WHERE coalesce(dur_ns, 0) >= $min_ns AND ($name IS NULL OR call = $name)
GROUP BY call
ORDER BY coalesce(total, 0) DESC, call  -- a remark at the end"""


@pytest.fixture
def run(maker: RecordingMaker, open_session, pack):
    """Runs `SQL`, or what is given instead, with parameters."""
    folder = maker.make()

    def run_(params: dict | None = None, sql: str = SQL):
        pack.add("a/calls", sql)
        return again(params)

    def again(params: dict | None = None):
        return open_session(folder, pack.library).run("a/calls", params)

    run_.again = again
    return run_


def test_defaults_and_order(run) -> None:
    result = run()
    assert result.rows() == [
        ("read", 40_000, 40_000.0),
        ("write", 40_000, 40_000.0),
        ("openat", 25_000, 25_000.0),
        ("newfstatat", 1_000, 1_000.0),
        ("getpid", None, None),
    ]
    assert result.row_count() == 5
    assert result.rows(2) == result.rows()[:2]
    assert [column.name for column in result.columns] == ["call", "total", "scaled"]


def test_parameters_are_bound_and_typed(run) -> None:
    assert run({"min_ns": "30000", "scale": 2}).rows() == [
        ("write", 40_000, 80_000.0),
        ("read", 30_000, 60_000.0),
    ]
    assert run({"name": "x' OR '1'='1"}).rows() == []


@pytest.mark.parametrize(
    ("params", "fact", "hint"),
    [
        ({"min": 1}, "has no parameter `min`", "did you mean min_ns?"),
        ({"min_ns": "abc"}, "`abc` is not a BIGINT", "min_ns: Shortest."),
        ({"min_ns": "1.5"}, "`1.5` is not a BIGINT", None),
        ({"min_ns": str(1 << 63)}, "is not a BIGINT", None),
        ({"scale": "much"}, "`much` is not a DOUBLE", None),
    ],
)
def test_wrong_parameters_are_named(run, params: dict, fact: str, hint: str | None) -> None:
    with pytest.raises(UserError) as caught:
        run(params)
    assert fact in caught.value.fact
    assert hint is None or hint == caught.value.hint


@pytest.mark.parametrize(
    ("old", "new", "fact"),
    [
        ("AS total,", "AS totally,", "column 2 is totally BIGINT, but the header says total BIGINT"),
        ("CAST(sum(dur_ns) AS BIGINT)", "sum(dur_ns)", "column 2 is total HUGEINT, but the header says"),
        (", CAST(sum(dur_ns) * $scale AS DOUBLE) AS scaled", "", "2 columns, but the header names 3"),
        ("FROM calls", "FROM", "syntax error"),
        ("AS BIGINT) AS total", "AS BIGINT), AS total", "syntax error"),
        ("sum(dur_ns)", "sum(durr_ns)", "durr_ns"),
    ],
)
def test_a_wrong_analysis_is_named_by_its_file(run, pack, old: str, new: str, fact: str) -> None:
    sql = SQL.replace(old, new).replace("coalesce(total, 0) DESC, ", "")
    with pytest.raises(UserError) as caught:
        run(sql=sql)
    assert fact in caught.value.fact
    assert "\n" not in caught.value.fact
    assert caught.value.place == str(pack.root / "analyses" / "a" / "calls.sql")


def test_a_table_that_is_not_there(maker: RecordingMaker, open_session, pack) -> None:
    pack.add("a/calls", SQL)
    folder = maker.write({"paths": []})
    with pytest.raises(
        UserError, match="`a/calls` needs the table `calls`, which this recording does not have"
    ):
        open_session(folder, pack.library).run("a/calls")


def test_the_sql_can_be_wrapped(run) -> None:
    result = run({"scale": 0.5})
    wrapped = f"SELECT max(scaled) FROM (\n{result.sql}\n)"
    assert result.session.execute(wrapped, result.bound).fetchall() == [(20_000.0,)]
    # Parameters that the wrapping statement has no use for do no harm.
    assert result.session.execute("SELECT count(*) FROM calls", result.bound).fetchall() == [(8,)]


def test_every_analysis_of_the_library_runs(maker: RecordingMaker, open_session) -> None:
    sessions = [open_session(path) for path in maker.make_each_kind()]
    for analysis in sessions[0].library.analyses():
        session = next(session for session in sessions if not session.missing(analysis))
        result = session.run(analysis)
        assert len(result.rows()) == result.row_count()


def test_what_each_section_points_to_is_there(maker: RecordingMaker, open_session) -> None:
    """The first screen names the analysis that shows a section's lines: it must answer for such a recording."""
    sessions = [open_session(path) for path in maker.make_each_kind()]
    for section in all_sections():
        if section.question:
            [of_it, *_] = [session for session in sessions if section in sections_of(session)]
            analysis = of_it.library.analysis(section.question)
            assert analysis.id == section.question
            assert not of_it.missing(analysis)


def test_the_summary_is_right(maker: RecordingMaker, open_session) -> None:
    rows = {row[0]: row for row in open_session(maker.make()).run("io/summary").rows()}
    # call, calls, ok, errors, time_ns, avg_ns, min_ns, max_ns, bytes, avg_bytes, min_bytes, max_bytes
    assert rows["read"] == ("read", 3, 2, 0, 40_000, 20_000, 10_000, 30_000, 100, 50.0, 0, 100)
    assert rows["openat"] == ("openat", 2, 1, 1, 25_000, 12_500, 5_000, 20_000, None, None, None, None)


OUTSIDE = """\
-- Outside
-- needs:  calls
-- portable: false
-- column: n BIGINT   Number.
"""


@pytest.mark.parametrize(
    ("sql", "fact"),
    [
        ("COPY (SELECT count(*) AS n FROM calls) TO '{file}'", "not one SELECT"),
        ("SELECT 1 AS n; COPY (SELECT 1) TO '{file}'", "not one SELECT"),
        (
            "SELECT 1 AS n FROM calls) AS result; COPY (SELECT 1) TO '{file}'; SELECT * FROM (SELECT 1 AS n",
            "syntax",
        ),
        ("SELECT length(content) AS n FROM read_text('/etc/hostname')", r"read_text\(\)"),
        ("SELECT count(*) AS n FROM '/etc/hostname'", "/etc/hostname"),
        (
            "SELECT count(*) AS n FROM '/etc/hostname', (WITH \"/etc/hostname\" AS (SELECT 1) SELECT 2)",
            "/etc/hostname",
        ),
        ("SELECT n FROM query('SELECT 1 AS n')", r"query\(\)"),
    ],
)
def test_an_analysis_can_do_nothing_but_read_the_recording(
    maker: RecordingMaker, open_session, pack, tmp_path, sql: str, fact: str
) -> None:
    file = tmp_path / "written.csv"
    pack.add("a/outside", OUTSIDE + sql.format(file=file))
    session = open_session(maker.make(), pack.library)
    with pytest.raises(UserError, match=fact):
        session.run("a/outside").rows()
    assert not file.exists()


def test_own_names_and_lists_may_stand_in_from(maker: RecordingMaker, open_session, pack) -> None:
    sql = "WITH own AS (SELECT * FROM range(3) AS r(n)) SELECT CAST(sum(n) AS BIGINT) AS n FROM own"
    pack.add("a/own", OUTSIDE + sql)
    assert open_session(maker.make(), pack.library).run("a/own").rows() == [(3,)]


def test_a_kept_result_is_the_same(run) -> None:
    result, kept = run({"scale": 2.0}), run.again({"scale": 2.0}).keep()
    assert kept.rows() == result.rows()
    assert kept.rows(1) == result.rows(1)
    assert kept.row_count() == result.row_count()


def test_a_large_result_is_not_kept(run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sysdock.analysis.session._MOST_KEPT", 1)
    result = run()
    assert result.keep().sql == run.again().sql


def test_a_parameter_keeps_its_bound(run) -> None:
    sql = SQL.replace("DOUBLE = 1.0   Factor", "DOUBLE = 1.0 > 0   Factor")
    assert run({"scale": "0.5"}, sql).rows()
    for value in ("0", "-1", "nan", "inf"):
        with pytest.raises(UserError, match=r"must be greater than 0|is not a DOUBLE"):
            run.again({"scale": value})
