"""Recording by the kernel's own events: what strace would show, of the command and of what runs already, and what a death leaves."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

Query = Callable[[Path, str], list[tuple]]
CALLS = (
    "SELECT call, path, offset_bytes, moved_bytes FROM calls LEFT JOIN paths USING (path_id) ORDER BY ts_ns"
)
CAP_PERFMON, CAP_BPF = 38, 39


def may_record() -> bool:
    """Whether this process has what the kernel recorder needs."""
    status = Path("/proc/self/status").read_text()
    [mask] = [int(line.split()[1], 16) for line in status.splitlines() if line.startswith("CapEff")]
    return bool(mask >> CAP_BPF & mask >> CAP_PERFMON & 1) and Path("/sys/kernel/btf/vmlinux").exists()


pytestmark = pytest.mark.skipif(not may_record(), reason="needs CAP_BPF, CAP_PERFMON and a kernel with BTF")


def command_of(native: Path, out: Path, *words: str) -> list[str | Path]:
    """The recorder's command line."""
    return [native, "record", "--with", "kernel", "-o", out, *words]


def record(native: Path, out: Path, *command: str, **options) -> subprocess.CompletedProcess:
    """Record a command."""
    options = {"capture_output": True, "text": True, "timeout": 60} | options
    return subprocess.run(command_of(native, out, "--", *command), **options)


def test_streams_and_exit_status_pass_through(native: Path, tmp_path: Path, manifest: Callable) -> None:
    done = record(native, tmp_path / "rec", "sh", "-c", "cat; echo error >&2; exit 7", input="text\n")
    assert (done.returncode, done.stdout, done.stderr) == (7, "text\n", "error\n")
    stated = manifest(tmp_path / "rec")
    assert (stated["recorder"], stated["exit_code"], stated["complete"]) == ("kernel", 7, True)
    assert stated["lost_events"] == 0
    assert not (tmp_path / "rec" / "spool").exists()


def test_every_transfer_has_its_place(native: Path, tmp_path: Path, query: Query) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    source.write_bytes(bytes(5_000_000))
    record(native, tmp_path / "rec", "dd", f"if={source}", f"of={target}", "bs=512", "count=9000")
    rows = query(tmp_path / "rec", CALLS)
    for call, path in (("read", source), ("write", target)):
        assert [row[2:] for row in rows if row[:2] == (call, str(path))] == [
            (512 * number, 512) for number in range(9000)
        ]


def test_calls_and_errors_are_those_that_strace_counts(native: Path, tmp_path: Path, query: Query) -> None:
    command = ["ls", "-lR", "/usr/share/doc/bash", "/nowhere"]
    record(native, tmp_path / "rec", *command)
    subprocess.run(["strace", "-f", "-o", tmp_path / "log", *command], capture_output=True)
    logged: Counter = Counter()
    for line in (tmp_path / "log").read_text(errors="replace").splitlines():
        if "(" in line:
            logged[line.split()[1].partition("(")[0], " = -1 " in line] += 1
    sql = "SELECT call, errno IS NOT NULL, count(*) FROM calls GROUP BY ALL"
    assert {(call, failed): count for call, failed, count in query(tmp_path / "rec", sql)} == logged


def test_paths_are_the_kernel_s_own(native: Path, tmp_path: Path, query: Query) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    script = "cd link; echo 1 > a; exec 5< a; mv a b; read x <&5; rm b; cat <&5; cat ../link/./missing"
    with open(tmp_path / "input", "w+") as before:
        record(native, tmp_path / "rec", "bash", "-c", script, cwd=tmp_path, stdin=before)
    sql = "SELECT DISTINCT call, path, errno FROM calls LEFT JOIN paths USING (path_id)"
    rows = query(tmp_path / "rec", sql)
    assert ("write", f"{tmp_path}/real/a", None) in rows
    assert ("read", f"{tmp_path}/real/b", None) in rows
    assert any(
        call == "openat" and errno == "ENOENT" and path.endswith("/missing") for call, path, errno in rows
    )


