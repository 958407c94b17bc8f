"""Series on real directories: what is begun, measured and kept, and what goes wrong."""

from __future__ import annotations

import configparser
import fcntl
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from hung_fuse import MKDIR, hung
from made_series import Maker, add_rows, make_series
from sysdock.analysis import Session
from sysdock.errors import UserError
from sysdock.library import Library
from sysdock.probe import measuring
from sysdock.probe.series import find, parse_every
from sysdock.probe.target import Busy, target_of, unit_name
from sysdock.recording import Recording
from sysdock.recording import native as programs
from waiting import is_running, state_of, wait_for

Call = Callable[..., Result]
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


@pytest.fixture
def begun(tmp_path: Path, call: Call) -> tuple[Path, Path]:
    """A directory, and its series."""
    (tmp_path / "data").mkdir()
    call("init", tmp_path / "data", "--series", tmp_path / "series")
    return tmp_path / "data", tmp_path / "series"


def rows(series: Path, library: Library, sql: str) -> list[Any]:
    with Session(Recording.open(series), library) as session:
        return session.fetch(sql)


def once(call: Call, series: Path, *words: str) -> Result:
    return call("once", "--series", series, "--wait", "0", *words)


@pytest.mark.usefixtures("stand_in")
def test_probes_are_appended_and_the_directory_is_as_it_was(
    begun: tuple[Path, Path], call: Call, library: Library
) -> None:
    data, series = begun
    (data / ".sysdock-load").mkdir()
    (data / "log").write_text("mine")
    for _ in range(2):
        assert not once(call, series).return_value
    assert sorted(path.name for path in data.iterdir()) == [".sysdock-load", "log"]
    assert (data / "log").read_text() == "mine"
    found = rows(
        series, library, "SELECT probe_id, item, status FROM probe_results ORDER BY probe_id, step, item"
    )
    assert [row[:2] for row in found if row[0] == 2] == [
        (2, "control"), (2, "log"), (2, "random_read"), (2, "control")
    ]  # fmt: skip
    [(kernel, folder, fs_type)] = rows(series, library, "SELECT kernel, folder, fs_type FROM probe_targets")
    assert (kernel, folder) == (os.uname().release, str(data))
    assert fs_type


def test_the_plan_is_measured_by_the_generator(
    native: Path, begun: tuple[Path, Path], call: Call, library: Library
) -> None:
    done = subprocess.run([native, "load", "--help"], capture_output=True, check=False)
    if done.returncode:
        pytest.skip("this sysdock-native has no load")
    data, series = begun
    assert not once(call, series).return_value
    assert list(data.iterdir()) == []
    found = rows(
        series, library, "SELECT item, operation FROM probe_results WHERE operations_per_s > 0 ORDER BY step"
    )
    assert found[0] == found[-1] == ("control", "compute")
    assert {("log", "append"), ("random_read", "read"), ("metadata", "create")} < set(found)


@pytest.mark.parametrize(("behaviour", "status"), [("fail", "error"), ("kill", "error"), ("hang", "timeout")])
def test_a_file_system_that_cannot_be_measured_is_a_row(
    behaviour: str,
    status: str,
    stand_in: Callable[[str], None],
    begun: tuple[Path, Path],
    call: Call,
    library: Library,
) -> None:
    _, series = begun
    stand_in(behaviour)
    words = ("--timeout", "1") if behaviour == "hang" else ()
    assert once(call, series, *words).return_value == 2
    [(item, said, note)] = rows(series, library, "SELECT item, status, note FROM probe_results")
    assert (item, said) == ("probe", status)
    assert note
    stand_in("")
    assert not once(call, series).return_value
    assert rows(series, library, "SELECT max(probe_id) FROM probe_results") == [(2,)]


def test_the_newest_probe_failed_is_the_status(
    stand_in: Callable[[str], None], begun: tuple[Path, Path], call: Call
) -> None:
    _, series = begun
    stand_in("fail")
    once(call, series)
    done = call("status", "--series", series, "--lang", "en")
    assert done.return_value == 2
    assert "no space left on device" in done.stdout


