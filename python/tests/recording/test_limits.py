"""Recordings that were not made here are read within limits, one's own are not."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest
from make_recording import RecordingMaker
from sysdock.errors import UserError
from sysdock.recording import Recording
from sysdock.recording.limits import Limits, limits_of

HERE = socket.gethostname()


def test_a_recording_of_this_host_and_user_has_no_limits(maker: RecordingMaker) -> None:
    assert limits_of(Recording.open(maker.make(host=HERE))) is None


def test_a_log_that_was_imported_here_has_no_limits(maker: RecordingMaker) -> None:
    folder = maker.make(host=None, tool={"name": "sysdock", "version": "1", "host": HERE})
    assert limits_of(Recording.open(folder)) is None


@pytest.mark.parametrize("host", ["elsewhere", None])
def test_a_recording_of_another_host_or_of_none_has_limits(
    maker: RecordingMaker, monkeypatch: pytest.MonkeyPatch, host: str | None
) -> None:
    recording = Recording.open(maker.make(host=host))
    for wanted, seconds in (("", 15), ("7", 15), ("20", 20), ("5000", 600)):
        monkeypatch.setenv("SYSDOCK_LIMITS", wanted)
        assert limits_of(recording) == Limits(2 << 30, seconds)
    monkeypatch.setenv("SYSDOCK_LIMITS", "of")
    with pytest.raises(UserError, match="SYSDOCK_LIMITS=of: not understood"):
        limits_of(recording)


def test_a_recording_of_another_user_has_limits(
    maker: RecordingMaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = maker.make(host=HERE)
    owner = os.stat(folder).st_uid
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    assert (limits_of(Recording.open(folder)) is None) == (owner == 0)


def test_limits_can_be_lifted(maker: RecordingMaker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SYSDOCK_LIMITS", "off")
    assert limits_of(Recording.open(maker.make())) is None


def test_the_engine_has_them_too(maker: RecordingMaker, open_session) -> None:
    def limit(folder: Path) -> str:
        return open_session(folder).fetch("SELECT current_setting('memory_limit')")[0][0]

    assert limit(maker.make()) == "976.5 MiB"
    assert limit(maker.make(name="own", host=HERE)) != "976.5 MiB"
