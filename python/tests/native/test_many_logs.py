"""Logs that are large, several, shifted, still being written, or dated by times of day; and that threads change nothing."""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from sysdock.library import Library
from sysdock.recording import Recording, connect
from sysdock.recording.merging import Wishes, merge
from waiting import wait_for

DATA = Path(__file__).resolve().parents[3] / "testdata"
PYTHON = [sys.executable, "-I", "-S"]
Import = Callable[..., Path]
Manifest = Callable[[Path], dict]


def rows(recording: Path, sql: str, table: str = "calls") -> list[tuple]:
    """Rows as every analysis sees them: with pid, tid and path."""
    return connect(Recording.open(recording), Library(), [table]).execute(sql).fetchall()


def run_import(
    native: Path, recording: Path, *arguments: Path | str, **options
) -> subprocess.CompletedProcess:
    """Run `import`, whatever comes of it."""
    options = {"capture_output": True, "text": True, "stdin": subprocess.DEVNULL, "timeout": 600} | options
    return subprocess.run([native, "import", *arguments, "-o", recording], **options)


# Threads


@pytest.fixture(scope="module")
def large_log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A real log again and again, each time later and with other ids: more calls than a group of rows holds."""
    text = (DATA / "strace" / "threads.ttt_T.strace").read_text()
    text += (DATA / "strace" / "odd_files.ttt_T_y.strace").read_text("latin-1")
    ids = sorted(set(re.findall(r"^\d+", text, re.MULTILINE)))
    stamp = re.compile(rf"(?<=\s)\d{{10}}(?=\.\d{{6}} )|(?<![\w.])(?:{'|'.join(ids)})(?![\w.])")
    log = tmp_path_factory.mktemp("large") / "log"
    with log.open("w", encoding="latin-1") as file:
        copies = 440_000 // text.count("\n") + 1
        for copy in range(copies):
            shift = {known: str(int(known) + 100 * copy) for known in ids}
            file.write(stamp.sub(lambda m, s=shift, c=copy: s.get(m[0]) or str(int(m[0]) + 10 * c), text))
    return log


def a_set(folder: Path) -> list[Path]:
    return sorted((DATA / "strace" / "shell.ff").iterdir())


def with_stacks(folder: Path) -> list[Path]:
    command = ["strace", "-f", "-ttt", "-T", "-y", "-k", "-o", folder / "log", "sh", "-c"]
    subprocess.run([*command, "cat /etc/hostname | wc -c"], check=True, stdout=subprocess.DEVNULL)
    return [folder / "log"]


def of_truss(folder: Path) -> list[Path]:
    """Its lines several times, so that there are several blocks to read."""
    text = (DATA / "truss" / "threads.fldDE.truss").read_text()
    (folder / "log").write_text(text + text.split("\n", 1)[1] * 2000)
    return [folder / "log"]


def of_two_hosts(folder: Path) -> list[Path]:
    return [DATA / "strace" / name for name in ("threads.ttt_T_y.strace", "odd_files.ttt_T_y.strace")]


def same_for_any_number_of_threads(logs: list[Path], import_log: Import) -> dict[str, bytes]:
    """Import the logs with several numbers of threads, compare all files, and return them."""
    found = []
    for threads in ("1", "2", "3", "8"):
        recording = import_log(*logs, options=("--threads", threads))
        files = (path for path in sorted(recording.rglob("*")) if path.is_file())
        found.append({str(path.relative_to(recording)): path.read_bytes() for path in files})
    for other in found[1:]:
        assert list(other) == list(found[0])
        assert [name for name in other if other[name] != found[0][name]] == []
    assert "recording.json" in found[0]
    assert any(name.startswith("calls/") for name in found[0])
    return found[0]


def test_a_large_log_gives_the_same_bytes_for_any_number_of_threads(
    large_log: Path, import_log: Import, manifest: Manifest, tmp_path: Path
) -> None:
    same_for_any_number_of_threads([large_log], import_log)
    (part,) = manifest(tmp_path / "recording-0")["tables"]["calls"]["parts"]
    assert part["rows"] > 262_144


@pytest.mark.parametrize("logs", [a_set, with_stacks, of_truss, of_two_hosts])
def test_any_number_of_threads_gives_the_same_bytes(
    logs: Callable[[Path], list[Path]], import_log: Import, tmp_path: Path
) -> None:
    files = same_for_any_number_of_threads(logs(tmp_path), import_log)
    assert (logs is with_stacks) == any(name.startswith("stacks/") for name in files)


# Hosts


def node(folder: Path, name: str, text: str) -> Path:
    """A log below a folder with the name of a host."""
    (folder / name).mkdir()
    (folder / name / "run.strace").write_text(text)
    return folder / name / "run.strace"


def later(text: str, seconds: float) -> str:
    """The log of a host whose clock is so far ahead."""

    def shifted(match: re.Match) -> str:
        return f"{match[1]}{round(float(match[2]) * 10**6 + seconds * 10**6) / 10**6:.6f} "

    return re.sub(r"^(\d+ +)(\d{10}\.\d{6}) ", shifted, text, flags=re.MULTILINE)


COLUMNS = "pid, tid, comm, call, class, fd, path, kind, offset_bytes, requested_bytes, transferred_bytes, result, errno, dur_ns"


def test_each_of_two_logs_with_the_same_ids_is_read_as_if_it_were_alone(
    import_log: Import, tmp_path: Path
) -> None:
    """Their lines lie between each other, halves of calls included."""
    text = (DATA / "strace" / "threads.ttt_T.strace").read_text()
    logs = [node(tmp_path, "node1", text), node(tmp_path, "node2", later(text, 37e-6))]
    both = import_log(*logs)
    sql = f"SELECT ts_ns, {COLUMNS} FROM calls"
    order = "ORDER BY tid, ts_ns, call"
    for name, log in zip(("node1", "node2"), logs, strict=True):
        of_this = f"{sql} WHERE task_id IN (SELECT task_id FROM processes WHERE log = '{name}') {order}"
        connection = connect(Recording.open(both), Library(), ["calls", "processes"])
        assert connection.execute(of_this).fetchall() == rows(import_log(log), f"{sql} {order}")
    lives = "SELECT log, count(*), count(DISTINCT tid), min(depth), max(depth) FROM processes GROUP BY 1 ORDER BY 1"
    assert rows(both, lives, "processes") == [("node1", 10, 10, 0, 1), ("node2", 10, 10, 0, 1)]
    switches = (
        "SELECT count(*) FROM (SELECT log <> lag(log) OVER (ORDER BY ts_ns) AS other"
        " FROM calls JOIN processes USING (task_id)) WHERE other"
    )
    connection = connect(Recording.open(both), Library(), ["calls", "processes"])
    assert connection.execute(switches).fetchone()[0] > 300


def at(microseconds: int, text: str, pid: int = 7) -> str:
    """A line with an id and a time."""
    return f"{pid} {1_700_000_000 + microseconds // 10**6}.{microseconds % 10**6:06} {text}\n"


def test_descriptors_of_one_host_are_not_those_of_another(import_log: Import, tmp_path: Path) -> None:
    first = at(0, 'openat(AT_FDCWD, "/only/here", O_RDONLY) = 3 <0.000001>') + at(
        20, 'read(3, "ab", 2) = 2 <0.000001>'
    )
    second = at(10, 'read(3, "x", 1) = 1 <0.000001>') + at(30, "close(3) = 0 <0.000001>")
    first += at(40, 'read(3, "c", 1) = 1 <0.000001>')
    recording = import_log(node(tmp_path, "node1", first), node(tmp_path, "node2", second))
    assert rows(
        recording, "SELECT call, path, offset_bytes FROM calls WHERE class = 'read' ORDER BY ts_ns"
    ) == [
        ("read", None, None),
        ("read", "/only/here", 0),
        ("read", "/only/here", 2),
    ]


def test_asynchronous_operations_of_one_host_are_not_those_of_another(
    import_log: Import, tmp_path: Path
) -> None:
    """Context and data are addresses and numbers of a process: those of another one may be equal."""
    logs = []
    for number, host in enumerate(("node1", "node2")):
        block = f"{{aio_data=0x1, aio_lio_opcode=IOCB_CMD_PREAD, aio_fildes=3, aio_buf=0x1, aio_nbytes=9, aio_offset={number}}}"
        text = at(number, f'openat(AT_FDCWD, "/{host}", O_RDONLY) = 3 <0.000001>')
        text += at(10 + number, f"io_submit(0x7f00, 1, [{block}]) = 1 <0.000001>")
        text += at(
            30 - number,
            f"io_getevents(0x7f00, 1, 1, [{{data=0x1, obj=0x1, res={5 + number}, res2=0}}], NULL) = 1 <0.000001>",
        )
        logs.append(node(tmp_path, host, text))
    sql = "SELECT path, offset_bytes, transferred_bytes FROM calls WHERE via = 'libaio' ORDER BY path"
    assert rows(import_log(*logs), sql) == [("/node1", 0, 5), ("/node2", 1, 6)]


def test_logs_of_ranks_are_sessions_of_their_own(import_log: Import, tmp_path: Path) -> None:
    """Numbers from 0 or 1 on are ranks; other numbers are the threads of a set."""
    text = "".join(
        line[line.index(" ") + 1 :] for line in at(0, "getpid() = 7 <0.000001>").splitlines(keepends=True)
    )
    for numbers, pids in (((0, 1), [0, 0]), ((1, 2), [0, 0]), ((40, 41), [40, 41])):
        logs = [tmp_path / f"rank.{number}" for number in numbers]
        for log in logs:
            log.write_text(text)
        found = rows(import_log(*logs), "SELECT tid, log FROM processes ORDER BY task_id", "processes")
        assert [tid for tid, _ in found] == pids
        names = [log.name for log in logs] if pids == [0, 0] else ["rank"] * 2
        assert [name for _, name in found] == names


def test_ranks_with_the_same_ids_are_kept_apart(import_log: Import, tmp_path: Path) -> None:
    text = (DATA / "strace" / "shell.ttt_T_y.strace").read_text()
    logs = [tmp_path / "rank.0", tmp_path / "rank.1"]
    for log in logs:
        log.write_text(text)
    recording = import_log(*logs)
    alone = rows(
        import_log(logs[0]), "SELECT tid, ppid, calls, exit_code FROM processes ORDER BY tid", "processes"
    )
    for log in logs:
        sql = f"SELECT tid, ppid, calls, exit_code FROM processes WHERE log = '{log.name}' ORDER BY tid"
        assert rows(recording, sql, "processes") == alone


def test_a_set_without_a_clock_is_read_thread_by_thread(
    import_log: Import, tmp_path: Path, manifest: Manifest
) -> None:
    tree = "SELECT tid, ppid, depth, exit_code, calls, command FROM processes ORDER BY tree_order"
    logs = []
    for log in a_set(tmp_path):
        logs.append(tmp_path / log.name)
        logs[-1].write_text(re.sub(r"^\d+\.\d+ ", "", log.read_text(), flags=re.MULTILINE))
    with_clock, without = import_log(*a_set(tmp_path)), import_log(*reversed(logs))
    assert rows(without, tree, "processes") == rows(with_clock, tree, "processes")
    assert manifest(without)["clock"]["kind"] == "order"
    paths = "SELECT tid, call, path FROM calls WHERE path LIKE '/%' ORDER BY ALL"
    assert rows(without, paths) == rows(with_clock, paths)


def test_lines_of_a_set_without_a_clock_are_counted_in_the_order_of_reading(
    import_log: Import, tmp_path: Path
) -> None:
    logs = [tmp_path / "log.4000", tmp_path / "log.4001"]
    for log in logs:
        log.write_text("getpid() = 4000\n" * 3)
    recording = import_log(*logs)
    assert rows(recording, "SELECT tid FROM calls ORDER BY ts_ns") == [(4000,)] * 3 + [(4001,)] * 3
    (first, second) = rows(recording, "SELECT tid, min(ts_ns), max(ts_ns) FROM calls GROUP BY 1 ORDER BY 1")
    assert first[2] < second[1]


# Offsets


@pytest.mark.parametrize(
    ("offset", "ns"),
    [
        ("1.5", 1_500_000_000),
        ("-0.25", -250_000_000),
        ("+3", 3_000_000_000),
        ("0.123456789", 123_456_789),
        ("-1000000000.000000001", -1_000_000_000_000_000_001),
        ("0", 0),
    ],
)
def test_an_offset_shifts_one_log_exactly_and_is_recorded(
    offset: str, ns: int, import_log: Import, tmp_path: Path, manifest: Manifest
) -> None:
    text = (DATA / "strace" / "shell.ttt_T_y.strace").read_text()
    logs = [node(tmp_path, name, text) for name in ("node1", "node2")]
    recording = import_log(*logs, options=("--offset", f"node2={offset}"))
    connection = connect(Recording.open(recording), Library(), ["calls", "processes"])
    times = {
        name: [
            ts
            for (ts,) in connection.execute(
                f"SELECT ts_ns FROM calls JOIN processes USING (task_id) WHERE log = '{name}' ORDER BY 1"
            ).fetchall()
        ]
        for name in ("node1", "node2")
    }
    assert [ts + ns for ts in times["node1"]] == times["node2"]
    stated = manifest(recording)
    assert [source["offset_ns"] for source in stated["sources"]] == [0, ns]
    assert stated["started_ns"] == min(times["node1"][0], times["node2"][0])


@pytest.mark.parametrize("name", ["run.node2.txt", "node2", "run"])
def test_an_offset_names_a_log_by_its_name_or_a_dotted_part(
    name: str, import_log: Import, tmp_path: Path, manifest: Manifest
) -> None:
    logs = [tmp_path / "run.node1.txt", tmp_path / "run.node2.txt"]
    for log in logs:
        log.write_text(at(0, "getpid() = 7 <0.000001>"))
    stated = manifest(import_log(*logs, options=("--offset", f"{name}=2")))
    shifted = [0, 2 * 10**9] if name != "run" else [2 * 10**9] * 2
    assert [source["offset_ns"] for source in stated["sources"]] == shifted


@pytest.mark.parametrize(
    ("offset", "hint"),
    [
        ("node9=1", "the logs are: node1, node2"),
        ("node=1", "the logs are: node1, node2"),
        ("node2", "write it as node3=-0.25"),
        ("node2=", "write it as node3=-0.25"),
        ("=1", "write it as node3=-0.25"),
        ("node2=1s", "write it as node3=-0.25"),
        ("node2=--1", "write it as node3=-0.25"),
        ("node2=1e3", "write it as node3=-0.25"),
        ("node2=0.0000000001", "write it as node3=-0.25"),
        ("node2=99999999999999999999", "write it as node3=-0.25"),
    ],
)
def test_an_offset_that_is_none_is_refused_with_a_hint(
    offset: str, hint: str, native: Path, tmp_path: Path
) -> None:
    logs = [node(tmp_path, name, at(0, "getpid() = 7 <0.000001>")) for name in ("node1", "node2")]
    done = run_import(native, tmp_path / "rec", *logs, "--offset", offset)
    assert done.returncode == 2
    assert f"--offset {offset.split('=')[0]}" in done.stderr
    assert f"\n\nhint: {hint}\n" in done.stderr
    assert not (tmp_path / "rec").exists()


# Clocks that differ

FILES = 12


@pytest.fixture(scope="module")
def meeting(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Logs of two programs that were run side by side and shared files."""
    folder = tmp_path_factory.mktemp("meeting")
    (folder / "shared").mkdir()
    running = []
    for part in ("create", "look"):
        command = [*PYTHON, DATA / "programs" / "meet.py", folder / "shared", part, str(FILES)]
        running.append(subprocess.Popen(["strace", "-f", "-ttt", "-T", "-y", "-o", folder / part, *command]))
    assert [process.wait(600) for process in running] == [0, 0]
    return {part: (folder / part).read_text() for part in ("create", "look")}


