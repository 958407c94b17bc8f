"""What a log tells only between its lines: asynchronous and mapped files, copies, stacks, restarted and overlapping calls. Real runs of strace."""

from __future__ import annotations

import csv
import re
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from recorders import recorder_or_skip
from sysdock.library import Library
from sysdock.recording import Recording, connect

URING_OPEN = Path(__file__).resolve().parents[3] / "testdata" / "programs" / "uring_open.c"
PROGRAMS = Path(__file__).resolve().parents[3] / "testdata" / "programs"
PYTHON = [sys.executable, "-I", "-S"]
Import = Callable[..., Path]
Compile = Callable[[str], Path]


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Compile:
    """Compiles a program of testdata/programs, once."""
    folder = tmp_path_factory.mktemp("compiled")

    def compile_once(name: str) -> Path:
        if not (folder / name).exists():
            command = ["gcc", "-g", "-O1", "-pthread", "-o", folder / name, PROGRAMS / f"{name}.c"]
            subprocess.run(command, check=True)
        return folder / name

    return compile_once


def trace(folder: Path, options: str, *command: Path | str) -> list[Path]:
    """Run a program under strace, which must do what it is for; returns the logs."""
    folder.mkdir(exist_ok=True)
    subprocess.run(["strace", "-o", folder / "log", *options.split(), "--", *command], check=True)
    return sorted(folder.iterdir())


def rows(recording: Path, sql: str, table: str = "calls") -> list[tuple]:
    """Rows as every analysis sees them: with pid, tid and path."""
    return connect(Recording.open(recording), Library(), [table]).execute(sql).fetchall()


# Asynchronous operations


@pytest.fixture(params=["-y", ""], ids=["with tags", "without tags"])
def asynchronous(request: pytest.FixtureRequest, tmp_path: Path, import_log: Import) -> Path:
    """A recording of aio.py."""
    options = f"-f -ttt -T {request.param}"
    file = tmp_path / "data"
    return import_log(*trace(tmp_path / "logs", options, *PYTHON, PROGRAMS / "aio.py", file))


def test_each_read_of_a_batch_is_a_row_with_its_own_place_and_size(
    asynchronous: Path, tmp_path: Path
) -> None:
    found = rows(asynchronous, "SELECT * FROM calls WHERE call = 'aio_pread'")
    assert len(found) == 1024
    where = "FROM calls WHERE call = 'aio_pread'"
    columns = "path, kind, via, class, requested_bytes, transferred_bytes, result, errno, offset_uncertain"
    assert rows(asynchronous, f"SELECT {columns}, count(*) {where} GROUP BY ALL") == [
        (str(tmp_path / "data"), "file", "libaio", "read", 4096, 4096, 4096, None, False, 1024)
    ]
    assert rows(asynchronous, f"SELECT sum(transferred_bytes)::BIGINT {where}") == [(4_194_304,)]
    offsets = rows(asynchronous, f"SELECT offset_bytes {where} ORDER BY 1")
    assert offsets == [(4096 * number,) for number in range(1024)]


def test_an_operation_lasts_from_its_submission_to_its_completion(asynchronous: Path) -> None:
    calls = "SELECT ts_ns, dur_ns FROM calls WHERE call = '{}' ORDER BY ts_ns, dur_ns"
    submits, reaps = (rows(asynchronous, calls.format(call)) for call in ("io_submit", "io_getevents"))
    reads = rows(asynchronous, calls.format("aio_pread"))
    expected = []
    for submit, reap in zip(submits[:64], reaps[:64], strict=True):
        expected += [(submit[0], reap[0] + reap[1] - submit[0])] * 16
    assert reads == expected


