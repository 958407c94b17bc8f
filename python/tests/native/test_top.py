"""What `top` shows, against work of a known size, and what it does to a terminal."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from recorders import recorder_or_skip
from scenes import PROGRAMS, STRICT
from waiting import cpu_s

WIDTH, HEIGHT = 80, 24
VIEWS = ("process", "cgroup", "file", "device", "lock")
# Writes and reads back a file of that size by calls of 4096 bytes, then waits for it to be on the disk.
WORK = """
import os, sys
path, calls = sys.argv[1], int(sys.argv[2])
file = os.open(path, os.O_RDWR | os.O_CREAT)
for _ in range(calls):
    os.write(file, bytes(4096))
for call in range(calls // 2):
    os.pread(file, 4096, 4096 * call)
os.fsync(file)
"""


@pytest.fixture
def kernel(native: Path) -> None:
    """Skips where no programs may be loaded."""
    recorder_or_skip(native, "kernel")


def once(native: Path, view: str, *options: str) -> dict[str, Any]:
    """One interval."""
    words = [native, "top", "--once", "--format=json", f"--view={view}", *options]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    table: dict[str, Any] = json.loads(done.stdout)
    return table


def during(native: Path, work: Callable[[], None], view: str, *options: str) -> tuple[dict[str, Any], bool]:
    """One interval in which some work is done, and whether all of it was."""
    words = [native, "top", "--once", "--format=json", f"--view={view}", *options]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as top:
        while not is_measuring(top.pid):
            assert top.poll() is None
            time.sleep(0.01)
        work()
        is_whole = top.poll() is None
        text, _ = top.communicate()
    assert top.returncode == 0
    return json.loads(text), is_whole


def is_measuring(pid: int) -> bool:
    """Whether its first reading is done: it sleeps then."""
    try:
        return "nanosleep" in Path(f"/proc/{pid}/wchan").read_text()
    except FileNotFoundError:
        return False


@pytest.fixture
def burner() -> Iterator[int]:
    """A process that does nothing but calculate."""
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as process:
        yield process.pid
        process.kill()


@pytest.mark.parametrize("view", VIEWS)
def test_each_view_says_what_its_numbers_are(native: Path, kernel: None, view: str) -> None:
    table = once(native, view, "--interval=200ms")
    assert (table["view"], table["lost"], table["note"]) == (view, 0, None)
    assert table["interval_s"] >= 0.2
    assert table["rows_total"] == len(table["rows"])
    assert all(row.keys() == table["units"].keys() for row in table["rows"])
    seconds = {name for name, unit in table["units"].items() if unit == "s"}
    assert all(name.endswith("_s") for name in seconds)


def test_cpu_time_is_the_kernels(native: Path, burner: int) -> None:
    tried = []
    for _ in range(5):
        before = cpu_s(burner)
        table = once(native, "process")
        used = cpu_s(burner) - before
        row = next(row for row in table["rows"] if row["pid"] == burner)
        # Ticks are coarse, and the two readings lie around those of the view.
        assert 0 < row["cpu_s"] <= used + 0.1
        if row["cpu_wait_s"] is None:
            return
        tried.append((row["cpu_s"] + row["cpu_wait_s"]) / table["interval_s"])
        # The kernel counts a wait when it is over: on a busy machine the last one may be missing.
        if tried[-1] == pytest.approx(1, rel=0.1):
            return
    raise AssertionError(tried)


def test_a_control_group_has_the_sum_of_its_processes(native: Path, kernel: None, burner: int) -> None:
    text = Path(f"/proc/{burner}/cgroup").read_text()
    group = next(line[3:] for line in text.splitlines() if line.startswith("0::"))
    before = cpu_s(burner)
    rows = {row["cgroup"]: row for row in once(native, "cgroup")["rows"]}
    assert rows[group]["processes"] >= 1
    assert rows[group]["cpu_s"] >= 0.5 * (cpu_s(burner) - before)


def test_a_file_has_the_bytes_of_the_calls(native: Path, kernel: None, tmp_path: Path) -> None:
    path, calls = tmp_path / "a\nfile", 1000
    for _ in range(5):
        path.unlink(missing_ok=True)
        command = [sys.executable, "-c", WORK, path, str(calls)]
        table, is_whole = during(
            native, lambda command=command: subprocess.run(command, check=True), "file", "--interval=4s"
        )
        if is_whole and not table["lost"]:
            break
    else:
        pytest.skip(
            "the machine is too busy: the work took longer than the interval, or too many files were used"
        )
    row = next(row for row in table["rows"] if row["path"] == str(path))
    assert (row["written_bytes"], row["writes"]) == (4096 * calls, calls)
    assert (row["read_bytes"], row["reads"], row["syncs"]) == (2048 * calls, calls // 2, 1)
    assert row["bytes"] == row["read_bytes"] + row["written_bytes"]
    assert row["time_s"] > 0
    comm = Path(sys.executable).resolve().name[:15]
    assert row["command"] in (comm, Path(sys.executable).name[:15])


def test_calls_are_counted_by_process(native: Path, kernel: None) -> None:
    program = "import os\nwhile True: os.getppid()\n"
    with subprocess.Popen([sys.executable, "-c", program]) as process:
        row = next(row for row in once(native, "process", "--calls")["rows"] if row["pid"] == process.pid)
        process.kill()
    assert row["calls"] > 1000
    assert row["call_errors"] <= row["calls"]
    assert row["call_s"] > 0


def test_a_lock_has_its_name(native: Path, kernel: None, tmp_path: Path) -> None:
    program = tmp_path / "lock_storms"
    subprocess.run(["gcc", "-O1", *STRICT, "-o", program, PROGRAMS / "lock_storms.c"], check=True)
    with subprocess.Popen([program, "mappings", tmp_path, "1000000"]) as storm:
        table = once(native, "lock")
        storm.kill()
    row = next(row for row in table["rows"] if row["name"] == "mm_struct.mmap_lock")
    assert (row["kind"], row["waiter"]) == ("rwsem", "lock_storms")
    assert row["waits"] > 0
    assert 0 < row["longest_s"] <= row["wait_s"]
    assert table["rows"][0]["wait_s"] == max(row["wait_s"] for row in table["rows"])


def test_devices_are_those_of_the_machine(native: Path) -> None:
    rows = once(native, "device", "--interval=200ms")["rows"]
    assert {row["device"].replace("/", "!") for row in rows} <= {
        path.name for path in Path("/sys/block").iterdir()
    }


def test_text_is_sorted_filtered_and_limited(native: Path) -> None:
    words = [native, "top", "--once", "--interval=200ms", "--sort=pid", "--limit=3"]
    lines = subprocess.run(words, capture_output=True, text=True, check=True).stdout.splitlines()
    head = next(number for number, line in enumerate(lines) if line.split()[0] == "PID")
    pids = [int(line.split()[0]) for line in lines[head + 1 :]]
    assert len(pids) == 3
    assert pids == sorted(pids, reverse=True)
    words += ["--filter=no process has such a name"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "nothing has this in its name"


@pytest.mark.parametrize("words", [["--sort=size"], ["--interval=1ms"], ["--view=disk"], []])
def test_mistakes_end_with_a_hint(native: Path, words: list[str]) -> None:
    options = {"stdin": subprocess.DEVNULL, "capture_output": True, "text": True, "check": False}
    done = subprocess.run([native, "top", *words], **options)
    assert (done.returncode, done.stdout) == (2, "")
    assert "hint:" in done.stderr or "For more information" in done.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="gives up the rights of root")
def test_without_rights_it_says_what_it_lacks(native: Path) -> None:
    def run(view: str) -> subprocess.CompletedProcess[str]:
        words = [native, "top", "--once", "--format=json", "--interval=200ms", f"--view={view}"]
        return subprocess.run(
            ["setpriv", "--reuid=65534", "--clear-groups", "--", *words],
            capture_output=True,
            text=True,
            check=False,
        )

    for view in ("file", "lock"):
        done = run(view)
        assert (done.returncode, done.stdout) == (2, "")
        assert "needs CAP_BPF and CAP_PERFMON\n\nhint: run it as root" in done.stderr
    table = json.loads(run("process").stdout)
    assert "CAP_BPF and CAP_PERFMON" in table["note"]
    assert [row["cpu_wait_s"] for row in table["rows"] if row["pid"] == 1] == [None]
    assert json.loads(run("device").stdout)["view"] == "device"


class Terminal:
    """A terminal with `top` in it."""

    def __init__(self, native: Path, *options: str) -> None:
        self.ours, self.theirs = pty.openpty()
        fcntl.ioctl(self.theirs, termios.TIOCSWINSZ, struct.pack("HHHH", HEIGHT, WIDTH, 0, 0))
        self.before = termios.tcgetattr(self.theirs)
        ends = {"stdin": self.theirs, "stdout": self.theirs, "stderr": subprocess.PIPE}
        self.process = subprocess.Popen([native, "top", *options], **ends)
        self.output = ""

    def read(self) -> None:
        """What comes next."""
        self.output += os.read(self.ours, 65536).decode()

    def frames(self) -> list[list[str]]:
        """What was on the screen, one time after another, without the last, which may not be whole."""
        drawn = self.output.split("\x1b[H")[1:-1]
        return [re.sub(r"\x1b\[\??\d*[A-Za-z]", "", frame).split("\r\n") for frame in drawn]

    def until(self, text: str) -> None:
        """Read until a whole screen has this."""
        seen = len(self.frames())
        while not any(text in line for frame in self.frames()[seen:] for line in frame):
            self.read()

    def press(self, keys: str) -> None:
        os.write(self.ours, keys.encode())

    def end(self) -> int:
        """Wait for its end."""
        code = self.process.wait()
        os.set_blocking(self.ours, False)
        with contextlib.suppress(BlockingIOError):
            while True:
                self.read()
        assert termios.tcgetattr(self.theirs) == self.before
        assert self.output.endswith("\x1b[?25h\x1b[?1049l")
        return code


@pytest.fixture
def terminal(native: Path) -> Iterator[Terminal]:
    opened = Terminal(native, "--interval=100ms")
    yield opened
    opened.process.kill()
    opened.process.wait()
    os.close(opened.ours)
    os.close(opened.theirs)


def test_a_terminal_of_80_columns_shows_each_view(terminal: Terminal, kernel: None) -> None:
    terminal.until("COMMAND")
    headings = ["CONTROL GROUP", "by file", "DEVICE", "by lock", "INCALL", "PREEMP"]
    for key, heading in zip("cfdlyy", headings, strict=True):
        terminal.press(key)
        terminal.until(heading)
    for frame in terminal.frames():
        assert len(frame) == HEIGHT
        assert [line for line in frame if len(line) > WIDTH] == []
        assert frame[0].startswith("sysdock top  by ")
        assert frame[-1].endswith("q: quit")
    terminal.press("q")
    assert terminal.end() == 0


def test_keys_sort_filter_and_pause(terminal: Terminal) -> None:
    terminal.until("sort cpu_s")
    terminal.press(">")
    terminal.until("sort cpu_wait_s")
    terminal.press("<<")
    terminal.until("sort pid")
    terminal.press("/sysdock-nat")
    terminal.until("filter: sysdock-nat_")
    terminal.press("\r")
    terminal.until("q: quit")
    pids = [line.split()[0] for line in terminal.frames()[-1][1:-1] if line.split()[:1] not in ([], ["PID"])]
    assert str(terminal.process.pid) in pids
    terminal.press(" ")
    terminal.until("PAUSED")
    terminal.press("\x03")
    assert terminal.end() == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_leaves_the_terminal_as_it_was(terminal: Terminal, number: int) -> None:
    terminal.until("COMMAND")
    terminal.process.send_signal(number)
    assert terminal.end() == -number


def test_a_smaller_terminal_has_less(terminal: Terminal) -> None:
    terminal.until("COMMAND")
    fcntl.ioctl(terminal.theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 10, 40, 0, 0))
    while not any(len(frame) == 10 for frame in terminal.frames()):
        terminal.read()
    assert max(map(len, next(frame for frame in terminal.frames() if len(frame) == 10))) <= 40
    terminal.press("q")
    assert terminal.end() == 0


def test_a_terminal_that_stands_still_ends_it_all_the_same(terminal: Terminal) -> None:
    """Nobody reads what it writes, as after Ctrl-S or behind a connection that hangs."""
    time.sleep(2)
    terminal.press("q")
    assert terminal.process.wait(timeout=600) == 0
    assert termios.tcgetattr(terminal.theirs) == terminal.before
