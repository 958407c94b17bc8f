"""`sysdock-native measure`: one run, against what the programs, the kernel and loop devices say of it themselves."""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from waiting import wait_for

Measure = Callable[..., dict]
MIB = 1 << 20
PR_CAPBSET_DROP, CAP_NET_ADMIN = 24, 12
# Counters of the kernel have microseconds; a sum of some of them is rounded some times.
ROUNDING_NS = 50_000


def python(source: str) -> list[str]:
    """A command that runs this."""
    return [sys.executable, "-c", textwrap.dedent(source)]


@pytest.fixture
def measure(native: Path) -> Measure:
    """Measures a command: the JSON object, which is all that comes on standard output."""

    def run(
        *command: str | Path, options: tuple[str | Path, ...] = (), status: int = 0, **how: object
    ) -> dict:
        words = [native, "measure", *options, "--", *command]
        done = subprocess.run(words, capture_output=True, text=True, timeout=600, check=False, **how)
        assert done.returncode == status, done.stderr
        [line] = done.stdout.splitlines()
        return json.loads(line)

    return run


@pytest.fixture
def loop_device(tmp_path: Path) -> Iterator[str]:
    """The name of a loop device of 32 MiB."""
    image = tmp_path / "image"
    image.write_bytes(b"\0" * (32 * MIB))
    words = ["losetup", "--find", "--show", "--direct-io=on", image]
    made = subprocess.run(words, capture_output=True, text=True, check=True)
    device = made.stdout.strip()
    # Who looks at new devices has done so then.
    if shutil.which("udevadm"):
        subprocess.run(["udevadm", "settle"], check=False)
    yield device.removeprefix("/dev/")
    subprocess.run(["losetup", "--detach", device], check=True)


def without_records() -> None:
    """Between fork and exec: what follows may not get the kernel's records of tasks."""
    ctypes.CDLL(None).prctl(PR_CAPBSET_DROP, CAP_NET_ADMIN, 0, 0, 0)


def lives(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rsplit(") ", 1)[1][0] not in "ZX"


def test_how_a_command_ends_is_said_and_is_no_error(measure: Measure) -> None:
    assert (measure("true")["exit_code"], measure("sh", "-c", "exit 7")["exit_code"]) == (0, 7)
    killed = measure("sh", "-c", "kill -SEGV $$")
    assert (killed["exit_code"], killed["signal"]) == (None, signal.SIGSEGV)


@pytest.mark.parametrize("capable", [True, False])
def test_times_are_between_what_the_program_and_the_parent_see(
    native: Path, tmp_path: Path, capable: bool
) -> None:
    source = """
        import os, resource, subprocess, sys, time
        subprocess.run([sys.executable, "-c", "sum(range(3_000_000))"])
        while time.process_time() < 0.2: pass
        [open("/dev/null").close() for _ in range(20_000)]
        use = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        times = sum(each.ru_utime + each.ru_stime for each in use)
        print(times, *(sum(getattr(each, name) for each in use) for name in ("ru_minflt", "ru_nvcsw", "ru_nivcsw")))
    """
    said = tmp_path / "said"
    words = [native, "measure", "--output", said, "--", *python(source)]
    drop = None if capable else without_records
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, preexec_fn=drop)
    assert process.stdout is not None
    measured = json.loads(process.stdout.read())
    _, status, outer = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    cpu_s, faults, voluntary, involuntary = map(float, said.read_text().split())
    cpu_ns = measured["user_ns"] + measured["system_ns"]
    assert cpu_s * 1e9 - ROUNDING_NS <= cpu_ns <= (outer.ru_utime + outer.ru_stime) * 1e9 + ROUNDING_NS
    # What the process was before it became the command is taken off.
    copied = 200
    assert faults - copied <= measured["minor_faults"] <= outer.ru_minflt
    assert voluntary - 10 <= measured["voluntary_switches"] <= outer.ru_nvcsw
    assert involuntary - 10 <= measured["involuntary_switches"] <= outer.ru_nivcsw