def test_an_operation_is_no_system_call(asynchronous: Path) -> None:
    assert rows(asynchronous, "SELECT count(*) FROM calls WHERE via IS NULL AND call LIKE 'aio%'") == [(0,)]
    assert rows(asynchronous, "SELECT DISTINCT call FROM calls WHERE via IS NOT NULL ORDER BY 1") == [
        ("aio_pread",),
        ("aio_pwrite",),
    ]
    counted = rows(asynchronous, "SELECT sum(calls)::BIGINT FROM processes", "processes")
    assert counted == rows(asynchronous, "SELECT count(*) FROM calls WHERE via IS NULL")
    moved = rows(asynchronous, "SELECT sum(transferred_bytes)::BIGINT FROM calls WHERE call LIKE 'io_%'")
    assert moved == [(None,)]


def test_operations_leave_the_position_of_the_file(asynchronous: Path) -> None:
    last = "SELECT offset_bytes, transferred_bytes FROM calls WHERE call = 'read' ORDER BY ts_ns DESC LIMIT 1"
    assert rows(asynchronous, last) == [(0, 3)]


def writes(recording: Path) -> list[tuple]:
    """The writes of aio.py in order: whether they ended, bytes moved, error."""
    sql = "SELECT dur_ns IS NOT NULL, transferred_bytes, errno FROM calls WHERE call = 'aio_pwrite' ORDER BY ts_ns"
    return rows(recording, sql)


def test_a_write_that_fails_at_completion_has_its_error_and_moved_nothing(asynchronous: Path) -> None:
    assert writes(asynchronous)[:2] == [(True, 31, None), (True, None, "EFAULT")]


def test_an_operation_that_the_kernel_did_not_take_is_no_row(asynchronous: Path) -> None:
    assert rows(asynchronous, "SELECT count(*) FROM calls WHERE fd = 999") == [(0,)]
    assert writes(asynchronous)[2] == (True, 5, None)


def test_operations_never_reaped_have_no_duration_and_no_result(asynchronous: Path) -> None:
    assert writes(asynchronous)[3:] == [(False, None, None)] * 2
    sql = "SELECT offset_bytes, requested_bytes, result FROM calls WHERE via IS NOT NULL AND dur_ns IS NULL ORDER BY 1"
    assert rows(asynchronous, sql) == [(100, 1, None), (200, 2, None)]


def test_data_that_looks_like_a_control_block_is_data(asynchronous: Path) -> None:
    sql = "SELECT offset_bytes, requested_bytes FROM calls WHERE call = 'aio_pwrite' ORDER BY ts_ns LIMIT 1"
    assert rows(asynchronous, sql) == [(1 << 20, 31)]


def test_io_uring_is_said_to_be_invisible(tmp_path: Path, import_log: Import, manifest: Callable) -> None:
    script = (
        "import ctypes; libc = ctypes.CDLL(None, use_errno=True)\n"
        "fd = libc.syscall(425, 8, ctypes.create_string_buffer(120))\n"
        "print(ctypes.get_errno() if fd < 0 else 0)"
    )
    logs = [tmp_path / "log"]
    command = ["strace", "-o", *logs, "-f", "-ttt", "-T", "-y", *PYTHON, "-c", script]
    error = int(subprocess.run(command, check=True, capture_output=True).stdout)
    if error in (1, 38):
        pytest.skip(f"this kernel refuses io_uring_setup: error {error}")
    assert error == 0
    recording = import_log(*logs)
    sql = "SELECT issue, understood FROM import_issues"
    assert rows(recording, sql, "import_issues") == [("invisible_io", True)]
    stated = manifest(recording)
    assert stated["issues"] == {"invisible_io": 1}
    assert stated["lines_understood"] == stated["lines_total"]


# Mappings, copies, vectors


@pytest.fixture(params=["-f -ttt -T -y", "-f -ttt -T", "-ff -ttt -T -yy"])
def moves(request: pytest.FixtureRequest, tmp_path: Path, import_log: Import) -> Path:
    """A recording of moves.py, in the folder that its paths begin with."""
    (tmp_path / "files").mkdir()
    command = [*PYTHON, PROGRAMS / "moves.py", tmp_path / "files"]
    return import_log(*trace(tmp_path / "logs", request.param, *command))


