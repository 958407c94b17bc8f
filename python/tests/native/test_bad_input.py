"""What users and machines do wrong: each gives a clear error or a counted issue, and nothing already written is lost."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from small_disk import small_disk
from waiting import unread, wait_for

LOGS = Path(__file__).resolve().parents[3] / "testdata" / "strace"
Import = Callable[..., Path]
Query = Callable[[Path, str], list[tuple]]
CALL = "1     1700000000.000000 getpid() = 1 <0.000001>\n"


@pytest.fixture
def refused(native: Path, tmp_path: Path) -> Callable[..., str]:
    """Run an import that must fail: exit status 2, one error, a hint, no trace-back, no folder left. Returns standard error."""

    def run(*logs: Path | str) -> str:
        out = tmp_path / "refused"
        done = subprocess.run(
            [native, "import", *logs, "-o", out], capture_output=True, text=True, stdin=subprocess.DEVNULL
        )
        assert done.returncode == 2
        assert done.stdout == ""
        assert done.stderr.startswith("sysdock: ")
        assert "\n\nhint: " in done.stderr
        assert "panicked" not in done.stderr
        assert not out.exists()
        return done.stderr

    return run


def test_inputs_that_are_no_logs_are_refused(refused: Callable[..., str], tmp_path: Path) -> None:
    empty, binary, prose, long, noise = (
        tmp_path / name for name in ("empty", "binary", "prose", "long", "noise")
    )
    empty.touch()
    binary.write_bytes(Path("/bin/true").read_bytes())
    prose.write_text("Dear reader,\nthis is no log.\n")
    long.write_bytes(b"x" * 1_000_000)
    noise.write_bytes(random.Random(1).randbytes(3_000_000))
    assert "no such file" in refused(tmp_path / "missing")
    assert "is a directory" in refused(tmp_path)
    assert "empty" in refused(empty)
    assert "a binary file" in refused(binary)
    assert "not a strace log: none of 2 lines was understood" in refused(prose)
    assert "not a strace log" in refused(long)
    assert "not a strace log" in refused(noise)
    assert "empty" in refused("-")


# What other tools print: ltrace 0.7.3, perf 6.1 and gdb 13 on Debian 12; the others after their sources.
FOREIGN = {
    "ltrace": (
        "malloc(32, 0x7ffe49785978, 0x7ffe49785988, 0x403e00) = 0xc9942a0\n"
        "puts(0xc9942a0, 0x402004, 2, 0x6968)             = 3\n"
        "read(3, 0x7ffe49785800, 10, 0x7ffe49785800)      = 10\n"
        "write(1, 0x402018, 4, 0raw\n)                         = 4\n"
        "+++ exited (status 0) +++\n",
        "line 1 is of ltrace",
    ),
    "ltrace -S": (
        "[pid 8834] 01:33:00.250984 SYS_read(3, 0x7ffcba68f1a8, 832, 0) = 832\n",
        "line 1 is of ltrace",
    ),
    "FreeBSD": (
        'open("/etc/passwd",O_RDONLY,0666)\t\t\t = 3 (0x3)\n'
        'read(3,"root:*:0:0:Charlie &:/root:/bin/c"...,3425829168)\t = 1024 (0x400)\n'
        "openat(AT_FDCWD,\"/etc/nothing\",O_RDONLY,00)\t ERR#2 'No such file or directory'\n"
        "SIGNAL 17 (SIGSTOP)\nprocess exit, rval = 0\n",
        "line 1 is of truss of FreeBSD",
    ),
    "FreeBSD -f": ('  1234: read(3,"...",1024) = 12 (0xc)\n', "line 1 is of truss of FreeBSD"),
    "FreeBSD -dD": (
        '0.000123456 0.000012000 write(1,"x",1) = 1 (0x1)\n',
        "line 1 is of truss of FreeBSD",
    ),
    "dtruss": (
        'SYSCALL(args) \t\t = return\nwrite(0x1, "hi\\n\\0", 0x3)\t\t = 3 0\n',
        "line 1 is of dtruss",
    ),
    "kdump": ("  1234 ls       CALL  write(0x1,0x7fff,0x400)\n  1234 ls       RET   write 1024\n", "kdump"),
    "kdump -d": (
        "12345 ls       GIO   fd 1 wrote 6 bytes\n       0x0000 2f6c 6962 0a00    |/lib.|\n"
        '       "hello\n       "\n',
        "kdump",
    ),
    "perf trace": (
        "     0.050 ( 0.013 ms): ls/8847 brk()                         = 0x55747baea000\n",
        "perf trace",
    ),
    "perf script": (
        "ls  8847 [000]  123.456789: sched:sched_switch: prev_comm=ls prev_pid=8847\n",
        "perf script, ftrace or trace-cmd",
    ),
    "ftrace": (
        "            bash-1234    [000] d..2.   123.456: sched_switch: prev_comm=bash\n",
        "perf script, ftrace or trace-cmd",
    ),
    "gdb": ("[Thread debugging using libthread_db enabled]\n#0  main () at p.c:6\n", "a session of gdb"),
    "gcc": ("p.c: In function 'main':\np.c:3:5: error: expected ';'\n", "messages of a compiler"),
    "syslog": ("Nov 25 01:09:22 host kernel: [0.0] usb 1-1: a new device\n", "a system log"),
    "qemu": (
        '4120 openat(AT_FDCWD,"/lib/a.so",O_RDONLY|O_CLOEXEC) = 3\n4120 read(3,0x822c40,832) = 832\n'
        '4120 openat(AT_FDCWD,"/lib/b.so",O_RDONLY|O_CLOEXEC) = -1 errno=2 (No such file or directory)\n',
        "line 1 is of qemu -strace",
    ),
    "gVisor": (
        "I0101 10:00:00.100000 1 strace.go:567] [   1:   1] sh E read(0x3 /etc/x, 0x7f0000, 0x340)\n",
        "gVisor",
    ),
    "strace -c": (
        "strace: Process 22341 attached\n"
        "% time     seconds  usecs/call     calls    errors syscall\n"
        "------ ----------- ----------- --------- --------- ----------------\n"
        " 98.71   37.123456        1481     25012       310 futex\n",
        "the table of strace -c, which has sums only",
    ),
    "chance": ("prose\nmore prose\nf(3) = 5\n", "none of 3 lines"),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_logs_of_other_tools_are_refused_by_their_names(
    name: str, refused: Callable[..., str], tmp_path: Path
) -> None:
    text, said = FOREIGN[name]
    (tmp_path / "log").write_text(text)
    message = refused(tmp_path / "log")
    assert "not a strace log: " in message
    assert said in message


@pytest.mark.parametrize(
    ("head", "unpack"),
    [(b"\xfd7zXZ\0\0", "xz -dk"), (b"BZh91AY", "bzip2 -dk"), (b"PK\x03\x04\n", "unzip")],
)
def test_compressed_logs_that_are_not_read_are_named(
    head: bytes, unpack: str, refused: Callable[..., str], tmp_path: Path
) -> None:
    (tmp_path / "log").write_bytes(head + random.Random(1).randbytes(1000))
    assert f"unpack it first: {unpack} {tmp_path}/log" in refused(tmp_path / "log")


def test_lines_of_other_tools_in_a_log_of_strace_are_counted(import_log: Import, manifest: Callable) -> None:
    begin = 'execve("./a", ["./a"], 0x7ffd /* 3 vars */) = 0\nbrk(NULL) = 0x5581\n'
    end = "exit_group(0) = ?\n+++ exited with 0 +++\n"
    foreign = "p.c:3:5: error: expected ';'\n" * 9 + FOREIGN["ltrace"][0] + FOREIGN["gdb"][0]
    counts = manifest(import_log(begin + foreign + end))
    assert counts["lines_total"] - counts["lines_understood"] >= 9


def test_a_call_that_is_newer_than_this_program_is_read(import_log: Import, query: Query) -> None:
    recording = import_log("brand_new(3, 0x7f) = 0x7f0000000000\nsyscall_0x1c5(1) = 5\n")
    assert query(recording, "SELECT call FROM calls ORDER BY ts_ns") == [("brand_new",), ("syscall_0x1c5",)]


def test_a_huge_input_that_is_no_log_is_refused_before_its_end(
    refused: Callable[..., str], tmp_path: Path
) -> None:
    path = tmp_path / "prose"
    path.write_text("no log at all\n" * 1_000_000)
    assert "none of 4096 lines" in refused(path)


def test_an_existing_folder_is_left_alone(native: Path, tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").write_text("mine")
    log = LOGS / "shell.f.strace"
    done = subprocess.run([native, "import", log, "-o", tmp_path / "full"], capture_output=True, text=True)
    assert done.returncode == 2
    assert "exists and is not empty" in done.stderr
    assert os.listdir(tmp_path / "full") == ["file"]
    (tmp_path / "empty").mkdir()
    subprocess.run([native, "import", log, "-o", tmp_path / "empty"], check=True)


def test_a_folder_that_may_not_be_made_is_named(native: Path) -> None:
    done = subprocess.run(
        [native, "import", LOGS / "shell.f.strace", "-o", "/proc/rec"], capture_output=True, text=True
    )
    assert done.returncode == 2
    assert "/proc/rec" in done.stderr


def test_every_cut_gives_truthful_coverage(
    native: Path, tmp_path: Path, query: Query, manifest: Callable
) -> None:
    """A log cut at any byte of its last line: everything before the line stays, and the line is whole, a half, or an issue."""
    text = CALL + '1     1700000000.000100 write(1, "a) = 3 <0.1>", 12) = 12 <0.000010>'
    kinds = set()
    for cut in range(len(CALL) + 1, len(text)):
        path, out = tmp_path / f"log{cut}", tmp_path / f"rec{cut}"
        path.write_text(text[:cut])
        subprocess.run([native, "import", path, "-o", out], check=True)
        stated = manifest(out)
        calls = query(out, "SELECT call, value, dur_ns FROM calls ORDER BY ts_ns")
        assert calls[0] == ("getpid", 1, 1000)
        assert stated["lines_total"] == 2
        assert stated["lines_understood"] + stated["issues"].get("cut_line", 0) == 2
        assert len(calls) == stated["lines_understood"]
        kinds.add(len(calls))
    assert kinds == {1}
    path.write_text(text)
    subprocess.run([native, "import", path, "-o", tmp_path / "whole"], check=True)
    rows = query(
        tmp_path / "whole", "SELECT value, transferred_bytes, dur_ns FROM calls WHERE call = 'write'"
    )
    assert rows == [(None, 12, 10_000)]


def test_garbage_between_lines_is_counted_with_its_place(
    import_log: Import, query: Query, manifest: Callable
) -> None:
    garbage = (
        b"hello from the program\n1 1700000000.000000 broken(1, \n\x00\xff\xfe\n1 1700000000.0 +++ odd +++\n"
    )
    recording = import_log(CALL.encode() + garbage + CALL.encode())
    stated = manifest(recording)
    assert (stated["lines_total"], stated["lines_understood"]) == (6, 2)
    rows = query(recording, "SELECT line, issue, understood, excerpt FROM import_issues ORDER BY line")
    assert [row[:3] for row in rows] == [
        (2, "unknown_line", False),
        (3, "broken_call", False),
        (4, "unknown_line", False),
        (5, "unknown_line", False),
    ]
    assert rows[0][3] == "hello from the program"
    assert rows[2][3] == "\x00\\xff\\xfe"


IMPOSSIBLE = (
    'read(3, "", 8) = 9223372036854775807 <0.000001>',
    "getpid() = 9223372036854775807 <0.000001>",
    "getpid() = 99999999999999999999999999 <0.000001>",
    'write(3, "", 8) = 140737488355329 <0.000001>',
    'read(3, "", 8) = 1 <9223372036.854775>',
    "close(3) = 0 <316224001.000000>",
    "lseek(3, 0, SEEK_END) = 9223372036854775807 <0.000001>",
    'pread64(3, "", 8, 9223372036854775800) = 8 <0.000001>',
    "mmap(NULL, 9223372036854775807, PROT_READ, MAP_PRIVATE, 3, 0) = 0x7f0000000000 <0.000001>",
    'sendto(3, "", 8, 0, NULL, 0 <unfinished ...>|<... sendto resumed>) = 9223372036854775807 <0.000001>',
    "<... recvfrom resumed>) = 9223372036854775807 <0.000001>",
)
POSSIBLE = (
    ("mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, 3, 0) = 0x7fffffffe000 <0.000001>", 0x7FFFFFFFE000),
    ("brk(NULL) = 0x1fffffffffff000 <0.000001>", 0x1FFFFFFFFFFF000),
    (
        "mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE|MAP_ANONYMOUS, -1, 0) = 0xffffffffff600000 <0.000001>",
        -0xA00000,
    ),
    ("lseek(3, 0, SEEK_CUR) = -1 <0.000001>", -1),
    ("lseek(3, 1099511627776, SEEK_SET) = 1099511627776 <0.000001>", 2**40),
    ("wait4(-1, NULL, 0, NULL) = 77 <31000000.000000>", 77),
    ("rt_sigreturn({mask=[]}) = 9223372036854775807 <0.000001>", None),
    ('pread64(3, "", 8, 9223372036854775800) = -1 EINVAL (Invalid argument) <0.000001>', None),
)


def test_numbers_that_no_call_has_are_counted_with_their_places(
    import_log: Import, query: Query, manifest: Callable
) -> None:
    lines = ['1     1700000000.000000 openat(AT_FDCWD, "/f", O_RDWR) = 3 <0.000001>\n']
    places = []
    for call in IMPOSSIBLE:
        lines += [f"1     1700000000.000001 {half}\n" for half in call.split("|")]
        places.append(len(lines))
    lines.append("1     9000000000.000001 getpid() = 1 <0.000001>\n")
    places.append(len(lines))
    lines += [f"1     1700000000.000002 {call}\n" for call, _ in POSSIBLE]
    recording = import_log("".join(lines))
    stated = manifest(recording)
    issues = query(
        recording, "SELECT line, detail FROM import_issues WHERE issue = 'impossible_number' ORDER BY line"
    )
    assert [line for line, _ in issues] == places
    assert all(detail for _, detail in issues)
    assert stated["lines_total"] == len(lines)
    assert stated["lines_understood"] == len(lines) - len(places)
    values = query(recording, "SELECT value, offset_bytes FROM calls WHERE ts_ns = 1700000000000002000")
    assert [value for value, _ in values] == [value for _, value in POSSIBLE]
    assert values[-1] == (None, None)


def test_sums_and_ends_of_what_was_imported_hold_in_64_bits(import_log: Import, query: Query) -> None:
    line = '1     7258118399.000000 write(3, "", 8) = 140737488355328 <316224000.000000>\n'
    recording = import_log(line * 1000)
    ends = query(
        recording, "SELECT max(ts_ns + dur_ns), max(offset_bytes + transferred_bytes), count(*) FROM calls"
    )
    assert ends == [(7574342399000000000, None, 1000)]
    # The durations of these add up to more: no sums are stored then, and readers count for themselves.
    assert not (recording / "object_use").exists()


def test_a_resumed_call_without_its_start_is_kept_and_said(
    import_log: Import, query: Query, manifest: Callable
) -> None:
    recording = import_log('1 1700000000.000500 <... read resumed>"ab", 2) = 2 <0.000100>\n')
    assert query(recording, "SELECT call, value, transferred_bytes, dur_ns, path_id FROM calls") == [
        ("read", None, 2, 100_000, None)
    ]
    ((start,),) = query(recording, "SELECT ts_ns FROM calls")
    assert manifest(recording)["started_ns"] == start == 1_700_000_000_000_400_000
    assert query(recording, "SELECT line, issue, understood FROM import_issues") == [
        (1, "resumed_without_start", True)
    ]


@pytest.mark.parametrize("after", ["getpid() = 1 <0.000001>", "close(4 <unfinished ...>"])
def test_a_call_whose_second_half_is_missing_is_kept_without_a_result(
    after: str, import_log: Import, query: Query, manifest: Callable
) -> None:
    """A thread is in one call at a time, so the next call, whole or not, tells that the end of the first is lost."""
    recording = import_log(f"1 1700000000.000000 read(3,  <unfinished ...>\n1 1700000000.000100 {after}\n")
    rows = query(recording, "SELECT value, transferred_bytes, dur_ns FROM calls WHERE call = 'read'")
    assert rows == [(None, None, None)]
    assert manifest(recording)["issues"]["start_without_end"] == 1


def test_a_damaged_gzip_keeps_what_could_be_read(
    native: Path, tmp_path: Path, query: Query, manifest: Callable
) -> None:
    import gzip

    packed = gzip.compress(
        "".join(CALL.replace("= 1 ", f"= {i * 7919 % 100_003} ") for i in range(50_000)).encode()
    )
    (tmp_path / "cut.gz").write_bytes(packed[: len(packed) // 2])
    done = subprocess.run([native, "import", tmp_path / "cut.gz", "-o", tmp_path / "rec"])
    stated = manifest(tmp_path / "rec")
    assert done.returncode == 2
    assert (stated["complete"], stated["ended_by"]) == (False, "input error")
    ((rows,),) = query(tmp_path / "rec", "SELECT count(*) FROM calls")
    assert 10_000 < rows < 50_000
    assert stated["issues"]["damaged_input"] == 1


def feed(
    fifo: Path, stop: threading.Event, lines: int, written: threading.Event | None = None
) -> threading.Thread:
    """Write lines into a FIFO, then keep it open until told to stop."""

    def write() -> None:
        with suppress(BrokenPipeError), open(fifo, "w") as out:
            for _ in range(lines // 1000):
                out.write(CALL * 1000)
            out.flush()
            if written:
                written.set()
            stop.wait(600)

    thread = threading.Thread(target=write, daemon=True)
    thread.start()
    return thread


def test_an_interrupt_leaves_a_readable_recording(
    native: Path, tmp_path: Path, query: Query, manifest: Callable
) -> None:
    os.mkfifo(tmp_path / "fifo")
    stop = threading.Event()
    written = threading.Event()
    writer = feed(tmp_path / "fifo", stop, 20_000, written)
    process = subprocess.Popen([native, "import", tmp_path / "fifo", "-o", tmp_path / "rec"])
    with open(tmp_path / "fifo", "rb", opener=lambda path, flags: os.open(path, os.O_RDWR)) as pipe:
        # The lines are read by then, and the importer waits for more.
        wait_for(lambda: written.is_set() and unread(pipe.fileno()) == 0, "the lines")
    process.send_signal(signal.SIGINT)
    assert process.wait(600) == 130
    stop.set()
    writer.join(600)
    stated = manifest(tmp_path / "rec")
    assert (stated["complete"], stated["ended_by"]) == (False, "interrupted")
    ((rows,),) = query(tmp_path / "rec", "SELECT count(*) FROM calls")
    assert rows == stated["lines_total"] > 10_000


def test_a_killed_import_leaves_its_closed_parts(
    native: Path, tmp_path: Path, query: Query, manifest: Callable
) -> None:
    os.mkfifo(tmp_path / "fifo")
    stop = threading.Event()
    feed(tmp_path / "fifo", stop, 2_400_000)
    process = subprocess.Popen([native, "import", tmp_path / "fifo", "-o", tmp_path / "rec"])
    wait_for(lambda: manifest_has_part(tmp_path / "rec", manifest), "the first part")
    process.kill()
    process.wait(600)
    stop.set()
    stated = manifest(tmp_path / "rec")
    assert (stated["complete"], stated["ended_by"]) == (False, "running")
    # On a busy machine a part is closed before it is full, because ten seconds have passed.
    rows = sum(part["rows"] for part in stated["tables"]["calls"]["parts"])
    assert query(tmp_path / "rec", "SELECT count(*) FROM calls") == [(rows,)]
    assert stated["lines_total"] >= rows > 0


def manifest_has_part(recording: Path, manifest: Callable) -> bool:
    """Whether recording.json lists a part of `calls`."""
    if not (recording / "recording.json").exists():
        return False
    return bool(manifest(recording)["tables"].get("calls", {}).get("parts"))


@pytest.fixture
def full(tmp_path: Path) -> Iterator[Path]:
    """A file system of 600 KiB."""
    with small_disk(tmp_path / "disk", 600 << 10) as folder:
        yield folder


def test_a_full_disk_is_named_and_recording_json_stays_true(
    native: Path, tmp_path: Path, full: Path, query: Query, manifest: Callable
) -> None:
    log = tmp_path / "log"
    with open(log, "w") as out:
        for i in range(600_000):
            out.write(
                f"1     1700000000.{i % 1_000_000:06} lseek(3, {i * 7919 % 1_000_003}, SEEK_SET) = {i * 104_729 % 1_000_003} <0.{i * 31 % 999_983:06}>\n"
            )
    done = subprocess.run([native, "import", log, "-o", full / "rec"], capture_output=True, text=True)
    assert done.returncode == 2
    assert "no space left on device" in done.stderr
    stated = manifest(full / "rec")
    assert stated["complete"] is False
    for entry in stated["tables"].values():
        for part in entry["parts"]:
            assert (full / "rec" / part["file"]).stat().st_size == part["bytes"]


def test_hashes_and_sizes_in_recording_json_are_those_of_the_files(
    import_log: Import, manifest: Callable
) -> None:
    import hashlib

    recording = import_log(LOGS / "threads.ttt_T_y.strace")
    parts = [part for entry in manifest(recording)["tables"].values() for part in entry["parts"]]
    assert len(parts) >= 5
    for part in parts:
        data = (recording / part["file"]).read_bytes()
        assert (len(data), hashlib.sha256(data).hexdigest()) == (part["bytes"], part["sha256"])