def test_a_tree_of_processes_and_threads_is_counted(measure: Measure) -> None:
    source = """
        import os, threading
        for _ in range(7):
            if os.fork() == 0:
                threads = [threading.Thread(target=lambda: None) for _ in range(4)]
                [thread.start() for thread in threads]
                [thread.join() for thread in threads]
                if os.fork() == 0:
                    os._exit(0)
                os.wait()
                os._exit(0)
        [os.wait() for _ in range(7)]
    """
    measured = measure(*python(source))
    assert (measured["processes"], measured["threads"]) == (1 + 7 * 2, 1 + 7 * (1 + 4 + 1))
    piped = measure("/bin/sh", "-c", "/bin/true | /bin/cat | /bin/cat; (/bin/true; /bin/true; :); :")
    assert piped["processes"] == 1 + 3 + 1 + 2
    assert piped["left_over"] == 0


def test_make_with_two_jobs(measure: Measure, tmp_path: Path) -> None:
    rules = [f"{n}:\n\t@/bin/true {n}; /bin/true {n}\n" for n in range(20)]
    (tmp_path / "Makefile").write_text(f"all: {' '.join(map(str, range(20)))}\n" + "".join(rules))
    measured = measure("make", "-j2", options=("--directory", tmp_path))
    # make, and of each target a shell, which may become its last command.
    assert measured["exit_code"] == 0
    assert 1 + 20 * 2 <= measured["processes"] <= 1 + 20 * 3


def test_processes_that_nobody_waits_for_are_counted(measure: Measure) -> None:
    source = """
        import os, signal, time
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        pid = os.fork()
        if pid == 0:
            while time.process_time() < 0.3: pass
            os._exit(0)
        # Waiting for an ignored child returns when it has ended, and is no wait to the kernel's sums.
        try:
            os.waitpid(pid, 0)
        except ChildProcessError:
            pass
    """
    measured = measure(*python(source))
    # Up to the last tick of each (4 ms here).
    assert measured["user_ns"] + measured["system_ns"] >= 290_000_000
    assert measured["processes"] == 2


DAEMON = """
    import os, sys, time
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            with open(sys.argv[1], "w") as file:
                file.write(str(os.getpid()))
            time.sleep(600)
        os._exit(0)
    os.wait()
    while not os.path.exists(sys.argv[1]) or not os.path.getsize(sys.argv[1]):
        time.sleep(0.01)
"""


def test_a_daemon_that_is_left_over_is_killed(measure: Measure, tmp_path: Path) -> None:
    measured = measure(*python(DAEMON), tmp_path / "pid")
    assert (measured["exit_code"], measured["left_over"], measured["processes"]) == (0, 1, 3)
    assert not lives(int((tmp_path / "pid").read_text()))


def test_a_daemon_may_be_kept(measure: Measure, tmp_path: Path) -> None:
    measured = measure(*python(DAEMON), tmp_path / "pid", options=("--keep-left-over",))
    daemon = int((tmp_path / "pid").read_text())
    try:
        assert lives(daemon)
        assert (measured["left_over"], measured["processes"]) == (1, 2)
    finally:
        os.kill(daemon, signal.SIGKILL)


def test_a_run_whose_time_is_over_is_asked_and_then_killed(measure: Measure, tmp_path: Path) -> None:
    options = ("--timeout", "300ms")
    obedient = measure("sh", "-c", "trap 'exit 7' TERM; while :; do sleep 0.01; done", options=options)
    assert (obedient["timed_out"], obedient["exit_code"], obedient["left_over"]) == (True, 7, 0)
    source = f"trap '' TERM; echo $$ > {tmp_path}/shell; sleep 600 & echo $! > {tmp_path}/sleep; wait; wait; sleep 600"
    stubborn = measure("sh", "-c", source, options=options)
    assert (stubborn["timed_out"], stubborn["signal"]) == (True, signal.SIGKILL)
    assert stubborn["elapsed_ns"] >= 2_300_000_000
    assert not any(lives(int((tmp_path / name).read_text())) for name in ("shell", "sleep"))


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_who_ends_it_ends_the_run_and_gets_what_was_measured(
    native: Path, tmp_path: Path, how: signal.Signals
) -> None:
    started, caught = tmp_path / "started", tmp_path / "caught"
    source = f"trap 'echo > {caught}; exit 3' {how.name[3:]}; echo > {started}; while :; do sleep 0.01; done"
    words = [native, "measure", "--", "sh", "-c", source]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, start_new_session=True)
    wait_for(started.exists)
    process.send_signal(how)
    said, _ = process.communicate(timeout=600)
    measured = json.loads(said)
    assert process.returncode == 130
    assert caught.exists()
    assert (measured["interrupted"], measured["timed_out"], measured["exit_code"]) == (True, False, 3)