def test_a_mapped_file_is_a_row_of_mappings(moves: Path, tmp_path: Path) -> None:
    columns = "length_bytes, offset_bytes, protection, shared, kind, pid = tid, address % 4096"
    sql = f"SELECT {columns} FROM mappings WHERE path = '{tmp_path}/files/from' ORDER BY ts_ns"
    assert rows(moves, sql, "mappings") == [
        (8000, 0, "PROT_READ|PROT_WRITE", True, "file", True, 0),
        (3904, 4096, "PROT_READ", False, "file", True, 0),
    ]
    anonymous = rows(moves, "SELECT count(*) FROM mappings WHERE path IS NULL", "mappings")
    assert anonymous == [(0,)]
    starts = rows(moves, "SELECT ts_ns FROM mappings ORDER BY 1", "mappings")
    mapped = rows(
        moves, "SELECT ts_ns FROM calls WHERE call = 'mmap' AND fd >= 0 AND errno IS NULL ORDER BY 1"
    )
    assert starts == mapped


def transfers(recording: Path, folder: Path, calls: str) -> list[tuple]:
    """Calls with these names on files of the folder, in order: call, file, place, bytes moved, other file, place there."""
    name = "CASE WHEN {0} LIKE '%pipe%' THEN 'pipe' ELSE replace({0}, '{1}/', '') END"
    first, second = name.format("path", folder), name.format("to_path", folder)
    sql = (
        f"SELECT call, {first}, offset_bytes, transferred_bytes, {second}, to_offset_bytes FROM calls"
        f" WHERE regexp_full_match(call, '{calls}') AND kind IS DISTINCT FROM 'virtual' AND transferred_bytes > 0"
        f" AND ts_ns > (SELECT max(ts_ns) FROM calls WHERE call = 'openat' AND path = '{folder}/to') ORDER BY ts_ns"
    )
    return rows(recording, sql)


