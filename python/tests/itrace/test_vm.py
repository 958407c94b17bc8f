"""Requests in real guests: a small web server, its kernel, and what is recorded of both."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner
from sysdock.analysis import Session
from sysdock.cli.itrace_vm import vm
from sysdock.errors import UserError
from sysdock.itrace import facts, tracing
from sysdock.itrace.files import find_plugin
from sysdock.itrace.qemu import Guest, Machine, find_qemu
from sysdock.recording import Recording

ROOT = Path(__file__).resolve().parents[3]
PACKAGES = ROOT / "target" / "vmtest" / "packages"
pytestmark = [pytest.mark.slow, pytest.mark.more]

TASKS = """
SELECT comm, mode, sum(s.steps)::BIGINT AS steps FROM trace_segments s JOIN traced_tasks t ON t.task_id = s.task_id
GROUP BY ALL ORDER BY ALL
"""
Build = Callable[..., Path]


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Build:
    """Builds the guest of a service."""
    if not shutil.which("qemu-system-x86_64"):
        pytest.skip("qemu is not installed (apt-get install qemu-system-x86)")
    try:
        find_plugin()
    except UserError:
        pytest.skip("the plugin is not built (make setup)")
    sys.path.insert(0, str(ROOT / "tools" / "vmtest.d"))
    from kernels import kernel_of

    kernel = kernel_of("6.1")

    def run(service: str, *more: str) -> Path:
        folder = tmp_path_factory.mktemp("guest") / "guest"
        words = ["build", service, "-o", str(folder), "--kernel", str(kernel), "--cache", str(PACKAGES)]
        done = CliRunner().invoke(vm, [*words, "--memory", "256", "--warm", "5", *more])
        if done.exception:
            raise done.exception
        return folder

    return run


@pytest.fixture(scope="module")
def guest(build: Build) -> Path:
    """That of the web server of busybox."""
    return build("busybox")


def steps(recording: Path) -> dict[tuple[str, str], int]:
    """By task and mode."""
    with Session(Recording.open(recording)) as session:
        return {(comm, mode): count for comm, mode, count in session.fetch(TASKS)}


def record(guest: Path, rec: Path, *words: str) -> Path:
    done = CliRunner().invoke(vm, ["run", str(guest), "-o", str(rec), *words])
    if done.exception and not isinstance(done.exception, SystemExit):
        raise done.exception
    assert done.exit_code == 0, done.output
    return rec


def test_a_request_has_the_same_steps_each_time(guest: Path, tmp_path: Path) -> None:
    first, second = (steps(record(guest, tmp_path / name)) for name in ("one", "two"))
    user = {key: count for key, count in first.items() if key[1] != "kernel"}
    assert user == {key: count for key, count in second.items() if key[1] != "kernel"}
    # The server itself, and a child for the connection.
    assert first["busybox", "user"] > 5_000
    assert first["client", "user"] > 50
    # The host determines which kernel threads execute in addition, and how long the processor waits.
    of_request = {"busybox", "client"}
    one, two = (
        sum(count for (comm, _), count in run.items() if comm in of_request) for run in (first, second)
    )
    assert abs(one - two) < one * 0.002


def test_the_client_can_be_on_this_machine(guest: Path, tmp_path: Path) -> None:
    inside = steps(record(guest, tmp_path / "inside"))
    outside = steps(record(guest, tmp_path / "outside", "--path", "virtio-net"))
    assert outside["busybox", "kernel"] > inside["busybox", "kernel"]


def test_a_request_can_be_what_the_server_does_with_it(guest: Path, tmp_path: Path) -> None:
    rec = record(guest, tmp_path / "rec", "--path", "virtio-net", "--cut", "server")
    with Session(Recording.open(rec)) as session:
        names = [name for (name,) in session.fetch("SELECT name FROM traced_requests ORDER BY request_id")]
        sql = "SELECT name FROM kernel_entries WHERE request_id = 1 AND kind = 'system_call' ORDER BY step"
        calls = [name for (name,) in session.fetch(sql)]
        whole = session.fetch("SELECT count(*) FROM trace_segments WHERE request_id = 0")
    # The server accepts, has a child answer, and waits for the next connection.
    assert names[0] == "/6040.html, after accept"
    assert "accept" not in calls[:-1]
    assert "clone" in " ".join(calls) or "fork" in " ".join(calls)
    assert whole == [(0,)]


def done_steps(native: Path, folder: Path) -> tuple[int, int, int]:
    """Number of instructions of all blocks except the last, of the last one, and number of blocks that a fault ended."""
    words = [native, "itrace", "decode", "--", folder]
    text = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    events = [line.split() for line in text.splitlines()]
    [fault] = re.findall(
        r"^([0-9a-f]+) \w asm_exc_page_fault$", (folder / "kallsyms").read_text(), re.MULTILINE
    )
    done, last, faults, before = 0, 0, 0, ""
    for event in events:
        if event[0] == "block":
            done, last = done + last, int(event[2])
            faults += before == "left" and event[1] == f"0x{fault}"
        elif event[0] == "left":
            last = int(event[1])
        before = event[0]
    return done, last, faults


def test_what_the_plugin_counts_is_what_the_events_say(guest: Path, tmp_path: Path, native: Path) -> None:
    out = tmp_path / "out"
    asked = tracing.Asked("/6040.html")
    status = tracing.run(guest, out, asked, qemu=find_qemu(None), say=lambda _: None)
    assert status["reason"] == "marker"
    assert "answer" not in status
    done, last, faults = done_steps(native, out)
    # The marker lies somewhere in the last block. Instructions that fault are begun, and not done.
    assert done + faults <= status["instructions"] <= done + faults + last
    facts = json.loads((out / "facts.json").read_text())
    assert {"client", "busybox", "swapper/0"} <= {task["comm"] for task in facts["tasks"]}
    # All tasks that ran have a name, also the child that has ended.
    assert set(status["tasks"]) <= {task["address"] for task in facts["tasks"]}
    assert (out / "kallsyms").stat().st_size > 1_000_000


def test_another_qemu_executes_the_same(build: Build, guest: Path, tmp_path: Path) -> None:
    from emulators import newer_qemu

    qemu = str(newer_qemu())
    other = build("busybox", "--qemu", qemu)
    first, second = (steps(record(other, tmp_path / name, "--qemu", qemu)) for name in ("one", "two"))
    user = {key: count for key, count in first.items() if key[1] != "kernel"}
    assert user == {key: count for key, count in second.items() if key[1] != "kernel"}
    assert user.keys() == {key for key in steps(record(guest, tmp_path / "three")) if key[1] != "kernel"}


def test_every_instruction_of_a_known_program_is_counted(build: Build, guest: Path, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    shutil.copytree(guest / "root", tree, symlinks=True)
    (tree / "srv" / "www" / "cgi-bin").mkdir()
    program = tree / "srv" / "www" / "cgi-bin" / "known"
    source = Path(__file__).with_name("known.S")
    subprocess.run(["cc", "-nostdlib", "-static", "-o", program, source], check=True)
    path = tmp_path / "service.toml"
    command = '["/bin/busybox", "httpd", "-f", "-p", "80", "-h", "/srv/www"]'
    path.write_text(f'tree = "tree"\nport = 80\nrequest = "/6040.html"\ncommand = {command}\n')
    rec = record(build(str(path)), tmp_path / "rec", "--request", "/cgi-bin/known")
    counted = """
        SELECT sum(s.steps)::BIGINT, sum(steps_collapsed)::BIGINT FROM trace_segments s
        JOIN traced_tasks t ON t.task_id = s.task_id JOIN images i ON i.image_id = s.image_id
        WHERE comm = 'known' AND path = '/srv/www/cgi-bin/known'
    """
    # For an instruction with a REP prefix, qemu executes one more to see that no iteration is left, which is not a step.
    with Session(Recording.open(rec)) as session:
        assert session.fetch(counted) == [(20_108, 20_009)]


@pytest.fixture(scope="module")
def disk_guest(build: Build) -> Path:
    """One with a disk, whose requests are commands."""
    if not shutil.which("mke2fs", path="/usr/sbin:/sbin:/usr/bin"):
        pytest.skip("mke2fs is not installed (apt-get install e2fsprogs)")
    return build("files")


IMAGES = """
SELECT comm, path, sum(s.steps)::BIGINT AS steps FROM trace_segments s JOIN traced_tasks t ON t.task_id = s.task_id
JOIN images i ON i.image_id = s.image_id WHERE s.mode <> 'kernel' GROUP BY ALL ORDER BY ALL
"""


def test_a_command_is_traced_from_its_fork_to_its_end(disk_guest: Path, tmp_path: Path) -> None:
    images = []
    for name in ("one", "two"):
        with Session(Recording.open(record(disk_guest, tmp_path / name, "--fail"))) as session:
            images.append(session.fetch(IMAGES))
    assert images[0] == images[1]
    found = {(comm, path.rpartition("/")[2]): steps for comm, path, steps in images[0]}
    # The process has ended when the host asks, and its program and its libraries are known nevertheless.
    assert found["true", "true"] > 0
    assert found["true", "ld-linux-x86-64.so.2"] > 10_000
    assert found["true", "libc.so.6"] > 100
    unknown = sum(steps for (_, name), steps in found.items() if name == "[unknown]")
    assert unknown < 0.001 * sum(found.values())


def test_a_write_lasts_and_the_disk_is_as_before(disk_guest: Path, tmp_path: Path) -> None:
    before = (disk_guest / "disk").read_bytes()
    user, waits = [], []
    for name in ("one", "two"):
        rec = record(disk_guest, tmp_path / name, "--request", "fsync", "--fail")
        with Session(Recording.open(rec)) as session:
            waits.append(session.fetch("SELECT count(*) FROM kernel_entries WHERE name = 'fsync'"))
            user.append(session.fetch(IMAGES))
            tasks = {comm for (comm,) in session.fetch("SELECT DISTINCT comm FROM traced_tasks")}
        # The journal's own thread writes what the file system has to note.
        assert "jbd2/vda-8" in tasks
    assert waits == [[(1,)], [(1,)]]
    assert user[0] == user[1]
    assert (disk_guest / "disk").read_bytes() == before


def test_a_request_that_fails_is_said(guest: Path, tmp_path: Path) -> None:
    words = ["run", str(guest), "-o", str(tmp_path / "rec"), "--request", "/nothing"]
    done = CliRunner().invoke(vm, [*words, "--fail"])
    assert done.exit_code == 1
    assert "/nothing: answered `HTTP/1.1 404 Not Found`" in done.stderr
    assert (tmp_path / "rec" / "recording.json").exists()


def test_a_command_that_fails_is_said_with_its_output(build: Build, tmp_path: Path) -> None:
    path = tmp_path / "service.toml"
    requests = '[requests]\nno = ["/bin/busybox", "nonsense"]\n'
    path.write_text(f'packages = ["busybox-static"]\n{requests}')
    with pytest.raises(UserError) as raised:
        build(str(path))
    assert "no: status 127: nonsense: applet not found" in str(raised.value)


def test_a_request_that_does_not_end_within_the_limit(guest: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError) as raised:
        record(guest, tmp_path / "rec", "--limit", "20000", "--events")
    assert "the request did not end within the limit" in str(raised.value)
    assert (tmp_path / "rec" / "trace.sdit").stat().st_size > 0


def test_a_disk_that_is_full(guest: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "trace.sdit").symlink_to("/dev/full")
    with pytest.raises(UserError) as raised:
        tracing.run(guest, out, tracing.Asked("/6040.html"), qemu=find_qemu(None), say=lambda _: None)
    assert "No space left on device" in str(raised.value)


def test_a_disk_that_fills_while_tracing(guest: Path, tmp_path: Path) -> None:
    limited = tmp_path / "limited"
    limited.write_text('#!/bin/sh\ntrap "" XFSZ\nulimit -f 100\nexec qemu-system-x86_64 "$@"\n')
    limited.chmod(0o755)
    out = tmp_path / "out"
    with pytest.raises(UserError) as raised:
        tracing.run(guest, out, tracing.Asked("/6040.html"), qemu=limited, say=lambda _: None)
    assert f"{out}: the trace cannot be written: File too large" in str(raised.value)


def test_a_service_that_does_not_start_shows_its_console(build: Build, tmp_path: Path) -> None:
    path = tmp_path / "service.toml"
    path.write_text('packages = ["busybox-static"]\nport = 80\ncommand = ["/bin/busybox", "nonsense"]\n')
    with pytest.raises(UserError) as raised:
        build(str(path))
    assert "the service ended with status 127 (port 80)" in str(raised.value)
    assert "nonsense: applet not found" in str(raised.value)


def test_a_guest_that_panics_shows_its_console(build: Build, tmp_path: Path) -> None:
    path = tmp_path / "service.toml"
    command = '["/bin/busybox", "sh", "-c", "echo c >/proc/sysrq-trigger"]'
    path.write_text(f'packages = ["busybox-static"]\nport = 80\ncommand = {command}\n')
    with pytest.raises(UserError) as raised:
        build(str(path))
    assert "the guest's kernel panicked: not syncing: sysrq triggered crash" in str(raised.value)
    assert "sysrq_handle_crash" in str(raised.value)


def test_switches_of_tasks_are_those_that_the_kernel_traces(
    build: Build, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tracing_folder = "/sys/kernel/tracing"
    start = f"mount -t tracefs t {tracing_folder}; echo 1 >{tracing_folder}/events/sched/sched_switch/enable"
    service = tmp_path / "traced.toml"
    words = json.dumps(["/bin/busybox", "sh", "-c", f"{start}; exec busybox httpd -f -p 80 -h /srv/www"])
    service.write_text(
        f'packages = ["busybox-static"]\ncommand = {words}\nport = 80\nrequest = "/a"\n\n[sizes]\n"/srv/www/a" = 6040\n'
    )
    guest, seen = build(str(service)), []

    def tasks(machine: Guest) -> list[facts.Task]:
        # The guest still runs, and its kernel has noted what it did meanwhile.
        seen.append(machine.do(f"get {tracing_folder}/trace").decode())
        return known(machine)

    known = facts.tasks
    monkeypatch.setattr(facts, "tasks", tasks)
    rec = record(guest, tmp_path / "rec", "--request", "/a")
    noted = re.findall(r"sched_switch:.* prev_pid=(\d+) .* next_pid=(\d+) ", seen[-1])
    with Session(Recording.open(rec)) as session:
        sql = """SELECT p.pid, n.pid FROM task_switches AS s
            JOIN traced_tasks AS p ON p.task_id = s.previous_task_id
            JOIN traced_tasks AS n ON n.task_id = s.task_id ORDER BY s.step"""
        found = [(str(before), str(after)) for before, after in session.fetch(sql)]
    assert len(found) > 5
    # Those of the request, among those before and after it.
    parts = [noted[at : at + len(found)] for at in range(len(noted))]
    assert found in parts


def test_a_boot_that_is_replayed_gives_the_same_events(guest: Path, tmp_path: Path) -> None:
    commands = "alone\nwait 80 60000\nwarm 5 80 /6040.html\nrequest 1 2 1 80 /6040.html\n"
    machine = Machine(find_qemu(None), guest, 256)

    def boot(how: str, *more: str) -> None:
        folder = tmp_path / how
        folder.mkdir(exist_ok=True)
        words = machine.command(folder, folder / "console", commands)
        words[words.index("-icount") + 1] = f"shift=0,sleep=on,rr={how},rrfile={tmp_path / 'log'}"
        words += ["-object", "filter-replay,id=replay,netdev=net", *more]
        # Nobody has to say that it may begin.
        words.remove("-S")
        with open(folder / "errors", "w") as errors:
            done = subprocess.run(words, stdin=subprocess.DEVNULL, stderr=errors, timeout=600, check=False)
        assert done.returncode == 0, (folder / "errors").read_text()

    boot("record")
    events = []
    for number in range(2):
        out = tmp_path / f"{number}.sdit"
        boot("replay", "-plugin", f"{find_plugin()},out={out}")
        assert json.loads(out.with_suffix(".sdit.status").read_text())["reason"] == "marker"
        events.append(out.read_bytes())
    assert len(events[0]) > 100_000
    assert events[0] == events[1]
