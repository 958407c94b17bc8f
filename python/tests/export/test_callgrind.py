"""Profiles of instruction traces for KCachegrind, read again by a reader of ten lines."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from make_recording import RecordingMaker
from sysdock.errors import UserError
from sysdock.export.files import write_file


def read(path: Path) -> tuple[dict[str, int], dict[tuple[str, str], tuple[int, int]]]:
    """Own costs of functions, and times and inclusive costs of calls."""
    own: dict[str, int] = {}
    calls: dict[tuple[str, str], tuple[int, int]] = {}
    name, callee, times = "", "", 0
    for line in path.read_text().splitlines():
        if found := re.fullmatch(r"(c?)fn=\(\d+\) (.*)", line):
            name, callee = (name, found[2]) if found[1] else (found[2], "")
        elif found := re.fullmatch(r"calls=(\d+) 0", line):
            times = int(found[1])
        elif found := re.fullmatch(r"0 (\d+)", line):
            if callee:
                calls[name, callee] = (times, int(found[1]))
            else:
                own[name] = int(found[1])
    return own, calls


def test_functions_and_calls_are_there(maker: RecordingMaker, open_session, tmp_path: Path) -> None:
    out = tmp_path / "callgrind.out"
    written = write_file(open_session(maker.make_itrace()), "callgrind", out, 1000)
    assert (written.shown, written.total) == (2, 2)
    assert read(out) == (
        {"main": 100, "entry_SYSCALL_64": 100},
        {("main", "entry_SYSCALL_64"): (1, 100)},
    )
    assert "summary: 200\n" in out.read_text()
    assert "ob=[kernel]\n" in out.read_text()


def test_steps_are_a_flame_graph(maker: RecordingMaker, open_session, tmp_path: Path) -> None:
    session = open_session(maker.make_itrace())
    write_file(session, "collapsed", tmp_path / "steps", 1000, "steps")
    lines = (tmp_path / "steps").read_text().splitlines()
    assert lines == ["task-0;main 100", "task-0;main;entry_SYSCALL_64 100"]
    write_file(session, "speedscope", tmp_path / "steps.json", 1000, "steps")
    [profile] = json.loads((tmp_path / "steps.json").read_text())["profiles"]
    assert (profile["unit"], profile["name"], profile["endValue"]) == ("none", "instructions", 200)


def test_other_recordings_have_none(maker: RecordingMaker, open_session, tmp_path: Path) -> None:
    session = open_session(maker.make_dump())
    for format_, of in (("callgrind", "calls"), ("collapsed", "steps")):
        with pytest.raises(UserError, match="the recording has no table") as raised:
            write_file(session, format_, tmp_path / "out", 1000, of)
        assert raised.value.hint == "sysdock itrace records instructions"
