"""Two recordings seen as one."""

from __future__ import annotations

from pathlib import Path

import pytest
from make_recording import RecordingMaker
from sysdock.analysis import Session
from sysdock.checkup.observed import observed
from sysdock.errors import UserError
from sysdock.recording import Recording

RATE = {"folder": "/data", "direction": "read", "bytes_per_second": 1e6}


def test_queries_see_the_tables_of_both(maker: RecordingMaker) -> None:
    recording = Recording.open(maker.make())
    with observed({"site_rates": [RATE]}, recording) as session:
        assert session.fetch("SELECT folder FROM site_rates") == [("/data",)]
        with Session(recording) as alone:
            [(calls,)] = alone.fetch("SELECT count(*) FROM calls")
        assert session.fetch("SELECT count(*) FROM calls") == [(calls,)]
        assert session.recording.started_ns == recording.started_ns
        assert [capture["recorder"] for capture in session.recording.captures][-1] == "checkup"
        assert session.recording.damage() == []
    assert "site_rates" not in recording.tables


def test_damage_is_found_in_either(maker: RecordingMaker) -> None:
    folder: Path = maker.make()
    recording = Recording.open(folder)
    part = recording.parts("calls")[0]
    part.write_bytes(part.read_bytes()[:-1] + b"x")
    with (
        observed({"site_rates": [RATE]}, recording) as session,
        pytest.raises(UserError, match="does not match the hash"),
    ):
        session.fetch("SELECT count(*) FROM calls")
