"""Names in statements: what is noted of our own SQL is what the engine's parse tree says."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest
from sysdock.library import Library
from sysdock.recording import mentions as module
from sysdock.recording.mentions import known_mentions, mentions, note_mentions


def test_what_is_noted_is_what_the_engine_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    library = Library()
    own = [analysis.sql for analysis in (*library.analyses(), *library.rules())]
    own += [table.sql for table in library.tables() if table.sql]
    monkeypatch.setattr(module, "ASSET", tmp_path / "assets" / "mentions.json")
    module._noted.cache_clear()
    try:
        assert known_mentions(own[0]) is None
        note_mentions(own)
        module._noted.cache_clear()
        connection = duckdb.connect()
        for sql in own:
            assert known_mentions(sql) == mentions(connection, sql) is not None
        assert known_mentions("SELECT 1") is None
        (tmp_path / "assets" / "mentions.json").write_text("half of {")
        module._noted.cache_clear()
        assert known_mentions(own[0]) is None
    finally:
        module._noted.cache_clear()
