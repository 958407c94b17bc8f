"""Flame graphs: weights add up to the time in calls, and the viewers themselves open them."""

from __future__ import annotations

import base64
import contextlib
import io
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from make_recording import RecordingMaker, sample_calls
from sysdock.analysis import Session
from sysdock.errors import UserError
from sysdock.export import WRITERS
from sysdock.export.files import write_file
from waiting import wait_for

_SHARE = Path(sys.prefix) / "share"
VIEWER = _SHARE / "speedscope" / "dist" / "release"
FIREFOX = _SHARE / "profiler-cli" / "dist" / "profiler-cli.js"


@pytest.fixture
def session(maker: RecordingMaker, open_session) -> Session:
    """The sample, with stacks on two calls."""
    stacks = [
        {"stack_id": 0, "frame": 0, "function": "write"},
        {"stack_id": 0, "frame": 1, "function": "flush; all"},
        {"stack_id": 0, "frame": 2, "function": "main"},
    ]
    more = [
        {"t": 0.9, "call": "write", "path": "/out", "dur_ns": 5_000_000, "stack_id": 0, "comm": "tar"}
    ] * 2
    return open_session(maker.make([*sample_calls(), *more], stacks=stacks))


def written(session: Session, format_: str, most: int = 1000) -> str:
    """The export in memory."""
    out = io.BytesIO()
    WRITERS[format_](session, out, most)
    return out.getvalue().decode()


def time_ns(session: Session) -> int:
    """Time in all calls, by another query."""
    return session.fetch("SELECT sum(dur_ns) FROM calls")[0][0]


def test_collapsed_lines_add_up(session: Session) -> None:
    lines = [line.rpartition(" ") for line in written(session, "collapsed").splitlines()]
    assert sum(int(weight) for _, _, weight in lines) == time_ns(session)
    # `;` parts frames, so it cannot stand in one.
    assert lines[0][0] == "tar;main;flush: all;write;write;/out"
    assert int(lines[0][2]) == 10_000_000


def test_speedscope_weights_add_up(session: Session) -> None:
    content = json.loads(written(session, "speedscope"))
    [profile] = content["profiles"]
    assert sum(profile["weights"]) == profile["endValue"] == time_ns(session)
    names = [frame["name"] for frame in content["shared"]["frames"]]
    assert [names[at] for at in profile["samples"][0]] == [
        "tar",
        "main",
        "flush; all",
        "write",
        "write",
        "/out",
    ]


def test_cpu_time_has_functions_of_the_program_and_of_the_kernel(maker: RecordingMaker, open_session) -> None:
    session = open_session(maker.make_waits())
    out = io.BytesIO()
    WRITERS["collapsed"](session, out, 1000, of="cpu")
    # Eleven samples in the program and one in the kernel, of 5 ms each.
    assert out.getvalue().decode() == "?;add 55000000\n?;add;asm_exc_page_fault_[k] 5000000\n"
    out = io.BytesIO()
    WRITERS["speedscope"](session, out, 1000, of="cpu")
    [profile] = json.loads(out.getvalue())["profiles"]
    assert (profile["name"], profile["unit"], profile["endValue"]) == ("CPU time", "nanoseconds", 60_000_000)


def test_waits_say_what_for_and_who_ended_them(maker: RecordingMaker, open_session) -> None:
    session = open_session(maker.make_waits())
    out = io.BytesIO()
    WRITERS["collapsed"](session, out, 1000, of="waits")
    assert out.getvalue().decode().splitlines() == [
        "?;read;waiting: disk;/data;woken by interrupt 30000000",
        "?;read;waiting for a CPU;/data 1000000",
    ]


def test_what_a_recording_or_a_format_lacks(
    maker: RecordingMaker, open_session, session: Session, tmp_path: Path
) -> None:
    with pytest.raises(UserError, match="the recording has no table samples"):
        write_file(session, "collapsed", tmp_path / "out", 10, "cpu")
    with pytest.raises(UserError, match="firefox has no flame graph of waits"):
        write_file(open_session(maker.make_waits()), "firefox", tmp_path / "out", 10, "waits")
    assert not (tmp_path / "out").exists()


def test_without_durations_calls_are_counted(maker: RecordingMaker, open_session) -> None:
    calls = [{"call": "getpid", "comm": "x"}] * 7
    clock = {"kind": "epoch", "has_durations": False}
    session = open_session(maker.make(calls, clock=clock))
    assert written(session, "collapsed") == "x;getpid 7\n"
    assert json.loads(written(session, "speedscope"))["profiles"][0]["unit"] == "none"


@pytest.fixture(scope="module")
def browser(launch: Callable[..., Any]) -> Iterator[Any]:
    """Chromium that draws as if it had a graphics processor: speedscope needs one."""
    opened = launch("--enable-unsafe-swiftshader")
    yield opened
    opened.close()


