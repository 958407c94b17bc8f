"""Step 2, volume and rate, of recordings."""

from __future__ import annotations

import os
import socket
from collections.abc import Sequence
from pathlib import Path

import pytest
from make_recording import STARTED_NS, RecordingMaker
from sysdock.analysis import Session
from sysdock.checkup import rate, volume
from sysdock.checkup.observed import observed
from sysdock.checkup.statement import Part
from sysdock.errors import UserError

MIB = 1 << 20


def judge_rates(session: Session, rates: dict[str, dict[str, float]]) -> list[Part]:
    """What the rule says of the recording, with these rates of a site."""
    with observed({rate.TABLE: rate.rate_rows(rates)}, session.recording) as joined:
        return rate.rate_parts(joined)


def judge_volume(session: Session, named: Sequence[Path] = ()) -> Part:
    """What the rule says of the files of the recording, or of those that are named."""
    files = volume.files_of(session, named)
    with observed({volume.TABLE: files.rows}, session.recording) as joined:
        return volume.volume_part(joined, files)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A folder with files as old as the recordings are."""
    folder = tmp_path / "data"
    folder.mkdir()
    for name, size in {"once": 4 * MIB, "often": 2 * MIB, "out": MIB}.items():
        (folder / name).write_bytes(b"\0" * size)
        os.utime(folder / name, ns=(STARTED_NS, STARTED_NS))
    return folder


def reads(
    path: object,
    times: int,
    size: int,
    *,
    t: float = 0,
    ns: int = 10_000_000,
    call: str = "read",
    **more: object,
) -> list:
    return [
        {
            "t": t + n * ns / 1e9,
            "call": call,
            "path": str(path),
            "transferred_bytes": size,
            "dur_ns": ns,
            **more,
        }
        for n in range(times)
    ]


def test_a_file_that_is_read_more_than_its_size(maker: RecordingMaker, open_session, data: Path) -> None:
    calls = (
        reads(data / "once", 4, MIB)
        + reads(data / "often", 10, 2 * MIB)
        + reads(data / "out", 1, MIB, call="write")
    )
    with open_session(maker.make(calls, host=socket.gethostname())) as session:
        part = judge_volume(session)
    assert part.verdict == "look closer"
    assert f"{data / 'often'} (read 20.00 MiB, size 2.00 MiB)" in part.text("en")
    assert "サイズ 2.00 MiB" in part.text("ja")
    assert (part.values["over_count"], part.values["read_bytes"], part.values["written_bytes"]) == (
        1,
        24 * MIB,
        MIB,
    )


def test_files_that_are_read_once_are_ok(maker: RecordingMaker, open_session, data: Path) -> None:
    with open_session(maker.make(reads(data / "once", 4, MIB), host=socket.gethostname())) as session:
        assert judge_volume(session).verdict == "ok"


def test_both_files_of_a_copy(maker: RecordingMaker, open_session, data: Path) -> None:
    copy = {"call": "sendfile", "class": "copy", "path": str(data / "once"), "to_path": str(data / "out")}
    calls = [{**copy, "t": n, "transferred_bytes": 4 * MIB, "dur_ns": 1} for n in range(2)]
    with open_session(maker.make(calls, host=socket.gethostname())) as session:
        part = judge_volume(session)
    assert (part.values["read_bytes"], part.values["written_bytes"], part.values["over_count"]) == (
        8 * MIB,
        8 * MIB,
        2,
    )


def test_files_that_are_gone_or_changed_are_named(maker: RecordingMaker, open_session, data: Path) -> None:
    calls = reads(data / "once", 4, MIB) + reads(data / "gone", 4, MIB)
    os.utime(data / "once")
    with open_session(maker.make(calls, host=socket.gethostname())) as session:
        part = judge_volume(session)
    assert part.verdict == "unknown"
    assert (
        f"2 files are missing or changed after the recording: {data / 'gone'}, {data / 'once'}"
        in part.text("en")
    )


def test_a_recording_of_another_machine_tells_nothing_about_files_here(
    maker: RecordingMaker, open_session, data: Path
) -> None:
    with open_session(maker.make(reads(data / "often", 10, 2 * MIB), host="elsewhere")) as session:
        part = judge_volume(session)
        assert (part.verdict, "another machine, elsewhere" in part.text("en")) == ("unknown", True)
        assert judge_volume(session, [data / "often"]).verdict == "look closer"


def test_files_that_the_job_should_move(maker: RecordingMaker, open_session, data: Path) -> None:
    calls = reads(data / "once", 4, MIB) + reads(data / "often", 10, 2 * MIB)
    with open_session(maker.make(calls, host=socket.gethostname())) as session:
        assert judge_volume(session, [data / "once"]).verdict == "ok"
        assert judge_volume(session, [data]).verdict == "look closer"
        part = judge_volume(session, [data / "once", data / "out"])
        assert (part.verdict, f"Not in the recording: {data / 'out'}" in part.text("en")) == ("unknown", True)
        with pytest.raises(UserError, match="no such file"):
            judge_volume(session, [data / "nothing"])


def test_without_bytes_it_is_unknown(maker: RecordingMaker, open_session) -> None:
    with open_session(maker.make([{"call": "getpid"}])) as session:
        assert judge_volume(session).verdict == "unknown"


def test_names_with_braces_and_controls_are_only_text(
    maker: RecordingMaker, open_session, data: Path
) -> None:
    odd = data / "{0}{x.__class__}%s\x1b[31m"
    odd.write_bytes(b"\0")
    os.utime(odd, ns=(STARTED_NS, STARTED_NS))
    with open_session(maker.make(reads(odd, 4, MIB), host=socket.gethostname())) as session:
        assert str(odd) in judge_volume(session).text("en")


def test_rates_against_those_of_the_site(maker: RecordingMaker, open_session) -> None:
    # 100 MiB in 1 s, by two threads at the same time: 200 MiB/s together.
    calls = reads("/scratch/a", 10, 10 * MIB, ns=100_000_000) + reads(
        "/scratch/a", 10, 10 * MIB, ns=100_000_000, tid=101
    )
    calls += reads("/scratch/fast/b", 10, 10 * MIB, ns=100_000_000, call="write") + reads(
        "/workshop/c", 9, MIB
    )
    rates = {
        "/scratch": {"read": 250.0 * MIB, "write": 1.0},
        "/scratch/fast": {"write": 50.0 * MIB},
        "/other": {"read": 1.0},
    }
    with open_session(maker.make(calls)) as session:
        parts = {(p.values["folder"].text, p.values["direction"]): p for p in judge_rates(session, rates)}
        assert parts["/scratch", "read"].values["rate"] == pytest.approx(200 * MIB)
        assert parts["/scratch", "read"].verdict == "ok"
        # What belongs to the folder below it is not counted twice.
        assert (parts["/scratch", "write"].values["bytes"], parts["/scratch", "write"].verdict) == (
            0,
            "unknown",
        )
        assert "page cache" in parts["/scratch/fast", "write"].text("en")
        assert parts["/scratch/fast", "write"].verdict == "unknown"
        assert parts["/other", "read"].verdict == "unknown"
        assert judge_rates(session, {"/": {"read": 900.0 * MIB}})[0].verdict == "look closer"
        assert judge_rates(session, {})[0].verdict == "unknown"


def test_rates_without_durations_are_unknown(maker: RecordingMaker, open_session) -> None:
    clock = {"kind": "epoch", "resolution_ns": 1000, "has_durations": False, "note": None}
    with open_session(
        maker.make([{"call": "read", "path": "/a", "transferred_bytes": 5 * MIB}], clock=clock)
    ) as session:
        assert [part.verdict for part in judge_rates(session, {"/": {"read": 1.0}})] == ["unknown"]


def test_an_incomplete_recording_is_never_ok(maker: RecordingMaker, open_session, data: Path) -> None:
    folder = maker.make(reads(data / "once", 4, MIB), host=socket.gethostname(), complete=False)
    with open_session(folder) as session:
        part = judge_volume(session)
    assert (part.verdict, "is incomplete" in part.text("en")) == ("unknown", True)


def test_a_recording_without_calls_is_unknown(maker: RecordingMaker, open_session) -> None:
    with open_session(maker.write({}, "begun", about="calls")) as session:
        assert "no tables calls, paths" in judge_volume(session).text("en")
        assert [part.verdict for part in judge_rates(session, {"/": {"read": 1.0}})] == ["unknown"]
