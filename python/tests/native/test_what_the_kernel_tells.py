"""What the kernel recorder tells that a log does not, whom it records, and what it says of what it lacks."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from packed_programs import replaced
from recorders import Recorder, recorder_or_skip
from sysdock.analysis import Session
from sysdock.library import Library
from sysdock.recording import Recording
from sysdock.recording.manifest import NOT_REQUESTED
from sysdock.report.overview import overview_section
from sysdock.sentences import facts_of, say
from waiting import wait_for

Query = Callable[[Path, str], list[tuple]]
SHARED_POSITION = Path(__file__).resolve().parents[3] / "testdata" / "programs" / "shared_position.c"
CALLS = "SELECT call, path, offset_bytes, transferred_bytes FROM calls LEFT JOIN paths USING (path_id) ORDER BY ts_ns"


@pytest.fixture
def kernel(native: Path) -> Recorder:
    """The recorder under test."""
    return recorder_or_skip(native, "kernel")


@contextmanager
def loop() -> Iterator[subprocess.Popen]:
    """A shell that starts `cat` again and again."""
    shell = subprocess.Popen(["sh", "-c", "while :; do cat /etc/hostname; done"], stdout=subprocess.DEVNULL)
    try:
        yield shell
    finally:
        shell.kill()
        shell.wait()


def record_running(kernel: Recorder, out: Path, *target: str) -> int:
    """Record what runs, for a second; returns the recorder's process id."""
    command = [kernel.native, "record", "-o", out, *target, "--for", "1s"]
    recorder = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    _, said = recorder.communicate(timeout=600)
    assert recorder.returncode == 0, said
    return recorder.pid


def test_every_transfer_has_its_place(kernel: Recorder, tmp_path: Path, query: Query) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    source.write_bytes(bytes(5_000_000))
    kernel.record(tmp_path / "rec", "dd", f"if={source}", f"of={target}", "bs=512", "count=9000")
    rows = query(tmp_path / "rec", CALLS)
    for call, path in (("read", source), ("write", target)):
        assert [row[2:] for row in rows if row[:2] == (call, str(path))] == [
            (512 * number, 512) for number in range(9000)
        ]