@pytest.mark.parametrize("format_", ["speedscope", "collapsed", "chrome"])
def test_speedscope_opens_it(session: Session, tmp_path: Path, browser: Any, format_: str) -> None:
    if not VIEWER.is_dir():
        pytest.skip("no speedscope: tools/setup dev")
    # This is how speedscope's own command hands a file to the page.
    content = base64.b64encode(written(session, format_).encode()).decode()
    loader = tmp_path / "profile.js"
    loader.write_text(f"speedscope.loadFileFromBase64('rec.{format_}', '{content}')")
    context = browser.new_context(offline=True)
    page = context.new_page()
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("dialog", lambda dialog: (errors.append(dialog.message), dialog.dismiss()))
    page.goto(f"{(VIEWER / 'index.html').as_uri()}#localProfilePath={loader}")
    # It names the profile in the title once it has read it, and shows its three views.
    name = "tar cf /dev/null" if format_ == "speedscope" else f"rec.{format_}"
    page.wait_for_function("name => document.title.includes(name)", arg=name)
    shown = page.inner_text("body")
    context.close()
    assert errors == []
    assert "Left Heavy" in shown


@pytest.fixture
def ask_firefox(monkeypatch) -> Iterator[Callable[..., dict]]:
    """Opens a profile with the command line of the Firefox Profiler, and asks it."""
    node = shutil.which("node")
    if not node or not FIREFOX.is_file():
        pytest.skip("no node or no profiler-cli: tools/setup dev")
    # Its socket lies there, whose path must be short.
    folder = tempfile.TemporaryDirectory()
    monkeypatch.setenv("PROFILER_CLI_SESSION_DIR", folder.name)

    log = Path(folder.name) / "0.log"
    with folder, contextlib.ExitStack() as daemons:

        def start(profile: str) -> None:
            """Its own verb gives the daemon half a second, which is too little on a busy machine."""
            command = [node, str(FIREFOX), "--daemon", profile, "--session", "0"]
            daemon = daemons.enter_context(subprocess.Popen(command, stdout=subprocess.DEVNULL))
            daemons.callback(daemon.kill)
            # Who asks it earlier removes its session.
            wait_for(lambda: log.exists() and "Profile loaded" in log.read_text(), "the daemon")

        def ask(*words: str) -> dict:
            if words[0] == "load":
                start(words[1])
                return {}
            command = [node, str(FIREFOX), *words, "--session", "0", "--json"]
            done = subprocess.run(command, capture_output=True, text=True, timeout=600)
            assert done.returncode == 0, done.stderr
            return json.loads(done.stdout) if done.stdout.startswith("{") else {}

        yield ask


def test_the_firefox_profiler_reads_every_call(session: Session, tmp_path: Path, ask_firefox) -> None:
    (tmp_path / "rec.json").write_text(written(session, "firefox"))
    ask_firefox("load", str(tmp_path / "rec.json"))
    read = {}
    for thread in ask_firefox("thread", "list")["threads"]:
        handle = thread["threadHandle"]
        for kind in ask_firefox("thread", "markers", "--thread", handle)["byType"]:
            total_ms = kind["durationStats"]["avg"] * kind["count"] if kind["isInterval"] else 0
            read[thread["tid"], kind["markerName"]] = (kind["count"], round(total_ms * 1e6))
    sql = "SELECT task_id, call, count(*), coalesce(sum(dur_ns), 0) FROM calls GROUP BY ALL"
    expected = {(life, call): (count, ns) for life, call, count, ns in session.fetch(sql)}
    assert read == {key: (count, pytest.approx(ns, abs=count)) for key, (count, ns) in expected.items()}


def test_the_firefox_profiler_sums_the_time_of_stacks(session: Session, tmp_path: Path, ask_firefox) -> None:
    (tmp_path / "rec.json").write_text(written(session, "firefox"))
    ask_firefox("load", str(tmp_path / "rec.json"))
    threads = ask_firefox("thread", "list")["threads"]
    found = [ask_firefox("thread", "functions", "--thread", thread["threadHandle"]) for thread in threads]
    self_ms = {each["name"]: each["totalSamples"] for one in found for each in one["functions"]}
    assert self_ms["main"] == self_ms["flush; all"] == pytest.approx(10)
    assert self_ms["/out"] == pytest.approx(10)


def test_firefox_profiles_count_calls_without_durations(maker: RecordingMaker, open_session) -> None:
    clock = {"kind": "epoch", "has_durations": False}
    session = open_session(maker.make([{"call": "getpid", "comm": "x"}] * 7, clock=clock))
    [thread] = json.loads(written(session, "firefox"))["threads"]
    assert (thread["samples"]["weight"], thread["samples"]["weightType"]) == ([1] * 7, "samples")
    assert set(thread["markers"]["phase"]) == {0}