@pytest.mark.usefixtures("stand_in")
def test_two_at_once_are_one(begun: tuple[Path, Path], call: Call) -> None:
    _, series = begun
    with open(series / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(UserError, match="another `sysdock probe` is writing to it"):
            once(call, series)
    assert not once(call, series).return_value


def test_a_probe_that_is_killed_half_way_takes_nothing_with_it(
    stand_in: Callable[[str], None], begun: tuple[Path, Path], call: Call, library: Library
) -> None:
    _, series = begun
    once(call, series)
    stand_in("hang")
    package = Path(measuring.__file__).resolve().parents[2]
    code = (
        "import sys; from pathlib import Path; from sysdock.recording import native; "
        "native.find_native = lambda: Path(sys.argv[1]); from sysdock.cli import main; "
        "main(['probe', 'once', '--series', sys.argv[2], '--wait', '0'])"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(programs.find_native()), str(series)],
        env={**os.environ, "PYTHONPATH": str(package)},
    )
    child = _generator_of(process.pid)
    process.kill()
    process.wait()
    os.killpg(child, signal.SIGKILL)
    wait_for(lambda: not is_running(child), "the end of the generator")
    # As a writer leaves it that is killed before recording.json lists its part.
    shutil.copy(
        next((series / "probe_results").iterdir()), series / "probe_results" / "part-000099-0.parquet"
    )
    stand_in("")
    assert not once(call, series).return_value
    assert rows(series, library, "SELECT max(probe_id), count(DISTINCT probe_id) FROM probe_results") == [
        (2, 2)
    ]
    assert not (series / "probe_results" / "part-000099-0.parquet").exists()


def _generator_of(pid: int) -> int:
    """The first child of a process, when it runs the generator: before that it holds the lock, too."""
    found: list[str] = []

    def runs() -> bool:
        found[:] = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        lines = [Path(f"/proc/{each}/cmdline").read_bytes() for each in (pid, *found[:1])]
        return len(lines) == 2 and lines[1] not in (b"", lines[0])

    wait_for(runs, "the generator")
    return int(found[0])


@needs_root
def test_a_read_only_mount_is_said_at_once_and_recorded_later(
    tmp_path: Path, call: Call, library: Library
) -> None:
    point = tmp_path / "mount"
    point.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", point], check=True)
    try:
        call("init", point, "--series", tmp_path / "series")
        subprocess.run(["mount", "-o", "remount,ro", point], check=True)
        with pytest.raises(UserError, match="cannot be probed: read-only"):
            call("init", point, "--series", tmp_path / "other")
        assert once(call, tmp_path / "series").return_value == 2
        [(options,)] = rows(
            tmp_path / "series",
            library,
            "SELECT options FROM probe_targets WHERE probe_id = 1 AND options LIKE 'ro%'",
        )
        assert options.startswith("ro")
    finally:
        subprocess.run(["umount", point], check=True)
    assert not (tmp_path / "other").exists()


@needs_root
@pytest.mark.usefixtures("stand_in")
def test_no_room_for_the_series_leaves_it_as_it_was(tmp_path: Path, call: Call, library: Library) -> None:
    point = tmp_path / "small"
    point.mkdir()
    (tmp_path / "data").mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", point], check=True)
    try:
        call("init", tmp_path / "data", "--series", point / "series")
        once(call, point / "series")
        (point / "filler").write_bytes(b"x" * shutil.disk_usage(point).free)
        with pytest.raises(OSError, match="No space left"):
            once(call, point / "series")
        assert rows(point / "series", library, "SELECT max(probe_id) FROM probe_results") == [(1,)]
        (point / "filler").unlink()
        assert not once(call, point / "series").return_value
    finally:
        subprocess.run(["umount", point], check=True)