def said(stderr: str) -> tuple[str, float, float, float]:
    """What `--align` says of the second log: its name, the offset, and the range."""
    number = r"([+-](?:\d+\.\d{6}|∞)|∞)"
    pattern = rf"^sysdock: (\S+): {number} s are added to its times \(from {number} to {number} s fit (\d+) shared files\)$"
    name, *numbers, files = re.search(pattern, stderr, re.MULTILINE).groups()
    assert int(files) > 0
    return name, *(float(number.replace("∞", "inf")) for number in numbers)


@pytest.mark.parametrize("first", ["create", "look"])
@pytest.mark.parametrize("ahead", [100.25, 0, -7200.5])
def test_align_finds_how_far_clocks_are_apart_from_files_that_logs_share(
    first: str, ahead: float, meeting: dict[str, str], native: Path, tmp_path: Path, manifest: Manifest
) -> None:
    second = {"create": "look", "look": "create"}[first]
    text = later(meeting[second], ahead)
    logs = [node(tmp_path, first, meeting[first]), node(tmp_path, second, text)]
    done = run_import(native, tmp_path / "rec", *logs, "--align", check=True)
    name, offset, least, greatest = said(done.stderr)
    assert name == second
    assert least - 1e-6 <= -ahead <= greatest + 1e-6
    assert least <= offset <= greatest
    assert greatest - least < 0.1
    assert abs(offset + ahead) <= greatest - least + 1e-6
    if ahead == 0:
        assert offset == 0
    recorded = [source["offset_ns"] for source in manifest(tmp_path / "rec")["sources"]]
    assert recorded[0] == 0
    assert abs(recorded[1] - offset * 1e9) <= 1000
    causes_come_first(tmp_path / "rec")