def test_a_copy_names_both_files_and_moves_both_positions(
    moves: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    expected = [
        ("sendfile", "from", 0, 1000, "to", 0),
        ("sendfile", "from", 5000, 100, "to", 1000),
        ("copy_file_range", "from", 1000, 500, "to", 1100),
        ("copy_file_range", "from", 20, 50, "to", 1600),
        ("copy_file_range", "from", 30, 60, "to", 7000),
        ("read", "from", 1500, 10, None, None),
        ("write", "to", 1650, 10, None, None),
        ("splice", "from", 1510, 300, "pipe", None),
        ("splice", "pipe", None, 300, "to", 1660),
        ("splice", "from", 6000, 40, "pipe", None),
        ("splice", "pipe", None, 40, "to", 3000),
        ("read", "from", 1810, 1, None, None),
        ("write", "to", 1960, 1, None, None),
    ]
    found = transfers(moves, tmp_path / "files", "read|write|sendfile|splice|copy_file_range")
    assert found[: len(expected)] == expected
    assert rows(moves, "SELECT DISTINCT class, via FROM calls WHERE to_path_id IS NOT NULL") == [
        ("copy", None)
    ]


def test_a_vector_at_the_position_moves_it_and_one_at_a_place_does_not(moves: Path, tmp_path: Path) -> None:
    found = transfers(moves, tmp_path / "files", "readv|writev|preadv2|pwritev2|read|write")
    assert found[4:] == [
        ("readv", "from", 1811, 11, None, None),
        ("preadv2", "from", 40, 8, None, None),
        ("preadv2", "from", 1822, 6, None, None),
        ("pwritev2", "to", 50, 6, None, None),
        ("pwritev2", "to", 1961, 5, None, None),
        ("read", "from", 1828, 2, None, None),
        ("writev", "to", 1966, 5, None, None),
    ]
    sql = "SELECT DISTINCT requested_bytes = transferred_bytes FROM calls WHERE call IN ('readv', 'writev', 'preadv2', 'pwritev2')"
    assert rows(moves, sql) == [(True,)]


# Stacks


def places(compiled: Compile, tmp_path: Path, options: str) -> Path:
    """The log of places.c."""
    (tmp_path / "data").write_bytes(b"x" * 1000)
    return trace(tmp_path / "logs", options, compiled("places"), tmp_path / "data")[0]


def functions(recording: Path, call: str, path: Path) -> list[list[str | None]]:
    """The functions of the stack of each such call on a file."""
    frames = defaultdict(list)
    listed = "SELECT stack_id, function FROM stacks ORDER BY stack_id, frame"
    for stack, function in rows(recording, listed, "stacks"):
        frames[stack].append(function)
    called = rows(
        recording, f"SELECT stack_id FROM calls WHERE call = '{call}' AND path = '{path}' ORDER BY ts_ns"
    )
    return [frames[stack] for (stack,) in called]


def test_every_call_has_the_stack_that_strace_printed_below_it(
    compiled: Compile, tmp_path: Path, import_log: Import, manifest: Callable
) -> None:
    log = places(compiled, tmp_path, "-f -ttt -T -y -k")
    recording = import_log(log)
    for call, function, count in (("read", "reader_in_here", 20), ("write", "writer_in_here", 10)):
        found = functions(recording, call, tmp_path / "data")
        assert len(found) == count
        assert all(stack[1:3] == [function, "main"] and stack[-1] == "_start" for stack in found)
    printed = Counter(re.findall(r"^ > (.*?)\(", log.read_text(), re.MULTILINE))
    assert printed[str(compiled("places"))] > 90
    # Frames as they stand in the log, one call after another; those of the exit stand behind its `+++` line.
    calls = re.findall(r"^\d+ +[\d.]+ (\w+)\(.*\n((?: > .*\n)*)", log.read_text(), re.MULTILINE)
    sql = "SELECT call, stack_id FROM calls ORDER BY ts_ns"
    numbers = [len(stack.splitlines()) for name, stack in calls if name != "exit_group"]
    depth = dict(rows(recording, "SELECT stack_id, count(*) FROM stacks GROUP BY 1", "stacks"))
    assert [depth.get(stack, 0) for call, stack in rows(recording, sql) if call != "exit_group"] == numbers
    assert min(numbers) > 0
    stated = manifest(recording)
    assert (stated["lines_understood"], stated["issues"]) == (stated["lines_total"], {})


def test_the_exit_has_its_stack_which_stands_below_the_line_of_its_end(
    compiled: Compile, tmp_path: Path, import_log: Import
) -> None:
    log = places(compiled, tmp_path, "-f -ttt -T -y -k")
    assert re.search(r"\+\+\+ exited with 0 \+\+\+\n > .*\(_exit\+", log.read_text())
    recording = import_log(log)
    found = rows(recording, "SELECT stack_id IS NOT NULL FROM calls WHERE call = 'exit_group'")
    assert found == [(True,)]


def test_equal_stacks_have_one_id(compiled: Compile, tmp_path: Path, import_log: Import) -> None:
    recording = import_log(places(compiled, tmp_path, "-ttt -T -k"))
    sql = "SELECT call, count(DISTINCT stack_id) FROM calls WHERE fd = 3 AND transferred_bytes IN (16, 32) GROUP BY 1 ORDER BY 1"
    assert rows(recording, sql) == [("read", 1), ("write", 1)]
    sql = "SELECT count(*) FROM stacks WHERE function IS NULL AND object IS NULL OR address IS NULL"
    assert rows(recording, sql, "stacks") == [(0,)]


def analysis(recording: Path) -> dict[tuple[str, str], dict]:
    """Rows of io/stacks by function and call."""
    command = [
        sys.executable,
        "-m",
        "sysdock",
        "show",
        recording,
        "io/stacks",
        "--format",
        "csv",
        "--limit",
        "0",
    ]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return {(row["function"], row["call"]): row for row in csv.DictReader(done.stdout.splitlines())}


def test_the_analysis_of_stacks_names_the_functions_of_the_program(
    compiled: Compile, tmp_path: Path, import_log: Import
) -> None:
    recording = import_log(places(compiled, tmp_path, "-f -ttt -T -y -k"))
    found = analysis(recording)
    for function, call, calls, moved in [
        ("reader_in_here", "read", "20", "320"),
        ("writer_in_here", "write", "10", "320"),
        ("opener_in_here", "openat", "1", ""),
    ]:
        row = found[function, call]
        assert (row["calls"], row["bytes"], row["object"]) == (calls, moved, str(compiled("places")))


def with_source_lines(log: Path, program: Path) -> None:
    """Put behind each frame of the program what `strace -kk` prints there, where this strace did not."""
    text = log.read_text()
    if "places.c:" in text:
        return
    frame = re.compile(rf"^ > {re.escape(str(program))}\(.*\) \[(0x\w+)\]$", re.MULTILINE)
    addresses = sorted(set(frame.findall(text)))
    command = ["addr2line", "-e", program, *addresses]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    source = dict(zip(addresses, lines, strict=True))
    known = {address: line for address, line in source.items() if "?" not in line}
    log.write_text(frame.sub(lambda match: " ".join([match[0], known.get(match[1], "")]).rstrip(), text))


def test_source_lines_of_strace_kk_are_kept(compiled: Compile, tmp_path: Path, import_log: Import) -> None:
    """Older versions take -kk for -k; there the lines come from addr2line, in the form of strace 6.10."""
    log = places(compiled, tmp_path, "-f -ttt -T -y -kk")
    with_source_lines(log, compiled("places"))
    source = analysis(import_log(log))["reader_in_here", "read"]["source"]
    name, number = source.rsplit(":", 1)
    assert name.endswith("places.c")
    lines = (PROGRAMS / "places.c").read_text().splitlines()
    # The frame shows where the call returns to: its own line, or the next statement.
    assert any("read(fd" in line for line in lines[int(number.split()[0]) - 2 : int(number.split()[0])])


# Interrupted calls


def parts(log: Path, calls: str) -> list[tuple[int, int, str]]:
    """The lines with these calls of the first thread in a log: start and duration in ns, and what the call returned.

    The loader's read of a library, 832 bytes, is left out.
    """
    found, half = [], None
    whole = re.compile(
        rf"(?:(?:{calls})\(.*|<\.\.\. (?:{calls}) resumed>.*)\) += (\S+(?: E\w+)?).* <(\d+)\.(\d+)>$"
    )
    first = None
    for line in log.read_text().splitlines():
        tid, start, text = re.fullmatch(r"(?:(\d+) +)?(\d+\.\d{6}) (.*)", line).groups()
        first = first or tid
        start_ns = int(start.replace(".", "")) * 1000
        if tid != first:
            continue
        if re.match(rf"(?:{calls})\(.* <unfinished \.\.\.>$", text):
            half = start_ns
        elif (match := whole.match(text)) and match[1] != "832":
            began = half if text.startswith("<") else start_ns
            found.append((began, int(match[2]) * 10**9 + int(match[3]) * 1000, match[1]))
    return found


# For each case: the call, the results of its lines in this order, and the groups of lines that are one call.
RESTARTS = {
    "restart": ("read", ["? ERESTARTSYS", "1"], [[0, 1]]),
    "twice": ("read", ["? ERESTARTSYS", "? ERESTARTSYS", "1"], [[0, 1, 2]]),
    "eintr": ("read", ["? ERESTARTSYS", "1"], [[0], [1]]),
    "same": ("wait4", ["? ERESTARTSYS", "0", "PID", "-1 ECHILD"], [[0, 2], [1], [3]]),
    "other": ("wait4", ["? ERESTARTSYS", "PID", "0", "PID", "-1 ECHILD"], [[0, 3], [1], [2], [4]]),
}


@pytest.mark.parametrize("options", ["-f -ttt -T -y", "-ff -ttt -T"])
@pytest.mark.parametrize("case", RESTARTS)
def test_parts_of_an_interrupted_call_are_one_row_and_calls_of_a_handler_are_not(
    case: str, options: str, compiled: Compile, tmp_path: Path, import_log: Import, manifest: Callable
) -> None:
    """One row has the start of the first part, the time of all, and the result of the last; EINTR ends the call."""
    logs = trace(tmp_path / "logs", options, compiled("restarts"), case)
    calls, results, groups = RESTARTS[case]
    found = parts(logs[0], calls)
    assert [re.sub(r"^\d{2,}$", "PID", part[2]) for part in found] == results
    recording = import_log(*logs)
    assert calls_of_first(recording, calls) == together(
        [[found[index] for index in group] for group in groups]
    )
    assert manifest(recording)["restarted_calls"] == len(results) - len(groups)


@pytest.mark.parametrize("options", ["-f -ttt -T -y", "-ff -ttt -T"])
def test_a_sleep_that_was_stopped_and_continued_is_one_call(
    options: str, compiled: Compile, tmp_path: Path, import_log: Import, manifest: Callable
) -> None:
    """`restart_syscall` is how the kernel goes on; the end of the child may interrupt that once more."""
    logs = trace(tmp_path / "logs", options, compiled("restarts"), "stop")
    names = "nanosleep|clock_nanosleep|restart_syscall"
    found = parts(logs[0], names)
    assert {part[2] for part in found[:-1]} == {"? ERESTART_RESTARTBLOCK"}
    recording = import_log(*logs)
    assert calls_of_first(recording, names) == together([found])
    assert manifest(recording)["restarted_calls"] == len(found) - 1
    assert rows(recording, "SELECT count(*) FROM calls WHERE call = 'restart_syscall'") == [(0,)]


def together(groups: list[list[tuple]]) -> list[tuple]:
    """Each group of parts as one call: start of the first, time of all, result or error of the last."""
    return sorted(
        (group[0][0], sum(part[1] for part in group), group[-1][2].split(" ")[-1]) for group in groups
    )


def calls_of_first(recording: Path, calls: str) -> list[tuple]:
    """The same of the first process, as recorded."""
    return rows(
        recording,
        "SELECT ts_ns, dur_ns, coalesce(errno, result::VARCHAR) FROM calls"
        f" WHERE pid = (SELECT pid FROM calls WHERE call = 'execve') AND regexp_full_match(call, '{calls}')"
        " AND result IS DISTINCT FROM 832 ORDER BY ts_ns",
    )


# Positions that threads share

RECORD, RECORDS = 16, 5000
# strace takes the time for -T behind the stamp, when it has printed the arguments: start and duration together fall short of the end.
SLACK_NS = 102_000


def read_by(threads: int, options: str, compiled: Compile, tmp_path: Path) -> list[Path]:
    """Logs of threads that read one open file whose records say where they stand."""
    (tmp_path / "records").write_text("".join(f"{RECORD * n:015}\n" for n in range(RECORDS)))
    command = [compiled("one_position"), tmp_path / "records", str(threads)]
    return trace(tmp_path / "logs", options, *command)


@dataclass(frozen=True)
class Read:
    """A read in a log: its thread, the place that the data names (none at the end of the file), and from where to where it went."""

    tid: int
    offset: int | None
    lines: tuple[int, int]
    times: tuple[int, int]


def reads_of(logs: list[Path]) -> list[Read]:
    """Reads of the records, each thread's in order."""
    found, halves = [], {}
    line_of = re.compile(
        r"(?:(\d+) +)?(\d+\.\d{6}) (?:read\(3(?:<[^>]*records>)?, |<\.\.\. read resumed>)(.*)"
    )
    for log in logs:
        for number, line in enumerate(log.read_text().splitlines()):
            if not (match := line_of.fullmatch(line)):
                continue
            tid = int(match[1] or log.suffix[1:])
            at = number, int(match[2].replace(".", "")) * 1000
            if match[3] == " <unfinished ...>":
                halves[tid] = at
            elif data := re.fullmatch(r'"(\d*)(?:\\n)?", 16\) += \d+ <0\.(\d+)>', match[3]):
                start = halves.pop(tid, at)
                end_ns = start[1] + int(data[2]) * 1000
                offset = int(data[1]) if data[1] else None
                found.append(Read(tid, offset, (start[0], number), (start[1], end_ns)))
    return found


def overlapping(reads: list[Read], span: str, tolerance: int) -> set[Read]:
    """Reads whose spans of lines or times have more than so much in common with that of another thread."""
    found = set()
    ordered = sorted(reads, key=lambda read: getattr(read, span))
    for index, read in enumerate(ordered):
        end = getattr(read, span)[1]
        for other in ordered[index + 1 :]:
            start, other_end = getattr(other, span)
            if start >= end - min(tolerance, 0):
                break
            if other.tid != read.tid and min(end, other_end) - start > tolerance:
                found |= {read, other}
    return found


def misdated(reads: list[Read]) -> set[Read]:
    """Reads whose data say that not as many came before them as their times say.

    strace reads the clock, and later begins to measure the call. If it has to wait for a CPU in between, the
    call happened after its end in the log.
    """
    ordered = sorted(reads, key=lambda read: read.times)
    return {read for place, read in enumerate(ordered) if read.offset != RECORD * place}


def recorded(recording: Path) -> dict[int, list[tuple]]:
    """The reads that got a record, by thread and in order: start, end, offset, whether the offset is uncertain."""
    found = defaultdict(list)
    columns = "tid, ts_ns, ts_ns + dur_ns, offset_bytes, offset_uncertain"
    where = "call = 'read' AND path LIKE '%/records' AND transferred_bytes = 16"
    for tid, *read in rows(recording, f"SELECT {columns} FROM calls WHERE {where} ORDER BY ts_ns"):
        found[tid].append(tuple(read))
    return found


@pytest.mark.parametrize("options", ["-f -ttt -T -y -s 16", "-f -ttt -T -s 16", "-ff -ttt -T -s 16"])
def test_reads_at_one_position_that_overlap_are_uncertain_and_the_others_are_right(
    options: str, compiled: Compile, tmp_path: Path, import_log: Import
) -> None:
    """One log shows by its lines which calls overlap; in a set only the times tell, and they are microseconds."""
    # On a busy machine the two threads may hardly run at the same time: then once more.
    for attempt in range(5):
        (tmp_path / str(attempt)).mkdir()
        logs = read_by(2, options, compiled, tmp_path / str(attempt))
        everything = reads_of(logs)
        moving = [read for read in everything if read.offset is not None]
        if len(logs) == 1:
            surely, perhaps = overlapping(moving, "lines", -1), overlapping(everything, "lines", -1)
        else:
            surely, perhaps = overlapping(moving, "times", 2000), overlapping(everything, "times", -SLACK_NS)
        if len(surely) > RECORDS / 10:
            break
    found = recorded(import_log(*logs))
    assert sum(map(len, found.values())) == len(moving) == RECORDS
    in_order = {tid: iter(reads) for tid, reads in found.items()}
    pairs = {read: next(in_order[read.tid]) for read in moving}
    assert all(row[:2] == read.times for read, row in pairs.items())
    uncertain = {read for read, row in pairs.items() if row[3]}
    assert len(surely) > RECORDS / 10, "the threads were not in each other's way"
    assert surely - uncertain == set()
    assert uncertain - perhaps == set()
    wrong = {read for read, row in pairs.items() if read.offset != row[2] and not row[3]}
    assert wrong - (misdated(moving) if len(logs) > 1 else set()) == set()


@pytest.mark.parametrize(("gap_us", "uncertain"), [(5, True), (1000, False)])
def test_reads_of_a_set_that_are_closer_than_strace_measures_are_uncertain(
    gap_us: int, uncertain: bool, import_log: Import, tmp_path: Path
) -> None:
    """In real runs, data showed that calls with up to 30 us between them came in the other order."""
    clone = "clone3({flags=CLONE_VM|CLONE_FILES|CLONE_THREAD, stack=0x1}, 88) = 4001 <0.000001>\n"
    first = [stamped(0) + 'openat(AT_FDCWD, "/f", O_RDONLY) = 3 <0.000001>\n', stamped(2) + clone]
    first.append(stamped(1000) + 'read(3, "x", 1) = 1 <0.000010>\n')
    second = [stamped(1010 + gap_us) + 'read(3, "x", 1) = 1 <0.000010>\n']
    logs = [tmp_path / "log.4000", tmp_path / "log.4001"]
    for log, lines in zip(logs, (first, second), strict=True):
        log.write_text("".join(lines))
    sql = "SELECT offset_uncertain, offset_bytes FROM calls WHERE call = 'read' ORDER BY ts_ns"
    assert rows(import_log(*logs), sql) == [(uncertain, 0), (uncertain, 1)]


@pytest.mark.parametrize("options", ["-f -ttt -T -s 16", "-ff -ttt -T -s 16"])
def test_one_reader_is_certain_of_its_position(
    options: str, compiled: Compile, tmp_path: Path, import_log: Import
) -> None:
    (reads,) = recorded(import_log(*read_by(1, options, compiled, tmp_path))).values()
    assert [read[2:] for read in reads] == [(RECORD * n, False) for n in range(RECORDS)]


@pytest.mark.parametrize("between", [0, 2])
def test_every_overlap_in_a_set_is_told_in_both_rows(
    between: int, import_log: Import, tmp_path: Path
) -> None:
    """Pairs of reads that overlap each other and nothing else, with calls between them, over several blocks of rows."""
    pairs = 6000
    first = [
        stamped(0) + 'openat(AT_FDCWD, "/f", O_RDONLY) = 3 <0.000001>\n',
        stamped(2) + "clone3({flags=CLONE_VM|CLONE_FILES|CLONE_THREAD, stack=0x1}, 88) = 4001 <0.000001>\n",
        stamped(4) + "getpid() = 4000 <0.000001>\n",
    ]
    second = []
    for pair in range(pairs):
        at = 1000 + 100 * pair
        first.append(stamped(at) + 'read(3, "x", 1) = 1 <0.000010>\n')
        second += [stamped(at + n) + "getpid() = 4000 <0.000001>\n" for n in range(1, between + 1)]
        second.append(stamped(at + 5) + 'read(3, "x", 1) = 1 <0.000010>\n')
    logs = [tmp_path / "log.4000", tmp_path / "log.4001"]
    for log, lines in zip(logs, (first, second), strict=True):
        log.write_text("".join(lines))
    sql = "SELECT offset_uncertain, count(*) FROM calls WHERE call = 'read' GROUP BY 1 ORDER BY 1"
    assert rows(import_log(*logs), sql) == [(True, 2 * pairs)]


def stamped(microseconds: int) -> str:
    """The beginning of a line of -ttt."""
    return f"{1_700_000_000 + microseconds // 10**6}.{microseconds % 10**6:06} "


def test_files_that_a_ring_opens_and_closes_have_names(native: Path, tmp_path: Path, query: Callable) -> None:
    kernel = recorder_or_skip(native, "kernel")
    program = tmp_path / "uring_open"
    subprocess.run(["gcc", "-O1", "-o", program, URING_OPEN], check=True)
    names = ("/etc/passwd", tmp_path / "nothing", "sub/../none/here", "/etc/hostname")
    done = kernel.record(tmp_path / "rec", program, *names, cwd=tmp_path)
    if done.returncode == 77:
        pytest.skip("this kernel refuses io_uring_setup")
    rows = query(
        tmp_path / "rec",
        "SELECT call, path, fd >= 0, errno FROM calls LEFT JOIN paths USING (path_id) WHERE via = 'io_uring' ORDER BY ts_ns",
    )
    of_file = [
        [(call, path, True, None) for call in ("openat", "pread64", "close")]
        for path in ("/etc/passwd", "/etc/hostname")
    ]
    relative = ("openat", str(tmp_path / "none" / "here"), None, "ENOENT")
    absolute = ("openat", str(tmp_path / "nothing"), None, "ENOENT")
    assert rows == [*of_file[0], absolute, relative, *of_file[1]]