@pytest.mark.parametrize("request_", [None, MKDIR], ids=["everything", "new folders"])
def test_a_mount_that_hangs_is_given_up(
    native: Path, begun: tuple[Path, Path], tmp_path: Path, call: Call, library: Library, request_: int | None
) -> None:
    assert native
    data, series = begun
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    command = [sys.executable, "-m", "sysdock", "probe", "once", "--series", str(series), "--wait", "0"]
    with hung(data, request_):
        done = subprocess.run(
            [*command, "--timeout", "5"],
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
            env={**os.environ, "TMPDIR": str(temporary)},
        )
        assert done.returncode == 2
        # The kernel lets nobody go whose request a server has taken and does not answer: such a one is left.
        assert {state_of(pid) for pid in _users_of(data)} == ({"D"} if request_ else set())
        assert f"probe 1 of {series} failed: the file system did not answer within 5 s" in done.stderr
        assert list(temporary.iterdir()) == []
        status = call("status", "--series", series, "--lang", "en")
        assert status.return_value == 2
        assert "did not answer within 5 s" in status.stdout
    wait_for(lambda: not _users_of(data), "the end of those who use the directory")
    [(item, said)] = rows(series, library, "SELECT item, status FROM probe_results")
    assert (item, said) == ("probe", "timeout")
    assert list(data.iterdir()) == []
    assert not once(call, series).return_value
    assert rows(series, library, "SELECT max(probe_id) FROM probe_results") == [(2,)]


def _users_of(folder: Path) -> list[int]:
    """Processes whose command lines name a folder."""
    found = []
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if os.fsencode(folder) in place.read_bytes().split(b"\0"):
                found.append(int(place.parent.name))
    return found


def test_the_series_of_a_directory_that_hangs_is_found_by_its_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: Call
) -> None:
    monkeypatch.setattr("sysdock.probe.series.default_root", lambda: tmp_path / "root")
    point = tmp_path / "mount"
    point.mkdir()
    with hung(point, MKDIR):
        call("init", point)
    [place] = (tmp_path / "root").iterdir()
    with hung(point):
        assert find(point, within_s=1.0) == place
        shutil.rmtree(place)
        with pytest.raises(UserError, match="did not answer within 1 s"):
            find(point, within_s=1.0)
        with pytest.raises(UserError, match="did not answer within 1 s"):
            target_of(point, 1.0)


def test_what_is_there_is_not_replaced(tmp_path: Path, call: Call) -> None:
    (tmp_path / "series").mkdir()
    (tmp_path / "series" / "plan.json").write_text("mine")
    with pytest.raises(UserError, match="already exists"):
        call("init", tmp_path, "--series", tmp_path / "series")
    assert (tmp_path / "series" / "plan.json").read_text() == "mine"
    with pytest.raises(UserError, match="no such file or directory"):
        call("init", tmp_path / "none", "--series", tmp_path / "other")


def test_series_are_found_by_directory_or_by_being_the_only_one(
    tmp_path: Path, monkeypatch: Any, call: Call
) -> None:
    monkeypatch.setattr("sysdock.probe.series.default_root", lambda: tmp_path / "root")
    with pytest.raises(UserError, match="there is no series of probes"):
        find(None)
    with pytest.raises(UserError, match="has no series of probes"):
        find(tmp_path)
    call("init", tmp_path)
    [place] = (tmp_path / "root").iterdir()
    assert find(None) == find(tmp_path) == find(place) == place


def test_a_busy_machine_is_waited_for_and_marked(monkeypatch: pytest.MonkeyPatch) -> None:
    busy = iter([Busy(3.0, 50.0), Busy(3.0, 50.0), Busy(0.2, 1.0)])
    monkeypatch.setattr(Busy, "now", lambda: next(busy))
    monkeypatch.setattr(measuring, "_LOOK_EVERY_S", 0.01)
    said: list[str] = []
    waited, now, above = measuring._wait(measuring.Limits(wait_s=5), said.append)
    assert (now, above) == (Busy(0.2, 1.0), False)
    assert waited > 0
    assert said == [
        "the machine is busy (load 3.0 by CPU, 50 % of the time waiting for I/O): waiting for at most 5 s"
    ]
    monkeypatch.setattr(Busy, "now", lambda: Busy(3.0, None))
    assert measuring._wait(measuring.Limits(wait_s=0), said.append)[1:] == (Busy(3.0, None), True)