def test_merge_compares_clocks_as_the_log_reader_does(
    meeting: dict[str, str], native: Path, tmp_path: Path
) -> None:
    logs = [
        node(tmp_path, "create", meeting["create"]),
        node(tmp_path, "look", later(meeting["look"], 100.25)),
    ]
    done = run_import(native, tmp_path / "rec", *logs, "--align", check=True)
    alone = [tmp_path / "one", tmp_path / "two"]
    for log, recording in zip(logs, alone, strict=True):
        run_import(native, recording, log, check=True)
    opened = [Recording.open(recording) for recording in alone]
    merged = merge(opened, Library(), tmp_path / "job", Wishes(align=True))
    [remark] = [text for text in merged.remarks if "are added to its times" in text]
    assert said(f"sysdock: {remark}")[1:] == said(done.stderr)[1:]
    causes_come_first(tmp_path / "rec")
    sql = "SELECT ts_ns, dur_ns, call FROM calls ORDER BY ALL"
    assert rows(tmp_path / "job", sql) == rows(tmp_path / "rec", sql)


def causes_come_first(recording: Path) -> None:
    """No file is found before its making began, none is missed after it had ended.

    strace takes the time for -T when it has printed the arguments: a call ends up to a millisecond behind stamp and duration.
    """
    delay = 1_000_000
    sql = (
        "SELECT path, errno, result IS NOT NULL, log, ts_ns, ts_ns + dur_ns FROM calls JOIN processes USING (task_id)"
        " WHERE call = 'openat' AND (path LIKE '%/made-%' OR path LIKE '%/seen-%')"
    )
    opens = connect(Recording.open(recording), Library(), ["calls", "processes"]).execute(sql).fetchall()
    for number in range(FILES):
        for kind, maker in (("made", "create"), ("seen", "look")):
            of_file = [row[1:] for row in opens if row[0].endswith(f"/{kind}-{number}")]
            ((start, end),) = [row[3:] for row in of_file if row[2] == maker]
            found = [row[4] for row in of_file if row[2] != maker and row[1]]
            missed = [row[3] for row in of_file if row[0] == "ENOENT"]
            assert len(found) == 1
            assert start <= found[0] + delay
            assert all(look <= end + delay for look in missed)


