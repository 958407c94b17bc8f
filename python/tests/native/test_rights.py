"""With whose rights it is recorded, who may read the recording, and what lies in root's way."""

from __future__ import annotations

import os
import pwd
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from recorders import Recorder, recorder_or_skip

NOBODY = 65534
Query = Callable[..., list[tuple]]

pytestmark = pytest.mark.skipif(os.getuid() != 0, reason="needs root")


@pytest.fixture
def sudo() -> dict[str, str]:
    """The environment that sudo gives to a program that nobody runs as root."""
    root = pwd.getpwuid(0)
    of_root = {"USER": "root", "LOGNAME": "root", "HOME": root.pw_dir, "SHELL": root.pw_shell}
    return os.environ | of_root | {"SUDO_UID": str(NOBODY), "SUDO_GID": str(NOBODY), "SUDO_USER": "nobody"}


def modes(folder: Path) -> set[tuple[str, int, int]]:
    """Type, owner and mode of all that is in a recording, and of its folder."""
    found = [(path, path.stat()) for path in [folder, *folder.rglob("*")]]
    return {("d" if path.is_dir() else "f", stat.st_uid, stat.st_mode & 0o7777) for path, stat in found}


def test_a_command_of_a_sudo_user_finds_the_rights_and_the_environment_of_that_user(
    recorder: Recorder, place: Path, sudo: dict[str, str]
) -> None:
    nobody = pwd.getpwuid(NOBODY)
    script = "id -u; id -g; id -G; echo $USER $LOGNAME $HOME $SHELL"
    done = recorder.record(place / "rec", "sh", "-c", script, env=sudo)
    expected = f"{NOBODY}\n{NOBODY}\n{NOBODY}\nnobody nobody {nobody.pw_dir} {nobody.pw_shell}\n"
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
    assert running.wait(60) == 5
    assert modes(place / "rec") == {("d", NOBODY, 0o700), ("f", NOBODY, 0o600)}


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
    recorder.communicate(timeout=20)
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