def test_children_and_threads_are_followed(native: Path, tmp_path: Path, query: Query) -> None:
    script = "for i in 1 2 3 4 5 6 7 8 9 10; do (exit $i); done; /bin/true"
    record(native, tmp_path / "rec", "sh", "-c", script)
    rows = query(tmp_path / "rec", "SELECT exit_code, ppid IS NULL FROM processes ORDER BY exit_code, 2")
    assert rows == [(0, False), (0, True), *((code, False) for code in range(1, 11))]


def test_a_death_by_signal_gives_the_status_a_shell_gives(native: Path, tmp_path: Path, manifest) -> None:
    done = record(native, tmp_path / "rec", "sh", "-c", "kill -SEGV $$")
    assert done.returncode == 128 + signal.SIGSEGV
    assert manifest(tmp_path / "rec")["exit_signal"] == "SIGSEGV"


def test_what_runs_already_is_recorded_for_a_time(native: Path, tmp_path: Path, query: Query) -> None:
    loop = subprocess.Popen(["sh", "-c", "while :; do cat /etc/hostname; done"], stdout=subprocess.DEVNULL)
    try:
        command = command_of(native, tmp_path / "rec", "-p", str(loop.pid), "--for", "1s")
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    finally:
        loop.kill()
        loop.wait()
    assert done.returncode == 0, done.stderr
    [(shells, cats)] = query(
        tmp_path / "rec",
        f"SELECT count(*) FILTER (pid = {loop.pid}), count(*) FILTER (ppid = {loop.pid}) FROM processes",
    )
    assert shells == 1
    assert cats > 1


def test_the_recorder_of_a_sudo_user_runs_the_command_as_that_user(native: Path, tmp_path: Path) -> None:
    if os.getuid() != 0:
        pytest.skip("needs root")
    environment = os.environ | {"SUDO_UID": "65534", "SUDO_GID": "65534", "SUDO_USER": "nobody"}
    done = record(native, tmp_path / "rec", "id", "-u", env=environment)
    assert done.stdout == "65534\n", done.stderr
    command = command_of(native, tmp_path / "root", "--as-root", "--", "id", "-u")
    assert subprocess.run(command, capture_output=True, text=True, env=environment).stdout == "0\n"


def test_without_rights_it_says_which_are_missing(native: Path, tmp_path: Path) -> None:
    if os.getuid() != 0:
        pytest.skip("needs root, to give it up")
    command = command_of(native, tmp_path / "rec", "--", "true")
    done = subprocess.run(command, capture_output=True, text=True, user="nobody", cwd="/")
    assert done.returncode == 2
    assert "it needs CAP_BPF and CAP_PERFMON" in done.stderr
    assert "hint: sudo sysdock run" in done.stderr
    assert not (tmp_path / "rec").exists()