def test_align_says_so_where_logs_share_no_file(
    native: Path, tmp_path: Path, manifest: Manifest, meeting: dict[str, str]
) -> None:
    other = (DATA / "strace" / "shell.ttt_T_y.strace").read_text()
    logs = [node(tmp_path, "node1", meeting["create"]), node(tmp_path, "node2", other)]
    done = run_import(native, tmp_path / "rec", *logs, "--align", check=True)
    assert "sysdock: node2: no shared file to compare clocks by" in done.stderr
    assert "--offset node2=SECONDS" in done.stderr
    assert [source["offset_ns"] for source in manifest(tmp_path / "rec")["sources"]] == [0, 0]


# Logs that are still written


def write_in_pieces(log: Path, data: bytes, pieces: int) -> None:
    """Append a log piece by piece; pieces end anywhere in a line."""
    cuts = sorted(random.Random(7).sample(range(1, len(data)), pieces))
    for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True):
        with log.open("ab") as file:
            file.write(data[start:end])
        time.sleep(0.6 / pieces)


def test_a_log_that_grows_is_followed_until_every_process_has_ended(
    native: Path, tmp_path: Path, import_log: Import, manifest: Manifest
) -> None:
    source = DATA / "strace" / "odd_files.ttt_T_y.strace"
    data = source.read_bytes()
    log = tmp_path / "growing"
    log.write_bytes(data[:100])
    writer = threading.Thread(target=write_in_pieces, args=(log, data[100:], 60))
    writer.start()
    done = run_import(native, tmp_path / "rec", log, "--follow")
    alive = writer.is_alive()
    writer.join()
    assert (done.returncode, done.stderr) == (0, "")
    assert not alive, "it ended before the log"
    everything = "SELECT * EXCLUDE (task_id) FROM calls ORDER BY ALL"
    assert rows(tmp_path / "rec", everything) == rows(import_log(source), everything)
    stated = manifest(tmp_path / "rec")
    assert (stated["complete"], stated["has_exits"], stated["issues"]) == (True, True, {})
    assert stated["lines_total"] == data.count(b"\n")


