"""With whose rights it is recorded, who may read the recording, and what lies in root's way."""

from __future__ import annotations

import os
import pwd
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from recorders import Recorder, recorder_or_skip
from waiting import children

NOBODY = 65534
Query = Callable[..., list[tuple]]

pytestmark = pytest.mark.skipif(os.getuid() != 0, reason="needs root")


@pytest.fixture
def sudo() -> dict[str, str]:
    """The environment that sudo gives to a program that nobody runs as root."""
    root = pwd.getpwuid(0)
    of_root = {
        "USER": "root",
        "LOGNAME": "root",
        "HOME": root.pw_dir,
        "SHELL": root.pw_shell,
        "MAIL": "/var/mail/root",
    }
    return os.environ | of_root | {"SUDO_UID": str(NOBODY), "SUDO_GID": str(NOBODY), "SUDO_USER": "nobody"}


def modes(folder: Path) -> set[tuple[str, int, int]]:
    """Type, owner and mode of all that is in a recording, and of its folder."""
    found = [(path, path.stat()) for path in [folder, *folder.rglob("*")]]
    return {("d" if path.is_dir() else "f", stat.st_uid, stat.st_mode & 0o7777) for path, stat in found}


def test_a_command_of_a_sudo_user_finds_the_rights_and_the_environment_of_that_user(
    recorder: Recorder, place: Path, sudo: dict[str, str]
) -> None:
    nobody = pwd.getpwuid(NOBODY)
    script = "id -u; id -g; id -G; echo $USER $LOGNAME $HOME $SHELL $MAIL"
    done = recorder.record(place / "rec", "sh", "-c", script, env=sudo)
    mine = f"nobody nobody {nobody.pw_dir} {nobody.pw_shell} /var/mail/nobody"
    expected = f"{NOBODY}\n{NOBODY}\n{NOBODY}\n{mine}\n"
    assert done.stdout == expected, done.stderr


def test_the_first_call_of_a_command_is_its_own(
    recorder: Recorder, place: Path, sudo: dict[str, str], query: Query
) -> None:
    recorder.record(place / "rec", "/bin/true", env=sudo)
    assert query(place / "rec", "SELECT call FROM calls ORDER BY ts_ns LIMIT 1") == [("execve",)]


def test_a_recording_belongs_to_the_sudo_user_and_nobody_else_reads_it(
    recorder: Recorder, place: Path, sudo: dict[str, str]
) -> None:
    recorder.record(place / "rec", "/bin/true", env=sudo)
    assert modes(place / "rec") == {("d", NOBODY, 0o700), ("f", NOBODY, 0o600)}
    recorder.record(place / "shared", "/bin/true", env=sudo, recorder_options=("--share",))
    assert modes(place / "shared") == {("d", NOBODY, 0o755), ("f", NOBODY, 0o644)}


def test_a_command_that_runs_as_root_under_sudo_is_sent_signals(
    recorder: Recorder, place: Path, sudo: dict[str, str]
) -> None:
    script = "trap 'exit 5' TERM; id -u; while :; do sleep 0.05; done"
    command = recorder.command(place / "rec", "sh", "-c", script, options=("--as-root",))
    running = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=sudo)
    assert running.stdout.readline() == "0\n"
    running.terminate()
    assert running.wait(600) == 5
    assert modes(place / "rec") == {("d", NOBODY, 0o700), ("f", NOBODY, 0o600)}


def test_no_thread_and_no_process_of_the_recorder_keeps_rights_that_it_does_not_need(
    native: Path, place: Path
) -> None:
    recorder = recorder_or_skip(native, "kernel")
    command = recorder.command(place / "rec", "sh", "-c", "echo ready; read line")
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as running:
        # The command runs only after the rights were given up.
        assert running.stdout.readline() == "ready\n"
        own = capabilities(f"/proc/{running.pid}/task")
        others = {
            Path(f"/proc/{pid}/comm").read_text().strip(): capabilities(f"/proc/{pid}/task")
            for pid in children(running.pid)
        }
        running.stdin.close()
    kill, read = 1 << 5, 1 << 2
    assert own == {kill | read}
    assert others["sysdock-witness"] == {kill}


