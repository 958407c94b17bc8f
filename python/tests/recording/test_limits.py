"""Recordings that were not made here are read within limits, one's own are not."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from pathlib import Path

import pytest
from make_recording import RecordingMaker, own
from sysdock.errors import UserError
from sysdock.recording import Recording
from sysdock.recording.limits import Limits, limits_of
from sysdock.recording.native import import_quietly
from sysdock.recording.writing import add_part

HERE = socket.gethostname()


def test_a_recording_that_was_made_here_has_no_limits(maker: RecordingMaker, tmp_path: Path) -> None:
    assert limits_of(Recording.open(own(maker.make()))) is None
    log = tmp_path / "log"
    log.write_text('4242  1700000000.000000 openat(AT_FDCWD, "/x", O_RDONLY) = 3 <0.000010>\n')
    import_quietly(log, tmp_path / "imported")
    assert limits_of(Recording.open(tmp_path / "imported")) is None


@pytest.mark.parametrize("place", ["host", "tool"])
def test_the_name_of_this_host_in_it_proves_nothing(maker: RecordingMaker, place: str) -> None:
    named = {"host": HERE} if place == "host" else {"tool": {"name": "sysdock", "version": "1", "host": HERE}}
    assert limits_of(Recording.open(maker.make(**named))) is not None


@pytest.mark.parametrize("how", ["unpacked", "copied", "over ours", "changed", "into ours"])
def test_what_was_brought_here_has_limits(maker: RecordingMaker, tmp_path: Path, how: str) -> None:
    """Whatever attributes it brings: those of the file that it was, elsewhere."""
    folder, there = own(maker.make()), tmp_path / "there"
    content = (folder / "recording.json").read_text()
    if how == "copied":
        subprocess.run(["cp", "-a", folder, there], check=True)
    elif how == "changed":
        (folder / "recording.json").write_text(content.replace("box", "fox"))
        there = folder
    else:
        if how != "unpacked":
            shutil.copytree(folder, there)
            own(there)
        packed = tmp_path / "bundle.tar"
        subprocess.run(["tar", "--xattrs", "-cf", packed, "-C", folder, "."], check=True)
        there.mkdir(exist_ok=True)
        overwrite = ["--overwrite"] if how == "into ours" else []
        (there / "recording.json").write_text("{}")
        subprocess.run(["tar", "--xattrs", *overwrite, "-xf", packed, "-C", there], check=True)
    assert limits_of(Recording.open(there)) is not None


def test_what_is_appended_to_stays_what_it_was(maker: RecordingMaker, tmp_path: Path) -> None:
    for folder, is_own in (
        (own(maker.make(name="own")), True),
        (maker.make(name="theirs", host=HERE), False),
    ):
        add_part(folder, maker.library, "environment", [("a", "b", "c", "recorder")])
        assert (limits_of(Recording.open(folder)) is None) == is_own


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
    folder = own(maker.make())
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
    assert limit(own(maker.make(name="own"))) != "976.5 MiB"
