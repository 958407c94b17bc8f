"""Opening recordings, and what is refused."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from make_recording import STARTED_NS, RecordingMaker, with_keys
from sysdock.errors import UserError
from sysdock.recording import FORMAT_VERSION, Recording
from sysdock.recording.manifest import is_not_requested
from sysdock.sections import contents
from sysdock.sections.description import describe
from sysdock.sentences import facts_of, say


def change(folder: Path, **keys: object) -> Path:
    path = folder / "recording.json"
    path.write_text(json.dumps(with_keys(json.loads(path.read_text()), keys)))
    return folder


def test_a_good_recording(maker: RecordingMaker) -> None:
    recording = Recording.open(maker.make())
    assert recording.started_ns == STARTED_NS
    assert recording.rows("calls") == 8
    assert recording.lost("calls") == 0
    assert recording.bytes_on_disk("calls") == recording.parts("calls")[0].stat().st_size
    recording.verify(recording.tables)
    assert recording.damage() == []


def test_texts_of_format_4_are_facts_that_state_them(maker: RecordingMaker) -> None:
    families = [
        {"family": "calls", "missing": None},
        {"family": "stacks", "missing": "not requested"},
        {"family": "block", "missing": "the kernel has no such tracepoint"},
    ]
    clock = {"kind": "epoch", "note": "the date was given by the user"}
    folder = maker.make(format_version=4, clock=clock, families=families)
    recording = Recording.open(folder)
    [capture] = recording.captures
    assert say(facts_of(capture["clock"]["note"]), "ja") == clock["note"]
    missing = [state["missing"] for state in capture["families"]]
    assert missing[:2] == [None, {"code": "capture/not_requested"}]
    assert say(facts_of(missing[2]), "en") == families[2]["missing"]
    assert [is_not_requested(state) for state in capture["families"]] == [False, True, False]


@pytest.mark.parametrize("about", ["calls", "scan", "experiment", "of tomorrow"])
def test_what_a_recording_is_about_is_known_without_any_table(maker: RecordingMaker, about: str) -> None:
    recording = Recording.open(maker.write({}, about=about, recorder="anything"))
    assert recording.families == {about}
    assert contents(recording.captures) == [about]


def test_totals_are_those_of_all_captures(maker: RecordingMaker) -> None:
    folder = maker.make(lost_events=2)
    [first] = Recording.open(folder).captures
    second = {
        **first,
        "recorder": "disk",
        "unit": "files",
        "lost": 3,
        "ended_by": "interrupted",
        "complete": False,
    }
    recording = Recording.open(change(folder, captures=[first, second]))
    assert (recording.lost_events, recording.ended_by, len(recording.sources)) == (5, "interrupted", 2)


def test_no_such_folder(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no such recording"):
        Recording.open(tmp_path / "nowhere")


def test_a_file_is_not_a_recording(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    log.write_text("1 read() = 0\n")
    with pytest.raises(UserError, match="not a recording") as caught:
        Recording.open(log)
    assert caught.value.hint == f"to read a log: `sysdock import {log} -o REC`"


def test_another_folder_is_not_a_recording(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"has no recording\.json"):
        Recording.open(tmp_path)


def test_broken_json_is_named_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "recording.json").write_text('{\n "format_version": 1,\n "tables"')
    with pytest.raises(UserError, match="not JSON") as caught:
        Recording.open(tmp_path)
    assert caught.value.place == f"{tmp_path / 'recording.json'}:3"


def test_bytes_that_are_not_text(tmp_path: Path) -> None:
    (tmp_path / "recording.json").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UserError, match="not JSON"):
        Recording.open(tmp_path)


def test_a_newer_version_is_refused(maker: RecordingMaker) -> None:
    folder = change(maker.make(), format_version=FORMAT_VERSION + 1)
    with pytest.raises(UserError, match="is newer than this sysdock reads") as caught:
        Recording.open(folder)
    assert caught.value.hint == "update sysdock"


@pytest.mark.parametrize(
    "keys",
    [
        {"started_ns": "yesterday"},
        {"started_ns": 1 << 70},
        {"lines_total": True},
        {"clock": None},
        {"tables": []},
        {"tables": {"calls": {"rows": 1}}},
        {"tables": {"calls'; DROP": {"rows": 0, "parts": []}}},
        {"tables": {"calls": {"rows": 1, "parts": [{"file": "/etc/passwd", "bytes": 1, "sha256": ""}]}}},
        {"tables": {"calls": {"rows": 1, "parts": [{"file": "../../x", "bytes": 1, "sha256": ""}]}}},
        {"tables": {"calls": {"rows": 1, "parts": [{"file": "a", "bytes": "1", "sha256": ""}]}}},
        {"tables": {"calls": {"rows": -1, "parts": []}}},
        {"tables": {"calls": {"rows": 0, "lost": "few", "parts": []}}},
        {"tables": {"calls": {"rows": 1 << 70, "parts": []}}},
        {"tables": {"calls": {"rows": 5, "parts": []}}},
        {"tables": {"calls": {"rows": 0, "parts": []}, "Calls": {"rows": 0, "parts": []}}},
        {"clock": {"kind": "epoch", "stamps": ["entry"]}},
        {"issues": {"unknown line": "many"}},
        {"sources": [{"path": "a.log", "lines": "1"}]},
        {"command": "\ud800"},
        {"command": ["ls"]},
        {"host": 5},
        {"ended_by": {}},
        {"exit_code": "0"},
        {"clock": {"kind": 1}},
        {"clock": {"kind": "epoch", "note": 7}},
        {"options": "-f"},
        {"options": [1]},
        {"sources": ["a.log"]},
        {"sources": [{"path": "a.log", "bytes": "1"}]},
        {"duration_ns": -1},
        {"lines_total": 1, "lines_understood": 2},
        {"captures": []},
        {"captures": ["kernel"]},
        {"captures": [{"recorder": "kernel"}]},
        {"unit": None},
        {"families": [{"missing": {"code": "capture/not_requested"}}]},
    ],
)
def test_wrong_entries_are_refused(maker: RecordingMaker, keys: dict[str, object]) -> None:
    folder = change(maker.make(), **keys)
    with pytest.raises(UserError):
        Recording.open(folder)


@pytest.mark.parametrize("other", ["calls/part-0000.parquet", "calls/./part-0000.parquet"])
def test_a_part_that_is_listed_twice_is_refused(maker: RecordingMaker, other: str) -> None:
    folder = maker.make()
    tables = json.loads((folder / "recording.json").read_text())["tables"]
    [part] = tables["calls"]["parts"]
    tables["calls"] |= {"rows": 2 * part["rows"], "parts": [part, {**part, "file": other}]}
    with pytest.raises(UserError, match="is listed twice"):
        Recording.open(change(folder, tables=tables))


def test_a_number_of_rows_that_is_not_that_of_the_parts_is_refused(
    maker: RecordingMaker, open_session
) -> None:
    folder = maker.make()
    tables = json.loads((folder / "recording.json").read_text())["tables"]
    tables["calls"]["rows"] = tables["calls"]["parts"][0]["rows"] = 7
    change(folder, tables=tables)
    session = open_session(folder)
    with pytest.raises(UserError, match="`calls` has 8 rows instead of the 7 stated"):
        session.diagnose()
    assert describe(session)["damage"] == ["table `calls` has 8 rows instead of the 7 stated"]


@pytest.mark.parametrize(
    ("value", "fact"),
    [
        ("9" * 5000, "not JSON"),
        ("1" + "0" * 30, "more than 64 bits"),
        ("1e999", "too large"),
        ("NaN", "not JSON"),
        ("[" * 100 + "]" * 100, "too deeply"),
        ("[" * 100_000 + "]" * 100_000, "too deeply"),
    ],
)
def test_values_below_unknown_keys_are_checked_too(maker: RecordingMaker, value: str, fact: str) -> None:
    folder = maker.make()
    path = folder / "recording.json"
    path.write_text(path.read_text().replace("{", '{"later": ' + value + ", ", 1))
    with pytest.raises(UserError, match=fact):
        Recording.open(folder)


def test_a_manifest_of_many_megabytes_is_not_read(maker: RecordingMaker) -> None:
    folder = maker.make()
    with open(folder / "recording.json", "ab") as file:
        file.truncate(1 << 30)
    with pytest.raises(UserError, match="bytes are too many"):
        Recording.open(folder)


def test_a_pipe_in_place_of_the_manifest_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "recording.json")
    with pytest.raises(UserError, match="not a plain file"):
        Recording.open(tmp_path)


def test_a_part_that_may_not_be_read_is_not_called_missing(
    maker: RecordingMaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    recording = Recording.open(maker.make())

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "stat", refuse)
    with pytest.raises(UserError, match="cannot be read: Permission denied") as caught:
        recording.verify(["calls"])
    assert "permission" in caught.value.hint


def test_a_missing_table(maker: RecordingMaker) -> None:
    folder = maker.make()
    tables = json.loads((folder / "recording.json").read_text())["tables"]
    del tables["paths"]
    recording = Recording.open(change(folder, tables=tables))
    with pytest.raises(UserError, match="has no table `paths`"):
        recording.verify(["paths"])


def test_a_missing_part(maker: RecordingMaker) -> None:
    folder = maker.make()
    (folder / "calls" / "part-0000.parquet").unlink()
    recording = Recording.open(folder)
    with pytest.raises(UserError, match="missing"):
        recording.verify(["calls"])
    recording.verify(["paths"])
    assert recording.damage() == ["calls/part-0000.parquet: a part of the recording is missing"]


def test_a_part_of_another_size(maker: RecordingMaker) -> None:
    folder = maker.make()
    part = folder / "calls" / "part-0000.parquet"
    part.write_bytes(part.read_bytes() + b"x")
    with pytest.raises(UserError, match="bytes instead of"):
        Recording.open(folder).verify(["calls"])


@pytest.mark.parametrize("where", [4, 100, -20])
def test_one_changed_byte_is_noticed(maker: RecordingMaker, where: int) -> None:
    folder = maker.make()
    part = folder / "calls" / "part-0000.parquet"
    data = bytearray(part.read_bytes())
    data[where] ^= 1
    part.write_bytes(data)
    with pytest.raises(UserError, match="does not match the hash"):
        Recording.open(folder).verify(["calls"])


def test_a_part_that_is_a_link_is_refused(maker: RecordingMaker, tmp_path: Path) -> None:
    folder = maker.make()
    part = folder / "calls" / "part-0000.parquet"
    part.rename(tmp_path / "elsewhere")
    part.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UserError, match="not a plain file inside it"):
        Recording.open(folder).verify(["calls"])
