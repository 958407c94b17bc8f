"""Rules that a diagnosis leaves out, because a recording is too short or has too few rows for them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from make_recording import RecordingMaker
from sysdock.analysis import Session
from sysdock.analysis.diagnosis import judge, lack
from sysdock.analysis.least_data import too_little
from sysdock.analysis.session import values_of
from sysdock.errors import UserError
from sysdock.library import Analysis, Library
from sysdock.library.header import parse
from sysdock.recording import Filters, Recording
from sysdock.sentences import Words, fact, say

KINDS = ("make", "make_scan", "make_ranks", "make_waits", "make_load")


def left_out(session: Session, rule: Analysis, **limits: Any) -> Words | None:
    return too_little(session, rule, values_of(rule, limits))


@pytest.mark.parametrize("kind", KINDS)
def test_the_sql_of_no_rule_that_is_left_out_finds_anything(
    kind: str, tmp_path: Path, library: Library
) -> None:
    recording = Recording.open(getattr(RecordingMaker(library, tmp_path), kind)())
    with Session(recording, library) as session:
        rules = [rule for rule in library.rules() if not lack(session, rule) and left_out(session, rule)]
        found = {rule.id: judge(session, rule)[0].status for rule in rules}
    assert "finding" not in found.values()
    assert found or kind != "make"


def _changed(folder: Path, rows: dict[str, int] | None = None, **changes: Any) -> Recording:
    """A recording whose manifest, once it is read, states something else."""
    recording = Recording.open(folder)
    for name, number in (rows or {}).items():
        recording.manifest["tables"][name]["rows"] = number
    for capture in recording.captures:
        capture["complete"] = changes.get("complete", True)
    recording.manifest.update(changes)
    return recording


@pytest.fixture
def folder(tmp_path: Path, library: Library) -> Path:
    return RecordingMaker(library, tmp_path).make()


def test_one_row_less_than_the_smallest_finding_has(folder: Path, library: Library) -> None:
    rule = library.rule("io/small_requests")
    with Session(_changed(folder, rows={"calls": 200}), library) as session:
        assert left_out(session, rule) is None
        too_few = fact("diagnosis/too_few_rows", table="calls", recorded=200, needed=201)
        assert left_out(session, rule, min_calls=201) == too_few
    with Session(_changed(folder, rows={"calls": 199}), library) as session:
        assert left_out(session, rule) is not None
        assert left_out(session, rule, min_calls=199) is None


def test_one_nanosecond_less_than_the_smallest_finding_takes(folder: Path, library: Library) -> None:
    rule = library.rule("processes/gaps")
    with Session(_changed(folder, duration_ns=500_000_000), library) as session:
        assert left_out(session, rule) is None
    with Session(_changed(folder, duration_ns=499_999_999), library) as session:
        short = left_out(session, rule)
    assert say(short, "en") == "Too short for a finding: 500.0 ms recorded, at least 500.0 ms needed."
    assert say(short, "ja") == "記録の長さ 500.0 ms は、検出に必要な 500.0 ms に達しません。"


def test_times_of_threads_add_up(folder: Path, library: Library) -> None:
    rule = library.rule("locks/file_locks")
    with Session(_changed(folder, duration_ns=10_000_000, rows={"processes": 5}), library) as session:
        assert left_out(session, rule) is None
    with Session(_changed(folder, duration_ns=10_000_000, rows={"processes": 4}), library) as session:
        assert say(left_out(session, rule), "en") == (
            "Too short for a finding: at most 40.00 ms in all threads, at least 50.00 ms needed."
        )


def test_the_sql_decides_where_something_may_be_missing(folder: Path, library: Library) -> None:
    rule = library.rule("io/small_requests")
    for changes in ({"complete": False}, {"rows": {"calls": 0}}, {"rows": {"processes": 0}}):
        with Session(_changed(folder, **changes), library) as session:
            assert left_out(session, rule) is None
    with Session(_changed(folder), library) as session:
        assert left_out(session, rule) is not None


def test_limits_of_a_site_count_and_one_rule_by_name_is_always_run(
    folder: Path, library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SYSDOCK_LIMITS", "off")
    with Session(Recording.open(folder), library) as session:
        found = {finding.rule: finding.reason for finding in session.diagnose()}
        assert found["io/small_requests"].startswith("Too few rows in `calls`")
        assert say(judge(session, library.rule("io/small_requests"))[0].reason, "en").startswith("Checked ")
    limits = {"io/small_requests": {"min_calls": 1}}
    with Session(Recording.open(folder), library, limits=limits) as session:
        found = {finding.rule: finding.reason for finding in session.diagnose()}
        assert not found["io/small_requests"].startswith("Too few rows")
    with Session(Recording.open(folder), library, Filters(only_ok=True)) as session:
        findings = {finding.rule: finding for finding in session.diagnose()}
        assert findings["io/small_requests"].status == "unknown"


@pytest.mark.parametrize(
    ("line", "fact"),
    [
        ("calls most", "`most` is not a numeric parameter"),
        ("calls", "`` is not a numeric parameter"),
        ("calls name", "`name` is not a numeric parameter"),
    ],
)
def test_a_line_that_names_no_number(line: str, fact: str, tmp_path: Path) -> None:
    path = tmp_path / "rule.sql"
    path.write_text(
        "-- A rule\n-- needs: calls\n-- param: least BIGINT = 1  Least.\n-- param: name VARCHAR = 'x'  Name.\n"
        f"-- at_least: {line}\nSELECT 1\n"
    )
    with pytest.raises(UserError, match=fact):
        parse(path, "a/rule", "rule")
