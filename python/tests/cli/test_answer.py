"""The one-screen answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from make_recording import RecordingMaker
from sysdock.analysis import Finding, Session
from sysdock.screen import answer
from sysdock.screen.answer import answer_lines, diagnosis_lines
from sysdock.sentences import prose
from sysdock.text import width

FINDING = Finding(
    rule="io/x",
    status="finding",
    subject="/a/long/path/" * 20 + "end",
    value=1.0,
    limit_value=2.0,
    cost_ns=10,
    gain_ns=1_500_000_000,
    certainty="high",
    certainty_reason=prose("it was seen", ja="見た"),
    reason=prose("Because of it. " * 20, ja="そのため。" * 20),
    title=prose("A title", ja="題"),
    advice=prose("Do this. " * 30, ja="こうする。" * 30),
    evidence="io/files --file x",
)
UNKNOWN = replace(FINDING, status="unknown", subject="", gain_ns=None, reason="No durations.")


@pytest.fixture
def session(maker: RecordingMaker, open_session, monkeypatch: pytest.MonkeyPatch):
    """A session with findings of the test's choice."""
    opened = open_session(maker.make(command="a\x1b[2J " + "very long " * 40))
    opened.findings = []

    def diagnose(lang: str, alongside: Callable[[Session], None]) -> list[Finding]:
        alongside(opened)
        return [finding.in_language(lang) for finding in opened.findings]

    monkeypatch.setattr(opened, "diagnose", diagnose)
    return opened


def session_with(session, findings: list[Finding]):
    """The session with these findings."""
    session.findings = findings
    return session


@pytest.mark.parametrize("lang", ["en", "ja"])
@pytest.mark.parametrize("count", [0, 1, 2, 3, 4, 20])
def test_it_fits_on_one_screen(session, lang: str, count: int) -> None:
    session.findings = [FINDING] * count + [UNKNOWN] * 9
    lines = answer_lines(session, Path("rec/report.html"), lang)
    assert len(lines) <= answer.LINES
    assert max(map(width, lines)) <= answer.COLUMNS
    assert "\x1b" not in "".join(lines)
    assert sum(line.startswith("  /") for line in lines) == 2
    assert lines[-1].split()[1:3] == ["sysdock", "diagnose"]
    assert "rec/report.html" in lines[-2]


def test_it_begins_with_where_the_time_went(maker: RecordingMaker, open_session) -> None:
    lines = answer_lines(open_session(maker.make_waits()), None, "en")
    assert lines[3].split() == ["Where", "the", "time", "went", *("time", "share", "all", "threads", "share")]
    rows = [" ".join(line.split()) for line in lines[4:8]]
    assert rows == [
        "user code, add sum.c:11 (100 %) 61.42 ms 61.4 % 61.42 ms 61.4 %",
        "waiting: disk, read /data (100 %) 30.00 ms 30.0 % 30.00 ms 30.0 %",
        "kernel: page faults of…y, add sum.c:11 (100 %) 5.58 ms 5.5 % 5.58 ms 5.5 %",
        "kernel: file data, read (100 %) 2.00 ms 2.0 % 2.00 ms 2.0 %",
    ]


def test_a_finding_says_what_where_why_and_what_to_do(session) -> None:
    by = {"process": 7, "programs": ("cp",), "share": 0.125, "share_of": "elapsed"}
    session.findings = [replace(FINDING, subject="/tmp/x", reason="Because.", advice="Do this.", **by)]
    text = "\n".join(answer_lines(session, None, "en"))
    facts = "Process 7 (cp), takes 12.5 % of the elapsed time, high confidence (it was seen)"
    said = f"    Because.\n    {facts}\n    What to do: Do this.\n"
    assert f"  A title: /tmp/x (could save up to 1.50 s)\n{said}" in text
    assert "1 finding, 0 passed, 0 inconclusive" in text


def test_findings_of_one_rule_stand_together(session) -> None:
    common = {"reason": "Because.", "share": 0.02, "share_of": "elapsed"}
    subjects = [replace(FINDING, subject=f"/tmp/{number}", **common) for number in range(9)]
    lines = answer_lines(session_with(session, subjects), None, "en")
    assert "  A title: 9 findings (could save up to 13.50 s)" in lines
    assert "    /tmp/0 (takes 2.0 % of the elapsed time): Because." in lines
    assert "    High confidence (it was seen)" in lines
    assert sum("What to do:" in line for line in lines) == 1


def test_many_findings_say_how_many_rules_are_left_out(session) -> None:
    rules = [replace(FINDING, rule=f"io/{number}") for number in range(20)]
    lines = answer_lines(session_with(session, rules), None, "en")
    shown = sum("could save" in line for line in lines)
    assert shown >= 2
    assert f"  ... {20 - shown} more" in lines
    assert len(lines) <= answer.LINES


def test_without_room_the_title_says_how_sure_it_is(session) -> None:
    rules = [replace(FINDING, rule=f"io/{number}") for number in range(20)]
    lines = answer_lines(session_with(session, rules), None, "en")
    titles = [line for line in lines if "could save" in line]
    assert titles
    assert all(line.endswith("(could save up to 1.50 s, high confidence)") for line in titles)
    narrow = answer_lines(session_with(session, rules), None, "en", 60)
    assert [line for line in narrow if line.endswith("(could save up to 1.50 s)")]


def test_long_advice_is_wrapped_where_there_is_room(session) -> None:
    lines = answer_lines(session_with(session, [FINDING]), None, "en")
    at = next(number for number, line in enumerate(lines) if "What to do:" in line)
    assert lines[at + 1].startswith("    ")
    assert lines[at + 1].endswith("Do this.")


@pytest.mark.parametrize("columns", [40, 60, 79])
@pytest.mark.parametrize("lang", ["en", "ja"])
def test_a_narrow_terminal_gets_short_lines(session, lang: str, columns: int) -> None:
    findings = [FINDING] * 3 + [replace(FINDING, rule="io/y"), UNKNOWN]
    lines = answer_lines(session_with(session, findings), None, lang, columns)
    assert max(map(width, lines)) <= columns
    assert len(lines) <= answer.LINES
    wrapped = diagnosis_lines([replace(FINDING, subject="x")], Path("rec"), lang, columns)
    # Titles stay whole, and so does the command, which is to be copied.
    text = [line for line in wrapped if line.startswith("  ") and "sysdock show" not in line]
    assert max(map(width, text)) <= columns


def test_a_log_without_clock_has_no_duration(maker: RecordingMaker, open_session) -> None:
    folder = maker.make(clock={"kind": "order", "has_durations": False}, host="box")
    lines = answer_lines(open_session(folder), None, "en")
    assert lines[1].startswith("box, no clock in the log, ")


def test_a_recording_without_calls_has_an_answer(maker: RecordingMaker, open_session) -> None:
    lines = answer_lines(open_session(maker.write({})), None, "en")
    assert any("INCONCLUSIVE" in line for line in lines)


def test_what_could_not_be_told_is_shown(session) -> None:
    session.findings = [UNKNOWN]
    assert "  INCONCLUSIVE A title: No durations." in answer_lines(session, None, "en")


def test_a_diagnosis_shows_the_evidence() -> None:
    text = "\n".join(diagnosis_lines([FINDING, UNKNOWN], Path("my rec"), "en"))
    assert "  Evidence: sysdock show 'my rec' io/files --file x" in text
    assert max(map(len, text.splitlines()[3:])) <= answer.COLUMNS