def capabilities(tasks: str) -> set[int]:
    """The sets of capabilities that the threads of a process may use."""
    texts = [(task / "status").read_text() for task in Path(tasks).iterdir()]
    return {
        int(line.split()[1], 16) for text in texts for line in text.splitlines() if line.startswith("CapPrm:")
    }


def test_a_folder_of_somebody_else_is_refused_before_the_command_runs(
    recorder: Recorder, place: Path
) -> None:
    """Its owner could have put links into it by the time it is written to."""
    folder = place / "rec"
    folder.mkdir()
    os.chown(folder, NOBODY, NOBODY)
    done = subprocess.run(
        recorder.command(folder, "touch", str(place / "ran")), capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert f"{folder}: belongs to another user (uid {NOBODY})" in done.stderr
    assert "hint: " in done.stderr
    assert not (place / "ran").exists()
    assert list(folder.iterdir()) == []


def test_a_link_in_place_of_the_folder_is_refused(recorder: Recorder, place: Path) -> None:
    (place / "elsewhere").mkdir()
    (place / "rec").symlink_to(place / "elsewhere")
    done = subprocess.run(
        recorder.command(place / "rec", "true"), capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "exists" in done.stderr
    assert list((place / "elsewhere").iterdir()) == []


def test_links_in_a_recording_of_somebody_else_lead_salvage_nowhere(native: Path, place: Path) -> None:
    recorder = subprocess.Popen(
        recorder_or_skip(native, "kernel").command(place / "rec", "sh", "-c", "echo ready; read line"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert recorder.stdout.readline() == "ready\n"
    recorder.kill()
    recorder.communicate(timeout=600)
    (place / "precious").write_text("mine")
    (place / "precious").chmod(0o600)
    (place / "rec" / "recording.json.new").symlink_to(place / "precious")
    os.chown(place / "rec", NOBODY, NOBODY)
    salvage = [native, "salvage", place / "rec"]
    done = subprocess.run(salvage, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "belongs to another user" in done.stderr
    os.chown(place / "rec", 0, 0)
    assert subprocess.run(salvage, capture_output=True, check=False).returncode == 0
    assert ((place / "precious").read_text(), (place / "precious").stat().st_mode & 0o777) == ("mine", 0o600)


# Runs a command whose bpf(2) fails with EPERM, as under the seccomp profile of a container.
WITHOUT_BPF = """
import ctypes, os, struct, sys
class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_void_p)]
# Load the number of the call; where it is 321, return EPERM; else allow it.
code = [(0x20, 0, 0, 0), (0x15, 0, 1, 321), (0x06, 0, 0, 0x50001), (0x06, 0, 0, 0x7FFF0000)]
text = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *one) for one in code))
program = Program(len(code), ctypes.addressof(text))
libc = ctypes.CDLL(None)
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, ctypes.byref(program), 0, 0) == 0
os.execv(sys.argv[1], sys.argv[1:])
"""


def test_a_container_that_forbids_bpf_is_named_as_the_reason(native: Path, place: Path) -> None:
    recorder_or_skip(native, "kernel")
    start = [sys.executable, "-c", WITHOUT_BPF, native, "record", "-o", place / "rec", "--", "/bin/true"]
    done = subprocess.run(start, capture_output=True, text=True, check=False)
    reason = "the seccomp profile of a container or the kernel's lockdown may forbid it"
    assert reason in done.stderr
    assert (done.returncode, (place / "rec" / "recording.json").exists()) == (0, True), "strace recorded"
    (place / "empty").mkdir()
    start[start.index(place / "rec")] = place / "none"
    no_strace = os.environ | {"PATH": str(place / "empty")}
    done = subprocess.run(start, capture_output=True, text=True, check=False, env=no_strace)
    note, error, *hint = done.stderr.splitlines()
    assert reason in note
    assert (done.returncode, error) == (2, "sysdock: strace is not installed")
    assert hint == ["", "hint: apt-get install strace (or dnf install strace)"]