THREAD = """
import threading
def named():
    with open("/proc/thread-self/comm", "w") as own: own.write("collector 7")
threads = [threading.Thread(target=work) for work in (named, int)]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""


def test_threads_have_their_own_names(kernel: Recorder, tmp_path: Path, query: Query) -> None:
    kernel.record(tmp_path / "rec", sys.executable, "-c", THREAD)
    rows = query(
        tmp_path / "rec",
        "SELECT c.comm, p.thread_name FROM processes p JOIN commands c USING (comm_id) ORDER BY p.tid",
    )
    [program, *_] = {comm for comm, _ in rows}
    assert sorted(name for _, name in rows) == sorted([program, program, "collector 7"])


def test_calls_and_errors_are_those_that_strace_counts(
    kernel: Recorder, tmp_path: Path, query: Query
) -> None:
    command = ["ls", "-lR", "/usr/share/doc/bash", "/nowhere"]
    kernel.record(tmp_path / "rec", *command)
    subprocess.run(["strace", "-f", "-o", tmp_path / "log", *command], capture_output=True)
    logged: Counter = Counter()
    for line in (tmp_path / "log").read_text(errors="replace").splitlines():
        if "(" in line:
            logged[line.split()[1].partition("(")[0], " = -1 " in line] += 1
    sql = "SELECT call, errno IS NOT NULL, count(*) FROM calls GROUP BY ALL"
    assert {(call, failed): count for call, failed, count in query(tmp_path / "rec", sql)} == logged


def test_paths_are_the_kernel_s_own(kernel: Recorder, tmp_path: Path, query: Query) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    script = "cd link; echo 1 > a; exec 5< a; mv a b; read x <&5; rm b; cat <&5; cat ../link/./missing"
    with open(tmp_path / "input", "w+") as before:
        kernel.record(tmp_path / "rec", "bash", "-c", script, cwd=tmp_path, stdin=before)
    sql = "SELECT DISTINCT call, path, errno FROM calls LEFT JOIN paths USING (path_id)"
    rows = query(tmp_path / "rec", sql)
    assert ("write", f"{tmp_path}/real/a", None) in rows
    assert ("read", f"{tmp_path}/real/b", None) in rows
    assert any(
        call == "openat" and errno == "ENOENT" and path.endswith("/missing") for call, path, errno in rows
    )


def test_children_and_threads_are_followed(kernel: Recorder, tmp_path: Path, query: Query) -> None:
    script = "for i in 1 2 3 4 5 6 7 8 9 10; do (exit $i); done; /bin/true"
    kernel.record(tmp_path / "rec", "sh", "-c", script)
    rows = query(tmp_path / "rec", "SELECT exit_code, ppid IS NULL FROM processes ORDER BY exit_code, 2")
    assert rows == [(0, False), (0, True), *((code, False) for code in range(1, 11))]


def test_a_process_that_runs_is_recorded_with_its_children(
    kernel: Recorder, tmp_path: Path, query: Query
) -> None:
    with loop() as shell:
        record_running(kernel, tmp_path / "rec", "-p", str(shell.pid))
    [(shells, cats, others)] = query(
        tmp_path / "rec",
        f"SELECT count(*) FILTER (pid = {shell.pid}), count(*) FILTER (ppid = {shell.pid}), count(*) FROM processes",
    )
    assert shells == 1
    assert cats > 1
    assert others == shells + cats


def test_of_all_processes_those_that_run_are_recorded_and_not_the_recorder(
    kernel: Recorder, tmp_path: Path, query: Query
) -> None:
    with loop() as one, loop() as other:
        recorder = record_running(kernel, tmp_path / "rec", "-a")
    parents = {parent for (parent,) in query(tmp_path / "rec", "SELECT DISTINCT ppid FROM processes")}
    assert {one.pid, other.pid} <= parents
    own = f"SELECT count(*) FROM calls JOIN processes USING (task_id) WHERE pid = {recorder}"
    assert query(tmp_path / "rec", own) == [(0,)]


def test_of_a_control_group_only_its_processes_are_recorded(
    kernel: Recorder, tmp_path: Path, query: Query
) -> None:
    roots = [
        path for path in ("/sys/fs/cgroup", "/sys/fs/cgroup/unified") if Path(path, "cgroup.procs").exists()
    ]
    group = Path(roots[0] if roots else "/none", f"sysdock-test-{os.getpid()}")
    try:
        group.mkdir()
    except OSError as error:
        pytest.skip(f"no control group can be made: {error}")
    try:
        with loop() as inside, loop():
            (group / "cgroup.procs").write_text(str(inside.pid))
            record_running(kernel, tmp_path / "rec", "--cgroup", str(group))
        sql = f"SELECT count(*) > 2, bool_and({inside.pid} IN (pid, ppid)) FROM processes"
        assert query(tmp_path / "rec", sql) == [(True, True)]
    finally:
        wait_for(lambda: not (group / "cgroup.procs").read_text(), "the end of the processes of the group")
        group.rmdir()


def test_the_recorder_of_a_sudo_user_runs_the_command_as_that_user(kernel: Recorder, tmp_path: Path) -> None:
    if os.getuid() != 0:
        pytest.skip("needs root")
    environment = os.environ | {"SUDO_UID": "65534", "SUDO_GID": "65534", "SUDO_USER": "nobody"}
    done = kernel.record(tmp_path / "rec", "id", "-u", env=environment)
    assert done.stdout == "65534\n", done.stderr
    command = kernel.command(tmp_path / "root", "id", "-u", options=("--as-root",))
    assert subprocess.run(command, capture_output=True, text=True, env=environment).stdout == "0\n"


def test_without_rights_it_says_which_are_missing(kernel: Recorder, tmp_path: Path) -> None:
    if os.getuid() != 0:
        pytest.skip("needs root, to give it up")
    command = kernel.command(tmp_path / "rec", "true")
    done = subprocess.run(command, capture_output=True, text=True, user="nobody", cwd="/")
    assert done.returncode == 2
    assert "it needs CAP_BPF and CAP_PERFMON" in done.stderr
    assert re.search("hint: sudo [^ ]*sysdock run", done.stderr)
    assert not (tmp_path / "rec").exists()


def test_without_rights_strace_records_and_a_line_says_why(
    scene: Callable[..., Path], manifest: Callable
) -> None:
    folder = scene("fallback")
    [line] = (folder / "said").read_text().splitlines()
    assert "recording with strace" in line
    assert line.endswith("it needs CAP_BPF")
    assert manifest(folder / "rec")["recorder"] == "strace"


def test_what_is_not_asked_for_is_not_recorded_and_the_recording_says_so(
    kernel: Recorder, tmp_path: Path, manifest: Callable
) -> None:
    kernel.record(tmp_path / "rec", "true", recorder_options=("--what", "io"))
    families = manifest(tmp_path / "rec")["families"]
    assert families[0] == {"family": "calls", "missing": None}
    assert len(families) > 1
    assert all(state["missing"] == NOT_REQUESTED for state in families[1:])
    done = kernel.record(tmp_path / "other", "true", recorder_options=("--what", "io,urine"))
    assert done.returncode == 2
    assert "there are io, stacks, uring" in done.stderr


@pytest.mark.parametrize(
    ("family", "tracepoint"),
    [("uring", "io_uring_submit"), ("faults", "page_fault_user"), ("page_io", "block_bio_queue")],
)
def test_where_a_kernel_lacks_a_tracepoint_the_rest_is_recorded(
    kernel: Recorder, tmp_path: Path, query: Query, manifest: Callable, family: str, tracepoint: str
) -> None:
    """A recorder that looks for what no kernel has."""
    older = Recorder(tmp_path / "sysdock-native", "kernel")
    unknown = "x" * len(tracepoint)
    program = kernel.native.read_bytes()
    older.native.write_bytes(replaced(program, f"tp_btf/{tracepoint}".encode(), f"tp_btf/{unknown}".encode()))
    older.native.chmod(0o755)
    done = older.record(tmp_path / "rec", "cat", "/etc/hostname")
    missing = {state["family"]: state["missing"] for state in manifest(tmp_path / "rec")["families"]}
    reason = say(facts_of(missing.pop(family)), "en")
    assert unknown in reason
    assert all(state in (None, NOT_REQUESTED) for state in missing.values())
    assert done.returncode == 0
    [line] = done.stderr.splitlines()
    assert line.endswith(f"are not recorded: {reason}")
    told = subprocess.run(
        [sys.executable, "-m", "sysdock", "info", tmp_path / "rec"], capture_output=True, text=True
    )
    assert f"{family} ({reason})" in told.stdout
    reads = (
        "SELECT count(*) FROM calls JOIN paths USING (path_id) WHERE call = 'read' AND path = '/etc/hostname'"
    )
    assert query(tmp_path / "rec", reads) == [(2,)]


def test_no_loss_holds_the_program_rather_than_lose(
    kernel: Recorder, tmp_path: Path, query: Query, manifest: Callable
) -> None:
    """With a ring that loses most of it otherwise: see below."""
    command = ["dd", "if=/dev/zero", "of=/dev/null", "bs=1", "count=400000"]
    kernel.record(tmp_path / "rec", *command, recorder_options=("--no-loss", "--ring", "1"))
    assert manifest(tmp_path / "rec")["lost_events"] == 0
    sql = (
        "SELECT path, count(*), sum(transferred_bytes) FROM calls JOIN paths USING (path_id) "
        "WHERE transferred_bytes = 1 AND path IN ('/dev/zero', '/dev/null') GROUP BY path ORDER BY path"
    )
    assert query(tmp_path / "rec", sql) == [("/dev/null", 400_000, 400_000), ("/dev/zero", 400_000, 400_000)]


@pytest.mark.more
def test_no_loss_waits_for_a_recorder_that_stands_still(
    kernel: Recorder, tmp_path: Path, manifest: Callable
) -> None:
    """On a busy machine it may not be scheduled: nothing can hold the program then, so its events have to wait."""
    dd = ["dd", "if=/dev/zero", "of=/dev/null", "bs=1", "count=2000000"]
    command = kernel.command(tmp_path / "rec", "sh", "-c", 'echo ready; exec "$@"', "sh", *dd)
    command[2:2] = ["--no-loss", "--ring", "4"]
    recorder = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert recorder.stdout.readline() == "ready\n"
    for _ in range(3):
        recorder.send_signal(signal.SIGSTOP)
        time.sleep(0.4)
        recorder.send_signal(signal.SIGCONT)
        time.sleep(0.2)
    assert recorder.communicate(timeout=600)[1].startswith("2000000+0 records in")
    stated = manifest(tmp_path / "rec")
    assert (stated["lost_events"], stated["complete"]) == (0, True)
    assert stated["lines_total"] > 4_000_000


def test_places_that_threads_moved_at_the_same_time_are_right_or_marked(
    kernel: Recorder, tmp_path: Path, query: Query
) -> None:
    subprocess.run(["gcc", "-O1", "-pthread", "-o", tmp_path / "program", SHARED_POSITION], check=True)
    done = kernel.record(tmp_path / "rec", tmp_path / "program", tmp_path / "data")
    told = defaultdict(list)
    for line in done.stdout.splitlines():
        tid, place = map(int, line.split())
        told[tid].append(place)
    assert sum(map(len, told.values())) == 100_000
    rows = query(
        tmp_path / "rec",
        "SELECT tid, offset_bytes, offset_uncertain FROM calls JOIN processes USING (task_id) "
        "JOIN paths USING (path_id) WHERE call = 'read' AND transferred_bytes = 512 AND path LIKE '%/data' ORDER BY ts_ns",
    )
    recorded = defaultdict(list)
    for tid, offset, uncertain in rows:
        recorded[tid].append((offset, uncertain))
    assert {tid: len(places) for tid, places in told.items()} == {
        tid: len(places) for tid, places in recorded.items()
    }
    wrong = [
        (offset, place)
        for tid, places in told.items()
        for place, (offset, uncertain) in zip(places, recorded[tid], strict=True)
        if offset != place and not uncertain
    ]
    assert wrong == []


def test_what_cannot_be_run_leaves_nothing_running(kernel: Recorder, tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("#!/no/such/shell\n")
    script.chmod(0o755)
    command = kernel.command(tmp_path / "rec", script)
    recorder = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    _, said = recorder.communicate(timeout=600)
    assert recorder.returncode == 2
    assert "cannot be run" in said
    assert list(Path("/sys/fs/cgroup").glob(f"**/sysdock-{recorder.pid}")) == []


def test_of_a_ring_that_overflows_every_call_is_stored_or_counted(
    kernel: Recorder, tmp_path: Path, manifest: Callable
) -> None:
    """The recorder is stopped for a while. The program makes the same calls each time."""
    script = ': > "$0"; dd if=/dev/zero of=/dev/null bs=1 count=400000; : > "$0.done"'
    stored, lost = [], []
    for name, size in (("whole", "64"), ("cut", "1")):
        out, started = tmp_path / name, tmp_path / f"{name}.started"
        words = kernel.command(out, "sh", "-c", script, started, options=("--ring", size))
        recorder = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        if name == "cut":
            wait_for(started.exists, "the start of the command", every_s=0.001)
            recorder.send_signal(signal.SIGSTOP)
            wait_for(Path(f"{started}.done").exists, "the end of the command")
            recorder.send_signal(signal.SIGCONT)
        assert recorder.wait(timeout=600) == 0
        stated = manifest(out)
        stored.append(stated["tables"]["calls"]["rows"])
        lost.append(stated["tables"]["calls"]["lost"])
    assert lost[0] == 0
    assert lost[1] > 0
    assert stored[1] + lost[1] == stored[0]
    assert stated["lost_events"] >= lost[1]


@pytest.mark.parametrize("thread", [0, 1])
def test_requests_of_io_uring_are_rows(scene: Callable[..., Path], query: Query, thread: int) -> None:
    folder = scene(f"io_uring_{thread}")
    sql = (
        "SELECT call, path, count(*), sum(transferred_bytes), count(DISTINCT offset_bytes), min(dur_ns) > 0 "
        "FROM calls JOIN paths USING (path_id) WHERE via = 'io_uring' GROUP BY ALL"
    )
    assert query(folder / "rec", sql) == [("pread64", f"{folder}/data", 1024, 4_194_304, 1024, True)]


@pytest.mark.parametrize("depth", [1, 16])
@pytest.mark.parametrize("direct", [0, 1])
def test_operations_of_libaio_are_rows(
    scene: Callable[..., Path], query: Query, depth: int, direct: int
) -> None:
    folder = scene(f"libaio_{depth}_{direct}")
    sql = (
        "SELECT call, path, count(*), sum(transferred_bytes), sum(requested_bytes), count(DISTINCT offset_bytes), min(dur_ns) > 0 "
        "FROM calls JOIN paths USING (path_id) WHERE via = 'libaio' GROUP BY ALL"
    )
    assert query(folder / "rec", sql) == [
        ("aio_pwrite", f"{folder}/data", 1024, 4_194_304, 4_194_304, 1024, True)
    ]


def test_the_old_entry_of_32_bit_programs_is_recorded(
    kernel: Recorder, tmp_path: Path, query: Query, manifest: Callable
) -> None:
    """The old entry of 32-bit programs works from a 64-bit one too; call 20 is getpid there."""
    source = 'int main(void) { for (int i = 0; i < 123; i++) { int r = 20; __asm__ volatile("int $0x80" : "+a"(r)); } }'
    (tmp_path / "old.c").write_text(source)
    subprocess.run(["cc", "-o", tmp_path / "old", tmp_path / "old.c"], check=True)
    assert kernel.record(tmp_path / "rec", str(tmp_path / "old")).returncode == 0
    assert query(tmp_path / "rec", "SELECT count(*) FROM calls WHERE call = 'getpid'") == [(123,)]
    assert manifest(tmp_path / "rec")["lost_events"] == 0


def test_whose_processes_they_are(kernel: Recorder, tmp_path: Path, query: Query, library: Library) -> None:
    """The user of a program that another user starts, of one that gives up root, and of one that is there already."""
    if os.geteuid() != 0:
        pytest.skip("changing the user needs root")
    gives_up = "import os; os.setresuid(1235, 1235, 1235); open('/etc/hostname').read()"
    script = f'setpriv --reuid=1234 --clear-groups true; "{sys.executable}" -c "{gives_up}"; exec true'
    assert kernel.record(tmp_path / "rec", "sh", "-c", script).returncode == 0
    users = query(
        tmp_path / "rec", "SELECT user_id, count(*) FROM processes WHERE tid = pid GROUP BY 1 ORDER BY 1"
    )
    assert users == [(0, 1), (1234, 1), (1235, 1)]
    with Session(Recording.open(tmp_path / "rec"), library) as session:
        assert [row["user_id"] for row in session.run("processes/users").dicts()].count(None) == 0
        head = overview_section(session, [], {})
    assert "processes of 3 users: 0 (1), 1234 (1), 1235 (1). Arguments of their programs" in head
    with subprocess.Popen(["sleep", "60"], user=1236) as sleeper:
        record_running(kernel, tmp_path / "running", "-p", str(sleeper.pid))
        sleeper.kill()
    assert query(tmp_path / "running", "SELECT user_id FROM processes") == [(1236,)]


def test_a_preset_records_all_that_its_question_needs(
    kernel: Recorder, tmp_path: Path, manifest: Callable
) -> None:
    done = kernel.record(tmp_path / "rec", "true", recorder_options=("--preset", "bottleneck"))
    assert (done.returncode, done.stderr) == (0, "")
    families = {state["family"]: state["missing"] for state in manifest(tmp_path / "rec")["families"]}
    assert [families.pop(family) for family in ("stacks", "probes", "syscalls")] == [NOT_REQUESTED] * 3
    assert set(families.values()) == {None}