def test_a_run_ends_with_who_measures_it(native: Path, tmp_path: Path) -> None:
    source = f"echo $$ > {tmp_path}/new; mv {tmp_path}/new {tmp_path}/pid; exec sleep 600"
    words = [native, "measure", "--", "sh", "-c", source]
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL)
    wait_for((tmp_path / "pid").exists)
    process.kill()
    process.wait()
    wait_for(lambda: not lives(int((tmp_path / "pid").read_text())))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--", "no-such-program"], "sysdock: cannot run no-such-program: No such file"),
        (["--", "/etc/passwd"], "sysdock: cannot run /etc/passwd: Permission denied"),
        (["--directory", "/nowhere", "--", "true"], "sysdock: /nowhere: No such file or directory"),
        (["--output", "/nowhere/x", "--", "true"], "sysdock: /nowhere/x: No such file or directory"),
        (["--device", "no-disk", "--", "true"], "sysdock: --device no-disk: no such block device"),
        (["--cpus", "8000", "--", "true"], "sysdock: --cpus: Invalid argument"),
    ],
)
def test_what_cannot_run_says_why(native: Path, words: list[str], said: str) -> None:
    done = subprocess.run([native, "measure", *words], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(said)


def test_a_command_gets_what_was_asked_for(measure: Measure, tmp_path: Path) -> None:
    source = """
        import os, sys
        print(os.getcwd(), os.environ["COLOUR"], sorted(os.sched_getaffinity(0)), repr(sys.stdin.read()), os.getpgrp() == os.getpid())
        print("to errors", file=sys.stderr)
    """
    output, errors = tmp_path / "output", tmp_path / "errors"
    options = (
        "--output",
        output,
        "--errors",
        errors,
        "--directory",
        tmp_path,
        "--env",
        "COLOUR=a=b",
        "--cpus",
        "0",
    )
    assert measure(*python(source), options=options)["exit_code"] == 0
    assert output.read_text() == f"{tmp_path} a=b [0] '' True\n"
    assert errors.read_text() == "to errors\n"


def test_a_thread_computes_or_waits_for_its_cpu(measure: Measure) -> None:
    spin = python("import time\nwhile time.process_time() < 0.5: pass")
    with subprocess.Popen(["taskset", "-c", "0", *python("while True: pass")]) as hog:
        try:
            wait_for(lambda: time.clock_gettime(cpu_clock_of(hog.pid)) > 0.1)
            measured = measure(*spin, options=("--cpus", "0"))
        finally:
            hog.kill()
    cpu_ns = measured["user_ns"] + measured["system_ns"]
    assert measured["threads"] == 1
    # The first wait, for the CPU of its birth, was before it was let go.
    assert cpu_ns + measured["run_delay_ns"] <= measured["elapsed_ns"] + 20_000_000
    # Both have the same right to the CPU: it waits about as long as it computes.
    assert measured["run_delay_ns"] >= cpu_ns // 4


def cpu_clock_of(pid: int) -> int:
    """The clock of the CPU time of a process: clock_getcpuclockid(3)."""
    clock = ctypes.c_int()
    assert ctypes.CDLL(None).clock_getcpuclockid(pid, ctypes.byref(clock)) == 0
    return clock.value


def test_transfers_are_exact(measure: Measure) -> None:
    def copied(count: int) -> dict:
        return measure("dd", "if=/dev/zero", "of=/dev/null", "bs=1024", f"count={count}", "status=none")

    few, many = copied(10), copied(1010)
    for name in ("read_chars", "write_chars"):
        assert many[name] - few[name] == 1000 * 1024, name
    assert few["write_chars"] == 10 * 1024


@pytest.mark.parametrize("capable", [True, False])
def test_writes_of_a_device_are_exact(measure: Measure, loop_device: str, capable: bool) -> None:
    words = [
        "dd",
        "if=/dev/zero",
        f"of=/dev/{loop_device}",
        "bs=1M",
        "count=8",
        "oflag=direct",
        "status=none",
    ]
    options = ("--device", loop_device, "--device", f"/dev/{loop_device}")
    measured = measure(*words, options=options, preexec_fn=None if capable else without_records)
    assert measured["write_bytes"] == 8 * MIB
    by_name, by_path = measured["devices"]
    assert by_name | {"name": ""} == by_path | {"name": ""}
    assert (by_name["name"], by_name["write_bytes"], by_name["flushes"]) == (loop_device, 8 * MIB, 0)


def test_flushes_are_counted(measure: Measure, loop_device: str) -> None:
    source = """
        import os, sys
        file = os.open(sys.argv[1], os.O_WRONLY)
        for place in range(12):
            os.pwrite(file, b"x" * 4096, place * 4096)
            os.fsync(file)
    """
    measured = measure(*python(source), f"/dev/{loop_device}", options=("--device", loop_device))
    [device] = measured["devices"]
    assert (device["flushes"], device["write_bytes"]) == (12, 12 * 4096)
    # Kernels differ in whether a flush is a write of no bytes, too.
    assert device["writes"] in (12, 24)


def test_memory_is_that_of_the_command_and_not_ours(measure: Measure) -> None:
    assert 0 < measure("/bin/true")["max_rss_bytes"] < 4 * MIB
    some = measure(*python("pass"))["max_rss_bytes"]
    more = measure(*python("x = b'x' * (64 << 20)"))["max_rss_bytes"]
    assert 64 * MIB - MIB < more - some < 64 * MIB + 4 * MIB


def test_without_the_kernels_records_what_is_not_known_says_why(measure: Measure) -> None:
    alone = measure("/bin/true", preexec_fn=without_records)
    reason = {"code": "measure/records_not_permitted"}
    assert (alone["processes"], alone["missing"]["processes"]) == (None, reason)
    assert (alone["threads"], alone["max_rss_bytes"]) == (None, None)
    assert alone["missing"]["max_rss_bytes"] == {"code": "measure/above_own_peak_only", "why": reason}
    assert isinstance(alone["run_delay_ns"], int)
    tree = measure("/bin/sh", "-c", "/bin/true; /bin/true; :", preexec_fn=without_records)
    assert (tree["run_delay_ns"], tree["exit_code"]) == (None, 0)
    assert tree["missing"]["run_delay_ns"] == {"code": "measure/single_thread_only", "why": reason}


def test_what_is_null_has_a_reason_and_nothing_else_has(measure: Measure, loop_device: str) -> None:
    measured = measure("/bin/true", options=("--device", loop_device))
    ways = {"": measured, "machine.": measured["machine"], f"devices.{loop_device}.": measured["devices"][0]}
    optional = {"exit_code", "signal"}
    unknown = {way + name for way, fields in ways.items() for name, value in fields.items() if value is None}
    assert unknown - optional == set(measured["missing"])
    counted = Path("/proc/sys/kernel/task_delayacct").read_text().strip() != "0"
    assert (measured["block_delay_ns"] is not None) == counted


def test_a_partition_has_no_count_of_flushes(measure: Measure, loop_device: str) -> None:
    subprocess.run(["addpart", f"/dev/{loop_device}", "1", "2048", "8192"], check=True)
    partition = f"{loop_device}p1"
    try:
        measured = measure("/bin/true", options=("--device", partition))
    finally:
        subprocess.run(["delpart", f"/dev/{loop_device}", "1"], check=True)
    assert measured["devices"][0]["flushes"] is None
    reason = {"code": "measure/flushes_of_disks_only"}
    assert measured["missing"][f"devices.{partition}.flushes"] == reason