@pytest.mark.parametrize(("text", "seconds"), [("10min", 600), ("1h", 3600), ("90s", 90), ("1 d", 86400)])
def test_times_between_probes_are_read(text: str, seconds: int) -> None:
    assert parse_every(text) == seconds * 10**9


@pytest.mark.parametrize("text", ["", "10", "30s", "-5min", "1.5h", "9999999999min"])
def test_other_times_are_refused(text: str) -> None:
    with pytest.raises(UserError, match="not a time of a minute or more"):
        parse_every(text)


@pytest.mark.parametrize(
    ("path", "name"), [("/", "-"), ("/srv", "srv"), ("/srv/my-db", r"srv-my\x2ddb"), ("/.a b", r"\x2ea\x20b")]
)
def test_names_are_those_of_systemd(path: str, name: str) -> None:
    assert unit_name(path) == name
    if shutil.which("systemd-escape"):
        done = subprocess.run(["systemd-escape", "--path", path], capture_output=True, text=True, check=True)
        assert done.stdout.strip() == name


def test_many_appends_leave_few_parts_and_each_row_once(library: Library, tmp_path: Path) -> None:
    series, maker = make_series(tmp_path / "series", library), Maker()
    for number in range(70):
        add_rows(series, library, maker.rows(1, number))
    parts = Recording.open(series).parts("probe_results")
    assert len(parts) == 4 + 6
    ids = [row[0] for row in rows(series, library, "SELECT probe_id FROM probe_results WHERE step = 2")]
    assert ids == list(range(1, 71))


def test_show_has_a_graph_a_table_and_what_stands_out(library: Library, tmp_path: Path, call: Call) -> None:
    def truth(number: int, item: str) -> float:
        return 1.0 if item != "log" or number < 200 else 0.05 if number == 250 else 0.7

    series = make_series(tmp_path / "series", library, Maker(truth=truth, stalls=0.0).rows(400))
    text = call("show", series, "--lang", "en").stdout
    assert sum(line.startswith("log append") for line in text.splitlines()) == 2
    [change] = [line for line in text.splitlines() if "% confidence" in line]
    assert "log append: -" in change
    assert "Outliers (ten times as long as usual): 1" in text
    assert "変化点" in call("show", series, "--lang", "ja").stdout
    call("show", series, "-o", tmp_path / "graph.svg")
    assert "<svg" in (tmp_path / "graph.svg").read_text()
    assert '"change_points"' in call("show", series, "--format", "json").stdout


def test_the_units_start_a_verb_that_there_is(
    tmp_path: Path, begun: tuple[Path, Path], call: Call, stand_in: Any
) -> None:
    assert stand_in
    units = Path(__file__).parents[2] / "wheel-data" / "data" / "lib" / "systemd" / "system"
    parsed = configparser.ConfigParser(interpolation=None)
    assert parsed.read(units / "sysdock-probe@.service")
    program, verb, *words = parsed["Service"]["ExecStart"].split()
    assert (program, verb) == ("sysdock", "probe")
    words = [word.replace("/var/lib/sysdock/probe/%i", str(begun[1])) for word in words]
    assert not call(*words, "--wait", "0").return_value
    if shutil.which("systemd-analyze") is None:
        return
    for kind in ("service", "timer"):
        text = (
            (units / f"sysdock-probe@.{kind}").read_text().replace("ExecStart=sysdock", "ExecStart=/bin/true")
        )
        (tmp_path / f"sysdock-probe@srv.{kind}").write_text(text)
    names = [tmp_path / f"sysdock-probe@srv.{kind}" for kind in ("service", "timer")]
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", *names], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
