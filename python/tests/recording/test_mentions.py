"""Names in statements: what is noted of our own SQL is what the engine's parse tree says."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest
from sysdock.library import Library
from sysdock.noted import Noted
from sysdock.recording import mentions as module
from sysdock.recording.mentions import known_mentions, mentions, note_mentions


def test_what_is_noted_is_what_the_engine_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    library = Library()
    own = [analysis.sql for analysis in (*library.analyses(), *library.rules())]
    own += [table.sql for table in library.tables() if table.sql]
    own += [column.of_row for table in library.tables() for column in table.derived]
    asset = tmp_path / "assets" / "mentions.json"
    monkeypatch.setattr(module, "_NOTED", Noted(asset))
    assert known_mentions(own[0]) is None
    note_mentions(own)
    monkeypatch.setattr(module, "_NOTED", Noted(asset))
    connection = duckdb.connect()
    for sql in own:
        assert known_mentions(sql) == mentions(connection, sql) is not None
    assert known_mentions("SELECT 1") is None


def test_damaged_notes_are_no_notes(tmp_path: Path) -> None:
    asset = tmp_path / "assets" / "facts.json"
    Noted(asset).write({"a text": 1})
    assert (Noted(asset).get("a text"), Noted(asset).get("another")) == (1, None)
    asset.write_text("half of {")
    assert Noted(asset).get("a text") is None
