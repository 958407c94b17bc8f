"""The report as Markdown and as JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hostile import EVIL, JAPANESE
from make_recording import RecordingMaker
from sysdock.analysis import Session
from sysdock.errors import UserError
from sysdock.library import Library
from sysdock.recording import Recording
from sysdock.report import as_text, write_report


def test_findings_stand_first_with_what_to_do(session: Session) -> None:
    text = as_text(session, "md")
    assert text.index("## Findings") < text.index("**What to do:**") < text.index("## Recording")
    assert f"`{EVIL}`" in text
    assert f"`{JAPANESE}`" in text
    assert "### Small requests (could save up to" in text
    assert "## 所見" in as_text(session, "md", "ja")


def test_recorded_markup_is_no_markup(library: Library, maker: RecordingMaker) -> None:
    odd = "/tmp/a|b`c <img src=x>\n# title"
    calls = [
        {"t": n / 1e5, "call": "write", "path": odd, "transferred_bytes": 5, "dur_ns": 9000}
        for n in range(300)
    ]
    with Session(Recording.open(maker.make(calls, command="rm `x` | y")), library) as session:
        text = as_text(session, "md")
    # The text of a file name is code wherever it stands, on one line, without a bar that would end a cell.
    assert "`` /tmp/a\\|b`c <img src=x> # title ``" in text
    assert not [line for line in text.splitlines() if line.startswith("# title")]
    rows = [line for line in text.splitlines() if line.startswith("| ``")]
    assert rows
    assert {line.replace("\\|", "").count("|") for line in rows} <= {2, 3, 11, 12, 13, 14, 15}


def test_a_machine_gets_everything(session: Session) -> None:
    answer = json.loads(as_text(session, "json"))
    first = answer["findings"][0]
    assert (first["status"], first["certainty"]) == ("finding", "high")
    assert first["gain_ns"] > 0
    files = answer["analyses"]["io/files"]
    assert files["row_count"] == len(files["rows"])
    assert {column["name"] for column in files["columns"]} == set(files["rows"][0])
    assert EVIL in {row["path"] for row in files["rows"]}
    assert answer["recording"]["complete"] is True


def test_without_findings_it_says_so(library: Library, maker: RecordingMaker) -> None:
    with Session(Recording.open(maker.make([])), library) as session:
        assert "No findings. Some rules were inconclusive." in as_text(session, "md")
        assert {f["status"] for f in json.loads(as_text(session, "json"))["findings"]} == {"unknown"}


def test_an_unknown_format_or_language_is_refused(session: Session, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no format `pdf`"):
        as_text(session, "pdf")
    with pytest.raises(UserError, match="no language `fr`"):
        write_report(session, tmp_path / "x", "fr")