def test_what_cannot_be_run_leaves_nothing_running(native: Path, tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("#!/no/such/shell\n")
    script.chmod(0o755)
    command = command_of(native, tmp_path / "rec", "--", script)
    recorder = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    _, said = recorder.communicate(timeout=60)
    assert recorder.returncode == 2
    assert "cannot be run" in said
    assert list(Path("/sys/fs/cgroup").glob(f"**/sysdock-{recorder.pid}")) == []


def test_a_recorder_that_is_killed_leaves_what_can_be_salvaged(
    native: Path, tmp_path: Path, query: Query, manifest: Callable
) -> None:
    script = "i=0; while [ $i -lt 3000 ]; do i=$((i + 1)); echo $i > count; cat count > /dev/null; done"
    command = command_of(native, tmp_path / "rec", "--", "sh", "-c", script)
    recorder = subprocess.Popen(command, cwd=tmp_path)
    deadline = time.monotonic() + 30
    while not (tmp_path / "count").exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(1.5)
    recorder.kill()
    recorder.wait()
    salvaged = subprocess.run([native, "salvage", tmp_path / "rec"], capture_output=True, text=True)
    assert salvaged.returncode == 0, salvaged.stderr
    stated = manifest(tmp_path / "rec")
    assert (stated["complete"], stated["ended_by"]) == (False, "interrupted")
    # The program was let go on, without its recorder; what it had written by then was recorded up to the last flush.
    [(writes,)] = query(
        tmp_path / "rec",
        "SELECT count(*) FROM calls JOIN paths USING (path_id) WHERE call = 'write' AND path LIKE '%/count'",
    )
    assert writes > 10
    assert query(tmp_path / "rec", "SELECT count(*) > 10 FROM environment") == [(True,)]


def test_salvage_of_a_closed_recording_is_refused(native: Path, tmp_path: Path) -> None:
    record(native, tmp_path / "rec", "true")
    done = subprocess.run([native, "salvage", tmp_path / "rec"], capture_output=True, text=True)
    assert done.returncode == 2
    assert "one that was closed needs none" in done.stderr


def test_of_a_ring_that_overflows_every_call_is_stored_or_counted(
    native: Path, tmp_path: Path, manifest: Callable
) -> None:
    command = ["dd", "if=/dev/zero", "of=/dev/null", "bs=1", "count=400000"]
    stored, lost = [], []
    for name, size in (("whole", "64"), ("cut", "1")):
        words = command_of(native, tmp_path / name, "--ring", size, "--", *command)
        subprocess.run(words, check=True, capture_output=True, timeout=120)
        stated = manifest(tmp_path / name)
        stored.append(stated["tables"]["calls"]["rows"])
        lost.append(stated["tables"]["calls"]["lost"])
    # The program makes the same calls each time; a signal may interrupt none of them.
    assert lost[0] == 0
    assert lost[1] > 0
    assert stored[1] + lost[1] == stored[0]
    assert stated["lost_events"] >= lost[1]


@pytest.mark.parametrize("thread", ["0", "1"])
def test_requests_of_io_uring_are_rows(native: Path, tmp_path: Path, query: Query, thread: str) -> None:
    """1,024 reads of 4 KiB; with a thread of the kernel that takes them (`sqthread_poll`) there is no call for each at all."""
    fio = shutil.which("fio")
    if not fio:
        pytest.skip("no fio: tools/setup dev")
    (tmp_path / "data").write_bytes(bytes(4 << 20))
    options = ["--rw=randread", "--bs=4k", "--size=4m", "--ioengine=io_uring", "--iodepth=16"]
    options += [f"--filename={tmp_path}/data", "--output=/dev/null", f"--sqthread_poll={thread}"]
    record(native, tmp_path / "rec", fio, "--name=x", *options, cwd=tmp_path)
    sql = (
        "SELECT call, path, count(*), sum(moved_bytes), count(DISTINCT offset_bytes), min(dur_ns) > 0 "
        "FROM calls JOIN paths USING (path_id) WHERE via = 'io_uring' GROUP BY ALL"
    )
    assert query(tmp_path / "rec", sql) == [("pread64", f"{tmp_path}/data", 1024, 4_194_304, 1024, True)]


def test_calls_of_32_bit_programs_are_counted_as_lost(
    native: Path, tmp_path: Path, manifest: Callable
) -> None:
    """The old entry of 32-bit programs works from a 64-bit one too; call 20 is getpid there."""
    source = 'int main(void) { for (int i = 0; i < 123; i++) { int r = 20; __asm__ volatile("int $0x80" : "+a"(r)); } }'
    (tmp_path / "old.c").write_text(source)
    subprocess.run(["cc", "-o", tmp_path / "old", tmp_path / "old.c"], check=True)
    assert record(native, tmp_path / "rec", str(tmp_path / "old")).returncode == 0
    stated = manifest(tmp_path / "rec")
    assert (stated["tables"]["calls"]["lost"], stated["lost_events"]) == (123, 123)
