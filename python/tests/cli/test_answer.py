"""The one-screen answer."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from make_recording import RecordingMaker
from sysdock.analysis import Finding
from sysdock.analysis.writing import width
from sysdock.cli import answer
from sysdock.cli.answer import answer_lines, diagnosis_lines
from sysdock.cli.info_text import percent

FINDING = Finding(
    rule="io/x",
    status="finding",
    subject="/a/long/path/" * 20 + "end",
    value=1.0,
    limit_value=2.0,
    cost_ns=10,
    gain_ns=1_500_000_000,
    reason="Because of it. " * 20,
    reason_ja="そのため。" * 20,
    title="A title",
    title_ja="題",
    advice="Do this. " * 30,
    advice_ja="こうする。" * 30,
    evidence="io/files --file x",
)
UNKNOWN = replace(FINDING, status="unknown", subject="", gain_ns=None, reason="No durations.")


@pytest.fixture
def session(maker: RecordingMaker, open_session, monkeypatch: pytest.MonkeyPatch):
    """A session with findings of the test's choice."""
    opened = open_session(maker.make(command="a\x1b[2J " + "very long " * 40))
    opened.findings = []
    monkeypatch.setattr(
        opened, "diagnose", lambda lang="en": [finding.in_language(lang) for finding in opened.findings]
    )
    return opened


@pytest.mark.parametrize("lang", ["en", "ja"])
@pytest.mark.parametrize("count", [0, 1, 2, 3, 4, 20])
def test_it_fits_on_one_screen(session, lang: str, count: int) -> None:
    session.findings = [FINDING] * count + [UNKNOWN] * 9
    lines = answer_lines(session, Path("rec/report.html"), lang)
    assert len(lines) <= answer.LINES
    assert max(map(width, lines)) <= answer.COLUMNS
    assert "\x1b" not in "".join(lines)
    assert sum(line.startswith("  /") for line in lines) == 3
    assert lines[-1].split()[1:3] == ["sysdock", "diagnose"]
    assert "rec/report.html" in lines[-2]


def test_a_finding_says_what_where_why_and_what_to_do(session) -> None:
    session.findings = [replace(FINDING, subject="/tmp/x", reason="Because.", advice="Do this.")]
    text = "\n".join(answer_lines(session, None, "en"))
    assert "  A title: /tmp/x (up to 1.50 s to win)\n    Because.\n    What to do: Do this.\n" in text
    assert "Findings: 1 (could not tell: 0, fine: 0)" in text


def test_many_findings_say_how_many_are_left_out(session) -> None:
    session.findings = [FINDING] * 20
    lines = answer_lines(session, None, "en")
    shown = sum("to win)" in line for line in lines)
    assert shown >= 2
    assert f"  ... {20 - shown} more" in lines


def test_what_could_not_be_told_is_shown(session) -> None:
    session.findings = [UNKNOWN]
    assert "  UNKNOWN A title: No durations." in answer_lines(session, None, "en")


def test_a_diagnosis_shows_the_evidence() -> None:
    text = "\n".join(diagnosis_lines([FINDING, UNKNOWN], Path("my rec"), "en"))
    assert "  Evidence: sysdock show 'my rec' io/files --file x" in text
    assert max(map(len, text.splitlines()[3:])) <= answer.COLUMNS


def test_shares_are_rounded_down() -> None:
    assert [percent(*pair) for pair in ((0, 0), (1, 1), (9999, 10000), (1, 3))] == [
        "100 %",
        "100 %",
        "99.9 %",
        "33.3 %",
    ]