def test_a_set_that_is_complete_is_followed_to_its_end(
    native: Path, tmp_path: Path, import_log: Import
) -> None:
    """Files of threads that have ended do not hold up the others."""
    logs = a_set(tmp_path)
    done = run_import(native, tmp_path / "rec", *logs, "--follow", timeout=600)
    assert (done.returncode, done.stderr) == (0, "")
    everything = "SELECT * EXCLUDE (task_id) FROM calls ORDER BY ALL"
    assert rows(tmp_path / "rec", everything) == rows(import_log(*logs), everything)


def position(process: int, file: Path) -> int:
    """How far a process has read a file."""
    for descriptor in Path(f"/proc/{process}/fd").iterdir():
        if os.path.realpath(descriptor) == str(file):
            info = Path(f"/proc/{process}/fdinfo/{descriptor.name}").read_text()
            return int(info.split("\n")[0].split()[1])
    return 0


def test_ctrl_c_ends_following_with_a_recording_of_what_was_there(
    native: Path, tmp_path: Path, manifest: Manifest, import_log: Import
) -> None:
    """The line that has no end yet is left out, or counted as one that was cut."""
    lines = (DATA / "strace" / "shell.ttt_T_y.strace").read_text().splitlines(keepends=True)[:200]
    log = tmp_path / "growing"
    log.write_text("".join(lines) + "4242 1700000000.0000")
    command = [native, "import", log, "-o", tmp_path / "rec", "--follow"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    wait_for(lambda: position(process.pid, log) >= log.stat().st_size, "the end of the log")
    process.send_signal(signal.SIGINT)
    assert process.wait(600) == 130
    assert process.stderr.read() == ""
    stated = manifest(tmp_path / "rec")
    assert (stated["complete"], stated["ended_by"], stated["has_exits"]) == (False, "interrupted", False)
    count = "SELECT count(*), min(ts_ns), max(ts_ns) FROM calls"
    (tmp_path / "whole").write_text("".join(lines))
    assert rows(tmp_path / "rec", count) == rows(import_log(tmp_path / "whole"), count)


# Times of day


def import_in_berlin(native: Path, tmp_path: Path, date: str, times: list[str]) -> Path:
    log = tmp_path / "log"
    log.write_text("".join(f"{stamp} getpid() = 7\n" for stamp in times))
    environment = os.environ | {"TZ": "Europe/Berlin"}
    done = run_import(native, tmp_path / "rec", log, "--date", date, env=environment)
    assert (done.returncode, done.stderr) == (0, "")
    return tmp_path / "rec"


def seconds(recording: Path) -> list[float]:
    """Seconds since the first line, in order of time."""
    times = [ts for (ts,) in rows(recording, "SELECT ts_ns FROM calls ORDER BY 1")]
    return [(ts - times[0]) / 10**9 for ts in times]


def test_an_hour_that_comes_twice_when_summer_time_ends_lasts_two_hours(
    native: Path, tmp_path: Path, manifest: Manifest
) -> None:
    times = ["01:59:59", "02:00:00", "02:59:59", "02:00:00", "03:00:00"]
    recording = import_in_berlin(native, tmp_path, "2026-10-25", times)
    assert seconds(recording) == [0, 1, 3600, 3601, 7201]
    # 01:59:59 of summer time is 23:59:59 UTC of the day before.
    assert manifest(recording)["started_ns"] == 1_792_886_399 * 10**9
    assert manifest(recording)["clock"]["note"] == [{"code": "clock/date_given"}]


def test_the_hour_that_is_left_out_when_summer_time_begins_takes_no_time(
    native: Path, tmp_path: Path, manifest: Manifest
) -> None:
    recording = import_in_berlin(native, tmp_path, "2026-03-29", ["01:59:59.5", "03:00:00.25", "04:00:00.25"])
    assert seconds(recording) == [0, 0.75, 3600.75]
    # 01:59:59 of winter time is 00:59:59 UTC.
    assert manifest(recording)["started_ns"] == 1_774_745_999 * 10**9 + 500_000_000


def test_midnight_passes_also_when_clocks_are_changed_later_that_night(native: Path, tmp_path: Path) -> None:
    times = ["23:59:59", "00:00:00", "02:30:00", "02:10:00.5", "02:59:59", "03:00:00"]
    recording = import_in_berlin(native, tmp_path, "2026-10-24", times)
    # A step back by less than half an hour is a correction, not the second hour.
    hour = 3600
    assert seconds(recording) == [0, 1, 2 * hour + 601.5, 2.5 * hour + 1, 3 * hour, 4 * hour + 1]


@pytest.mark.parametrize(
    ("steps", "times", "most"), [([0, 5, 3, 9, -1], 2, 10), ([0, 5, 4.5, 9], 0, 0), ([0, 100, 0], 1, 100)]
)
def test_times_that_run_back_by_more_than_a_second_are_counted_in_the_note(
    steps: list[float], times: int, most: int, import_log: Import, manifest: Manifest
) -> None:
    log = "".join(f"7 {1_700_000_000 + step:.6f} getpid() = 7 <0.000001>\n" for step in steps)
    recording = import_log(log)
    note = manifest(recording)["clock"].get("note", [])
    assert note == ([{"code": "clock/runs_back", "times": times, "step": most * 10**9}] if times else [])
    assert seconds(recording) == sorted(step - min(steps) for step in steps)
