"""Logs of truss: the samples in testdata/truss, dumps, and what the recording says about times."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from stated import stated

SAMPLES = Path(__file__).parents[3] / "testdata" / "truss"
LINES = {"buffers.aerw": 47, "threads.fldDE": 31, "structures.fvxu": 26, "gaps.lD": 9}

ImportLog = Callable[..., Path]
Query = Callable[[Path, str], list[tuple]]


def stated_in(recording: Path) -> dict:
    return stated(recording)


@pytest.mark.parametrize("name", LINES)
def test_every_line_of_the_samples_is_understood(name: str, import_log: ImportLog) -> None:
    stated = stated_in(import_log(SAMPLES / f"{name}.truss"))
    assert (stated["lines_total"], stated["lines_understood"]) == (LINES[name], LINES[name])
    assert (stated["recorder"], stated["issues"], stated["has_exits"]) == ("truss-log", {}, True)


def test_the_sample_with_threads_gives_what_was_counted_by_hand(import_log: ImportLog, query: Query) -> None:
    recording = import_log(SAMPLES / "threads.fldDE.truss")
    found = query(recording, "SELECT pid, tid, ppid, calls, exit_code FROM processes ORDER BY task_id")
    assert found == [
        (812, 1, None, 7, 0),
        (10240, 1, 812, 8, 0),
        (10240, 2, 812, 6, None),
        (10241, 1, 10240, 1, 7),
    ]
    totals = query(
        recording,
        "SELECT count(*), count(errno), sum(transferred_bytes) FILTER (class = 'read')::BIGINT,"
        " sum(transferred_bytes) FILTER (class = 'write')::BIGINT, sum(dur_ns)::BIGINT FROM calls",
    )
    assert totals == [(22, 2, 17, 4096 + 300, 5_200_000)]
    assert query(recording, "SELECT signal, code, sender_pid FROM signals") == [
        ("SIGCLD", "CLD_EXITED", 10241)
    ]


def test_the_recording_says_what_its_times_are(import_log: ImportLog) -> None:
    clock = stated_in(import_log(SAMPLES / "threads.fldDE.truss"))["clock"]
    assert (clock["kind"], clock["resolution_ns"], clock["has_durations"]) == ("epoch", 100_000, True)
    assert (clock["durations"], clock["stamps"]) == ("system_cpu", "return")
    assert [note["code"] for note in clock["note"]] == ["clock/stamps_of_returns", "clock/system_cpu"]


def test_times_are_those_of_returns(import_log: ImportLog, query: Query) -> None:
    recording = import_log(SAMPLES / "threads.fldDE.truss")
    base = 1_201_557_122_382_300_000
    found = query(recording, "SELECT ts_ns, dur_ns FROM calls WHERE call = 'waitid'")
    assert found == [(base + 2_405_000_000, 0)], "of the whole line, not of the one that says that it sleeps"
    stated = stated_in(recording)
    assert (stated["started_ns"], stated["duration_ns"]) == (base + 2_000_000, 2_406_000_000 - 2_000_000)


def call(name: str, result: str, prefix: str = "7/1:\t\t") -> str:
    return f"{prefix}{name}\t\t\t\t{result}\n"


def test_columns_that_nobody_can_tell_are_asked_for(import_log: ImportLog) -> None:
    log = "".join(call(f" 0.000{n % 7}\tclose({n})", "= 0") for n in range(9))
    guessed = stated_in(import_log(log))["clock"]
    assert (guessed["kind"], guessed["durations"]) == ("relative", "none")
    assert {"code": "clock/columns_uncertain"} in guessed["note"]
    told = stated_in(import_log(log, options=("--truss-columns", "E")))["clock"]
    assert (told["kind"], told["durations"]) == ("order", "system_cpu")
    assert "--truss-columns" not in told["note"]


def test_columns_must_be_letters_of_truss(native: Path, tmp_path: Path) -> None:
    command = [native, "import", SAMPLES / "gaps.lD.truss", "-o", tmp_path / "rec", "--truss-columns", "dX"]
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert done.returncode == 2
    assert "--truss-columns dX: not columns of truss" in done.stderr


def dumped(size: int, fill: str = " a b\\n00FF x") -> list[str]:
    """The lines of a buffer: 32 bytes of two characters each."""
    text = fill * (2 * size // len(fill) + 1)
    return [f"7/1:\t\t  {text[at : min(at + 64, 2 * size)]}\n" for at in range(0, 2 * size, 64)]


def test_every_line_of_large_dumps_is_counted(import_log: ImportLog, query: Query) -> None:
    size = 1_000_007
    log = [call('openat(AT_FDCWD, "/data/a) = 3", O_RDWR)', "= 4")]
    for number in range(6):
        log += [call(f"write(4, 0x08062E40, {size})", f"= {size - number}"), *dumped(size - number)]
    log.append(call("close(4)", "= 0"))
    recording = import_log("".join(log))
    stated = stated_in(recording)
    assert stated["lines_total"] == stated["lines_understood"] == len(log) > 180_000
    assert stated["sources"][0]["lines"] == len(log)
    moved = query(
        recording, "SELECT offset_bytes, transferred_bytes FROM calls WHERE call = 'write' ORDER BY ts_ns"
    )
    ends = [0]
    for number in range(6):
        ends.append(ends[-1] + size - number)
    assert moved == [(ends[number], size - number) for number in range(6)]


def test_lines_that_are_no_calls_keep_their_numbers_behind_dumps(import_log: ImportLog, query: Query) -> None:
    dump = dumped(100_000)
    log = [
        call("write(1, 0x08, 100000)", "= 100000"),
        *dump,
        "7/1:\t\t!garbage\n",
        *dump,
        *dump,
        "7/1:\t\t!more\n",
        dump[0],
    ]
    recording = import_log("".join(log))
    found = query(recording, "SELECT issue, line, understood FROM import_issues ORDER BY line")
    places = [number for number, line in enumerate(log, 1) if "!" in line]
    assert found == [("unknown_line", number, False) for number in places]
    stated = stated_in(recording)
    assert (stated["lines_total"], stated["lines_understood"]) == (len(log), len(log) - 2)


def test_a_call_that_sleeps_is_one_call(import_log: ImportLog, query: Query) -> None:
    log = (
        call("read(0, 0x08, 9)", "(sleeping...)") * 2
        + call("read(0, 0x08, 9)", "= 9")
        + call("pollsys(0x08, 1, 0x08, 0x00)", "(sleeping...)")
    )
    recording = import_log(log)
    found = query(recording, "SELECT call, transferred_bytes FROM calls ORDER BY ts_ns")
    assert found == [("read", 9), ("pollsys", None)]
    assert stated_in(recording)["issues"] == {"unfinished_at_end": 1}


def test_a_killed_process_has_ended(import_log: ImportLog, query: Query) -> None:
    killed = "7/1:\t\t    Received signal #9, SIGKILL [default]\n7/1:\t\t      siginfo: SIGKILL pid=3 uid=0\n"
    recording = import_log(call("close(3)", "= 0") + call("read(0, 0x08, 9)", "(sleeping...)") + killed)
    assert query(recording, "SELECT pid, exit_signal, end_ts_ns IS NULL FROM processes") == [
        (7, "SIGKILL", False)
    ]
    assert query(recording, "SELECT signal, code, sender_pid FROM signals") == [("SIGKILL", None, 3)]


def test_processes_number_their_threads_from_one(import_log: ImportLog, query: Query) -> None:
    log = (
        call('openat(AT_FDCWD, "/a", O_RDONLY)', "= 3")
        + call("forkx(0)", "= 8")
        + call("forkx()\t(returning as child ...)", "= 7", "8/2:\t\t")
        + call("lwp_create(0x08, 0, 0x09)", "= 3", "8/2:\t\t")
        + call("lwp_create()\t(returning as new lwp ...)", "= 0", "8/3:\t\t")
        + call("read(3, 0x08, 4)", "= 4", "8/3:\t\t")
        + call("read(3, 0x08, 5)", "= 5")
    )
    recording = import_log(log)
    found = query(recording, "SELECT pid, tid, ppid FROM processes ORDER BY task_id")
    assert found == [(7, 1, None), (8, 2, 7), (8, 3, 7)]
    moved = query(
        recording, "SELECT offset_bytes, transferred_bytes FROM calls WHERE call = 'read' ORDER BY ts_ns"
    )
    assert moved == [(0, 4), (4, 5)], "fork shares the position"


def test_both_forms_of_pipe_make_two_descriptors(import_log: ImportLog, query: Query) -> None:
    log = call("pipe()", "= 3 [4]") + call("pipe([5,6], 0)", "= 0")
    log += "".join(call(f'write({fd}, " x", 1)', "= 1") for fd in (3, 4, 5, 6))
    recording = import_log(log)
    found = query(
        recording,
        "SELECT kind, count(*) FROM calls JOIN paths USING (path_id) WHERE class = 'write' GROUP BY kind",
    )
    assert found == [("pipe", 4)]


def test_a_log_of_nothing_but_dumps_is_refused(native: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("".join(dumped(100_000)))
    done = subprocess.run([native, "import", log, "-o", tmp_path / "rec"], capture_output=True, text=True)
    assert done.returncode == 2
    assert "lines was understood" in done.stderr
